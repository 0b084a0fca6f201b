/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What this node's links to other nodes do, as TCP itself knows it: from time to time the kernel
 * is asked for all established connections to their addresses (sock_diag(7); Linux 4.9 or later),
 * of jobs, of their data and of the agents.
 *
 *   round trip  = min over the connections of tcpi_min_rtt
 *   carried     = bytes acknowledged and received since the last look, over that time; the larger
 *                 direction, all connections together
 *   at least    = the most that was ever carried
 *   tcp         = the most recent tcpi_delivery_rate of a connection that carried LINKS_BULK_BYTES
 *                 since the last look and was not held up by its program
 *
 * `carried` and `at least` are never above what the link carried, so a link that nobody used may be
 * far better.  `tcp` is an estimate.  A connection that begins or ends between two looks does not
 * count with what it carried there.
 */
#ifndef IOCOM_LINKS_H
#define IOCOM_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"
#include "iocom/gang.h"
#include "iocom/vector.h"

#define LINKS_PEERS_MAX	  1024 /* addresses */
#define LINKS_SOCKETS_MAX 4096 /* connections to them; more do not count */
#define LINKS_BULK_BYTES  65536

struct link_rate {
	char address[IOCOM_ADDRESS_MAX]; /* of the other node */
	uint32_t connections;		 /* at the last look */
	double round_trip_ms;		 /* < 0: not known */
	double carried_mb_per_s, at_least_mb_per_s;
	double tcp_mb_per_s;			     /* 0: no estimate yet */
	uint64_t round_trip_ns, at_least_ns, tcp_ns; /* when each was seen; 0: never */
};

/* A connection as the kernel tells it. */
struct link_socket {
	char address[IOCOM_ADDRESS_MAX]; /* of the other end; IPv4 as such */
	uint64_t cookie;		 /* one for each connection */
	uint64_t acked, received;	 /* bytes */
	uint64_t delivery_bytes_per_s;
	uint32_t min_rtt_us; /* ~0: not known */
	bool app_limited;
};

struct links;

struct links *links_new(void);
void links_free(struct links *links);
/* Node ADDRESS is of interest ("" is not).  Returns 0; -ENOSPC (LINKS_PEERS_MAX); -ENOMEM. */
int links_watch(struct links *links, const char *address);
/*
 * Asks the kernel; some microseconds a connection.  NOW_NS: CLOCK_BOOTTIME.  Returns 0, or negative
 * errno with the reason in ERR.
 */
int links_look(struct links *links, uint64_t now_ns, struct iocom_err *err);
/* Returns what is known of the link to ADDRESS, or NULL. */
const struct link_rate *links_find(const struct links *links, const char *address);
/* The counts are 0 for LINKS NULL. */
size_t links_count(const struct links *links);	 /* addresses watched */
size_t links_sockets(const struct links *links); /* connections known */
/* Returns the number of connections that did not count for want of room, since the beginning. */
uint64_t links_dropped(const struct links *links);

/*
 * Says what decisions on parallel jobs may count on of the way to the node that V is of (MODEL
 * 3.18): the port's configured rate, else TCP's estimate, never below what was carried, else 0, not
 * known; what it carries now; the round trip, 0 if not known.  Its slots are left as they are.
 * LINKS may be NULL.
 */
void links_port(const struct links *links, const struct iocom_vector *v, struct rules_port *port);

/* The parts of links_look: a look begins, has connections, and ends. */
void links_begin(struct links *links, uint64_t now_ns);
void links_note(struct links *links, const struct link_socket *s);
void links_end(struct links *links);
/*
 * Reads one message of an answer, LENGTH bytes of an inet_diag_msg with its attributes.  Returns 0,
 * or -EINVAL (too short, or without what is needed).
 */
int links_parse(const void *message, size_t length, struct link_socket *out);

#endif
