/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What happens inside a node: tasks share its CPU, disk and memory.  Two models
 * behind one interface: request level (request.c) and fluid (fluid.c).  The core
 * (arrivals, placement, barriers, flows, transfers) sees only this.
 *
 * A member is a task whose memory and buffer share count here.  A member runs a
 * segment: computation with its disk accesses and page faults in between, to the
 * next barrier or the end.  Times are absolute ms and never go back per node.
 */
#ifndef SIM_NODE_MODEL_H
#define SIM_NODE_MODEL_H

#include <stddef.h>

#include "sim/cluster.h"
#include "sim/params.h"
#include "sim/random.h"

#define NODE_NEVER 1e300

/* What the request level keeps of a task's computation between two requests. */
struct node_burst {
	double hazard;	    /* left of an exponential of mean 1; 0: to be drawn */
	double interval_ms; /* computation per unit of hazard: 1 / request rate; 0: no requests */
	double page_share;  /* of page faults among the requests drawn by hazard */
	double hits_per_ms; /* accesses that cost nothing */
	double length_ms;   /* planned, to the next request or the segment's end */
	double gap_ms;	    /* to the next of a given number of accesses */
	double usage_ms, usage_at_ms; /* recent processor time and when; priority_decay */
};

/*
 * A task as the node models need it; embedded in the core's task.  All zero but
 * the requirements when it first enters a node; kept from node to node.
 */
struct node_task {
	/* requirements, set by the core before node_enter */
	double cpu_ms; /* whole computation, for the hit rate (5.4) */
	double io_per_ms, reaccess, requests;
	double memory_mb, faults_per_ms;
	double request_kb, request_sd_kb;
	struct sim_random random;
	/* written by the model, read by the core; done_ms and accessed_mb of a task that
	 * computes right now are as of the last node_refresh or event of its own */
	double done_ms;	      /* computation finished so far, reference speed (the age, O-9) */
	double accessed_mb;   /* through the disk or the buffer */
	double requests_left; /* after node_stop: of the REQUESTS given to node_run; < 0: by rate */
	/* the model's own */
	double segment_ms; /* computation left in the segment, as of the last own event */
	double goal_ms;	   /* done_ms at the end of the segment */
	uint32_t position; /* among the node's members */
	uint32_t state;	   /* 0: in no segment */
	uint32_t epoch;	   /* of the node's rates when the task's were computed; 0: never */
	uint32_t link;
	union {
		struct {
			double a, b, c, d; /* meaning: the fluid model's */
		};
		struct node_burst burst; /* the request level's */
	};
};

struct node_model;

/* What has ended at a step. */
struct node_done {
	uint32_t task;	/* the id given to node_enter; for work the token */
	bool disk_work; /* a node_disk_work has ended, not a segment */
};

/* Sums since the start, for utilisation and the measured state. */
struct node_sums {
	double cpu_busy_ms, disk_busy_ms;  /* cores busy x ms; disk busy ms */
	double disk_requests, page_faults; /* completed (fluid: expected) */
	double accesses, hits;
	double service_sum, service_sum2; /* of completed disk requests, ms, ms^2 */
	double disk_mb;
};
/*
 * Page faults at the disk are disk requests too (as a pure delay they are not);
 * transfers (node_disk_work) keep the disk busy but are neither.  Hits are the
 * expected ones; accesses = hits + disk requests that are not page faults.
 */

/*
 * Nodes share nothing that changes: calls for different nodes may run in different
 * threads at a time.  TASKS is the core's array of structs of STRIDE bytes whose node_task is at
 * OFFSET; it may be moved between calls: tell with node_model_tasks.
 */
int node_model_new(struct node_model **m, const struct sim_cluster *cluster,
		   const struct sim_params *p, double reference_mips);
void node_model_free(struct node_model *m);
void node_model_tasks(struct node_model *m, void *tasks, size_t stride, size_t offset);
size_t node_model_bytes(const struct node_model *m);

/* 0 or -ENOMEM. */
int node_enter(struct node_model *m, uint32_t node, uint32_t task, double now);
/* The task must not be in a segment (node_stop it first). */
void node_leave(struct node_model *m, uint32_t node, uint32_t task, double now);
/* Starts a segment of CPU_MS computation.  REQUESTS < 0: accesses by rate; else so many
 * (a whole number), the computation before, between and after them equally long.  A
 * segment of nothing ends at node_next == NOW.  0; room was made on entering. */
int node_run(struct node_model *m, uint32_t node, uint32_t task, double cpu_ms, double requests,
	     double now);
/* Interrupts the segment; returns the computation left in it, 0 if in none.  A request in
 * service is finished by the disk, for nobody; one that waits is withdrawn and issued
 * again when the task goes on (node_run with what is left, here or elsewhere). */
double node_stop(struct node_model *m, uint32_t node, uint32_t task, double now);
/* Extra work of MS at the disk (transfers): told in node_step by TOKEN.  0 or -ENOMEM. */
int node_disk_work(struct node_model *m, uint32_t node, double ms, uint32_t token, double now);
/* The controller changed the buffer. */
void node_set_buffer(struct node_model *m, uint32_t node, double buffer_mb, double now);

/* Brings done_ms and accessed_mb of the node's members up to NOW; changes nothing else. */
void node_refresh(struct node_model *m, uint32_t node, double now);

/* When something happens next on the node by itself: NODE_NEVER if nothing. */
double node_next(const struct node_model *m, uint32_t node);
/* Hints: an event of NODE is near; of its tasks, a little later. */
void node_prefetch(const struct node_model *m, uint32_t node);
void node_prefetch_tasks(const struct node_model *m, uint32_t node);
#define NODE_DONE_MAX 4
/*
 * Does what is due at NOW (== node_next).  Returns how many have ended, in DONE
 * (valid until the node's next call): at most NODE_DONE_MAX; where more end at the
 * same time node_next still says NOW.  It cannot fail: room was made on entering.
 */
int node_step(struct node_model *m, uint32_t node, double now, const struct node_done **done);

uint32_t node_members(const struct node_model *m, uint32_t node);
uint32_t node_member(const struct node_model *m, uint32_t node, uint32_t i); /* task id */
uint32_t node_runnable(const struct node_model *m, uint32_t node);	     /* want the CPU now */
uint32_t node_at_disk(const struct node_model *m, uint32_t node); /* tasks waiting or served */
double node_memory(const struct node_model *m, uint32_t node);	  /* L_MEM, MB */
double node_buffer(const struct node_model *m, uint32_t node);	  /* MB */
void node_sums(const struct node_model *m, uint32_t node, double now, struct node_sums *sums);

#endif
