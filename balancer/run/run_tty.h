/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client's terminal while a job has one of its own (`--pty`).  It is raw from the job's
 * start to its end, so that every key goes to the job's terminal; an escape key at the start of
 * a line talks to this program, as in ssh.
 */
#ifndef IOCOM_RUN_TTY_H
#define IOCOM_RUN_TTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

#include "iocom/err.h"
#include "user/terminal.h"

#define RUN_TTY_ESCAPE '~'

struct run_tty {
	int fd;	    /* our own descriptor of standard input's terminal; -1: it is none */
	int escape; /* the character; -1: none */
	bool raw;
	struct termios before;	  /* modes before it became raw */
	bool line_start, escaped; /* state of the keys: after a newline; after the escape */
};

/* What the keys ask of this program. */
enum run_tty_request { RUN_TTY_NONE, RUN_TTY_LEAVE, RUN_TTY_STOP, RUN_TTY_HELP };

/* Uses standard input as the terminal if it is one.  Changes nothing yet. */
void run_tty_init(struct run_tty *tty, int input);
/* Restores the terminal and gives up the descriptor. */
void run_tty_deinit(struct run_tty *tty);
/* Reads the user's escape: a character, "^" and a letter, or "none".  Returns 0 or -EINVAL. */
int run_tty_take_escape(int *escape, const char *text, struct iocom_err *err);
/* Describes the job's terminal: our size, keys and TERM, or 80x24 if we have no terminal. */
void run_tty_describe(const struct run_tty *tty, struct terminal *terminal);
/* Returns the terminal's present size. */
void run_tty_size(const struct run_tty *tty, struct winsize *size);
/* These make the terminal raw if we are in the foreground, and restore it. */
void run_tty_raw(struct run_tty *tty);
void run_tty_restore(struct run_tty *tty);
/*
 * Looks for the escape in the keys FROM, up to the first request: puts keys for the job into
 * OUT (room for N + 1); USED counts the keys consumed.
 */
enum run_tty_request run_tty_keys(struct run_tty *tty, const uint8_t *from, size_t n, uint8_t *out,
				  size_t *length, size_t *used);
/*
 * Writes the help of the escape's "?", for a raw terminal; STAYS: the command goes on when one
 * leaves.
 */
void run_tty_help(const struct run_tty *tty, bool stays, char *out, size_t size);

#endif
