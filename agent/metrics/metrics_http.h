/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Serves the page of metrics: HTTP GET and HEAD of /metrics, nothing else, from a
 * thread of its own.  Everything is bounded: connections, the size of a request,
 * the time it may take to come and its answer to be taken.  The text of a page is
 * made once, when it is first asked for.
 */
#ifndef IOCOM_AGENT_METRICS_HTTP_H
#define IOCOM_AGENT_METRICS_HTTP_H

#include <stdint.h>

#include "iocom/err.h"
#include "agent/metrics/metrics_page.h"

#define METRICS_HTTP_CONNECTIONS 16	     /* more wait in the listen queue */
#define METRICS_HTTP_REQUEST_MAX (16 * 1024) /* bytes of request line and headers */
#define METRICS_HTTP_REQUEST_MS	 2000	     /* a request not whole by then is cut */
#define METRICS_HTTP_CROWDED_MS	 250	     /* ... or by then, where others may have to wait */
#define METRICS_HTTP_ANSWER_MS	 8000	     /* and an answer not taken */

struct metrics_http;

/*
 * Listens at ADDRESS (numeric; IPv6 with or without brackets) and PORT (0: a free
 * one).  0; negative errno with the sentence (-EADDRINUSE, -EINVAL ...).
 */
int metrics_http_new(struct metrics_http **http, const char *address, uint16_t port,
		     struct iocom_err *err);
/* Ends the thread and all connections; NULL is fine. */
void metrics_http_free(struct metrics_http *http);
uint16_t metrics_http_port(const struct metrics_http *http);
/* Takes PAGE: the one that is served from now on.  Never waits for a client.
 * Without memory PAGE is freed and the one before stays: -ENOMEM. */
int metrics_http_show(struct metrics_http *http, struct metrics_page *page);
void metrics_http_served(struct metrics_http *http, struct metrics_served *out);

#endif
