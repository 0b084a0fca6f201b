/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Bounds each user's rate of requests: one token bucket per user.
 *
 *   tokens = min(per_s, tokens + per_s * elapsed);  a request takes one, or is refused
 *
 * So a burst is at most what one second allows.  A user whose bucket is full again needs no entry:
 * the table is a bounded cache, where a new user replaces the one that asked longest ago.  The
 * caller passes the time.
 */
#ifndef IOCOM_REQUEST_LIMIT_H
#define IOCOM_REQUEST_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define REQUEST_LIMIT_USERS 128

struct rate {
	uid_t uid;
	bool used;
	double tokens;
	uint64_t at_ns;
};

struct request_limit {
	struct rate users[REQUEST_LIMIT_USERS];
};

/*
 * Returns true if UID may ask now.  Root always may, and with PER_S 0 everybody.  NOW_NS: any clock
 * that never goes back.
 */
bool request_limit_take(struct request_limit *rates, uid_t uid, uint32_t per_s, uint64_t now_ns);

/*
 * Charges UID for a request that took COST_NS of CPU time: the first millisecond is free, each
 * further one costs REQUEST_LIMIT_OF_MS tokens at a PER_S of 5000.  So long answers take at most a
 * quarter of each second, however many connections ask for them.
 */
#define REQUEST_LIMIT_OF_MS 20
void request_limit_charge(struct request_limit *rates, uid_t uid, uint32_t per_s, uint64_t cost_ns,
			  uint64_t now_ns);

#endif
