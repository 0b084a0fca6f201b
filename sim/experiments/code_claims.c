/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Claims that need a judgement of their own; see code_claims.h. */
#include "sim/experiments/code_claims.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/experiments/claim_rows.h"
#include "sim/experiments/judge.h"

/* --- statistics of the means along the points ------------------------------------- */

#define ALL_SEEDS UINT32_MAX

/* The mean over all seeds but WITHOUT. */
static double mean_without(struct claim_row r, size_t point, enum measure m, uint32_t without)
{
	double x[r.sweep->seeds];

	sweep_cell(r.sweep, point, r.series, m, x);
	if (without != ALL_SEEDS)
		x[without] = NAN;
	return stats_mean(x, r.sweep->seeds).mean;
}

typedef double means_statistic(struct claim_row r, struct claim_span range, enum measure m,
			       uint32_t without);

static struct interval over_means(struct claim_row r, struct claim_span range, enum measure m,
				  means_statistic *value)
{
	double without[r.sweep->seeds];

	for (uint32_t s = 0; s < r.sweep->seeds; s++)
		without[s] = value(r, range, m, s);
	return stats_jackknife(value(r, range, m, ALL_SEEDS), without, r.sweep->seeds);
}

static double correlation_with_x(struct claim_row r, struct claim_span range, enum measure m,
				 uint32_t without)
{
	double x[range.to + 1], y[range.to + 1];
	size_t n = 0;

	for (size_t p = range.from; p <= range.to; p++, n++) {
		x[n] = r.sweep->points[p].x;
		y[n] = mean_without(r, p, m, without);
	}
	return gsl_stats_correlation(x, 1, y, 1, n);
}

void claim_linear(const struct claim_context *context, const struct claim *c, struct judgement *out)
{
	struct claim_asked q;
	struct judge_term shown;
	struct judge j;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_begin(&j, context);
	for (int i = 0; i < q.na; i++)
		judge_add(&j, over_means(q.a[i], q.range, c->measure, correlation_with_x),
			  c->printed, INFINITY)
			->a = i;
	if (!judge_end(&j, out, &shown))
		return;
	out->unit = "correlation";
	snprintf(out->measured, sizeof(out->measured), "%s: correlation %.3f [%.3f, %.3f]",
		 claim_label(q.a[shown.a]), shown.i.mean, shown.i.low, shown.i.high);
}

static double slope(struct claim_row r, size_t from, size_t to, enum measure m, uint32_t without)
{
	const struct sweep_point *p = r.sweep->points;

	return (mean_without(r, to, m, without) - mean_without(r, from, m, without)) /
	       (p[to].x - p[from].x);
}

static double slope_after(struct claim_row r, struct claim_span range, enum measure m,
			  uint32_t without)
{
	return slope(r, range.from, r.sweep->npoints - 1, m, without) /
	       slope(r, 0, range.from, m, without);
}

void claim_slower_after(const struct claim_context *context, const struct claim *c,
			struct judgement *out)
{
	struct claim_asked q;
	struct judge_term shown;
	struct judge j;
	size_t last;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_begin(&j, context);
	for (int i = 0; i < q.na; i++)
		judge_add(&j, over_means(q.a[i], q.range, c->measure, slope_after), -INFINITY,
			  JUDGE_BELOW(c->printed))
			->a = i;
	if (!judge_end(&j, out, &shown))
		return;
	last = q.a[shown.a].sweep->npoints - 1;
	out->unit = "ratio of slopes";
	snprintf(out->measured, sizeof(out->measured),
		 "%s: %.3g per 100 before, %.3g after: %.2f times [%.2f, %.2f]",
		 claim_label(q.a[shown.a]),
		 100 * slope(q.a[shown.a], 0, q.range.from, c->measure, ALL_SEEDS),
		 100 * slope(q.a[shown.a], q.range.from, last, c->measure, ALL_SEEDS), shown.i.mean,
		 shown.i.low, shown.i.high);
}

/* --- single ratios ---------------------------------------------------------------- */

/* Judges whether I is above 1. */
static bool above_one(const struct claim_context *context, struct interval i, struct judgement *out)
{
	struct judge_term shown;
	struct judge j;

	judge_begin(&j, context);
	judge_add(&j, i, JUDGE_ABOVE(1), INFINITY);
	return judge_end(&j, out, &shown);
}

void claim_feedback_more(const struct claim_context *context, const struct claim *c,
			 struct judgement *out)
{
	char feedback[64];
	struct claim_row fc;
	struct claim_asked q;
	uint32_t n;

	if (!claim_ask_values(context, c, &q, out))
		return;
	snprintf(feedback, sizeof(feedback), "%s-fc", c->b);
	if (!claim_rows(context, feedback, &fc)) {
		claim_not_tested(out, "not among the results: ", feedback);
		return;
	}
	n = fc.sweep->seeds;
	{
		double nlb[n], wal[n], with[n], ratio[n];
		struct interval i;

		memset(ratio, 0, sizeof(ratio));
		for (size_t p = q.range.from; p <= q.range.to; p++) {
			sweep_cell(q.a[0].sweep, p, q.a[0].series, c->measure, nlb);
			sweep_cell(q.b[0].sweep, p, q.b[0].series, c->measure, wal);
			sweep_cell(fc.sweep, p, fc.series, c->measure, with);
			for (uint32_t k = 0; k < n; k++)
				ratio[k] += log(wal[k] / with[k] / (nlb[k] / wal[k])) /
					    (double)(q.range.to - q.range.from + 1);
		}
		for (uint32_t k = 0; k < n; k++)
			ratio[k] = exp(ratio[k]);
		i = stats_geometric(ratio, n);
		if (i.n < 2) {
			claim_not_tested(out, CLAIM_NO_INTERVAL, feedback);
			return;
		}
		if (above_one(context, i, out))
			snprintf(out->measured, sizeof(out->measured),
				 "(%s / %s) / (%s / %s) = %.3g [%.3g, %.3g]", c->b, feedback, c->a,
				 c->b, i.mean, i.low, i.high);
	}
}

/* NLB / row of a seed, over all points of the row's sweep: its logarithm; false: there is no NLB.
 */
static bool over_nlb(struct claim_row r, enum measure m, double *out)
{
	uint32_t n = r.sweep->seeds;
	double nlb[n], row[n];
	int found = sweep_find_series(r.sweep, "nlb");

	if (found < 0)
		return false;
	memset(out, 0, n * sizeof(*out));
	for (size_t p = 0; p < r.sweep->npoints; p++) {
		sweep_cell(r.sweep, p, (size_t)found, m, nlb);
		sweep_cell(r.sweep, p, r.series, m, row);
		for (uint32_t k = 0; k < n; k++)
			out[k] += log(nlb[k] / row[k]) / (double)r.sweep->npoints;
	}
	return true;
}

void claim_more_over_nlb(const struct claim_context *context, const struct claim *c,
			 struct judgement *out)
{
	struct claim_asked q;
	struct judge_term shown;
	struct judge j;
	uint32_t n;

	if (!claim_ask_values(context, c, &q, out))
		return;
	n = q.a[0].sweep->seeds;
	double here[n], there[n], ratio[n];

	judge_begin(&j, context);
	for (int i = 0; i < q.nb; i++) {
		bool known = q.b[i].sweep->seeds == n && over_nlb(q.a[0], c->measure, here) &&
			     over_nlb(q.b[i], c->measure, there);

		for (uint32_t k = 0; k < n; k++)
			ratio[k] = known ? exp(here[k] - there[k]) : NAN;
		judge_add(&j, stats_geometric(ratio, n), JUDGE_ABOVE(1), INFINITY)->a = i;
	}
	if (!judge_end(&j, out, &shown))
		return;
	snprintf(out->measured, sizeof(out->measured),
		 "nlb / %s is %.3g [%.3g, %.3g] times what it is in %s", c->a, shown.i.mean,
		 shown.i.low, shown.i.high, q.b[shown.a].sweep->id);
}

/* --- all of several --------------------------------------------------------------- */

void claim_less_than(const struct claim_context *context, const struct claim *c,
		     struct judgement *out)
{
	struct claim_asked q;
	struct judge_term shown;
	struct judge j;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_begin(&j, context);
	for (int i = 0; i < q.na; i++)
		for (size_t p = q.range.from; p <= q.range.to; p++) {
			struct judge_term *t = judge_add(
				&j, sweep_mean(q.a[i].sweep, p, q.a[i].series, c->measure),
				-INFINITY, JUDGE_BELOW(c->printed));

			t->from = p;
			t->a = i;
		}
	if (!judge_end(&j, out, &shown))
		return;
	out->unit = measure_name(c->measure);
	snprintf(out->measured, sizeof(out->measured), "%.3g [%.3g, %.3g], at %.60s", shown.i.mean,
		 shown.i.low, shown.i.high, q.a[shown.a].sweep->points[shown.from].label);
}

void claim_hardly_grows(const struct claim_context *context, const struct claim *c,
			struct judgement *out)
{
	struct claim_asked q;
	struct judge_term shown;
	struct judge j;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_begin(&j, context);
	for (int i = 0; i < q.na; i++)
		judge_add(&j, claim_factor_at(q.a[i], q.range.to, q.a[i], q.range.from, c->measure),
			  0, JUDGE_BELOW(c->printed))
			->a = i;
	if (judge_end(&j, out, &shown))
		snprintf(out->measured, sizeof(out->measured),
			 "%s: last / first = %.3g [%.3g, %.3g]", claim_label(q.a[shown.a]),
			 shown.i.mean, shown.i.low, shown.i.high);
}

void claim_near_best(const struct claim_context *context, const struct claim *c,
		     struct judgement *out)
{
	struct claim_asked q;
	struct judge_extreme e;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_extreme_begin(&e, context, true);
	for (int i = 0; i < q.nb; i++)
		for (size_t p = 0; p < q.b[i].sweep->npoints; p++)
			judge_extreme_add(
				&e, claim_factor_at(q.a[0], q.range.from, q.b[i], p, c->measure), i,
				p);
	if (!judge_extreme_end(&e, (struct claim_bounds){0, c->printed}, false, out))
		return;
	snprintf(out->measured, sizeof(out->measured),
		 "%s is %.3g [%.3g, %.3g] times the best (%.40s at %.20s)", claim_label(q.a[0]),
		 out->interval.mean, out->interval.low, out->interval.high, claim_label(q.b[e.row]),
		 q.b[e.row].sweep->points[e.point].label);
}

void claim_best_gain(const struct claim_context *context, const struct claim *c,
		     struct judgement *out)
{
	struct claim_asked q;
	struct judge_extreme e;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_extreme_begin(&e, context, true);
	for (int i = 0; i < q.nb; i++)
		for (size_t p = 0; p < q.b[i].sweep->npoints; p++)
			judge_extreme_add(
				&e, claim_factor_at(q.a[0], q.range.from, q.b[i], p, c->measure), i,
				p);
	if (!judge_extreme_end(&e, (struct claim_bounds){1 + c->printed, INFINITY}, false, out))
		return;
	judge_by(out, RATIO_GAIN);
	snprintf(out->measured, sizeof(out->measured),
		 "the best (%.40s at %.20s) gains %.1f %% [%.1f, %.1f]", claim_label(q.b[e.row]),
		 q.b[e.row].sweep->points[e.point].label, 100 * out->interval.mean,
		 100 * out->interval.low, 100 * out->interval.high);
}

/* A weight is in 0..1, so its differences are absolute. */
static void add_difference(struct judge *j, const struct claim *c, struct claim_row a,
			   struct claim_row b, size_t p)
{
	uint32_t n = a.sweep->seeds;
	double x[n], y[n];

	sweep_cell(a.sweep, p, a.series, c->measure, x);
	sweep_cell(b.sweep, p, b.series, c->measure, y);
	for (uint32_t k = 0; k < n; k++)
		x[k] -= y[k];
	judge_add(j, stats_mean(x, n), -c->printed, c->printed);
}

void claim_agree(const struct claim_context *context, const struct claim *c, struct judgement *out)
{
	struct claim_asked q;
	struct judge_term shown;
	struct judge j;
	bool weight = c->measure == M_W_IO;

	if (!claim_ask_values(context, c, &q, out))
		return;
	judge_begin(&j, context);
	for (int i = 0; i < q.na; i++)
		for (int k = i + 1; k < q.na; k++) {
			if (weight)
				add_difference(&j, c, q.a[i], q.a[k], q.range.from);
			else
				judge_add(&j,
					  claim_factor_at(q.a[i], q.range.from, q.a[k],
							  q.range.from, c->measure),
					  1 - c->printed, 1 / (1 - c->printed));
			if (j.n) {
				j.terms[j.n - 1].a = i;
				j.terms[j.n - 1].b = k;
			}
		}
	if (!judge_end(&j, out, &shown))
		return;
	if (weight)
		out->unit = measure_name(c->measure);
	snprintf(out->measured, sizeof(out->measured), "%s %s %s: %.3g [%.3g, %.3g]",
		 claim_label(q.a[shown.a]), weight ? "less" : "over", claim_label(q.a[shown.b]),
		 shown.i.mean, shown.i.low, shown.i.high);
}
