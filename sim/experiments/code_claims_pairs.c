/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Claims that compare several pairs, points or experiments; see code_claims.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/experiments/code_claims.h"
#include "sim/experiments/claim_rows.h"
#include "sim/experiments/judge.h"

#define BAND	  0.25
#define TOLERANCE 1.02 /* "not above" */

void claim_least_reduction(const struct claim_context *context, const struct claim *c,
			   struct judgement *out)
{
	struct claim_bounds bounds = {ratio_to_factor(RATIO_REDUCTION, c->printed), INFINITY};
	struct judge_extreme e;
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_extreme_begin(&e, context, false);
	for (int i = 0; i < q.nb; i++)
		for (size_t p = q.range.from; p <= q.range.to; p++)
			judge_extreme_add(&e, claim_factor_at(q.b[i], p, q.a[0], p, c->measure), i,
					  p);
	if (!judge_extreme_end(&e, bounds, false, out))
		return;
	judge_by(out, RATIO_REDUCTION);
	snprintf(out->measured, sizeof(out->measured),
		 "least reduction %.1f %% [%.1f, %.1f] over %s, at %s", 100 * out->interval.mean,
		 100 * out->interval.low, 100 * out->interval.high, claim_label(q.b[e.row]),
		 q.a[0].sweep->points[e.point].label);
}

/* Reports a pair of rows. */
static void pair_told(struct judgement *out, struct claim_row a, struct claim_row b,
		      struct interval f)
{
	snprintf(out->measured, sizeof(out->measured), "%s, %s over %s, %s: %.3g [%.3g, %.3g]",
		 a.sweep->id, claim_label(a), b.sweep->id, claim_label(b), f.mean, f.low, f.high);
}

void claim_each_above(const struct claim_context *context, const struct claim *c,
		      struct judgement *out)
{
	struct judge_term shown;
	struct claim_asked q;
	struct judge j;

	if (!claim_ask_values(context, c, &q, out))
		return;
	if (q.na != q.nb) {
		claim_not_tested(out, "the lists differ in length", NULL);
		return;
	}
	judge_begin(&j, context);
	for (int i = 0; i < q.na; i++)
		judge_add(&j,
			  claim_factor_over(q.a[i], q.b[i], q.range, c->measure, POOL_GEOMETRIC),
			  JUDGE_ABOVE(1), INFINITY)
			->a = i;
	if (judge_end(&j, out, &shown))
		pair_told(out, q.a[shown.a], q.b[shown.a], shown.i);
}

void claim_not_above(const struct claim_context *context, const struct claim *c,
		     struct judgement *out)
{
	struct judge_term shown;
	struct claim_asked q;
	struct judge j;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_begin(&j, context);
	for (int i = 0; i < q.na; i++)
		for (int k = 0; k < q.nb; k++) {
			struct judge_term *t =
				judge_add(&j,
					  claim_factor_over(q.a[i], q.b[k], q.range, c->measure,
							    POOL_GEOMETRIC),
					  0, TOLERANCE);

			t->a = i;
			t->b = k;
		}
	if (judge_end(&j, out, &shown))
		pair_told(out, q.a[shown.a], q.b[shown.b], shown.i);
}

void claim_point_largest(const struct claim_context *context, const struct claim *c,
			 struct judgement *out)
{
	struct judge_term shown;
	struct claim_asked q;
	struct judge j;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_begin(&j, context);
	for (int i = 0; i < q.na; i++) {
		for (size_t p = 0; p < q.a[i].sweep->npoints; p++) {
			struct judge_term *t;

			if (p == q.range.from)
				continue;
			t = judge_add(&j,
				      claim_factor_at(q.a[i], q.range.from, q.a[i], p, c->measure),
				      c->printed, INFINITY);
			t->a = i;
			t->from = p;
		}
	}
	if (judge_end(&j, out, &shown))
		snprintf(out->measured, sizeof(out->measured), "%s: %.3g [%.3g, %.3g] times %s",
			 claim_label(q.a[shown.a]), shown.i.mean, shown.i.low, shown.i.high,
			 q.a[shown.a].sweep->points[shown.from].label);
}

void claim_slightly_worse(const struct claim_context *context, const struct claim *c,
			  struct judgement *out)
{
	struct judge_term shown;
	struct claim_asked q;
	struct judge j;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_begin(&j, context);
	for (int i = 0; i < q.nb; i++)
		judge_add(&j,
			  claim_factor_at(q.a[0], q.range.from, q.b[i], q.range.from, c->measure),
			  JUDGE_ABOVE(1), c->printed)
			->b = i;
	if (judge_end(&j, out, &shown))
		snprintf(out->measured, sizeof(out->measured), "%s / %s = %.3g [%.3g, %.3g]",
			 claim_label(q.a[0]), claim_label(q.b[shown.b]), shown.i.mean, shown.i.low,
			 shown.i.high);
}

/* Judges the largest or the least gain of `b` over `a` at the same place of their lists. */
static void extreme_gain(const struct claim_context *context, const struct claim *c, bool largest,
			 struct judgement *out)
{
	struct claim_bounds bounds = {1 + c->printed * (largest ? 1 - BAND : 1),
				      largest ? 1 + c->printed * (1 + BAND) : INFINITY};
	struct judge_extreme e;
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_extreme_begin(&e, context, largest);
	for (int i = 0; i < q.na && i < q.nb; i++)
		judge_extreme_add(
			&e, claim_factor_at(q.b[i], q.range.from, q.a[i], q.range.from, c->measure),
			i, q.range.from);
	if (!judge_extreme_end(&e, bounds, largest, out))
		return;
	judge_by(out, RATIO_GAIN);
	snprintf(out->measured, sizeof(out->measured), "gain %.1f %% [%.1f, %.1f], %s",
		 100 * out->interval.mean, 100 * out->interval.low, 100 * out->interval.high,
		 claim_label(q.a[e.row]));
}

void claim_least_pair_gain(const struct claim_context *context, const struct claim *c,
			   struct judgement *out)
{
	extreme_gain(context, c, false, out);
}

void claim_most_pair_gain(const struct claim_context *context, const struct claim *c,
			  struct judgement *out)
{
	extreme_gain(context, c, true, out);
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
		struct judge_term shown;
		struct judge j;

		for (int i = 0; i < q.nb; i++)
			b[i] = (struct claim_row){first, q.b[i].series};
		mean_factor(q.b, q.nb, q.a[0], q.range, c->measure, here);
		mean_factor(b, q.nb, a, q.range, c->measure, there);
		for (uint32_t k = 0; k < n; k++)
			ratio[k] = exp(here[k] - there[k]);
		judge_begin(&j, context);
		judge_add(&j, stats_geometric(ratio, n), JUDGE_ABOVE(1), INFINITY);
		if (judge_end(&j, out, &shown))
			snprintf(out->measured, sizeof(out->measured),
				 "mean factor here / in %s = %.3g [%.3g, %.3g]", id, shown.i.mean,
				 shown.i.low, shown.i.high);
	}
}

void claim_advantage_falls(const struct claim_context *context, const struct claim *c,
			   struct judgement *out)
{
	struct judge_term shown;
	struct claim_asked q;
	struct judge j;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_begin(&j, context);
	for (int i = 0; i < q.nb; i++) {
		uint32_t n = q.b[i].sweep->seeds;
		double first[n], last[n], ratio[n];
		struct claim_span at_first = {q.range.from, q.range.from};
		struct claim_span at_last = {q.range.to, q.range.to};

		mean_factor(&q.b[i], 1, q.a[0], at_first, c->measure, first);
		mean_factor(&q.b[i], 1, q.a[0], at_last, c->measure, last);
		for (uint32_t k = 0; k < n; k++)
			ratio[k] = exp(last[k] - first[k]);
		judge_add(&j, stats_geometric(ratio, n), 0, JUDGE_BELOW(1))->b = i;
	}
	if (judge_end(&j, out, &shown))
		snprintf(out->measured, sizeof(out->measured),
			 "advantage over %s, last / first = %.3g [%.3g, %.3g]",
			 claim_label(q.b[shown.b]), shown.i.mean, shown.i.low, shown.i.high);
}

void claim_flat(const struct claim_context *context, const struct claim *c, struct judgement *out)
{
	struct judge_term shown;
	struct claim_asked q;
	struct claim_row a;
	struct judge j;

	if (!claim_ask_values(context, c, &q, out))
		return;
	a = q.a[0];
	judge_begin(&j, context);
	for (size_t p = q.range.from; p < q.range.to; p++)
		for (size_t r = p + 1; r <= q.range.to; r++) {
			struct judge_term *t =
				judge_add(&j, claim_factor_at(a, r, a, p, c->measure),
					  1 / c->printed, c->printed);

			t->from = p;
			t->to = r;
		}
	if (judge_end(&j, out, &shown))
		snprintf(out->measured, sizeof(out->measured),
			 "%.40s over %.40s: %.3g [%.3g, %.3g]", a.sweep->points[shown.to].label,
			 a.sweep->points[shown.from].label, shown.i.mean, shown.i.low,
			 shown.i.high);
}
