/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The rows of results that claims name, and their ratios; see claim_rows.h. */
#include "sim/experiments/claim_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void claim_not_tested(struct judgement *out, const char *why, const char *what)
{
	out->verdict = VERDICT_NOT_TESTED;
	snprintf(out->measured, sizeof(out->measured), "%s%s", why, what ? what : "");
}

const struct sweep *claim_sweep(const struct claim_context *context, const char *id)
{
	for (size_t i = 0; i < context->nall; i++)
		if (!strcasecmp(context->all[i]->id, id))
			return context->all[i];
	return NULL;
}

/* --- names ----------------------------------------------------------------------- */

static int find_rows(const struct claim_context *context, const char *name, struct claim_row *rows)
{
	const struct sweep *sweep = context->sweep;
	/* A label itself may contain a slash: "I/O". */
	const char *slash = sweep_find_series(sweep, name) < 0 ? strchr(name, '/') : NULL;
	char id[64];
	int found;

	if (slash) {
		snprintf(id, sizeof(id), "%.*s", (int)(slash - name), name);
		sweep = claim_sweep(context, id);
		name = slash + 1;
	}
	if (!sweep)
		return 0;
	if (!strcmp(name, "*")) {
		for (size_t i = 0; i < sweep->nseries && i < CLAIM_ROWS_MAX; i++)
			rows[i] = (struct claim_row){sweep, i};
		return (int)(sweep->nseries < CLAIM_ROWS_MAX ? sweep->nseries : CLAIM_ROWS_MAX);
	}
	found = sweep_find_series(sweep, name);
	if (found < 0)
		return 0;
	rows[0] = (struct claim_row){sweep, (size_t)found};
	return 1;
}

/* Parses "a|b|ID/c" or "*" into ROWS; 0: a name is unknown. */
int claim_rows(const struct claim_context *context, const char *names, struct claim_row *rows)
{
	char copy[256], *save = NULL;
	int n = 0;

	snprintf(copy, sizeof(copy), "%s", names ? names : "");
	for (char *name = strtok_r(copy, "|", &save); name; name = strtok_r(NULL, "|", &save)) {
		struct claim_row found[CLAIM_ROWS_MAX];
		int k = find_rows(context, name, found);

		if (!k || n + k > CLAIM_ROWS_MAX)
			return 0;
		memcpy(rows + n, found, (size_t)k * sizeof(*found));
		n += k;
	}
	return n;
}

bool claim_range(const struct sweep *s, const char *at, struct claim_span *range)
{
	char from[64];
	const char *dots = at ? strstr(at, "..") : NULL;
	int a, b;

	*range = (struct claim_span){0, s->npoints - 1};
	if (!s->npoints)
		return false;
	if (!at)
		return true;
	snprintf(from, sizeof(from), "%.*s", dots ? (int)(dots - at) : 63, at);
	a = sweep_find_point(s, from);
	b = dots ? sweep_find_point(s, dots + 2) : a;
	if (a < 0 || b < a)
		return false;
	*range = (struct claim_span){(size_t)a, (size_t)b};
	return true;
}

/* --- numbers --------------------------------------------------------------------- */

bool claim_told(struct claim_row r, size_t point, enum measure m)
{
	return sweep_told(r.sweep, point, r.series, m) > 1;
}

struct interval claim_factor_at(struct claim_row base, size_t base_point, struct claim_row new,
				size_t new_point, enum measure m)
{
	uint32_t n = base.sweep->seeds;
	double x[n], y[n];

	if (new.sweep->seeds != n || base_point >= base.sweep->npoints ||
	    new_point >= new.sweep->npoints)
		return STATS_UNKNOWN;
	sweep_cell(base.sweep, base_point, base.series, m, x);
	sweep_cell(new.sweep, new_point, new.series, m, y);
	return stats_factor(x, y, n);
}

static double pooled_term(double factor, enum pooling how)
{
	return how == POOL_GEOMETRIC ? log(factor) : how == POOL_MEAN ? factor : 1 / factor;
}

static double pooled_back(double mean, enum pooling how)
{
	return how == POOL_GEOMETRIC ? exp(mean) : how == POOL_MEAN ? mean : 1 / mean;
}

struct interval claim_factor_over_all(const struct claim_row *bases, int nbases,
				      struct claim_row new, struct claim_span range, enum measure m,
				      enum pooling how)
{
	uint32_t n = new.sweep->seeds;
	double x[n], y[n], pooled[n];

	memset(pooled, 0, sizeof(pooled));
	for (int i = 0; i < nbases; i++) {
		if (bases[i].sweep->seeds != n || range.to >= bases[i].sweep->npoints ||
		    range.to >= new.sweep->npoints)
			return STATS_UNKNOWN;
		for (size_t p = range.from; p <= range.to; p++) {
			sweep_cell(bases[i].sweep, p, bases[i].series, m, x);
			sweep_cell(new.sweep, p, new.series, m, y);
			for (uint32_t k = 0; k < n; k++)
				pooled[k] += pooled_term(x[k] / y[k], how);
		}
	}
	for (uint32_t k = 0; k < n; k++)
		pooled[k] = pooled_back(
			pooled[k] / (double)(range.to - range.from + 1) / (double)nbases, how);
	return stats_geometric(pooled, n);
}

struct interval claim_factor_over(struct claim_row base, struct claim_row new,
				  struct claim_span range, enum measure m, enum pooling how)
{
	return claim_factor_over_all(&base, 1, new, range, m, how);
}

const char *claim_label(struct claim_row r)
{
	return r.sweep->series[r.series].label;
}

/* --- claims ---------------------------------------------------------------------- */

bool claim_ask(const struct claim_context *context, const struct claim *c, struct claim_asked *q,
	       struct judgement *out)
{
	q->na = claim_rows(context, c->a, q->a);
	q->nb = c->b ? claim_rows(context, c->b, q->b) : 0;
	if (!q->na || (c->b && !q->nb)) {
		claim_not_tested(out, "not among the results: ", q->na ? c->b : c->a);
		return false;
	}
	if (!claim_range(q->a[0].sweep, c->at, &q->range)) {
		claim_not_tested(out, "no such point: ", c->at);
		return false;
	}
	return true;
}

bool claim_ask_values(const struct claim_context *context, const struct claim *c,
		      struct claim_asked *q, struct judgement *out)
{
	if (!claim_ask(context, c, q, out))
		return false;
	for (int i = 0; i < q->na + q->nb; i++) {
		struct claim_row r = i < q->na ? q->a[i] : q->b[i - q->na];

		for (size_t p = 0; p < r.sweep->npoints; p++) {
			if (claim_told(r, p, c->measure))
				continue;
			claim_not_tested(out, CLAIM_NO_INTERVAL, claim_label(r));
			return false;
		}
	}
	return true;
}
