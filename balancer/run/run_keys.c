/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The client of a job with a terminal: keys, size, escapes; see run_stream.h. */
#include "balancer/run/run_stream.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEYS_MAX 4096 /* most bytes read from a terminal at a time */

static void tell_size(struct run_stream *s, const struct winsize *size)
{
	uint8_t payload[TERMINAL_SIZE_BYTES];

	terminal_size_put(payload, size);
	if (!run_quiet(s) && wire_send(&s->wire, FRAME_WINSIZE, NULL, 0, payload, sizeof(payload)))
		run_broken(s, -EPIPE);
}

void run_keys_size(struct run_stream *s)
{
	struct winsize size;

	run_tty_size(s->tty, &size);
	tell_size(s, &size);
}

/*
 * Hangs the job up, as a terminal that is switched off would; it ends after its grace.  A
 * detached job goes on.
 */
static void run_keys_leave(struct run_stream *s)
{
	s->result->left = true;
	if (s->detached) {
		s->over = true;
		for (int i = 0; i < 2; i++)
			queue_free(&s->output[i].queue);
		return;
	}
	if (!run_quiet(s))
		(void)wire_signal(&s->wire, SIGHUP);
	run_lost(s, "left; the job's terminal was hung up");
	for (int i = 0; i < 2; i++)
		queue_free(&s->output[i].queue);
}

void run_keys_terminal(struct run_stream *s)
{
	if (!run_keys_there(s) || s->result->state != RUN_STARTED || s->over)
		return;
	run_tty_raw(s->tty);
	if (s->tty->raw)
		run_keys_size(s);
}

/*
 * Makes the program redraw its screen, which many do only when its size changes: we send a size
 * with one line less, and the true size a moment later.
 */
void run_keys_redraw(struct run_stream *s)
{
	struct winsize size;

	if (!run_keys_there(s) || !s->tty->raw)
		return;
	run_tty_size(s->tty, &size);
	size.ws_row = (unsigned short)(size.ws_row > 1 ? size.ws_row - 1 : 2);
	tell_size(s, &size);
	s->redraw_ms = run_now_ms() + RUN_REDRAW_MS;
}

void run_keys_redrawn(struct run_stream *s)
{
	if (!s->redraw_ms || run_now_ms() < s->redraw_ms || run_quiet(s))
		return;
	s->redraw_ms = 0;
	run_keys_size(s);
}

void run_keys_undo_modes(struct run_stream *s, bool back)
{
	struct run_output *output = &s->output[0];
	char text[RUN_MODES_TEXT];
	struct run_modes set = s->modes;
	size_t n;

	if (!output->modes)
		return;
	n = run_modes_undo(&set, text);
	if (n)
		(void)run_output_write(output, text, n);
	/* What it did not take must not keep us: the terminal is held up, or gone. */
	if (!back) {
		queue_free(&output->queue);
		return;
	}
	set.state = RUN_MODES_GROUND;
	s->modes = set;
}

static void run_keys_redo_modes(struct run_stream *s)
{
	char text[RUN_MODES_TEXT];
	size_t n = s->output[0].modes ? run_modes_redo(&s->modes, text) : 0;

	if (n)
		(void)run_output_write(&s->output[0], text, n);
}

/*
 * Stops us, as ^Z on the terminal would; the job goes on.  We use TSTP, not STOP: if no shell
 * could continue us, the kernel ignores it.
 */
static void stop_here(struct run_stream *s, pid_t who)
{
	sigset_t stop;

	run_keys_undo_modes(s, true);
	run_tty_restore(s->tty);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	kill(who, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	run_keys_redo_modes(s);
	run_keys_terminal(s);
	if (s->modes.changed)
		run_keys_redraw(s);
}

static void serve_request(struct run_stream *s, enum run_tty_request request)
{
	char text[512];

	if (request == RUN_TTY_LEAVE)
		run_keys_leave(s);
	if (request == RUN_TTY_STOP)
		stop_here(s, 0); /* with the other processes of our foreground group */
	if (request == RUN_TTY_HELP) {
		run_tty_help(s->tty, s->detached, text, sizeof(text));
		(void)run_output_write(&s->output[0], text, strlen(text));
	}
}

/* Keeps keys for the job; input_wanted has made sure that there is room. */
static void keep_keys(struct run_stream *s, const uint8_t *keys, size_t n)
{
	while (n) {
		size_t room;
		uint8_t *at = resend_space(&s->kept, &room);

		if (!at || !room)
			return;
		room = room < n ? room : n;
		memcpy(at, keys, room);
		resend_added(&s->kept, room);
		keys += room;
		n -= room;
	}
	run_send_input(s);
}

static void run_keys_take_keys(struct run_stream *s, const uint8_t *keys, size_t n)
{
	uint8_t piece[KEYS_MAX + 16];

	while (n && !s->over) {
		size_t length, used;
		enum run_tty_request request = run_tty_keys(s->tty, keys, n, piece, &length, &used);

		keep_keys(s, piece, length);
		serve_request(s, request);
		keys += used;
		n -= used;
	}
}

void run_keys_read(struct run_stream *s)
{
	uint8_t keys[KEYS_MAX];
	/* An escape that we held back may be added. */
	size_t room = resend_room(&s->kept) - 1;
	ssize_t n = read(s->input, keys, room < sizeof(keys) ? room : sizeof(keys));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		run_keys_take_keys(s, keys, (size_t)n);
		return;
	}
	s->input = -1;
	run_send_input(s);
}

/*
 * Handles signals that concern our terminal rather than the job.  A shell in the job ignores
 * TERM, so a second TERM, or one without effect after a while, ends us: timeout and systemd
 * send only one.  Returns whether SIGNAL was handled.
 */
bool run_keys_signal(struct run_stream *s, int signal)
{
	if (!s->tty || s->over || s->result->state != RUN_STARTED)
		return signal == SIGWINCH;
	if (run_leaves(s, signal))
		return false;
	switch (signal) {
	case SIGWINCH:
		run_keys_size(s);
		return true;
	case SIGCONT:
		run_keys_terminal(s);
		return true;
	case SIGTSTP:
		stop_here(s, getpid());
		return true;
	case SIGTERM:
		if (s->term_ms)
			run_keys_leave(s);
		else
			s->term_ms = run_now_ms() + RUN_TERM_MS;
		return s->over;
	case SIGHUP:
		run_keys_leave(s);
		return true;
	default:
		return false;
	}
}

void run_keys_term(struct run_stream *s)
{
	if (s->term_ms && !s->over && run_now_ms() >= s->term_ms)
		run_keys_leave(s);
}
