/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Serves the page of metrics: HTTP GET and HEAD of /metrics, nothing else, from a thread of its
 * own.  Everything is bounded: connections, the size of a request, and the time for receiving a
 * request and for sending its answer.  A page's text is made once, when it is first asked for.
 */
#ifndef IOCOM_AGENT_METRICS_HTTP_H
#define IOCOM_AGENT_METRICS_HTTP_H

#include <stdint.h>

#include "iocom/err.h"
#include "agent/metrics/metrics_page.h"

#define METRICS_HTTP_CONNECTIONS 16	     /* more wait in the listen queue */
#define METRICS_HTTP_REQUEST_MAX (16 * 1024) /* bytes of request line and headers */
#define METRICS_HTTP_REQUEST_MS	 2000	     /* an incomplete request is cut after this */
#define METRICS_HTTP_CROWDED_MS	 250	     /* the same when all connections are in use */
#define METRICS_HTTP_ANSWER_MS	 8000	     /* an answer not read is cut after this */

struct metrics_http;

/*
 * Listens at ADDRESS (numeric; IPv6 with or without brackets) and PORT (0: a free one).  Returns 0;
 * negative errno with the reason in ERR (-EADDRINUSE, -EINVAL ...).
 */
int metrics_http_new(struct metrics_http **http, const char *address, uint16_t port,
		     struct iocom_err *err);
/* Ends the thread and all connections; NULL is fine. */
void metrics_http_free(struct metrics_http *http);
uint16_t metrics_http_port(const struct metrics_http *http);
/*
 * Takes PAGE and serves it from now on.  Never waits for a client.  -ENOMEM: PAGE is freed and the
 * old page stays.
 */
int metrics_http_show(struct metrics_http *http, struct metrics_page *page);
void metrics_http_served(struct metrics_http *http, struct metrics_served *out);

#endif
