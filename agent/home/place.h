/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A submission on its way: what place.c and place_request.c share. */
#ifndef IOCOM_PLACE_OWN_H
#define IOCOM_PLACE_OWN_H

#include <msgpack.h>

#include "agent/home/home_own.h"
#include "agent/home/home_leases.h"
#include "agent/home/outcomes.h"
#include "balancer/view/placement.h"
#include "balancer/view/view_decide.h"

#define PLACE_HOPS    3
#define PLACE_LEARNED 256
#define PLACE_HELD    64 /* nodes that have some of the job's data; of others nothing is known */

struct place {
	struct place *next;
	struct home *home;
	home_placed placed; /* NULL: the client has left, or has its answer */
	void *placed_arg;
	struct placement placement; /* the request, the decision and the answer */
	struct view_policy policy;
	struct job_order order;
	struct rules_request request;
	char learned[PLACE_LEARNED], light[PLACE_LEARNED];	/* placement */
	struct outcomes_factors factors;			/* the request points to them */
	struct rules_held held[PLACE_HELD], cached[PLACE_HELD]; /* and to these */
	uint64_t seed;						/* the seed of the decision */
	char candidates[PLACE_HOPS][IOCOM_NAME_MAX];
	/* `at`: the next node to ask; behind the last one, home is next */
	unsigned ncandidates, at;
	/* what the decision expects at each candidate, and last at home */
	struct rules_expectation expected[PLACE_HOPS + 1];
	struct journal_wait wait;   /* for the disk, before the client gets `answer` */
	char asked[IOCOM_NAME_MAX]; /* the node whose answer is awaited */
	uint64_t charge;	    /* of that node, until it answers; 0: none */
	/* the first attempt of a restartable job; "": this one is the first */
	char first[SPEC_JOB_MAX];
	json_t *answer;		      /* it waits for the disk; else NULL */
	char key[2 * SECRET_KEY + 1]; /* of its client's streams; "": it runs here */
	/* its client's spec came with the request: at home the job begins with the answer */
	bool begins;
};

/* Begins P, which is zero, for a caller that gets the result by PLACED and ARG. */
static inline void place_init(struct place *p, struct home *home, home_placed placed, void *arg)
{
	placement_init(&p->placement);
	p->home = home;
	p->placed = placed;
	p->placed_arg = arg;
}

/*
 * Makes home's view ready for a decision on P, which gets its seed.  Returns 0 or negative errno
 * with the reason in ERR.
 */
int place_look(struct place *p, uint64_t now, struct iocom_err *err);
/* The answer about decision D of P: its explanation and the nodes that it looked at. */
int place_answer(struct place *p, const struct view_decision *d, uint64_t now,
		 struct iocom_err *err);
/* Writes P's decision to its job's row.  Returns 0 or negative errno with the reason in ERR. */
int place_keep(struct place *p, const char *node, struct iocom_err *err);
/* Gives P's job its name. */
void place_name(struct place *p);
/* Fills P from the request REQ of UID.  Returns 0 or negative errno with the reason in ERR. */
int place_take_request(struct place *p, const msgpack_object *req, uid_t uid,
		       struct iocom_err *err);
/*
 * Takes what the job needs, by what is known of its class (place_class.c), and keeps a job of a
 * light class at home: its policy is nlb then.
 */
void place_take_class(struct place *p, struct iocom_err *err);
/*
 * Takes the nodes that P's answer shows of decision D, with their ages NOW.  Returns 0 or -ENOMEM.
 */
int place_take_nodes(struct place *p, const struct view_decision *d, uint64_t now);

#endif
