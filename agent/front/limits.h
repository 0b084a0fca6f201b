/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * All that can fill in an agent: how full it is, its bound, and the counter of what found
 * no room.  Shown by `iocom doctor`, `iocom nodes --json` and /metrics.
 */
#ifndef IOCOM_LIMITS_H
#define IOCOM_LIMITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMITS_LISTED 32
#define LIMIT_UNKNOWN UINT64_MAX

struct agent;

struct limit {
	const char *name;
	uint64_t used;	     /* LIMIT_UNKNOWN: of one user, who is not looked for */
	uint64_t max;	     /* 0: none but time, or configured as none */
	bool turns;	     /* full is as it should be: the oldest makes room */
	const char *counter; /* of what found no room; NULL: nothing is ever refused */
	uint64_t refused;
};

/* How many were put into OUT. */
size_t limits_list(struct agent *a, struct limit out[LIMITS_LISTED]);
/* The same as an array of objects; NULL: memory is out. */
json_t *limits_json(struct agent *a);

#endif
