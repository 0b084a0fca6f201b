/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Jobs that run at this node (as their target), from the lease on:
 *
 *   leased --FRAME_START--> launching --shim: started--> running --exited--> ended
 *   leased --10 s--> expired (home is told)         any --shim died--> ended (lost)
 *
 * A lease counts as a running job in the load vector until it starts or expires,
 * so that there is no gap in which a second decision would not see it.
 */
#ifndef IOCOM_JOBS_H
#define IOCOM_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/jobs/job_order.h"
#include "agent/jobs/job_report.h"
#include "user/monitor/job_times.h"
#include "agent/guest/launch.h"
#include "agent/base/loop.h"
#include "user/monitor/monitor.h"
#include "user/monitor/sample_names.h"
#include "agent/measure/vector.h"

#define JOBS_MAX      4096
#define JOBS_LEASE_NS (10ull * 1000000000ull)
#define JOBS_TELLS    5

enum job_state { JOB_LEASED, JOB_LAUNCHING, JOB_RUNNING, JOB_ENDED };

struct job {
	struct job *next;
	struct guest *guest;
	struct job_order order;
	char nonce[SPEC_NONCE_MAX];
	enum job_state state;
	uint64_t lease_until_ns; /* CLOCK_BOOTTIME */
	uint64_t start_ns;	 /* CLOCK_REALTIME */
	pid_t pid;
	uint64_t cgroup_id;
	int leash;
	struct loop_fd leash_entry;
	bool busy;		 /* its shim lives and could not be asked for its leash yet */
	uint8_t tells;		 /* how often home was told of its start; JOBS_TELLS: no more */
	bool unwritten;		 /* JOB_ENDED, and the journal could not take it yet */
	bool due;		 /* ... and is to be reported in this round */
	struct launch_event end; /* JOB_ENDED */
	bool lost;
	struct {
		uint64_t until_ns; /* CLOCK_BOOTTIME; the shim kills the job then; 0: unknown */
		uint64_t asked_ns; /* for a renewal */
		bool asking, fenced, killed;
		bool renews;  /* the shim asks home itself */
	} lease;	      /* where order.lease_ms is set */
	bool newer;	      /* ... for it speaks a later version */
	bool late;	      /* its shim lives, but has not answered this agent yet */
	bool told;	      /* home and journal know that it runs */
	uint64_t spool_bytes; /* that its output may take on the disk: detached */

	struct iocom_load load; /* cumulative */
	uint64_t rss_bytes, rss_max_bytes;
	uint64_t period_ops; /* explicit, since the period began */
	double measured_per_ms;
	unsigned seen;		       /* periods that saw it */
	struct iocom_job_load reading; /* its cgroup and those below in this reading */
	struct behaviour behaviour;
};

/* Whose an ended job's cgroup was: its counters stay in the listings. */
#define JOBS_MARKS 1024
struct job_mark {
	uint64_t cgroup_id;
	uid_t uid;
	char job[SPEC_JOB_MAX];
};

struct jobs {
	struct job *first;
	size_t count;
	struct job_mark marks[JOBS_MARKS]; /* a ring: the newest JOBS_MARKS ended jobs */
	size_t nmarks;			   /* ever */
	double network_mb_per_s;	   /* 0: not configured */
};

/* NULL: no room or no memory.  Copies ORDER. */
struct job *jobs_add(struct jobs *jobs, const struct job_order *order);
struct job *jobs_find(const struct jobs *jobs, const char *job);
/* How many UID has here, leases too, those that ended not. */
size_t jobs_of(const struct jobs *jobs, uid_t uid);
/* Whose this cgroup is, or was; JOB and UID may be NULL.  0 or -ENOENT. */
int jobs_whose(const struct jobs *jobs, uint64_t cgroup_id, const char **job, uid_t *uid);
/* Takes it out, marks whose its cgroup was, and frees it; the leash must be closed. */
void jobs_remove(struct jobs *jobs, struct job *job);
/*
 * Takes what a reading says of each job, its nested cgroups folded in (NAMES may
 * be NULL: only its own); the explicit operations of all of them in it.
 */
uint64_t jobs_sampled(struct jobs *jobs, struct sample_names *names,
		      const struct monitor_sample *sample);
/* Frees all; leashes must be closed. */
void jobs_fini(struct jobs *jobs);
/* Ends the period: measured rates are smoothed. */
void jobs_period(struct jobs *jobs, double elapsed_ms);
/* What the vector counts, malloc'ed (NULL when none or no memory); N: how many. */
struct vector_job *jobs_vector(const struct jobs *jobs, size_t *n);

/* How JOB ended and what it used. */
void job_report_make(const struct job *job, double cpu_speed, struct job_report *out);

#endif
