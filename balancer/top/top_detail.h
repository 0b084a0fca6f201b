/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* All that is known about one task or job, as lines of the screen. */
#ifndef IOCOM_TOP_DETAIL_H
#define IOCOM_TOP_DETAIL_H

#include "balancer/top/top_history.h"
#include "balancer/top/top_line.h"
#include "balancer/top/top_model.h"

#define TOP_DETAIL_LINES 128

struct top_detail_options {
	unsigned width;
	bool utf8;
	const struct top_history *history; /* NULL: none */
	double seen_ago_s; /* since its last reading; negative: it is in the newest reading */
};

/*
 * Fills LINES, at most TOP_DETAIL_LINES, and returns how many.  Counters that this program does
 * not know are shown under their name in the document.
 */
size_t top_detail(const struct top_row *row, const struct top_detail_options *options,
		  struct top_line *lines);

#endif
