/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Shared by the scripts for gnuplot. */
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
/* Chooses a look for each series: that of its policy if it is free, else the next free
 * one. With facets, series that differ only in the facet look alike. */
void svg_looks(const struct report *r, struct look *out);
/* The part of the series' label inside its facet: after ", ". */
const char *svg_short_label(const struct report *r, size_t series);
void svg_quoted(FILE *f, const char *text); /* "text" for gnuplot */
void svg_value(FILE *f, double v);
void svg_empty(FILE *f); /* replaces a plot without a value, which gnuplot refuses */
void svg_title(const struct sweep *s, FILE *f); /* "ID: title" */

void svg_grid(const struct report *r, const struct look *look, FILE *f); /* lines or bars */
unsigned int svg_facets_height(const struct report *r);
void svg_compare(const struct report *r, const struct look *look, FILE *f);
void svg_scatter(const struct report *r, FILE *f);
/* How busy processors and disks are over time. */
void svg_use(const struct report *r, FILE *f);
void svg_time(const struct report *r, FILE *f);

#endif
