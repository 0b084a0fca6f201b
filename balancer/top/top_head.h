/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The head of `iocom top`: the whole node, its disks, its network, what was lost. */
#ifndef IOCOM_TOP_HEAD_H
#define IOCOM_TOP_HEAD_H

#include <jansson.h>

#include "balancer/top/top_history.h"
#include "balancer/top/top_line.h"

#define TOP_HEAD_LINES 32

struct top_head_options {
	unsigned width; /* columns */
	unsigned disks; /* show at most this many, the busiest first */
	/* also show unattributed bytes and the cost of counting */
	bool cost;
	bool utf8;			   /* draw sparklines with blocks */
	const struct top_history *history; /* NULL: no sparklines */
};

/*
 * Fills LINES, each fitting WIDTH, and returns how many, at most TOP_HEAD_LINES.  PREVIOUS is
 * the document before, for rates of what is only counted; NULL: show means since counting
 * began.
 */
size_t top_head(const json_t *document, const json_t *previous,
		const struct top_head_options *options, struct top_line *lines);

#endif
