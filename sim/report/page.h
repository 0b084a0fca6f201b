/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The page of all figures: one file, no scripts, nothing from elsewhere.  First how
 * many claims hold, per paper; then the common configurations; then each figure
 * beside its claims.
 */
#ifndef SIM_REPORT_PAGE_H
#define SIM_REPORT_PAGE_H

#include "sim/report/report.h"

struct page {
	const struct report *reports;
	size_t n;
	double seconds; /* what the runs took; 0: not told */
	unsigned int cores;
	const char *settings; /* what was set for all ("" or NULL: nothing) */
};

/* The figures' SVG are read from where O is writing them.  0, -ENOMEM. */
int page_write(const struct page *page, struct output *o, FILE *f);

#endif
