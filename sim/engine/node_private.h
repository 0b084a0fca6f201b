/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What both node models share: the members of a node, memory, buffer, and the rates that follow
 * from them (MODEL 1.3-1.5).  A fidelity adds what happens in time.
 *
 * On a change of members or buffer the shared part calls before() (accounts for the time until
 * now at the old rates), makes the change, raises the node's epoch if a rate may have changed,
 * and always calls after(), where RATES says whether the epoch was raised.  A fidelity keeps
 * next[node] correct at the end of every call, or corrects it in settle().
 */
#ifndef SIM_NODE_PRIVATE_H
#define SIM_NODE_PRIVATE_H

#include "sim/engine/node_model.h"

/* A sum without residue of removed terms: its error is far below one rounding. */
struct exact_sum {
	double high, low;
};

static inline double exact_sum_value(const struct exact_sum *s)
{
	return s->high + s->low;
}

static inline void exact_sum_add(struct exact_sum *s, double x)
{
	double sum = s->high + x, other = sum - s->high;

	s->low += (s->high - (sum - other)) + (x - other);
	s->high = sum;
}

#define NODE_FEW 4 /* number of members stored in the node itself */

/* The shared part of a node: two cache lines. */
struct node {
	_Alignas(64) uint32_t *members; /* task ids in any order: in `few`, or an owned array */
	uint32_t few[NODE_FEW];
	uint32_t count, room;
	uint32_t epoch; /* raised when rates change; never 0 */
	double ram_mb, buffer_mb;
	struct exact_sum memory_mb; /* L_MEM */
	struct exact_sum kb_per_ms; /* sum of lambda_k d_k (5.2) */
	/* machine constants */
	double speed; /* relative to the reference speed */
	double cores;
	double crowded; /* speed x cores x efficiency, when more tasks run than there are cores */
	double disk_fixed_ms, disk_mb_per_s;
};

/* A node model of one fidelity.  All functions except create and destroy act on one node. */
struct node_fidelity {
	int (*create)(struct node_model *m); /* Returns 0, -ENOMEM; sets m->state */
	void (*destroy)(struct node_model *m);
	size_t (*bytes)(const struct node_model *m); /* memory used beyond the shared part */
	/* Makes room for one more member and for the disk works already requested: 0, -ENOMEM. */
	int (*reserve)(struct node_model *m, uint32_t node);
	void (*before)(struct node_model *m, uint32_t node, double now);
	void (*after)(struct node_model *m, uint32_t node, double now, bool rates);
	int (*run)(struct node_model *m, uint32_t node, uint32_t task, double cpu_ms,
		   double requests, double now);
	double (*stop)(struct node_model *m, uint32_t node, uint32_t task, double now);
	int (*disk_work)(struct node_model *m, uint32_t node, double ms, uint32_t token,
			 double now);
	void (*refresh)(struct node_model *m, uint32_t node, double now);
	/* Updates next[node] when it is read; NULL: next[node] is always current. */
	void (*settle)(const struct node_model *m, uint32_t node);
	int (*step)(struct node_model *m, uint32_t node, double now, const struct node_done **done);
	/* Hints, as in node_model.h; NULL: none. */
	void (*prefetch)(const struct node_model *m, uint32_t node);
	void (*prefetch_tasks)(const struct node_model *m, uint32_t node);
	uint32_t (*runnable)(const struct node_model *m, uint32_t node);
	uint32_t (*at_disk)(const struct node_model *m, uint32_t node);
	void (*sums)(const struct node_model *m, uint32_t node, double now, struct node_sums *sums);
};

extern const struct node_fidelity node_request_level, node_fluid;

struct node_model {
	const struct node_fidelity *fidelity;
	struct node *nodes;
	double *next; /* the next event of each node, as node_next returns it */
	void *state;  /* owned by the fidelity */
	char *tasks;
	size_t stride, offset;
	uint32_t n;
	double slice_ms, switch_ms, page_fault_ms;
	bool page_fault_at_disk, priority_decay;
};

static inline struct node_task *node_task_of(const struct node_model *m, uint32_t task)
{
	return (struct node_task *)(void *)(m->tasks + (size_t)task * m->stride + m->offset);
}

/* n_MEM: memory for tasks; 0: memory is never short. */
static inline double node_memory_room(const struct node *n)
{
	return n->ram_mb > 0 ? n->ram_mb - n->buffer_mb : 0;
}

/*
 * Hit rate h(i,j) of a task among the members (5.4); 0 for a given number of accesses.
 */
double node_hit_rate(const struct node *n, const struct node_task *t);
/* page(i,j) per ms of computation (4.3). */
double node_page_rate(const struct node *n, const struct node_task *t);

#endif
