/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Job streams that arrive from other machines, TCP on base port + 2.  The network part takes the
 * connections and reads what comes in clear (agent/net/net_streams.h); it offers here what begins a
 * handshake, and renewals of leases, which are signed (user/renewal.h).
 *
 * Here the handshake is answered (user/channel/stream_hello.h), which shows that the client knows a
 * key of the job, and proves to it that this is the job's node.  Then exactly one frame is read,
 * FRAME_START or FRAME_ATTACH, from whole records, bounded in size and time, and not a byte more:
 * the shim gets the stream and its keys, and reads the rest.  A refused stream gets FRAME_ERROR
 * with the reason: from the network part, in clear, before the handshake is over, and sealed
 * afterwards.
 *
 * The network part is believed nothing.  What it says of a handshake only finds the key: the key
 * proves the bytes, and then those count.  The descriptor may be anything, and stay shared: it must
 * be a connection over TCP, and no call on it may wait, whatever its flags are.
 */
#ifndef IOCOM_STREAM_H
#define IOCOM_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "agent/base/base.h"
#include "user/channel/stream_hello.h"
#include "user/renewal.h"

struct credential;
struct net_part;
struct seal;

#define STREAMS_MAX	  256
#define STREAMS_BYTES_MAX (64u << 20)		 /* received bytes of incomplete start messages */
#define STREAM_START_NS	  (5ull * 1000000000ull) /* for the start message, after the handshake */
#define STREAM_LINGER_NS  (2ull * 1000000000ull) /* to read a refusal */

struct streams;

/* What a frame of a client asks for, whose credential says who it is. */
struct stream_port {
	/*
	 * Checks what can be checked without munged; HELLO is what the client's handshake named.
	 * Returns 0 and the CREDENTIAL's text, malloc'ed, or NULL: the key is enough; negative
	 * errno with the reason in ERR.
	 */
	int (*check)(void *arg, const struct stream_hello *hello, const void *payload,
		     uint32_t length, char **credential, struct iocom_err *err);
	/* WHO is NULL if the key was enough.  Returns 0: FD and the keys in SECURE are taken;
	 * negative errno with the reason in ERR. */
	int (*take)(void *arg, int fd, const struct stream_secure *secure, const void *payload,
		    uint32_t length, const struct credential *who, struct iocom_err *err);
};

/* Handlers of a stream, by its first frame; PAYLOAD of LENGTH bytes is borrowed. */
struct stream_ports {
	void *arg;
	/* Finds the key that HELLO names.  Returns 0, or negative errno: there is none. */
	int (*key)(void *arg, const struct stream_hello *hello, uint8_t key[SECRET_KEY]);
	struct stream_port start, attach; /* FRAME_START, FRAME_ATTACH */
	/*
	 * FRAME_RENEW; ANSWER is FRAME_RENEWED's payload.  Returns 0; negative errno with the
	 * reason in ERR.
	 */
	int (*renew)(void *arg, const void *payload, uint32_t length,
		     uint8_t answer[RENEWAL_ANSWER], struct iocom_err *err);
};

/*
 * Opens the socket for the network part: listens at ADDRESS (numeric or a name; IPv6 in brackets)
 * and PORT.  Returns 0: LISTENER, which does not block, is the caller's; -EADDRINUSE and others
 * with the reason in ERR.
 */
int streams_listen(int *listener, const char *address, uint16_t port, struct iocom_err *err);
/*
 * Serves what NET offers.  BASE, NET and SEAL, which opens credentials, are borrowed: free the
 * streams before them.  Returns 0 or -ENOMEM.
 */
int streams_new(struct streams **streams, const struct base *base, struct net_part *net,
		struct seal *seal, const struct stream_ports *ports, struct iocom_err *err);
size_t streams_count(const struct streams *streams); /* NULL: 0 */
size_t
streams_bytes(const struct streams *streams); /* bytes of incomplete start messages; NULL: 0 */
void streams_free(struct streams *streams);

#endif
