/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Connections to the port of job streams (agent/cluster/stream.h), up to their first message, which
 * comes in clear: a handshake, which root goes on with, a shim's renewal of a lease, which root
 * answers, or the empty request of a peer that only looks whether the port is there.  What it may
 * be, and how long, is bounded before a byte of it is looked at.
 *
 * A stream whose handshake root has is not read here; root says that it is taken, or why not, and
 * then its client is told here.
 */
#ifndef IOCOM_NET_STREAMS_H
#define IOCOM_NET_STREAMS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/base/base.h"
#include "agent/gate/gate.h"
#include "agent/gate/net_limits.h"

#define NET_STREAM_START_NS    (5ull * 1000000000ull) /* for the first message */
#define NET_STREAM_LINGER_NS   (2ull * 1000000000ull) /* to read a refusal */
#define NET_STREAM_DISCARD_MAX (1u << 20)

struct net_streams;

/*
 * Takes connections from LISTENER, which is taken.  BASE and GATE are borrowed.  Returns 0;
 * negative errno with the reason in ERR.
 */
int net_streams_new(struct net_streams **streams, const struct base *base, struct gate *gate,
		    int listener, struct iocom_err *err);
void net_streams_free(struct net_streams *streams); /* NULL is fine */

/* Messages of root; SENTENCE and ANSWER are borrowed. */
void net_streams_over(struct net_streams *streams, const struct gate_stream_over *over,
		      const void *sentence, size_t length);
void net_streams_renewed(struct net_streams *streams, const struct gate_renewed *renewed,
			 const void *answer, size_t length);

size_t net_streams_count(const struct net_streams *streams); /* NULL: 0 */

#endif
