/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Handles the keys of `iocom top`. */
#include <limits.h>
#include <string.h>
#include <wchar.h>

#include "balancer/top/top_screen.h"

#define ESCAPE	  27
#define BACKSPACE 127
#define CTRL(c)	  ((c)&31)

/* Sorts by the next column to the left (-1) or right (+1) that is on the screen. */
static void move_sort(struct screen *s, int step)
{
	struct top_column columns[TOP_COLUMNS];
	size_t n = screen_columns(s, columns), at = 0;

	while (at < n && columns[at].key != (unsigned)s->view.key)
		at++;
	if (at == n)
		return;
	if (step < 0 && at)
		at--;
	else if (step > 0 && at + 1 < n)
		at++;
	if (columns[at].key == TOP_PAST && at + 1 < n && step > 0)
		at++;
	else if (columns[at].key == TOP_PAST && at && step < 0)
		at--;
	if (columns[at].key < TOP_KEYS)
		s->view.key = (enum top_key)columns[at].key;
}

/* After a change of order or view: starts at the top, sorted by a key that the view has. */
static void view_changed(struct screen *s)
{
	bool of_tasks =
		s->view.key == TOP_PID || s->view.key == TOP_USER || s->view.key == TOP_COMMAND;

	if (s->view.jobs ? of_tasks : s->view.key == TOP_TASKS)
		s->view.key = TOP_SHARE;
	s->offset = 0;
	s->dirty = true;
}

static void select_row(struct screen *s, size_t at)
{
	const struct top_row *rows;
	size_t n;

	rows = top_model_rows(s->model, &n);
	if (!n)
		return;
	s->at = at < n ? at : n - 1;
	s->selected = rows[s->at].id;
	s->dirty = true;
}

/* Moves the selection, or if there is none, scrolls. */
static void move_rows(struct screen *s, long step, bool by_page)
{
	size_t from = s->selected ? s->at : s->offset, to;
	size_t back = step < 0 ? (size_t)-step : 0;

	to = step < 0 ? (from > back ? from - back : 0) : from + (size_t)step;
	if (s->selected)
		select_row(s, to);
	else if (by_page)
		s->offset = to; /* drawing limits it to the end */
	else
		select_row(s, s->offset);
}

static bool key_move(struct screen *s, wint_t key, bool is_code)
{
	long page = s->page > 1 ? (long)s->page - 1 : 1;
	size_t n;

	top_model_rows(s->model, &n);
	if (!is_code && (key == 'k' || key == 'g' || key == 'G'))
		key = key == 'k' ? KEY_UP : key == 'g' ? KEY_HOME : KEY_END;
	else if (!is_code)
		return false;
	if (key == KEY_UP)
		move_rows(s, -1, false);
	else if (key == KEY_DOWN)
		move_rows(s, 1, false);
	else if (key == KEY_PPAGE)
		move_rows(s, -page, true);
	else if (key == KEY_NPAGE)
		move_rows(s, page, true);
	else if (key == KEY_HOME)
		move_rows(s, -(long)n, true);
	else if (key == KEY_END)
		move_rows(s, (long)n, true);
	else
		return false;
	return true;
}

/* Undoes one thing: selection, filter and so on. */
static void escape(struct screen *s)
{
	if (s->selected) {
		s->selected = 0;
		return;
	}
	if (s->filter[0])
		s->filter[0] = 0;
	else
		s->view.filter_uid = false;
	view_changed(s);
}

static void key_filter(struct screen *s, wint_t key, bool is_code)
{
	size_t n = strlen(s->filter);
	char bytes[MB_LEN_MAX + 1] = "";

	if ((is_code && key == KEY_BACKSPACE) || (!is_code && (key == BACKSPACE || key == '\b'))) {
		while (n && (s->filter[n - 1] & 0xc0) == 0x80)
			n--;
		s->filter[n ? n - 1 : 0] = 0;
	} else if (is_code && key != KEY_ENTER) {
		key_move(s, key, true);
		return;
	} else if (is_code || key == '\r' || key == '\n') {
		s->editing = false;
	} else if (key == ESCAPE) {
		s->editing = false;
		s->filter[0] = 0;
	} else if (key == CTRL('u')) {
		s->filter[0] = 0;
	} else if (key >= ' ') {
		mbstate_t state = {0};
		size_t length = wcrtomb(bytes, (wchar_t)key, &state);

		if (length != (size_t)-1 && n + length < sizeof(s->filter)) {
			memcpy(s->filter + n, bytes, length);
			s->filter[n + length] = 0;
		}
	}
	view_changed(s);
}

static void open_detail(struct screen *s)
{
	const struct top_row *rows;
	size_t n;

	if (!s->selected)
		select_row(s, s->offset);
	if (!s->selected)
		return;
	s->dirty = true;
	rows = top_model_rows(s->model, &n);
	if (s->at < n && rows[s->at].folded) { /* a folded row is no single task to show */
		s->view.fold = false;
		return;
	}
	s->scroll = 0;
	s->mode = MODE_DETAIL;
}

/* Handles keys that change the choice of rows or their order. */
static bool key_view(struct screen *s, wint_t key)
{
	struct top_model_options *v = &s->view;

	switch (key) {
	case '<':
	case ',':
		move_sort(s, -1);
		break;
	case '>':
	case '.':
		move_sort(s, 1);
		break;
	case 'r':
		v->reverse = !v->reverse;
		break;
	case 'j':
		v->jobs = !v->jobs;
		s->selected = 0;
		break;
	case 't':
		v->tree = !v->tree;
		break;
	case 'i':
		v->active = !v->active;
		break;
	case 'o':
		v->io = !v->io;
		break;
	case 'u':
		v->filter_uid = !v->filter_uid;
		break;
	case 'e':
		v->fold = !v->fold;
		break;
	case 'c':
		v->commands = !v->commands;
		break;
	default:
		return false;
	}
	view_changed(s);
	return true;
}

static void open_page(struct screen *s, enum mode mode)
{
	s->mode = mode;
	s->scroll = 0;
	s->choice = s->view.key;
}

static void key_table(struct screen *s, wint_t key, bool is_code)
{
	if (key_move(s, key, is_code))
		return;
	if (is_code) {
		if (key == KEY_F(1))
			open_page(s, MODE_HELP);
		else if (key == KEY_ENTER)
			open_detail(s);
		else if (key == KEY_F(10))
			s->quit = true;
		return;
	}
	if (key_view(s, key))
		return;
	if (key == 'q' || key == 'Q') {
		s->quit = true;
	} else if (key == '?' || key == 'h') {
		open_page(s, MODE_HELP);
	} else if (key == 's') {
		open_page(s, MODE_SORT);
	} else if (key == '/') {
		s->editing = true;
	} else if (key == '\r' || key == '\n') {
		open_detail(s);
	} else if (key == ESCAPE) {
		escape(s);
	} else if (key == 'p' || key == ' ') {
		s->paused = !s->paused;
	} else if (key == 'K') {
		s->cost = s->cost_set ? !s->cost : LINES < 30;
		s->cost_set = true;
	} else if (key == CTRL('l')) {
		clearok(stdscr, TRUE);
	}
}

/* Scrolls a page by arrow keys.  Returns whether KEY was one. */
static bool key_scroll(struct screen *s, wint_t key, bool is_code)
{
	size_t page = LINES > 2 ? (size_t)LINES - 2 : 1;

	if (!is_code)
		return false;
	if (key == KEY_DOWN)
		s->scroll++; /* drawing limits it to the end */
	else if (key == KEY_UP)
		s->scroll -= s->scroll > 0;
	else if (key == KEY_NPAGE)
		s->scroll += page;
	else if (key == KEY_PPAGE)
		s->scroll -= s->scroll < page ? s->scroll : page;
	else
		return key == KEY_HOME || key == KEY_END;
	return true;
}

static void key_sort(struct screen *s, wint_t key, bool is_code)
{
	bool chosen = !is_code && (key == '\r' || key == '\n');

	if (is_code && (key == KEY_UP || key == KEY_DOWN)) {
		if (key == KEY_UP)
			s->choice -= s->choice > 0;
		else
			s->choice += s->choice + 1 < TOP_KEYS;
		return;
	}
	if (!is_code && key >= 'a' && key < 'a' + TOP_KEYS) {
		s->choice = (unsigned)(key - 'a');
		chosen = true;
	}
	if (chosen || (is_code && key == KEY_ENTER)) {
		s->view.key = (enum top_key)s->choice;
		view_changed(s);
	}
	s->mode = MODE_TABLE;
}

void screen_key(struct screen *s, wint_t key, bool is_code)
{
	if (is_code && key == KEY_RESIZE)
		return;
	if (s->mode == MODE_SORT)
		key_sort(s, key, is_code);
	else if (s->mode != MODE_TABLE && !key_scroll(s, key, is_code))
		s->mode = MODE_TABLE;
	else if (s->mode == MODE_TABLE && s->editing)
		key_filter(s, key, is_code);
	else if (s->mode == MODE_TABLE)
		key_table(s, key, is_code);
}
