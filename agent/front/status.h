/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The state of this agent. */
#ifndef IOCOM_STATUS_H
#define IOCOM_STATUS_H

#include <jansson.h>

#include "agent/front/front.h"

/* Makes an object of all counters: those of counters.h, and those that other modules keep. */
json_t *counters_json(const struct front *front);

#endif
