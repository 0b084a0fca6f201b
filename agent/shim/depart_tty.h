/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The terminal of a job that moves.  What waits in it, typed and not read, or written and not
 * shown, nobody can look at without taking it.  So it is taken when the job is frozen, by the shim
 * itself, which puts it back if the job stays.
 */
#ifndef IOCOM_SHIM_DEPART_TTY_H
#define IOCOM_SHIM_DEPART_TTY_H

#include "agent/shim/move/belongings.h"
#include "agent/shim/move/criu.h"
#include "agent/shim/move/typed.h"
#include "iocom/err.h"

struct luggage_tty;
struct shim;

struct depart_tty {
	bool open; /* the job has one, and all of this is set */
	char name[CRIU_NAME_MAX];
	struct belongings_tty what;
	bool lines;
	struct typed typed;
};

/*
 * Takes what waits in the terminal of SHIM's frozen job; nothing, if it has none.  Returns 0; or
 * negative errno with the reason in ERR: all is as it was.
 */
int depart_tty_take(struct depart_tty *tty, struct shim *shim, struct iocom_err *err);
/* Puts it back: the job, which is frozen still, stays. */
void depart_tty_stay(struct depart_tty *tty, struct shim *shim);
/* Fills LUGGAGE, except its flags, of a job that has a terminal.  Returns 0 or negative errno. */
int depart_tty_pack(const struct depart_tty *tty, const struct shim *shim,
		    struct luggage_tty *luggage);

#endif
