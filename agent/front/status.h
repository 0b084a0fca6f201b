/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How this agent is: op "status". */
#ifndef IOCOM_STATUS_H
#define IOCOM_STATUS_H

#include <msgpack.h>

#include "agent/agent.h"

struct client;
void status_request(struct agent *a, struct client *client, const msgpack_object *request);
/* All counters of counters.h, and those that others keep: a new object. */
json_t *counters_json(const struct agent *a);

#endif
