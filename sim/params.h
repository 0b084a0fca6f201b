/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The parameters of a run.  Every point that the model leaves open is a field with a name;
 * those of the rules are in `rules`.  Each comment ends with the field's default.
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
	uint32_t threads;	      /* threads of one run; 1 */
	double slice_ms, switch_ms;   /* 5.1; 10 and 0.1; switch 0: ideal processor sharing */
	double page_fault_ms;	      /* 5.2; 8.1 */
	bool page_fault_at_disk;      /* SIM reading 2: page faults queue at the FCFS disk; false:
				       * a pure delay; true */
	double information_period_ms; /* O-15; 0: every node always knows the state of all */
	double measure_window_ms;     /* O-8(d): the window that `measured` averages over; 1000 */
	bool measure_new_tasks;	  /* O-8(d): for the part of the window before it came, a new task
				   * counts as if it ran alone; false: only with its computation, as
				   * on a live agent; true */
	bool follow_recorded;	  /* a recorded job runs on the node where it really ran, whatever
				   * the policy decides; false */
	bool cpu_load_runnable;	  /* SIM reading 1: L_CPU counts runnable tasks; false: resident
				   * tasks; false */
	bool transit_counts;	  /* SIM reading 7: tasks in transit count at the target; true */
	bool transfer_disk_work;  /* SIM reading 5: moving data is work for both disks; false: only
				   * a delay; false */
	bool local_messages_free; /* SIM reading 7: messages inside a node cost nothing; true */
	bool port_contention;	  /* O-38: the flows of a port share its bandwidth; true */
	bool dedicated_buffer;	  /* O-3: a job alone uses the buffer; true */
	bool control_per_node;	  /* O-27: one controller per node; false: one per cluster; false */
	bool bs_backfill;	  /* O-30: later jobs may overtake a waiting one; false */
	bool priority_decay;	  /* O-50: CPU hogs lose priority (ZAT); false */
	double network_latency_ms; /* the least delay of anything sent between nodes; 0.1 */
	double memory_scale;	   /* O-49: multiplies every job's memory_mb; 1 */
	double cpu_scale;	   /* SIM reading 6: multiplies every job's cpu_ms; 1 */
	double warmup_ms;	   /* the means leave out jobs that arrive earlier; 0 */
	double until_ms;	   /* when to stop; 0: when all jobs are done */
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
