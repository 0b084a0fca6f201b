/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Columns of `iocom top`; see top_table.h.
 *
 * Three tries: all columns with long titles; else short titles, where the less
 * important (higher `rank`) are left out until the rest fits.
 */
#include "top_table.h"

#include <stdio.h>
#include <string.h>

#include "top_format.h"

#define NEVER 0xff

struct column {
	const char *title, *title_roomy;
	unsigned char width, roomy;	     /* smallest, and with the long title */
	unsigned char grow;		     /* how wide it may become at most */
	unsigned char rank_tasks, rank_jobs; /* 0 stays longest; NEVER: not in this view */
	const char *help;
};

static const struct column columns[TOP_KEYS] = {
	[TOP_PID] = {"PID", "PID", 7, 7, 7, 0, NEVER, "process (its threads are folded in)"},
	[TOP_USER] = {"USER", "USER", 8, 10, 10, 6, NEVER, "whose it is"},
	[TOP_COMMAND] = {"COMMAND", "COMMAND", 12, 15, 15, 1, NEVER, "name; (name) has ended"},
	[TOP_TASKS] = {"TASKS", "TASKS", 5, 6, 6, NEVER, 1, "live processes of a job"},
	[TOP_JOB] = {"JOB", "JOB", 12, 20, 64, 11, 0, "job of iocom, else cgroup"},
	[TOP_READ] = {"READ", "READ/s", 5, 7, 7, 4, 4, "bytes read from disk by calls, a second"},
	[TOP_WRITE] = {"WRITE", "WRITE/s", 5, 7, 7, 5, 5,
		       "bytes written to disk, also later by "
		       "the kernel for it"},
	[TOP_IMPLICIT] = {"IMPL", "IMPL/s", 5, 7, 7, 8, 8,
			  "bytes of disk I/O that page faults "
			  "caused"},
	[TOP_OPS] = {"IOPS", "IO/s", 5, 6, 6, 12, 9, "disk requests a second"},
	[TOP_SENT] = {"SENT", "SENT/s", 5, 7, 7, 7, 6, "TCP bytes that left the node"},
	[TOP_RECEIVED] = {"RECV", "RECV/s", 5, 7, 7, 9, 7, "TCP bytes that came from other nodes"},
	[TOP_LOCAL] = {"LOCAL", "LOCAL/s", 5, 7, 7, 13, 11, "TCP bytes within this machine"},
	[TOP_MESSAGES] = {"MSG", "MSG/s", 5, 6, 6, 14, 12, "messages sent and received"},
	[TOP_FAULTS] = {"FAULT", "FLT/s", 5, 6, 6, 15, 13, "page faults, minor and major"},
	[TOP_CPU] = {"CPU%", "CPU%", 5, 6, 6, 3, 3, "of one core"},
	[TOP_RSS] = {"RSS", "RSS", 5, 6, 6, 10, 10, "resident memory"},
	[TOP_SHARE] = {"SHARE%", "SHARE%", 8, 9, 9, 2, 2,
		       "largest share of CPU, disk or network "
		       "of the node"},
};

/* The order in which they stand. */
static const enum top_key order[] = {
	TOP_PID,      TOP_USER,	    TOP_COMMAND, TOP_JOB,  TOP_TASKS,	 TOP_READ,
	TOP_WRITE,    TOP_IMPLICIT, TOP_OPS,	 TOP_SENT, TOP_RECEIVED, TOP_LOCAL,
	TOP_MESSAGES, TOP_FAULTS,   TOP_CPU,	 TOP_RSS,  TOP_SHARE,
};

const char *top_table_help(enum top_key key)
{
	return (unsigned)key < TOP_KEYS ? columns[key].help : NULL;
}

static unsigned rank(enum top_key key, bool jobs, enum top_key sort)
{
	unsigned r = jobs ? columns[key].rank_jobs : columns[key].rank_tasks;

	return r != NEVER && key == sort ? 0 : r;
}

/* Columns whose rank is at most LIMIT; how wide they are together. */
static unsigned choose(struct top_column *out, size_t *n, unsigned limit, bool jobs,
		       enum top_key sort, bool roomy)
{
	unsigned width = 0;

	*n = 0;
	for (size_t i = 0; i < TOP_KEYS; i++) {
		enum top_key key = order[i];
		unsigned r = rank(key, jobs, sort);

		if (r == NEVER || r > limit)
			continue;
		out[*n] = (struct top_column){
			.key = key,
			.width = roomy ? columns[key].roomy : columns[key].width,
			.roomy = roomy,
		};
		width += out[*n].width + (*n ? 1 : 0);
		(*n)++;
	}
	return width;
}

/* Gives what is left to the command, the job, then the user. */
static void widen(struct top_column *out, size_t n, unsigned left)
{
	static const enum top_key names[] = {TOP_COMMAND, TOP_JOB, TOP_USER};

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		for (size_t i = 0; i < n; i++) {
			unsigned most = columns[names[k]].grow;
			unsigned more = out[i].width < most ? most - out[i].width : 0;

			if (out[i].key != names[k])
				continue;
			more = more < left ? more : left;
			out[i].width += more;
			left -= more;
		}
	}
}

size_t top_table_layout(struct top_column out[TOP_KEYS], unsigned width, bool jobs,
			enum top_key sort)
{
	unsigned limit = NEVER - 1, used;
	size_t n;

	used = choose(out, &n, limit, jobs, sort, true);
	if (used > width) {
		used = choose(out, &n, limit, jobs, sort, false);
		for (limit = TOP_KEYS; used > width && limit > 0; limit--)
			used = choose(out, &n, limit - 1, jobs, sort, false);
	}
	if (used < width)
		widen(out, n, width - used);
	return n;
}

void top_table_title(char *out, size_t size, const struct top_column *column)
{
	const struct column *c = &columns[column->key];
	bool left = top_key_is_text(column->key);

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

void top_table_cell(char *out, size_t size, const struct top_column *column,
		    const struct top_row *row)
{
	char text[64] = "";
	double value = row->value[column->key];

	switch (column->key) {
	case TOP_USER:
		top_format_fit(out, size, row->user, column->width, TOP_FIT_LEFT);
		return;
	case TOP_COMMAND:
		snprintf(text, sizeof(text), row->exited ? "(%.50s)" : "%.60s", row->comm);
		top_format_fit(out, size, text, column->width, TOP_FIT_LEFT);
		return;
	case TOP_JOB:
		top_format_fit(out, size,
			       *row->job    ? row->job
			       : *row->user ? "-"
					    : "(root)",
			       column->width, TOP_FIT_TAIL);
		return;
	case TOP_PID:
	case TOP_TASKS:
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
