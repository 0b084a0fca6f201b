/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Connections of this machine's programs on RUN_DIR/iocom.sock.  Who it is, the
 * kernel says.  Everything is bounded: connections, requests, waiting output,
 * idle time.  A slow watcher of `top` gets longer intervals, not a backlog.
 */
#ifndef IOCOM_CLIENTS_H
#define IOCOM_CLIENTS_H

#include <jansson.h>
#include <sys/socket.h>

#include "agent/agent.h"

#define CLIENTS_MAX	    512
#define CLIENTS_OF_ONE	    256 /* of one user; root may have them all */
#define CLIENTS_OF_ROOT	    16	/* kept for root */
#define CLIENT_REQUEST_MAX  (1u << 20)
#define CLIENT_OUTPUT_MAX   (16u << 20)
#define CLIENT_BYTES_OF_ONE (64u << 20) /* of one user, both ways; root may have more */

/* 0; negative errno with the sentence (run directory not writable ...). */
int clients_new(struct clients **clients, struct agent *agent, struct iocom_err *err);
size_t clients_count(const struct clients *clients);
void clients_free(struct clients *clients);
/* A new reading, for those who watch. */
void clients_sampled(struct clients *clients, const struct monitor_sample *sample);

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
/* Starts a stream of readings. */
void client_watch(struct client *client, unsigned interval_ms);

#endif
