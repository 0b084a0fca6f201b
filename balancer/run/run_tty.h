/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client's terminal while a job has one of its own (`--pty`).  It is raw from
 * the job's start to its end, so that every key goes to the job's terminal; an
 * escape, behind a newline only, speaks to this program, as in ssh.
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
	int fd;	    /* standard input's terminal, our own descriptor; -1: it is none */
	int escape; /* the character; -1 none */
	bool raw;
	struct termios before;	  /* as it was when it became raw */
	bool line_start, escaped; /* of the keys so far: behind a newline; the escape came */
};

/* What the keys ask of this program. */
enum run_tty_request { RUN_TTY_NONE, RUN_TTY_LEAVE, RUN_TTY_STOP, RUN_TTY_HELP };

/* Standard input as the terminal, where it is one.  Nothing changes yet. */
void run_tty_init(struct run_tty *tty, int input);
/* Restores and gives up the descriptor. */
void run_tty_deinit(struct run_tty *tty);
/* The escape as the user says it: a character, "^" and a letter, or "none".  0, -EINVAL. */
int run_tty_take_escape(int *escape, const char *text, struct iocom_err *err);
/* What the job's terminal shall be: our size, keys and TERM; 80x24 where we have no terminal. */
void run_tty_describe(const struct run_tty *tty, struct terminal *terminal);
/* The size now. */
void run_tty_size(const struct run_tty *tty, struct winsize *size);
/* Raw, where we are in the foreground; and back again. */
void run_tty_raw(struct run_tty *tty);
void run_tty_restore(struct run_tty *tty);
/*
 * Looks for the escape in the keys FROM, up to the first request: what goes to the
 * job is put to OUT (room for N + 1), USED says how many keys were looked at.
 */
enum run_tty_request run_tty_keys(struct run_tty *tty, const uint8_t *from, size_t n, uint8_t *out,
				  size_t *length, size_t *used);
/* The text of the escape's "?", for a raw terminal; of a command that STAYS when one leaves. */
void run_tty_help(const struct run_tty *tty, bool stays, char *out, size_t size);

#endif
