/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Experiments as data: what is swept, with which settings, and what the paper claims about the
 * outcome (MODEL section 6).
 *
 * Nothing is tuned per figure.  A paper's figures share a configuration (struct paper); an
 * experiment adds only what its own row of MODEL 6 fixes.
 */
#ifndef SIM_EXPERIMENTS_EXPERIMENT_H
#define SIM_EXPERIMENTS_EXPERIMENT_H

#include "sim/experiments/sweep.h"

/* --- claims ---------------------------------------------------------------------- */

enum claim_type {
	CLAIM_ORDINAL,	    /* [O]: an order or a trend */
	CLAIM_QUANTITATIVE, /* [Q]: a number */
};

/*
 * How a claim is judged.  Series are named by label, several separated by "|";
 * "ID/LABEL" is a series of another experiment, "*" means all series.
 */
enum claim_kind {
	CLAIM_NOT_TESTED, /* the simulator cannot judge it; `why` says why */
	/*
	 * Each of `a` is below each of `b`: over all points together, and significantly above at
	 * no point.
	 */
	CLAIM_BELOW,
	/* Each of `a` is within a relative `band` (0: 15 %) of each of `b`. */
	CLAIM_EQUAL,
	/*
	 * Each of `a` rises along the points (falls, if `down`): the last point differs from the
	 * first by the relative `band` at least (0: 5 %), and no point goes back by more than 2 %
	 * from any before it.
	 */
	CLAIM_TREND,
	/*
	 * From the first point to the last, each of `a` grows by a smaller factor than each of
	 * `b`.
	 */
	CLAIM_FLATTER,
	/*
	 * `a` over `b`, expressed as `by`, is within the relative `band` (0: 25 %) of `printed`.
	 */
	CLAIM_RATIO,
	/*
	 * Like CLAIM_RATIO, but for `a` at the last point over `a` at the first (a gain is an
	 * increase).
	 */
	CLAIM_GROWTH,
	/* The value of `a` itself is `printed`. */
	CLAIM_VALUE,
	/* `a` is least at the point `at`: no point is below it by more than 2 %. */
	CLAIM_MINIMUM,
	/* `a` falls to the point `at` and rises from there (both as CLAIM_TREND). */
	CLAIM_VALLEY,
	CLAIM_CODE, /* the function `code` judges */
};

/* How a ratio combines its points. */
enum claim_over {
	OVER_MEAN, /* the mean over the points of `at` and all of `b` */
	OVER_MAX,  /* the largest of them ("up to") */
};

/* What the interval over the seeds says of a claim; judge.h has the rules. */
enum verdict {
	VERDICT_HOLDS,	      /* it lies within the claim's bounds */
	VERDICT_EXCEEDED,     /* it lies above a printed number: the effect is there, and larger */
	VERDICT_CONTRADICTED, /* it lies outside */
	VERDICT_UNDECIDED,    /* it straddles a bound: more seeds would decide */
	VERDICT_NOT_TESTED,
	VERDICTS
};

/* "Sensitive" is a change by this at least, "hardly" one by less. */
#define CLAIM_SENSITIVE 0.10

/* More seeds than this are not estimated. */
#define VERDICT_SEEDS_MAX 10000

struct judgement {
	enum verdict verdict;
	char measured[768]; /* the measured value with its interval, as text */
	char start[256];    /* what of it is an unequal start (claim_start.h), or "" */
	/*
	 * The comparison that decides, or that is nearest to failing, and the bounds in which the
	 * claim puts it: in the same unit; infinite where the claim is open.  n is 0 if there is
	 * none.
	 */
	struct interval interval;
	double low, high;
	const char *unit; /* "factor", "gain", "reduction", ... or the name of the measure */
	uint32_t comparisons;
	double alpha; /* the error that was allowed: less at a second look */
	/*
	 * Undecided: how many more seeds would decide if means and deviations stay as they are;
	 * VERDICT_SEEDS_MAX: so many or more; 0: seeds do not decide.
	 */
	uint32_t more_seeds;
};

/* The results that claims can use. */
struct claim_context {
	const struct sweep *sweep; /* the sweep of the claim's own experiment */
	const struct sweep *const *all;
	size_t nall;
	double alpha; /* the error that a claim's verdict is allowed; 0: 5 % */
};

struct claim {
	enum claim_type type;
	enum claim_kind kind;
	const char *text; /* what the paper says */
	const char *a, *b;
	const char *at;	      /* points: NULL for all, "LABEL", "LABEL..LABEL" */
	enum measure measure; /* default 0: M_SLOWDOWN, the mean slowdown */
	bool down;
	bool most;     /* CLAIM_BELOW: at more than half of the points, and for the mean */
	bool at_least; /* CLAIM_RATIO, _GROWTH, _VALUE: `printed` or more, without a band */
	bool either;   /* CLAIM_RATIO: the gain or the reduction may match (O-43) */
	enum ratio by;
	enum claim_over over;
	double printed, band;
	/* columns of a probe's executions, used by probe_claims.h */
	enum probe_column x, y, y2;
	void (*code)(const struct claim_context *context, const struct claim *claim,
		     struct judgement *out);
	/*
	 * A setting was chosen by the outcome of this claim: it is shown with its verdict but
	 * counts no more.  A claim that became worse by the choice still counts.
	 */
	bool calibrates;
	const char *reading; /* how we read an ambiguous text, or NULL */
	const char *why;     /* if the claim does not hold: the reason as far as known */
	const char *bound;   /* id of the experiment that supports `why`, or NULL */
};

/* What outputs say beside a claim that calibrates. */
#define CALIBRATES_TEXT "a setting was chosen by it, so it is no evidence and does not count"

/*
 * Judges CLAIM.  It never fails: a claim that cannot be judged is VERDICT_NOT_TESTED
 * with the reason.
 */
void claim_judge(const struct claim_context *context, const struct claim *claim,
		 struct judgement *out);
const struct sweep *claim_sweep(const struct claim_context *context, const char *id);

/* --- experiments ----------------------------------------------------------------- */

enum plot {
	PLOT_LINES,   /* against a numeric axis */
	PLOT_BARS,    /* each point is a name */
	PLOT_SERIES,  /* time series of the first seed */
	PLOT_COMPARE, /* one point, several measures side by side */
	PLOT_SCATTER, /* the executions of a probe, as described by struct scatter */
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

/* A scatter plot of a probe's executions at the first point, for the first seed. */
struct scatter {
	enum probe_column x, y[3]; /* y has up to three responses; PROBE_HOUR marks an unused one */
	bool plane;		   /* the marks show which site was faster */
};

/*
 * One value of a reading: the claims of some experiments are judged again with SETTINGS added.
 * The first reading of a list is the common configuration.  If the experiment OTHER is among
 * them, it gets OTHER_SETTINGS instead.
 */
struct reading {
	const char *label, *settings;
	const char *other, *other_settings;
};

/* Most runs of each cell when claims are judged again. */
#define READING_SEEDS 5

struct experiment {
	const char *id;
	const char *paper; /* where the experiment is shown */
	const char
		*config; /* the paper whose common configuration it uses; NULL: its own paper's */
	const char *title;
	const char *none; /* why this is no experiment, for entries that are none; or NULL */
	const char *settings;
	const char *x_name;
	/* Either the name of a setting and its values, separated by spaces ... */
	const char *axis, *values;
	/* ... or points that end with a NULL label. */
	const struct point *points;
	/* Either names of policies, separated by spaces, or series that end with a NULL policy. */
	const char *policies;
	const struct series *series;
	enum plot plot;
	enum measure y;		       /* what the figure shows; default: M_SLOWDOWN */
	const struct scatter *scatter; /* for PLOT_SCATTER */
	bool log_y;
	bool facets;		    /* panels A and B show series "A, x" and "B, x" */
	const char *reading;	    /* the part of the setting that is our reading */
	const struct claim *claims; /* end with a NULL text */
	const char
		*trace; /* settings when the process trace is the workload; NULL: not supported */
	const char *needs; /* ids of experiments whose results its claims use */
	/*
	 * Readings end with a NULL label; `judged` has the ids judged under each, separated by
	 * spaces.
	 */
	const struct reading *readings;
	const char *judged;
	/*
	 * The series that alone starts each task on a node of its own, or NULL.  The experiment
	 * also runs with EQUAL_START, and each claim says what the series then gains.
	 */
	const char *spread_series;
};

/* The setting under which all policies start a job's tasks on nodes of their own. */
#define EQUAL_START "parallel_start=1"

/* A setting that all figures of a paper share, with its reason. */
struct paper_setting {
	const char *name, *value, *reason;
};

struct paper {
	const char *name, *title;
	const struct paper_setting *settings; /* end with a NULL name */
	const char *calibrated; /* choices that were made after seeing outcomes, or NULL */
};

const struct experiment *experiment_at(size_t i);	  /* NULL at the end */
const struct experiment *experiment_find(const char *id); /* case-insensitive */
const struct paper *paper_at(size_t i);
const struct paper *paper_find(const char *name);

/*
 * Makes the grid of runs of E (without results): the paper's configuration, then the experiment's
 * settings, then EXTRA (may be NULL).  TRACE is the path of the process trace for experiments that
 * replay it (each seed is one of its hours); NULL: the trace is generated.
 * Returns NULL with ERR set.
 */
struct sweep *experiment_sweep(const struct experiment *e, uint32_t seeds, const char *trace,
			       const struct settings *extra, struct iocom_err *err);

#endif
