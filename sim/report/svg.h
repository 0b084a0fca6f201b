/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the scripts for gnuplot share. */
#ifndef SIM_REPORT_SVG_H
#define SIM_REPORT_SVG_H

#include "sim/report/report.h"

#define SVG_COLOURS 8

struct look {
	const char *policy;
	unsigned int colour; /* index for svg_colour */
	unsigned int mark, dash;
};

const char *svg_colour(unsigned int i);
/* One look a series: its policy's where that is free, else the next free one; with
 * facets those that differ by the facet only look alike. */
void svg_looks(const struct report *r, struct look *out);
/* What of the series' label is left inside its facet: behind ", ". */
const char *svg_short_label(const struct report *r, size_t series);
void svg_quoted(FILE *f, const char *text); /* "text" for gnuplot */
void svg_value(FILE *f, double v);
void svg_empty(FILE *f); /* in place of a plot without a value, which gnuplot refuses */
void svg_title(const struct sweep *s, FILE *f); /* "ID: title" */

void svg_grid(const struct report *r, const struct look *look, FILE *f); /* lines or bars */
unsigned int svg_facets_height(const struct report *r);
void svg_compare(const struct report *r, const struct look *look, FILE *f);
void svg_scatter(const struct report *r, FILE *f);
void svg_time(const struct report *r, FILE *f);

#endif
