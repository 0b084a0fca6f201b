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

struct sim_params {
	enum sim_fidelity fidelity;
	uint64_t seed;
	uint32_t threads;	    /* threads of one run; default 1 */
	double slice_ms, switch_ms; /* 5.1; 10 and 0.1; switch 0: ideal processor sharing */
	double page_fault_ms;	    /* 5.2; 8.1 */
	bool page_fault_at_disk; /* reading 2: at the FCFS disk, not a pure delay; default true */
	double information_period_ms; /* O-15; 0: every node knows all, always */
	double measure_window_ms;     /* O-8(d): what `measured` averages over; default 1000 */
	bool measure_new_tasks; /* O-8(d): what has not been there for the whole window counts for
				   the rest as if alone; false: as a live agent, only its
				   computation; default true */
	bool follow_recorded; /* a recorded job runs where it really ran, whatever the policy says;
				 default false */
	bool cpu_load_runnable;	 /* reading 1: L_CPU counts runnable tasks, not resident; default
				    false */
	bool transit_counts;	 /* reading 7: tasks in transit count at the target; default true */
	bool transfer_disk_work; /* reading 5: moved data is work for both disks; false: a delay
				  */
	bool local_messages_free; /* reading 7: inside a node messages cost nothing; default true */
	bool port_contention;	  /* O-38: a port's flows share its bandwidth; default true */
	bool dedicated_buffer;	  /* O-3: the time alone uses the buffer; default true */
	bool control_per_node;	  /* O-27: a controller a node; false: one a cluster */
	bool bs_backfill;	  /* O-30: later jobs may pass a waiting one; default false */
	bool priority_decay;	  /* O-50: CPU hogs lose priority (ZAT); default false */
	double network_latency_ms; /* least time of anything between nodes; default 0.1 */
	double memory_scale;	   /* O-49: multiplies every job's memory_mb; default 1 */
	double cpu_scale;	   /* reading 6: multiplies every job's cpu_ms; default 1 */
	double warmup_ms;	   /* jobs that arrive before are not in the means; default 0 */
	double until_ms;	   /* stop then, 0: when all jobs are done */
	double sample_ms;	   /* period of the time series; 0: none */
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
