/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The agent's pulse: four looks at the run queue a period, one reading of the monitor at its
 * end, a new load vector, and everybody who watches is told.
 */
#ifndef IOCOM_PULSE_H
#define IOCOM_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/base.h"
#include "agent/measure/host.h"
#include "agent/measure/vector.h"
#include "iocom/vector.h"
#include "user/monitor/monitor.h"

#define PULSE_NOTICE_MS 100 /* significant changes are told at once, at most so often */

struct journal;

/* Where readings come from; in tests from a list. */
struct pulse_source {
	void *arg;
	int (*sample)(void *arg, struct monitor_sample *sample, struct iocom_err *err);
	int (*look)(void *arg, struct iocom_err *err);
	int (*host)(void *arg, struct host_reading *reading, struct iocom_err *err);
};

/* The jobs that run here, as the vector counts them. */
struct pulse_jobs {
	void *arg;
	/* Takes a reading; the explicit operations of all jobs in it. */
	uint64_t (*sampled)(void *arg, const struct monitor_sample *sample);
	void (*period)(void *arg, double elapsed_ms);
	/* malloc'ed; NULL: none, or no memory. */
	struct vector_job *(*vector)(void *arg, size_t *n);
};

/* Who is told; members may be NULL.  All are called in the order of pulse_watch. */
struct pulse_watch {
	void (*sampled)(void *arg, const struct monitor_sample *sample); /* NULL: it failed */
	void (*closes)(void *arg); /* the period is over, the vector not yet made */
	void (*told)(void *arg);   /* ... and made, and told to the other nodes */
	void *arg;
	struct pulse_watch *next;
};

struct pulse_config {
	const struct base *base;
	struct pulse_source source;
	struct journal *journal; /* keeps the disk's learned speed */
	int uptime_fd;		 /* uptime_mark.h; -1: none */
	void *publish_arg;	 /* a new vector for the other nodes */
	void (*publish)(void *arg, const struct iocom_vector *own, uint64_t now_ns);
};

/* Others read it, and only pulse.c writes it. */
struct pulse {
	struct pulse_config config;
	const struct base *base;
	struct pulse_jobs jobs;
	struct vector_self self;
	struct vector_state measured;
	struct iocom_vector own; /* as last told */
	uint64_t sequence;	 /* of the last vector told */
	uint64_t own_ns;	 /* when (CLOCK_BOOTTIME) */
	uint64_t started_ns;	 /* CLOCK_BOOTTIME */
	uint64_t sampled_ns;
	struct monitor_sample last; /* the reading of sampled_ns; its arrays are the monitor's */
	bool has_last;		    /* ... and not yet rewritten */
	/* Of the last reading; the monitor's, rewritten in place by the next. */
	const struct monitor_drop *drops;
	size_t ndrops, ndegraded;
	unsigned looks;
	struct host_reading host; /* as of host_ns, CLOCK_BOOTTIME */
	uint64_t host_ns;
	struct pulse_watch *watches, **last_watch;
	struct loop_timer tick, notice;
};

void pulse_init(struct pulse *pulse, const struct pulse_config *config);
void pulse_fini(struct pulse *pulse);
/* Before pulse_start. */
void pulse_set_jobs(struct pulse *pulse, const struct pulse_jobs *jobs);
/* WATCH is the caller's and stays until pulse_fini. */
void pulse_watch(struct pulse *pulse, struct pulse_watch *watch);
/* The first reading and vector, and a period from now on.  0 or negative errno, the sentence. */
int pulse_start(struct pulse *pulse, struct iocom_err *err);

/* Reads the monitor now; everybody who watches gets it. */
void pulse_sample(void *pulse);
/* This node's vector as of now, with fresh memory and all leases; it is not told to anyone. */
void pulse_own_vector(void *pulse, struct iocom_vector *v);
uint64_t pulse_sequence(void *pulse);
/* Something worth telling happened: told at once, at most every PULSE_NOTICE_MS. */
void pulse_changed(void *pulse);

#endif
