/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Figures of a grid: lines with intervals, bars, small multiples. */
#include <math.h>
#include <string.h>

#include "sim/report/svg.h"

/* Writes $d0, $d1 ...: a block for each series. */
static void data(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;

	for (size_t k = 0; k < s->nseries; k++) {
		fprintf(f, "$d%zu << END_OF_DATA\n", k);
		for (size_t p = 0; p < s->npoints; p++) {
			struct interval i = sweep_mean(s, p, k, r->y);

			svg_quoted(f, s->points[p].label);
			svg_value(f, isfinite(s->points[p].x) ? s->points[p].x : (double)p);
			svg_value(f, i.mean);
			svg_value(f, i.low);
			svg_value(f, i.high);
			fputc('\n', f);
		}
		fputs("END_OF_DATA\n", f);
	}
}

/* Labels 1, 2, 5, 10 ... between the ends; powers of ten alone would give one or two labels. */
static void log_tics(double low, double high, FILE *f)
{
	const char *comma = "";

	if (high / low > 100)
		return;
	fputs("set ytics (", f);
	for (double power = pow(10, floor(log10(low))); power <= high; power *= 10) {
		for (int k = 0; k < 3; k++) {
			double at = power * (double[]){1, 2, 5}[k];

			if (at < low || at > high)
				continue;
			fprintf(f, "%s%.6g", comma, at);
			comma = ", ";
		}
	}
	fputs(")\n", f);
}

/* On a logarithmic axis an interval may reach below 0, so the means determine the range. */
static void y_range(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	double low = INFINITY, high = -INFINITY;

	for (size_t p = 0; p < s->npoints; p++) {
		for (size_t k = 0; k < s->nseries; k++) {
			struct interval i = sweep_mean(s, p, k, r->y);

			low = fmin(low, i.mean);
			high = fmax(high, fmin(i.high, 3 * i.mean));
		}
	}
	if (r->log_y && low > 0 && isfinite(high)) {
		fprintf(f, "set logscale y\nset yrange [%.6g:%.6g]\n", low / 1.4, high * 1.2);
		log_tics(low / 1.4, high * 1.2, f);
	} else if (low >= 0)
		fputs("set yrange [0:*]\n", f);
}

static void svg_grid_axes(const struct report *r, FILE *f)
{
	fputs("set xlabel ", f);
	svg_quoted(f, r->sweep->x_name);
	fputs("\nset ylabel ", f);
	svg_quoted(f, measure_title(r->y));
	fputc('\n', f);
	y_range(r, f);
}

/* Returns whether the series' label begins with FACET (LENGTH characters); NULL: always. */
static bool in_facet(const struct sweep *s, size_t k, const char *facet, size_t length)
{
	return !facet || (!strncmp(s->series[k].label, facet, length) &&
			  !strncmp(s->series[k].label + length, ", ", 2));
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

static void plot(const struct report *r, const struct look *look, const char *facet, size_t length,
		 FILE *f)
{
	const struct sweep *s = r->sweep;
	bool bars = r->plot == PLOT_BARS, first = true;

	if (!svg_grid_has_values(r, facet, length)) {
		svg_empty(f);
		return;
	}
	fputs("plot ", f);
	for (size_t k = 0; k < s->nseries; k++) {
		if (!in_facet(s, k, facet, length))
			continue;
		fprintf(f, "%s$d%zu using ", first ? "" : ", ", k);
		first = false;
		if (bars)
			fprintf(f, "3:4:5:xtic(1) linecolor rgb '%s' title ",
				svg_colour(look[k].colour));
		else
			fprintf(f,
				"2:3:4:5 with yerrorlines linecolor rgb '%s' pointtype %u "
				"pointsize 0.8 dashtype %u title ",
				svg_colour(look[k].colour), look[k].mark, look[k].dash);
		svg_quoted(f, svg_short_label(r, k));
	}
	fputc('\n', f);
}

static void bar_style(const struct report *r, FILE *f)
{
	fputs("set style data histograms\nset style histogram errorbars gap 1.5 linewidth 1\n"
	      "set style fill solid 0.85 border rgb '#333333'\nset boxwidth 0.9\n",
	      f);
	if (r->sweep->npoints > 8)
		fputs("set xtics rotate by -35\n", f);
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

/* Puts at most five labels on the axis of a narrow panel. */
static void few_x_tics(const struct sweep *s, FILE *f)
{
	double low = INFINITY, high = -INFINITY, step;

	for (size_t p = 0; p < s->npoints; p++) {
		low = fmin(low, s->points[p].x);
		high = fmax(high, s->points[p].x);
	}
	if (!(high > low))
		return;
	step = pow(10, floor(log10((high - low) / 4)));
	while ((high - low) / step > 4)
		step *= 2;
	fprintf(f, "set xtics %.6g\n", step);
}

unsigned int svg_facets_height(const struct report *r)
{
	size_t columns = count_columns(r);

	return columns == 1 ? 80 + 280 * (unsigned int)count_panels(r->sweep) : 580;
}

/* Draws a panel for each facet; there is one key, between the title and the panels. */
static void facets(const struct report *r, const struct look *look, FILE *f)
{
	const struct sweep *s = r->sweep;
	size_t panels = count_panels(s), columns = count_columns(r);

	fprintf(f, "set multiplot layout %zu,%zu title ", (panels + columns - 1) / columns,
		columns);
	svg_title(s, f);
	fprintf(f,
		".\"\\n \" font ',14'\nset key at screen 0.5,%.4f center top horizontal maxrows 1 "
		"font ',12'\n",
		1 - 28.0 / svg_facets_height(r));
	if (columns > 2 && r->plot == PLOT_LINES)
		few_x_tics(s, f);
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
		plot(r, look, label, length, f);
		fputs("unset key\n", f);
	}
	fputs("unset multiplot\n", f);
}

/* Draws one point: bars in a row with their names below. */
static void single_bars(const struct report *r, const struct look *look, FILE *f)
{
	const struct sweep *s = r->sweep;

	if (!svg_grid_has_values(r, NULL, 0)) {
		svg_empty(f);
		return;
	}
	fputs("$all << END_OF_DATA\n", f);
	for (size_t k = 0; k < s->nseries; k++) {
		struct interval i = sweep_mean(s, 0, k, r->y);

		fprintf(f, "%zu ", k);
		svg_quoted(f, s->series[k].label);
		svg_value(f, i.mean);
		svg_value(f, i.low);
		svg_value(f, i.high);
		fprintf(f, " 0x%s\n", svg_colour(look[k].colour) + 1);
	}
	fputs("END_OF_DATA\nunset key\nset boxwidth 0.7\n"
	      "set style fill solid 0.85 border rgb '#333333'\n",
	      f);
	if (s->nseries > 7)
		fputs("set xtics rotate by -35\n", f);
	fputs("plot $all using 1:3:6:xtic(2) with boxes linecolor rgb variable, "
	      "$all using 1:4:(0):($5-$4) with vectors heads size graph 0.008,90 "
	      "linecolor rgb '#000000'\n",
	      f);
}

void svg_grid(const struct report *r, const struct look *look, FILE *f)
{
	data(r, f);
	svg_grid_axes(r, f);
	if (r->sweep->npoints == 1) {
		single_bars(r, look, f);
		return;
	}
	if (r->plot == PLOT_BARS)
		bar_style(r, f);
	else
		fputs("set offsets graph 0.03, graph 0.03\n", f);
	if (r->facets)
		facets(r, look, f);
	else
		plot(r, look, NULL, 0, f);
}

/* --- several measures of few policies -------------------------------------------- */

#define COMPARED     6
#define COMPARED_FAR 20 /* bars that differ by more than this factor need a log axis */

struct compared {
	enum measure m;
	const char *title;
};

static const struct compared compared[COMPARED] = {
	{M_SLOWDOWN, "mean slowdown"},		{M_SLOWDOWN_P95, "slowdown, 95th percentile"},
	{M_TURNAROUND, "mean turn-around (s)"}, {M_CPU, "CPU utilisation"},
	{M_DISK, "disk utilisation"},		{M_TRANSFERS, "tasks moved"},
};

static const struct compared compared_batch[COMPARED] = {
	{M_BOUNDED, "mean bounded slowdown"},
	{M_SLOWDOWN_P95, "slowdown, 95th percentile"},
	{M_WAIT, "mean wait (s)"},
	{M_TURNAROUND, "mean turn-around (s)"},
	{M_TURNAROUND_P95, "turn-around, p95 (s)"},
	{M_CPU, "processors busy"},
};

/* Returns where a log axis begins; 0: no bar would be hidden by a linear axis. */
static double compared_from(const struct report *r)
{
	double least = INFINITY, most = 0;

	for (size_t k = 0; k < r->sweep->nseries; k++) {
		double mean = sweep_mean(r->sweep, 0, k, r->y).mean;

		if (!(mean > 0))
			return 0;
		least = fmin(least, mean);
		most = fmax(most, mean);
	}
	return most > COMPARED_FAR * least ? least / 3 : 0;
}

void svg_compare(const struct report *r, const struct look *look, FILE *f)
{
	const struct sweep *s = r->sweep;
	const struct compared *list = s->batch ? compared_batch : compared;

	fputs("set multiplot layout 2,3 title ", f);
	svg_title(s, f);
	fputs(" font ',14'\nset xtics rotate by -35 font ',11'\n", f);
	for (size_t i = 0; i < COMPARED; i++) {
		struct report one = *r;
		char title[64];
		double from;

		one.y = list[i].m;
		from = s->batch ? compared_from(&one) : 0;
		snprintf(title, sizeof(title), "%s%s", list[i].title, from > 0 ? ", log axis" : "");
		fputs("set title ", f);
		svg_quoted(f, title);
		fputs(" font ',12'\n", f);
		if (from > 0)
			fprintf(f, "set logscale y\nset yrange [%g:*]\nset format y '%%.0e'\n",
				from);
		else
			fputs("unset logscale y\nset yrange [0:*]\nset format y '%g'\n", f);
		single_bars(&one, look, f);
	}
	fputs("unset multiplot\n", f);
}
