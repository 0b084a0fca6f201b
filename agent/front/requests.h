/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Finds a request's handler by its name. */
#ifndef IOCOM_REQUESTS_H
#define IOCOM_REQUESTS_H

#include "agent/front/front.h"

/* The callback of clients_config; FRONT is the struct front. */
void requests_handle(void *front, struct client *client, const msgpack_object *request);

#endif
