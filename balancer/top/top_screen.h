/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the parts of the screen share.  What is drawn depends only on `struct
 * screen`; every event (a key, a document, a signal) just changes that.
 */
#ifndef IOCOM_TOP_SCREEN_H
#define IOCOM_TOP_SCREEN_H

#define NCURSES_WIDECHAR 1
#include <curses.h>

#include "balancer/top/top.h"
#include "balancer/top/top_history.h"
#include "balancer/top/top_line.h"
#include "balancer/top/top_table.h"

#define FILTER_BYTES 128

enum mode { MODE_TABLE, MODE_HELP, MODE_SORT, MODE_DETAIL };

struct screen {
	const struct top_options *options;
	struct top_source *source;
	struct top_model *model;
	struct top_history *history;
	struct top_proc *proc;
	struct top_model_options view;
	struct top_layout layout; /* needs of the rows */
	char filter[FILTER_BYTES];
	bool editing; /* keys go to the filter */
	enum mode mode;
	size_t offset;	   /* first row shown */
	size_t page;	   /* rows that fit */
	uint64_t selected; /* id of the row with the bar; 0: none */
	size_t at;	   /* where it is */
	size_t scroll;	   /* lines of a page left out above */
	unsigned choice;   /* on the page of sort keys */
	bool cost, cost_set;
	bool paused, quit, colour, utf8;
	bool dirty;			  /* the rows are to be arranged anew */
	bool stale;			  /* what is shown is old: the agent is gone */
	struct top_row detail;		  /* of `selected`; its source is ours */
	bool detail_here;		  /* it is in the reading shown */
	double detail_seen_s, document_s; /* CLOCK_MONOTONIC; 0: never */
	unsigned long shown;
	SCREEN *terminal;
};

/* top_draw.c */
void screen_draw(struct screen *s);
/* Columns at the width of the terminal now. */
size_t screen_columns(const struct screen *s, struct top_column columns[TOP_COLUMNS]);
/* One piece of text at (Y, X), exactly WIDTH columns or to the edge; the column after it. */
int screen_put(int y, int x, const char *text, unsigned width, attr_t attributes);
void screen_line(const struct screen *s, int y, const struct top_line *line, attr_t also);
attr_t screen_ink(const struct screen *s, enum top_ink ink);
double screen_now_s(void); /* CLOCK_MONOTONIC */

/* top_pages.c: help, the choice of a sort key, details. */
void screen_draw_page(struct screen *s);

/* top_input.c.  IS_CODE: KEY is one of curses' KEY_..., else a character. */
void screen_key(struct screen *s, wint_t key, bool is_code);

#endif
