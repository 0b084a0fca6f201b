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
#include "sim/experiments/judge.h"

#define BAND_EQUAL 0.15
#define BAND_RATIO 0.25
#define BAND_TREND 0.05 /* what a trend changes at least */
#define STEP_BACK  1.02 /* what it may go back by, from any point to any later one */

/* A claim with its rows, and what it is judged by. */
struct asking {
	const struct claim_context *context;
	const struct claim *c;
	const struct claim_asked *q;
	struct judgement *out;
};

static bool same_row(struct claim_row a, struct claim_row b)
{
	return a.sweep == b.sweep && a.series == b.series;
}

/* --- orders ---------------------------------------------------------------------- */

/* Adds the comparisons of rows A and B: the points together and, if `most`, more than half of
 * them; no point may contradict. */
static void order_terms(struct judge *j, const struct asking *k, int a, int b)
{
	struct claim_row low = k->q->a[a], high = k->q->b[b];
	struct claim_span range = k->q->range;
	enum measure m = k->c->measure;
	unsigned int points = k->c->most ? judge_group(j, (range.to - range.from + 1) / 2 + 1) : 0;
	struct judge_term *t = judge_add(j, claim_factor_over(high, low, range, m, POOL_GEOMETRIC),
					 JUDGE_ABOVE(1), INFINITY);

	t->a = a;
	t->b = b;
	t->to = range.to - range.from;
	for (size_t p = range.from; p <= range.to && range.to > range.from; p++) {
		t = judge_add(j, claim_factor_at(high, p, low, p, m),
			      k->c->most ? JUDGE_ABOVE(1) : 1, INFINITY);
		t->a = a;
		t->b = b;
		t->from = p;
		t->to = SIZE_MAX;
		t->kind = k->c->most ? JUDGE_COUNTS : JUDGE_VETO;
		t->group = points;
	}
}

static void judge_below(const struct asking *k)
{
	const struct claim_asked *q = k->q;
	size_t above = 0, below = 0, points = q->range.to - q->range.from + 1;
	struct judge_term shown;
	struct judge j;
	char where[64] = "";

	judge_begin(&j, k->context);
	for (int i = 0; i < q->na; i++)
		for (int n = 0; n < q->nb; n++)
			if (!same_row(q->a[i], q->b[n]))
				order_terms(&j, k, i, n);
	if (!judge_end(&j, k->out, &shown))
		return;
	for (size_t p = q->range.from; p <= q->range.to; p++) {
		struct interval i =
			claim_factor_at(q->b[shown.b], p, q->a[shown.a], p, k->c->measure);

		above += stats_above(i, 1);
		below += stats_below(i, 1);
	}
	if (shown.to == SIZE_MAX)
		snprintf(where, sizeof(where), " at %.40s",
			 q->a[0].sweep->points[shown.from].label);
	snprintf(k->out->measured, sizeof(k->out->measured),
		 "%s / %s = %.3g [%.3g, %.3g]%s; significantly above 1 at %zu of %zu points, "
		 "below 1 at %zu",
		 claim_label(q->b[shown.b]), claim_label(q->a[shown.a]), shown.i.mean, shown.i.low,
		 shown.i.high, where, above, points, below);
}

static void judge_equal(const struct asking *k)
{
	const struct claim_asked *q = k->q;
	double band = k->c->band > 0 ? k->c->band : BAND_EQUAL;
	struct judge_term shown;
	struct judge j;

	judge_begin(&j, k->context);
	for (int i = 0; i < q->na; i++)
		for (int n = 0; n < q->nb; n++) {
			struct judge_term *t =
				judge_add(&j,
					  claim_factor_over(q->b[n], q->a[i], q->range,
							    k->c->measure, POOL_GEOMETRIC),
					  1 / (1 + band), 1 + band);

			t->a = i;
			t->b = n;
		}
	if (judge_end(&j, k->out, &shown))
		snprintf(k->out->measured, sizeof(k->out->measured), "%s / %s = %.3g [%.3g, %.3g]",
			 claim_label(q->b[shown.b]), claim_label(q->a[shown.a]), shown.i.mean,
			 shown.i.low, shown.i.high);
}

/* --- trends ---------------------------------------------------------------------- */

/* Adds the comparisons of row A along RANGE: last / first, and every later point over every
 * earlier one. */
static void trend_terms(struct judge *j, const struct claim *c, struct claim_row row, int a,
			struct claim_span range, bool down)
{
	double least = 1 + (c->band > 0 ? c->band : BAND_TREND);
	struct judge_term *t =
		judge_add(j, claim_factor_at(row, range.to, row, range.from, c->measure),
			  down ? 0 : least, down ? 1 / least : INFINITY);

	t->a = a;
	t->from = range.from;
	t->to = range.to;
	for (size_t p = range.from; p < range.to; p++) {
		for (size_t q = p + 1; q <= range.to; q++) {
			t = judge_add(j, claim_factor_at(row, q, row, p, c->measure),
				      down ? 0 : 1 / STEP_BACK, down ? STEP_BACK : INFINITY);
			t->a = a;
			t->from = p;
			t->to = q;
			t->kind = JUDGE_LEANS;
		}
	}
}

static void tell_trend(const struct asking *k, const struct judge_term *shown)
{
	struct claim_row row = k->q->a[shown->a];
	const struct sweep_point *p = row.sweep->points;

	snprintf(k->out->measured, sizeof(k->out->measured),
		 "%s: %.40s / %.40s = %.3g [%.3g, %.3g]", claim_label(row), p[shown->to].label,
		 p[shown->from].label, shown->i.mean, shown->i.low, shown->i.high);
}

static void judge_trend(const struct asking *k)
{
	struct judge_term shown;
	struct judge j;

	judge_begin(&j, k->context);
	for (int i = 0; i < k->q->na; i++)
		trend_terms(&j, k->c, k->q->a[i], i, k->q->range, k->c->down);
	if (judge_end(&j, k->out, &shown))
		tell_trend(k, &shown);
}

static void judge_minimum(const struct asking *k)
{
	struct claim_row a = k->q->a[0];
	size_t point = k->q->range.from;
	struct judge_term shown;
	struct judge j;

	judge_begin(&j, k->context);
	for (size_t p = 0; p < a.sweep->npoints; p++) {
		if (p == point)
			continue;
		struct judge_term *t =
			judge_add(&j, claim_factor_at(a, point, a, p, k->c->measure), 0, STEP_BACK);

		t->from = p;
	}
	if (judge_end(&j, k->out, &shown))
		snprintf(k->out->measured, sizeof(k->out->measured),
			 "%.60s is %.3g [%.3g, %.3g] times as much as %.60s",
			 a.sweep->points[point].label, shown.i.mean, shown.i.low, shown.i.high,
			 a.sweep->points[shown.from].label);
}

static void judge_valley(const struct asking *k)
{
	struct claim_row a = k->q->a[0];
	size_t point = k->q->range.from;
	struct judge_term shown;
	struct judge j;

	judge_begin(&j, k->context);
	if (point > 0)
		trend_terms(&j, k->c, a, 0, (struct claim_span){0, point}, true);
	if (point + 1 < a.sweep->npoints)
		trend_terms(&j, k->c, a, 0, (struct claim_span){point, a.sweep->npoints - 1},
			    false);
	if (judge_end(&j, k->out, &shown))
		tell_trend(k, &shown);
}

/* How much more B grows than A from the first point to the last. */
static struct interval growth_over(const struct asking *k, struct claim_row a, struct claim_row b)
{
	uint32_t n = a.sweep->seeds;
	struct claim_span range = k->q->range;
	double x[4][n], ratio[n];

	sweep_cell(b.sweep, range.to, b.series, k->c->measure, x[0]);
	sweep_cell(b.sweep, range.from, b.series, k->c->measure, x[1]);
	sweep_cell(a.sweep, range.to, a.series, k->c->measure, x[2]);
	sweep_cell(a.sweep, range.from, a.series, k->c->measure, x[3]);
	for (uint32_t s = 0; s < n; s++)
		ratio[s] = x[0][s] / x[1][s] / (x[2][s] / x[3][s]);
	return stats_geometric(ratio, n);
}

static void judge_flatter(const struct asking *k)
{
	const struct claim_asked *q = k->q;
	struct judge_term shown;
	struct judge j;

	judge_begin(&j, k->context);
	for (int i = 0; i < q->na; i++) {
		for (int n = 0; n < q->nb; n++) {
			struct judge_term *t;

			if (same_row(q->a[i], q->b[n]))
				continue;
			t = judge_add(&j, growth_over(k, q->a[i], q->b[n]), JUDGE_ABOVE(1),
				      INFINITY);
			t->a = i;
			t->b = n;
		}
	}
	if (judge_end(&j, k->out, &shown))
		snprintf(k->out->measured, sizeof(k->out->measured),
			 "growth of %s / growth of %s = %.3g [%.3g, %.3g]",
			 claim_label(q->b[shown.b]), claim_label(q->a[shown.a]), shown.i.mean,
			 shown.i.low, shown.i.high);
}

/* --- numbers that a paper prints ------------------------------------------------- */

/* The bounds in which the claim puts its number. */
static struct claim_bounds printed_bounds(const struct claim *c)
{
	double width = fabs(c->printed) * (c->band > 0 ? c->band : BAND_RATIO);

	if (c->at_least)
		return (struct claim_bounds){c->printed, INFINITY};
	return (struct claim_bounds){c->printed - width, c->printed + width};
}

/* The same bounds of a factor. */
static struct claim_bounds factor_bounds(const struct claim *c, enum ratio by)
{
	struct claim_bounds b = printed_bounds(c);

	b.low = by == RATIO_GAIN && b.low <= -1 ? 0 : ratio_to_factor(by, b.low);
	b.high = by == RATIO_REDUCTION && b.high >= 1 ? INFINITY : ratio_to_factor(by, b.high);
	return b;
}

/*
 * Whether a factor above the bounds means more of what the paper reports.  A printed growth of a
 * few per cent reports that there is hardly any.
 */
static bool effect_grows(const struct claim *c)
{
	if (c->kind == CLAIM_GROWTH && c->by == RATIO_GAIN && c->printed < CLAIM_SENSITIVE)
		return false;
	return c->by == RATIO_FACTOR ? c->printed > 1 : c->printed > 0;
}

static enum ratio other_measure(const struct claim *c)
{
	return c->by == RATIO_REDUCTION ? RATIO_GAIN : RATIO_REDUCTION;
}

static void tell_factor(const struct claim *c, struct interval factor, const char *where,
			struct judgement *out)
{
	struct interval by = stats_by(c->by, factor);
	enum ratio other = other_measure(c);

	judge_by(out, c->by);
	out->interval = by;
	if (c->by == RATIO_FACTOR)
		snprintf(out->measured, sizeof(out->measured), "factor %.3g [%.3g, %.3g]%s",
			 by.mean, by.low, by.high, where);
	else
		snprintf(out->measured, sizeof(out->measured),
			 "%s %.1f %% [%.1f, %.1f] (%s %.1f %%)%s", ratio_name(c->by), 100 * by.mean,
			 100 * by.low, 100 * by.high, ratio_name(other),
			 100 * ratio_from_factor(other, factor.mean), where);
}

/* Judges by factors of which one of the measures of a percentage must match. */
static void judge_measures(const struct asking *k,
			   void (*judge)(const struct asking *k, struct claim_bounds b,
					 const void *arg),
			   const void *arg)
{
	struct claim_bounds b = factor_bounds(k->c, k->c->by), other;
	struct judgement first;

	if (k->c->either) {
		other = factor_bounds(k->c, other_measure(k->c));
		if (other.low > b.high || b.low > other.high) {
			judge(k, other, arg);
			first = *k->out;
			judge(k, b, arg);
			judge_either(k->out, &first, k->out);
			return;
		}
		b.low = fmin(b.low, other.low);
		b.high = fmax(b.high, other.high);
	}
	judge(k, b, arg);
}

static void judge_factor(const struct asking *k, struct claim_bounds b, const void *arg)
{
	struct judge_term shown;
	struct judge j;

	judge_begin(&j, k->context);
	judge_add(&j, *(const struct interval *)arg, b.low, b.high)->beyond = effect_grows(k->c);
	if (judge_end(&j, k->out, &shown))
		tell_factor(k->c, shown.i, "", k->out);
}

/* "Up to": the largest factor over all points and rows. */
static void judge_most(const struct asking *k, struct claim_bounds b, const void *arg)
{
	const struct claim_asked *q = k->q;
	struct judge_extreme e;
	char where[96];

	(void)arg;
	judge_extreme_begin(&e, k->context, true);
	for (int n = 0; n < q->nb; n++)
		for (size_t p = q->range.from; p <= q->range.to; p++) {
			struct interval f = claim_factor_at(q->b[n], p, q->a[0], p, k->c->measure);

			if (f.n > 1)
				judge_extreme_add(&e, f, n, p);
		}
	if (!judge_extreme_end(&e, b, effect_grows(k->c), k->out))
		return;
	snprintf(where, sizeof(where), ", at %.40s over %.40s",
		 q->a[0].sweep->points[e.point].label, claim_label(q->b[e.row]));
	tell_factor(k->c, k->out->interval, where, k->out);
}

static void judge_ratio(const struct asking *k)
{
	const struct claim_asked *q = k->q;
	enum pooling how = k->c->by == RATIO_REDUCTION ? POOL_MEAN_INVERSE : POOL_MEAN;

	struct interval factor;

	if (k->c->over == OVER_MAX) {
		judge_measures(k, judge_most, NULL);
		return;
	}
	factor = claim_factor_over_all(q->b, q->nb, q->a[0], q->range, k->c->measure, how);
	judge_measures(k, judge_factor, &factor);
}

static void judge_growth(const struct asking *k)
{
	struct claim_row a = k->q->a[0];
	struct interval factor =
		claim_factor_at(a, k->q->range.to, a, k->q->range.from, k->c->measure);

	judge_measures(k, judge_factor, &factor);
}

static void judge_value(const struct asking *k)
{
	struct claim_row a = k->q->a[0];
	struct claim_span range = k->q->range;
	struct claim_bounds b = printed_bounds(k->c);
	uint32_t n = a.sweep->seeds;
	double sum[n], x[n];
	struct judge_term shown;
	struct judge j;

	memset(sum, 0, sizeof(sum));
	for (size_t p = range.from; p <= range.to; p++) {
		sweep_cell(a.sweep, p, a.series, k->c->measure, x);
		for (uint32_t s = 0; s < n; s++)
			sum[s] += x[s] / (double)(range.to - range.from + 1);
	}
	judge_begin(&j, k->context);
	judge_add(&j, stats_mean(sum, n), b.low, b.high);
	if (!judge_end(&j, k->out, &shown))
		return;
	k->out->unit = measure_name(k->c->measure);
	snprintf(k->out->measured, sizeof(k->out->measured), "%.3g [%.3g, %.3g]", shown.i.mean,
		 shown.i.low, shown.i.high);
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

static void judge_by_kind(const struct asking *k)
{
	switch (k->c->kind) {
	case CLAIM_BELOW:
		judge_below(k);
		break;
	case CLAIM_EQUAL:
		judge_equal(k);
		break;
	case CLAIM_TREND:
		judge_trend(k);
		break;
	case CLAIM_FLATTER:
		judge_flatter(k);
		break;
	case CLAIM_RATIO:
		judge_ratio(k);
		break;
	case CLAIM_GROWTH:
		judge_growth(k);
		break;
	case CLAIM_VALUE:
		judge_value(k);
		break;
	case CLAIM_MINIMUM:
		judge_minimum(k);
		break;
	case CLAIM_VALLEY:
		judge_valley(k);
		break;
	case CLAIM_CODE:
	case CLAIM_NOT_TESTED:
		break;
	}
}

void claim_judge(const struct claim_context *context, const struct claim *c, struct judgement *out)
{
	struct claim_asked q;
	struct asking asking = {context, c, &q, out};

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
		judge_by_kind(&asking);
}
