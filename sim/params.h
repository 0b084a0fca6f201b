/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a run is asked to do.  Every reading of the model (balancer/rules/README.md)
 * is a field with a name; the rules' own are in `rules`.  A number such as 5.1,
 * O-15 or reading 2 is an entry there.
 */
#ifndef SIM_PARAMS_H
#define SIM_PARAMS_H

#include <iocom/err.h>
#include <iocom/rules.h>

enum sim_fidelity {
	SIM_REQUEST, /* every disk access is an event */
	SIM_FLUID,   /* tasks advance at rates; only changes are events */
};

/* What bs_backfill lets pass a job that waits for nodes. */
enum sim_backfill { BS_FCFS, BS_ANY, BS_EASY };

struct sim_params {
	enum sim_fidelity fidelity;
	uint64_t seed;
	uint32_t threads; /* threads of one run; default 1 */
	/* 5.1; defaults 10 and 0.1; switch 0: ideal processor sharing */
	double slice_ms, switch_ms;
	double page_fault_ms;	 /* 5.2; 8.1 */
	bool page_fault_at_disk; /* reading 2: at the FCFS disk, not a pure delay; default true */
	/* O-15: the information period; 0: every node always knows everything */
	double information_period_ms;
	double measure_window_ms; /* O-8(d): what `measured` averages over; default 1000 */
	/*
	 * O-8(d): for the part of the window in which a task was not there, it counts as if alone;
	 * false: as in a live agent, only its computation counts; default true
	 */
	bool measure_new_tasks;
	bool follow_recorded; /* a recorded job runs where it really ran, whatever the policy says;
				 default false */
	/* reading 1: L_CPU counts runnable tasks, not resident ones; default false */
	bool cpu_load_runnable;
	/* reading 7: tasks in transit count at their target; default true */
	bool transit_counts;
	bool transfer_disk_work;  /* reading 5: moved data is work for both disks; false: a delay
				   */
	bool local_messages_free; /* reading 7: inside a node messages cost nothing; default true */
	bool port_contention;	  /* O-38: a port's flows share its bandwidth; default true */
	/* 3.18: least-delay places the tasks of a job that communicates all at once; default true
	 */
	bool whole_gangs;
	bool dedicated_buffer; /* O-3: the job's time alone uses the buffer; default true */
	bool control_per_node; /* O-27: each node has a controller; false: the cluster has one */
	/*
	 * O-30: which later jobs may pass a waiting one.  0 (default): none; 1: any for which nodes
	 * are free; 2: EASY, those that by the requested times do not delay the first in the queue
	 */
	uint32_t bs_backfill;
	bool priority_decay; /* O-50: CPU hogs lose priority (ZAT); default false */
	/* the least time that anything takes between two nodes; default 0.1 */
	double network_latency_ms;
	double memory_scale; /* O-49: multiplies every job's memory_mb; default 1 */
	double cpu_scale;    /* reading 6: multiplies every job's cpu_ms; default 1 */
	double warmup_ms;    /* jobs that arrive before are not in the means; default 0 */
	double until_ms;     /* time at which the run stops; 0: when all jobs are done */
	double sample_ms;    /* period of the time series; 0: none */
	struct rules_params rules;
};

void sim_params_default(struct sim_params *p);
/*
 * Sets one parameter by name: a field of this struct or of struct rules_params. Returns
 * 0; -ENOENT (the message lists similar names); -EINVAL: out of range.
 */
int sim_params_set(struct sim_params *p, const char *name, double value, struct iocom_err *err);
/* Checks that the values fit together.  Returns 0, or -EINVAL and ERR names those that do not. */
int sim_params_check(const struct sim_params *p, struct iocom_err *err);
/* Name and value of parameter I (0 ..), for outputs; NULL at the end. */
const char *sim_params_get(const struct sim_params *p, unsigned int i, double *value);

#endif
