/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The report of `iocom report`, for people and as JSON. */
#ifndef IOCOM_REPORT_PAGE_H
#define IOCOM_REPORT_PAGE_H

#include <jansson.h>

#include "balancer/report/gain.h"

struct page {
	const struct gain_report *report;
	const json_t *homes; /* names of the nodes where the jobs were submitted */
	const char *whose;   /* what the first line begins with: "Your jobs" */
	const struct gain_filter *filter;
	uint64_t since_ns, until_ns; /* CLOCK_REALTIME; 0: not known */
	bool cut;		     /* older jobs were left out */
};

/* Returns a new document; NULL: out of memory. */
json_t *page_json(const struct page *page);
/* Prints to standard output.  Returns 0 or 1, after a message. */
int page_print(const struct page *page);

#endif
