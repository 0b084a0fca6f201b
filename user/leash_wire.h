/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How messages travel between an agent and a shim: the frames of frame.h, type
 * FRAME_REQUEST, a MessagePack map each.
 *
 * A shim outlives agents, also those of other versions, so this form does not
 * change with the clients' protocol: what is sent says LEASH_FRAME in the header,
 * whatever FRAME_VERSION is, and what comes is taken with any number there.  What
 * the words mean has a version of its own, the key "v" of a message (absent: 1).
 * Keys may be added without a new one; a peer that does not know them goes on.
 */
#ifndef IOCOM_LEASH_WIRE_H
#define IOCOM_LEASH_WIRE_H

#include <msgpack.h>
#include <stddef.h>
#include <stdint.h>

#define LEASH_FRAME	  1
#define LEASH_VERSION	  1
#define LEASH_MESSAGE_MAX 4096 /* with its header */

/* A whole message or nothing; FLAGS as send's.  0, -EMSGSIZE, or negative errno. */
int leash_send(int fd, const msgpack_sbuffer *message, int flags);
/*
 * Takes one whole message out of the socket into BUFFER without waiting; MAP is the
 * caller's to destroy.  0; -EAGAIN none yet; -EPIPE closed; -EBADMSG not ours.
 */
int leash_take(int fd, uint8_t buffer[LEASH_MESSAGE_MAX], msgpack_unpacked *map);
/* The same; waits as long as the socket's SO_RCVTIMEO says for each piece. */
int leash_await(int fd, uint8_t buffer[LEASH_MESSAGE_MAX], msgpack_unpacked *map);
/* The version its sender speaks. */
uint64_t leash_version(const msgpack_object *map);

#endif
