/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Guests: connections that others keep open to a listening nng socket.  So many at most,
 * and so many of one address: nobody can use up this agent's descriptors or keep the
 * other nodes out.  (A guest that does not speak nng's protocol is dropped by nng after
 * 10 s.)
 */
#ifndef IOCOM_GUESTS_H
#define IOCOM_GUESTS_H

#include <nng/nng.h>
#include <stddef.h>
#include <stdint.h>

#define GUESTS_MAX    1024
#define GUESTS_OF_ONE 64

struct guests;

/* Before SOCKET listens.  0 or an error of nng. */
int guests_new(struct guests **guests, nng_socket socket, unsigned max, unsigned max_of_one);
/* Connections turned away since the last call.  Any thread. */
uint64_t guests_refused(struct guests *guests);
/* Those that are connected.  Any thread; NULL: none. */
size_t guests_count(struct guests *guests);
/* After the socket was closed.  NULL is fine. */
void guests_free(struct guests *guests);

#endif
