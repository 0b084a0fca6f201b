/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How often each user asks: a token bucket a user.
 *
 *   tokens = min(per_s, tokens + per_s * elapsed);  a request takes one, or is refused
 *
 * So a burst is at most what one second allows.  A user whose bucket is full again
 * needs no entry: the table is a bounded cache, and the one that asked longest ago
 * makes room.  Time comes with the call.
 */
#ifndef IOCOM_RATES_H
#define IOCOM_RATES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RATES_USERS 128

struct rate {
	uid_t uid;
	bool used;
	double tokens;
	uint64_t at_ns;
};

struct rates {
	struct rate users[RATES_USERS];
};

/* Whether UID may ask now; root may, and with PER_S 0 all.  NOW_NS: any clock that never goes back.
 */
bool rates_take(struct rates *rates, uid_t uid, uint32_t per_s, uint64_t now_ns);

/*
 * What UID asked for took COST_NS of the processor: the first millisecond is what a request
 * may take, each further one costs RATES_OF_MS of a PER_S of 5000.  So long answers are at most
 * a quarter of a second each second, however many connections ask for them.
 */
#define RATES_OF_MS 20
void rates_charge(struct rates *rates, uid_t uid, uint32_t per_s, uint64_t cost_ns,
		  uint64_t now_ns);

#endif
