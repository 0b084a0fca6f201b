/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which columns fit, and what is in them: for the screen and the batch table. */
#ifndef IOCOM_TOP_TABLE_H
#define IOCOM_TOP_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "top_model.h"

struct top_column {
	enum top_key key;
	unsigned width; /* without the gap of one before each but the first */
	bool roomy;	/* the long title */
};

/*
 * Columns of a table WIDTH wide, in order, at most TOP_KEYS.  When not all fit
 * the less important go; the one sorted by stays.  What is left over goes to
 * the names.
 */
size_t top_table_layout(struct top_column out[TOP_KEYS], unsigned width, bool jobs,
			enum top_key sort);
/* Appends the title or a row's cell, padded to the column's width. */
void top_table_title(char *out, size_t size, const struct top_column *column);
void top_table_cell(char *out, size_t size, const struct top_column *column,
		    const struct top_row *row);
/* What a column means, one line for the help; NULL when out of range. */
const char *top_table_help(enum top_key key);

struct top_line {
	char text[512];
	bool alert; /* something was lost */
};

/*
 * The head: node, CPU, each disk (the busiest first, at most MAX_DISKS lines),
 * network, and what was lost.  With DETAIL also what is not attributed and the
 * monitor's own cost.  Number of lines, at most ROOM.
 */
size_t top_table_summary(const json_t *document, unsigned max_disks, bool detail,
			 struct top_line *lines, size_t room);

#endif
