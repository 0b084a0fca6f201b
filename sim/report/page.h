/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The page of all figures: one file without scripts or external content.  It shows how many
 * claims of each paper hold, then the common configurations, then each figure beside its claims.
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
