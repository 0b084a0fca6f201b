/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A network part that an attacker has: what it may send to root that the real one never would
 * (tests/tools/captured_net.c plays it).  Packets go out as bytes, past all checks of gate.c.
 */
#ifndef IOCOM_CAPTURED_H
#define IOCOM_CAPTURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/gate/gate_message.h"

/* Numbers that root's answers bring back, and no real network part has given. */
#define CAPTURED_MARK	 0xa77aull
#define CAPTURED_ID(k)	 (CAPTURED_MARK << 48 | (uint64_t)(k))
#define CAPTURED_IS(id)	 ((id) >> 48 == CAPTURED_MARK)
#define CAPTURED_FDS_MAX 32
#define CAPTURED_NODE	 "ghost"
#define CAPTURED_ADDRESS "127.0.0.66" /* where the attacker may listen */
#define CAPTURED_PORT	 7999
#define CAPTURED_WAIT_MS 20000 /* for root to take one packet */

struct captured_packet {
	uint8_t bytes[GATE_PACKET_MAX + 64];
	size_t length;
	int fds[CAPTURED_FDS_MAX];
	size_t nfds;
};

/* Writes MESSAGE with TAIL of N bytes, as gate.c would, but without a look at it. */
void captured_pack(struct captured_packet *p, const struct gate_message *message, const void *tail,
		   size_t n);
/* Sends P, and waits until the socket takes it.  Returns 0 or negative errno. */
int captured_send(int gate, const struct captured_packet *p);

/*
 * Makes number K of those packets that are no message, whose descriptors are FD.  Returns what it
 * is, or NULL: there is none so high.
 */
const char *captured_bad(struct captured_packet *p, unsigned k, int fd);

/* A vector such as a real node's, of node NAME. */
struct iocom_vector captured_vector(const char *name, uint64_t sequence);
/*
 * Makes number I of a flood of messages of a KIND ("vectors", "keys", "random" ...), all of which
 * are messages.  FD is for those that bring one.  Returns 0 or -EINVAL: there is no such kind.
 */
int captured_flood(struct captured_packet *p, const char *kind, uint64_t i, int fd, unsigned *seed);

/*
 * Begins a session from node FROM to node TO with a credential that this process's user makes at
 * MUNGE.  Returns 0 or -EACCES: munged made none.
 */
int captured_hello(struct captured_packet *p, uint64_t ticket, const char *from, const char *to,
		   const char *munge);
/* Begins a stream of JOB at NODE with a key that is nobody's. */
void captured_stream(struct captured_packet *p, uint64_t id, const char *job, const char *node,
		     int fd);
/*
 * Opens a descriptor of a KIND that is no job stream ("unix", "listener" ...), number K of them;
 * SOCKET is a unix socket that somebody listens at, PATH a file.  Returns it and its name, or -1:
 * there are no more.
 */
int captured_fd(unsigned k, const char *socket, const char *path, const char **what);

#endif
