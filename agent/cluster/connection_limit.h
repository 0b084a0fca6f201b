/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Guests: connections that others keep open to a listening nng socket.  So many at most,
 * and so many of one address: nobody can use up this agent's descriptors or keep the
 * other nodes out.  (A guest that does not speak nng's protocol is dropped by nng after
 * 10 s.)
 */
#ifndef IOCOM_CONNECTION_LIMIT_H
#define IOCOM_CONNECTION_LIMIT_H

#include <nng/nng.h>
#include <stddef.h>
#include <stdint.h>

#define CONNECTION_LIMIT_MAX	1024
#define CONNECTION_LIMIT_OF_ONE 64

struct connection_limit;

/* Before SOCKET listens.  0 or an error of nng. */
int connection_limit_new(struct connection_limit **guests, nng_socket socket, unsigned max,
			 unsigned max_of_one);
/* Connections turned away since the last call.  Any thread. */
uint64_t connection_limit_refused(struct connection_limit *guests);
/* Those that are connected.  Any thread; NULL: none. */
size_t connection_limit_count(struct connection_limit *guests);
/* After the socket was closed.  NULL is fine. */
void connection_limit_free(struct connection_limit *guests);

#endif
