/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What fluid.c and fluid_demand.c share. */
#ifndef SIM_FLUID_H
#define SIM_FLUID_H

#include "sim/engine/node_private.h"
#include "sim/engine/sharing.h"

struct fluid_run {
	double left, booked; /* part left of the segment, 1 to 0; `left` at the last booking */
	double cpu_ms;	     /* computation in the segment, reference speed */
	double given;	     /* given number of accesses; negative: by rate */
	double drawn, expected;
	double kb;     /* mean size of its accesses */
	double ticket; /* disk only: position in the order of service */
	double until;  /* `left` at the end of the request being served */
	/* totals for the whole segment at the present rates */
	double accesses, hits, faults;
	double access_ms, access_ms2, fault_ms;
	uint32_t id;
	bool work, serving;
};

struct fluid_node {
	struct sharing_task *shares; /* one for each run, in one block with `runs` */
	struct fluid_run *runs;
	uint32_t active; /* number of active runs, which come first; then transfers that wait */
	uint32_t count, room, works;
	bool turns;	   /* the disk serves requests one at a time in turn */
	bool changed;	   /* members or buffer changed since the demands were computed */
	bool booked;	   /* all progress is booked */
	uint32_t first;	   /* the run with the next event */
	double first_left; /* its `left` at that event */
	double tickets;	   /* tickets issued so far */
	double at_ms;	   /* the time that `left` refers to */
	struct sharing_machine machine;
	struct sharing_load load;
	struct node_sums sums;
	struct node_done done[NODE_DONE_MAX];
};

static inline struct fluid_node *fluid_of(const struct node_model *m, uint32_t node)
{
	return &((struct fluid_node *)m->state)[node];
}

/* Draws the number of requests of the segment that begins, and their mean size. */
void fluid_draw(const struct node *n, struct node_task *t, struct fluid_run *r);
/* Computes what the whole segment demands at the node's present rates. */
void fluid_demand(const struct node_model *m, const struct node *n, struct node_task *t,
		  struct fluid_run *r, struct sharing_task *s);
/* Adds PART of the segment to SUMS. */
void fluid_book_to(struct node_sums *sums, const struct fluid_run *r, double part);
/* Books the progress since the last booking to the node and the task. */
void fluid_book(const struct node_model *m, struct fluid_node *f, struct fluid_run *r);

#endif
