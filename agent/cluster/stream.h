/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Job streams that arrive from other machines, TCP on base port + 2.  Exactly
 * one frame is read here, FRAME_START, bounded in size and time, and not a byte
 * more: the rest is the shim's.  Who fails gets FRAME_ERROR with the sentence.
 */
#ifndef IOCOM_STREAM_H
#define IOCOM_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "agent/base/base.h"
#include "user/renewal.h"

struct tunnels;
struct ucred;

#define STREAMS_MAX	  256
#define STREAMS_BYTES_MAX (64u << 20) /* of what has come of their start messages */
#define STREAM_START_NS	  (5ull * 1000000000ull)
#define STREAM_LINGER_NS  (2ull * 1000000000ull)

struct streams;

/* What becomes of a stream, by its first frame; PAYLOAD of LENGTH bytes is borrowed. */
struct stream_ports {
	void *arg;
	/* FRAME_START, FRAME_ATTACH.  0: FD is taken; negative errno with the sentence. */
	int (*start)(void *arg, int fd, const void *payload, uint32_t length,
		     const struct ucred *local, struct iocom_err *err);
	int (*attach)(void *arg, int fd, const void *payload, uint32_t length,
		      const struct ucred *local, struct iocom_err *err);
	/* FRAME_RENEW; ANSWER is FRAME_RENEWED's payload.  0; negative errno with the sentence. */
	int (*renew)(void *arg, const void *payload, uint32_t length,
		     uint8_t answer[RENEWAL_ANSWER], struct iocom_err *err);
};

/*
 * Listens at the agent's address; TUNNELS: what puts a relay before each stream, NULL without TLS.
 * 0; -EADDRINUSE ... with the sentence.
 */
int streams_new(struct streams **streams, const struct base *base, const struct tunnels *tunnels,
		const struct stream_ports *ports, struct iocom_err *err);
size_t streams_count(const struct streams *streams); /* NULL: none */
size_t streams_bytes(const struct streams *streams); /* likewise; of what has come of starts */
void streams_free(struct streams *streams);

#endif
