/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What was typed at a terminal and not read yet: it waits in the kernel, as lines with their ends
 * and perhaps a line that is begun, or as single characters.  It is taken from the terminal of a
 * frozen job, and put into another one as if it had waited there: not echoed again, not edited, and
 * no key of it sends a signal a second time.
 */
#ifndef IOCOM_SHIM_MOVE_TYPED_H
#define IOCOM_SHIM_MOVE_TYPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* So many characters the kernel keeps for certain (its buffer has 4096). */
#define TYPED_MAX 4000
/* Where more than these wait in whole lines, none is taken. */
#define TYPED_TAKE 3000

/* Each character is two bytes: what it is, and itself. */
enum typed_kind {
	TYPED_CHARACTER,
	TYPED_LINE, /* it ends its line */
	TYPED_END,  /* the end of a line or of the input without a character (^D) */
	TYPED_KINDS
};

struct typed {
	uint8_t *data; /* owned */
	size_t length;
};

/* Returns whether this process may put characters into a terminal.  Tries it with one of its own.
 */
bool typed_works(void);
/*
 * Takes all that waits at SLAVE, which is non-blocking, of a terminal with nobody else at it.  Its
 * modes are as before.  Returns 0; -EMSGSIZE: there is too much, and nothing was taken; other
 * negative errno, with what was taken so far.
 */
int typed_take(struct typed *typed, int slave);
/*
 * Puts TYPED into SLAVE, at which nothing waits, and nobody else is.  LINES: its terminal's modes
 * are such that it is read in lines.  Returns how many bytes of TYPED there was room for, or
 * negative errno.
 */
ssize_t typed_put(const struct typed *typed, int slave, bool lines);
/* Returns whether all of it can be put into a terminal. */
bool typed_valid(const struct typed *typed, bool lines);
void typed_free(struct typed *typed);

#endif
