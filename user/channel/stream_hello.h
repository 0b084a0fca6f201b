/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The handshake of a job stream: two frames in clear, each with one message of the Noise handshake
 * (noise.h), whose psk is a key of the attempt (secret.h).
 *
 *   client   FRAME_HELLO    head length u16 BE | head | message 1
 *            head: MessagePack map { "min", "max", "kind", "job", "node", "ticket" }
 *   target   FRAME_WELCOME  message 2, whose payload is the map { "v", "node", "boot_id" }
 *
 * The handshake's prologue is STREAM_PROLOGUE with its NUL, then the head as it was sent: so the
 * target answers exactly the question that the client asked.  The head is no secret: it names the
 * job and the node, and which key is meant.  After the two frames both directions are records
 * (records.h), and nothing in clear counts any more.
 */
#ifndef IOCOM_STREAM_HELLO_H
#define IOCOM_STREAM_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "iocom/vector.h"
#include "user/channel/noise.h"
#include "user/channel/records.h"
#include "user/channel/secret.h"
#include "user/spec.h"

#define STREAM_PROLOGUE	   "iocom stream"
#define STREAM_HELLO_MAX   1024 /* payloads */
#define STREAM_WELCOME_MAX 512

enum stream_kind {
	STREAM_KIND_START,  /* FRAME_START follows */
	STREAM_KIND_ATTACH, /* FRAME_ATTACH follows */
};

struct stream_hello {
	uint64_t least, most; /* versions that the client speaks (version.h) */
	enum stream_kind kind;
	char job[SPEC_JOB_MAX];
	char node[IOCOM_NAME_MAX];	/* the target */
	char ticket[SECRET_TICKET_MAX]; /* "": the key of the job's own client */
};

struct stream_welcome {
	uint64_t version; /* the chosen one */
	char node[IOCOM_NAME_MAX];
	uint64_t boot_id;
};

/* A stream after the handshake: what the client asked for, and the keys. */
struct stream_secure {
	struct stream_hello hello;
	struct records records;
};

/* Fills HELLO with the versions that this program speaks; the names are copied. */
void stream_hello_fill(struct stream_hello *hello, enum stream_kind kind, const char *job,
		       const char *node, const char *ticket);

/* --- the client ----------------------------------------------------------------- */

/*
 * Begins the handshake NOISE with KEY, and with PAIR if that is ready (NULL is fine), and writes
 * FRAME_HELLO's payload to OUT.  Returns 0, or
 * -EMSGSIZE.
 */
int stream_hello_pack(struct noise *noise, const struct stream_hello *hello,
		      const uint8_t key[SECRET_KEY], struct noise_pair *pair,
		      uint8_t out[STREAM_HELLO_MAX], size_t *length);
/*
 * Opens FRAME_WELCOME's payload.  Returns 0: it is from the node that HELLO names, which knows the
 * key, and RECORDS are the keys of the stream; -EBADMSG: it is not.  NOISE is erased in any case.
 */
int stream_welcome_unpack(struct noise *noise, const struct stream_hello *hello,
			  const void *payload, size_t length, struct stream_welcome *welcome,
			  struct records *records);

/* --- the target ------------------------------------------------------------------ */

/*
 * Decodes FRAME_HELLO's payload from anybody.  Returns 0 or -EBADMSG; that its sender knows a key
 * is for stream_hello_open to say.
 */
int stream_hello_unpack(struct stream_hello *hello, const void *payload, size_t length);
/*
 * Begins the handshake NOISE with KEY and the same payload, which stream_hello_unpack has
 * accepted.  It costs no more than a few hashes.  Returns 0, or -EBADMSG: the sender does not know
 * KEY.
 */
int stream_hello_open(struct noise *noise, const void *payload, size_t length,
		      const uint8_t key[SECRET_KEY]);
/*
 * Writes FRAME_WELCOME's payload to OUT and fills RECORDS with the keys of the stream.  Returns 0,
 * or -EBADMSG: the client's public key is none.  NOISE is erased in any case.
 */
int stream_welcome_pack(struct noise *noise, const struct stream_welcome *welcome,
			uint8_t out[STREAM_WELCOME_MAX], size_t *length, struct records *records);

#endif
