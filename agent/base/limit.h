/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Something that can fill: how full it is, its bound, and the counter of what found no room. */
#ifndef IOCOM_LIMIT_H
#define IOCOM_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LIMITS_LISTED 32
#define LIMIT_UNKNOWN UINT64_MAX

struct limit {
	const char *name;
	uint64_t used;	     /* LIMIT_UNKNOWN: of one user, who is not looked for */
	uint64_t max;	     /* 0: none but time, or configured as none */
	bool turns;	     /* full is as it should be: the oldest makes room */
	const char *counter; /* of what found no room; NULL: nothing is ever refused */
	uint64_t refused;
};

#endif
