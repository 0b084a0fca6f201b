/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Figures of a grid: lines with intervals, bars, small multiples. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/svg.h"

#define LETTER 7.4   /* pixels */
#define DODGE  0.007 /* of the width, between the marks of two series at a point */

struct grid {
	const struct report *report;
	const struct look *look;
	struct axis x, y;
};

/* Returns whether the series' label begins with FACET (LENGTH characters); NULL: always. */
static bool in_facet(const struct sweep *s, size_t k, const char *facet, size_t length)
{
	return !facet || (!strncmp(s->series[k].label, facet, length) &&
			  !strncmp(s->series[k].label + length, ", ", 2));
}

/* The place of series K among those of its panel, and their number. */
static size_t place(const struct report *r, size_t k, size_t *all)
{
	const char *label = r->sweep->series[k].label;
	size_t length = strcspn(label, ","), before = 0;

	*all = 0;
	for (size_t i = 0; i < r->sweep->nseries; i++) {
		if (!in_facet(r->sweep, i, r->facets ? label : NULL, length))
			continue;
		before += i < k;
		++*all;
	}
	return before;
}

/* Marks at one point stand side by side: those on another would hide it. */
static double dodged(const struct grid *g, size_t point, size_t k)
{
	size_t all, n = place(g->report, k, &all);
	double by = DODGE * ((double)n - ((double)all - 1) / 2);

	return axis_value(&g->x, axis_at(&g->x, svg_x(g->report->sweep, point)) + by);
}

/* Writes $d0, $d1 ...: a block for each series.  Intervals end where the figure ends. */
static void data(const struct grid *g, FILE *f)
{
	const struct sweep *s = g->report->sweep;

	for (size_t k = 0; k < s->nseries; k++) {
		fprintf(f, "$d%zu << END_OF_DATA\n", k);
		for (size_t p = 0; p < s->npoints; p++) {
			struct interval i = sweep_mean(s, p, k, g->report->y);

			svg_quoted(f, s->points[p].label);
			svg_value(f, dodged(g, p, k));
			svg_value(f, i.mean);
			svg_value(f, isfinite(i.low) ? fmax(i.low, g->y.low) : i.low);
			svg_value(f, isfinite(i.high) ? fmin(i.high, g->y.high) : i.high);
			fputc('\n', f);
		}
		fputs("END_OF_DATA\n", f);
	}
}

static bool svg_grid_has_values(const struct report *r, const char *facet, size_t length)
{
	const struct sweep *s = r->sweep;

	for (size_t k = 0; k < s->nseries; k++)
		for (size_t p = 0; p < s->npoints; p++)
			if (in_facet(s, k, facet, length) &&
			    isfinite(sweep_mean(s, p, k, r->y).mean))
				return true;
	return false;
}

/* Intervals are thin and below all lines, whose dashes they do not share. */
static void plot_intervals(const struct grid *g, size_t k, FILE *f)
{
	fprintf(f,
		"$d%zu using 2:3:4:5 with yerrorbars linecolor rgb '%s' pointtype 0 linewidth 0.6 "
		"notitle, ",
		k, svg_colour(g->look[k].colour));
}

/* The first lines and marks are the largest, so that they show below those drawn later. */
static void plot_line(const struct grid *g, size_t k, FILE *f)
{
	const struct look *look = &g->look[k];
	size_t all, n = place(g->report, k, &all);
	double late = all > 1 ? (double)n / (double)(all - 1) : 0;

	fprintf(f,
		"$d%zu using 2:3 with linespoints linecolor rgb '%s' pointtype %u pointsize %.2f "
		"linewidth %.2f dashtype %u ",
		k, svg_colour(look->colour), look->mark, 0.95 - 0.25 * late, 2 - 1.1 * late,
		look->dash);
}

static void plot_bars(const struct grid *g, size_t k, FILE *f)
{
	char colour[SVG_COLOUR];

	fprintf(f, "$d%zu using 3:4:5:xtic(1) linecolor rgb '%s' ", k,
		svg_light(g->look[k].colour, colour));
}

/* Plots the series of a facet; those of panels have their names in a legend of all. */
static void plot(const struct grid *g, const char *facet, size_t length, FILE *f)
{
	const struct report *r = g->report;
	const struct sweep *s = r->sweep;
	bool bars = r->plot == PLOT_BARS, first = true;

	if (!svg_grid_has_values(r, facet, length)) {
		svg_empty(f);
		return;
	}
	fputs("plot ", f);
	for (size_t k = 0; k < s->nseries && !bars; k++)
		if (in_facet(s, k, facet, length))
			plot_intervals(g, k, f);
	for (size_t k = 0; k < s->nseries; k++) {
		if (!in_facet(s, k, facet, length))
			continue;
		fputs(first ? "" : ", ", f);
		first = false;
		(bars ? plot_bars : plot_line)(g, k, f);
		fputs(facet ? "no" : "", f);
		fputs("title ", f);
		svg_quoted(f, svg_short_label(r, k));
	}
	fputc('\n', f);
}

/* Turns the names below N bars if they do not fit on WIDTH pixels; the last needs room beside it.
 */
static void turn_names(double widest, double last, size_t n, double width, FILE *f)
{
	if (widest + LETTER <= width / (double)n)
		return;
	fputs("set xtics rotate by -35\n", f);
	if (last > 0)
		fprintf(f, "set rmargin %.0f\n", 2 + last * 0.8 / LETTER);
}

static void turn_point_names(const struct report *r, double width, FILE *f)
{
	const struct sweep *s = r->sweep;
	double widest = 0, last = 0;

	for (size_t p = 0; p < s->npoints; p++) {
		last = axis_text_width(s->points[p].label);
		widest = fmax(widest, last);
	}
	turn_names(widest, r->facets ? last : 0, s->npoints, width, f);
}

static void turn_series_names(const struct sweep *s, double width, FILE *f)
{
	double widest = 0, last = 0;

	for (size_t k = 0; k < s->nseries; k++) {
		last = axis_text_width(s->series[k].label);
		widest = fmax(widest, last);
	}
	turn_names(widest, last, s->nseries, width, f);
}

static void bar_style(const struct sweep *s, FILE *f)
{
	fprintf(f, "set xrange [-0.5:%zu.5]\n", s->npoints - 1);
	fputs("set style data histograms\nset style histogram errorbars gap 1.5 linewidth 1\n"
	      "set style fill solid 1 border rgb '#333333'\nset boxwidth 0.9\n",
	      f);
}

static bool first_of_facet(const struct sweep *s, size_t k)
{
	size_t length = strcspn(s->series[k].label, ",");

	for (size_t i = 0; i < k; i++)
		if (in_facet(s, i, s->series[k].label, length))
			return false;
	return true;
}

static size_t count_panels(const struct sweep *s)
{
	size_t panels = 0;

	for (size_t k = 0; k < s->nseries; k++)
		panels += first_of_facet(s, k);
	return panels;
}

/* Many bars with long names get a row of their own. */
static size_t count_columns(const struct report *r)
{
	if (r->plot == PLOT_BARS && r->sweep->npoints > 6)
		return 1;
	return count_panels(r->sweep) > 4 ? 3 : 2;
}

/* --- the legend of all panels ------------------------------------------------------ */

#define ENTRY_MARK 34 /* pixels for the mark of an entry, and before the next entry */
#define ENTRY_GAP  18
#define LINE	   18 /* height of a row */
#define TITLE	   30 /* height of the title, if it has one line */

static double entry_width(const struct report *r, size_t k)
{
	return ENTRY_MARK + axis_text_width(svg_short_label(r, k)) + ENTRY_GAP;
}

/* The series after K that have an entry of their own: the first of each name. */
static size_t next_entry(const struct report *r, size_t k)
{
	bool again = true;

	while (again && k < r->sweep->nseries) {
		again = false;
		for (size_t i = 0; i < k && !again; i++)
			again = !strcmp(svg_short_label(r, i), svg_short_label(r, k));
		k += again;
	}
	return k;
}

/* The end of the row that begins with entry FROM, and its width. */
static size_t row_end(const struct report *r, size_t from, double *width)
{
	size_t k = from;

	*width = 0;
	while (k < r->sweep->nseries &&
	       (k == from || *width + entry_width(r, k) <= SVG_WIDTH - 2 * ENTRY_GAP)) {
		*width += entry_width(r, k);
		k = next_entry(r, k + 1);
	}
	return k;
}

static unsigned int legend_rows(const struct report *r)
{
	unsigned int rows = 0;
	double width;

	for (size_t k = 0; k < r->sweep->nseries; k = row_end(r, k, &width))
		rows++;
	return rows;
}

static unsigned int head_height(const struct report *r)
{
	return TITLE + (svg_title_lines(r->sweep) - 1) * LINE;
}

unsigned int svg_facets_height(const struct report *r)
{
	size_t columns = count_columns(r), rows = (count_panels(r->sweep) + columns - 1) / columns;

	return head_height(r) + LINE * legend_rows(r) +
	       (unsigned int)rows * (columns == 1 ? 310 : 270);
}

static void legend_entry(const struct grid *g, size_t k, double x, double y, FILE *f)
{
	const struct look *look = &g->look[k];
	bool bars = g->report->plot == PLOT_BARS;
	char colour[SVG_COLOUR];
	double height = svg_facets_height(g->report), at = 1 - y / height;

	if (!bars)
		fprintf(f,
			"set arrow from screen %.4f,%.4f to screen %.4f,%.4f nohead linecolor rgb "
			"'%s' linewidth 1.2 dashtype %u\n",
			x / SVG_WIDTH, at, (x + ENTRY_MARK - 8) / SVG_WIDTH, at,
			svg_colour(look->colour), look->dash);
	fprintf(f,
		"set label '' at screen %.4f,%.4f point pointtype %u pointsize %.1f linecolor rgb "
		"'%s'\nset label ",
		(x + (ENTRY_MARK - 8) / 2.0) / SVG_WIDTH, at, bars ? 5 : look->mark,
		bars ? 1.4 : 0.9,
		bars ? svg_light(look->colour, colour) : svg_colour(look->colour));
	svg_quoted(f, svg_short_label(g->report, k));
	fprintf(f, " at screen %.4f,%.4f left\n", (x + ENTRY_MARK) / SVG_WIDTH, at);
}

/* Writes the legend between the title and the panels, in centred rows. */
static void legend(const struct grid *g, FILE *f)
{
	const struct report *r = g->report;
	double y = head_height(r) + LINE / 2.0, width;

	for (size_t k = 0, end; k < r->sweep->nseries; k = end, y += LINE) {
		double x;

		end = row_end(r, k, &width);
		x = (SVG_WIDTH - width) / 2;
		for (; k < end; k = next_entry(r, k + 1)) {
			legend_entry(g, k, x, y, f);
			x += entry_width(r, k);
		}
	}
}

/* The width of a panel's plot, in pixels. */
static double panel_width(size_t columns)
{
	return (double)SVG_WIDTH / (double)columns - 90;
}

/* The same for the figure's plot, or for each of its panels; a legend at the right takes room. */
static double plot_width(const struct report *r)
{
	double widest = 0;

	if (r->facets)
		return panel_width(count_columns(r));
	for (size_t k = 0; k < r->sweep->nseries; k++)
		widest = fmax(widest, axis_text_width(r->sweep->series[k].label));
	return SVG_WIDTH - 90 - 60 - widest;
}

/* Draws a panel for each facet. */
static void facets(const struct grid *g, FILE *f)
{
	const struct report *r = g->report;
	const struct sweep *s = r->sweep;
	size_t panels = count_panels(s), columns = count_columns(r);

	svg_layout(s, (panels + columns - 1) / columns, columns, legend_rows(r), f);
	fputs("unset key\n", f);
	legend(g, f);
	if (r->plot == PLOT_LINES)
		svg_x_points(&g->x, s, plot_width(r), f);
	for (size_t k = 0; k < s->nseries; k++) {
		const char *label = s->series[k].label;
		size_t length = strcspn(label, ",");
		char title[128];

		if (!first_of_facet(s, k))
			continue;
		snprintf(title, sizeof(title), "%.*s", (int)length, label);
		fputs("set title ", f);
		svg_quoted(f, title);
		fputs(" font ',12'\n", f);
		plot(g, label, length, f);
		fputs("unset label\nunset arrow\n", f);
	}
}

/* Draws one point: bars in a row with their names below. */
/* Values are in units of UNIT; WIDTH: of the plot, in pixels. */
static void single_bars(const struct report *r, const struct axis *y, const struct look *look,
			double unit, double width, FILE *f)
{
	const struct sweep *s = r->sweep;

	if (!svg_grid_has_values(r, NULL, 0)) {
		svg_empty(f);
		return;
	}
	fputs("$all << END_OF_DATA\n", f);
	for (size_t k = 0; k < s->nseries; k++) {
		struct interval i = sweep_mean(s, 0, k, r->y);
		char colour[SVG_COLOUR];

		fprintf(f, "%zu ", k);
		svg_quoted(f, s->series[k].label);
		svg_value(f, i.mean / unit);
		svg_value(f, isfinite(i.low) ? fmax(i.low / unit, y->low) : i.low);
		svg_value(f, isfinite(i.high) ? fmin(i.high / unit, y->high) : i.high);
		fprintf(f, " 0x%s\n", svg_light(look[k].colour, colour) + 1);
	}
	fputs("END_OF_DATA\nunset key\nset boxwidth 0.7\n"
	      "set style fill solid 1 border rgb '#333333'\n",
	      f);
	turn_series_names(s, width, f);
	fputs("plot $all using 1:3:6:xtic(2) with boxes linecolor rgb variable, "
	      "$all using 1:4:(0):($5-$4) with vectors heads size graph 0.008,90 "
	      "linecolor rgb '#000000'\n",
	      f);
}

static int grid_init(struct grid *g, const struct report *r, struct look *look)
{
	double *x = calloc(r->sweep->npoints + 1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	for (size_t p = 0; p < r->sweep->npoints; p++)
		x[p] = svg_x(r->sweep, p);
	*g = (struct grid){.report = r, .look = look};
	axis_fit_points(&g->x, x, r->sweep->npoints);
	free(x);
	svg_y_fit(r, 1, &g->y);
	if (r->plot != PLOT_BARS)
		svg_tell_apart(r, &g->y, look);
	return 0;
}

int svg_grid(const struct report *r, struct look *look, FILE *f)
{
	struct grid g;
	int ret = grid_init(&g, r, look);

	if (ret)
		return ret;
	data(&g, f);
	fputs("set xlabel ", f);
	svg_quoted(f, r->sweep->x_name);
	fputc('\n', f);
	svg_y_axis(&g.y, measure_title(r->y), f);
	if (r->sweep->npoints == 1) {
		single_bars(r, &g.y, look, 1, SVG_WIDTH - 90, f);
		return 0;
	}
	if (r->plot == PLOT_BARS) {
		bar_style(r->sweep, f);
		turn_point_names(r, plot_width(r), f);
	} else if (!r->facets) {
		svg_x_points(&g.x, r->sweep, plot_width(r), f);
	}
	if (r->facets)
		facets(&g, f);
	else
		plot(&g, NULL, 0, f);
	return 0;
}

/* --- several measures of few policies -------------------------------------------- */

#define COMPARED 6

struct compared {
	enum measure m;
	const char *title;
};

static const struct compared compared[COMPARED] = {
	{M_SLOWDOWN, "mean slowdown"},	    {M_SLOWDOWN_P95, "slowdown, 95th percentile"},
	{M_TURNAROUND, "mean turn-around"}, {M_CPU, "CPU utilisation"},
	{M_DISK, "disk utilisation"},	    {M_TRANSFERS, "tasks moved"},
};

static const struct compared compared_batch[COMPARED] = {
	{M_BOUNDED, "mean bounded slowdown"},
	{M_SLOWDOWN_P95, "slowdown, 95th percentile"},
	{M_WAIT, "mean wait"},
	{M_TURNAROUND, "mean turn-around"},
	{M_TURNAROUND_P95, "turn-around, p95"},
	{M_CPU, "processors busy"},
};

static bool is_time(enum measure m)
{
	return m == M_TURNAROUND || m == M_TURNAROUND_P95 || m == M_WAIT;
}

void svg_compare(const struct report *r, const struct look *look, FILE *f)
{
	const struct sweep *s = r->sweep;
	const struct compared *list = s->batch ? compared_batch : compared;

	svg_layout(s, 2, 3, 0, f);
	fputs("set xtics font ',11'\nset xlabel ''\n", f);
	for (size_t i = 0; i < COMPARED; i++) {
		struct report one = *r;
		const char *name = "";
		double unit = is_time(list[i].m) ? report_time_unit(s, &name) : 1;
		char title[64];
		struct axis y;

		one.y = list[i].m;
		svg_y_fit(&one, unit, &y);
		fputs("set title ", f);
		snprintf(title, sizeof(title), "%s%s%s%s", list[i].title, *name ? " (" : "", name,
			 *name ? ")" : "");
		svg_quoted(f, title);
		fputs(" font ',12'\n", f);
		svg_y_axis(&y, "", f);
		single_bars(&one, &y, look, unit, panel_width(3), f);
	}
}
