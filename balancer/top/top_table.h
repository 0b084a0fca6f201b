/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which columns fit and what they show, for the screen and the batch table. */
#ifndef IOCOM_TOP_TABLE_H
#define IOCOM_TOP_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "balancer/top/top_history.h"
#include "balancer/top/top_line.h"
#include "balancer/top/top_model.h"

/* A column without a sort key: what the row did in the last documents. */
#define TOP_PAST    TOP_KEYS
#define TOP_COLUMNS (TOP_KEYS + 1)

struct top_column {
	unsigned key;	/* enum top_key, or TOP_PAST */
	unsigned width; /* without the gap of one column before it (the first has none) */
	bool roomy;	/* has the long title */
};

/* What determines the columns. */
struct top_layout {
	unsigned width;
	bool jobs;
	bool long_names; /* command lines or a tree: the command is last and takes the rest */
	bool past;	 /* a sparkline for each row if there is room */
	enum top_key sort;
	/* The widest of each in the rows; 0: unknown, so up to the largest useful width. */
	unsigned need_user, need_job, need_command;
};

/* How rows are drawn. */
struct top_look {
	bool utf8;
	bool jobs;
	const struct top_history *history; /* NULL: none */
};

/*
 * Chooses the columns of a table, in order, at most TOP_COLUMNS, never wider than asked for (at
 * least 8).  If not all fit, the less important go; the sort column stays.  Names get the space
 * that is left.
 */
size_t top_table_layout(struct top_column out[TOP_COLUMNS], const struct top_layout *layout);
/* Sets need_user, need_job and need_command of LAYOUT from the rows. */
void top_table_needs(struct top_layout *layout, const struct top_row *rows, size_t n);
/*
 * The line above the titles: it marks the columns of explicit I/O, implicit I/O and network.
 * It has one piece for each run of columns.
 */
void top_table_groups(const struct top_column *columns, size_t n, bool utf8, struct top_line *out);
/* These append the title or a row's cell, padded to the column's width. */
void top_table_title(char *out, size_t size, const struct top_column *column);
void top_table_cell(char *out, size_t size, const struct top_column *column,
		    const struct top_row *row, const struct top_look *look);
/* The kind of load that a column shows. */
enum top_ink top_table_ink(unsigned key);
/* A column's meaning, one line for the help; NULL when out of range. */
const char *top_table_help(unsigned key);

#endif
