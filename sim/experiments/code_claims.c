/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Claims that need a judgement of their own; see code_claims.h. */
#include "sim/experiments/code_claims.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/experiments/claim_rows.h"

static double mean_at(struct claim_row r, size_t point, enum measure m)
{
	return sweep_mean(r.sweep, point, r.series, m).mean;
}

void claim_linear(const struct claim_context *context, const struct claim *c, struct judgement *out)
{
	struct claim_asked q;
	double least = 2;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.na; i++) {
		double x[q.range.to + 1], y[q.range.to + 1], r;
		size_t n = 0;

		for (size_t p = q.range.from; p <= q.range.to; p++, n++) {
			x[n] = q.a[i].sweep->points[p].x;
			y[n] = mean_at(q.a[i], p, c->measure);
		}
		r = gsl_stats_correlation(x, 1, y, 1, n);
		if (r >= least)
			continue;
		least = r;
		snprintf(out->measured, sizeof(out->measured), "%s: correlation %.3f",
			 claim_label(q.a[i]), r);
	}
	claim_verdict(out, least >= c->printed);
}

static double slope(struct claim_row r, size_t from, size_t to, enum measure m)
{
	const struct sweep_point *p = r.sweep->points;

	return (mean_at(r, to, m) - mean_at(r, from, m)) / (p[to].x - p[from].x);
}

void claim_slower_after(const struct claim_context *context, const struct claim *c,
			struct judgement *out)
{
	struct claim_asked q;
	double worst = -INFINITY;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.na; i++) {
		double before = slope(q.a[i], 0, q.range.from, c->measure);
		double after = slope(q.a[i], q.range.from, q.a[i].sweep->npoints - 1, c->measure);

		if (after / before <= worst)
			continue;
		worst = after / before;
		snprintf(out->measured, sizeof(out->measured),
			 "%s: %.3g per 100 before, %.3g after: %.2f times", claim_label(q.a[i]),
			 100 * before, 100 * after, after / before);
	}
	claim_verdict(out, worst < c->printed);
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
		claim_verdict(out, stats_above(i, 1));
		snprintf(out->measured, sizeof(out->measured),
			 "(%s / %s) / (%s / %s) = %.3g [%.3g, %.3g]", c->b, feedback, c->a, c->b,
			 i.mean, i.low, i.high);
	}
}

void claim_less_than(const struct claim_context *context, const struct claim *c,
		     struct judgement *out)
{
	struct claim_asked q;
	double worst = -INFINITY;
	bool holds = true;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.na; i++) {
		for (size_t p = q.range.from; p <= q.range.to; p++) {
			struct interval x = sweep_mean(q.a[i].sweep, p, q.a[i].series, c->measure);

			holds &= stats_below(x, c->printed) || x.mean < c->printed;
			if (x.mean <= worst)
				continue;
			worst = x.mean;
			snprintf(out->measured, sizeof(out->measured),
				 "at most %.3g [%.3g, %.3g], at %.60s", x.mean, x.low, x.high,
				 q.a[i].sweep->points[p].label);
		}
	}
	claim_verdict(out, holds);
}

void claim_hardly_grows(const struct claim_context *context, const struct claim *c,
			struct judgement *out)
{
	struct claim_asked q;
	double worst = -INFINITY;
	bool holds = true;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.na; i++) {
		struct interval f =
			claim_factor_at(q.a[i], q.range.to, q.a[i], q.range.from, c->measure);

		holds &= f.mean < c->printed;
		if (f.mean <= worst)
			continue;
		worst = f.mean;
		snprintf(out->measured, sizeof(out->measured),
			 "%s: last / first = %.3g [%.3g, %.3g]", claim_label(q.a[i]), f.mean, f.low,
			 f.high);
	}
	claim_verdict(out, holds);
}

/* NLB / row, over all points of the row's sweep. */
static struct interval over_nlb(struct claim_row r, enum measure m)
{
	struct claim_row nlb = r;
	int found = sweep_find_series(r.sweep, "nlb");

	if (found < 0)
		return (struct interval){NAN, NAN, NAN, 0};
	nlb.series = (size_t)found;
	return claim_factor_over(nlb, r, (struct claim_span){0, r.sweep->npoints - 1}, m,
				 POOL_GEOMETRIC);
}

void claim_more_over_nlb(const struct claim_context *context, const struct claim *c,
			 struct judgement *out)
{
	struct claim_asked q;
	struct interval here;
	bool holds = true;
	size_t at;

	if (!claim_ask_values(context, c, &q, out))
		return;
	here = over_nlb(q.a[0], c->measure);
	if (here.n < 2) {
		claim_not_tested(out, CLAIM_NO_INTERVAL, "nlb");
		return;
	}
	at = (size_t)snprintf(out->measured, sizeof(out->measured), "nlb / %s = %.3g [%.3g, %.3g]",
			      c->a, here.mean, here.low, here.high);
	for (int i = 0; i < q.nb && at < sizeof(out->measured); i++) {
		struct interval there = over_nlb(q.b[i], c->measure);

		holds &= there.n > 1 && here.low > there.mean;
		at += (size_t)snprintf(out->measured + at, sizeof(out->measured) - at,
				       "; in %s %.3g [%.3g, %.3g]", q.b[i].sweep->id, there.mean,
				       there.low, there.high);
	}
	claim_verdict(out, holds);
}

/* Finds the row and point with the least value of q->b. */
static void best_of(const struct claim_asked *q, enum measure m, struct claim_row *row,
		    size_t *point)
{
	double least = INFINITY;

	for (int i = 0; i < q->nb; i++) {
		for (size_t p = 0; p < q->b[i].sweep->npoints; p++) {
			double mean = mean_at(q->b[i], p, m);

			if (mean >= least)
				continue;
			least = mean;
			*row = q->b[i];
			*point = p;
		}
	}
}

void claim_near_best(const struct claim_context *context, const struct claim *c,
		     struct judgement *out)
{
	struct claim_row best = {0};
	struct interval f;
	size_t point = 0;
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	best = q.b[0];
	best_of(&q, c->measure, &best, &point);
	f = claim_factor_at(q.a[0], q.range.from, best, point, c->measure);
	claim_verdict(out, f.low <= c->printed);
	snprintf(out->measured, sizeof(out->measured),
		 "%s is %.3g [%.3g, %.3g] times the best (%.40s at %.20s)", claim_label(q.a[0]),
		 f.mean, f.low, f.high, claim_label(best), best.sweep->points[point].label);
}

void claim_best_gain(const struct claim_context *context, const struct claim *c,
		     struct judgement *out)
{
	struct claim_row best = {0};
	struct interval f;
	size_t point = 0;
	struct claim_asked q;

	if (!claim_ask_values(context, c, &q, out))
		return;
	best = q.b[0];
	best_of(&q, c->measure, &best, &point);
	f = claim_factor_at(q.a[0], q.range.from, best, point, c->measure);
	claim_verdict(out, f.high - 1 >= c->printed);
	snprintf(out->measured, sizeof(out->measured),
		 "the best (%.40s at %.20s) gains %.1f %% [%.1f, %.1f]", claim_label(best),
		 best.sweep->points[point].label, 100 * (f.mean - 1), 100 * (f.low - 1),
		 100 * (f.high - 1));
}

void claim_agree(const struct claim_context *context, const struct claim *c, struct judgement *out)
{
	struct claim_asked q;
	double low = INFINITY, high = -INFINITY;

	if (!claim_ask_values(context, c, &q, out))
		return;
	for (int i = 0; i < q.na; i++) {
		double mean = mean_at(q.a[i], q.range.from, c->measure);

		low = fmin(low, mean);
		high = fmax(high, mean);
	}
	/* A weight is in 0..1, so its width is absolute. */
	claim_verdict(out, high - low <= c->printed * (c->measure == M_W_IO ? 1 : high));
	snprintf(out->measured, sizeof(out->measured), "means from %.3g to %.3g", low, high);
}
