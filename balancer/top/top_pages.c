/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Pages that replace the table: help, the choice of a sort key, details. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/top/top_detail.h"
#include "balancer/top/top_screen.h"

#define HELP_LINES 64

static size_t help_lines(struct top_line *lines)
{
	static const char *const text[] = {
		"q Ctrl-C  quit                         ?  this help",
		"< >  sort by the column beside         s  choose what to sort by",
		"r  turn the order around               /  filter by name, user, job, pid",
		"j  jobs or tasks                       t  tree: by parent, by cgroup",
		"i  only what is active                 o  only what does I/O",
		"u  only my own                         c  command lines",
		"arrows PgUp PgDn Home End: select      Enter  all of the selected row",
		"p Space  pause                         K  what counting costs",
		"e  ended tasks of one name apart       Esc  clear selection, filter",
	};
	size_t n = 0;

	memset(lines, 0, HELP_LINES * sizeof(*lines));
	top_line_add(&lines[n++], 0, TOP_INK_NAME, "iocom top");
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		top_line_add(&lines[n++], 0, TOP_INK_PLAIN, "%s", text[i]);
	top_line_add(&lines[n++], 0, TOP_INK_EXPLICIT,
		     "Explicit I/O: a call asked for it (read, write, fsync, ...).");
	top_line_add(&lines[n++], 0, TOP_INK_IMPLICIT,
		     "Implicit I/O: touching memory did (mapped files, program code, swap).");
	top_line_add(&lines[n++], 0, TOP_INK_PLAIN,
		     "Per second; K M G are powers of 1000; - is none; (name) has ended.");
	top_line_add(&lines[n++], 0, TOP_INK_PLAIN,
		     "A disk's bytes: of tasks; stacked (sent by a disk above it, like loop);");
	top_line_add(
		&lines[n++], 0, TOP_INK_PLAIN,
		" unattributed (no known writer); foreign; residual (the kernel counts more).");
	for (unsigned k = 0; k < TOP_COLUMNS; k++) {
		top_line_add(&lines[n], 0, TOP_INK_NAME, "  %-10s",
			     k < TOP_KEYS ? top_key_name(k) : "past");
		top_line_add(&lines[n++], 0, top_table_ink(k), " %s", top_table_help(k));
	}
	return n;
}

static size_t sort_lines(const struct screen *s, struct top_line *lines)
{
	size_t n = 0;

	memset(lines, 0, HELP_LINES * sizeof(*lines));
	for (unsigned k = 0; k < TOP_KEYS; k++) {
		enum top_ink ink = k == s->choice ? TOP_INK_TITLE : TOP_INK_PLAIN;

		top_line_add(&lines[n], 0, ink, " %c %-10s", 'a' + k, top_key_name(k));
		top_line_add(&lines[n++], 0, ink, " %s", top_table_help(k));
	}
	return n;
}

/* Draws the lines from `scroll` on; the last line says how to leave. */
static void draw_lines(struct screen *s, struct top_line *lines, size_t n, const char *foot)
{
	size_t room = LINES > 1 ? (size_t)LINES - 1 : 1;
	char text[128];

	if (s->scroll + room > n)
		s->scroll = n > room ? n - room : 0;
	for (size_t i = 0; i < room && s->scroll + i < n; i++) {
		top_line_fit(&lines[s->scroll + i], (unsigned)COLS);
		screen_line(s, (int)i, &lines[s->scroll + i], A_NORMAL);
	}
	if (LINES < 2)
		return;
	snprintf(text, sizeof(text), "%s%s", foot, n > room ? "  (arrows: more)" : "");
	screen_put(LINES - 1, 0, text, (unsigned)COLS, A_DIM);
}

static size_t detail_lines(const struct screen *s, struct top_line *lines)
{
	double ago = screen_now_s() - s->detail_seen_s;
	struct top_detail_options o = {
		.width = (unsigned)COLS,
		.utf8 = s->utf8,
		.history = s->history,
		.seen_ago_s = s->detail_here ? -1 : ago,
	};

	return s->detail.source ? top_detail(&s->detail, &o, lines) : 0;
}

void screen_draw_page(struct screen *s)
{
	struct top_line *lines = calloc(TOP_DETAIL_LINES + HELP_LINES, sizeof(*lines));
	size_t n;

	if (!lines) {
		screen_put(0, 0, "out of memory for this page", (unsigned)COLS, A_BOLD);
		return;
	}
	if (s->mode == MODE_HELP) {
		n = help_lines(lines);
		draw_lines(s, lines, n, "Press a key to go back");
	} else if (s->mode == MODE_SORT) {
		n = sort_lines(s, lines);
		if (LINES > 1 && s->choice >= s->scroll + (size_t)LINES - 1)
			s->scroll = s->choice - ((size_t)LINES - 1) + 1;
		if (s->choice < s->scroll)
			s->scroll = s->choice;
		draw_lines(s, lines, n, "Sort by: its letter, or arrows and Enter; Esc goes back");
	} else {
		n = detail_lines(s, lines);
		draw_lines(s, lines, n, "Esc goes back");
	}
	free(lines);
}
