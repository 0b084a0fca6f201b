/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The agent's pulse: in each period it samples the run queue four times, reads the monitor once at
 * the end, makes a new load vector, and calls all watchers.  After a period at rest, in which all
 * tasks together used less than a twentieth of a processor, it samples the run queue only at the
 * end, until something changes here.
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

#define PULSE_NOTICE_MS 100 /* significant changes are published at once, at most this often */

struct journal;

/* The source of readings; tests read from a list. */
struct pulse_source {
	void *arg;
	int (*sample)(void *arg, struct monitor_sample *sample, struct iocom_err *err);
	int (*look)(void *arg, struct iocom_err *err);
	int (*host)(void *arg, struct host_reading *reading, struct iocom_err *err);
	void (*rest)(void *arg, bool resting); /* whether the node is at rest; may be NULL */
};

/* The jobs that run here, as the vector counts them. */
struct pulse_jobs {
	void *arg;
	/* Takes a reading; adds what all jobs did in it to ALL. */
	void (*sampled)(void *arg, const struct monitor_sample *sample,
			struct vector_jobs_did *all);
	void (*period)(void *arg, double elapsed_ms);
	/* malloc'ed; NULL: none, or no memory. */
	struct vector_job *(*vector)(void *arg, size_t *n);
};

/* A watcher; members may be NULL.  Watchers are called in the order of pulse_watch. */
struct pulse_watch {
	void (*sampled)(void *arg,
			const struct monitor_sample *sample); /* SAMPLE NULL: the reading failed */
	void (*closes)(void *arg); /* the period is over, but the vector not made yet */
	void (*told)(void *arg);   /* the vector is made and published */
	void *arg;
	struct pulse_watch *next;
};

struct pulse_config {
	const struct base *base;
	struct pulse_source source;
	struct journal *journal; /* keeps the learned speed of the disk */
	int uptime_fd;		 /* uptime_mark.h; -1: none */
	void *publish_arg;	 /* for `publish`, which sends a new vector to the other nodes */
	void (*publish)(void *arg, const struct iocom_vector *own, uint64_t now_ns);
};

/* Other modules may read it, but only pulse.c writes it. */
struct pulse {
	struct pulse_config config;
	const struct base *base;
	struct pulse_jobs jobs;
	struct vector_self self;
	struct vector_state measured;
	struct iocom_vector own; /* the vector as it was last published */
	uint64_t sequence;	 /* the number of the last published vector */
	uint64_t own_ns;	 /* when it was published (CLOCK_BOOTTIME) */
	uint64_t started_ns;	 /* CLOCK_BOOTTIME */
	uint64_t sampled_ns;
	struct monitor_sample last; /* the reading of sampled_ns; the monitor owns its arrays */
	bool has_last;		    /* `last` is valid: the monitor has not overwritten it */
	/* From the last reading; the monitor owns them and overwrites them with the next. */
	const struct monitor_drop *drops;
	size_t ndrops, ndegraded;
	unsigned quarters; /* of this period, that have passed */
	bool resting;	   /* `tick` is due at the end of the period, not of the next quarter */
	struct host_reading host; /* the reading of host_ns, CLOCK_BOOTTIME */
	uint64_t host_ns;
	struct pulse_watch *watches, **last_watch;
	struct loop_timer tick, notice;
};

void pulse_init(struct pulse *pulse, const struct pulse_config *config);
void pulse_fini(struct pulse *pulse);
/* What the next vectors say of the caches of jobs' data. */
void pulse_set_caches(struct pulse *pulse, const struct data_caches_use *use);
/*
 * What the owner's rules say for other nodes: whether any guest gets in, and in words.  Others
 * learn of a change at once.
 */
void pulse_set_owner(struct pulse *pulse, bool accepts, const char *says);
/* Call it before pulse_start. */
void pulse_set_jobs(struct pulse *pulse, const struct pulse_jobs *jobs);
/* WATCH is the caller's and stays until pulse_fini. */
void pulse_watch(struct pulse *pulse, struct pulse_watch *watch);
/*
 * Makes the first reading and vector, and starts the periods.  Returns 0 or negative errno with the
 * reason in ERR.
 */
int pulse_start(struct pulse *pulse, struct iocom_err *err);

/* When the running period ends (CLOCK_BOOTTIME); the pulse is then awake. */
uint64_t pulse_ends_ns(const struct pulse *pulse);
/* Reads the monitor now, for all watchers. */
void pulse_sample(void *pulse);
/* This node's vector as of now, with fresh memory and all leases; it is not published. */
void pulse_own_vector(void *pulse, struct iocom_vector *v);
/*
 * The load may have changed: publishes a significant change at once, at most every PULSE_NOTICE_MS.
 */
void pulse_changed(void *pulse);
/* The agent stops: publishes a last vector, which says so. */
void pulse_leave(struct pulse *pulse);

#endif
