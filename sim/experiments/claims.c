/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Judges a paper's claims by the table of results, with the rules stated at enum claim_kind.
 * Policies are compared seed by seed (stats.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/experiments/claim_rows.h"

#define BAND_EQUAL   0.15
#define BAND_RATIO   0.25
#define STEP_ALLOWED 1.02 /* a step of a trend may go back by this factor */

/* --- orders ---------------------------------------------------------------------- */

struct order {
	size_t points, for_it, significant, against;
	struct interval pooled; /* base / new */
};

static struct order judge_order(struct claim_row low, struct claim_row high,
				struct claim_span range, enum measure m)
{
	struct order o = {0};

	for (size_t p = range.from; p <= range.to; p++) {
		struct interval i = claim_factor_at(high, p, low, p, m);

		o.points++;
		o.for_it += i.n > 0 && i.mean > 1;
		o.significant += stats_above(i, 1);
		o.against += stats_below(i, 1);
	}
	o.pooled = claim_factor_over(high, low, range, m, POOL_GEOMETRIC);
	return o;
}

static void judge_below(const struct claim *c, struct claim_span range, const struct claim_row *a,
			int na, const struct claim_row *b, int nb, struct judgement *out)
{
	double worst = INFINITY;

	out->verdict = VERDICT_HOLDS;
	for (int i = 0; i < na; i++) {
		for (int k = 0; k < nb; k++) {
			struct order o = judge_order(a[i], b[k], range, c->measure);
			bool holds = c->most ? 2 * o.for_it > o.points && o.pooled.mean > 1
					     : stats_above(o.pooled, 1) && !o.against;

			if (a[i].sweep == b[k].sweep && a[i].series == b[k].series)
				continue;
			if (!holds)
				out->verdict = VERDICT_FAILS;
			/* Reports the pair that is nearest to failing; failing pairs come first. */
			if (o.pooled.mean - (holds ? 0 : 1e6) >= worst)
				continue;
			worst = o.pooled.mean - (holds ? 0 : 1e6);
			snprintf(out->measured, sizeof(out->measured),
				 "%s / %s = %.3g [%.3g, %.3g]; significantly above 1 at %zu of %zu "
				 "points, below 1 at %zu",
				 claim_label(b[k]), claim_label(a[i]), o.pooled.mean, o.pooled.low,
				 o.pooled.high, o.significant, o.points, o.against);
		}
	}
}

static void judge_equal(const struct claim *c, struct claim_span range, const struct claim_row *a,
			int na, const struct claim_row *b, int nb, struct judgement *out)
{
	double band = c->band > 0 ? c->band : BAND_EQUAL, worst = -1;

	out->verdict = VERDICT_HOLDS;
	for (int i = 0; i < na; i++) {
		for (int k = 0; k < nb; k++) {
			struct interval f =
				claim_factor_over(b[k], a[i], range, c->measure, POOL_GEOMETRIC);

			if (!stats_meets(f, 1 / (1 + band), 1 + band))
				out->verdict = VERDICT_FAILS;
			if (fabs(log(f.mean)) <= worst)
				continue;
			worst = fabs(log(f.mean));
			snprintf(out->measured, sizeof(out->measured),
				 "%s / %s = %.3g [%.3g, %.3g]", claim_label(b[k]),
				 claim_label(a[i]), f.mean, f.low, f.high);
		}
	}
}

/* --- trends ---------------------------------------------------------------------- */

static void judge_trend(const struct claim *c, struct claim_span range, const struct claim_row *a,
			int na, struct judgement *out)
{
	double least = INFINITY;

	out->verdict = VERDICT_HOLDS;
	for (int i = 0; i < na; i++) {
		struct interval whole =
			claim_factor_at(a[i], range.to, a[i], range.from, c->measure);
		size_t back = 0;
		double growth;
		bool holds;

		for (size_t p = range.from; p < range.to; p++) {
			struct interval step = claim_factor_at(a[i], p + 1, a[i], p, c->measure);

			back += c->down ? stats_above(step, STEP_ALLOWED)
					: stats_below(step, 1 / STEP_ALLOWED);
		}
		holds = !back && (c->down ? stats_below(whole, 1) : stats_above(whole, 1));
		if (!holds)
			out->verdict = VERDICT_FAILS;
		growth = (c->down ? 1 / whole.mean : whole.mean) - (holds ? 0 : 1e6);
		if (growth >= least)
			continue;
		least = growth;
		snprintf(out->measured, sizeof(out->measured),
			 "%s: last / first = %.3g [%.3g, %.3g]; %zu steps the other way",
			 claim_label(a[i]), whole.mean, whole.low, whole.high, back);
	}
}

static void judge_minimum(size_t point, enum measure m, struct claim_row a, struct judgement *out)
{
	size_t best = point;
	double least = sweep_mean(a.sweep, point, a.series, m).mean;
	struct interval over;

	for (size_t p = 0; p < a.sweep->npoints; p++) {
		double mean = sweep_mean(a.sweep, p, a.series, m).mean;

		if (mean < least) {
			least = mean;
			best = p;
		}
	}
	over = claim_factor_at(a, point, a, best, m);
	out->verdict = stats_above(over, STEP_ALLOWED) ? VERDICT_FAILS : VERDICT_HOLDS;
	snprintf(out->measured, sizeof(out->measured),
		 "least at %.60s; %.60s is %.3g [%.3g, %.3g] times as much",
		 a.sweep->points[best].label, a.sweep->points[point].label, over.mean, over.low,
		 over.high);
}

static void judge_valley(const struct claim *c, size_t point, struct claim_row a,
			 struct judgement *out)
{
	struct claim falls = *c, rises = *c;
	struct judgement first = {0}, second = {0};

	falls.down = true;
	rises.down = false;
	judge_trend(&falls, (struct claim_span){0, point}, &a, 1, &first);
	judge_trend(&rises, (struct claim_span){point, a.sweep->npoints - 1}, &a, 1, &second);
	out->verdict = first.verdict == VERDICT_HOLDS && second.verdict == VERDICT_HOLDS
			       ? VERDICT_HOLDS
			       : VERDICT_FAILS;
	snprintf(out->measured, sizeof(out->measured), "to %.40s: %.90s; from there: %.90s",
		 a.sweep->points[point].label, first.measured, second.measured);
}

static void judge_flatter(const struct claim *c, struct claim_span range, const struct claim_row *a,
			  int na, const struct claim_row *b, int nb, struct judgement *out)
{
	double worst = INFINITY;

	out->verdict = VERDICT_HOLDS;
	for (int i = 0; i < na; i++) {
		for (int k = 0; k < nb; k++) {
			uint32_t n = a[i].sweep->seeds;
			double x[4][n], ratio[n];
			struct interval f;

			if (a[i].sweep == b[k].sweep && a[i].series == b[k].series)
				continue;
			sweep_cell(b[k].sweep, range.to, b[k].series, c->measure, x[0]);
			sweep_cell(b[k].sweep, range.from, b[k].series, c->measure, x[1]);
			sweep_cell(a[i].sweep, range.to, a[i].series, c->measure, x[2]);
			sweep_cell(a[i].sweep, range.from, a[i].series, c->measure, x[3]);
			for (uint32_t s = 0; s < n; s++)
				ratio[s] = x[0][s] / x[1][s] / (x[2][s] / x[3][s]);
			f = stats_geometric(ratio, n);
			if (!stats_above(f, 1))
				out->verdict = VERDICT_FAILS;
			if (f.mean >= worst)
				continue;
			worst = f.mean;
			snprintf(out->measured, sizeof(out->measured),
				 "growth of %s / growth of %s = %.3g [%.3g, %.3g]",
				 claim_label(b[k]), claim_label(a[i]), f.mean, f.low, f.high);
		}
	}
}

/* --- numbers that a paper prints ------------------------------------------------- */

static bool meets(const struct claim *c, struct interval i)
{
	double band = c->band > 0 ? c->band : BAND_RATIO, width = fabs(c->printed) * band;

	return stats_meets(i, c->printed - width, c->at_least ? INFINITY : c->printed + width);
}

static void tell_factor(const struct claim *c, struct interval factor, const char *where,
			struct judgement *out)
{
	struct interval by = stats_by(c->by, factor);
	enum ratio other = c->by == RATIO_REDUCTION ? RATIO_GAIN : RATIO_REDUCTION;
	bool holds = meets(c, by) || (c->either && meets(c, stats_by(other, factor)));

	if (factor.n < 2) {
		claim_not_tested(out, "fewer than two values were measured", NULL);
		return;
	}
	out->verdict = holds ? VERDICT_HOLDS : VERDICT_FAILS;
	if (c->by == RATIO_FACTOR)
		snprintf(out->measured, sizeof(out->measured), "factor %.3g [%.3g, %.3g]%s",
			 by.mean, by.low, by.high, where);
	else
		snprintf(out->measured, sizeof(out->measured),
			 "%s %.1f %% [%.1f, %.1f] (%s %.1f %%)%s", ratio_name(c->by), 100 * by.mean,
			 100 * by.low, 100 * by.high, ratio_name(other),
			 100 * ratio_from_factor(other, factor.mean), where);
}

static void judge_ratio(const struct claim *c, struct claim_span range, struct claim_row a,
			const struct claim_row *b, int nb, struct judgement *out)
{
	enum pooling how = c->by == RATIO_REDUCTION ? POOL_MEAN_INVERSE : POOL_MEAN;
	struct interval best = {NAN, NAN, NAN, 0};
	char where[96] = "";

	if (c->over == OVER_MEAN)
		best = claim_factor_over_all(b, nb, a, range, c->measure, how);
	for (int k = 0; k < nb && c->over == OVER_MAX; k++) {
		for (size_t p = range.from; p <= range.to; p++) {
			struct interval f = claim_factor_at(b[k], p, a, p, c->measure);

			if (f.n < 2 || (best.n && f.mean <= best.mean))
				continue;
			best = f;
			snprintf(where, sizeof(where), ", at %.40s over %.40s",
				 a.sweep->points[p].label, claim_label(b[k]));
		}
	}
	tell_factor(c, best, where, out);
}

static void judge_growth(const struct claim *c, struct claim_span range, struct claim_row a,
			 struct judgement *out)
{
	tell_factor(c, claim_factor_at(a, range.to, a, range.from, c->measure), "", out);
}

static void judge_value(const struct claim *c, struct claim_span range, struct claim_row a,
			struct judgement *out)
{
	uint32_t n = a.sweep->seeds;
	double sum[n], x[n];
	struct interval i;

	memset(sum, 0, sizeof(sum));
	for (size_t p = range.from; p <= range.to; p++) {
		sweep_cell(a.sweep, p, a.series, c->measure, x);
		for (uint32_t k = 0; k < n; k++)
			sum[k] += x[k] / (double)(range.to - range.from + 1);
	}
	i = stats_mean(sum, n);
	out->verdict = meets(c, i) ? VERDICT_HOLDS : VERDICT_FAILS;
	snprintf(out->measured, sizeof(out->measured), "%.3g [%.3g, %.3g]", i.mean, i.low, i.high);
}

/* --- all ------------------------------------------------------------------------- */

/* Returns false if R cannot be compared with the first row; OUT says why. */
static bool row_told(const struct claim *c, const struct claim_asked *q, struct claim_row r,
		     struct judgement *out)
{
	if (r.sweep->seeds != q->a[0].sweep->seeds || q->range.to >= r.sweep->npoints) {
		claim_not_tested(out, "it has other seeds or points: ", claim_label(r));
		return false;
	}
	for (size_t p = q->range.from; p <= q->range.to; p++) {
		if (claim_told(r, p, c->measure))
			continue;
		claim_not_tested(out, CLAIM_NO_INTERVAL, claim_label(r));
		return false;
	}
	return true;
}

/* Ratios check their own values: "up to" needs one point only. */
static bool all_told(const struct claim *c, const struct claim_asked *q, struct judgement *out)
{
	if (c->kind == CLAIM_RATIO || c->kind == CLAIM_GROWTH)
		return true;
	for (int i = 0; i < q->na; i++)
		if (!row_told(c, q, q->a[i], out))
			return false;
	for (int i = 0; i < q->nb; i++)
		if (!row_told(c, q, q->b[i], out))
			return false;
	return true;
}

static void judge_by_kind(const struct claim *c, const struct claim_asked *q, struct judgement *out)
{
	const struct claim_row *a = q->a, *b = q->b;
	struct claim_span range = q->range;
	int na = q->na, nb = q->nb;

	switch (c->kind) {
	case CLAIM_BELOW:
		judge_below(c, range, a, na, b, nb, out);
		break;
	case CLAIM_EQUAL:
		judge_equal(c, range, a, na, b, nb, out);
		break;
	case CLAIM_TREND:
		judge_trend(c, range, a, na, out);
		break;
	case CLAIM_FLATTER:
		judge_flatter(c, range, a, na, b, nb, out);
		break;
	case CLAIM_RATIO:
		judge_ratio(c, range, a[0], b, nb, out);
		break;
	case CLAIM_GROWTH:
		judge_growth(c, range, a[0], out);
		break;
	case CLAIM_VALUE:
		judge_value(c, range, a[0], out);
		break;
	case CLAIM_MINIMUM:
		judge_minimum(range.from, c->measure, a[0], out);
		break;
	case CLAIM_VALLEY:
		judge_valley(c, range.from, a[0], out);
		break;
	case CLAIM_CODE:
	case CLAIM_NOT_TESTED:
		break;
	}
}

void claim_judge(const struct claim_context *context, const struct claim *c, struct judgement *out)
{
	struct claim_asked q;

	memset(out, 0, sizeof(*out));
	if (c->kind == CLAIM_NOT_TESTED) {
		claim_not_tested(out, "", NULL);
		return;
	}
	if (c->kind == CLAIM_CODE) {
		if (context->sweep->seeds < 2)
			claim_not_tested(out, CLAIM_NO_INTERVAL, "each: --seeds 2 at least");
		else
			c->code(context, c, out);
		return;
	}
	if (!claim_ask(context, c, &q, out))
		return;
	if (all_told(c, &q, out))
		judge_by_kind(c, &q, out);
}
