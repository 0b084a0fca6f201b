/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What remains of a gain when all policies start alike; see claim_start.h.
 *
 * With com_decision 2 the COM-aware policy begins with one process a node, while its rivals begin
 * with all at home (COM section 3; O-14, O-17).  Its gain over them has two parts: this start, and
 * what it decides later.  The first part of the sweep has the same runs with equal starts.
 */
#include "sim/experiments/claim_start.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/experiments/claim_rows.h"

/* The rows of S that are not among the N rows of A (compared by label). */
static int start_rivals(const struct sweep *s, const char *label, struct claim_row *rows)
{
	int n = 0;

	for (size_t i = 0; i < s->nseries && n < CLAIM_ROWS_MAX; i++)
		if (strcmp(s->series[i].label, label) != 0)
			rows[n++] = (struct claim_row){s, i};
	return n;
}

/* The mean gain of the policy LABEL over all others, at the points of C. */
static bool start_gain(const struct sweep *s, const char *label, const struct claim *c,
		       struct interval *gain)
{
	struct claim_row rivals[CLAIM_ROWS_MAX];
	struct claim_span span;
	int series = sweep_find_series(s, label);
	int n = start_rivals(s, label, rivals);

	/* A claim about all policies may name two points only to compare them. */
	if (series < 0 || !n || !claim_range(s, c->at, &span))
		return false;
	*gain = claim_factor_over_all(rivals, n, (struct claim_row){s, (size_t)series}, span,
				      c->measure, POOL_GEOMETRIC);
	*gain = stats_by(RATIO_GAIN, *gain);
	return gain->n > 1 && isfinite(gain->mean);
}

static bool start_concerns(const struct claim *c, const char *label)
{
	return !strcmp(c->a, "*") || strstr(c->a, label) || (c->b && strstr(c->b, label));
}

void claim_start(const struct claim_context *context, const struct experiment *e,
		 const struct claim *c, char *out, size_t size)
{
	const struct sweep *s = context->sweep;
	struct interval spread, equal;

	out[0] = '\0';
	if (!e->spread_series || !s->nparts || !c->a || !start_concerns(c, e->spread_series) ||
	    !start_gain(s, e->spread_series, c, &spread) ||
	    !start_gain(s->parts[0], e->spread_series, c, &equal))
		return;
	snprintf(out, size,
		 "only %s starts with one process a node, the others with all at home: it gains "
		 "%.1f %% [%.1f, %.1f] over them, and %.1f %% [%.1f, %.1f] if all start alike",
		 e->spread_series, 100 * spread.mean, 100 * spread.low, 100 * spread.high,
		 100 * equal.mean, 100 * equal.low, 100 * equal.high);
	if (spread.low > 0 && spread.mean > equal.mean)
		snprintf(out + strlen(out), size - strlen(out), ": %.0f %% of it is that start",
			 100 * (spread.mean - fmax(0, equal.mean)) / spread.mean);
}
