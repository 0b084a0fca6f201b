/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Claims about the executions of a probe; see probe_claims.h. */
#include "sim/experiments/probe_claims.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/experiments/claim_rows.h"
#include "sim/experiments/judge.h"

#define ZERO 1.0 /* per cent of the processor: less counts as no idle time */

/* --- one seed ------------------------------------------------------------------------ */

/* The executions of one seed, ordered by x. */
struct cloud {
	uint32_t n;
	struct probe_row *rows; /* owned */
};

static int probe_claims_compare(const void *a, const void *b, void *arg)
{
	const struct probe_row *p = a, *q = b;
	const enum probe_column *x = arg;

	if (p->v[*x] != q->v[*x])
		return p->v[*x] < q->v[*x] ? -1 : 1;
	return (p->v[PROBE_HOUR] > q->v[PROBE_HOUR]) - (p->v[PROBE_HOUR] < q->v[PROBE_HOUR]);
}

static bool cloud_open(struct cloud *c, struct claim_row a, uint32_t seed, enum probe_column x)
{
	const struct sweep_result *r = sweep_result(a.sweep, 0, a.series, seed);

	if (a.sweep->asked)
		a.sweep->asked[a.series] = true;
	c->n = r->nrows;
	c->rows = c->n ? malloc(c->n * sizeof(*c->rows)) : NULL;
	for (uint32_t i = 0; c->rows && i < c->n; i++)
		c->rows[i] = r->rows[i];
	if (c->rows)
		qsort_r(c->rows, c->n, sizeof(*c->rows), probe_claims_compare, &x);
	return c->rows != NULL;
}

static uint32_t third(const struct cloud *c)
{
	return c->n / 3 ? c->n / 3 : 1;
}

/* Mean over rows FROM .. FROM + N - 1; the stride makes a column an array. */
static double mean_of(const struct cloud *c, enum probe_column y, uint32_t from, uint32_t n)
{
	return gsl_stats_mean(&c->rows[from].v[y], PROBE_COLUMNS, n);
}

static double sd_of(const struct cloud *c, enum probe_column y, uint32_t from, uint32_t n)
{
	return n > 1 ? gsl_stats_sd(&c->rows[from].v[y], PROBE_COLUMNS, n) : NAN;
}

static double probe_claims_difference(const struct cloud *c, const struct claim *q, uint32_t from,
				      uint32_t n)
{
	return mean_of(c, q->y, from, n) - mean_of(c, q->y2, from, n);
}

/* Number of rows with x below LIMIT. */
static uint32_t probe_claims_below(const struct cloud *c, enum probe_column x, double limit)
{
	uint32_t i = 0;

	while (i < c->n && c->rows[i].v[x] < limit)
		i++;
	return i;
}

static double correlation(const struct cloud *c, const struct claim *q)
{
	double r = gsl_stats_correlation(&c->rows[0].v[q->x], PROBE_COLUMNS, &c->rows[0].v[q->y],
					 PROBE_COLUMNS, c->n);

	return isfinite(r) ? r : 0; /* 0 if one of the columns is constant */
}

static double growth(const struct cloud *c, const struct claim *q)
{
	uint32_t n = third(c);

	return mean_of(c, q->y, c->n - n, n) / mean_of(c, q->y, 0, n);
}

static double spread_growth(const struct cloud *c, const struct claim *q)
{
	uint32_t n = third(c);

	return sd_of(c, q->y, c->n - n, n) / sd_of(c, q->y, 0, n);
}

static double at_first(const struct cloud *c, const struct claim *q)
{
	return probe_claims_difference(c, q, 0, third(c));
}

static double at_last(const struct cloud *c, const struct claim *q)
{
	return probe_claims_difference(c, q, c->n - third(c), third(c));
}

static double share_zero(const struct cloud *c, const struct claim *q)
{
	return (double)probe_claims_below(c, q->x, ZERO) / c->n;
}

static double spread_at_zero(const struct cloud *c, const struct claim *q)
{
	uint32_t n = probe_claims_below(c, q->x, ZERO);

	return n < c->n ? sd_of(c, q->y, 0, n) / sd_of(c, q->y, n, c->n - n) : NAN;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double excellent_at_zero(const struct cloud *c, const struct claim *q)
{
	uint32_t n = probe_claims_below(c, q->x, ZERO), rest = c->n - n;
	double others[rest ? rest : 1], least = INFINITY;

	for (uint32_t i = 0; i < n; i++)
		least = fmin(least, c->rows[i].v[q->y]);
	for (uint32_t i = 0; i < rest; i++)
		others[i] = c->rows[n + i].v[q->y];
	if (!n || !rest)
		return NAN;
	qsort(others, rest, sizeof(*others), by_value);
	return least / others[rest / 2];
}

static double share_below(const struct cloud *c, const struct claim *q)
{
	uint32_t limit = probe_claims_below(c, q->x, q->printed), from = q->down ? 0 : limit;
	uint32_t to = q->down ? limit : c->n, count = 0;

	for (uint32_t i = from; i < to; i++)
		count += c->rows[i].v[q->y] < c->rows[i].v[q->y2];
	return to > from ? (double)count / (to - from) : NAN;
}

static double spread_ratio(const struct cloud *c, const struct claim *q)
{
	return sd_of(c, q->y2, 0, c->n) / sd_of(c, q->y, 0, c->n);
}

static double variation(const struct cloud *c, const struct claim *q)
{
	return sd_of(c, q->y, 0, c->n) / mean_of(c, q->y, 0, c->n);
}

static double greatest(const struct cloud *c, enum probe_column y, uint32_t n)
{
	double most = -INFINITY;

	for (uint32_t i = 0; i < n; i++)
		most = fmax(most, c->rows[i].v[y]);
	return most;
}

static double full_at_few(const struct cloud *c, const struct claim *q)
{
	return greatest(c, q->y, third(c)) / greatest(c, q->y, c->n);
}

/* --- over the seeds ---------------------------------------------------------------- */

typedef double seed_value(const struct cloud *c, const struct claim *q);

/* Writes one value per seed to OUT; false: there are no rows. */
static bool values(struct claim_row a, const struct claim *q, seed_value *value, double *out)
{
	for (uint32_t s = 0; s < a.sweep->seeds; s++) {
		struct cloud c;

		out[s] = NAN;
		if (!sweep_result(a.sweep, 0, a.series, s)->done)
			continue;
		if (!cloud_open(&c, a, s, q->x))
			return false;
		out[s] = value(&c, q);
		free(c.rows);
	}
	return true;
}

/* The interval of VALUE over the seeds of `a`.  If there is none, n is 0 and OUT says why. */
static struct interval over_seeds(const struct claim_context *context, const struct claim *q,
				  seed_value *value, bool ratio, struct judgement *out)
{
	struct interval none = STATS_UNKNOWN;
	struct claim_asked asked;

	if (!claim_ask(context, q, &asked, out))
		return none;
	double v[asked.a[0].sweep->seeds];

	if (!values(asked.a[0], q, value, v)) {
		claim_not_tested(out, "no executions were kept of ", claim_label(asked.a[0]));
		return none;
	}
	none = ratio ? stats_geometric(v, asked.a[0].sweep->seeds)
		     : stats_mean(v, asked.a[0].sweep->seeds);
	if (!none.n)
		claim_not_tested(out, "no such execution: ", claim_label(asked.a[0]));
	return none;
}

/* Judges whether I lies between LOW and HIGH. */
__attribute__((format(printf, 6, 7))) static void
probe_claims_tell(const struct claim_context *context, struct judgement *out, struct interval i,
		  double low, double high, const char *format, ...)
{
	struct judge_term shown;
	struct judge j;
	char words[160];
	va_list ap;

	va_start(ap, format);
	vsnprintf(words, sizeof(words), format, ap);
	va_end(ap);
	judge_begin(&j, context);
	judge_add(&j, i, low, high);
	if (judge_end(&j, out, &shown))
		snprintf(out->measured, sizeof(out->measured), "%s %.3g [%.3g, %.3g]", words,
			 shown.i.mean, shown.i.low, shown.i.high);
}

static const char *name(enum probe_column c)
{
	return probe_column_name(c);
}

void claim_correlates(const struct claim_context *context, const struct claim *c,
		      struct judgement *out)
{
	struct interval i = over_seeds(context, c, correlation, false, out);

	if (i.n)
		probe_claims_tell(context, out, i, c->printed > 0 ? c->printed : -1,
				  c->printed > 0 ? 1 : c->printed, "correlation of %s with %s",
				  name(c->y), name(c->x));
}

void claim_correlation(const struct claim_context *context, const struct claim *c,
		       struct judgement *out)
{
	struct interval i = over_seeds(context, c, correlation, false, out);
	double width = fabs(c->printed) / 4;

	if (i.n)
		probe_claims_tell(context, out, i, c->printed - width, c->printed + width,
				  "correlation of %s with %s", name(c->y), name(c->x));
}

void claim_uncorrelated(const struct claim_context *context, const struct claim *c,
			struct judgement *out)
{
	struct interval i = over_seeds(context, c, correlation, false, out);

	if (i.n)
		probe_claims_tell(context, out, i, JUDGE_ABOVE(-c->printed),
				  JUDGE_BELOW(c->printed), "correlation of %s with %s", name(c->y),
				  name(c->x));
}

void claim_spread_grows(const struct claim_context *context, const struct claim *c,
			struct judgement *out)
{
	struct interval i = over_seeds(context, c, spread_growth, true, out);

	if (i.n)
		probe_claims_tell(context, out, i, JUDGE_ABOVE(1), INFINITY,
				  "deviation of %s, last over first third of %s:", name(c->y),
				  name(c->x));
}

void claim_mostly_zero(const struct claim_context *context, const struct claim *c,
		       struct judgement *out)
{
	struct interval i = over_seeds(context, c, share_zero, false, out);

	if (i.n)
		probe_claims_tell(context, out, i, JUDGE_ABOVE(c->printed), INFINITY,
				  "%s below %g: a share of", name(c->x), ZERO);
}

void claim_spread_at_zero(const struct claim_context *context, const struct claim *c,
			  struct judgement *out)
{
	struct interval i = over_seeds(context, c, spread_at_zero, true, out);

	if (i.n)
		probe_claims_tell(context, out, i, JUDGE_ABOVE(1), INFINITY,
				  "deviation of %s where %s is below %g over elsewhere:",
				  name(c->y), name(c->x), ZERO);
}

void claim_excellent_at_zero(const struct claim_context *context, const struct claim *c,
			     struct judgement *out)
{
	struct interval i = over_seeds(context, c, excellent_at_zero, true, out);

	if (i.n)
		probe_claims_tell(context, out, i, 0, 1,
				  "least %s where %s is below %g over the median elsewhere:",
				  name(c->y), name(c->x), ZERO);
}

void claim_mostly_below(const struct claim_context *context, const struct claim *c,
			struct judgement *out)
{
	struct interval i = over_seeds(context, c, share_below, false, out);

	if (i.n)
		probe_claims_tell(context, out, i, JUDGE_ABOVE(0.5), INFINITY,
				  "%s below %s where %s is %s %g: a share of", name(c->y),
				  name(c->y2), name(c->x), c->down ? "below" : "at least",
				  c->printed);
}

void claim_less_spread(const struct claim_context *context, const struct claim *c,
		       struct judgement *out)
{
	struct interval i = over_seeds(context, c, spread_ratio, true, out);

	if (i.n)
		probe_claims_tell(context, out, i, JUDGE_ABOVE(1), INFINITY,
				  "deviation of %s over that of %s:", name(c->y2), name(c->y));
}

void claim_nearly_constant(const struct claim_context *context, const struct claim *c,
			   struct judgement *out)
{
	struct interval i = over_seeds(context, c, variation, false, out);

	if (i.n)
		probe_claims_tell(context, out, i, -INFINITY, c->printed,
				  "deviation of %s over its mean:", name(c->y));
}

void claim_full_at_few(const struct claim_context *context, const struct claim *c,
		       struct judgement *out)
{
	struct interval i = over_seeds(context, c, full_at_few, false, out);

	if (i.n)
		probe_claims_tell(context, out, i, c->printed, INFINITY,
				  "most %s in the first third of %s over most of all:", name(c->y),
				  name(c->x));
}

/* Judges whether I lies between LOW and HIGH and ALSO above ABOVE. */
static bool judge_both(const struct claim_context *context, struct interval i, double low,
		       double high, struct interval also, double above, struct judgement *out)
{
	struct judge_term shown;
	struct judge j;

	judge_begin(&j, context);
	judge_add(&j, i, low, high);
	judge_add(&j, also, above, INFINITY);
	return judge_end(&j, out, &shown);
}

/* --- two of them --------------------------------------------------------------------- */

void claim_crossing(const struct claim_context *context, const struct claim *c,
		    struct judgement *out)
{
	struct interval first = over_seeds(context, c, at_first, false, out);
	struct interval last = over_seeds(context, c, at_last, false, out);

	if (!first.n || !last.n ||
	    !judge_both(context, first, -INFINITY, JUDGE_BELOW(0), last, JUDGE_ABOVE(0), out))
		return;
	snprintf(out->measured, sizeof(out->measured),
		 "%s less %s: %.3g s [%.3g, %.3g] in the first third of %s, %.3g s [%.3g, %.3g] in "
		 "the last",
		 name(c->y), name(c->y2), first.mean, first.low, first.high, name(c->x), last.mean,
		 last.low, last.high);
}

/* Judges whether VALUE differs significantly between `a` and `b`, as a difference or a factor. */
static void judge_more(const struct claim_context *context, const struct claim *c,
		       seed_value *value, const char *what, struct judgement *out)
{
	struct claim_asked asked;
	struct interval i;

	if (!claim_ask(context, c, &asked, out))
		return;
	uint32_t n = asked.a[0].sweep->seeds;
	double a[n], b[n], more[n];

	if (!values(asked.a[0], c, value, a) || asked.b[0].sweep->seeds != n ||
	    !values(asked.b[0], c, value, b)) {
		claim_not_tested(out, "no executions were kept", NULL);
		return;
	}
	for (uint32_t s = 0; s < n; s++)
		more[s] = a[s] - b[s];
	i = stats_mean(more, n);
	probe_claims_tell(context, out, i, JUDGE_ABOVE(0), INFINITY,
			  "%s of %s with %s: %.3g of %.20s, %.3g of %.20s; more by", what,
			  name(c->y), name(c->x), stats_mean(a, n).mean, claim_label(asked.a[0]),
			  stats_mean(b, n).mean, claim_label(asked.b[0]));
}

void claim_correlates_more(const struct claim_context *context, const struct claim *c,
			   struct judgement *out)
{
	judge_more(context, c, correlation, "correlation", out);
}

void claim_grows_more(const struct claim_context *context, const struct claim *c,
		      struct judgement *out)
{
	judge_more(context, c, growth, "growth", out);
}

/* --- shapes -------------------------------------------------------------------------- */

#define GROUPS 5

void claim_falls_again(const struct claim_context *context, const struct claim *c,
		       struct judgement *out)
{
	struct claim_asked asked;
	struct judge_extreme e;

	if (!claim_ask(context, c, &asked, out))
		return;
	uint32_t n = asked.a[0].sweep->seeds;
	double group[GROUPS][n];

	for (uint32_t s = 0; s < n; s++) {
		struct cloud cloud;

		for (size_t g = 0; g < GROUPS; g++)
			group[g][s] = NAN;
		if (!sweep_result(asked.a[0].sweep, 0, asked.a[0].series, s)->done)
			continue;
		if (!cloud_open(&cloud, asked.a[0], s, c->x)) {
			claim_not_tested(out, "no executions were kept", NULL);
			return;
		}
		for (uint32_t g = 0; g < GROUPS; g++) {
			uint32_t from = g * cloud.n / GROUPS, to = (g + 1) * cloud.n / GROUPS;

			group[g][s] = to > from ? mean_of(&cloud, c->y, from, to - from) : NAN;
		}
		free(cloud.rows);
	}
	judge_extreme_begin(&e, context, true);
	for (size_t g = 0; g + 1 < GROUPS; g++)
		judge_extreme_add(&e, stats_factor(group[g], group[GROUPS - 1], n), 0, g);
	if (judge_extreme_end(&e, (struct claim_bounds){JUDGE_ABOVE(1), INFINITY}, false, out))
		snprintf(out->measured, sizeof(out->measured),
			 "highest in group %zu of %d by %s; it over the last: %.3g [%.3g, %.3g]",
			 e.point + 1, GROUPS, name(c->x), out->interval.mean, out->interval.low,
			 out->interval.high);
}

/* Mean gain of y2 over y in the last third, over executions with the remote load in its
 * lower half (or, if BUSY, in its upper half). */
static double gain_at_target(const struct cloud *c, const struct claim *q, bool busy)
{
	uint32_t n = third(c), count = 0;
	double loads[n], gain = 0, median;

	for (uint32_t i = 0; i < n; i++)
		loads[i] = c->rows[c->n - n + i].v[PROBE_R_LOAD];
	qsort(loads, n, sizeof(*loads), by_value);
	median = loads[n / 2];
	for (uint32_t i = c->n - n; i < c->n; i++) {
		const double *v = c->rows[i].v;

		if (busy != (v[PROBE_R_LOAD] >= median))
			continue;
		gain += v[q->y] - v[q->y2];
		count++;
	}
	return count ? gain / count : NAN;
}

static double gain_idle(const struct cloud *c, const struct claim *q)
{
	return gain_at_target(c, q, false);
}

static double gain_difference(const struct cloud *c, const struct claim *q)
{
	return gain_at_target(c, q, false) - gain_at_target(c, q, true);
}

void claim_gain_at_idle_target(const struct claim_context *context, const struct claim *c,
			       struct judgement *out)
{
	struct interval gain = over_seeds(context, c, gain_idle, false, out);
	struct interval more = over_seeds(context, c, gain_difference, false, out);

	if (!gain.n || !more.n ||
	    !judge_both(context, gain, JUDGE_ABOVE(0), INFINITY, more, JUDGE_ABOVE(0), out))
		return;
	snprintf(out->measured, sizeof(out->measured),
		 "last third of %s: the idler half of targets gains %.3g s [%.3g, %.3g], %.3g s "
		 "[%.3g, %.3g] more than the busier half",
		 name(c->x), gain.mean, gain.low, gain.high, more.mean, more.low, more.high);
}

/* --- areas of a plane ---------------------------------------------------------------- */

#define STEP 0.5
#define TOP  12.0

/* Share of executions for which the area predicts the faster site. */
static double area_right(struct claim_row a, const struct claim *c, double local, double remote,
			 bool line)
{
	double right = 0, n = 0;

	for (uint32_t s = 0; s < a.sweep->seeds; s++) {
		const struct sweep_result *r = sweep_result(a.sweep, 0, a.series, s);

		for (uint32_t i = 0; i < r->nrows; i++) {
			const double *v = r->rows[i].v;
			bool send = line ? v[c->x] - v[c->y] > local
					 : v[c->x] > local && v[c->y] < remote;

			right += send == (v[PROBE_REMOTE_S] < v[PROBE_LOCAL_S]);
			n++;
		}
	}
	return n > 0 ? right / n : NAN;
}

/* Share of the executions inside (outside) the area for which sending (staying) is right. */
static struct interval right_where(struct claim_row a, const struct claim *c, double local,
				   double remote, bool inside)
{
	uint32_t seeds = a.sweep->seeds;
	double share[seeds];

	for (uint32_t s = 0; s < seeds; s++) {
		const struct sweep_result *r = sweep_result(a.sweep, 0, a.series, s);
		double right = 0, n = 0;

		for (uint32_t i = 0; i < r->nrows; i++) {
			const double *v = r->rows[i].v;
			bool there = v[PROBE_REMOTE_S] < v[PROBE_LOCAL_S];

			if ((v[c->x] > local && v[c->y] < remote) != inside)
				continue;
			right += there == inside;
			n++;
		}
		share[s] = n > 0 ? right / n : NAN;
	}
	return stats_mean(share, seeds);
}

void claim_rectangle(const struct claim_context *context, const struct claim *c,
		     struct judgement *out)
{
	double best = 0, line = 0, at[2] = {0, 0};
	struct interval inside, outside;
	struct claim_asked asked;

	if (!claim_ask(context, c, &asked, out))
		return;
	for (double local = -STEP; local <= TOP; local += STEP) {
		line = fmax(line, area_right(asked.a[0], c, local, 0, true));
		for (double remote = STEP; remote <= TOP; remote += STEP) {
			double right = area_right(asked.a[0], c, local, remote, false);

			if (right <= best)
				continue;
			best = right;
			at[0] = local;
			at[1] = remote;
		}
	}
	if (!(best > 0)) {
		claim_not_tested(out, "no executions were kept of ", claim_label(asked.a[0]));
		return;
	}
	inside = right_where(asked.a[0], c, at[0], at[1], true);
	outside = right_where(asked.a[0], c, at[0], at[1], false);
	if (!judge_both(context, inside, JUDGE_ABOVE(0.5), INFINITY, outside, JUDGE_ABOVE(0.5),
			out))
		return;
	snprintf(out->measured, sizeof(out->measured),
		 "local above %.3g and remote below %.3g: there is faster in %.0f %% [%.0f, %.0f], "
		 "elsewhere here in %.0f %% [%.0f, %.0f]; right %.0f %%, the best difference of "
		 "both "
		 "%.0f %%",
		 at[0], at[1], 100 * inside.mean, 100 * inside.low, 100 * inside.high,
		 100 * outside.mean, 100 * outside.low, 100 * outside.high, 100 * best, 100 * line);
}

void claim_best_within(const struct claim_context *context, const struct claim *c,
		       struct judgement *out)
{
	struct claim_asked asked;
	struct judge_term shown;
	double low = INFINITY, high = -INFINITY;
	struct judge j;

	if (!claim_ask(context, c, &asked, out))
		return;
	judge_begin(&j, context);
	for (size_t p = asked.range.from; p <= asked.range.to; p++) {
		unsigned int group = judge_group(&j, 1);
		double best = -INFINITY;

		for (int i = 0; i < asked.na; i++) {
			struct interval mean =
				sweep_mean(asked.a[i].sweep, p, asked.a[i].series, c->measure);

			if (mean.n < 2)
				continue;
			best = fmax(best, mean.mean);
			judge_add(&j, mean, -INFINITY, c->band);
			judge_add(&j, mean, c->printed, INFINITY)->group = group;
		}
		low = fmin(low, best);
		high = fmax(high, best);
	}
	if (!judge_end(&j, out, &shown))
		return;
	out->unit = measure_name(c->measure);
	snprintf(out->measured, sizeof(out->measured),
		 "the best of each point: %.3g to %.3g; nearest to a bound: %.3g [%.3g, %.3g]", low,
		 high, shown.i.mean, shown.i.low, shown.i.high);
}
