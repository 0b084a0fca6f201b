/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The CLI's side of the agent's local socket. */
#ifndef IOCOM_CLIENT_H
#define IOCOM_CLIENT_H

#include <jansson.h>
#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>

#include "iocom/err.h"

/* RUN_DIR to use: the argument, else $IOCOM_RUN_DIR, else /run/iocom. */
const char *client_run_dir(const char *option);
/* Connects (blocking, close-on-exec).  0, or negative errno with the sentence:
 * no agent runs (-ECONNREFUSED, -ENOENT), no permission (-EACCES). */
int client_connect(const char *run_dir, int *fd, struct iocom_err *err);
/* Sends one request.  0 or negative errno. */
int client_send(int fd, const void *packed, size_t length, struct iocom_err *err);
/* Reads one answer: a new document, the caller's.  0; -EIO with the agent's
 * own sentence; -EPIPE the agent closed; -EPROTO garbage or another version. */
int client_receive(int fd, json_t **answer, struct iocom_err *err);
/* client_send, then client_receive. */
int client_request(int fd, const void *packed, size_t length, json_t **answer,
		   struct iocom_err *err);
/* Connect, ask, close.  Takes the packed REQUEST: it is destroyed here. */
int client_ask(const char *run_dir, msgpack_sbuffer *request, json_t **answer,
	       struct iocom_err *err);

/* --- client_patience.c --- */

/* Whether RC is what one hears of an agent that ends or has not begun; it may be back soon. */
bool client_agent_is_away(int rc);

struct client_patience {
	const char *name; /* "iocom wait": who is patient */
	bool heard;	  /* an agent was there: one that is away now is to come back */
};
/*
 * As client_ask; but where an agent was there before, one that goes away, or is, is asked again
 * for 30 s.  Standard error says so when that takes more than a second.
 */
int client_ask_patiently(struct client_patience *patience, const char *run_dir,
			 msgpack_sbuffer *request, json_t **answer, struct iocom_err *err);

#endif
