/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* From comparisons over seeds to a verdict; see judge.h. */
#include "sim/experiments/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/claim_rows.h"

void judge_begin(struct judge *j, const struct claim_context *context)
{
	*j = (struct judge){
		.alpha = context->alpha > 0 ? context->alpha : STATS_ALPHA,
		.groups = 1,
	};
}

unsigned int judge_group(struct judge *j, size_t need)
{
	if (j->groups == JUDGE_GROUPS)
		return JUDGE_GROUPS - 1;
	j->need[j->groups] = need;
	return j->groups++;
}

struct judge_term *judge_add(struct judge *j, struct interval i, double low, double high)
{
	static _Thread_local struct judge_term nowhere;
	struct judge_term *t = &nowhere;

	if (j->n == j->room && !j->no_memory) {
		size_t room = j->room ? 2 * j->room : 32;
		struct judge_term *grown = realloc(j->terms, room * sizeof(*grown));

		j->no_memory = !grown;
		if (grown) {
			j->terms = grown;
			j->room = room;
		}
	}
	if (!j->no_memory)
		t = &j->terms[j->n++];
	*t = (struct judge_term){.i = i, .low = low, .high = high};
	return t;
}

/* --- one comparison -------------------------------------------------------------- */

enum state { STATE_FALSE, STATE_OPEN, STATE_TRUE };

/* What T says at level ALPHA with EXTRA more seeds of the same mean and deviation. */
static enum state term_state(const struct judge_term *t, size_t extra, double alpha)
{
	struct interval i = t->i;

	i.n += extra;
	i = stats_at(i, alpha);
	if (i.low >= t->low && i.high <= t->high)
		return STATE_TRUE;
	return i.high < t->low || i.low > t->high ? STATE_FALSE : STATE_OPEN;
}

/* Distance of the mean to the nearest bound, in logarithms of ratios; negative outside. */
static double term_slack(const struct judge_term *t)
{
	double above = t->i.mean - t->low, below = t->high - t->i.mean;

	if (t->i.ln) {
		above = t->low > 0 ? log(t->i.mean / t->low) : INFINITY;
		below = log(t->high / t->i.mean);
	}
	return fmin(above, below);
}

/* --- groups ---------------------------------------------------------------------- */

/* The corrected levels of a group. */
struct levels {
	size_t n, need;
	double yes, no;
};

static struct levels group_levels(const struct judge *j, unsigned int group)
{
	struct levels l = {0};
	size_t all = 0;

	for (size_t i = 0; i < j->n; i++) {
		if (j->terms[i].group != group)
			continue;
		all++;
		l.n += j->terms[i].kind != JUDGE_VETO;
	}
	l.need = j->need[group] ? j->need[group] : l.n;
	l.yes = j->alpha / (double)(l.n >= l.need ? l.n - l.need + 1 : 1);
	l.no = j->alpha /
	       (double)(j->need[group] ? l.need
			: all	       ? all
				       : 1) /
	       fmax(1, j->groups / 2.0);
	return l;
}

static enum verdict judge_group_verdict(const struct judge *j, unsigned int group, size_t extra)
{
	struct levels l = group_levels(j, group);
	size_t yes = 0, no = 0;
	bool beyond = true, veto = false;

	for (size_t i = 0; i < j->n; i++) {
		const struct judge_term *t = &j->terms[i];

		if (t->group != group)
			continue;
		if (term_state(t, extra, l.no) == STATE_FALSE) {
			no += t->kind != JUDGE_VETO;
			veto |= t->kind == JUDGE_VETO;
			beyond &= t->beyond && t->i.mean > t->high;
		}
		if (t->kind != JUDGE_VETO)
			yes += t->kind == JUDGE_LEANS ? term_slack(t) >= 0
						      : term_state(t, extra, l.yes) == STATE_TRUE;
	}
	if (veto || no > l.n - l.need)
		return beyond ? VERDICT_EXCEEDED : VERDICT_CONTRADICTED;
	return yes >= l.need ? VERDICT_HOLDS : VERDICT_UNDECIDED;
}

static enum verdict verdict_with(const struct judge *j, size_t extra)
{
	enum verdict all = VERDICT_HOLDS;

	for (unsigned int g = 0; g < j->groups; g++) {
		enum verdict v = judge_group_verdict(j, g, extra);

		if (v == VERDICT_CONTRADICTED)
			return v;
		if (v == VERDICT_EXCEEDED || all == VERDICT_HOLDS)
			all = v;
	}
	return all;
}

/* The least number of more seeds that decide if means and deviations stay. */
static uint32_t seeds_to_decide(const struct judge *j)
{
	uint32_t low = 0, high = 1;

	while (high < VERDICT_SEEDS_MAX && verdict_with(j, high) == VERDICT_UNDECIDED) {
		low = high;
		high *= 2;
	}
	if (high >= VERDICT_SEEDS_MAX)
		return VERDICT_SEEDS_MAX;
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (verdict_with(j, middle) == VERDICT_UNDECIDED)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* --- the end --------------------------------------------------------------------- */

/* How far T is on the way to contradict its group: the least is shown. */
static double weight(const struct judge *j, const struct judge_term *t, double *alpha)
{
	struct levels l = group_levels(j, t->group);
	double slack = term_slack(t);
	double most = 1e9; /* a term that decides comes before all others */

	*alpha = slack < 0 ? l.no : l.yes;
	slack = fmax(fmin(slack, most / 10), -most / 10);
	if (term_state(t, 0, l.no) == STATE_FALSE)
		return slack - most;
	if (t->kind == JUDGE_VETO || (t->kind == JUDGE_LEANS && slack >= 0))
		return slack + 2 * most;
	if (slack < 0)
		return slack - most / 2;
	return term_state(t, 0, l.yes) == STATE_TRUE ? slack + most : slack;
}

static const struct judge_term *term_to_show(const struct judge *j, double *alpha)
{
	const struct judge_term *shown = j->terms;
	double least = INFINITY;

	for (size_t i = 0; i < j->n; i++) {
		double level, w;

		w = weight(j, &j->terms[i], &level);
		if (w >= least)
			continue;
		least = w;
		shown = &j->terms[i];
		*alpha = level;
	}
	return shown;
}

static bool terms_told(const struct judge *j)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->terms[i].i.n < 2)
			return false;
	return j->n > 0;
}

bool judge_end(struct judge *j, struct judgement *out, struct judge_term *shown)
{
	double alpha = j->alpha;
	bool told = !j->no_memory && terms_told(j);

	if (j->no_memory)
		claim_not_tested(out, "no memory", NULL);
	else if (!told)
		claim_not_tested(out, "fewer than two values were measured", NULL);
	if (told) {
		*shown = *term_to_show(j, &alpha);
		shown->i = stats_at(shown->i, alpha);
		out->verdict = verdict_with(j, 0);
		out->interval = shown->i;
		out->low = shown->low;
		out->high = shown->high;
		out->unit = shown->i.ln ? ratio_name(RATIO_FACTOR) : NULL;
		out->comparisons = (uint32_t)j->n;
		out->alpha = j->alpha;
		out->more_seeds = out->verdict == VERDICT_UNDECIDED ? seeds_to_decide(j) : 0;
	}
	free(j->terms);
	j->terms = NULL;
	return told;
}

/* --- extremes -------------------------------------------------------------------- */

void judge_extreme_begin(struct judge_extreme *e, const struct claim_context *context, bool largest)
{
	*e = (struct judge_extreme){.largest = largest};
	judge_begin(&e->j, context);
}

void judge_extreme_add(struct judge_extreme *e, struct interval factor, int row, size_t point)
{
	struct judge_term *t = judge_add(&e->j, factor, 0, INFINITY);

	t->a = row;
	t->from = point;
}

static bool more_extreme(const struct judge_extreme *e, double a, double b)
{
	return e->largest ? a > b : a < b;
}

/* The largest of all lies above what one of them exceeds at a corrected level, and below what all
 * stay below. */
static struct interval extreme_interval(struct judge_extreme *e)
{
	struct interval out = e->j.terms[0].i;
	double corrected = e->j.alpha / (double)e->j.n, inner = NAN, outer = NAN;

	e->row = e->j.terms[0].a;
	e->point = e->j.terms[0].from;
	for (size_t i = 0; i < e->j.n; i++) {
		const struct judge_term *t = &e->j.terms[i];
		struct interval one = stats_at(t->i, corrected), all = stats_at(t->i, e->j.alpha);
		double near = e->largest ? one.low : one.high;
		double far = e->largest ? all.high : all.low;

		if (isnan(inner) || more_extreme(e, near, inner))
			inner = near;
		if (isnan(outer) || more_extreme(e, far, outer))
			outer = far;
		if (!more_extreme(e, t->i.mean, out.mean))
			continue;
		out = t->i;
		e->row = t->a;
		e->point = t->from;
	}
	out.low = e->largest ? inner : outer;
	out.high = e->largest ? outer : inner;
	return out;
}

bool judge_extreme_end(struct judge_extreme *e, struct claim_bounds bounds, bool beyond,
		       struct judgement *out)
{
	struct judge *j = &e->j;
	size_t n = j->n;
	struct interval extreme = n && !j->no_memory ? extreme_interval(e) : STATS_UNKNOWN;
	unsigned int one = judge_group(j, 1);
	struct judge_term shown;

	/* All lie within the outer bound, and one of them within the inner one. */
	for (size_t i = 0; i < n && !j->no_memory; i++) {
		struct judge_term *t = judge_add(j, j->terms[i].i, 0, INFINITY);

		t->group = one;
		if (e->largest) {
			j->terms[i].high = bounds.high;
			j->terms[i].beyond = beyond;
			t->low = bounds.low;
		} else {
			j->terms[i].low = bounds.low;
			t->high = bounds.high;
			t->beyond = beyond;
		}
	}
	if (!judge_end(j, out, &shown))
		return false;
	out->interval = extreme;
	out->low = bounds.low;
	out->high = bounds.high;
	out->comparisons = (uint32_t)n;
	return true;
}

void judge_either(struct judgement *out, const struct judgement *a, const struct judgement *b)
{
	static const enum verdict order[] = {VERDICT_HOLDS, VERDICT_UNDECIDED, VERDICT_EXCEEDED,
					     VERDICT_CONTRADICTED, VERDICT_NOT_TESTED};
	uint32_t least = a->more_seeds && b->more_seeds
				 ? (a->more_seeds < b->more_seeds ? a->more_seeds : b->more_seeds)
				 : a->more_seeds + b->more_seeds;
	bool both = a->verdict == b->verdict;
	struct judgement chosen = *b;

	for (size_t i = 0; i < VERDICTS; i++) {
		if (a->verdict != order[i] && b->verdict != order[i])
			continue;
		chosen = a->verdict == order[i] ? *a : *b;
		break;
	}
	if (chosen.verdict == VERDICT_EXCEEDED && !both)
		chosen.verdict = VERDICT_CONTRADICTED;
	chosen.more_seeds = chosen.verdict == VERDICT_UNDECIDED ? least : 0;
	*out = chosen;
}

void judge_by(struct judgement *out, enum ratio by)
{
	out->interval = stats_by(by, out->interval);
	out->low = out->low > 0 ? ratio_from_factor(by, out->low) : -INFINITY;
	out->high = isfinite(out->high) ? ratio_from_factor(by, out->high) : INFINITY;
	out->unit = ratio_name(by);
}
