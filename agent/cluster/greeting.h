/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The handshake that begins a session between two agents: its messages as pure functions.
 * control_greet.c and control_answer.c send them and ask munged; sessions.h keeps what comes of it.
 *
 *   HELLO    kind u8 | length u16 BE | head | Noise message 1
 *            head: map { "min", "max", "cred" }; cred is a MUNGE credential of uid 0 for uid 0
 *            with { "type": "hello", "cluster", "from", "to", "boot_id", "psk" }; "to" is "" if
 *            the asker knows the address only.
 *   WELCOME  kind u8 | Noise message 2, whose payload is a map { "v", "cred" }; cred has
 *            { "type": "welcome", "cluster", "from", "to", "boot_id", "hash" }; hash is the
 *            handshake hash after message 1.
 *   REFUSED  kind u8 | enum peer_cause u8 | a sentence in clear; they prove nothing
 *
 * The secret of the pattern (NNpsk0) is "psk": 32 random bytes that only root of a machine with the
 * cluster's MUNGE key can make or read.  So the first message already proves its sender, and the
 * second the answerer.  The prologue is "iocom session" and the head, so both sides agree on
 * versions and on the first credential; the second credential names the whole first message.
 */
#ifndef IOCOM_GREETING_H
#define IOCOM_GREETING_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

#include "iocom/err.h"
#include "iocom/vector.h"
#include "agent/base/peer_cause.h"
#include "agent/gate/greeting_head.h"
#include "user/channel/noise.h"

#define GREETING_CLUSTER_MAX 64

/* This node, as it names itself. */
struct greeting_self {
	char cluster[GREETING_CLUSTER_MAX], name[IOCOM_NAME_MAX];
	uint64_t boot_id;
};

/* One handshake, of either side. */
struct greeting {
	struct noise noise;
	uint8_t psk[NOISE_KEY];
	uint8_t hash[NOISE_HASH];  /* after message 1 */
	char node[IOCOM_NAME_MAX]; /* the peer; "": the asker does not know it yet */
	uint64_t boot_id;	   /* the peer's */
	unsigned version;
	enum peer_cause cause; /* what kind of refusal the last error was */
};

/* --- the asker ------------------------------------------------------------------ */

/*
 * Begins; NODE "" asks whoever is at the address.  Packs into CREDENTIAL, which the caller
 * initialises, what munged must seal.
 */
void greeting_begin(struct greeting *g, const struct greeting_self *self, const char *node,
		    msgpack_sbuffer *credential);
/* Adds the HELLO to OUT.  Returns 0, or -EMSGSIZE: the credential is too long. */
int greeting_hello(struct greeting *g, const char *credential, msgpack_sbuffer *out);
/*
 * Reads the WELCOME.  Returns 0 and the CREDENTIAL in it, malloc'ed, for munged to open; -EPROTO:
 * the answerer refused, ERR has its sentence; -EBADMSG; -ENOMEM.
 */
int greeting_welcomed(struct greeting *g, const void *message, size_t length, char **credential,
		      struct iocom_err *err);
/*
 * Judges what munged found in that credential.  Returns 0, and G names the peer; -EACCES with the
 * reason in ERR.
 */
int greeting_trust(struct greeting *g, const struct greeting_self *self, const void *data,
		   size_t length, struct iocom_err *err);

/* --- the answerer --------------------------------------------------------------- */

/*
 * Judges the HELLO, whose head was read (greeting_head.h) and led to VERSION, together with what
 * munged found in its credential, DATA of DATA_LENGTH bytes. Returns 0: G names the peer, and
 * CREDENTIAL, which the caller initialises, gets what munged must seal; -EACCES: for another node
 * or cluster, this node's own name, or not by who made the credential; -EBADMSG.
 */
int greeting_accept(struct greeting *g, const struct greeting_self *self, unsigned version,
		    const void *message, size_t length, const void *data, size_t data_length,
		    msgpack_sbuffer *credential, struct iocom_err *err);
/* Adds the WELCOME to OUT.  Returns 0; -EBADMSG, -EMSGSIZE. */
int greeting_welcome(struct greeting *g, const char *credential, msgpack_sbuffer *out);
/* Adds a REFUSED with CAUSE and WHY to OUT. */
void greeting_refuse(enum peer_cause cause, const char *why, msgpack_sbuffer *out);
/* Who made a credential whose clock differs: fills NODE; "" if DATA does not say. */
void greeting_sender(const void *data, size_t length, char node[IOCOM_NAME_MAX]);

/* Erases G; the keys of a complete handshake are taken with noise_split before. */
void greeting_end(struct greeting *g);

#endif
