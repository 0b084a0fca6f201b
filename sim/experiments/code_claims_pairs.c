/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Claims that compare several pairs, points or experiments; see code_claims.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/experiments/code_claims.h"
#include "sim/experiments/claim_rows.h"

#define BAND 0.25

void claim_least_reduction(const struct claim_context *context, const struct claim *c,
			   struct judgement *out)
{
	struct interval least = {INFINITY, 0, 0, 0};
	const char *where = "", *over = "";
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.nb; i++) {
		for (size_t p = q.range.from; p <= q.range.to; p++) {
			struct interval f = stats_by(
				RATIO_REDUCTION, claim_factor_at(q.b[i], p, q.a[0], p, c->measure));

			if (!(f.mean < least.mean))
				continue;
			least = f;
			where = q.a[0].sweep->points[p].label;
			over = claim_label(q.b[i]);
		}
	}
	claim_verdict(out, stats_meets(least, c->printed * (1 - BAND), c->printed * (1 + BAND)));
	snprintf(out->measured, sizeof(out->measured),
		 "least reduction %.1f %% [%.1f, %.1f] over %s, at %s", 100 * least.mean,
		 100 * least.low, 100 * least.high, over, where);
}

/* Compares b / a of a pair over the points; OUT reports it if it is the worst so far. */
static void pair_told(struct judgement *out, struct claim_row a, struct claim_row b,
		      struct interval f)
{
	snprintf(out->measured, sizeof(out->measured), "%s, %s over %s, %s: %.3g [%.3g, %.3g]",
		 a.sweep->id, claim_label(a), b.sweep->id, claim_label(b), f.mean, f.low, f.high);
}

void claim_each_above(const struct claim_context *context, const struct claim *c,
		      struct judgement *out)
{
	double worst = INFINITY;
	bool holds = true;
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.na && i < q.nb; i++) {
		struct interval f =
			claim_factor_over(q.a[i], q.b[i], q.range, c->measure, POOL_GEOMETRIC);

		holds &= stats_above(f, 1);
		if (f.mean >= worst)
			continue;
		worst = f.mean;
		pair_told(out, q.a[i], q.b[i], f);
	}
	claim_verdict(out, holds && q.na == q.nb);
}

void claim_not_above(const struct claim_context *context, const struct claim *c,
		     struct judgement *out)
{
	double worst = -INFINITY;
	bool holds = true;
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.na; i++) {
		for (int k = 0; k < q.nb; k++) {
			struct interval f = claim_factor_over(q.a[i], q.b[k], q.range, c->measure,
							      POOL_GEOMETRIC);

			holds &= !stats_above(f, 1);
			if (f.mean <= worst)
				continue;
			worst = f.mean;
			pair_told(out, q.a[i], q.b[k], f);
		}
	}
	claim_verdict(out, holds);
}

void claim_point_largest(const struct claim_context *context, const struct claim *c,
			 struct judgement *out)
{
	double least = INFINITY;
	bool holds = true;
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.na; i++) {
		for (size_t p = 0; p < q.a[i].sweep->npoints; p++) {
			struct interval f;

			if (p == q.range.from)
				continue;
			f = claim_factor_at(q.a[i], q.range.from, q.a[i], p, c->measure);
			holds &= f.low >= c->printed;
			if (f.mean >= least)
				continue;
			least = f.mean;
			snprintf(out->measured, sizeof(out->measured),
				 "%s: %.3g [%.3g, %.3g] times %s", claim_label(q.a[i]), f.mean,
				 f.low, f.high, q.a[i].sweep->points[p].label);
		}
	}
	claim_verdict(out, holds);
}

void claim_slightly_worse(const struct claim_context *context, const struct claim *c,
			  struct judgement *out)
{
	bool holds = true;
	size_t at = 0;
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.nb && at < sizeof(out->measured); i++) {
		struct interval f =
			claim_factor_at(q.a[0], q.range.from, q.b[i], q.range.from, c->measure);

		holds &= f.high > 1 && f.low <= c->printed;
		at += (size_t)snprintf(out->measured + at, sizeof(out->measured) - at,
				       "%s%s / %s = %.3g [%.3g, %.3g]", i ? "; " : "",
				       claim_label(q.a[0]), claim_label(q.b[i]), f.mean, f.low,
				       f.high);
	}
	claim_verdict(out, holds);
}

static void extreme_gain(const struct claim_context *context, const struct claim *c, double sign,
			 struct judgement *out)
{
	struct interval found = {NAN, NAN, NAN, 0};
	const char *where = "";
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.na && i < q.nb; i++) {
		struct interval f =
			claim_factor_at(q.b[i], q.range.from, q.a[i], q.range.from, c->measure);

		if (found.n && sign * f.mean <= sign * found.mean)
			continue;
		found = f;
		where = claim_label(q.a[i]);
	}
	found = stats_by(RATIO_GAIN, found);
	claim_verdict(out, stats_meets(found, c->printed * (1 - BAND), c->printed * (1 + BAND)));
	snprintf(out->measured, sizeof(out->measured), "gain %.1f %% [%.1f, %.1f], %s",
		 100 * found.mean, 100 * found.low, 100 * found.high, where);
}

void claim_least_pair_gain(const struct claim_context *context, const struct claim *c,
			   struct judgement *out)
{
	extreme_gain(context, c, -1, out);
}

void claim_most_pair_gain(const struct claim_context *context, const struct claim *c,
			  struct judgement *out)
{
	extreme_gain(context, c, 1, out);
}

/* ln of the mean factor b / a over all b and the points of RANGE, one value per seed. */
static void mean_factor(const struct claim_row *b, int nb, struct claim_row a,
			struct claim_span range, enum measure m, double *out)
{
	uint32_t n = a.sweep->seeds;
	double x[n], y[n];

	memset(out, 0, n * sizeof(*out));
	for (int i = 0; i < nb; i++) {
		for (size_t p = range.from; p <= range.to; p++) {
			sweep_cell(b[i].sweep, p, b[i].series, m, x);
			sweep_cell(a.sweep, p, a.series, m, y);
			for (uint32_t k = 0; k < n; k++)
				out[k] +=
					log(x[k] / y[k]) / (double)(range.to - range.from + 1) / nb;
		}
	}
}

void claim_more_than_a(const struct claim_context *context, const struct claim *c,
		       struct judgement *out)
{
	char id[64];
	const struct sweep *first;
	struct claim_asked q;
	uint32_t n;

	if (!claim_ask_values(context, c, &q, out))
		return;
	snprintf(id, sizeof(id), "%s", q.a[0].sweep->id);
	id[strlen(id) - 1] = 'a';
	first = claim_sweep(context, id);
	n = q.a[0].sweep->seeds;
	if (!first || first->seeds != n) {
		claim_not_tested(out, "not among the results: ", id);
		return;
	}
	{
		double here[n], there[n], ratio[n];
		struct claim_row a = {first, q.a[0].series}, b[CLAIM_ROWS_MAX];
		struct interval f;

		for (int i = 0; i < q.nb; i++)
			b[i] = (struct claim_row){first, q.b[i].series};
		mean_factor(q.b, q.nb, q.a[0], q.range, c->measure, here);
		mean_factor(b, q.nb, a, q.range, c->measure, there);
		for (uint32_t k = 0; k < n; k++)
			ratio[k] = exp(here[k] - there[k]);
		f = stats_geometric(ratio, n);
		if (f.n < 2) {
			claim_not_tested(out, CLAIM_NO_INTERVAL, id);
			return;
		}
		claim_verdict(out, stats_above(f, 1));
		snprintf(out->measured, sizeof(out->measured),
			 "mean factor here / in %s = %.3g [%.3g, %.3g]", id, f.mean, f.low, f.high);
	}
}

void claim_advantage_falls(const struct claim_context *context, const struct claim *c,
			   struct judgement *out)
{
	double worst = -INFINITY;
	bool holds = true;
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.nb; i++) {
		uint32_t n = q.b[i].sweep->seeds;
		double first[n], last[n], ratio[n];
		struct claim_span at_first = {q.range.from, q.range.from};
		struct claim_span at_last = {q.range.to, q.range.to};
		struct interval f;

		mean_factor(&q.b[i], 1, q.a[0], at_first, c->measure, first);
		mean_factor(&q.b[i], 1, q.a[0], at_last, c->measure, last);
		for (uint32_t k = 0; k < n; k++)
			ratio[k] = exp(last[k] - first[k]);
		f = stats_geometric(ratio, n);
		holds &= stats_below(f, 1);
		if (f.mean <= worst)
			continue;
		worst = f.mean;
		snprintf(out->measured, sizeof(out->measured),
			 "advantage over %s, last / first = %.3g [%.3g, %.3g]", claim_label(q.b[i]),
			 f.mean, f.low, f.high);
	}
	claim_verdict(out, holds);
}

void claim_flat(const struct claim_context *context, const struct claim *c, struct judgement *out)
{
	double low = INFINITY, high = -INFINITY;
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (size_t p = q.range.from; p <= q.range.to; p++) {
		double mean = sweep_mean(q.a[0].sweep, p, q.a[0].series, c->measure).mean;

		low = fmin(low, mean);
		high = fmax(high, mean);
	}
	claim_verdict(out, high / low <= c->printed);
	snprintf(out->measured, sizeof(out->measured), "from %.3g to %.3g: %.3g times", low, high,
		 high / low);
}
