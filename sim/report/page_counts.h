/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How many claims have which verdict, by paper; our own claims are counted apart. */
#ifndef SIM_REPORT_PAGE_COUNTS_H
#define SIM_REPORT_PAGE_COUNTS_H

#include <stdbool.h>

#include "sim/report/page.h"

/* Whether the page has a section of this paper. */
bool page_has_paper(const struct page *page, const char *paper);
/* A class of the page's style: "yes", "no" ... */
const char *page_verdict_class(enum verdict v);
/* Whose claim it is: the name of a paper, or "OURS". */
const char *page_claimant(const struct report *r, const struct claim *c);
/* The same for figures without claims; R->experiment must not be NULL. */
const char *page_owner(const struct report *r);

/* Says in a sentence how many orders and how many numbers of the papers were found again. */
void page_counts_in_words(const struct page *page, FILE *f);
void page_counts(const struct page *page, FILE *f);

#endif
