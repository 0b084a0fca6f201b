/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The measurements of a run.  Times are in ms. */
#ifndef SIM_RESULT_H
#define SIM_RESULT_H

#define SIM_SAMPLES_MAX 1000000u /* points of a time series; more are an error */

#include <stdint.h>

#include "sim/job.h"

/* Distribution of one quantity: the mean is exact, percentiles are within 1 %. */
struct sim_summary {
	uint64_t n;
	double mean, sd, min, max;
	double p50, p95, p99;
};

struct sim_node_result {
	uint64_t arrived, executed; /* tasks submitted here; tasks that ended here */
	double cpu_utilisation, disk_utilisation;
	double jobs_mean; /* resident tasks, averaged over time */
};

/* One row of the time series (sim_params.sample_ms). */
struct sim_sample {
	double time_ms;
	double cpu_utilisation, disk_utilisation; /* mean over the nodes since the last row */
	double tasks_mean, tasks_max;		  /* resident, per node */
	/* largest L_IO over the mean; 1: the load is balanced; 0: there is no load */
	double io_imbalance;
	uint64_t remote, migrations;	  /* since the last row */
	double w_io, buffer_mb, slowdown; /* the controller's values; 0 without one */
};

struct sim_result {
	struct sim_summary slowdown, turnaround_ms;
	struct sim_summary kind_slowdown[SIM_KINDS_MAX];
	struct sim_summary delay_ms;		 /* turn-around minus the time alone */
	uint64_t arrived, completed, unfinished; /* jobs: arrived = completed + unfinished */
	uint64_t tasks_started, tasks_ended;
	uint64_t remote_executions, migrations, queued; /* counts of tasks, tasks and jobs */
	double moved_mb;
	double makespan_ms;
	double cpu_utilisation, disk_utilisation; /* means over the nodes and the makespan */
	double hit_rate, implicit_share;	  /* hits / accesses; faults / disk requests */
	uint64_t disk_requests, page_faults;
	double disk_mb;
	uint64_t events; /* work of the engine: one event for each change of state of a node or job
			  */
	uint64_t decisions;
	/*
	 * These three describe how the run was made.  All other results are the same, byte for
	 * byte, for any number of threads.
	 */
	uint64_t bytes_peak; /* allocated for nodes, tasks and jobs, without the rules' views */
	uint32_t threads_used;
	const char *serial_reason; /* why only one thread was used though more were asked for, or
				    * NULL */
	uint32_t nnodes;
	struct sim_node_result *nodes; /* owned */
	uint32_t nsamples;
	struct sim_sample *samples; /* owned; NULL: none */
};

void sim_result_free(struct sim_result *r);

#endif
