/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Connections of this machine's programs on RUN_DIR/iocom.sock.  Who it is, the
 * kernel says.  Everything is bounded: connections, requests, waiting output,
 * idle time.
 */
#ifndef IOCOM_CLIENTS_H
#define IOCOM_CLIENTS_H

#include <jansson.h>
#include <msgpack.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "agent/base/base.h"

#define CLIENTS_MAX	    512
#define CLIENTS_OF_ONE	    256 /* of one user; root may have them all */
#define CLIENTS_OF_ROOT	    16	/* kept for root */
#define CLIENT_REQUEST_MAX  (1u << 20)
#define CLIENT_OUTPUT_MAX   (16u << 20)
#define CLIENT_BYTES_OF_ONE (64u << 20) /* of one user, both ways; root may have more */

struct clients;
struct client;

struct clients_config {
	const struct base *base;
	/* A request, a map; its handler answers CLIENT now or later. */
	void (*request)(void *arg, struct client *client, const msgpack_object *request);
	void *request_arg;
	/* FRAME_START, FRAME_ATTACH of a job of this machine.  0: FD is taken. */
	int (*start)(void *arg, int fd, const void *payload, uint32_t length,
		     const struct ucred *local, struct iocom_err *err);
	int (*attach)(void *arg, int fd, const void *payload, uint32_t length,
		      const struct ucred *local, struct iocom_err *err);
	void *stream_arg;
};

/* Told of each client that is gone: what was kept for it goes. */
struct clients_watch {
	void (*closed)(void *arg, struct client *client);
	void (*half)(void *arg, struct client *client); /* it sends no more, but reads; or NULL */
	void *arg;
	struct clients_watch *next;
};

/* 0; negative errno with the sentence (run directory not writable ...). */
int clients_new(struct clients **clients, const struct clients_config *config,
		struct iocom_err *err);
/* Serves WHO on the connection FD, which is taken.  NULL: no memory or no descriptor, FD stays. */
struct client *clients_adopt(struct clients *clients, int fd, const struct ucred *who);
size_t clients_count(const struct clients *clients);
void clients_free(struct clients *clients);
/* WATCH is the caller's and stays until clients_free. */
void clients_watch(struct clients *clients, struct clients_watch *watch);

/* Closes it; it is freed when the loop comes round. */
void client_drop(struct client *client);
bool client_is_gone(const struct client *client);
/* Output of it waits to be read. */
bool client_has_output(const struct client *client);
/* Whether its user may ask now, and what an answer has cost: request_limit.h. */
bool client_may_ask(struct client *client);
void client_charge(struct client *client, uint64_t cost_ns);
/* The client asked to do WHAT to JOB, which is another user's: root should see it in the log. */
void client_log_foreign(const struct client *client, const char *what, const char *job);

/* Its descriptor; another process that has a copy may take it: client_hand_over. */
int client_fd(const struct client *client);
void client_hand_over(struct client *client);
const struct ucred *client_who(const struct client *client);
/* Answers; the request is over.  The client may be gone afterwards. */
void client_json(struct client *client, json_t *document); /* takes DOCUMENT; NULL: no memory */
__attribute__((format(printf, 2, 3))) void client_error(struct client *client, const char *fmt,
							...);
/*
 * The client gets a stream from now on: it may be idle, and lose what does not fit,
 * but is not dropped for it.
 */
void client_streams(struct client *client);
/*
 * A frame of TEXT (JSON) for a client that gets a stream.  False: it is lost, more
 * than BACKLOG bytes would wait.  The client may be gone afterwards.
 */
bool client_offer(struct client *client, const char *text, size_t length, size_t backlog);
/* The request is over, but answers come: now and then, and it may be idle meanwhile. */
void client_watches(struct client *client);

#endif
