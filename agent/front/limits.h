/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* All that can fill in an agent.  Shown by `iocom doctor`, `iocom nodes --json` and /metrics. */
#ifndef IOCOM_LIMITS_H
#define IOCOM_LIMITS_H

#include <jansson.h>
#include <stddef.h>

#include "agent/base/limit.h"

struct front;

/* How many were put into OUT. */
size_t limits_list(struct front *front, struct limit out[LIMITS_LISTED]);
/* The same as an array of objects; NULL: memory is out. */
json_t *limits_json(struct front *front);

#endif
