/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Messages between an agent and a shim: frames of frame.h with type FRAME_REQUEST, each with one
 * MessagePack map.
 *
 * A shim outlives its agent, and the next agent may have another version. So this form must not
 * change with the clients' protocol: senders put LEASH_FRAME into the header, whatever
 * FRAME_VERSION is, and receivers accept any number there. The meaning of the maps has its own
 * version, the key "v" (absent: 1). New keys need no new version: a peer ignores those it does
 * not know.
 */
#ifndef IOCOM_LEASH_WIRE_H
#define IOCOM_LEASH_WIRE_H

#include <msgpack.h>
#include <stddef.h>
#include <stdint.h>

#define LEASH_FRAME	  1
#define LEASH_VERSION	  1
#define LEASH_MESSAGE_MAX 4096 /* with its header */

/* Sends the whole message or nothing; FLAGS are those of send. Returns 0, -EMSGSIZE, or negative
 * errno. */
int leash_send(int fd, const msgpack_sbuffer *message, int flags);
/*
 * Takes one whole message out of the socket into BUFFER without waiting. The caller destroys
 * MAP. Returns 0; -EAGAIN: none yet; -EPIPE: closed; -EBADMSG: not our protocol.
 */
int leash_take(int fd, uint8_t buffer[LEASH_MESSAGE_MAX], msgpack_unpacked *map);
/* Does the same, but waits for each piece as long as the socket's SO_RCVTIMEO. */
int leash_await(int fd, uint8_t buffer[LEASH_MESSAGE_MAX], msgpack_unpacked *map);
/* Returns the version that the sender speaks. */
uint64_t leash_version(const msgpack_object *map);

#endif
