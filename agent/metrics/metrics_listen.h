/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The listening socket of /metrics: root opens it, because where it listens is configuration; the
 * network part accepts the connections (agent/net/net_http.h).
 */
#ifndef IOCOM_AGENT_METRICS_LISTEN_H
#define IOCOM_AGENT_METRICS_LISTEN_H

#include <stdint.h>

#include "iocom/err.h"

/*
 * Listens at ADDRESS (numeric; IPv6 with or without brackets) and PORT (0: a free one).  Returns 0:
 * *LISTENER, which does not block, is the caller's; negative errno with the reason in ERR
 * (-EADDRINUSE, -EINVAL ...), and *LISTENER is -1.
 */
int metrics_listen(int *listener, const char *address, uint16_t port, struct iocom_err *err);

#endif
