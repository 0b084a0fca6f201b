/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How this agent is. */
#ifndef IOCOM_STATUS_H
#define IOCOM_STATUS_H

#include <jansson.h>

#include "agent/front/front.h"

/* All counters of counters.h, and those that others keep: a new object. */
json_t *counters_json(const struct front *front);

#endif
