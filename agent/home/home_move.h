/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Moves of jobs that were submitted here, wherever they run.  The journal has the one decision:
 *
 *   movable (source) -> admit (target) -> asked (journal) -> move (source) -> held (both)
 *       -> resumed (journal, on the disk): the target goes; when it runs the source leaves
 *       -> aborted: the source stays, the target gives up
 *
 * Both nodes ask again until they know, so nothing is lost if an agent starts again.
 */
#ifndef IOCOM_HOME_MOVE_H
#define IOCOM_HOME_MOVE_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/cluster/peers.h"
#include "agent/jobs/journal.h"
#include "iocom/err.h"

struct home;

#define HOME_MOVES_MAX 64 /* under way at a time */

/*
 * Called once: the journal has MOVE, of which `iocom explain` tells what becomes; or NULL, and WHY
 * says why it was not begun.
 */
typedef void (*home_moved)(void *arg, const struct journal_move *move, const char *why);
/*
 * Begins to move UID's JOB to NODE, or if that is "" to one that its policy chooses.  Returns 0:
 * DONE is called, perhaps at once; negative errno with the reason in ERR: -ENOENT no such job was
 * submitted here, -EPERM it is another user's.
 */
int home_move(struct home *home, uid_t uid, const char *job, const char *node, home_moved done,
	      void *arg, struct iocom_err *err);
/* The caller of ARG has left: DONE is not called.  The move goes on. */
void home_move_forget(struct home *home, const void *arg);
size_t home_moves_count(const struct home *home);
/* Returns true while JOB is on its way: it is asked to leave a node, and is to run at another. */
bool home_is_moving(const struct home *home, const char *job);

/* peers_handlers: a node, where a job runs, wants it to leave; the answer says if it moves. */
int home_on_away(void *home, const struct peer_request *request, uint64_t ticket,
		 struct peer_answer *answer);
/* The same: a job is held where it was, or where it comes. */
int home_on_held(void *home, const struct peer_request *request, uint64_t ticket,
		 struct peer_answer *answer);

/*
 * JOB has ended at its node, which LOST it.  Returns true if it goes on: another node holds it, and
 * may let it run.
 */
bool home_move_saves(struct home *home, const char *job, bool lost);
/* Returns true if JOB is to leave node FROM, which has not been told yet. */
bool home_move_leaves(const struct home *home, const char *job, const char *from);
/* JOB's lease at the node where it was to go on is over: what its source holds is of no use. */
void home_move_lost(struct home *home, const char *job);
/* JOB runs at FROM: if it has moved there, its source may leave. */
void home_move_started(struct home *home, const char *job, const char *from);
/*
 * FROM reports an end of JOB; NEVER: nothing of it ran there.  Returns true if that was a move that
 * failed: the job stays where it was, for the reason WHY.
 */
bool home_move_failed_there(struct home *home, const char *job, const char *from, bool never,
			    const char *why);
/* Once a second: gives up what takes too long. */
void home_move_chores(struct home *home);
/* JOB has ended at its node: what was asked about it is over. */
void home_move_ended(struct home *home, const char *job);
/* Ends all that waits. */
void home_move_stop(struct home *home);

#endif
