/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Shared by the scripts for gnuplot. */
#ifndef SIM_REPORT_SVG_H
#define SIM_REPORT_SVG_H

#include "sim/report/axis.h"
#include "sim/report/report.h"

#define SVG_COLOURS 8
#define SVG_WIDTH   760

struct look {
	const char *policy;
	unsigned int colour; /* index for svg_colour */
	unsigned int mark, dash;
};

#define SVG_COLOUR 8 /* bytes of "#rrggbb" */

const char *svg_colour(unsigned int i);
/* The same colour for areas, on which intervals are seen; returns OUT. */
const char *svg_light(unsigned int i, char out[SVG_COLOUR]);
/* Chooses a look for each series: that of its policy if it is free, else the next free
 * one. With facets, series that differ only in the facet look alike. */
void svg_looks(const struct report *r, struct look *out);
/* Gives lines that lie on an earlier one dashes, through which it is seen. */
void svg_tell_apart(const struct report *r, const struct axis *y, struct look *look);
/* The part of the series' label inside its facet: after ", ". */
const char *svg_short_label(const struct report *r, size_t series);
void svg_quoted(FILE *f, const char *text); /* "text" for gnuplot */
void svg_value(FILE *f, double v);
void svg_empty(FILE *f); /* replaces a plot without a value, which gnuplot refuses */
/*
 * Begins a figure of ROWS x COLUMNS plots below the title "ID: title" and LEGEND empty lines.  The
 * title is centred over the whole figure, in two lines if it is long.
 */
void svg_layout(const struct sweep *s, size_t rows, size_t columns, unsigned int legend, FILE *f);
/* The number of lines of the title. */
unsigned int svg_title_lines(const struct sweep *s);

double svg_x(const struct sweep *s, size_t point); /* its number, or its place among the names */
/* Fits the vertical axis to the figure's measure, in units of UNIT. */
void svg_y_fit(const struct report *r, double unit, struct axis *a);
void svg_y_axis(const struct axis *a, const char *title, FILE *f);
/* The horizontal axis of a plot that is LENGTH pixels wide, with the points' own names. */
void svg_x_points(const struct axis *a, const struct sweep *s, double length, FILE *f);

/* Lines or bars; may change dashes of LOOK.  Returns 0, -ENOMEM. */
int svg_grid(const struct report *r, struct look *look, FILE *f);
unsigned int svg_facets_height(const struct report *r);
void svg_compare(const struct report *r, const struct look *look, FILE *f);
void svg_scatter(const struct report *r, FILE *f);
/* How busy processors and disks are over time. */
void svg_use(const struct report *r, FILE *f);
void svg_time(const struct report *r, FILE *f);

#endif
