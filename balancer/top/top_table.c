/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Columns of `iocom top`; see top_table.h.
 *
 * The layout tries all columns with long titles, then short titles, leaving out less
 * important columns (higher `rank`) until the rest fits, and then squeezes what is left.
 */
#include "balancer/top/top_table.h"

#include <stdio.h>
#include <string.h>

#include "balancer/top/top_format.h"

#define NEVER	   0xff
#define PAST_WIDTH 20
#define JOB_LEAST  4
#define ROOT_NAME  "(root)" /* the job of tasks in no cgroup below the root */
#define PID_WIDTH  8
#define LONG_LEAST 20 /* a narrower command line would be useless */
#define TREE_DEPTH 20 /* deeper levels get no more indentation */
#define CELL_BYTES 4096

struct column {
	const char *title, *title_roomy;
	unsigned char width, roomy;	     /* smallest width; width with the long title */
	unsigned char grow;		     /* the largest useful width */
	unsigned char rank_tasks, rank_jobs; /* 0 stays longest; NEVER: not in this view */
	enum top_ink ink;
	const char *help;
};

static const struct column columns[TOP_COLUMNS] = {
	[TOP_PID] = {"PID", "PID", 7, 7, 7, 0, NEVER, 0, "process (with all its threads)"},
	[TOP_USER] = {"USER", "USER", 8, 10, 16, 6, NEVER, 0, "its owner"},
	[TOP_COMMAND] = {"COMMAND", "COMMAND", 12, 15, 30, 1, NEVER, 0,
			 "name or command line (c); (name) has ended"},
	[TOP_JOB] = {"JOB", "JOB", 12, 20, 64, 11, 0, 0,
		     "job of iocom or others, container, unit, else cgroup"},
	[TOP_TASKS] = {"TASKS", "TASKS", 5, 6, 6, NEVER, 1, 0, "live processes of a job"},
	[TOP_OPS] = {"IOPS", "IO/s", 5, 6, 6, 12, 9, 0,
		     "requests as tasks make them, of both kinds"},
	[TOP_READ] = {"READ", "READ/s", 5, 7, 7, 4, 4, TOP_INK_EXPLICIT,
		      "explicit: bytes that calls read from disk"},
	[TOP_WRITE] = {"WRITE", "WRITE/s", 5, 7, 7, 5, 5, TOP_INK_EXPLICIT,
		       "explicit: bytes written by calls, or later for them"},
	[TOP_IMPLICIT] = {"IMPL", "IMPL/s", 5, 8, 8, 8, 8, TOP_INK_IMPLICIT,
			  "implicit: bytes of disk I/O that page faults caused"},
	[TOP_FAULTS] = {"FAULT", "FAULT/s", 5, 7, 7, 15, 13, TOP_INK_IMPLICIT,
			"page faults, with and without I/O"},
	[TOP_SENT] = {"SENT", "SENT/s", 5, 7, 7, 7, 6, TOP_INK_NETWORK,
		      "TCP bytes that left the node"},
	[TOP_RECEIVED] = {"RECV", "RECV/s", 5, 7, 7, 9, 7, TOP_INK_NETWORK,
			  "TCP bytes that came from other nodes"},
	[TOP_LOCAL] = {"LOCAL", "LOCAL/s", 5, 7, 7, 13, 11, TOP_INK_NETWORK,
		       "TCP bytes within this machine"},
	[TOP_MESSAGES] = {"MSG", "MSG/s", 5, 6, 6, 14, 12, TOP_INK_NETWORK,
			  "calls that sent to or received from other nodes"},
	[TOP_CPU] = {"CPU%", "CPU%", 5, 6, 6, 3, 3, 0, "of one core"},
	[TOP_RSS] = {"RSS", "RSS", 5, 6, 6, 10, 10, 0, "resident memory"},
	[TOP_SHARE] = {"SHARE%", "SHARE%", 8, 9, 9, 2, 2, 0,
		       "largest share of CPU, disk or network of the node"},
	[TOP_PAST] = {"PAST", "PAST", PAST_WIDTH, PAST_WIDTH, PAST_WIDTH, NEVER, NEVER,
		      TOP_INK_SPARK, "the resource of SHARE% in the last intervals"},
};

/* The columns from left to right. */
static const enum top_key order[] = {
	TOP_PID,   TOP_USER,	 TOP_COMMAND,  TOP_JOB,	   TOP_TASKS, TOP_OPS,
	TOP_READ,  TOP_WRITE,	 TOP_IMPLICIT, TOP_FAULTS, TOP_SENT,  TOP_RECEIVED,
	TOP_LOCAL, TOP_MESSAGES, TOP_CPU,      TOP_RSS,	   TOP_SHARE,
};

const char *top_table_help(unsigned key)
{
	return key < TOP_COLUMNS ? columns[key].help : NULL;
}

enum top_ink top_table_ink(unsigned key)
{
	return key < TOP_COLUMNS ? columns[key].ink : TOP_INK_PLAIN;
}

static unsigned top_table_rank(enum top_key key, const struct top_layout *l)
{
	unsigned r = l->jobs ? columns[key].rank_jobs : columns[key].rank_tasks;

	return r != NEVER && key == l->sort ? 0 : r;
}

static void top_table_take(struct top_column *out, size_t *n, unsigned *width,
			   const struct top_layout *l, enum top_key key, bool roomy)
{
	unsigned least = roomy ? columns[key].roomy : columns[key].width;

	if (key == TOP_COMMAND && l->long_names)
		least = LONG_LEAST;
	if (key == TOP_JOB && l->need_job && l->need_job < least)
		least = l->need_job > JOB_LEAST ? l->need_job : JOB_LEAST;
	*width += least + (*n ? 1 : 0);
	out[(*n)++] = (struct top_column){.key = key, .width = least, .roomy = roomy};
}

/* Chooses the columns whose rank is at most LIMIT.  Returns their total width. */
static unsigned top_table_choose(struct top_column *out, size_t *n, unsigned limit,
				 const struct top_layout *l, bool roomy)
{
	unsigned width = 0, r;

	*n = 0;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		r = top_table_rank(order[i], l);
		if (r != NEVER && r <= limit && !(l->long_names && order[i] == TOP_COMMAND))
			top_table_take(out, n, &width, l, order[i], roomy);
	}
	r = top_table_rank(TOP_COMMAND, l);
	if (r != NEVER && r <= limit && l->long_names)
		top_table_take(out, n, &width, l, TOP_COMMAND, roomy);
	return width;
}

/* Gives one kind of column up to MOST of the columns that are left. */
static void top_table_widen(struct top_column *out, size_t n, unsigned *left, unsigned key,
			    unsigned most)
{
	for (size_t i = 0; i < n; i++) {
		unsigned more = out[i].width < most ? most - out[i].width : 0;

		if (out[i].key != key)
			continue;
		more = more < *left ? more : *left;
		out[i].width += more;
		*left -= more;
	}
}

static unsigned top_table_least_of(unsigned need, unsigned most)
{
	return need && need < most ? need : most;
}

/* Gives the space left to names as far as they need it, then to a sparkline. */
static void spend(struct top_column *out, size_t *n, const struct top_layout *l, unsigned left)
{
	if (!l->long_names)
		top_table_widen(out, *n, &left, TOP_COMMAND,
				top_table_least_of(l->need_command, columns[TOP_COMMAND].grow));
	top_table_widen(out, *n, &left, TOP_JOB,
			top_table_least_of(l->need_job, columns[TOP_JOB].grow));
	top_table_widen(out, *n, &left, TOP_USER,
			top_table_least_of(l->need_user, columns[TOP_USER].grow));
	if (l->past && *n && out[0].roomy && left >= PAST_WIDTH + 1 + (l->long_names ? 40 : 0)) {
		size_t at = *n;

		if (l->long_names && out[at - 1].key == TOP_COMMAND)
			out[at--] = out[*n - 1];
		out[at] = (struct top_column){.key = TOP_PAST, .width = PAST_WIDTH, .roomy = true};
		(*n)++;
		left -= PAST_WIDTH + 1;
	}
	if (l->long_names)
		top_table_widen(out, *n, &left, TOP_COMMAND, CELL_BYTES / 8);
	else
		top_table_widen(out, *n, &left, TOP_PAST, 2 * PAST_WIDTH);
}

/* If the table is still too wide, shrinks the widest column, and finally drops the last one. */
static void squeeze(struct top_column *out, size_t *n, unsigned used, unsigned width)
{
	while (used > width && *n) {
		size_t widest = 0;

		for (size_t i = 1; i < *n; i++)
			if (out[i].width > out[widest].width)
				widest = i;
		if (out[widest].width > 4 || *n == 1) {
			unsigned give = used - width, may = out[widest].width - 1;

			if (*n > 1 && may > out[widest].width - 4)
				may = out[widest].width - 4;
			give = give < may ? give : may;
			out[widest].width -= give;
			used -= give;
			if (!give)
				return;
		} else {
			used -= out[--*n].width + 1;
		}
	}
}

size_t top_table_layout(struct top_column out[TOP_COLUMNS], const struct top_layout *l)
{
	unsigned limit = NEVER - 1, used;
	size_t n;

	used = top_table_choose(out, &n, limit, l, true);
	if (used > l->width) {
		used = top_table_choose(out, &n, limit, l, false);
		for (limit = TOP_KEYS; used > l->width && limit > 0; limit--)
			used = top_table_choose(out, &n, limit - 1, l, false);
	}
	if (used < l->width)
		spend(out, &n, l, l->width - used);
	else
		squeeze(out, &n, used, l->width);
	return n;
}

void top_table_needs(struct top_layout *l, const struct top_row *rows, size_t n)
{
	l->need_user = l->need_job = l->need_command = 1;
	for (size_t i = 0; i < n; i++) {
		unsigned user = top_format_width(rows[i].user);
		const char *name = *rows[i].label || !l->jobs ? rows[i].label : ROOT_NAME;
		unsigned job = top_format_width(rows[i].is_job || !l->jobs ? name : "") +
			       (l->jobs ? 2 * rows[i].depth : 0);
		unsigned command = top_format_width(rows[i].command) + 2 * rows[i].exited +
				   (rows[i].folded ? 8 : 0);

		if (l->jobs && !rows[i].is_job)
			job = 2 * rows[i].depth + PID_WIDTH + command;
		l->need_user = user > l->need_user ? user : l->need_user;
		l->need_job = job > l->need_job ? job : l->need_job;
		l->need_command = command > l->need_command ? command : l->need_command;
	}
}

/* Returns a name that fits between two dashes, else one that just fits, else none. */
static const char *group_name(enum top_ink ink, unsigned width)
{
	static const char *const names[TOP_INKS][4] = {
		[TOP_INK_EXPLICIT] = {"explicit: calls", "explicit", "expl", ""},
		[TOP_INK_IMPLICIT] = {"implicit: faults", "implicit", "fault", ""},
		[TOP_INK_NETWORK] = {"network (TCP)", "network", "net", ""},
	};

	for (size_t i = 0; i < 4; i++)
		if (names[ink][i] && strlen(names[ink][i]) <= width)
			return names[ink][i];
	return "";
}

static void group(struct top_line *out, enum top_ink ink, unsigned width, bool utf8)
{
	const char *name = group_name(ink, width), *dash = utf8 ? "\u2500" : "-";
	unsigned left = width - (unsigned)strlen(name);
	char text[TOP_PIECE_BYTES] = "";

	for (unsigned i = 0; i < left && strlen(text) + 64 < sizeof(text); i++) {
		if (i == left / 2)
			strcat(text, name);
		strcat(text, dash);
	}
	if (!left)
		strcat(text, name);
	top_line_add(out, 0, ink, "%s", text);
}

void top_table_groups(const struct top_column *c, size_t n, bool utf8, struct top_line *out)
{
	unsigned blank = 0;

	out->n = 0;
	for (size_t i = 0; i < n;) {
		enum top_ink ink = columns[c[i].key].ink;
		bool named = ink == TOP_INK_EXPLICIT || ink == TOP_INK_IMPLICIT ||
			     ink == TOP_INK_NETWORK;
		unsigned width = c[i].width;

		for (i++; named && i < n && columns[c[i].key].ink == ink; i++)
			width += 1 + c[i].width;
		if (!named) {
			blank += width + 1;
			continue;
		}
		if (blank)
			top_line_add(out, 0, TOP_INK_PLAIN, "%*s", (int)blank, "");
		group(out, ink, width, utf8);
		blank = 1;
	}
}

void top_table_title(char *out, size_t size, const struct top_column *column)
{
	const struct column *c = &columns[column->key];
	bool left = column->key == TOP_PAST || top_key_is_text(column->key);

	top_format_fit(out, size, column->roomy ? c->title_roomy : c->title, column->width,
		       left ? TOP_FIT_LEFT : TOP_FIT_RIGHT);
}

static void share_text(char *out, size_t size, const struct top_row *row)
{
	double percent = row->value[TOP_SHARE] * 100;
	const char *resource = strcmp(row->resource, "network") ? row->resource : "net";

	if (!(percent >= 0.05))
		snprintf(out, size, "-     ");
	else
		snprintf(out, size, "%.*f %-4.4s", percent<9.95, percent> 999 ? 999 : percent,
			 resource);
}

/* Draws the lines of the tree before a name. */
static void branches(char *out, size_t size, const struct top_row *row, bool utf8)
{
	static const char *const signs[2][4] = {{"  ", "| ", "|-", "`-"},
						{"  ", "\u2502 ", "\u251c\u2500", "\u2514\u2500"}};
	unsigned depth = row->depth < TREE_DEPTH ? row->depth : TREE_DEPTH;

	for (unsigned d = 1; d <= depth; d++) {
		unsigned sign = d < depth ? (row->rails >> d & 1) : row->last ? 3 : 2;

		if (strlen(out) + strlen(signs[utf8][sign]) < size)
			strcat(out, signs[utf8][sign]);
	}
}

static void name_cell(char *out, size_t size, const struct top_column *column,
		      const struct top_row *row, const struct top_look *look)
{
	char lines[CELL_BYTES] = "", text[CELL_BYTES];
	enum top_fit fit = TOP_FIT_LEFT;
	unsigned width;

	if (look->jobs || column->key == TOP_COMMAND)
		branches(lines, sizeof(lines), row, look->utf8);
	width = top_format_width(lines);
	width = width < column->width ? width : column->width;
	top_format_fit(out, size, lines, width, TOP_FIT_LEFT);
	if (row->folded && column->key == (look->jobs ? TOP_JOB : TOP_COMMAND)) {
		snprintf(text, sizeof(text), "%ux (%s)", row->folded, row->comm);
	} else if (column->key == TOP_COMMAND) {
		snprintf(text, sizeof(text), row->exited ? "(%s)" : "%s", row->command);
	} else if (look->jobs && !row->is_job) { /* a task below its job */
		snprintf(text, sizeof(text), row->exited ? "%.0f (%s)" : "%.0f %s",
			 row->value[TOP_PID], row->command);
	} else {
		const char *none = look->jobs ? ROOT_NAME : "-";

		snprintf(text, sizeof(text), "%s", *row->label ? row->label : none);
		fit = TOP_FIT_MIDDLE;
	}
	top_format_fit(out, size, text, column->width - width, fit);
}

static void past_cell(char *out, size_t size, const struct top_column *column,
		      const struct top_row *row, const struct top_look *look)
{
	enum top_series series = !strcmp(row->resource, "disk")	     ? TOP_SERIES_DISK
				 : !strcmp(row->resource, "network") ? TOP_SERIES_NETWORK
								     : TOP_SERIES_CPU;
	float values[2 * PAST_WIDTH] = {0};
	size_t n = column->width < 2 * PAST_WIDTH ? column->width : 2 * PAST_WIDTH;

	if (look->history)
		top_history_get(look->history, row->id, series, values, n);
	top_format_spark(out, size, values, n, 0, look->utf8);
}

void top_table_cell(char *out, size_t size, const struct top_column *column,
		    const struct top_row *row, const struct top_look *look)
{
	char text[64] = "";
	double value = column->key < TOP_KEYS ? row->value[column->key] : 0;

	switch (column->key) {
	case TOP_USER:
		top_format_fit(out, size, row->user, column->width, TOP_FIT_LEFT);
		return;
	case TOP_COMMAND:
	case TOP_JOB:
		name_cell(out, size, column, row, look);
		return;
	case TOP_PAST:
		past_cell(out, size, column, row, look);
		return;
	case TOP_PID:
	case TOP_TASKS:
		if (column->key == TOP_PID ? !row->folded : row->is_job)
			snprintf(text, sizeof(text), "%.0f", value);
		break;
	case TOP_OPS:
	case TOP_MESSAGES:
	case TOP_FAULTS:
		top_format_count(text, value);
		break;
	case TOP_CPU:
		top_format_percent(text, value);
		break;
	case TOP_SHARE:
		share_text(text, sizeof(text), row);
		break;
	default:
		top_format_bytes(text, value);
	}
	top_format_fit(out, size, text, column->width, TOP_FIT_RIGHT);
}
