/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files about moves share (home_move.h). */
#ifndef IOCOM_HOME_MOVE_OWN_H
#define IOCOM_HOME_MOVE_OWN_H

#include "agent/home/home_move.h"
#include "agent/home/home_own.h"

#define HOME_MOVE_CHOICES 3 /* nodes that are asked if nobody named one */

/* A move that was asked for since this agent began. */
struct home_moving {
	struct home_moving *next;
	struct home *home;
	char job[SPEC_JOB_MAX];
	struct journal_move move;
	struct job_order *order; /* as the target gets it */
	/* Where it may go if nobody named its target, the best first; CHOICE is asked next. */
	char choices[HOME_MOVE_CHOICES][IOCOM_NAME_MAX];
	unsigned nchoices, choice;
	home_moved done; /* NULL: nobody waits */
	void *arg;
	bool asking; /* a node has not answered yet: the struct must stay */
	/* Who holds it, and since when (CLOCK_BOOTTIME).  Both must, or it does not go on there. */
	bool source_held, target_held;
	uint64_t since_ns, begun_ns;
	/* Questions of the two nodes that wait for the decision; 0: none. */
	uint64_t source_ticket, target_ticket;
	bool decided;
	/* Of its lease, before it was handed on: who renewed it.  An undone move gives it back. */
	bool keyed;
	uint8_t secret[RENEWAL_SECRET];
	bool durable;		  /* the disk has the decision */
	bool runs;		  /* at the target: the source may leave */
	bool over;		  /* all is told */
	struct journal_wait wait; /* for the disk */
};

/* home_move.c.  NULL: there is none, or no memory. */
struct home_moving *moving_find(const struct home *home, const char *job);
struct home_moving *moving_new(struct home *home, const char *job, const struct journal_move *move);
void moving_free(struct home_moving *m);
/* Tells whoever waits for M that MOVE has begun, or NULL and WHY not. */
void moving_tell(struct home_moving *m, const struct journal_move *move, const char *why);
/* It cannot begin, or did not.  This may free M. */
void moving_give_up(struct home_moving *m, const char *why);

/* home_move_ask.c.  Asks NODE, with M as the argument of ANSWERED; see moving_heard. */
int moving_ask(struct home_moving *m, const char *node, const struct peer_request *request,
	       peers_answered answered, struct iocom_err *err);
/*
 * For each ANSWERED: M may be over by now, and was kept for this answer.  Returns true if it is to
 * go on; else it may be gone.
 */
bool moving_heard(struct home_moving *m);
/* A move that an earlier agent asked for, and that its source has not begun or has given up. */
int home_move_clear(struct home *home, const char *job, struct iocom_err *err);

/* home_move_choose.c.  Fills M's choices.  Returns 0 or negative errno with the reason in ERR. */
int moving_choose(struct home_moving *m, struct iocom_err *err);

#endif
