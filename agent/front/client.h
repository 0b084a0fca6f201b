/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What clients.c (the listener, and what arrives) and client.c (one connection) share. */
#ifndef IOCOM_CLIENT_H
#define IOCOM_CLIENT_H

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
	uint64_t active_ns; /* last byte moved */
	uint8_t header[FRAME_HEADER];
	size_t header_have;
	uint8_t *in;
	size_t in_room, in_have;
	uint32_t in_length;
	uint8_t *out;
	size_t out_room, out_start, out_end;
	bool busy;    /* a request waits for its answer */
	bool half;    /* it sends no more, but may still read */
	bool started; /* not the first frame any more */
	bool dead;
	bool streams; /* gets lines until it closes */
	bool watches; /* gets a line now and then, and may be idle meanwhile */
};

struct clients {
	struct clients_config config;
	struct clients_watch *watches;
	int fd;
	char path[SETTINGS_PATH_MAX + 16];
	struct loop_fd entry;
	struct loop_timer sweep, reap;
	struct client *first;
	size_t count;
	uint64_t crowded_ns, heavy_ns; /* when that was said last */
	struct request_limit rates;
};

/* --- client.c --- */

/* Waits for what it needs now. */
void client_events(struct client *c);
/* Sends what the connection takes. */
void client_flush(struct client *c);
/* Whether MORE bytes of memory may be the client's: its user's connections share a bound. */
bool client_may_hold(const struct client *c, size_t more);
/* Whether something is to be said again, once in a while; SAID_NS: when it was last. */
bool clients_is_time(const struct clients *clients, uint64_t *said_ns);
void client_send_frame(struct client *c, enum frame_type type, const char *text);
/* It holds, with its user's other connections, more than a user may: it is dropped. */
void client_crowded_out(struct client *c);
void client_free(struct client *c);

#endif
