/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Axes for gnuplot: ranges, labels, and the word that an axis is logarithmic. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/svg.h"

#define TITLE_LONG 210 /* pixels: more than the height of a panel */

/* Breaks a title that is longer than its axis at the blank nearest to its middle. */
static void broken_title(FILE *f, char *text)
{
	size_t n = strlen(text), best = 0;

	for (size_t i = 1; axis_text_width(text) > TITLE_LONG && i < n; i++)
		if (text[i] == ' ' &&
		    (!best || labs((long)(2 * i) - (long)n) < labs((long)(2 * best) - (long)n)))
			best = i;
	if (!best) {
		svg_quoted(f, text);
		return;
	}
	text[best] = '\0';
	svg_quoted(f, text);
	fputs(".\"\\n\".", f);
	svg_quoted(f, text + best + 1);
}

/* Writes TITLE; a logarithmic scale is said in its brackets, or in brackets of its own. */
static void axis_title(const char *title, bool log, FILE *f)
{
	size_t n = strlen(title);
	char text[256];

	if (!log)
		snprintf(text, sizeof(text), "%s", title);
	else if (n && title[n - 1] == ')')
		snprintf(text, sizeof(text), "%.*s, log scale)", (int)(n - 1), title);
	else
		snprintf(text, sizeof(text), "%s%s(log scale)", title, n ? " " : "");
	broken_title(f, text);
}

void svg_y_axis(const struct axis *a, const char *title, FILE *f)
{
	fputs("set ylabel ", f);
	axis_title(title, a->log, f);
	fprintf(f, "\n%sset logscale y\nset yrange [%.9g:%.9g]\nset ytics (", a->log ? "" : "un",
		a->low, a->high);
	for (size_t i = 0; i < a->ntics; i++) {
		char label[AXIS_LABEL];

		axis_label(a->tic[i], label);
		fprintf(f, "%s'%s' %.9g", i ? ", " : "", label, a->tic[i]);
	}
	fputs(")\n", f);
}

void svg_x_points(const struct axis *a, const struct sweep *s, double length, FILE *f)
{
	double *at = calloc(s->npoints + 1, sizeof(*at));
	const char **label = calloc(s->npoints + 1, sizeof(*label));
	bool *fits = calloc(s->npoints + 1, sizeof(*fits));
	const char *comma = "";

	fputs("set xlabel ", f);
	axis_title(s->x_name, a->log, f); /* broken in narrow panels, too */
	fprintf(f, "\n%sset logscale x\nset xrange [%.9g:%.9g]\n", a->log ? "" : "un", a->low,
		a->high);
	for (size_t p = 0; at && label && fits && p < s->npoints; p++) {
		at[p] = axis_at(a, svg_x(s, p));
		label[p] = s->points[p].label;
	}
	if (at && label && fits) {
		axis_labels_fit(at, label, s->npoints, length, fits);
		fputs("set xtics (", f);
		for (size_t p = 0; p < s->npoints; p++) {
			fputs(comma, f);
			svg_quoted(f, fits[p] ? label[p] : "");
			fprintf(f, " %.9g", svg_x(s, p));
			comma = ", ";
		}
		fputs(")\n", f);
	}
	free(at);
	free(label);
	free(fits);
}

double svg_x(const struct sweep *s, size_t point)
{
	return isfinite(s->points[point].x) ? s->points[point].x : (double)point;
}

void svg_y_fit(const struct report *r, double unit, struct axis *a)
{
	const struct sweep *s = r->sweep;
	struct axis_values v;

	axis_values_init(&v);
	for (size_t k = 0; k < s->nseries; k++) {
		double value[s->npoints + 1], high[s->npoints + 1];

		for (size_t p = 0; p < s->npoints; p++) {
			struct interval i = sweep_mean(s, p, k, r->y);

			value[p] = i.mean / unit;
			high[p] = i.high / unit;
		}
		axis_values_add(&v, value, high, s->npoints);
	}
	if (measure_is_share(r->y) && v.most <= 1)
		v.reach = fmin(v.reach, 1);
	axis_fit(a, &v, r->log_y);
}
