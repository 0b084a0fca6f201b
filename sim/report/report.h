/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Results for people and programs.  Every form carries what the numbers rest on:
 * version, seeds, settings, all parameters, hash of the input.
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

/* One figure: a sweep, how it is shown, what was claimed. */
struct report {
	struct sweep *sweep;		     /* borrowed */
	const struct experiment *experiment; /* NULL: made on the command line */
	enum plot plot;
	enum measure y;
	bool log_y, facets;
	struct judged *judged; /* owned; NULL: none */
	size_t njudged;
};

/* Judges E's claims over all results at hand.  0, -ENOMEM. */
int report_judge(struct report *r, const struct claim_context *context);
void report_free(struct report *r);
const char *verdict_name(enum verdict v); /* "holds", "does not hold", "cannot be tested" */

/* Metadata as NAME and VALUE, one after another; VALUE is valid during the call. */
typedef void report_fact_fn(void *arg, const char *name, const char *value);
/* 0, -ENOMEM. */
int report_facts(const struct sweep *s, report_fact_fn *fact, void *arg);

/* Each to F; errors of F are found by output_close. */
int report_csv(const struct report *r, FILE *f); /* 0, -ENOMEM */
json_t *report_json(const struct report *r);	 /* NULL: no memory */
int report_json_write(const struct report *r, FILE *f);
/* Table for people: a row a point, a column a series; then the claims. */
int report_text(const struct report *r, FILE *f); /* 0, -ENOMEM */
/* The time series of the first seed; only where they were kept. */
int report_samples_csv(const struct report *r, FILE *f);

/* The executions of a probe, of all seeds; only where they were kept. */
int report_rows_csv(const struct report *r, FILE *f);

/*
 * The figure by gnuplot to PATH (SVG).  0; 1 with ERR set: gnuplot is not
 * installed; negative errno with ERR set.
 */
int report_svg(const struct report *r, const char *path, struct iocom_err *err);

/*
 * ID.csv, ID.json, ID.svg (and ID.samples.csv, ID.executions.csv) to O.  0; 1 with ERR set: all but
 * the SVG (gnuplot missing); negative errno with ERR set.
 */
int report_write(const struct report *r, struct output *o, struct iocom_err *err);

#endif
