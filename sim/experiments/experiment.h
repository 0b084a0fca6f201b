/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Experiments as data: what is swept, with which settings, and what the paper
 * claims about the outcome (MODEL section 6).
 *
 * Nothing is tuned per figure: what a paper's figures share is its
 * paper_config; an experiment adds only what its own row of MODEL 6 fixes.
 */
#ifndef SIM_EXPERIMENTS_EXPERIMENT_H
#define SIM_EXPERIMENTS_EXPERIMENT_H

#include "sim/experiments/sweep.h"

/* --- claims ---------------------------------------------------------------------- */

enum claim_type {
	CLAIM_ORDINAL,	    /* [O]: an order or a trend */
	CLAIM_QUANTITATIVE, /* [Q]: a number */
};

/* How a claim is judged.  Series are named by label, several by "|"; "ID/LABEL" is a
 * series of another experiment, "*" all series. */
enum claim_kind {
	CLAIM_NOT_TESTED, /* outside of what a simulator can say: `why` says it */
	/* Each of `a` lies below each of `b`: significantly over the points together, and at
	 * no point significantly above. */
	CLAIM_BELOW,
	/* Each of `a` is within a relative `band` (0: 15 %) of each of `b`. */
	CLAIM_EQUAL,
	/* Each of `a` rises along the points (falls, if `down`): significantly from the first
	 * point to the last, and no step goes significantly the other way by more than 2 %. */
	CLAIM_TREND,
	/* Each of `a` grows by a smaller factor from the first point to the last than each
	 * of `b`. */
	CLAIM_FLATTER,
	/* `a` over `b` by `printed`, told as `by`: the measured value lies within the
	 * relative `band` (0: 25 %) of the printed one; its interval is told beside. */
	CLAIM_RATIO,
	/* As CLAIM_RATIO, but of `a` at the last point over `a` at the first (a gain is an
	 * increase). */
	CLAIM_GROWTH,
	/* The value of `a` itself is `printed`. */
	CLAIM_VALUE,
	/* `a` is least at the point `at`: no point lies significantly below it by more
	 * than 2 %. */
	CLAIM_MINIMUM,
	/* `a` falls to the point `at` and rises from there (both as CLAIM_TREND). */
	CLAIM_VALLEY,
	CLAIM_CODE, /* `code` judges */
};

/* What of the points a ratio tells. */
enum claim_over {
	OVER_MEAN, /* the mean over the points of `at` and all of `b` */
	OVER_MAX,  /* the largest of them ("up to") */
};

enum verdict { VERDICT_HOLDS, VERDICT_FAILS, VERDICT_NOT_TESTED };

struct judgement {
	enum verdict verdict;
	char measured[768]; /* the measured value with its interval, in words */
};

/* The results at hand. */
struct claim_context {
	const struct sweep *sweep; /* the experiment's own */
	const struct sweep *const *all;
	size_t nall;
};

struct claim {
	enum claim_type type;
	enum claim_kind kind;
	const char *text; /* what the paper says */
	const char *a, *b;
	const char *at;	      /* points: NULL all, "LABEL", "LABEL..LABEL" */
	enum measure measure; /* 0 (mean slowdown) unless told: M_SLOWDOWN */
	bool down;
	bool most;     /* CLAIM_BELOW: at more than half of the points, and on the mean */
	bool at_least; /* CLAIM_RATIO, _GROWTH, _VALUE: more than `printed` holds too */
	bool either;   /* CLAIM_RATIO: gain or reduction may meet it (O-43) */
	enum ratio by;
	enum claim_over over;
	double printed, band;
	/* columns of a probe's executions, for the judgements of probe_claims.h */
	enum probe_column x, y, y2;
	void (*code)(const struct claim_context *context, const struct claim *claim,
		     struct judgement *out);
	const char *reading; /* how an ambiguous text was read, or NULL */
	const char *why;     /* where it does not hold: why, as far as known */
	const char *bound;   /* id of the experiment that backs `why`, or NULL */
};

/* Judges CLAIM; never fails: what cannot be told is VERDICT_NOT_TESTED with the reason. */
void claim_judge(const struct claim_context *context, const struct claim *claim,
		 struct judgement *out);
const struct sweep *claim_sweep(const struct claim_context *context, const char *id);

/* --- experiments ----------------------------------------------------------------- */

enum plot {
	PLOT_LINES,   /* against a numeric axis */
	PLOT_BARS,    /* points are names */
	PLOT_SERIES,  /* time series of the first seed */
	PLOT_COMPARE, /* one point, several measures side by side */
	PLOT_SCATTER, /* the executions of a probe, as struct scatter says */
};

struct point {
	const char *label;
	double x;
	const char *settings;
};

struct series {
	const char *label; /* NULL: the policy's name */
	const char *policy;
	const char *settings;
};

/* A cloud of a probe's executions: of the first point and seed. */
struct scatter {
	enum probe_column x, y[3]; /* up to three responses; PROBE_HOUR: none more */
	bool plane;		   /* marks tell which site was the faster one */
};

/*
 * One value of a reading: the claims of some experiments are judged again with these
 * SETTINGS on top.  The first of a list is the common configuration.
 */
struct reading {
	const char *label, *settings;
};

/* Runs of each cell when claims are judged again: at most so many. */
#define READING_SEEDS 5

struct experiment {
	const char *id;
	const char *paper;  /* where it is shown */
	const char *config; /* whose common configuration it has; NULL: its paper's */
	const char *title;
	const char *none; /* no experiment of its own: what it is instead */
	const char *settings;
	const char *x_name;
	/* Either: a setting's name and its values, separated by spaces ... */
	const char *axis, *values;
	/* ... or points, ended by a NULL label. */
	const struct point *points;
	/* Either: names of policies, separated by spaces; or series, ended by a NULL policy. */
	const char *policies;
	const struct series *series;
	enum plot plot;
	enum measure y;		       /* what the figure shows: M_SLOWDOWN unless told */
	const struct scatter *scatter; /* of PLOT_SCATTER */
	bool log_y;
	bool facets;		    /* series "A, x" and "B, x" in panels A and B */
	const char *reading;	    /* what of the setting is our reading */
	const struct claim *claims; /* ended by a NULL text */
	const char *trace; /* settings that go with the process trace as workload; NULL: none */
	const char *needs; /* ids of experiments whose results its claims look at */
	/* Ended by a NULL label; the ids judged under each, separated by spaces. */
	const struct reading *readings;
	const char *judged;
};

/* What all figures of a paper share, with the reason for each. */
struct paper_setting {
	const char *name, *value, *reason;
};

struct paper {
	const char *name, *title;
	const struct paper_setting *settings; /* ended by a NULL name */
	const char *calibrated; /* what of them was chosen after seeing which outcomes, or NULL */
};

const struct experiment *experiment_at(size_t i);	  /* NULL at the end */
const struct experiment *experiment_find(const char *id); /* case-insensitive */
const struct paper *paper_at(size_t i);
const struct paper *paper_find(const char *name);

/*
 * The grid of runs of E (no results yet): the paper's configuration, then the
 * experiment's settings, then EXTRA (may be NULL).  TRACE: path of the process
 * trace for those that replay it (each seed is one of its hours), NULL: generated.
 * NULL with ERR set.
 */
struct sweep *experiment_sweep(const struct experiment *e, uint32_t seeds, const char *trace,
			       const struct settings *extra, struct iocom_err *err);

#endif
