/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The table of jobs at this node (their target), from the lease on:
 *
 *   leased --FRAME_START--> launching --shim: started--> running --exited--> ended
 *   leased --10 s--> expired (home is told)         any --shim died--> ended (lost)
 *
 * The load vector counts a lease as a running job until it starts or expires, so that no second
 * decision can miss it.
 */
#ifndef IOCOM_JOBS_H
#define IOCOM_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/cluster/peer_message.h"
#include "agent/jobs/job_order.h"
#include "agent/jobs/job_report.h"
#include "user/monitor/job_times.h"
#include "agent/guest/launch.h"
#include "agent/base/loop.h"
#include "agent/guest/part_talk.h"
#include "user/monitor/monitor.h"
#include "user/monitor/sample_names.h"
#include "agent/measure/vector.h"

#define JOBS_MAX      4096
#define JOBS_OF_ROOT  64 /* places that only root takes */
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
	uint64_t running_ns;	 /* the same, since when its load is counted here */
	pid_t pid;
	uint64_t cgroup_id;
	int leash;
	struct loop_fd leash_entry;
	bool busy;		 /* its shim lives but could not be asked for its leash yet */
	uint8_t tells;		 /* how often home was told of the start; at JOBS_TELLS we stop */
	bool unwritten;		 /* JOB_ENDED, but the journal could not take it yet */
	uint64_t written;	 /* the commit that has its start, or its end; 0: there is none */
	bool due;		 /* the job's end must be reported in this round */
	struct launch_event end; /* JOB_ENDED */
	bool lost;
	struct {
		uint64_t until_ns; /* CLOCK_BOOTTIME; then the shim kills the job; 0: unknown */
		uint64_t asked_ns; /* when a renewal was asked for */
		bool asking, fenced, killed;
		bool renews;  /* the shim asks home itself */
	} lease;	      /* valid if order.lease_ms is set */
	bool newer;	      /* its shim speaks a later version */
	bool late;	      /* its shim lives but has not answered this agent yet */
	bool told;	      /* home and journal know that it runs */
	bool stopped;	      /* home was told that a signal has stopped it */
	uint64_t spool_bytes; /* the job's output may take this much of the disk */
	bool attached;	      /* it gets there only if the job's client does not take it */
	struct {
		char why[160];	 /* what its user reads; "": its node's owner lets it stay */
		uint64_t due_ns; /* SIGKILL, CLOCK_BOOTTIME */
		bool asked, killed;
		uint64_t stay_ns;  /* until then it may leave for another node instead */
		uint64_t again_ns; /* when its home is asked for that again */
		bool away, began;  /* its home was asked for that; it began to move */
	} expelled;

	struct iocom_load load; /* cumulative */
	uint64_t rss_bytes, rss_max_bytes;
	uint64_t metadata_bytes; /* that the file system writes for it; no part of `load` */
	uint64_t period_ops;	 /* explicit operations since the period began */
	double measured_per_ms;
	unsigned seen;		       /* periods that saw the job */
	uint64_t progress_ms;	       /* the age up to which home was told what it did */
	struct iocom_job_load reading; /* its cgroups' load in this reading */
	struct behaviour behaviour;
	bool found; /* an earlier agent started it */
	struct {
		uint64_t number; /* of the move that home asked for; 0: none, or not known */
		char target[IOCOM_NAME_MAX];
		bool held;	  /* home decides */
		bool told;	  /* the shim was told what it decided */
		uint64_t told_ns; /* for the first time, CLOCK_BOOTTIME */
		bool asking;
		uint64_t asked_ns; /* CLOCK_BOOTTIME */
		struct peer_held said;
	} move;
	struct part_talk *talk; /* its connections; NULL: they are not counted one by one */
	void *told_talk;	/* what the last report said of them (job_report.h) */
};

/* Remembers which ended job a cgroup belonged to: its counters stay in the listings. */
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
	size_t nmarks;			   /* marks ever made */
	double network_mb_per_s;	   /* 0: not configured */
	uint64_t talk_rest;		   /* connections that found no place (part_talk.h) */
};

/* Adds a job with a copy of ORDER.  NULL: no room or no memory. */
struct job *jobs_add(struct jobs *jobs, const struct job_order *order);
struct job *jobs_find(const struct jobs *jobs, const char *job);
/* Counts UID's jobs here, including leases, without ended ones. */
size_t jobs_of(const struct jobs *jobs, uid_t uid);
/*
 * Finds the job and user that a cgroup belongs or belonged to; JOB and UID may be NULL.  Returns 0
 * or -ENOENT.
 */
int jobs_whose(const struct jobs *jobs, uint64_t cgroup_id, const char **job, uid_t *uid);
/*
 * Removes JOB from the table, marks its cgroup as its own, and frees it; the leash must be closed.
 */
void jobs_remove(struct jobs *jobs, struct job *job);
/*
 * Takes each job's load from a reading, its nested cgroups included (NAMES NULL: only its own
 * cgroup).  Adds what all jobs did in the reading to ALL.
 */
void jobs_sampled(struct jobs *jobs, struct sample_names *names,
		  const struct monitor_sample *sample, struct vector_jobs_did *all);
/* Frees all jobs; their leashes must be closed. */
void jobs_fini(struct jobs *jobs);
/* Ends the period and smooths the measured rates. */
void jobs_period(struct jobs *jobs, double elapsed_ms);
/*
 * Returns the jobs as the vector counts them, malloc'ed (NULL: none, or no memory); N is their
 * number.
 */
struct vector_job *jobs_vector(const struct jobs *jobs, size_t *n);

/* Fills OUT: how JOB ended and what it used. */
void job_report_make(const struct job *job, double cpu_speed, struct job_report *out);

#endif
