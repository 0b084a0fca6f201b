/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Connections of this machine's programs on RUN_DIR/iocom.sock.  The kernel tells who the peer is.
 * Connections, requests, pending output and idle time are all bounded.
 */
#ifndef IOCOM_CLIENTS_H
#define IOCOM_CLIENTS_H

#include <jansson.h>
#include <msgpack.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "agent/base/base.h"

#define CLIENTS_MAX	    512
#define CLIENTS_OF_ONE	    240 /* per user; root may have them all */
#define CLIENTS_OF_ROOT	    16	/* reserved for root */
#define CLIENT_REQUEST_MAX  (1u << 20)
#define CLIENT_OUTPUT_MAX   (16u << 20)
#define CLIENT_BYTES_OF_ONE (64u << 20) /* per user, both directions; root may have more */

struct clients;
struct client;
struct guest_placed;

struct clients_config {
	const struct base *base;
	/* Gets a request (a map); the handler answers CLIENT now or later. */
	void (*request)(void *arg, struct client *client, const msgpack_object *request);
	void *request_arg;
	/* Get FRAME_START and FRAME_ATTACH of a job of this machine.  Returns 0: FD is taken. */
	int (*start)(void *arg, int fd, const void *payload, uint32_t length,
		     const struct ucred *local, struct iocom_err *err);
	/* The same for a job whose spec came with its submission (client_begin). */
	int (*begin)(void *arg, int fd, const struct guest_placed *placed,
		     const struct ucred *local, struct iocom_err *err);
	int (*attach)(void *arg, int fd, const void *payload, uint32_t length,
		      const struct ucred *local, struct iocom_err *err);
	void *stream_arg;
};

/* Learns of each client that leaves, to free what it keeps for that client. */
struct clients_watch {
	void (*closed)(void *arg, struct client *client);
	void (*half)(void *arg,
		     struct client *client); /* CLIENT sends no more but still reads; or NULL */
	void *arg;
	struct clients_watch *next;
};

/* Returns 0; negative errno with the reason in ERR (run directory not writable, for example). */
int clients_new(struct clients **clients, const struct clients_config *config,
		struct iocom_err *err);
/*
 * Serves WHO on the connection FD, which is taken.  NULL: no memory or no descriptor; FD stays the
 * caller's.
 */
struct client *clients_adopt(struct clients *clients, int fd, const struct ucred *who);
/*
 * A client that is no connection: WHO asked at another node, and proved it.  TOLD gets each answer
 * (a JSON document, or OK false and a sentence), perhaps while the request is being handled; it may
 * drop the client.  NULL: no memory.
 */
typedef void clients_told(void *arg, bool ok, const char *text, size_t length);
struct client *clients_remote(struct clients *clients, uid_t uid, gid_t gid, clients_told *told,
			      void *arg);
bool client_is_remote(const struct client *client);
size_t clients_count(const struct clients *clients);
void clients_free(struct clients *clients);
/* WATCH is the caller's and stays until clients_free. */
void clients_watch(struct clients *clients, struct clients_watch *watch);

/* Closes CLIENT; it is freed in the next round of the loop. */
void client_drop(struct client *client);
bool client_is_gone(const struct client *client);
/* Returns true if CLIENT has unread output. */
bool client_has_output(const struct client *client);
/*
 * client_may_ask: true if the user may ask now; client_charge charges the cost of an answer.  See
 * request_limit.h.
 */
bool client_may_ask(struct client *client);
void client_charge(struct client *client, uint64_t cost_ns);
/*
 * What is done for the user of CLIENT between these two is charged to its part of the loop's time;
 * client_leave gets what client_enter returned, and the client may be gone by then: loop_share.h.
 */
uid_t client_enter(const struct client *client);
void client_leave(const struct base *base, uid_t before);
/* Logs that the client asked to do WHAT to another user's JOB. */
void client_log_foreign(const struct client *client, const char *what, const char *job);

const struct ucred *client_who(const struct client *client);
/* Answer and end the request.  The client may be gone afterwards. */
void client_json(struct client *client, json_t *document); /* takes DOCUMENT; NULL: out of memory */
__attribute__((format(printf, 2, 3))) void client_error(struct client *client, const char *fmt,
							...);
/*
 * client_keep_spec copies the spec of a job until its place is known; LENGTH 0: it has none.
 * Returns 0 or -ENOMEM.
 * client_begin starts the job, which ANSWER (taken) places at this node: CLIENT's connection
 * becomes its stream, which begins with the answer.  client_has_spec: there is one to start with.
 */
int client_keep_spec(struct client *client, const void *spec, uint32_t length);
bool client_has_spec(const struct client *client);
void client_begin(struct client *client, json_t *answer);
/*
 * The client gets a stream from now on: it may be idle, and what does not fit is lost, but the
 * client is not dropped for it.
 */
void client_streams(struct client *client);
/*
 * Sends a frame of TEXT (JSON) to a streaming client.  Returns false if the frame is lost, because
 * more than BACKLOG bytes would be pending.  The client may be gone afterwards.
 */
bool client_offer(struct client *client, const char *text, size_t length, size_t backlog);
/* Ends the request, but further lines follow now and then, and the client may be idle. */
void client_watches(struct client *client);

#endif
