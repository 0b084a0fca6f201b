/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP by remote address and job: reads the slots that the programs fill (bpf/remotes.bpf.h), and
 * frees those of idle addresses when slots run short. Pure: the caller maps the slots, tells the
 * time, and provides the calls to the kernel.
 *
 *   free --programs--> in use --idle, and few are free--> leaving --a while--> free
 *
 * When a slot is freed its counts go to its job's row of other remotes, so a job's rows always
 * add up to all that it sent and received.
 */
#ifndef IOCOM_MONITOR_REMOTES_H
#define IOCOM_MONITOR_REMOTES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/monitor/monitor.h"
#include "bpf/records.h"

#define REMOTES_MAX	  4096	/* default number of addresses of all jobs together */
#define REMOTES_OTHER_MAX 1024	/* number of jobs that can have a row of other remotes */
#define REMOTES_IDLE_MS	  10000 /* where nothing else is asked */
#define REMOTES_LEAVE_MS  200	/* a program runs for microseconds */

struct remotes;

/* How slots are removed and freed; ARG is passed to both functions. */
struct remotes_config {
	struct remote_slot *slots; /* NAMED slots of addresses, then OTHER slots of jobs */
	unsigned named, other;
	/*
	 * How often one of the NAMED and one of the OTHER slots was taken. The programs take them
	 * in the order in which RELEASE offered them, so at first the later ones need not be read.
	 */
	const uint64_t *taken;
	unsigned idle_ms; /* an address without traffic for this long may be removed */
	/*
	 * Removes KEY from the index, so that no socket finds the slot any more. Returns 0 or
	 * negative errno.
	 */
	int (*forget)(void *arg, const struct remote_key *key);
	/* Makes the slot free for reuse. */
	int (*release)(void *arg, unsigned slot, bool other);
	void *arg;
};

/* Offers all slots to the programs. Returns NULL if there is no memory or if RELEASE failed. */
struct remotes *remotes_new(const struct remotes_config *config);
/* Leaves the slots unchanged; NULL is fine. */
void remotes_free(struct remotes *remotes);

/*
 * Makes one reading. NOW_MS is of any clock that never runs back. Returns 0 or -ENOMEM. REMOTES
 * owns ROWS, which are valid until the next reading.
 */
int remotes_read(struct remotes *remotes, uint64_t now_ms, const struct monitor_remote **rows,
		 size_t *nrows);
/* Returns the number of rows of other remotes forgotten for lack of room, cumulative. */
uint64_t remotes_forgotten(const struct remotes *remotes);

#endif
