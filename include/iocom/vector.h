/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The load vector (a.vector, MODEL section 4): what one node tells the others
 * about itself, every period.  Rates are per wall-clock ms, as measured, and
 * smoothed with alpha = 0.5.
 */
#ifndef IOCOM_VECTOR_H
#define IOCOM_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

#define IOCOM_NAME_MAX	  64 /* node names, with the terminating NUL */
#define IOCOM_ADDRESS_MAX 64

/* Binary form of the vector: 1 = available, 0 = saturated (MODEL 3.14). */
#define IOCOM_BIT_IO  1u
#define IOCOM_BIT_CPU 2u
/* The agent stops, and this is its last vector. */
#define IOCOM_BIT_LEAVES 4u

struct iocom_vector {
	char name[IOCOM_NAME_MAX];
	char address[IOCOM_ADDRESS_MAX]; /* where peers reach its agent; "" = this machine only */
	uint16_t port;			 /* base port for bulletins; +1 control; +2 job streams */
	uint64_t boot_id;		 /* random, new at every start of the agent */
	uint64_t sequence;		 /* grows by 1 per vector of one boot_id */
	uint64_t time_ns;		 /* CLOCK_REALTIME when it was measured */
	uint32_t period_ms;

	uint32_t cores;
	double cpu_speed; /* relative to the reference machine (1); a CPU cap counts */
	/*
	 * As cpu_speed, until the cap is used up; cpu_speed: there is no cap.  0: not known, and
	 * neither is the work that is left: an older agent said this, in a listing that was kept.
	 */
	double cpu_burst;
	double run_queue; /* runnable tasks, mean over the period */
	uint32_t tasks;	  /* live processes */
	uint32_t jobs;	  /* running iocom jobs */

	double memory_mb;	    /* for all jobs (RAM or the scope's limit), in 10^6 bytes */
	double memory_available_mb; /* a new job could get it without paging */
	double memory_requested_mb; /* L_MEM: memory in use, or declared if a job declared more */

	/*
	 * L_IO, requests per wall-clock ms: for a running job of iocom its rate when alone
	 * (r.vector), for everything else the measured rate.
	 */
	double explicit_per_ms;
	double implicit_per_ms;
	double explicit_mb_per_s; /* as measured */
	double implicit_mb_per_s;
	uint32_t io_tasks; /* processes that did disk I/O in the period */

	uint32_t disks; /* 0: the node has no disk to balance */
	double disk_arrivals_per_ms;
	double disk_service_ms;	 /* E(s); 0: the disk served nothing lately */
	double disk_service_ms2; /* E(s^2) */
	double disk_utilisation; /* 0..1 */
	double disk_mb_per_s;	 /* what the disk can deliver: configured, or learned */
	double disk_fixed_ms;	 /* seek + rotation per request */
	/* tasks that it serves at full speed at a time; below 1, or an older agent's listing: one
	 */
	double disk_parallel;

	/*
	 * The work that is left (MODEL 2.10, struct rules_sharers): of iocom's jobs what they need
	 * less what they did, of everything else what it does now, for an assumed time.
	 */
	double cpu_sharers, disk_sharers;
	double cpu_left_ms, disk_left_ms;

	double sent_mb_per_s, received_mb_per_s;
	double messages_per_s;
	double network_mb_per_s; /* capacity */

	uint32_t bits;	   /* IOCOM_BIT_*, judged by the remote thresholds */
	bool accepts_jobs; /* the owner lets some job of other nodes in now */
	/* What the owner's rules say: "", or "closed: REASON", "limited: ..."; printable ASCII. */
	char owner[IOCOM_NAME_MAX];

	/*
	 * The caches of data that went along with jobs (user/data_usage.h), of all users; not told
	 * while no job ever had data here.
	 */
	uint32_t cache_jobs;	/* whose data went along */
	uint32_t cache_refused; /* whose data had no room */
	double cache_mb;
	uint32_t cache_files;
	uint32_t cache_hits, cache_misses, cache_evicted; /* files: found, copied, made room */

	/* Tasks of parallel jobs: how many the node takes, and more now; 0, 0: it takes none. */
	uint32_t slots, slots_free;
};

#endif
