/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Draws the table, from top to bottom: head, groups of columns, titles, rows, the selected
 * row's history, keys.  A low terminal loses lines of the head first: two rows and the titles
 * stay if there are four lines.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "balancer/top/top_format.h"
#include "balancer/top/top_head.h"
#include "balancer/top/top_screen.h"

#define SILENT_S 3 /* the agent counts as silent after its interval and this time */

double screen_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

attr_t screen_ink(const struct screen *s, enum top_ink ink)
{
	static const attr_t plain[TOP_INKS] = {
		[TOP_INK_NAME] = A_BOLD,
		[TOP_INK_DIM] = A_DIM,
		[TOP_INK_TITLE] = A_REVERSE,
		[TOP_INK_BUSY] = A_BOLD,
		[TOP_INK_ALERT] = A_REVERSE | A_BOLD,
		[TOP_INK_WARM] = A_BOLD,
	};

	if (!s->colour || ink == TOP_INK_PLAIN || ink == TOP_INK_DIM)
		return plain[ink];
	return (attr_t)COLOR_PAIR(ink) |
	       (ink == TOP_INK_NAME || ink == TOP_INK_ALERT ? A_BOLD : A_NORMAL);
}

int screen_put(int y, int x, const char *text, unsigned width, attr_t attributes)
{
	char cell[TOP_LINE_BYTES] = "";

	if (y < 0 || y >= LINES || x >= COLS)
		return x + (int)width;
	if (width > (unsigned)(COLS - x))
		width = (unsigned)(COLS - x);
	top_format_fit(cell, sizeof(cell), text, width, TOP_FIT_LEFT);
	attron(attributes);
	mvaddstr(y, x, cell);
	attroff(attributes);
	return x + (int)width;
}

void screen_line(const struct screen *s, int y, const struct top_line *line, attr_t also)
{
	int x = 0;

	for (unsigned i = 0; i < line->n; i++)
		x = screen_put(y, x, line->piece[i].text, top_format_width(line->piece[i].text),
			       screen_ink(s, line->piece[i].ink) | also);
}

/* Makes the sentence about an agent that does not answer.  Returns false when all is well. */
static bool notice(const struct screen *s, struct top_line *line)
{
	double silent = screen_now_s() - s->document_s - s->options->source.interval_s;
	struct top_source_gone gone;
	char span[TOP_NUMBER_MAX];

	*line = (struct top_line){.rank = 0};
	if (top_source_gone(s->source, &gone)) {
		top_format_span(span, gone.since_s);
		top_line_add(line, 0, TOP_INK_ALERT, "The agent went away %s ago", span);
		top_format_span(span, gone.retry_s);
		if (gone.retry_s < 0)
			top_line_add(line, 1, TOP_INK_ALERT,
				     "; it is back and takes a first reading");
		else
			top_line_add(line, 1, TOP_INK_ALERT, "; asking again in %s", span);
		if (top_model_document(s->model))
			top_line_add(line, 2, TOP_INK_ALERT, "; below is its last reading");
		top_line_add(line, 3, TOP_INK_DIM, "  (%.200s)", gone.why);
	} else if (s->document_s > 0 && silent > SILENT_S &&
		   !strcmp(top_source_kind(s->source), "agent")) {
		top_format_span(span, silent);
		top_line_add(line, 0, TOP_INK_ALERT, "The agent is silent for %s", span);
	}
	return line->n > 0;
}

static size_t head_most(void)
{
	return LINES >= 40 ? TOP_HEAD_LINES : LINES >= 12 ? (size_t)LINES / 3 : LINES > 3 ? 1 : 0;
}

static int draw_head(struct screen *s)
{
	struct top_head_options o = {
		.width = (unsigned)COLS,
		.disks = LINES >= 40   ? 8
			 : LINES >= 20 ? 2
				       : 1,
		.cost = s->cost_set ? s->cost : LINES >= 30,
		.utf8 = s->utf8,
		.history = s->history,
	};
	struct top_line lines[TOP_HEAD_LINES + 1];
	bool told = s->stale = notice(s, &lines[0]);
	size_t n =
		top_head(top_model_document(s->model), top_model_previous(s->model), &o, lines + 1);
	size_t most = head_most();

	if (told)
		top_line_fit(&lines[0], (unsigned)COLS);
	n = top_lines_most(told ? lines : lines + 1, told ? n + 1 : n,
			   told && !most ? LINES > 1 : most);
	for (size_t i = 0; i < n; i++)
		screen_line(s, (int)i, &lines[told ? i : i + 1], told && i ? A_DIM : A_NORMAL);
	return (int)n;
}

size_t screen_columns(const struct screen *s, struct top_column columns[TOP_COLUMNS])
{
	struct top_layout layout = s->layout;

	layout.width = (unsigned)COLS;
	layout.jobs = s->view.jobs;
	layout.long_names = !s->view.jobs && (s->view.tree || s->view.commands);
	layout.past = true;
	layout.sort = s->view.key;
	return top_table_layout(columns, &layout);
}

static void draw_titles(struct screen *s, int y, const struct top_column *columns, size_t n)
{
	const json_t *document = top_model_document(s->model);
	attr_t title = screen_ink(s, TOP_INK_TITLE);
	int x = 0;

	attron(title);
	mvhline(y, 0, ' ', COLS);
	attroff(title);
	for (size_t c = 0; c < n; c++) {
		bool sorted = columns[c].key == (unsigned)s->view.key;
		bool less = columns[c].key < TOP_KEYS && top_key_degraded(document, columns[c].key);
		char cell[TOP_LINE_BYTES] = "";

		top_table_title(cell, sizeof(cell), &columns[c]);
		x += c > 0;
		x = screen_put(y, x, cell, columns[c].width,
			       (less ? screen_ink(s, TOP_INK_ALERT) : title) |
				       (sorted ? A_BOLD | A_UNDERLINE : A_NORMAL));
	}
}

static attr_t cell_ink(const struct screen *s, const struct top_row *row,
		       const struct top_column *column)
{
	double share = row->value[TOP_SHARE];

	if (row->exited || row->idle || row->context || s->stale)
		return A_DIM;
	if (column->key == TOP_SHARE && share >= 0.3)
		return screen_ink(s, share >= 0.8 ? TOP_INK_BUSY : TOP_INK_WARM);
	if (column->key == TOP_PAST)
		return screen_ink(s, TOP_INK_SPARK);
	if (column->key < TOP_KEYS && !top_key_is_text(column->key) &&
	    !(row->value[column->key] > 0))
		return A_DIM;
	return screen_ink(s, top_table_ink(column->key));
}

static void draw_row(struct screen *s, int y, const struct top_column *columns, size_t n,
		     const struct top_row *row)
{
	struct top_look look = {.utf8 = s->utf8, .jobs = s->view.jobs, .history = s->history};
	bool bar = s->selected && row->id == s->selected;
	int x = 0;

	if (bar) {
		attron(A_REVERSE);
		mvhline(y, 0, ' ', COLS);
		attroff(A_REVERSE);
	}
	for (size_t c = 0; c < n; c++) {
		char cell[TOP_LINE_BYTES] = "";

		top_table_cell(cell, sizeof(cell), &columns[c], row, &look);
		x += c > 0;
		x = screen_put(y, x, cell, columns[c].width,
			       bar ? A_REVERSE : cell_ink(s, row, &columns[c]));
	}
}

/* Shows what the selected row did lately. */
static void draw_selected(struct screen *s, int y)
{
	static const char *const names[TOP_SERIES] = {"cpu", "disk", "net"};
	struct top_line line = {0};
	const struct top_row *row = &s->detail;
	size_t n = COLS >= 160 ? 30 : COLS >= 100 ? 16 : 10;

	if (row->folded)
		top_line_add(&line, 0, TOP_INK_NAME, "%u ended tasks named %.15s (e, Enter: each)",
			     row->folded, row->comm);
	if (!row->source) {
		screen_line(s, y, &line, A_NORMAL);
		return;
	}
	if (row->is_job)
		top_line_add(&line, 0, TOP_INK_NAME, "%.24s", *row->label ? row->label : "(root)");
	else
		top_line_add(&line, 0, TOP_INK_NAME, "%.0f %.15s", row->value[TOP_PID], row->comm);
	for (unsigned i = 0; i < TOP_SERIES; i++) {
		char spark[TOP_PIECE_BYTES] = "", number[TOP_NUMBER_MAX];
		float values[30];

		top_history_get(s->history, row->id, i, values, n);
		top_format_spark(spark, sizeof(spark), values, n, 0, s->utf8);
		if (i == TOP_SERIES_CPU)
			top_format_percent(number, values[n - 1]);
		else
			top_format_bytes(number, values[n - 1]);
		top_line_add(&line, 1, TOP_INK_PLAIN, "  %s %s%s ", names[i], number,
			     i == TOP_SERIES_CPU ? "%" : "");
		top_line_add(&line, 2, TOP_INK_SPARK, "%s", spark);
	}
	top_line_add(&line, 3, TOP_INK_DIM, "  Enter: all of it");
	top_line_fit(&line, (unsigned)COLS);
	screen_line(s, y, &line, A_NORMAL);
}

static void filter_foot(struct screen *s, size_t rows)
{
	struct top_line line = {0};

	top_line_add(&line, 0, TOP_INK_NAME, "Filter: ");
	top_line_add(&line, 0, TOP_INK_PLAIN, "%s_", s->filter);
	top_line_add(&line, 1, TOP_INK_DIM, "   %zu row%s", rows, rows == 1 ? "" : "s");
	top_line_add(&line, 2, TOP_INK_DIM, "   Enter keeps it, Esc clears it");
	top_line_fit(&line, (unsigned)COLS);
	screen_line(s, LINES - 1, &line, A_NORMAL);
}

/* Shows what filters the view, and the position in it. */
static void foot_state(const struct screen *s, size_t rows, struct top_line *line)
{
	size_t end = s->offset + s->page < rows ? s->offset + s->page : rows;

	if (s->paused)
		top_line_add(line, 0, TOP_INK_WARM, "PAUSED ");
	if (*s->filter)
		top_line_add(line, 1, TOP_INK_WARM, "filter '%s' ", s->filter);
	if (s->view.active || s->view.io || s->view.filter_uid)
		top_line_add(line, 2, TOP_INK_WARM, "%s%s%sonly ", s->view.active ? "active " : "",
			     s->view.io ? "I/O " : "", s->view.filter_uid ? "own " : "");
	top_line_add(line, 3, TOP_INK_DIM, "%s%s%s %s ", top_key_name(s->view.key),
		     s->view.reverse ? " up" : "", s->view.tree ? " tree" : "",
		     top_source_kind(s->source));
	top_line_add(line, 1, TOP_INK_DIM, "%zu-%zu/%zu", rows ? s->offset + 1 : 0, end, rows);
}

static unsigned line_width(const struct top_line *line)
{
	unsigned width = 0;

	for (unsigned i = 0; i < line->n; i++)
		width += top_format_width(line->piece[i].text);
	return width;
}

static void draw_foot(struct screen *s, size_t rows)
{
	struct top_line keys = {0}, state = {0};
	unsigned width, columns = (unsigned)COLS;
	int x;

	if (s->editing) {
		filter_foot(s, rows);
		return;
	}
	foot_state(s, rows, &state);
	top_line_fit(&state, columns);
	width = line_width(&state);
	top_line_add(&keys, 0, TOP_INK_DIM, "q quit ");
	top_line_add(&keys, 0, TOP_INK_DIM, " ? help ");
	top_line_add(&keys, 3, TOP_INK_DIM, " <> sort ");
	top_line_add(&keys, 2, TOP_INK_DIM, " / filter ");
	top_line_add(&keys, 4, TOP_INK_DIM, " j %s ", s->view.jobs ? "tasks" : "jobs");
	top_line_add(&keys, 5, TOP_INK_DIM, " t tree ");
	top_line_add(&keys, 6, TOP_INK_DIM, " i active ");
	top_line_add(&keys, 7, TOP_INK_DIM, " o I/O ");
	top_line_add(&keys, 8, TOP_INK_DIM, " c command lines ");
	top_line_add(&keys, 9, TOP_INK_DIM, " Enter details ");
	if (width + 2 < columns) {
		top_line_fit(&keys, columns - width - 2);
		screen_line(s, LINES - 1, &keys, A_NORMAL);
	}
	x = columns > width ? (int)(columns - width) : 0;
	for (unsigned i = 0; i < state.n; i++)
		x = screen_put(LINES - 1, x, state.piece[i].text,
			       top_format_width(state.piece[i].text),
			       screen_ink(s, state.piece[i].ink));
}

/* Scrolls so that the selected row is visible; without one, keeps the offset in range. */
static void top_draw_settle(struct screen *s, size_t rows)
{
	if (s->selected && s->page) {
		if (s->at < s->offset)
			s->offset = s->at;
		else if (s->at >= s->offset + s->page)
			s->offset = s->at - s->page + 1;
	}
	if (s->offset + s->page > rows)
		s->offset = rows > s->page ? rows - s->page : 0;
}

static void draw_table(struct screen *s)
{
	struct top_column columns[TOP_COLUMNS];
	size_t ncolumns = screen_columns(s, columns), n;
	const struct top_row *rows = top_model_rows(s->model, &n);
	int y = draw_head(s), foot = LINES >= 4;
	bool past = s->selected && LINES >= 16;
	struct top_line groups;

	if (LINES >= 16) {
		top_table_groups(columns, ncolumns, s->utf8, &groups);
		screen_line(s, y++, &groups, A_NORMAL);
	}
	if (y + foot < LINES)
		draw_titles(s, y++, columns, ncolumns);
	s->page = LINES > y + foot + past ? (size_t)(LINES - y - foot - past) : 0;
	top_draw_settle(s, n);
	for (size_t i = 0; i < s->page && s->offset + i < n; i++)
		draw_row(s, y + (int)i, columns, ncolumns, &rows[s->offset + i]);
	if (!n && s->page)
		screen_put(y, 0, "nothing to show: the last line says what filters the view",
			   (unsigned)COLS, A_DIM);
	if (past)
		draw_selected(s, LINES - 2);
	if (foot)
		draw_foot(s, n);
}

void screen_draw(struct screen *s)
{
	struct top_line line;

	erase();
	if (s->mode != MODE_TABLE) {
		screen_draw_page(s);
	} else if (top_model_document(s->model)) {
		draw_table(s);
	} else {
		if (!notice(s, &line))
			top_line_add(&line, 0, TOP_INK_PLAIN,
				     "iocom top: counting; the first numbers come after one "
				     "interval (q quits)");
		top_line_fit(&line, (unsigned)COLS);
		screen_line(s, 0, &line, A_NORMAL);
	}
	refresh();
}
