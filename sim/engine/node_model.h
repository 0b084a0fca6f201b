/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What happens inside a node: tasks share its CPU, disk and memory.  There are two models behind
 * one interface: request level (request.c) and fluid (fluid.c).  The core (arrivals, placement,
 * barriers, flows, transfers) uses only this interface.
 *
 * A member is a task whose memory and buffer share count on the node.  A member runs segments: a
 * segment is computation, with disk accesses and page faults in between, up to the next barrier
 * or the end.  Times are absolute ms and never go back on a node.
 */
#ifndef SIM_NODE_MODEL_H
#define SIM_NODE_MODEL_H

#include <stddef.h>

#include "sim/cluster.h"
#include "sim/params.h"
#include "sim/random.h"

#define NODE_NEVER 1e300

/* The request level's state of a task's computation between two requests. */
struct node_burst {
	double hazard;	    /* what is left of an exponential of mean 1; 0: not drawn yet */
	double interval_ms; /* computation per unit of hazard: 1 / request rate; 0: no requests */
	double page_share;  /* share of page faults among the requests drawn by hazard */
	double hits_per_ms; /* rate of accesses that hit and cost nothing */
	double length_ms;   /* planned computation to the next request or the segment's end */
	double gap_ms;	    /* computation to the next of a given number of accesses */
	double usage_ms, usage_at_ms; /* recent processor time and when it was computed; for
				       * priority_decay */
};

/*
 * A task as the node models need it, embedded in the core's task.  When a task first enters a
 * node all fields but the requirements are 0; they are kept from node to node.
 */
struct node_task {
	/* requirements, set by the core before node_enter */
	double cpu_ms; /* the whole computation, for the hit rate (5.4) */
	double io_per_ms, reaccess, requests;
	double memory_mb, faults_per_ms;
	double request_kb, request_sd_kb;
	struct sim_random random;
	/*
	 * written by the model, read by the core; for a task that computes right now, done_ms
	 * and accessed_mb are as of the last node_refresh or the task's last event
	 */
	double done_ms;	      /* computation finished so far, reference speed (the age, O-9) */
	double accessed_mb;   /* data that was accessed through the disk or the buffer */
	double requests_left; /* after node_stop: what is left of REQUESTS of node_run; negative: by
			       * rate */
	/* used only by the model */
	double segment_ms; /* computation left in the segment, as of the task's last event */
	double goal_ms;	   /* done_ms at the end of the segment */
	uint32_t position; /* index among the node's members */
	uint32_t state;	   /* 0: the task runs no segment */
	uint32_t epoch;	   /* the node's epoch when the task's rates were computed; 0: never */
	uint32_t link;
	union {
		struct {
			double a, b, c, d; /* the fluid model defines their meaning */
		};
		struct node_burst burst; /* used by the request level */
	};
};

struct node_model;

/* A segment or transfer that has ended at a step. */
struct node_done {
	uint32_t task;	/* the id given to node_enter; for disk work, the token */
	bool disk_work; /* true: a node_disk_work has ended; false: a segment */
};

/* Sums since the start, for utilisation and the measured state. */
struct node_sums {
	double cpu_busy_ms, disk_busy_ms;  /* cores busy x ms; disk busy ms */
	double disk_requests, page_faults; /* completed requests (fluid: expected) */
	double accesses, hits;
	double service_sum, service_sum2; /* over completed disk requests, ms, ms^2 */
	double disk_mb;
};
/*
 * Page faults served by the disk are disk requests too (page faults as a pure delay are not).
 * Transfers (node_disk_work) keep the disk busy but count as neither.  Hits are expected numbers;
 * accesses = hits + disk requests that are not page faults.
 */

/*
 * Nodes share no changing state, so different threads may make calls for different nodes at the
 * same time.  TASKS is the core's array of structs of STRIDE bytes with a node_task at OFFSET.
 * The core may move it between calls and then calls node_model_tasks.
 */
int node_model_new(struct node_model **m, const struct sim_cluster *cluster,
		   const struct sim_params *p, double reference_mips);
void node_model_free(struct node_model *m);
void node_model_tasks(struct node_model *m, void *tasks, size_t stride, size_t offset);
size_t node_model_bytes(const struct node_model *m);

/* Returns 0 or -ENOMEM. */
int node_enter(struct node_model *m, uint32_t node, uint32_t task, double now);
/* The task must not run a segment (call node_stop first). */
void node_leave(struct node_model *m, uint32_t node, uint32_t task, double now);
/* Starts a segment of CPU_MS computation.  REQUESTS < 0: accesses by rate; else a whole
 * number of accesses, with equal parts of the computation before, between and after
 * them.  An empty segment ends at node_next == NOW.  It cannot fail: node_enter made
 * room. */
int node_run(struct node_model *m, uint32_t node, uint32_t task, double cpu_ms, double requests,
	     double now);
/* Interrupts the segment; returns the computation left in it, 0 without a segment.  The
 * disk finishes a request in service, whose result is dropped; a waiting request is
 * withdrawn and issued again when the task continues (node_run with what is left, here
 * or elsewhere). */
double node_stop(struct node_model *m, uint32_t node, uint32_t task, double now);
/*
 * Gives the disk extra work of MS (a transfer); node_step reports its end by TOKEN.  Returns 0 or
 * -ENOMEM.
 */
int node_disk_work(struct node_model *m, uint32_t node, double ms, uint32_t token, double now);
/* Sets the buffer to the size that the controller chose. */
void node_set_buffer(struct node_model *m, uint32_t node, double buffer_mb, double now);

/* Brings done_ms and accessed_mb of the node's members up to NOW; changes nothing else. */
void node_refresh(struct node_model *m, uint32_t node, double now);

/* Time of the node's next own event; NODE_NEVER: none. */
double node_next(const struct node_model *m, uint32_t node);
/* Hints: an event of NODE is near; its tasks will be needed a little later. */
void node_prefetch(const struct node_model *m, uint32_t node);
void node_prefetch_tasks(const struct node_model *m, uint32_t node);
#define NODE_DONE_MAX 4
/*
 * Handles what is due at NOW (== node_next).  Returns how many segments and transfers have ended,
 * in DONE (valid until the node's next call): at most NODE_DONE_MAX.  If more end at the same
 * time, node_next still returns NOW.  It cannot fail: node_enter made room.
 */
int node_step(struct node_model *m, uint32_t node, double now, const struct node_done **done);

uint32_t node_members(const struct node_model *m, uint32_t node);
uint32_t node_member(const struct node_model *m, uint32_t node, uint32_t i); /* task id */
uint32_t node_runnable(const struct node_model *m, uint32_t node);	     /* they want the CPU */
uint32_t node_at_disk(const struct node_model *m, uint32_t node);	     /* waiting or served */
double node_memory(const struct node_model *m, uint32_t node);		     /* L_MEM, MB */
double node_buffer(const struct node_model *m, uint32_t node);		     /* MB */
void node_sums(const struct node_model *m, uint32_t node, double now, struct node_sums *sums);

#endif
