/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The page of figures: one file that is HTML and well-formed XML, without external content.  First
 * come the headlines of the papers, then how many claims of each have which verdict, then each
 * figure beside its claims, with a filter.  It serves any subset of the figures.
 */
#ifndef SIM_REPORT_PAGE_H
#define SIM_REPORT_PAGE_H

#include "sim/report/report.h"

struct page {
	const struct report *reports;
	size_t n;
	double seconds; /* duration of the runs; 0: unknown */
	unsigned int cores;
	const char *settings; /* settings of all runs ("" or NULL: none) */
};

/* Writes the page; reads the figures' SVG where O is writing them.  Returns 0, -ENOMEM. */
int page_write(const struct page *page, struct output *o, FILE *f);

#endif
