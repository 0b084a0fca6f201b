/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What clients.c (listener and input) and client.c (one connection) share. */
#ifndef IOCOM_CLIENT_H
#define IOCOM_CLIENT_H

#include "agent/base/acceptor.h"
#include "agent/base/loop_share.h"
#include "agent/front/clients.h"
#include "user/clock.h"
#include "user/frame.h"
#include "agent/front/request_limit.h"

#define CLIENT_STUCK_NS	    (10 * CLOCK_NS_PER_S)
#define CLIENT_FIRST_BUFFER 4096

struct client {
	struct client *next;
	struct clients *clients;
	int fd;
	struct loop_fd entry;
	struct ucred who;
	uint64_t active_ns; /* when the last byte moved */
	uint8_t header[FRAME_HEADER];
	size_t header_have;
	uint8_t *in;
	size_t in_room, in_have;
	uint32_t in_length;
	uint8_t *out;
	size_t out_room, out_start, out_end;
	void *spec; /* of the job that the request submits; NULL: it came without */
	uint32_t spec_length;
	bool busy;    /* a request waits for its answer */
	bool half;    /* the client sends no more, but still reads */
	bool started; /* the first frame has come */
	bool dead;
	bool streams;	    /* gets lines until the client closes */
	bool parked;	    /* its user used up its part of the loop's time: nothing is read */
	bool watches;	    /* gets a line now and then, may be idle */
	clients_told *told; /* clients_remote: takes what would be sent; FD is -1 then */
	void *told_arg;
};

struct clients {
	struct clients_config config;
	struct clients_watch *watches;
	int fd;
	char path[SETTINGS_PATH_MAX + 16];
	struct acceptor acceptor;
	struct loop_timer sweep, reap, unpark;
	struct client *first;
	size_t count;
	uint64_t crowded_ns, heavy_ns, scarce_ns; /* when each was logged last */
	struct request_limit rates;
};

/* --- client.c --- */

/* Makes the loop wait for the events that C needs now. */
void client_events(struct client *c);
/* Sends as much output as the socket takes. */
void client_flush(struct client *c);
/* Returns true if the client may hold MORE bytes; all connections of its user share a bound. */
bool client_may_hold(const struct client *c, size_t more);
/* Returns true if a repeated message is due in the log again; SAID_NS: when it was logged last. */
bool clients_is_time(const struct clients *clients, uint64_t *said_ns);
void client_send_frame(struct client *c, enum frame_type type, const char *text);
/* Drops C: the connections of its user hold more memory than one user may. */
void client_crowded_out(struct client *c);
void client_free(struct client *c);

#endif
