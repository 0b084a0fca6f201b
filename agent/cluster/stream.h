/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Job streams that arrive from other machines, TCP on base port + 2.  The agent reads exactly one
 * frame, FRAME_START, bounded in size and time, and not a byte more: the shim reads the rest.  A
 * refused stream gets FRAME_ERROR with the reason.
 */
#ifndef IOCOM_STREAM_H
#define IOCOM_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "agent/base/base.h"
#include "user/renewal.h"

struct credential;
struct seal;
struct tunnels;

#define STREAMS_MAX	  256
#define STREAMS_BYTES_MAX (64u << 20) /* received bytes of incomplete start messages */
#define STREAM_START_NS	  (5ull * 1000000000ull)
#define STREAM_LINGER_NS  (2ull * 1000000000ull)

struct streams;

/* What a frame of a client asks for, whose credential says who it is. */
struct stream_port {
	/*
	 * Checks what can be checked without munged.  Returns 0 and the CREDENTIAL's text,
	 * malloc'ed; negative errno with the reason in ERR.
	 */
	int (*check)(void *arg, const void *payload, uint32_t length, char **credential,
		     struct iocom_err *err);
	/* Returns 0: FD is taken; negative errno with the reason in ERR. */
	int (*take)(void *arg, int fd, const void *payload, uint32_t length,
		    const struct credential *who, struct iocom_err *err);
};

/* Handlers of a stream, by its first frame; PAYLOAD of LENGTH bytes is borrowed. */
struct stream_ports {
	void *arg;
	struct stream_port start, attach; /* FRAME_START, FRAME_ATTACH */
	/*
	 * FRAME_RENEW; ANSWER is FRAME_RENEWED's payload.  Returns 0; negative errno with the
	 * reason in ERR.
	 */
	int (*renew)(void *arg, const void *payload, uint32_t length,
		     uint8_t answer[RENEWAL_ANSWER], struct iocom_err *err);
};

/*
 * Listens at the agent's address.  SEAL opens credentials.  TUNNELS puts a relay before each
 * stream; NULL: no TLS.  Both are borrowed.  Returns 0; -EADDRINUSE and others with the reason in
 * ERR.
 */
int streams_new(struct streams **streams, const struct base *base, struct seal *seal,
		const struct tunnels *tunnels, const struct stream_ports *ports,
		struct iocom_err *err);
size_t streams_count(const struct streams *streams); /* NULL: 0 */
size_t
streams_bytes(const struct streams *streams); /* bytes of incomplete start messages; NULL: 0 */
void streams_free(struct streams *streams);

#endif
