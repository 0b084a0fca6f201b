/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Everything in an agent that can fill up, for `iocom doctor`, `iocom nodes --json` and /metrics.
 */
#ifndef IOCOM_LIMITS_H
#define IOCOM_LIMITS_H

#include <jansson.h>
#include <stddef.h>

#include "agent/base/limit.h"

struct front;

/* Fills OUT; returns the number of entries. */
size_t limits_list(struct front *front, struct limit out[LIMITS_LISTED]);
/* The same as an array of objects; NULL: out of memory. */
json_t *limits_json(struct front *front);

#endif
