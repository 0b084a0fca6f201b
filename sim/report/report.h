/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Results for people and programs.  Every form states what the numbers depend on: version, seeds,
 * settings, all parameters, hash of the input.
 */
#ifndef SIM_REPORT_REPORT_H
#define SIM_REPORT_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "sim/experiments/experiment.h"
#include "sim/report/output.h"

/* A claim with its judgement. */
struct judged {
	const struct claim *claim;
	struct judgement judgement;
};

/* One figure: a sweep, how to show it, and its claims. */
struct report {
	struct sweep *sweep;		     /* borrowed */
	const struct experiment *experiment; /* NULL: the sweep comes from the command line */
	enum plot plot;
	enum measure y;
	bool log_y, facets;
	struct judged *judged; /* owned; NULL: none */
	size_t njudged;
};

/* Judges the claims of the report's experiment over all results in CONTEXT.  Returns 0, -ENOMEM. */
int report_judge(struct report *r, const struct claim_context *context);
void report_free(struct report *r);
/* "holds", "exceeded", "contradicted", "undecided", "not tested". */
const char *verdict_name(enum verdict v);
/* Whether the reason that a claim gives for not holding belongs to this verdict. */
bool verdict_needs_reason(enum verdict v);
/* Writes what would decide J ("about 14 more seeds would decide"), or "" if it is decided. */
void verdict_more(const struct judgement *j, char *out, size_t size);

/* Called for each fact with its NAME and VALUE; VALUE is valid during the call. */
typedef void report_fact_fn(void *arg, const char *name, const char *value);
/* 0, -ENOMEM. */
int report_facts(const struct sweep *s, report_fact_fn *fact, void *arg);

/* Each writes to F; output_close reports write errors. */
int report_csv(const struct report *r, FILE *f); /* 0, -ENOMEM */
json_t *report_json(const struct report *r);	 /* NULL: no memory */
int report_json_write(const struct report *r, FILE *f);
/* Writes a table for people: a row per point, a column per series; then the claims. */
int report_text(const struct report *r, FILE *f); /* 0, -ENOMEM */
/* The unit of time of that table, in seconds, and its *NAME: "s", "min" ...; of its figure, too. */
double report_time_unit(const struct sweep *s, const char **name);
/* Writes the time series of the first seed, if they were kept. */
int report_samples_csv(const struct report *r, FILE *f);

/* Writes the executions of a probe for all seeds, if they were kept. */
int report_rows_csv(const struct report *r, FILE *f);

/*
 * Draws the figure with gnuplot to PATH (SVG).  Returns 0; 1 with ERR set: gnuplot is not
 * installed; negative errno with ERR set.
 */
int report_svg(const struct report *r, const char *path, struct iocom_err *err);

/*
 * Writes ID.csv, ID.json, ID.svg (and ID.samples.csv, ID.executions.csv) to O.  Returns 0; 1 with
 * ERR set: there is no SVG because gnuplot is missing; negative errno with ERR set.
 */
int report_write(const struct report *r, struct output *o, struct iocom_err *err);

#endif
