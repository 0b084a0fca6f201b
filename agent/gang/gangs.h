/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Gangs, the parallel jobs that are submitted at this node (user/gang_name.h): home's other half.
 *
 *   decide all tasks at once -> ask all nodes for their parts -> all granted: placed
 *                            -> one refuses: release all others, decide again without that node
 *
 * A gang holds leases only while it asks, and never waits for another gang: two that claim each
 * other's nodes give up what they have, both.  A gang that fits nowhere is refused; it never runs
 * at home instead.  Then its parts are watched:
 *
 *   starting -> running -> ended: exited, killed, failed or lost
 *
 * The first part that fails, does not start in time, or whose node is lost, ends all others.  Parts
 * are jobs of the home party, which hears of them; the journal has their states, and so a gang
 * outlives its agent.
 */
#ifndef IOCOM_GANGS_H
#define IOCOM_GANGS_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/home/home.h"
#include "iocom/gang.h"

#define GANGS_MAX	 1024 /* that have not ended, or are being placed */
#define GANGS_OF_ROOT	 16   /* places that only root takes */
#define GANGS_ROUNDS	 3    /* decisions on one gang */
#define GANGS_LATE_MS	 200  /* what has just become free is looked for again after this, */
#define GANGS_LATE_LOOKS 6    /* so often at most: a node tells of its slots a moment later */
#define GANGS_START_S	 60   /* by then all parts have started */
#define GANGS_LOST_S	 15   /* a node that is silent for so long is lost to gangs */
#define GANGS_AWAY_S	 120 /* the same of a node whose agent said that it stops: its jobs go on */
#define GANGS_LINGER_MS	 2000 /* between SIGTERM and SIGKILL, and between one and the next */

struct gangs;
struct journal;
struct profile_store;

struct gangs_config {
	const struct base *base;
	struct home *home;
	/* What is known of the way to V's node: links_port (agent/measure/links.h). */
	void (*port)(void *arg, const struct iocom_vector *v, struct rules_port *port);
	void *arg;
};

/* Returns 0 or -ENOMEM.  The configuration is copied; what it points to is borrowed. */
int gangs_new(struct gangs **gangs, const struct gangs_config *config, struct iocom_err *err);
/* Takes over the gangs of an earlier agent.  Returns 0 or negative errno with the reason in ERR. */
int gangs_load(struct gangs *gangs, struct iocom_err *err);
void gangs_free(struct gangs *gangs); /* before the home party; NULL is fine */
/* Once a second. */
void gangs_chores(struct gangs *gangs);

/* Returns whether a request of "place" is for a gang. */
bool gangs_asked(const msgpack_object *request);
/* Does for gangs what home_place does for jobs. */
void gangs_place(struct gangs *gangs, uid_t uid, const msgpack_object *request, home_placed placed,
		 void *arg);
/* Call it when the client of ARG has left: PLACED is not called. */
void gangs_forget(struct gangs *gangs, const void *arg);

/*
 * Ends gang JOB by SIGNAL: the places of parts that have not begun are given back.  Returns false:
 * it is not under way, or ends already.
 */
bool gangs_end(struct gangs *gangs, const char *job, int signal);
/*
 * The same for the client of JOB, which could not start all of it and says WHY; VALUE is the exit
 * status.  What a part says of its own failure counts more.
 */
bool gangs_give_up(struct gangs *gangs, const char *job, int value, const char *why);

/* How many have not ended, or are being placed. */
size_t gangs_count(const struct gangs *gangs);

#endif
