/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of agent/gang share. */
#ifndef IOCOM_GANGS_OWN_H
#define IOCOM_GANGS_OWN_H

#include "agent/gang/gangs.h"
#include "agent/home/home_own.h"
#include "agent/home/place.h"
#include "balancer/profile/profile_talk.h"
#include "user/gang_name.h"

/*
 * How well a part's end explains its gang's.  Ends are not heard in their order, and clocks differ:
 * the strongest reason counts, and of several the first.
 */
enum gang_reason {
	REASON_CRASH, /* a task crashed: ranks that talk to it fail by that, too */
	REASON_OWN,   /* it failed by itself */
	REASON_LEFT,  /* its client was lost */
	REASON_HEARD, /* it was told to end, and heard why */
	REASON_TOLD,  /* it was told to end */
	REASON_NEVER, /* it never started: no reason at all */
};

/* A gang that has not ended, or has parts that have not. */
struct gang {
	struct gang *next;
	char job[SPEC_JOB_MAX], class_name[64];
	uid_t uid;
	uint64_t submit_ns, start_ns; /* CLOCK_REALTIME; 0: not yet */
	uint64_t since_ns;	      /* CLOCK_BOOTTIME at which it was placed, or taken over */
	uint64_t asked_ns;	      /* when its parts were told to end last; 0: never */
	unsigned asks;		      /* how often */
	bool keep_going;
	bool dirty;	 /* a part has ended: look at it now */
	bool ending;	 /* it has failed, and its parts are ended */
	bool over;	 /* the journal has its end */
	int kind, value; /* with `ending`: how it ends */
	enum gang_reason
		weak; /* with `ending`: of what kind the reason is; a stronger one replaces it */
	char why[600];
	/* What those of its parts used that ended well, and how many they are. */
	struct profile used;
	uint32_t nused;
};

struct gang_try;

struct gangs {
	struct gangs_config config;
	const struct base *base;
	struct home *home;
	struct gang *first;
	size_t count;
	struct gang_try *tries; /* gangs that are being placed */
	size_t ntries;
	struct home_watch watch;
	uint64_t chores;
	struct loop_timer look; /* at those that are dirty */
};

/* A part that its node is asked to take. */
struct gang_ask {
	struct gang_try *try;
	uint32_t part;
	struct job_order order;
	char node[IOCOM_NAME_MAX], address[IOCOM_ADDRESS_MAX]; /* address "": this node */
	uint16_t port;
	bool granted, silent; /* silent: it has given no answer */
	struct peer_grant grant;
};

/* A node that is left out of the next decision; if it only lacks slots, not for good. */
struct gang_refusal {
	char node[IOCOM_NAME_MAX];
	bool slots;
};

/* A gang that is being placed. */
struct gang_try {
	struct gang_try *next;
	struct gangs *gangs;
	struct place place; /* the request, the decision and the answer; of no list of home's */
	struct profile_talk talk;
	struct rules_pair *pairs;
	struct gang_refusal *refused;
	size_t nrefused, refused_room;
	char why[400]; /* what they said first */
	unsigned rounds;
	unsigned looks;		/* for slots that become free */
	bool crowded;		/* the last decision found too few free slots, but enough in all */
	struct loop_timer late; /* the next look */
	struct gang_ask *asks;
	uint32_t nasks;
	uint32_t open; /* answers that are awaited */
	bool stopping; /* the agent is: nothing is asked any more */
};

/* --- gangs_decide.c --- */

/* Takes who talks to whom by what is known of the class.  Returns 0 or -ENOMEM. */
int gang_try_talk(struct gang_try *t);
/*
 * Decides where the tasks go, without the nodes that have refused: fills the placement and its
 * gang, whose parts have nodes and addresses.  Returns 0, or negative errno with the sentence in
 * ERR; -ERANGE: they do not fit.
 */
int gang_try_decide(struct gang_try *t, struct iocom_err *err);
/* Returns whether NODE is in TEXT, names joined by commas; "" has all. */
bool gang_only_has(const char *text, const char *node);

/* --- gangs.c --- */

/* Watches the gang JOB of class CLASS_NAME from now on.  Returns NULL if there is no memory. */
struct gang *gang_add(struct gangs *gangs, const char *job, uid_t uid, const char *class_name,
		      uint64_t submit_ns);
/*
 * JOB is a gang or a part of one, of which something has changed: it is looked at when the
 * journal's transaction is over.  Returns the gang; NULL: it is not under way.
 */
struct gang *gang_look_soon(struct gangs *gangs, const char *job);
/* Ends the tries. */
void gangs_place_stop(struct gangs *gangs);

/* --- gangs_watch.c --- */

/* G ends by WHY, of the kind REASON: its parts are ended now.  What ends already keeps its own. */
void gang_fail(struct gangs *gangs, struct gang *g, enum gang_reason reason, int kind, int value,
	       const char *why);
/* Looks at what the journal has of G's parts, and does what follows.  May free G. */
void gang_look(struct gangs *gangs, struct gang *g);
void gang_remove(struct gangs *gangs, struct gang *g);
/* Asks the node of PART to give up its lease, the one of NONCE ("": any), if it has not begun. */
void gang_release(struct gangs *gangs, const char *part, const char *node, const char *nonce);

/* --- gangs_learn.c --- */

/* Adds what a part of G that ended well used. */
void gang_used(struct gang *g, const struct job_report *report);
/* G has ended well: its class learns what it used, if all NPARTS have told. */
void gang_learn(struct gangs *gangs, const struct gang *g, uint32_t tasks, uint32_t nparts);

#endif
