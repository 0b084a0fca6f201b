/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Serves the page of metrics: HTTP GET and HEAD of /metrics, nothing else, from a thread of its
 * own.  Everything is bounded: connections, the size of a request, and the time for receiving a
 * request, for getting the page from root and for sending the answer.
 *
 * Root makes the page when it is wanted.  A client waits for it; all that ask meanwhile get the
 * same page, and so do those that ask within NET_HTTP_FRESH_MS:
 *
 *   request -- newest page is fresh ------------------------------------------> answer
 *        '-- WANT, if no page is under way -> waits -- page comes ------------> answer
 *                                                 '-- NET_HTTP_WAIT_MS passed -> 503
 *
 * The thread has begun when net_http_new returns.  Afterwards nothing here starts another or opens
 * a file: a filter of system calls may be set that lets it accept, read, write and allocate only.
 */
#ifndef IOCOM_AGENT_NET_HTTP_H
#define IOCOM_AGENT_NET_HTTP_H

#include <stdint.h>

#include "iocom/err.h"

#define NET_HTTP_CONNECTIONS 16		 /* more wait in the listen queue */
#define NET_HTTP_REQUEST_MAX (16 * 1024) /* bytes of request line and headers */
#define NET_HTTP_REQUEST_MS  2000	 /* an incomplete request is cut after this */
#define NET_HTTP_CROWDED_MS  250	 /* the same when all connections are in use */
#define NET_HTTP_FRESH_MS    50		 /* a page serves requests for this long */
#define NET_HTTP_WAIT_MS     2000	 /* a client waits for the page for this long */
#define NET_HTTP_ANSWER_MS   8000	 /* an answer not read is cut after this */
#define NET_HTTP_PAGE_MAX    (64u << 20) /* bytes of a page */

struct net_http;

struct net_http_config {
	int listener; /* a listening socket of TCP that does not block */
	/* Asks root for a page.  Called from the server's thread. */
	void (*want)(void *arg);
	void *arg;
};

/* Counts requests since the server began. */
struct net_http_counts {
	uint64_t answered; /* with the page */
	uint64_t refused;  /* another path or method, garbage, no request at all, or no page */
	uint64_t cut;	   /* too slow */
};

/*
 * Takes the listener in any case.  Returns 0; negative errno with the reason in ERR (-ENOMEM,
 * -EMFILE ...).
 */
int net_http_new(struct net_http **http, const struct net_http_config *config,
		 struct iocom_err *err);
/* Ends the thread and all connections; NULL is fine. */
void net_http_free(struct net_http *http);
/*
 * Serves from now on what is in FD, a file; an empty one says that there is no reading yet.  Takes
 * FD in any case.  May be called from any thread and never waits for a client.  Returns 0; negative
 * errno, and the old page stays and answers those who wait: -EINVAL (no file), -EFBIG, -EBADF, -EIO
 * (it is shorter than it says), -ENOMEM.
 */
int net_http_show_fd(struct net_http *http, int fd);
/* May be called from any thread. */
void net_http_served(struct net_http *http, struct net_http_counts *out);

#endif
