/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* From a request's name to its handler. */
#ifndef IOCOM_REQUESTS_H
#define IOCOM_REQUESTS_H

#include "agent/front/front.h"

/* As clients_config has it; FRONT is the struct front. */
void requests_handle(void *front, struct client *client, const msgpack_object *request);

#endif
