/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the parts of the screen share.  The drawing depends only on `struct screen`, and every
 * event (a key, a document, a signal) only changes that structure.
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
	struct top_layout layout; /* widths that the rows need */
	char filter[FILTER_BYTES];
	bool editing; /* keys go to the filter */
	enum mode mode;
	size_t offset;	   /* first row shown */
	size_t page;	   /* rows that fit */
	uint64_t selected; /* id of the selected row; 0: none */
	size_t at;	   /* its place */
	size_t scroll;	   /* lines of a page scrolled off the top */
	unsigned choice;   /* selected line on the page of sort keys */
	bool cost, cost_set;
	bool paused, quit, colour, utf8;
	bool dirty;			  /* the rows must be arranged again */
	bool stale;			  /* the shown reading is old because the agent is gone */
	struct top_row detail;		  /* the row of `selected`; we own its source */
	bool detail_here;		  /* the shown reading has it */
	double detail_seen_s, document_s; /* CLOCK_MONOTONIC; 0: never */
	unsigned long shown;
	SCREEN *terminal;
};

/* top_draw.c */
void screen_draw(struct screen *s);
/* The columns that fit the terminal's present width. */
size_t screen_columns(const struct screen *s, struct top_column columns[TOP_COLUMNS]);
/* Draws a text at (Y, X), exactly WIDTH columns or up to the edge.  Returns the next column. */
int screen_put(int y, int x, const char *text, unsigned width, attr_t attributes);
void screen_line(const struct screen *s, int y, const struct top_line *line, attr_t also);
attr_t screen_ink(const struct screen *s, enum top_ink ink);
double screen_now_s(void); /* CLOCK_MONOTONIC */

/* top_pages.c: help, the choice of a sort key, details. */
void screen_draw_page(struct screen *s);

/* top_input.c.  IS_CODE: KEY is a KEY_ constant of curses, else a character. */
void screen_key(struct screen *s, wint_t key, bool is_code);

#endif
