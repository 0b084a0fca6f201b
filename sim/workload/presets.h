/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The workloads of the papers as generator parameters (MODEL 5.7, 5.8, section 6) from a few
 * arguments.  presets.c states what we chose where a paper gives nothing.
 */
#ifndef SIM_WORKLOAD_PRESETS_H
#define SIM_WORKLOAD_PRESETS_H

#include "sim/workload.h"

/* Start with preset_args_default.  NAN, or 0 for whole numbers, means the preset's own value. */
struct preset_args {
	uint64_t seed, jobs;
	uint32_t nodes;
	double interarrival_ms;	    /* mean over all arrivals of the cluster */
	double home_skew;	    /* generator_params.home_skew */
	const double *home_weights; /* borrowed until generator_new; NULL: home_skew */
	double lifetime_mean_ms;    /* computation at the reference speed */
	double lifetime_shape, lifetime_max_ms;
	/*
	 * The next fields apply to the jobs that give the workload its character (I/O-, memory-
	 * or communication-intensive); jobs of other kinds keep their values.
	 */
	double io_per_ms, request_kb, request_sd_kb, reaccess;
	/* fault rate of all jobs except the memory-intensive ones of a mixture */
	double faults_per_ms;
	double memory_mb;    /* mean over all jobs */
	double memory_shape; /* shape of its Pareto distribution, above 1 (O-39); 0: constant */
	double initial_mb, write_fraction;
	double parallel;	       /* share of parallel jobs, 0..1 */
	uint32_t tasks_min, tasks_max; /* range of the tasks of parallel jobs */
	double barrier_ms, messages_per_ms, message_kb;
	double share; /* com-io, com-memory: share of communication-intensive jobs, 0..1; acm-*:
		       * share of jobs that are not I/O-intensive (0.1) */
};
void preset_args_default(struct preset_args *a);

/*
 * fc              FC: six nodes, sequential, io 2.8, faults 2.0, 250 KB requests
 * sld             SLD: 2-32 tasks, 30 % parallel, 256 KB
 * sld-ex          SLD-EX: fc's jobs, homes 6337:28:4:1398:704:5338, 13,809 jobs
 * acm-sequential  ACM homogeneous: 32 nodes, io 0.6, faults 0.5, 256 KB, no parallel jobs
 * acm-30, acm-60  the same, 30 % or 60 % parallel jobs, 2-32 tasks, barrier 100 ms
 * acm-trace1..4   ACM Table V: 60 nodes
 * com             COM: 32 nodes, parallel, 16 tasks, 0.5 messages per ms of 512 KB
 * com-io, com-memory   COM-8, COM-9: SHARE of com's jobs, the rest I/O- or memory-intensive
 * dmine pgrep lu titan cholesky db2   one I/O application of ACM (applications.h)
 * acm-apps        the six applications, equal shares
 * acm-apps-mix    ACM-13, ACM-14: sequential jobs at io, PARALLEL share of the six
 * render molecular semi react vortex  one communication application of COM
 * com-all         the five, equal shares
 * plain           one kind "job", Poisson, exponential: every value from the arguments
 *
 * Returns 0; -ENOENT (the message lists the names); -EINVAL: an argument is out of range.
 */
int preset_fill(struct generator_params *p, const char *name, const struct preset_args *args,
		struct iocom_err *err);
/* Name of preset I (0 ..) and a line about it; NULL at the end. */
const char *preset_name(unsigned int i, const char **text);

#endif
