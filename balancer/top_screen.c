/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom top` on a terminal.
 *
 * One loop: wait for a key, a document or a signal, take it, draw.  What is
 * drawn depends only on `struct screen`, so every event just changes that.
 */
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "top.h"
#include "top_table.h"

#define LINES_MAX  32
#define LINE_BYTES 4096

enum mode { MODE_TABLE, MODE_HELP, MODE_SORT };
enum colour { COLOUR_HEAD = 1, COLOUR_TITLE, COLOUR_ALERT, COLOUR_BUSY, COLOUR_WARM, COLOUR_JOB };

struct screen {
	const struct top_options *options;
	struct top_source *source;
	struct top_model *model;
	struct top_model_options view;
	enum mode mode;
	size_t offset; /* first row shown */
	size_t page;   /* rows that fit */
	bool paused, quit, colour;
	unsigned long shown;
	SCREEN *terminal;
};

/* The one thing a handler can reach; `iocom top` has one screen. */
static volatile sig_atomic_t stop_signal;

static void on_stop(int number)
{
	stop_signal = number;
}

static attr_t attribute(const struct screen *s, enum colour colour)
{
	static const attr_t plain[] = {
		[COLOUR_HEAD] = A_BOLD,
		[COLOUR_TITLE] = A_REVERSE,
		[COLOUR_ALERT] = A_REVERSE | A_BOLD,
		[COLOUR_BUSY] = A_BOLD,
		[COLOUR_WARM] = A_BOLD,
		[COLOUR_JOB] = A_NORMAL,
	};

	if (!s->colour)
		return plain[colour];
	return (attr_t)COLOR_PAIR(colour) |
	       (colour == COLOUR_HEAD || colour == COLOUR_ALERT ? A_BOLD : A_NORMAL);
}

static void start_colours(struct screen *s)
{
	const char *no = getenv("NO_COLOR");

	s->colour = !(no && *no) && has_colors() && start_color() == OK;
	if (!s->colour)
		return;
	use_default_colors();
	init_pair(COLOUR_HEAD, COLOR_CYAN, -1);
	init_pair(COLOUR_TITLE, COLOR_BLACK, COLOR_CYAN);
	init_pair(COLOUR_ALERT, COLOR_RED, -1);
	init_pair(COLOUR_BUSY, COLOR_RED, -1);
	init_pair(COLOUR_WARM, COLOR_YELLOW, -1);
	init_pair(COLOUR_JOB, COLOR_GREEN, -1);
}

/* Text at (Y, 0) in at most COLS columns. */
static void put_line(int y, const char *text, attr_t attributes)
{
	if (y >= LINES)
		return;
	attron(attributes);
	mvaddnstr(y, 0, text, COLS);
	attroff(attributes);
}

static int draw_head(struct screen *s)
{
	const json_t *document = top_model_document(s->model);
	struct top_line lines[LINES_MAX];
	unsigned disks = LINES >= 40 ? 8 : LINES >= 20 ? 2 : 1;
	size_t n = top_table_summary(document, disks, COLS >= 132 && LINES >= 30, lines, LINES_MAX);

	for (size_t i = 0; i < n; i++) {
		attr_t a = lines[i].alert ? attribute(s, COLOUR_ALERT) : A_NORMAL;

		put_line((int)i, lines[i].text, i == 0 ? attribute(s, COLOUR_HEAD) : a);
	}
	return (int)n;
}

static void draw_titles(struct screen *s, int y, const struct top_column *columns, size_t n)
{
	attr_t title = attribute(s, COLOUR_TITLE);
	char cell[LINE_BYTES];

	attron(title);
	mvhline(y, 0, ' ', COLS);
	move(y, 0);
	for (size_t c = 0; c < n; c++) {
		bool sorted = columns[c].key == s->view.key;

		cell[0] = 0;
		top_table_title(cell, sizeof(cell), &columns[c]);
		if (c)
			addch(' ' | title);
		if (sorted)
			attron(A_BOLD | A_UNDERLINE);
		addstr(cell);
		if (sorted)
			attroff(A_BOLD | A_UNDERLINE);
	}
	attroff(title);
}

static attr_t cell_attribute(const struct screen *s, const struct top_row *row, enum top_key key)
{
	double share = row->value[TOP_SHARE];

	if (row->exited || row->idle)
		return A_DIM;
	if (key == TOP_SHARE && share >= 0.8)
		return attribute(s, COLOUR_BUSY);
	if (key == TOP_SHARE && share >= 0.3)
		return attribute(s, COLOUR_WARM);
	if (key == TOP_JOB && *row->job && *row->job != '/')
		return attribute(s, COLOUR_JOB);
	return A_NORMAL;
}

static void draw_row(struct screen *s, int y, const struct top_column *columns, size_t n,
		     const struct top_row *row)
{
	char cell[LINE_BYTES];

	move(y, 0);
	for (size_t c = 0; c < n; c++) {
		attr_t a = cell_attribute(s, row, columns[c].key);

		cell[0] = 0;
		top_table_cell(cell, sizeof(cell), &columns[c], row);
		if (c)
			addch(' ');
		attron(a);
		addstr(cell);
		attroff(a);
	}
}

static void draw_foot(struct screen *s, size_t rows)
{
	char left[256], right[64];
	int width;

	snprintf(left, sizeof(left), "q quit  <> sort  r reverse  j %s  u %s  p %s  ? help",
		 s->view.jobs ? "tasks" : "jobs", s->view.filter_uid ? "all" : "own",
		 s->paused ? "go on" : "pause");
	snprintf(right, sizeof(right), " %s%s%s%s %zu-%zu/%zu", s->paused ? "PAUSED " : "",
		 top_key_name(s->view.key), s->view.reverse ? " up " : " ",
		 top_source_kind(s->source), rows ? s->offset + 1 : 0,
		 s->offset + s->page < rows ? s->offset + s->page : rows, rows);
	put_line(LINES - 1, left, A_DIM);
	width = (int)strlen(right);
	if (width + 1 < COLS) {
		attr_t a = s->paused ? attribute(s, COLOUR_WARM) : A_DIM;

		move(LINES - 1, COLS - width - 1);
		clrtoeol();
		attron(a);
		addstr(right);
		attroff(a);
	}
}

static void draw_table(struct screen *s)
{
	struct top_column columns[TOP_KEYS];
	size_t ncolumns = top_table_layout(columns, (unsigned)COLS, s->view.jobs, s->view.key);
	int y = draw_head(s);
	const struct top_row *rows;
	size_t n;

	rows = top_model_rows(s->model, &n);
	s->page = LINES > y + 2 ? (size_t)(LINES - y - 2) : 0;
	if (s->offset + s->page > n)
		s->offset = n > s->page ? n - s->page : 0;
	if (y < LINES)
		draw_titles(s, y, columns, ncolumns);
	for (size_t i = 0; i < s->page && s->offset + i < n; i++)
		draw_row(s, y + 1 + (int)i, columns, ncolumns, &rows[s->offset + i]);
	if (LINES > 1)
		draw_foot(s, n);
}

static void draw_help(struct screen *s)
{
	static const char *const text[] = {
		"q quit   p pause   ? this help    up down PgUp PgDn Home End: scroll",
		"< > sort by the column left or right   s choose   r reverse",
		"j jobs or tasks   u only my own",
		"Values are per second, K M G are powers of 1000, - is none.",
		"Press a key to go back.",
	};
	char line[128];
	int y = 0;

	put_line(y++, "iocom top", attribute(s, COLOUR_HEAD));
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		put_line(y++, text[i], A_NORMAL);
	for (unsigned k = 0; k < TOP_KEYS; k++) {
		snprintf(line, sizeof(line), "  %-10s %s", top_key_name(k), top_table_help(k));
		put_line(y++, line, A_NORMAL);
	}
}

static void draw_sort(struct screen *s)
{
	char line[128];
	int y = 0;

	put_line(y++,
		 "Sort by (press the letter; another key goes back):", attribute(s, COLOUR_HEAD));
	for (unsigned k = 0; k < TOP_KEYS; k++) {
		snprintf(line, sizeof(line), " %c %-10s %s", 'a' + k, top_key_name(k),
			 top_table_help(k));
		put_line(y++, line, k == s->view.key ? A_REVERSE : A_NORMAL);
	}
}

static void draw(struct screen *s)
{
	erase();
	if (s->mode == MODE_HELP)
		draw_help(s);
	else if (s->mode == MODE_SORT)
		draw_sort(s);
	else if (top_model_document(s->model))
		draw_table(s);
	else
		put_line(0,
			 "iocom top: counting; the first numbers come after one interval (q quits)",
			 A_NORMAL);
	refresh();
}

/* The next column to the left (-1) or right (+1) that is on the screen. */
static void move_sort(struct screen *s, int step)
{
	struct top_column columns[TOP_KEYS];
	size_t n = top_table_layout(columns, (unsigned)COLS, s->view.jobs, s->view.key);

	for (size_t i = 0; i < n; i++) {
		if (columns[i].key != s->view.key)
			continue;
		if (step < 0)
			s->view.key = columns[i ? i - 1 : 0].key;
		else
			s->view.key = columns[i + 1 < n ? i + 1 : i].key;
		return;
	}
}

static void scroll_to(struct screen *s, long rows)
{
	if (rows < 0 && s->offset < (size_t)-rows)
		s->offset = 0;
	else
		s->offset += (size_t)rows; /* the end is found when drawing */
}

static bool key_scroll(struct screen *s, int key)
{
	long page = s->page > 1 ? (long)s->page - 1 : 1;
	size_t n;

	top_model_rows(s->model, &n);
	if (key == KEY_UP || key == 'k')
		scroll_to(s, -1);
	else if (key == KEY_DOWN)
		scroll_to(s, 1);
	else if (key == KEY_PPAGE)
		scroll_to(s, -page);
	else if (key == KEY_NPAGE || key == ' ')
		scroll_to(s, page);
	else if (key == KEY_HOME || key == 'g')
		s->offset = 0;
	else if (key == KEY_END || key == 'G')
		s->offset = n;
	else
		return false;
	return true;
}

/* After a change of order or view: from the top, by a key that the view has. */
static void view_changed(struct screen *s)
{
	bool of_tasks =
		s->view.key == TOP_PID || s->view.key == TOP_USER || s->view.key == TOP_COMMAND;

	s->offset = 0;
	if (s->view.jobs ? of_tasks : s->view.key == TOP_TASKS)
		s->view.key = TOP_SHARE;
}

static void key_view(struct screen *s, int key)
{
	if (key == '<' || key == ',')
		move_sort(s, -1);
	else if (key == '>' || key == '.')
		move_sort(s, 1);
	else if (key == 'r')
		s->view.reverse = !s->view.reverse;
	else if (key == 'j')
		s->view.jobs = !s->view.jobs;
	else if (key == 'u')
		s->view.filter_uid = !s->view.filter_uid;
	else
		return;
	view_changed(s);
}

static void on_key(struct screen *s, int key)
{
	if (s->mode != MODE_TABLE) {
		if (s->mode == MODE_SORT && key >= 'a' && key < 'a' + TOP_KEYS) {
			s->view.key = (enum top_key)(key - 'a');
			view_changed(s);
		}
		if (key != KEY_RESIZE)
			s->mode = MODE_TABLE;
		return;
	}
	if (key == 'q' || key == 'Q')
		s->quit = true;
	else if (key == '?' || key == 'h' || key == KEY_F(1))
		s->mode = MODE_HELP;
	else if (key == 's')
		s->mode = MODE_SORT;
	else if (key == 'p')
		s->paused = !s->paused;
	else if (!key_scroll(s, key))
		key_view(s, key);
}

/* Takes a document; while paused it is read and let go. */
static int on_document(struct screen *s, struct iocom_err *err)
{
	json_t *document = NULL;
	int rc = top_source_next(s->source, &document, err);

	if (rc == TOP_SOURCE_E_AGAIN)
		return 0;
	if (!rc && (!s->paused || !top_model_document(s->model)))
		rc = top_model_set(s->model, document, err);
	json_decref(document);
	s->shown++;
	if (s->options->count && s->shown >= s->options->count)
		s->quit = true;
	return rc;
}

static int wait_and_take(struct screen *s, struct iocom_err *err)
{
	struct pollfd p[2] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = top_source_fd(s->source), .events = POLLIN},
	};
	int n = poll(p, 2, top_source_due_ms(s->source)), rc = 0, key;

	if (n < 0 && errno != EINTR)
		return iocom_err_set(err, -errno, "cannot wait: %s", strerror(errno));
	if (n < 0)
		p[0].revents = p[1].revents = 0;
	while ((key = getch()) != ERR)
		on_key(s, key);
	if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		s->quit = true;
	if (p[1].revents || (p[1].fd < 0 && top_source_due_ms(s->source) == 0))
		rc = on_document(s, err);
	return rc;
}

static int run(struct screen *s, struct iocom_err *err)
{
	int rc = 0;

	while (!rc && !s->quit && !stop_signal) {
		if (top_model_document(s->model) && top_model_arrange(s->model, &s->view))
			return iocom_err_set(err, -ENOMEM, "out of memory for the table");
		draw(s);
		rc = wait_and_take(s, err);
	}
	return rc;
}

static int open_terminal(struct screen *s, struct iocom_err *err)
{
	struct sigaction action = {.sa_handler = on_stop};

	/* Before curses, which keeps handlers that are there. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	s->terminal = newterm(NULL, stdout, stdin);
	if (!s->terminal)
		return iocom_err_set(
			err, -ENOTTY,
			"this terminal cannot show a screen (TERM=%s); use -b for tables "
			"or --json for lines",
			getenv("TERM") ? getenv("TERM") : "");
	start_colours(s);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	return 0;
}

int top_screen(const struct top_options *options, struct top_source *source, struct iocom_err *err)
{
	struct screen s = {.options = options, .source = source, .view = options->model};
	int rc;

	if (!s.view.filter_uid)
		s.view.uid = getuid();
	s.model = top_model_new();
	if (!s.model)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	rc = open_terminal(&s, err);
	if (!rc)
		rc = run(&s, err);
	if (s.terminal) {
		endwin();
		delscreen(s.terminal);
	}
	top_model_free(s.model);
	return rc;
}
