/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job as a workload gives it to the engine (MODEL 5.7). */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_KINDS_MAX 16 /* classes of jobs with results of their own */

/* What the home of a recorded job was told that the job needs, which may differ from
 * what it did. */
struct sim_asked {
	double cpu_ms;
	double io_per_ms;      /* per ms of wall-clock time when the job runs alone */
	double requests;       /* negative: cpu_ms x io_per_ms */
	double implicit_share; /* the part of these that page faults make */
	double request_kb, memory_mb, faults_per_ms;
	uint32_t node; /* where it ran; UINT32_MAX: unknown */
};

/*
 * What the log of a batch system says of a job besides its work.  Fields whose meaning the comment
 * does not give are those of SWF.
 */
struct sim_batch {
	double requested_ms; /* run time that its user asked for; 0: unknown */
	double wait_ms;	     /* in the real queue; negative: unknown */
	double run_ms;	     /* that it really ran; at most 0.5 s where the log says 0 */
	uint32_t user;	     /* UINT32_MAX: unknown */
};

struct sim_job {
	uint64_t id;	   /* counts from 0 in order of arrival; unique in a workload */
	double arrival_ms; /* not before the previous job's arrival */
	uint32_t home;	   /* node index */
	uint32_t tasks;	   /* >= 1; each task needs all of the following */
	uint32_t kind;	   /* index in the workload's kind names */
	double cpu_ms;	   /* computation at the reference speed */
	double io_per_ms;  /* disk accesses per ms of computation, before buffer hits */
	double request_kb, request_sd_kb; /* Gamma; sd 0: constant */
	double reaccess;		  /* r of MODEL 1.5; 0: never hits */
	double requests; /* >= 0: exact number of accesses, evenly spread, none hits; negative:
			  * Poisson by io_per_ms */
	double memory_mb;
	double faults_per_ms;	/* mu_j: page faults per ms of computation when memory is short */
	double initial_mb;	/* input data on the home's disk */
	double write_fraction;	/* share of the accessed bytes that is written and read again
				 * (O-11) */
	double barrier_ms;	/* computation between two barriers (BSP); 0: none */
	double messages_per_ms; /* of each task but the master, per ms of its computation */
	double message_kb;
	bool has_asked; /* a recorded live job: decisions at wall-clock rates use `asked` */
	bool is_batch;	/* from the log of a batch system, which says `batch` */
	union {
		struct sim_asked asked;
		struct sim_batch batch;
	};
};

#endif
