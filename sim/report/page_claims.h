/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The figures of a paper, each beside its claims; a reason of several claims is written once. */
#ifndef SIM_REPORT_PAGE_CLAIMS_H
#define SIM_REPORT_PAGE_CLAIMS_H

#include "sim/report/page.h"

/* Writes the section of paper P; reads the figures' SVG from O.  Returns 0, -ENOMEM. */
int page_paper(const struct page *page, const struct paper *p, struct output *o, FILE *f);

#endif
