/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Results as tables for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* Three significant digits without exponents where that is readable. */
static void quantity(char *out, size_t size, double value)
{
	double magnitude = fabs(value);

	if (!isfinite(value))
		snprintf(out, size, "-");
	else if (magnitude >= 1e6 || (magnitude < 0.001 && magnitude > 0))
		snprintf(out, size, "%.3g", value);
	else if (magnitude >= 100)
		snprintf(out, size, "%.0f", value);
	else if (magnitude >= 10)
		snprintf(out, size, "%.1f", value);
	else
		snprintf(out, size, "%.3g", value);
}

static void cell_text(char *out, size_t size, struct interval i)
{
	char mean[32], half[32];

	quantity(mean, sizeof(mean), i.mean);
	if (i.n < 2 || !isfinite(i.mean)) {
		snprintf(out, size, "%s", mean);
		return;
	}
	quantity(half, sizeof(half), (i.high - i.low) / 2);
	snprintf(out, size, "%s +-%s", mean, half);
}

static int widest(const struct sweep *s, bool points)
{
	size_t width = points ? strlen(s->x_name) : 6, n = points ? s->npoints : s->nseries;

	for (size_t i = 0; i < n; i++) {
		size_t w = strlen(points ? s->points[i].label : s->series[i].label);

		width = w > width ? w : width;
	}
	return (int)(width < 48 ? width : 48);
}

/* A row a point, a column a series. */
static void grid(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	int first = widest(s, true), width = widest(s, false);

	if (width < 16)
		width = 16;
	fprintf(f, "%s, mean over %u seed%s +- half of the 95 %% interval\n", measure_title(r->y),
		s->seeds, s->seeds == 1 ? "" : "s");
	fprintf(f, "%-*s", first, s->x_name);
	for (size_t k = 0; k < s->nseries; k++)
		fprintf(f, "  %*s", width, s->series[k].label);
	fputc('\n', f);
	for (size_t p = 0; p < s->npoints; p++) {
		fprintf(f, "%-*s", first, s->points[p].label);
		for (size_t k = 0; k < s->nseries; k++) {
			char text[80];

			cell_text(text, sizeof(text), sweep_mean(s, p, k, r->y));
			fprintf(f, "  %*s", width, text);
		}
		fputc('\n', f);
	}
}

/* One point: a row a series, a column a measure. */
static void comparison(const struct report *r, FILE *f)
{
	static const struct {
		enum measure m;
		const char *title;
	} columns[] = {
		{M_SLOWDOWN, "slowdown"},
		{M_SLOWDOWN_P95, "p95"},
		{M_TURNAROUND, "turnaround s"},
		{M_TURNAROUND_P95, "p95 s"},
		{M_CPU, "cpu"},
		{M_DISK, "disk"},
		{M_TRANSFERS, "moved"},
		{M_MOVED_MB, "moved MB"},
		{M_COMPLETED, "jobs"},
	};
	const struct sweep *s = r->sweep;
	int first = widest(s, false);

	fprintf(f, "mean over %u seed%s +- half of the 95 %% interval\n%-*s", s->seeds,
		s->seeds == 1 ? "" : "s", first, "policy");
	for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++)
		fprintf(f, "  %16s", columns[c].title);
	fputc('\n', f);
	for (size_t k = 0; k < s->nseries; k++) {
		fprintf(f, "%-*s", first, s->series[k].label);
		for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
			char text[80];

			cell_text(text, sizeof(text), sweep_mean(s, 0, k, columns[c].m));
			fprintf(f, "  %16s", text);
		}
		fputc('\n', f);
	}
}

static void claims(const struct report *r, FILE *f)
{
	for (size_t i = 0; i < r->njudged; i++) {
		const struct claim *c = r->judged[i].claim;
		const struct judgement *j = &r->judged[i].judgement;

		fprintf(f, "%s [%c] %s\n", i ? "" : "\nclaims:\n",
			c->type == CLAIM_QUANTITATIVE ? 'Q' : 'O', c->text);
		fprintf(f, "    %s%s%s\n", verdict_name(j->verdict), j->measured[0] ? ": " : "",
			j->measured);
		if (c->reading)
			fprintf(f, "    reading: %s\n", c->reading);
		if (c->why && j->verdict != VERDICT_HOLDS)
			fprintf(f, "    why: %s\n", c->why);
		if (c->bound && j->verdict != VERDICT_HOLDS)
			fprintf(f, "    backed by: iocom-sim %s\n", c->bound);
	}
}

void report_text(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;

	fprintf(f, "%s: %s\n", s->id, s->title);
	if (s->source[0])
		fprintf(f, "workload: %s\n", s->source);
	if (s->synthetic[0])
		fprintf(f, "generated, not in the trace: %s\n", s->synthetic);
	if (s->npoints == 1)
		comparison(r, f);
	else
		grid(r, f);
	claims(r, f);
}
