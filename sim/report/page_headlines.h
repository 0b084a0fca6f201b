/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The table that opens the page: what each paper is known for, and what we measure. */
#ifndef SIM_REPORT_PAGE_HEADLINES_H
#define SIM_REPORT_PAGE_HEADLINES_H

#include "sim/report/page.h"

void page_headlines(const struct page *page, FILE *f);

#endif
