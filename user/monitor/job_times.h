/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The time a job needed of each resource in a reading (MODEL 5.10):
 *
 *   T_CPU   its CPU time
 *   T_COM   bytes sent and received / bandwidth + messages * message_ms
 *   T_Disk  its part of the time in which the disks served tasks: the middle of
 *           the bounds in struct iocom_disk_time, which agree where the job has a
 *           disk for itself or all requests are of one size.  Over all jobs it
 *           sums to the time the disks served tasks.
 */
#ifndef IOCOM_JOB_TIMES_H
#define IOCOM_JOB_TIMES_H

#include "user/behaviour.h"
#include "iocom/load.h"

#define JOB_TIMES_NETWORK_MB_PER_S 125.0 /* used if no bandwidth is configured */

/* The bandwidth that communication is taken to have where MB_PER_S is configured; 0: nothing is. */
static inline double job_times_mb_per_s(double mb_per_s)
{
	return mb_per_s > 0 ? mb_per_s : JOB_TIMES_NETWORK_MB_PER_S;
}

struct job_times_network {
	double mb_per_s;   /* 0: unknown */
	double message_ms; /* fixed cost of a message; the papers give none: 0 */
};

struct job_times {
	double ms[BEHAVIOUR_RESOURCES];
	double disk_low_ms, disk_high_ms;
	double fault_ms;		 /* the part of T_Disk that page faults caused */
	double fault_requests, fault_kb; /* their disk requests, and the size of all of them */
	double disk_wait_ms, run_wait_ms;
};

/* Computes the times from the job's deltas. */
void job_times(const struct iocom_job_load *job, const struct job_times_network *network,
	       struct job_times *out);
/* Adds the times to the behaviour of the job's run. */
void job_times_learn(struct behaviour *b, const struct job_times *times, double elapsed_ms);

#endif
