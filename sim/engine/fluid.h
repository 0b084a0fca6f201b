/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What fluid.c and fluid_demand.c share. */
#ifndef SIM_FLUID_H
#define SIM_FLUID_H

#include "sim/engine/node_private.h"
#include "sim/engine/sharing.h"

struct fluid_run {
	double left, booked; /* of the segment, 1 to 0; as of which the sums are */
	double cpu_ms;	     /* computation in the segment, reference speed */
	double given;	     /* accesses by number; negative: by rate */
	double drawn, expected;
	double kb;     /* mean size of its accesses */
	double ticket; /* disk only: place in the order of service */
	double until;  /* `left` at the end of the request being served */
	/* in the whole segment, at the present rates */
	double accesses, hits, faults;
	double access_ms, access_ms2, fault_ms;
	uint32_t id;
	bool work, serving;
};

struct fluid_node {
	struct sharing_task *shares; /* of each run; one block with runs */
	struct fluid_run *runs;
	uint32_t active; /* runs that take part; behind them works that wait */
	uint32_t count, room, works;
	bool turns;	   /* the disk's requests one by one */
	bool changed;	   /* members or buffer, since the demands were worked out */
	bool booked;	   /* all runs, since anything advanced */
	uint32_t first;	   /* something happens to it next: */
	double first_left; /* it has so much left then */
	double tickets;	   /* given so far */
	double at_ms;	   /* what `left` is as of */
	struct sharing_machine machine;
	struct sharing_load load;
	struct node_sums sums;
	struct node_done done[NODE_DONE_MAX];
};

static inline struct fluid_node *fluid_of(const struct node_model *m, uint32_t node)
{
	return &((struct fluid_node *)m->state)[node];
}

/* Draws how many requests the segment that begins makes, and their mean size. */
void fluid_draw(const struct node *n, struct node_task *t, struct fluid_run *r);
/* What the segment asks for, as a whole, at the node's present rates. */
void fluid_demand(const struct node_model *m, const struct node *n, struct node_task *t,
		  struct fluid_run *r, struct sharing_task *s);
/* Adds PART of the segment to SUMS. */
void fluid_book_to(struct node_sums *sums, const struct fluid_run *r, double part);
/* Books the progress since the last booking, at the node and with the task. */
void fluid_book(const struct node_model *m, struct fluid_node *f, struct fluid_run *r);

#endif
