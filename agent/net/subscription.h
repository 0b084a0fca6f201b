/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A subscription to one publisher, as nng's SUB sockets speak with PUB sockets by TCP, but in the
 * loop's own thread: nng takes each message through five wake-ups of its threads, which at rest
 * cost more than all that is done with the message.
 *
 *   RESTS --a while--> CONNECTS --> GREETS --> READS
 *     ^-- no connection, no such protocol, a message too long, or subscription_cut
 *
 *   greeting, of both sides   0 'S' 'P' 0 | protocol u16 BE: PUB 0x20, SUB 0x21 | 0 0
 *   message                   length u64 BE | body
 *
 * It lasts for good: a lost connection is made again, after waits that double up to
 * SUBSCRIPTION_LONGEST_MS and begin anew after a greeting.
 */
#ifndef IOCOM_SUBSCRIPTION_H
#define IOCOM_SUBSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/base/loop.h"

#define SUBSCRIPTION_LEAST_MS	100
#define SUBSCRIPTION_LONGEST_MS 2000
#define SUBSCRIPTION_BEGIN_MS	10000

struct subscription;

struct subscription_config {
	struct loop *loop;
	/* Reads from here once both sides have greeted (gathering.h); may be `loop`. */
	struct loop *reads;
	size_t message_max; /* bytes of the longest message */
	/* Whether it may connect to TO now; else it tries again later. */
	bool (*may)(void *arg, const struct sockaddr *to);
	/* A message came; it may be changed, but stays here.  It may call subscription_cut. */
	void (*came)(void *arg, void *message, size_t length);
	void *arg;
};

/* It begins with subscription_dial.  Returns NULL without memory. */
struct subscription *subscription_new(const struct subscription_config *config);
/* Not from `may` or `came`.  NULL is fine. */
void subscription_free(struct subscription *s);
/*
 * Ends a connection, and from now on connects to ADDRESS, which is numeric, and PORT.  Returns 0;
 * -EINVAL: this is no such address; then it is as it was.
 */
int subscription_dial(struct subscription *s, const char *address, uint16_t port);
/* Ends the connection, and with it what came and was not looked at; it is made again. */
void subscription_cut(struct subscription *s);
/* Where it connects to; it has been dialled. */
const struct sockaddr *subscription_address(const struct subscription *s);
/* For `came`: how long the kernel has had the message; 0: that is not known. */
uint64_t subscription_waited_ns(const struct subscription *s);
/* It has no connection yet. */
bool subscription_connects(const struct subscription *s);
/* It is connected, and both sides have greeted. */
bool subscription_reads(const struct subscription *s);

#endif
