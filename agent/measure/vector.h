/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * From readings to the load vector (a.vector, MODEL 4.3).
 *
 * Measured fields are smoothed, cur = alpha*new + (1-alpha)*old with alpha = 0.5.  Memory is a
 * level, read exactly.  The declared needs of jobs are added to the measurement, so that a vector
 * already counts a job that was admitted a moment ago:
 *
 *   explicit = other's measured + sum over jobs max(declared alone-rate, measured)
 *   memory_requested = used + sum over jobs max(0, declared - resident)
 *   run_queue = measured + sum over jobs cpu_share * (1-alpha)^n
 *
 * where n is the number of readings that have seen the job: the part that the smoothing has not yet
 * shown.
 *
 * The work that is left (MODEL 2.10) is that of the jobs and of everything else, at this node's
 * speed.  A job whose needs are known has, of the processor and of the disk, left
 *
 *   max(need - done, done / 4)
 *
 * that is, past its need it goes on for a quarter of what it did.  A job of a class never seen has
 * left, of both together, what it did: what ran long runs long (Harchol-Balter and Downey); or what
 * was guessed, VECTOR_UNKNOWN_MS in halves if nothing was, times f = (1-alpha)^n, if that is more.
 * It is divided as what it did and f times the guess are.  Since the last reading the jobs went on:
 * what those with a known need have left, if they are not past it, is less by the time since then,
 * of each resource as much as it can serve.
 *
 * Everything else is
 *
 *   cpu  = max(CPU time per time / a core's share, tasks that ran or waited for a processor)
 *   disk = min(rho / (1 - rho), tasks that do I/O), rho: its part of the disk's utilisation
 *
 * and goes on for as long as it lasts already, at most VECTOR_FOREIGN_MS: a client that submits a
 * job keeps a processor busy for a moment, a service for days.  It has left the lesser of cpu now
 * and cpu averaged over that time, times VECTOR_FOREIGN_MS; so at the disk, with rho's average.
 *
 * What jobs wrote reaches the disk after their end, too.  While that goes on, it is one more sharer
 * of the disk, which has left what the memory's dirty pages take there, without those that running
 * jobs may have dirtied: their needs count them already.
 *
 * Several disks count as one: arrivals add up, service is their mean weighted by requests, the
 * utilisation is the highest.
 */
#ifndef IOCOM_AGENT_VECTOR_H
#define IOCOM_AGENT_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/measure/host.h"
#include "iocom/vector.h"
#include "user/monitor/monitor.h"

#define VECTOR_ALPHA	     0.5
#define VECTOR_UNKNOWN_MS    1000.0  /* what a job needs of which nothing is known or guessed */
#define VECTOR_LEFT_LEAST_MS 1.0     /* a guess of less has faded away */
#define VECTOR_FOREIGN_MS    10000.0 /* the longest that what is no job is assumed to go on */
#define VECTOR_WRITES_LEAST  0.02    /* a smaller part of the disk's time is no writeback */
#define VECTOR_FOREIGN_LEAST 0.05    /* fewer sharers than this are the system's own housekeeping */

/* Everything that is not iocom's job. */
struct vector_others {
	double cpu;	 /* processors that it keeps busy */
	double runnable; /* its tasks that run or wait for a processor */
	double disk;	 /* its part of disk_utilisation, 0..1 */
};

/* The rates of one period; also the smoothed rates. */
struct vector_measure {
	double run_queue;
	double explicit_other_per_ms; /* of everything that is not iocom's job */
	struct vector_others others;
	double disk_ended; /* the part of jobs that have ended, which are neither */
	double implicit_per_ms;
	double explicit_mb_per_s, implicit_mb_per_s;
	double disk_arrivals_per_ms, disk_utilisation;
	double disk_service_ms, disk_service_ms2; /* 0: no request was served */
	double disk_mb_per_s;			  /* delivered */
	double sent_mb_per_s, received_mb_per_s, messages_per_s;
};

/* What the last whole period had, as it was measured. */
struct vector_period {
	double ms;
	struct vector_others others;
};

/* What iocom's jobs did in a reading. */
struct vector_jobs_did {
	struct iocom_job_load running;	   /* the deltas */
	struct iocom_disk_time disk_ended; /* of jobs that have ended: their writeback */
};

struct vector_state {
	/* sums since the period began */
	double elapsed_ms, run_queue_ms;
	struct iocom_load load; /* deltas of everything in scope */
	struct iocom_disk_time disk_time;
	struct vector_jobs_did jobs; /* iocom's jobs among them */
	uint32_t io_tasks;	     /* the maximum of this period's readings */
	uint32_t io_tasks_last;	     /* the same of the last whole period */
	uint32_t live_tasks;
	struct iocom_disk *before, *now; /* disks at the period's start and at its last reading */
	size_t nbefore, nnow;
	bool primed;
	struct vector_measure smooth;
	struct vector_others lately; /* the mean over about VECTOR_FOREIGN_MS */
	struct vector_period period;
	double learned_mb_per_s; /* the highest rate seen while utilisation > 0.9; 0: none yet */
};

/* A running (or admitted) job, as the vector counts it. */
struct vector_job {
	double declared_per_ms; /* alone-rate from option or profile; 0: not known */
	double measured_per_ms; /* smoothed */
	double declared_mb, resident_mb;
	double cpu_share; /* share of one core when the job runs alone, 0..1 */
	unsigned seen;	  /* readings that saw the job */

	bool need_known;    /* else its class was never seen, and its needs are guesses or 0 */
	double need_cpu_ms; /* in all, at the reference speed */
	double need_requests, need_request_kb;
	double done_cpu_ms; /* CPU time here, at this node's speed */
	double done_requests;
	double done_disk_ms; /* the disk's time */
	uint32_t gang_tasks; /* of its gang's tasks, those that are here; 0: it is no part of one */
};

/* The use of the caches of jobs' data: see struct iocom_vector. */
struct data_caches_use {
	uint32_t jobs, refused, files, hits, misses, evicted;
	double mb;
};

/* The fields that do not change between periods. */
struct vector_self {
	char name[IOCOM_NAME_MAX], address[IOCOM_ADDRESS_MAX];
	uint16_t port;
	uint64_t boot_id;
	uint32_t period_ms;
	/* configured, or 0 */
	double cpu_speed, disk_mb_per_s, disk_fixed_ms, disk_parallel, network_mb_per_s;
	bool rotational;
	bool accepts_jobs;
	char owner[IOCOM_NAME_MAX];
	struct data_caches_use caches;
	int64_t slots; /* for tasks of parallel jobs; below 0: one for each processor */
};

void vector_init(struct vector_state *state);
void vector_fini(struct vector_state *state);
/* Adds one reading; JOBS is what iocom's jobs did in it.  Returns 0 or -ENOMEM. */
int vector_take(struct vector_state *state, const struct monitor_sample *sample,
		const struct vector_jobs_did *jobs);
/* Ends the period and smooths its rates into the state. */
void vector_close(struct vector_state *state);
/* Writes the vector, SINCE_MS after the last reading; the caller sets sequence and time. */
void vector_build(const struct vector_state *state, const struct vector_self *self,
		  const struct host_reading *host, const struct vector_job *jobs, size_t njobs,
		  double since_ms, struct iocom_vector *out);

double vector_smooth(double old, double new);
/*
 * The disks' rates between two readings, per ms of ELAPSED_MS.  Bytes of stacked disks count once.
 */
void vector_disks(const struct iocom_disk *before, size_t nbefore, const struct iocom_disk *now,
		  size_t nnow, double elapsed_ms, struct vector_measure *out);
/*
 * Returns true if OLD and NEW differ so that NEW is published at once: in a bit or a count, or in a
 * load by more than SENSITIVITY, a part of the larger value, and by more than is noise.
 */
bool vector_changed(const struct iocom_vector *old, const struct iocom_vector *new,
		    double sensitivity);

#endif
