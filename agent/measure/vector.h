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

#define VECTOR_ALPHA 0.5

/* The rates of one period; also the smoothed rates. */
struct vector_measure {
	double run_queue;
	double explicit_other_per_ms; /* the rate of everything that is not iocom's job */
	double implicit_per_ms;
	double explicit_mb_per_s, implicit_mb_per_s;
	double disk_arrivals_per_ms, disk_utilisation;
	double disk_service_ms, disk_service_ms2; /* 0: no request was served */
	double disk_mb_per_s;			  /* delivered */
	double sent_mb_per_s, received_mb_per_s, messages_per_s;
};

struct vector_state {
	/* sums since the period began */
	double elapsed_ms, run_queue_ms;
	struct iocom_load load;	    /* deltas of everything in scope */
	uint64_t jobs_explicit_ops; /* explicit operations of iocom's jobs */
	uint32_t io_tasks;	    /* the maximum of this period's readings */
	uint32_t io_tasks_last;	    /* the same of the last whole period */
	uint32_t live_tasks;
	struct iocom_disk *before, *now; /* disks at the period's start and at its last reading */
	size_t nbefore, nnow;
	bool primed;
	struct vector_measure smooth;
	double learned_mb_per_s; /* the highest rate seen while utilisation > 0.9; 0: none yet */
};

/* A running (or admitted) job, as the vector counts it. */
struct vector_job {
	double declared_per_ms; /* alone-rate from option or profile; 0: not known */
	double measured_per_ms; /* smoothed */
	double declared_mb, resident_mb;
	double cpu_share; /* share of one core when the job runs alone, 0..1 */
	unsigned seen;	  /* readings that saw the job */
};

/* The fields that do not change between periods. */
struct vector_self {
	char name[IOCOM_NAME_MAX], address[IOCOM_ADDRESS_MAX];
	uint16_t port;
	uint64_t boot_id;
	uint32_t period_ms;
	double cpu_speed, disk_mb_per_s, disk_fixed_ms, network_mb_per_s; /* configured, or 0 */
	bool rotational;
	bool accepts_jobs;
};

void vector_init(struct vector_state *state);
void vector_fini(struct vector_state *state);
/*
 * Adds one reading; JOBS_EXPLICIT_OPS: the explicit operations of iocom's jobs in it.  Returns 0 or
 * -ENOMEM.
 */
int vector_take(struct vector_state *state, const struct monitor_sample *sample,
		uint64_t jobs_explicit_ops);
/* Ends the period and smooths its rates into the state. */
void vector_close(struct vector_state *state);
/* Writes the vector; the caller sets sequence and time. */
void vector_build(const struct vector_state *state, const struct vector_self *self,
		  const struct host_reading *host, const struct vector_job *jobs, size_t njobs,
		  struct iocom_vector *out);

double vector_smooth(double old, double new);
/*
 * The disks' rates between two readings, per ms of ELAPSED_MS.  Bytes of stacked disks count once.
 */
void vector_disks(const struct iocom_disk *before, size_t nbefore, const struct iocom_disk *now,
		  size_t nnow, double elapsed_ms, struct vector_measure *out);
/* Returns true if OLD and NEW differ by more than the sensitivity, so NEW is published at once. */
bool vector_changed(const struct iocom_vector *old, const struct iocom_vector *new);

#endif
