/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP by remote address and job: reads the slots that the programs fill
 * (bpf/remotes.bpf.h), and takes back those of addresses that are idle when there
 * is need.  Pure: the caller maps the slots, tells the time, and says how the
 * kernel is told.
 *
 *   free --programs--> in use --idle, and few are free--> leaving --a while--> free
 *
 * What a slot counted goes, when it is taken back, to its job's row of other
 * remotes: a job's rows always add up to what it sent and received.
 */
#ifndef IOCOM_MONITOR_REMOTES_H
#define IOCOM_MONITOR_REMOTES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/monitor/monitor.h"
#include "bpf/records.h"

#define REMOTES_MAX	  4096	/* addresses, all jobs together, where nothing else is asked */
#define REMOTES_OTHER_MAX 1024	/* jobs whose addresses found no place */
#define REMOTES_IDLE_MS	  10000 /* where nothing else is asked */
#define REMOTES_LEAVE_MS  200	/* a program runs for microseconds */

struct remotes;

/* How slots come into being and go; ARG is remotes_config's. */
struct remotes_config {
	struct remote_slot *slots; /* NAMED of addresses, then OTHER of jobs */
	unsigned named, other;
	unsigned idle_ms; /* an address idle that long may leave */
	/* Out of the index: no socket finds the slot any more.  0 or negative errno. */
	int (*forget)(void *arg, const struct remote_key *key);
	/* The slot may be used anew. */
	int (*release)(void *arg, unsigned slot, bool other);
	void *arg;
};

/* Offers all slots to the programs.  NULL: out of memory, or RELEASE failed. */
struct remotes *remotes_new(const struct remotes_config *config);
/* Leaves the slots as they are; NULL is fine. */
void remotes_free(struct remotes *remotes);

/*
 * One reading.  NOW_MS: any clock that never runs back.  0 or -ENOMEM.  ROWS belong
 * to REMOTES, valid until the next reading.
 */
int remotes_read(struct remotes *remotes, uint64_t now_ms, const struct monitor_remote **rows,
		 size_t *nrows);
/* Rows of other remotes that were forgotten for want of room, cumulative. */
uint64_t remotes_forgotten(const struct remotes *remotes);

#endif
