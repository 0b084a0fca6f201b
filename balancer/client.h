/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The CLI's side of the agent's local socket. */
#ifndef IOCOM_CLIENT_H
#define IOCOM_CLIENT_H

#include <jansson.h>
#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>

#include "iocom/err.h"

/* Returns the run directory to use: OPTION, else $IOCOM_RUN_DIR, else /run/iocom. */
const char *client_run_dir(const char *option);
/*
 * Connects (blocking, close-on-exec).  Returns 0, or negative errno with the reason in ERR: no
 * agent runs (-ECONNREFUSED, -ENOENT), no permission (-EACCES).
 */
int client_connect(const char *run_dir, int *fd, struct iocom_err *err);
/* Sends one request.  Returns 0 or negative errno. */
int client_send(int fd, const void *packed, size_t length, struct iocom_err *err);
/*
 * Reads one answer, a new document that the caller owns.  Returns 0; -EIO with the agent's own
 * sentence; -EPIPE: the agent closed; -EPROTO: garbage or another version.
 */
int client_receive(int fd, json_t **answer, struct iocom_err *err);
/* client_send, then client_receive. */
int client_request(int fd, const void *packed, size_t length, json_t **answer,
		   struct iocom_err *err);
/* Connects, asks and closes.  Takes the packed REQUEST and destroys it. */
int client_ask(const char *run_dir, msgpack_sbuffer *request, json_t **answer,
	       struct iocom_err *err);

/* --- client_patience.c --- */

/* Returns whether RC means that the agent ended or has not started, so that it may be back soon. */
bool client_agent_is_away(int rc);

struct client_patience {
	const char *name; /* the program that prints, "iocom wait" */
	bool heard;	  /* an agent answered before, so one that is away now should come back */
};
/*
 * Does the same as client_ask, but once an agent has answered PATIENCE, it asks a missing agent
 * again for 30 s, and says so on standard error after one second.
 */
int client_ask_patiently(struct client_patience *patience, const char *run_dir,
			 msgpack_sbuffer *request, json_t **answer, struct iocom_err *err);

#endif
