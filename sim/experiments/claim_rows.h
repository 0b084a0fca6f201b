/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The rows of results that claims name, and their ratios seed by seed. */
#ifndef SIM_EXPERIMENTS_CLAIM_ROWS_H
#define SIM_EXPERIMENTS_CLAIM_ROWS_H

#include "sim/experiments/experiment.h"

#define CLAIM_ROWS_MAX 16

/* One series along the points. */
struct claim_row {
	const struct sweep *sweep;
	size_t series;
};

struct claim_span {
	size_t from, to; /* points, both ends included */
};

/* How the ratios of several points become one. */
enum pooling {
	POOL_GEOMETRIC,	   /* exp of the mean ln ratio */
	POOL_MEAN,	   /* per seed the mean ratio, as papers average percentages */
	POOL_MEAN_INVERSE, /* the mean of new / base, reported as base / new: for reductions */
};

/* Parses "a|b|ID/c" or "*" into ROWS (CLAIM_ROWS_MAX of them); 0: a name is unknown. */
int claim_rows(const struct claim_context *context, const char *names, struct claim_row *rows);
/* AT is NULL (all points), "LABEL" or "LABEL..LABEL". */
bool claim_range(const struct sweep *s, const char *at, struct claim_span *range);
const char *claim_label(struct claim_row r);

#define CLAIM_NO_INTERVAL "fewer than two values were measured of "

/*
 * Returns whether there are at least two values: a single one has no interval and decides nothing.
 */
bool claim_told(struct claim_row r, size_t point, enum measure m);

/* Factor base / new over the seeds; n is 0 if the two do not match. */
struct interval claim_factor_at(struct claim_row base, size_t base_point, struct claim_row new,
				size_t new_point, enum measure m);
struct interval claim_factor_over(struct claim_row base, struct claim_row new,
				  struct claim_span range, enum measure m, enum pooling how);

/* Does the same over several bases; all pairs and points have the same weight. */
struct interval claim_factor_over_all(const struct claim_row *bases, int nbases,
				      struct claim_row new, struct claim_span range, enum measure m,
				      enum pooling how);

/* The rows and points that a claim names. */
struct claim_asked {
	struct claim_row a[CLAIM_ROWS_MAX], b[CLAIM_ROWS_MAX];
	int na, nb;
	struct claim_span range;
};

/* Finds the rows.  Returns false if a name is unknown; OUT says so. */
bool claim_ask(const struct claim_context *context, const struct claim *c, struct claim_asked *q,
	       struct judgement *out);
/*
 * Also requires that every row has an interval at every point, as a CLAIM_CODE function may use
 * any of them.
 */
bool claim_ask_values(const struct claim_context *context, const struct claim *c,
		      struct claim_asked *q, struct judgement *out);
void claim_not_tested(struct judgement *out, const char *why, const char *what);

#endif
