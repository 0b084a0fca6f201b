/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The job moves away: this shim freezes it, and a process of its own (the mover) saves it and sends
 * it to the shim of the node where it goes.  Of a large job the mover sends the memory before that
 * (move/precopy.h), and asks for the freeze; a helper then writes what the shim knows at that time.
 *
 *   none     -> asked to move: the job is frozen, the mover works          -> saving
 *            -> the same of a large job, which runs, and may end           -> copying
 *   copying  -> the mover asks: the job is frozen                          -> saving
 *            -> all failed                                                 -> held (not frozen)
 *   saving   -> the other shim has restored it and waits, or all failed    -> held
 *            -> "stay": the mover ends as soon as criu lets go of the job  -> staying
 *   held     -> "stay"                                                     -> staying
 *            -> "leave": it runs there; what is frozen here is killed      -> left
 *   staying  -> nothing works on the job any more: it goes on here         -> none
 *
 * The agent is told at "held" and says what was decided, which is not this shim's to know: until
 * then nothing of the job runs.  Signals that come meanwhile go to both: the mover hands them on,
 * and this shim keeps them for a job that stays.
 *
 * criu is never ended in the middle of its work: it would leave its own code in the job.  If it is
 * killed by others the job is looked at, and ends if it is damaged.
 */
#ifndef IOCOM_SHIM_DEPART_H
#define IOCOM_SHIM_DEPART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/shim/depart_tty.h"
#include "agent/shim/leash.h"
#include "agent/shim/user_group.h"

#define DEPART_FREEZE_MS 2000
#define DEPART_LIMIT_MS	 600000 /* to save, send and restore it */
#define DEPART_DUMP_MS	 120000

struct shim;

struct depart {
	enum depart_state {
		DEPART_NONE,
		DEPART_COPYING,
		DEPART_SAVING,
		DEPART_HELD,
		DEPART_STAYING,
		DEPART_LEFT
	} state;
	pid_t mover;	    /* 0: there is none, or it was waited for */
	pid_t packer;	    /* the helper; the same */
	int fd;		    /* to the mover; -1: none */
	uint64_t begun_ms;  /* when the move began */
	bool frozen;	    /* the job is, by this shim */
	uint64_t frozen_ms; /* since then */
	unsigned processes; /* of the job, then */
	uint64_t settle_ms; /* until when it waits for what works on a job that stays */
	bool told;	    /* the mover has said how it went */
	bool ended;	    /* this shim ended the mover, which was done with criu */
	bool failed;	    /* there is nothing at the other node */
	/* A set of the signals that were kept: as for a stopped process, one of each. */
	uint64_t signals;
	struct user_group user; /* of GROUP, where the mover is */
	struct cgroup group;	/* depth 0: there is none */
	uint64_t moves;		/* of this job before */
	struct depart_tty tty;
};

void depart_init(struct depart *depart);
/* Returns whether the job is frozen, so that nothing of it is served. */
static inline bool depart_going(const struct depart *depart)
{
	return depart->frozen;
}
/*
 * Begins the move that REQUEST asks for, with the criu of its wish, and takes its stream.  Returns
 * 0; -EALREADY, -ENOTSUP, -ESRCH (the job is over), or others, with the reason in ERR: the job goes
 * on as before.
 */
int depart_begin(struct shim *shim, struct leash_request *request, struct iocom_err *err);
/* Call it when FD is readable: tells the agent what the mover says. */
void depart_hear(struct shim *shim);
/* Returns when depart_overdue is to be called, CLOCK_BOOTTIME; UINT64_MAX: never. */
uint64_t depart_due(const struct depart *depart);
void depart_overdue(struct shim *shim);
/* Returns true if SIGNAL must wait for the decision: it is kept. */
bool depart_keep_signal(struct depart *depart, int signal);
/*
 * The decision.  Both return 0, or -EALREADY: nothing is held, or it was the other one.  A job that
 * stays goes on when depart_settled says so.
 */
int depart_stay(struct shim *shim);
int depart_leave(struct shim *shim);
/*
 * Of a job that stays: returns true once when it goes on; the caller sends the signals that were
 * kept, and forgets them.  ERR has a sentence if the job is damaged: its processes are stopped
 * still, and the caller ends it.
 */
bool depart_settled(struct shim *shim, struct iocom_err *err);
void depart_deinit(struct depart *depart);

#endif
