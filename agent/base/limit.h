/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A resource that can fill up: how full it is, its bound, and the counter of refusals. */
#ifndef IOCOM_LIMIT_H
#define IOCOM_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LIMITS_LISTED 70
#define LIMIT_UNKNOWN UINT64_MAX

struct limit {
	const char *name;
	uint64_t used;	     /* LIMIT_UNKNOWN: a bound per user, not looked up */
	uint64_t max;	     /* 0: bounded by time only, or no bound configured */
	bool turns;	     /* normally full: a new entry replaces the oldest */
	const char *counter; /* counts refusals; NULL: nothing is ever refused */
	uint64_t refused;
};

#endif
