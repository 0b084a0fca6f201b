/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a replay recommends, and to whom it makes a difference; see replayed.h.
 *
 * A policy is recommended over another only if the 95 % interval of the ratio of their means, over
 * the weeks of the log (outcome.h) or over the seeds, does not contain 1.  What the log recorded is
 * compared with, but is no policy to choose.
 */
#include "sim/report/replayed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/recorded_run.h"
#include "sim/report/table.h"

enum measure replayed_measure(const struct sweep *s)
{
	return s->batch ? M_BOUNDED : M_SLOWDOWN;
}

static const char *replayed_measure_words(const struct sweep *s)
{
	return s->batch ? "mean bounded slowdown" : "mean slowdown";
}

static const struct outcome *replayed_outcome(const struct sweep *s, size_t point, size_t series)
{
	return &sweep_result(s, point, series, 0)->outcome;
}

bool replayed_is_bs(const struct sweep_series *series)
{
	return !strcmp(series->policy, "bs");
}

bool replayed_shares(const struct sweep *s)
{
	for (size_t k = 0; k < s->nseries; k++)
		if (!replayed_is_bs(&s->series[k]) && !recorded_is(s->series[k].policy))
			return true;
	return false;
}

uint32_t replayed_weeks(const struct sweep *s)
{
	uint32_t most = 0;

	for (size_t k = 0; k < s->nseries; k++)
		if (replayed_outcome(s, 0, k)->n[OUTCOME_WEEKS] > most)
			most = replayed_outcome(s, 0, k)->n[OUTCOME_WEEKS];
	return most;
}

void replayed_tell_intervals(const struct sweep *s, FILE *f)
{
	uint32_t weeks = replayed_weeks(s);

	if (s->seeds > 1)
		fprintf(f, "mean over %u seeds +- half of the 95 %% interval\n", s->seeds);
	else if (weeks >= OUTCOME_WEEKS_MIN)
		fprintf(f,
			"+- half of the 95 %% interval (block bootstrap over the %u weeks of the "
			"log)\n",
			weeks);
	else if (weeks)
		fprintf(f, "no intervals: jobs arrive in %u week%s, and %d are needed\n", weeks,
			weeks == 1 ? "" : "s", OUTCOME_WEEKS_MIN);
	else
		fputs("one seed gives no interval (use --seeds N)\n", f);
}

/* --- advice --------------------------------------------------------------------------- */

/* Interval of the mean in BASE over that in NEW; n = 0: it is unknown. */
static struct interval replayed_factor(const struct sweep *s, struct replayed_cell base,
				       struct replayed_cell new)
{
	enum measure m = replayed_measure(s);
	struct interval none = STATS_UNKNOWN, found;
	double *values;

	if (s->seeds == 1)
		return outcome_factor(replayed_outcome(s, base.point, base.series),
				      replayed_outcome(s, new.point, new.series),
				      outcome_sum_of(m));
	values = calloc(s->seeds, 2 * sizeof(*values));
	if (!values)
		return none;
	sweep_cell(s, base.point, base.series, m, values);
	sweep_cell(s, new.point, new.series, m, values + s->seeds);
	found = stats_factor(values, values + s->seeds, s->seeds);
	free(values);
	return found.n > 1 ? found : none;
}

struct advising {
	const struct sweep *s;
	size_t point;
	int best, recorded; /* series; -1: none */
	struct interval
		least; /* of the told-apart policies, the factor of the one nearest to BEST */
	int nearest;
	unsigned int policies, worse, unknown;
	char alike[REPLAYED_TEXT / 2];
};

/* How much larger the mean of series BASE is than that of the best policy. */
static struct interval advising_factor(const struct advising *a, size_t base)
{
	return replayed_factor(a->s, (struct replayed_cell){a->point, base},
			       (struct replayed_cell){a->point, (size_t)a->best});
}

static double replayed_mean(const struct advising *a, size_t series)
{
	return sweep_mean(a->s, a->point, series, replayed_measure(a->s)).mean;
}

static void advising_find_best(struct advising *a)
{
	a->best = a->recorded = a->nearest = -1;
	for (size_t k = 0; k < a->s->nseries; k++) {
		if (recorded_is(a->s->series[k].policy)) {
			a->recorded = (int)k;
			continue;
		}
		if (!isfinite(replayed_mean(a, k)))
			continue;
		a->policies++;
		if (a->best < 0 || replayed_mean(a, k) < replayed_mean(a, (size_t)a->best))
			a->best = (int)k;
	}
}

/* Sorts the other policies into worse, alike and unknown. */
static void advising_compare(struct advising *a)
{
	size_t at = 0;

	for (size_t k = 0; k < a->s->nseries; k++) {
		struct interval i;

		if ((int)k == a->best || (int)k == a->recorded || !isfinite(replayed_mean(a, k)))
			continue;
		i = advising_factor(a, k);
		if (stats_above(i, 1)) {
			a->worse++;
			if (a->nearest < 0 || i.mean < a->least.mean) {
				a->least = i;
				a->nearest = (int)k;
			}
			continue;
		}
		a->unknown += !i.n;
		if (at < sizeof(a->alike))
			at += (size_t)snprintf(a->alike + at, sizeof(a->alike) - at, "%s%s",
					       at ? ", " : "", a->s->series[k].label);
	}
}

/* Writes "38 % [20, 51] below"; I is a factor above 1. */
static void advising_percent(char *out, size_t size, struct interval i)
{
	struct interval r = stats_by(RATIO_REDUCTION, i);

	snprintf(out, size, "%.2g %% [%.2g, %.2g]", 100 * r.mean, 100 * r.low, 100 * r.high);
}

/* Says how the best policy compares with what was recorded: 1 better, -1 worse, 0 not told apart.
 */
static int advising_recorded(const struct advising *a, char *out, size_t size)
{
	struct interval i, back;
	char percent[64];

	out[0] = '\0';
	if (a->recorded < 0)
		return 0;
	i = advising_factor(a, (size_t)a->recorded);
	back = (struct interval){
		.mean = 1 / i.mean, .low = 1 / i.high, .high = 1 / i.low, .n = i.n};
	if (stats_above(i, 1)) {
		advising_percent(percent, sizeof(percent), i);
		snprintf(out, size, "%s below what was recorded", percent);
		return 1;
	}
	if (stats_above(back, 1)) {
		advising_percent(percent, sizeof(percent), back);
		snprintf(out, size, "what was recorded is %s below it", percent);
		return -1;
	}
	snprintf(out, size, "not told apart from what was recorded");
	return 0;
}

static bool advising_has_intervals(const struct advising *a)
{
	return a->s->seeds > 1 ||
	       outcome_has_interval(replayed_outcome(a->s, a->point, (size_t)a->best));
}

/* Returns whether several policies ran, and no result depends on which. */
static bool advising_all_same(const struct advising *a)
{
	for (size_t k = 0; k < a->s->nseries; k++)
		if ((int)k != a->recorded && isfinite(replayed_mean(a, k)) &&
		    replayed_mean(a, k) != replayed_mean(a, (size_t)a->best))
			return false;
	return a->policies > 1 && a->recorded < 0;
}

static void advising_conclude(const struct advising *a, struct replayed_advice *out)
{
	const char *words = replayed_measure_words(a->s), *label = a->s->series[a->best].label;
	char recorded[160], percent[64], against[160] = "", alike[REPLAYED_TEXT / 2 + 32] = "";
	int better = advising_recorded(a, recorded, sizeof(recorded));

	if (a->worse) {
		advising_percent(percent, sizeof(percent), a->least);
		snprintf(against, sizeof(against), "%s below that of %.60s", percent,
			 a->s->series[a->nearest].label);
	}
	if (a->alike[0])
		snprintf(alike, sizeof(alike), "not told apart from %s", a->alike);
	snprintf(out->text, sizeof(out->text), "%s of %.40s: %s%s%s%s%s", words, label, against,
		 *against && *alike ? "; " : "", alike,
		 (*against || *alike) && *recorded ? "; " : "", recorded);
	if (a->s->npoints > 1 && a->recorded >= 0) {
		/* What was recorded ran on the log's own machines, not on those of the point. */
		if (a->policies == 1) {
			snprintf(out->verdict, sizeof(out->verdict),
				 "no other policy was replayed here");
			return;
		}
		better = 0;
	}
	if (better < 0)
		snprintf(out->verdict, sizeof(out->verdict),
			 "nothing is recommended: what was recorded is better");
	else if (!a->worse && (better == 0 || a->policies > 1))
		snprintf(out->verdict, sizeof(out->verdict), "nothing is told apart");
	else
		out->policy = a->best;
	if (out->policy >= 0)
		snprintf(out->verdict, sizeof(out->verdict), "recommended: %.40s%s", label,
			 a->alike[0] ? ", or those not told apart from it" : "");
}

void replayed_advise(const struct sweep *s, size_t point, struct replayed_advice *out)
{
	struct advising a = {.s = s, .point = point};
	uint32_t weeks = replayed_weeks(s);

	*out = (struct replayed_advice){.policy = -1, .verdict = "nothing is told apart"};
	advising_find_best(&a);
	if (a.best < 0) {
		snprintf(out->text, sizeof(out->text), "no job ended under any policy");
		return;
	}
	if (advising_all_same(&a)) {
		snprintf(out->text, sizeof(out->text), "%s is the same under all policies",
			 replayed_measure_words(s));
		return;
	}
	if (!advising_has_intervals(&a)) {
		snprintf(out->text, sizeof(out->text),
			 "%.40s has the least %s, but jobs arrive in %u week%s, and %d are needed "
			 "for intervals",
			 s->series[a.best].label, replayed_measure_words(s), weeks,
			 weeks == 1 ? "" : "s", OUTCOME_WEEKS_MIN);
		return;
	}
	advising_compare(&a);
	if (a.policies == 1 && a.recorded < 0)
		snprintf(out->text, sizeof(out->text), "%.40s ran alone", s->series[a.best].label);
	else
		advising_conclude(&a, out);
}

/* --- classes and users ---------------------------------------------------------------- */

static double replayed_row_mean(const struct outcome_row *row, enum outcome_sum what)
{
	return row->sums[OUTCOME_JOBS] > 0 ? row->sums[what] / row->sums[OUTCOME_JOBS] : NAN;
}

static const struct outcome_row *replayed_find(const struct outcome *o, enum outcome_group g,
					       double key)
{
	for (uint32_t i = 0; i < o->n[g]; i++)
		if (o->rows[g][i].key == key)
			return &o->rows[g][i];
	return NULL;
}

/* Takes USER as the one with the largest factor, if it is. */
static void replayed_extreme(struct replayed_user *most, const struct replayed_user *user,
			     bool gains)
{
	double factor = gains ? user->before / user->after : user->after / user->before;
	double known = most->user < 0 ? 1 + REPLAYED_CLEARLY
		       : gains	      ? most->before / most->after
				      : most->after / most->before;

	if (factor > known)
		*most = *user;
}

void replayed_compare_users(const struct sweep *s, struct replayed_cell base,
			    struct replayed_cell new, struct replayed_users *out)
{
	const struct outcome *before = replayed_outcome(s, base.point, base.series);
	const struct outcome *after = replayed_outcome(s, new.point, new.series);

	*out = (struct replayed_users){.gains.user = -1, .loses.user = -1};
	/* Both lists are in order of the user. */
	for (uint32_t i = 0, j = 0; i < after->n[OUTCOME_USERS]; i++) {
		const struct outcome_row *row = &after->rows[OUTCOME_USERS][i], *other;
		struct replayed_user user = {row->key, row->sums[OUTCOME_JOBS],
					     .after = replayed_row_mean(row, OUTCOME_BOUNDED)};

		while (j < before->n[OUTCOME_USERS] &&
		       before->rows[OUTCOME_USERS][j].key < row->key)
			j++;
		if (j == before->n[OUTCOME_USERS])
			break;
		other = &before->rows[OUTCOME_USERS][j];
		if (other->key != row->key || row->key < 0 || user.jobs < REPLAYED_JOBS_MIN)
			continue;
		user.before = replayed_row_mean(other, OUTCOME_BOUNDED);
		out->users++;
		out->better += user.after < (1 - REPLAYED_CLEARLY) * user.before;
		out->worse += user.after > (1 + REPLAYED_CLEARLY) * user.before;
		replayed_extreme(&out->gains, &user, true);
		replayed_extreme(&out->loses, &user, false);
	}
}

/* The series that the others are compared with: what was recorded, else the first. */
static size_t replayed_base(const struct sweep *s)
{
	for (size_t k = 0; k < s->nseries; k++)
		if (recorded_is(s->series[k].policy))
			return k;
	return 0;
}

static void replayed_quantity(char *out, size_t size, double value)
{
	if (!isfinite(value))
		snprintf(out, size, "-");
	else
		snprintf(out, size, value >= 100 ? "%.0f" : "%.3g", value);
}

static int replayed_classes(const struct sweep *s, FILE *f)
{
	const struct outcome *base = replayed_outcome(s, 0, replayed_base(s));
	uint32_t n = base->n[OUTCOME_CLASSES];
	struct table t;

	if (table_init(&t, n + 1, s->nseries + 2))
		return -ENOMEM;
	fprintf(f,
		"\nmean bounded slowdown by class (short: up to %g h; narrow: up to %d "
		"processors)\n",
		OUTCOME_SHORT_MS / 3600000, OUTCOME_NARROW);
	table_set(&t, 0, 1, "jobs");
	for (size_t k = 0; k < s->nseries; k++)
		table_set(&t, 0, k + 2, "%s", s->series[k].label);
	for (uint32_t i = 0; i < n; i++) {
		const struct outcome_row *row = &base->rows[OUTCOME_CLASSES][i];

		table_set(&t, i + 1, 0, "%s", outcome_class_name((enum outcome_class)row->key));
		table_set(&t, i + 1, 1, "%.0f", row->sums[OUTCOME_JOBS]);
		for (size_t k = 0; k < s->nseries; k++) {
			const struct outcome_row *cell =
				replayed_find(replayed_outcome(s, 0, k), OUTCOME_CLASSES, row->key);
			char text[32];

			replayed_quantity(text, sizeof(text),
					  cell ? replayed_row_mean(cell, OUTCOME_BOUNDED) : NAN);
			table_set(&t, i + 1, k + 2, "%s", text);
		}
	}
	table_print(&t, f);
	table_free(&t);
	return 0;
}

static void replayed_set_user(struct table *t, size_t row, size_t column,
			      const struct replayed_user *user)
{
	char before[32], after[32];

	if (user->user < 0) {
		table_set(t, row, column, "nobody");
		return;
	}
	replayed_quantity(before, sizeof(before), user->before);
	replayed_quantity(after, sizeof(after), user->after);
	table_set(t, row, column, "%.0f: %s to %s", user->user, before, after);
}

static int replayed_users_table(const struct sweep *s, FILE *f)
{
	static const char *const heads[] = {"users", "better", "worse", "gains most", "loses most"};
	size_t base = replayed_base(s), row = 0;
	struct table t;

	if (table_init(&t, s->nseries, 6))
		return -ENOMEM;
	fprintf(f,
		"\nusers with %d jobs or more whose mean bounded slowdown is better or worse\n"
		"by more than %g %% than under %s, and who changes most (user: from, to)\n",
		REPLAYED_JOBS_MIN, 100 * REPLAYED_CLEARLY, s->series[base].label);
	for (size_t i = 0; i < 5; i++)
		table_set(&t, 0, i + 1, "%s", heads[i]);
	for (size_t k = 0; k < s->nseries; k++) {
		struct replayed_users u;

		if (k == base)
			continue;
		replayed_compare_users(s, (struct replayed_cell){0, base},
				       (struct replayed_cell){0, k}, &u);
		row++;
		table_set(&t, row, 0, "%s", s->series[k].label);
		table_set(&t, row, 1, "%u", u.users);
		table_set(&t, row, 2, "%u", u.better);
		table_set(&t, row, 3, "%u", u.worse);
		replayed_set_user(&t, row, 4, &u.gains);
		replayed_set_user(&t, row, 5, &u.loses);
	}
	table_print(&t, f);
	table_free(&t);
	return 0;
}

int replayed_effects(const struct sweep *s, FILE *f)
{
	int ret;

	if (!s->batch || s->npoints != 1 || !replayed_weeks(s))
		return 0;
	ret = replayed_classes(s, f);
	return ret || s->nseries < 2 ? ret : replayed_users_table(s, f);
}

/* --- points of a sweep ------------------------------------------------------------------ */

/* How a series does at a point, compared with the first point of the sweep. */
struct replayed_step {
	struct interval change; /* of the mean, as a share of it; n = 0: its interval is unknown */
	double ended_first, ended; /* jobs */
	struct replayed_users users;
};

/* Returns whether there is anything to compare. */
static bool replayed_step(const struct sweep *s, size_t point, size_t series,
			  struct replayed_step *out)
{
	struct replayed_cell first = {0, series}, here = {point, series};
	enum measure m = replayed_measure(s);
	struct interval factor = replayed_factor(s, first, here);

	out->change = (struct interval){
		.mean = sweep_mean(s, point, series, m).mean / sweep_mean(s, 0, series, m).mean - 1,
		.low = 1 / factor.high - 1,
		.high = 1 / factor.low - 1,
		.n = factor.n,
	};
	out->ended_first = sweep_mean(s, 0, series, M_COMPLETED).mean;
	out->ended = sweep_mean(s, point, series, M_COMPLETED).mean;
	replayed_compare_users(s, first, here, &out->users);
	return isfinite(out->change.mean) && !recorded_is(s->series[series].policy);
}

/* Writes "74 % [67, 79] less". */
static void replayed_step_words(const struct replayed_step *step, char *out, size_t size)
{
	struct interval i = step->change;
	bool less = i.mean < 0;
	double low = less ? -i.high : i.low, high = less ? -i.low : i.high;

	if (i.mean == 0)
		snprintf(out, size, "the same");
	else if (!i.n)
		snprintf(out, size, "%.2g %% %s, without an interval", 100 * fabs(i.mean),
			 less ? "less" : "more");
	else
		snprintf(out, size, "%.2g %% [%.2g, %.2g] %s%s", 100 * fabs(i.mean), 100 * low,
			 100 * high, less ? "less" : "more",
			 low > 0 ? "" : ", which is not told apart");
}

/* Says what point P brings to series K, and to whom. */
static void replayed_tell_points(const struct sweep *s, size_t p, size_t k, FILE *f)
{
	struct replayed_step step;
	char words[120], users[160] = "", other[96] = "", text[REPLAYED_TEXT];
	int n;

	if (!replayed_step(s, p, k, &step))
		return;
	replayed_step_words(&step, words, sizeof(words));
	if (step.users.users)
		snprintf(users, sizeof(users),
			 "; of %u users with %d jobs or more, %u are better and %u worse off by "
			 "more than %g %%",
			 step.users.users, REPLAYED_JOBS_MIN, step.users.better, step.users.worse,
			 100 * REPLAYED_CLEARLY);
	if (step.ended != step.ended_first)
		snprintf(other, sizeof(other),
			 "; these are not the same jobs: %.0f ended, not %.0f", step.ended,
			 step.ended_first);
	n = fprintf(f, "%.40s, %s%s%s rather than %s: ", s->series[k].label, s->x_name,
		    *s->x_name ? "=" : "", s->points[p].label, s->points[0].label);
	snprintf(text, sizeof(text), "%s %s%s%s", replayed_measure_words(s), words, users, other);
	table_paragraph(f, n > 0 ? (size_t)n : 0, 2, text);
}

void replayed_tell_advice(const struct sweep *s, FILE *f)
{
	struct replayed_advice advice;

	fputc('\n', f);
	for (size_t p = 0; p < s->npoints; p++) {
		size_t at = 0;

		replayed_advise(s, p, &advice);
		if (s->npoints > 1) {
			int n = fprintf(f, "%s%s%s: ", s->x_name, *s->x_name ? "=" : "",
					s->points[p].label);

			at = n > 0 ? (size_t)n : 0;
		}
		table_paragraph(f, at, 2, advice.text);
		fprintf(f, "%s%s\n", s->npoints > 1 ? "  " : "", advice.verdict);
	}
	for (size_t p = 1; p < s->npoints; p++)
		for (size_t k = 0; k < s->nseries; k++)
			replayed_tell_points(s, p, k, f);
}

/* --- for programs --------------------------------------------------------------------- */

static json_t *replayed_json_user(const struct replayed_user *u)
{
	if (u->user < 0)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f}", "user", u->user, "jobs", u->jobs, "before",
			 u->before, "after", u->after);
}

static json_t *replayed_json_users(const struct sweep *s, size_t point, size_t k)
{
	struct replayed_users u;

	replayed_compare_users(s, (struct replayed_cell){point, replayed_base(s)},
			       (struct replayed_cell){point, k}, &u);
	return json_pack("{s:s, s:i, s:i, s:i, s:o, s:o}", "against",
			 s->series[replayed_base(s)].label, "users", (int)u.users, "better",
			 (int)u.better, "worse", (int)u.worse, "gains_most",
			 replayed_json_user(&u.gains), "loses_most", replayed_json_user(&u.loses));
}

static json_t *replayed_json_classes(const struct outcome *o)
{
	json_t *out = json_object();

	for (uint32_t i = 0; i < o->n[OUTCOME_CLASSES]; i++) {
		const struct outcome_row *row = &o->rows[OUTCOME_CLASSES][i];

		json_object_set_new(out, outcome_class_name((enum outcome_class)row->key),
				    json_pack("{s:f, s:f, s:f}", "jobs", row->sums[OUTCOME_JOBS],
					      "bounded_slowdown",
					      replayed_row_mean(row, OUTCOME_BOUNDED), "wait_s",
					      replayed_row_mean(row, OUTCOME_WAIT_S)));
	}
	return out;
}

static json_t *replayed_json_used(const struct sweep_used *used)
{
	json_t *left = json_object();
	uint64_t jobs = used->records;

	for (unsigned int why = 0; why < WORKLOAD_LEFT_COUNT; why++) {
		jobs -= used->left[why];
		if (used->left[why])
			json_object_set_new(left, workload_left_name(why),
					    json_integer((json_int_t)used->left[why]));
	}
	return json_pack("{s:I, s:I, s:o}", "records", (json_int_t)used->records, "jobs",
			 (json_int_t)jobs, "left_out", left);
}

static json_t *replayed_json_than_first(const struct sweep *s, size_t point)
{
	json_t *out = json_object();

	for (size_t k = 0; k < s->nseries; k++) {
		struct replayed_step step;
		json_t *one;

		if (!replayed_step(s, point, k, &step))
			continue;
		one = json_pack("{s:f, s:f, s:f}", "change", step.change.mean, "ended_first",
				step.ended_first, "ended", step.ended);
		if (step.change.n)
			json_object_update_new(one, json_pack("{s:f, s:f}", "low", step.change.low,
							      "high", step.change.high));
		if (step.users.users)
			json_object_update_new(one, json_pack("{s:i, s:i, s:i}", "users",
							      (int)step.users.users, "better",
							      (int)step.users.better, "worse",
							      (int)step.users.worse));
		json_object_set_new(out, s->series[k].label, one);
	}
	return out;
}

static json_t *replayed_json_points(const struct sweep *s)
{
	json_t *out = json_array();

	for (size_t p = 0; p < s->npoints; p++) {
		struct replayed_advice advice;
		json_t *series = json_object();

		replayed_advise(s, p, &advice);
		for (size_t k = 0; k < s->nseries && s->batch; k++)
			json_object_set_new(
				series, s->series[k].label,
				json_pack("{s:o, s:o}", "classes",
					  replayed_json_classes(replayed_outcome(s, p, k)), "users",
					  replayed_json_users(s, p, k)));
		json_array_append_new(
			out,
			json_pack("{s:s, s:o, s:s, s:s, s:o}", "point", s->points[p].label,
				  "recommended",
				  advice.policy < 0 ? json_null()
						    : json_string(s->series[advice.policy].label),
				  "verdict", advice.verdict, "advice", advice.text, "effects",
				  series));
		if (p)
			json_object_set_new(json_array_get(out, p), "than_first",
					    replayed_json_than_first(s, p));
	}
	return out;
}

void replayed_json(const struct sweep *s, json_t *out)
{
	if (s->used.records)
		json_object_set_new(out, "used", replayed_json_used(&s->used));
	if (!s->keep_outcomes)
		return;
	json_object_set_new(out, "replay",
			    json_pack("{s:b, s:f, s:i, s:i, s:b, s:o}", "batch", s->batch, "tau_s",
				      OUTCOME_TAU_MS / 1000, "weeks", (int)replayed_weeks(s),
				      "weeks_needed", OUTCOME_WEEKS_MIN, "intervals_over_weeks",
				      s->seeds == 1 && replayed_weeks(s) >= OUTCOME_WEEKS_MIN,
				      "points", replayed_json_points(s)));
}

static void replayed_csv_rows(const struct sweep *s, size_t point, size_t series, FILE *f)
{
	const struct outcome *o = replayed_outcome(s, point, series);

	for (unsigned int g = 0; g < OUTCOME_GROUPS; g++) {
		for (uint32_t i = 0; i < o->n[g]; i++) {
			const struct outcome_row *row = &o->rows[g][i];

			report_csv_text(f, s->points[point].label);
			fputc(',', f);
			report_csv_text(f, s->series[series].label);
			fprintf(f, ",%s,", outcome_group_name(g));
			if (g == OUTCOME_CLASSES)
				fputs(outcome_class_name((enum outcome_class)row->key), f);
			else
				fprintf(f, "%.0f", row->key);
			fprintf(f, ",%.0f", row->sums[OUTCOME_JOBS]);
			for (unsigned int k = OUTCOME_SLOWDOWN; k < OUTCOME_SUMS; k++)
				fprintf(f, ",%.9g", replayed_row_mean(row, k));
			fputc('\n', f);
		}
	}
}

int replayed_csv(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	int ret = report_csv_facts(s, f);

	if (ret)
		return ret;
	fputs("point,series,group,key,jobs,slowdown,bounded_slowdown,wait_s,turnaround_s\n", f);
	for (size_t p = 0; p < s->npoints; p++)
		for (size_t k = 0; k < s->nseries; k++)
			replayed_csv_rows(s, p, k, f);
	return 0;
}
