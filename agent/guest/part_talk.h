/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the ranks of one part of a gang sent and received, by connection, from reading to reading
 * (monitor.h: pairs), until it is told home (user/exchange/exchange.h).  Bounded: what finds no
 * place is summed and counted.
 */
#ifndef IOCOM_PART_TALK_H
#define IOCOM_PART_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/monitor/monitor.h"

#define PART_ROWS_MAX  8192 /* connections of a part that are kept one by one */
#define PART_TASKS_MAX 2048 /* its processes that use TCP */

struct part_talk;

/* LATE: the part ran before counting began.  NULL: no memory. */
struct part_talk *part_talk_new(bool late);
void part_talk_free(struct part_talk *talk); /* NULL is fine */
/*
 * Takes what the cgroup did since the reading before.  Returns how many connections found no place.
 */
uint64_t part_talk_take(struct part_talk *talk, uint64_t cgroup_id,
			const struct monitor_sample *sample);
/* Makes the report, malloc'ed; the part needed DISK_MS of the disks.  Returns 0; -ENODATA: nothing
 * was sent or received; -ENOMEM. */
int part_talk_pack(const struct part_talk *talk, double disk_ms, void **data, size_t *length);

#endif
