/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A stand-in for the network part in this process: the other end of the gate (agent/gate/gate.h) on
 * the same loop.  It sends what a test says, whatever that is, and keeps root's answers.
 */
#ifndef IOCOM_TESTS_NET_FAKE_H
#define IOCOM_TESTS_NET_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/base.h"
#include "agent/gate/net_part.h"

#define NET_FAKE_ANSWERS 4096

struct net_fake_answer {
	enum gate_type type; /* GATE_STREAM_OVER, GATE_RENEWED */
	uint64_t id;
	bool good; /* taken, answered */
	size_t length;
	char text[GATE_SENTENCE_MAX + 1]; /* or the answer's bytes */
};

struct net_fake {
	struct loop *loop;
	struct gate *gate; /* NULL: it is down */
	struct net_part *part;
	unsigned starts, broken;
	uint64_t ids;
	size_t count;
	struct net_fake_answer answers[NET_FAKE_ANSWERS];
};

/* Starts a part with the stand-in behind it; both on BASE's loop.  FAKE is zeroed. */
void net_fake_begin(struct net_fake *fake, const struct base *base);
void net_fake_end(struct net_fake *fake);
/* It ends by itself; the part starts another when the loop runs. */
void net_fake_die(struct net_fake *fake);

/* Offers FD, which stays the caller's.  ID 0: the next.  Returns the id. */
uint64_t net_fake_offer(struct net_fake *fake, uint64_t id, int fd,
			const struct stream_hello *hello, const void *first, size_t n);
uint64_t net_fake_renew(struct net_fake *fake, const void *payload, size_t n);
/* Returns how often root has answered ID, and the last such answer, if any, in ANSWER. */
size_t net_fake_answered(const struct net_fake *fake, uint64_t id,
			 const struct net_fake_answer **answer);

#endif
