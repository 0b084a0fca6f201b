/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Scatter plots of a probe's executions.  Dots show those of the first seed; lines join the means
 * of ten groups by x, about equally large, over all seeds.
 */
#include <math.h>
#include <stdlib.h>

#include "sim/report/svg.h"

#define GROUPS 10

struct cloud {
	const struct sweep *sweep;
	size_t series;
	enum probe_column x, y;
};

static const struct sweep_result *result_of(const struct cloud *c, uint32_t seed)
{
	return sweep_result(c->sweep, 0, c->series, seed);
}

/* Selects executions by KEEP: -1 all; 1 those that were faster locally; 0 the others. */
static bool kept(const struct probe_row *row, int keep)
{
	return keep < 0 || keep == (row->v[PROBE_LOCAL_S] <= row->v[PROBE_REMOTE_S]);
}

static void dots(const struct cloud *c, unsigned int name, int keep, FILE *f)
{
	const struct sweep_result *r = result_of(c, 0);

	fprintf(f, "$c%u << END_OF_DATA\n", name);
	for (uint32_t i = 0; i < r->nrows; i++) {
		if (!kept(&r->rows[i], keep))
			continue;
		svg_value(f, r->rows[i].v[c->x]);
		svg_value(f, r->rows[i].v[c->y]);
		fputc('\n', f);
	}
	fputs("NaN NaN\nEND_OF_DATA\n", f);
}

struct dot {
	double x, y;
};

static int by_place(const void *a, const void *b)
{
	const struct dot *p = a, *q = b;

	if (p->x != q->x)
		return p->x < q->x ? -1 : 1;
	return (p->y > q->y) - (p->y < q->y);
}

static void group_means(const struct dot *all, size_t n, FILE *f)
{
	size_t from, to = 0;

	for (size_t g = 0; g < GROUPS; g++) {
		double x = 0, y = 0;

		from = to;
		to = (g + 1) * n / GROUPS > from ? (g + 1) * n / GROUPS : from;
		while (to > from && to < n && all[to].x == all[to - 1].x)
			to++; /* equal x values stay in one group */
		for (size_t i = from; i < to; i++) {
			x += all[i].x;
			y += all[i].y;
		}
		if (to == from)
			continue;
		svg_value(f, x / (double)(to - from));
		svg_value(f, y / (double)(to - from));
		fputc('\n', f);
	}
}

static void means(const struct cloud *c, unsigned int name, FILE *f)
{
	struct dot *all;
	size_t n = 0, k = 0;

	for (uint32_t s = 0; s < c->sweep->seeds; s++)
		n += result_of(c, s)->nrows;
	all = calloc(n ? n : 1, sizeof(*all));
	fprintf(f, "$m%u << END_OF_DATA\n", name);
	for (uint32_t s = 0; s < c->sweep->seeds && all; s++)
		for (uint32_t i = 0; i < result_of(c, s)->nrows; i++, k++)
			all[k] = (struct dot){result_of(c, s)->rows[i].v[c->x],
					      result_of(c, s)->rows[i].v[c->y]};
	if (all) {
		qsort(all, n, sizeof(*all), by_place);
		group_means(all, n, f);
	}
	fputs("NaN NaN\nEND_OF_DATA\n", f);
	free(all);
}

/* Adds the values of COLUMN that the dots show. */
static void add_dots(const struct sweep *sweep, enum probe_column column, struct axis_values *v)
{
	for (size_t k = 0; k < sweep->nseries; k++) {
		const struct sweep_result *r = sweep_result(sweep, 0, k, 0);

		for (uint32_t i = 0; i < r->nrows; i++)
			axis_values_add(v, &r->rows[i].v[column], NULL, 1);
	}
	v->lowest_middle = v->most; /* a dot near 0 needs no logarithmic axis */
}

static void svg_scatter_axes(const struct report *r, const struct scatter *s, const char *y,
			     FILE *f)
{
	struct axis_values v;
	struct axis a;

	axis_values_init(&v);
	add_dots(r->sweep, s->x, &v);
	axis_fit(&a, &v, false);
	fputs("set xlabel ", f);
	svg_quoted(f, probe_column_title(s->x));
	fprintf(f, "\nset xrange [%.9g:%.9g]\nset offsets graph 0.02, graph 0.02, 0, 0\n", a.low,
		a.high);
	axis_values_init(&v);
	for (int i = 0; i < 3 && s->y[i] != PROBE_HOUR; i++)
		add_dots(r->sweep, s->y[i], &v);
	axis_fit(&a, &v, r->log_y);
	svg_y_axis(&a, y, f);
	fputs("set key outside top center horizontal\n"
	      "set style fill transparent solid 0.5 noborder\n",
	      f);
}

/* Plots local against remote load; the mark shows the faster site. */
static void plane(const struct report *r, const struct scatter *s, FILE *f)
{
	struct cloud c = {r->sweep, 0, s->x, s->y[0]};

	svg_scatter_axes(r, s, probe_column_title(s->y[0]), f);
	dots(&c, 0, 1, f);
	dots(&c, 1, 0, f);
	fprintf(f,
		"plot $c0 with points pointtype 6 pointsize 0.7 linecolor rgb '%s' title "
		"'faster here', $c1 with points pointtype 7 pointsize 0.6 linecolor rgb '%s' "
		"title 'faster there'\n",
		svg_colour(4), svg_colour(5));
}

void svg_scatter(const struct report *r, FILE *f)
{
	static const unsigned int colours[] = {4, 5, 3, 6};
	const struct scatter *s = r->experiment ? r->experiment->scatter : NULL;
	const struct sweep *sweep = r->sweep;
	unsigned int n = 0;
	bool several;

	if (!s || s->plane) {
		if (s)
			plane(r, s, f);
		else
			svg_empty(f);
		return;
	}
	several = s->y[1] != PROBE_HOUR;
	svg_scatter_axes(r, s, several ? "response time (s)" : probe_column_title(s->y[0]), f);
	for (size_t k = 0; k < sweep->nseries; k++) {
		for (int i = 0; i < 3 && s->y[i] != PROBE_HOUR; i++, n++) {
			struct cloud c = {sweep, k, s->x, s->y[i]};

			dots(&c, n, -1, f);
			means(&c, n, f);
		}
	}
	fputs("plot ", f);
	for (unsigned int i = 0, per = n / (unsigned int)sweep->nseries; i < n; i++) {
		const char *rgb = svg_colour(colours[i % 4]);
		const char *title =
			several ? probe_column_title(s->y[i % per]) : sweep->series[i / per].label;

		fprintf(f,
			"%s$c%u with points pointtype %u pointsize 0.5 linecolor rgb '%s' %s, "
			"$m%u with linespoints pointtype 7 pointsize 0.5 linewidth 1.6 linecolor "
			"rgb '%s' title ",
			i ? ", " : "", i, 6 + 2 * (i % 2), rgb,
			n == 1 ? "title 'an execution, first seed'" : "notitle", i, rgb);
		svg_quoted(f, n == 1 ? "mean of a tenth of all executions" : title);
	}
	fputc('\n', f);
}
