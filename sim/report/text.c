/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Results as tables for people, 80 columns wide. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/replayed.h"
#include "sim/report/table.h"
#include "sim/report/unlike.h"

/* Writes three significant digits, without an exponent where that is readable. */
static void quantity(char *out, size_t size, double value)
{
	double magnitude = fabs(value);

	if (!isfinite(value))
		snprintf(out, size, "-");
	else if (magnitude >= 1e9 || (magnitude < 0.001 && magnitude > 0))
		snprintf(out, size, "%.3g", value);
	else if (magnitude >= 100)
		snprintf(out, size, "%.0f", value);
	else if (magnitude >= 10)
		snprintf(out, size, "%.1f", value);
	else
		snprintf(out, size, "%.3g", value);
}

/* Writes "1.22 +-0.1": the mean and half the interval with two digits. */
static void cell_text(char *out, size_t size, struct interval i)
{
	char mean[32], half[32];

	quantity(mean, sizeof(mean), i.mean);
	if (i.n < 2 || !isfinite(i.mean)) {
		snprintf(out, size, "%s", mean);
		return;
	}
	snprintf(half, sizeof(half), "%.2g", (i.high - i.low) / 2);
	if (strchr(half, 'e'))
		quantity(half, sizeof(half), (i.high - i.low) / 2);
	snprintf(out, size, "%s +-%s", mean, half);
}

static void tell_seeds(const struct sweep *s, FILE *f)
{
	uint32_t least = sweep_done_least(s);

	if (s->keep_outcomes)
		replayed_tell_intervals(s, f);
	else if (s->seeds > 1 && least < s->seeds)
		fprintf(f, "mean over %u to %u seeds +- half of the 95 %% interval\n", least,
			s->seeds);
	else if (s->seeds > 1)
		fprintf(f, "mean over %u seeds +- half of the 95 %% interval\n", s->seeds);
	else
		fputs("one seed gives no interval (use --seeds N)\n", f);
}

/* Prints a row for each point and a column for each series. */
static int grid(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	struct table t;

	if (table_init(&t, s->npoints + 1, s->nseries + 1))
		return -ENOMEM;
	fprintf(f, "%s,%c", measure_title(r->y), s->keep_outcomes ? '\n' : ' ');
	tell_seeds(s, f);
	table_set(&t, 0, 0, "%s", s->x_name);
	for (size_t k = 0; k < s->nseries; k++)
		table_set(&t, 0, k + 1, "%s", s->series[k].label);
	for (size_t p = 0; p < s->npoints; p++) {
		table_set(&t, p + 1, 0, "%s", s->points[p].label);
		for (size_t k = 0; k < s->nseries; k++) {
			char text[80];

			cell_text(text, sizeof(text), sweep_mean(s, p, k, r->y));
			table_set(&t, p + 1, k + 1, "%s", text);
		}
	}
	table_print(&t, f);
	table_free(&t);
	return 0;
}

enum form { FORM_INTERVAL, FORM_NUMBER, FORM_TIME, FORM_TIME_INTERVAL, FORM_PERCENT };

struct column {
	enum measure m;
	const char *over, *title; /* two lines of heading */
	enum form form;
};

static const struct column of_jobs[] = {
	{M_SLOWDOWN, "slowdown", "mean", FORM_INTERVAL},
	{M_SLOWDOWN_P95, "", "p95", FORM_NUMBER},
	{M_TURNAROUND, "turnaround", "mean", FORM_TIME},
	{M_TURNAROUND_P95, "", "p95", FORM_TIME},
	{M_CPU, "cpu", "busy", FORM_PERCENT},
	{M_DISK, "disk", "busy", FORM_PERCENT},
	{M_TRANSFERS, "tasks", "moved", FORM_NUMBER},
	{M_MOVED_MB, "MB", "moved", FORM_NUMBER},
	{M_COMPLETED, "jobs", "ended", FORM_NUMBER},
};
static const struct column of_batch[] = {
	{M_WAIT, "wait", "mean", FORM_TIME_INTERVAL},
	{M_TURNAROUND, "turnaround", "mean", FORM_TIME_INTERVAL},
	{M_BOUNDED, "bounded", "slowdown", FORM_INTERVAL},
	{M_SLOWDOWN_P95, "slowdown", "p95", FORM_NUMBER},
	{M_CPU, "cpu", "busy", FORM_PERCENT},
	{M_COMPLETED, "jobs", "ended", FORM_NUMBER},
};
static const struct column of_probe[] = {
	{M_WIN, "win", "rate", FORM_INTERVAL},
	{M_WIN_LOCAL, "right", "local", FORM_INTERVAL},
	{M_WIN_REMOTE, "right", "remote", FORM_INTERVAL},
	{M_SENT, "", "sent", FORM_INTERVAL},
	{M_LOCAL_BETTER, "local", "better", FORM_INTERVAL},
	{M_LOCAL_S, "local", "s", FORM_INTERVAL},
	{M_REMOTE_S, "remote", "s", FORM_INTERVAL},
};

struct unit {
	double s;
	const char *name;
};

/* The largest unit of time in which the shortest turn-around is at least 2. */
static const struct unit *text_unit_of(const struct sweep *s)
{
	static const struct unit units[] = {{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}};
	const struct unit *u = units;
	double least = INFINITY;

	for (size_t k = 0; k < s->nseries; k++)
		least = fmin(least, sweep_mean(s, 0, k, M_TURNAROUND).mean);
	while (u->s > 1 && !(least < INFINITY && least >= 2 * u->s))
		u++;
	return u;
}

#define TIME_NONE 1e-4 /* units of time that are shown as 0 */

static void set_cell(struct table *t, size_t row, size_t column, enum form form,
		     const struct unit *unit, struct interval i)
{
	char text[80];

	if (form == FORM_TIME_INTERVAL) {
		i.mean /= unit->s;
		i.low /= unit->s;
		i.high /= unit->s;
		if (fabs(i.mean) < TIME_NONE)
			i.mean = i.low = i.high = 0;
	}
	if (form == FORM_INTERVAL || form == FORM_TIME_INTERVAL)
		cell_text(text, sizeof(text), i);
	else
		quantity(text, sizeof(text),
			 form == FORM_PERCENT ? 100 * i.mean
			 : form == FORM_TIME  ? i.mean / unit->s
					      : i.mean);
	table_set(t, row, column, "%s%s", text,
		  form == FORM_PERCENT && isfinite(i.mean) ? " %" : "");
}

#define ALIKE 1.01 /* with one seed, slowdowns within 1 % count as alike */

/* Returns whether the data do not show that series K is worse than BEST, seed by seed at 95 %. */
static bool alike(const struct sweep *s, size_t k, size_t best, double *base, double *value)
{
	sweep_cell(s, 0, best, M_SLOWDOWN, value);
	sweep_cell(s, 0, k, M_SLOWDOWN, base);
	return !stats_above(stats_factor(base, value, s->seeds), s->seeds > 1 ? 1 : ALIKE);
}

/* Prints the sentence that says which policy to choose. */
static int tell_best(const struct sweep *s, FILE *f)
{
	double *values = calloc(s->seeds, 2 * sizeof(*values)), best_mean, worst_mean;
	size_t best = 0, worst = 0;
	unsigned int others = 0;

	if (!values)
		return -ENOMEM;
	for (size_t k = 1; k < s->nseries; k++) {
		double mean = sweep_mean(s, 0, k, M_SLOWDOWN).mean;

		if (mean < sweep_mean(s, 0, best, M_SLOWDOWN).mean)
			best = k;
		if (mean > sweep_mean(s, 0, worst, M_SLOWDOWN).mean)
			worst = k;
	}
	best_mean = sweep_mean(s, 0, best, M_SLOWDOWN).mean;
	worst_mean = sweep_mean(s, 0, worst, M_SLOWDOWN).mean;
	if (worst_mean > best_mean) {
		fprintf(f, "\nleast mean slowdown: %s, %.0f %% below %s\n", s->series[best].label,
			100 * (1 - best_mean / worst_mean), s->series[worst].label);
		for (size_t k = 0; k < s->nseries; k++)
			if (k != best && alike(s, k, best, values, values + s->seeds))
				fprintf(f, "%s%s",
					others++       ? ", "
					: s->seeds > 1 ? "these seeds do not distinguish from it: "
						       : "within 1 % of it: ",
					s->series[k].label);
		if (others)
			fputc('\n', f);
	} else if (s->nseries > 1 && isfinite(best_mean)) {
		fputs("\nthe policies do not differ in mean slowdown\n", f);
	}
	free(values);
	return 0;
}

static bool any_unfinished(const struct sweep *s)
{
	for (size_t k = 0; k < s->nseries; k++)
		if (sweep_mean(s, 0, k, M_UNFINISHED).mean > 0)
			return true;
	return false;
}

/* One point: prints a row for each series and a column for each measure. */
static int comparison(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	bool probe = sweep_has(s, M_WIN);
	const struct column *columns = probe ? of_probe : s->batch ? of_batch : of_jobs;
	size_t n = probe      ? sizeof(of_probe) / sizeof(*of_probe)
		   : s->batch ? sizeof(of_batch) / sizeof(*of_batch)
			      : sizeof(of_jobs) / sizeof(*of_jobs);
	const struct unit *unit = text_unit_of(s);
	struct table t;

	/* The last column of jobs is shown only if some jobs have not ended. */
	n -= !probe && !any_unfinished(s);
	if (table_init(&t, s->nseries + 2, n + 1))
		return -ENOMEM;
	tell_seeds(s, f);
	table_set(&t, 1, 0, "policy");
	for (size_t c = 0; c < n; c++) {
		bool time = columns[c].form == FORM_TIME || columns[c].form == FORM_TIME_INTERVAL;

		table_set(&t, 0, c + 1, "%s", columns[c].over);
		table_set(&t, 1, c + 1, "%s%s%s", columns[c].title, time ? " " : "",
			  time ? unit->name : "");
	}
	for (size_t k = 0; k < s->nseries; k++) {
		table_set(&t, k + 2, 0, "%s", s->series[k].label);
		for (size_t c = 0; c < n; c++)
			set_cell(&t, k + 2, c + 1, columns[c].form, unit,
				 sweep_mean(s, 0, k, columns[c].m));
	}
	table_print(&t, f);
	table_free(&t);
	if (s->keep_outcomes)
		return replayed_effects(s, f);
	return probe || r->experiment ? 0 : tell_best(s, f);
}

/* Prints a line about a claim: NAME, then the text. */
static void remark(FILE *f, const char *name, const char *text)
{
	fprintf(f, "    %s", name);
	table_paragraph(f, 4 + strlen(name), 6, text);
}

static void text_claims(const struct report *r, FILE *f)
{
	for (size_t i = 0; i < r->njudged; i++) {
		const struct claim *c = r->judged[i].claim;
		const struct judgement *j = &r->judged[i].judgement;
		bool failed = verdict_needs_reason(j->verdict);
		char more[80];

		fprintf(f, "%s [%c] ", i ? "" : "\nclaims:\n",
			c->type == CLAIM_QUANTITATIVE ? 'Q' : 'O');
		table_paragraph(f, 5, 6, c->text);
		fprintf(f, "    %s%s", verdict_name(j->verdict), j->measured[0] ? ": " : "");
		table_paragraph(f, 6 + strlen(verdict_name(j->verdict)), 6, j->measured);
		verdict_more(j, more, sizeof(more));
		if (more[0])
			remark(f, "", more);
		if (j->start[0])
			remark(f, "start: ", j->start);
		if (c->calibrates)
			remark(f, "calibrates: ", CALIBRATES_TEXT);
		if (c->reading)
			remark(f, "reading: ", c->reading);
		if (c->why && failed)
			remark(f, "why: ", c->why);
		if (c->bound && failed)
			remark(f, "backed by: iocom sim ", c->bound);
	}
}

/* Says how the parameters of a run from the command line differ from the papers'. */
static int tell_unlike_papers(const struct sweep *s, FILE *f)
{
	char *text = report_unlike(s);

	if (!text)
		return -ENOMEM;
	if (*text) {
		fputs("unlike the papers' configurations: ", f);
		table_paragraph(f, 35, 2, text);
	}
	free(text);
	return 0;
}

int report_text(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	const char *nodes = settings_get(&s->settings, "nodes");
	int ret;

	fprintf(f, "%s: ", s->id);
	table_text(f, s->title, SIZE_MAX);
	fputc('\n', f);
	if (s->source[0]) {
		fputs("workload: ", f);
		table_paragraph(f, 10, 2, s->source);
	}
	if (s->synthetic[0]) {
		fputs("generated, not in the trace: ", f);
		table_paragraph(f, 29, 2, s->synthetic);
	}
	if (nodes && !r->experiment)
		fprintf(f, "machines: %.*s%s\n", 200, nodes, strlen(nodes) > 200 ? "..." : "");
	if (!r->experiment && tell_unlike_papers(s, f))
		return -ENOMEM;
	ret = s->npoints == 1 ? comparison(r, f) : grid(r, f);
	text_claims(r, f);
	return ret;
}

double report_time_unit(const struct sweep *s, const char **name)
{
	const struct unit *u = text_unit_of(s);

	*name = u->name;
	return u->s;
}
