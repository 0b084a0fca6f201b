/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The job moves away: this shim freezes it, and a process of its own (the mover) saves it and sends
 * it to the shim of the node where it goes.
 *
 *   none     -> asked to move: the job is frozen, the mover works          -> saving
 *   saving   -> the other shim has restored it and waits, or all failed    -> held
 *   held     -> "stay": the job goes on here, which has lost nothing       -> none
 *            -> "leave": it runs there; what is frozen here is killed      -> left
 *
 * The agent is told at "held" and says what was decided, which is not this shim's to know: until
 * then nothing of the job runs.  Signals that come meanwhile go to both: the mover hands them on,
 * and this shim keeps them for a job that stays.
 */
#ifndef IOCOM_SHIM_DEPART_H
#define IOCOM_SHIM_DEPART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/shim/leash.h"
#include "agent/shim/user_group.h"

#define DEPART_FREEZE_MS 2000
#define DEPART_SIGNALS	 64
#define DEPART_LIMIT_MS	 600000 /* to save, send and restore it */
#define DEPART_DUMP_MS	 120000

struct shim;

struct depart {
	enum depart_state { DEPART_NONE, DEPART_SAVING, DEPART_HELD, DEPART_LEFT } state;
	pid_t mover;
	int fd;		    /* to the mover; -1: none */
	uint64_t frozen_ms; /* when the job was frozen */
	uint8_t signals[DEPART_SIGNALS];
	size_t nsignals;
	struct user_group user; /* of GROUP, where the mover is */
	struct cgroup group;
	uint64_t moves; /* of this job before */
};

void depart_init(struct depart *depart);
static inline bool depart_going(const struct depart *depart)
{
	return depart->state != DEPART_NONE;
}
/*
 * Begins the move that REQUEST asks for, with the criu of its wish, and takes its stream.  Returns
 * 0; -EALREADY, -ENOTSUP, -ESRCH (the job is over), or others, with the reason in ERR: the job goes
 * on as before.
 */
int depart_begin(struct shim *shim, struct leash_request *request, struct iocom_err *err);
/* Call it when FD is readable: tells the agent what the mover says. */
void depart_hear(struct shim *shim);
/* Returns true if SIGNAL must wait for the decision: it is kept. */
bool depart_keep_signal(struct depart *depart, int signal);
/*
 * The decision.  Both return 0, or -EALREADY: nothing is held, or it was the other one.  Of a job
 * that stays the caller sends the signals that were kept, and forgets them.
 */
int depart_stay(struct shim *shim);
int depart_leave(struct shim *shim);
void depart_deinit(struct depart *depart);

#endif
