/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP connections of gangs (bpf/pairs.bpf.h): reads what the programs counted, says what changed
 * since the reading before, and removes elements that were idle for long. Pure: the caller tells
 * the time and provides the calls to the kernel.
 *
 * An idle element is removed after PAIRS_IDLE_MS if its cgroup is no gang any more or the table is
 * more than half full, and after PAIRS_OLD_MS in any case. A connection that is used again begins
 * a new element at 0, so only differences count.
 */
#ifndef IOCOM_MONITOR_PAIRS_H
#define IOCOM_MONITOR_PAIRS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/monitor/monitor.h"
#include "bpf/records.h"

#define PAIRS_IDLE_MS 10000
#define PAIRS_OLD_MS  60000

struct pairs;

struct pairs_config {
	/*
	 * Each reads the next elements of its table, ROOM at most, from the beginning if FIRST.
	 * They return their number, and 0 at the end, or negative errno.
	 */
	int (*read)(void *arg, bool first, struct pair_key *keys, struct pair_value *values,
		    size_t room);
	int (*read_tasks)(void *arg, bool first, struct gang_task_key *keys,
			  struct gang_task_value *values, size_t room);
	void (*remove)(void *arg, const struct pair_key *key);
	void (*remove_task)(void *arg, const struct gang_task_key *key);
	void *arg;
	size_t most; /* elements of a table */
};

/* Returns NULL if there is no memory. */
struct pairs *pairs_new(const struct pairs_config *config);
void pairs_free(struct pairs *pairs); /* NULL is fine */

/* A cgroup is a gang's from now on, or no more. Returns 0, -ENOMEM or -ENOSPC. */
int pairs_add_gang(struct pairs *pairs, uint64_t cgroup_id);
void pairs_drop_gang(struct pairs *pairs, uint64_t cgroup_id);
size_t pairs_gangs(const struct pairs *pairs);

/*
 * Makes one reading; NOW_MS is of any clock that never runs back. With no gang and nothing left of
 * an earlier one it reads nothing. Returns 0 or negative errno; PAIRS owns what OUT points to,
 * until the next reading.
 */
int pairs_read(struct pairs *pairs, uint64_t now_ms, struct monitor_pairs *out);

#endif
