/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The client's terminal; see run_tty.h. */
#include "balancer/run/run_tty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CONTROL(letter) ((letter)&0x1f)

void run_tty_init(struct run_tty *tty, int input)
{
	*tty = (struct run_tty){.fd = -1, .escape = RUN_TTY_ESCAPE, .line_start = true};
	/* keep a copy: standard input may become /dev/null before the end */
	if (input >= 0 && isatty(input))
		tty->fd = fcntl(input, F_DUPFD_CLOEXEC, 3);
}

void run_tty_deinit(struct run_tty *tty)
{
	run_tty_restore(tty);
	if (tty->fd >= 0)
		close(tty->fd);
	tty->fd = -1;
}

int run_tty_take_escape(int *escape, const char *text, struct iocom_err *err)
{
	if (!strcmp(text, "none"))
		*escape = -1;
	else if (text[0] == '^' && text[1] >= '@' && text[1] <= '~' && !text[2])
		*escape = CONTROL(text[1]);
	else if (text[0] && !text[1])
		*escape = (uint8_t)text[0];
	else
		return iocom_err_set(err, -EINVAL,
				     "the escape is one character, ^ and a letter, or 'none', "
				     "not '%s'",
				     text);
	return 0;
}

void run_tty_size(const struct run_tty *tty, struct winsize *size)
{
	const int look[] = {tty->fd, STDOUT_FILENO, STDERR_FILENO};

	for (size_t i = 0; i < sizeof(look) / sizeof(look[0]); i++)
		if (look[i] >= 0 && !ioctl(look[i], TIOCGWINSZ, size) && size->ws_row &&
		    size->ws_col)
			return;
	*size = (struct winsize){.ws_row = 24, .ws_col = 80};
}

/* Without a terminal, the locale tells whether it is UTF-8. */
static bool speaks_utf8(const struct run_tty *tty)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	struct termios modes;

	if (tty->fd >= 0 && !tcgetattr(tty->fd, &modes))
		return modes.c_iflag & IUTF8;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

void run_tty_describe(const struct run_tty *tty, struct terminal *terminal)
{
	const char *name = getenv("TERM");
	struct termios modes;

	*terminal = (struct terminal){.wanted = true, .utf8 = speaks_utf8(tty)};
	run_tty_size(tty, &terminal->size);
	terminal->keyed = tty->fd >= 0 && !tcgetattr(tty->fd, &modes);
	for (size_t i = 0; terminal->keyed && i < TERMINAL_KEYS; i++)
		terminal->keys[i] = modes.c_cc[terminal_keys[i]];
	if (name && terminal_name_valid(name))
		strcpy(terminal->name, name);
}

/* Returns whether we are in the foreground; from the background a change of modes would stop us. */
static bool foreground(const struct run_tty *tty)
{
	return tty->fd >= 0 && tcgetpgrp(tty->fd) == getpgrp();
}

void run_tty_raw(struct run_tty *tty)
{
	struct termios modes;

	/* Even if it is raw already, set it again: a shell may have changed it. */
	if (!foreground(tty) || (!tty->raw && tcgetattr(tty->fd, &tty->before)))
		return;
	modes = tty->before;
	modes.c_iflag |= IGNPAR;
	modes.c_iflag &= ~(tcflag_t)(ISTRIP | INLCR | IGNCR | ICRNL | IXON | IXANY | IXOFF);
	modes.c_lflag &= ~(tcflag_t)(ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHONL | IEXTEN);
	modes.c_oflag &= ~(tcflag_t)OPOST;
	modes.c_cc[VMIN] = 1;
	modes.c_cc[VTIME] = 0;
	/* Not "drain": a terminal that is held up must not block us. */
	if (!tcsetattr(tty->fd, TCSANOW, &modes))
		tty->raw = true;
}

void run_tty_restore(struct run_tty *tty)
{
	if (tty->raw && foreground(tty))
		(void)tcsetattr(tty->fd, TCSANOW, &tty->before);
	tty->raw = false;
}

/*
 * Returns what the KEY after an escape asks for.  NONE: the job gets both keys, or one escape
 * if it is doubled.
 */
static enum run_tty_request request_of(const struct run_tty *tty, uint8_t key)
{
	if (key == tty->escape)
		return RUN_TTY_NONE;
	switch (key) {
	case '.':
		return RUN_TTY_LEAVE;
	case CONTROL('Z'):
		return RUN_TTY_STOP;
	case '?':
		return RUN_TTY_HELP;
	default:
		return RUN_TTY_NONE;
	}
}

enum run_tty_request run_tty_keys(struct run_tty *tty, const uint8_t *from, size_t n, uint8_t *out,
				  size_t *length, size_t *used)
{
	*length = *used = 0;
	while (*used < n) {
		uint8_t key = from[(*used)++];

		if (tty->escaped) {
			enum run_tty_request request = request_of(tty, key);

			tty->escaped = false;
			tty->line_start = request != RUN_TTY_NONE;
			if (request != RUN_TTY_NONE)
				return request;
			if (key != tty->escape)
				out[(*length)++] = (uint8_t)tty->escape;
		} else if (tty->line_start && key == tty->escape) {
			tty->escaped = true;
			continue;
		}
		out[(*length)++] = key;
		tty->line_start = key == '\r' || key == '\n';
	}
	return RUN_TTY_NONE;
}

void run_tty_help(const struct run_tty *tty, bool stays, char *out, size_t size)
{
	char name[3] = {(char)tty->escape, 0, 0};

	if (tty->escape < ' ') {
		name[0] = '^';
		name[1] = (char)(tty->escape + '@');
	}
	snprintf(out, size,
		 "\r\nThe escape %s, at the start of a line, and then\r\n"
		 "  .   leave and %s\r\n"
		 "  ^Z  stop this program here\r\n"
		 "  ?   this text\r\n"
		 "  %s   send %s itself\r\n",
		 name, stays ? "let the command go on" : "hang up the command's terminal", name,
		 name);
}
