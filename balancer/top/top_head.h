/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The head of `iocom top`: the node as a whole, its disks, its network, what was lost. */
#ifndef IOCOM_TOP_HEAD_H
#define IOCOM_TOP_HEAD_H

#include <jansson.h>

#include "balancer/top/top_history.h"
#include "balancer/top/top_line.h"

#define TOP_HEAD_LINES 32

struct top_head_options {
	unsigned width;			   /* columns */
	unsigned disks;			   /* at most so many, the busiest first */
	bool cost;			   /* also what is unattributed and what counting costs */
	bool utf8;			   /* sparklines in blocks */
	const struct top_history *history; /* NULL: no sparklines */
};

/*
 * The lines, each fitting WIDTH; how many, at most TOP_HEAD_LINES.  PREVIOUS:
 * the document before, for rates of what is only counted; NULL: means since
 * counting began.
 */
size_t top_head(const json_t *document, const json_t *previous,
		const struct top_head_options *options, struct top_line *lines);

#endif
