/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom top` on a terminal.  One loop waits for a key, a document or a signal, handles it and
 * draws.
 */
#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/top/top_screen.h"

#define TICK_MS 1000 /* the notice about a silent agent is redrawn this often */

/* All that a signal handler may touch; `iocom top` has only one screen. */
static volatile sig_atomic_t stop_signal;

static void on_stop(int number)
{
	stop_signal = number;
}

static void start_colours(struct screen *s)
{
	static const short colours[TOP_INKS][2] = {
		[TOP_INK_NAME] = {COLOR_CYAN, -1},
		[TOP_INK_TITLE] = {COLOR_BLACK, COLOR_CYAN},
		[TOP_INK_ALERT] = {COLOR_RED, -1},
		[TOP_INK_BUSY] = {COLOR_RED, -1},
		[TOP_INK_WARM] = {COLOR_YELLOW, -1},
		[TOP_INK_EXPLICIT] = {COLOR_CYAN, -1},
		[TOP_INK_IMPLICIT] = {COLOR_MAGENTA, -1},
		[TOP_INK_NETWORK] = {COLOR_GREEN, -1},
		[TOP_INK_SPARK] = {COLOR_BLUE, -1},
	};
	const char *no = getenv("NO_COLOR");

	s->colour = !s->options->no_colour && !(no && *no) && has_colors() && start_color() == OK;
	if (!s->colour)
		return;
	use_default_colors();
	for (short i = 0; i < TOP_INKS; i++)
		if (colours[i][0] || colours[i][1])
			init_pair(i, colours[i][0], colours[i][1]);
}

/*
 * Returns whether to draw blocks and lines: the terminal must know UTF-8 and not be too old for it.
 */
static bool can_draw_utf8(void)
{
	const char *term = getenv("TERM");

	return !strcmp(nl_langinfo(CODESET), "UTF-8") && term && strncmp(term, "vt", 2) &&
	       strcmp(term, "linux");
}

/* Finds the selected row again; if it is gone, selects the row that is now in its place. */
static void find_selected(struct screen *s)
{
	struct top_row row;
	const struct top_row *rows;
	size_t n;

	rows = top_model_rows(s->model, &n);
	if (!s->selected)
		return;
	if (s->mode == MODE_TABLE) {
		size_t at = 0;

		while (at < n && rows[at].id != s->selected)
			at++;
		if (at == n && n)
			s->selected = rows[s->at < n ? s->at : n - 1].id;
		if (at == n)
			at = s->at < n ? s->at : n ? n - 1 : 0;
		s->at = at;
	}
	if (s->at < n && rows[s->at].folded && rows[s->at].id == s->selected) {
		json_decref(s->detail.source);
		s->detail = rows[s->at];
		s->detail.source = NULL; /* a folded row has no element in the document */
		return;
	}
	s->detail_here = !top_model_find(s->model, s->selected, &s->view, &row);
	if (s->detail_here) {
		json_incref(row.source);
		json_decref(s->detail.source);
		s->detail = row;
		s->detail_seen_s = screen_now_s();
		if (!row.is_job) {
			const char *line =
				top_proc_command(s->proc, (pid_t)row.value[TOP_PID], row.comm);
			s->detail.command = line ? line : row.comm;
		}
	} else if (s->detail.source) {
		s->detail.command = s->detail.comm; /* the other text is no longer valid */
	}
}

static int arrange(struct screen *s, struct iocom_err *err)
{
	const struct top_row *rows;
	size_t n;

	if (!s->dirty || !top_model_document(s->model))
		return 0;
	s->view.text = s->filter;
	s->view.proc = s->proc;
	s->view.busy_jobs = true;
	if (top_model_arrange(s->model, &s->view))
		return iocom_err_set(err, -ENOMEM, "out of memory for the table");
	rows = top_model_rows(s->model, &n);
	s->layout.jobs = s->view.jobs;
	top_table_needs(&s->layout, rows, n);
	find_selected(s);
	s->dirty = false;
	return 0;
}

/* Reads a document; while paused, drops it. */
static int on_document(struct screen *s, struct iocom_err *err)
{
	json_t *document = NULL;
	int rc = top_source_next(s->source, &document, err);

	if (rc == TOP_SOURCE_E_AGAIN)
		return 0;
	if (!rc && (!s->paused || !top_model_document(s->model))) {
		rc = top_model_set(s->model, document, err);
		if (!rc) {
			top_history_add(s->history, document);
			top_proc_turn(s->proc);
			s->dirty = true;
		}
	}
	json_decref(document);
	s->document_s = screen_now_s();
	s->shown++;
	if (s->options->count && s->shown >= s->options->count)
		s->quit = true;
	return rc;
}

static void top_screen_take_keys(struct screen *s)
{
	wint_t key;
	int kind;

	while ((kind = get_wch(&key)) != ERR)
		screen_key(s, key, kind == KEY_CODE_YES);
}

static int wait_and_take(struct screen *s, struct iocom_err *err)
{
	struct pollfd p[2] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = top_source_fd(s->source), .events = POLLIN},
	};
	int due = top_source_due_ms(s->source), n;

	n = poll(p, 2, due >= 0 && due < TICK_MS ? due : TICK_MS);
	if (n < 0 && errno != EINTR)
		return iocom_err_set(err, -errno, "cannot wait: %s", strerror(errno));
	if (n < 0)
		p[0].revents = p[1].revents = 0;
	top_screen_take_keys(s);
	if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		s->quit = true;
	if (p[1].revents || (p[1].fd < 0 && top_source_due_ms(s->source) == 0))
		return on_document(s, err);
	return 0;
}

static int top_screen_run(struct screen *s, struct iocom_err *err)
{
	int rc = 0;

	while (!rc && !s->quit && !stop_signal) {
		rc = arrange(s, err);
		if (rc)
			return rc;
		screen_draw(s);
		rc = wait_and_take(s, err);
	}
	return rc;
}

static int open_terminal(struct screen *s, struct iocom_err *err)
{
	struct sigaction action = {.sa_handler = on_stop};

	/* Set these before curses starts, which keeps existing handlers. */
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
	s->utf8 = can_draw_utf8();
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	return 0;
}

static int open_parts(struct screen *s, struct iocom_err *err)
{
	s->model = top_model_new();
	s->history = top_history_new();
	s->proc = top_proc_new(top_proc_root(s->options->source.node));
	if (!s->model || !s->history || !s->proc)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

int top_screen(const struct top_options *options, struct top_source *source, struct iocom_err *err)
{
	struct screen s = {.options = options, .source = source, .view = options->model};
	int rc;

	if (!s.view.filter_uid)
		s.view.uid = getuid();
	s.view.fold = true;
	if (s.view.text)
		snprintf(s.filter, sizeof(s.filter), "%s", s.view.text);
	rc = open_parts(&s, err);
	if (!rc)
		rc = open_terminal(&s, err);
	if (!rc)
		rc = top_screen_run(&s, err);
	if (s.terminal) {
		endwin();
		delscreen(s.terminal);
	}
	json_decref(s.detail.source);
	top_proc_free(s.proc);
	top_history_free(s.history);
	top_model_free(s.model);
	return rc;
}
