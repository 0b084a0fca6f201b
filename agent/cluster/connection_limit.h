/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Bounds the connections that other machines keep open to a listening nng socket, in all and per
 * address: nobody can use up this agent's descriptors or keep the other nodes out.  (nng drops a
 * connection that does not speak its protocol after 10 s.)
 */
#ifndef IOCOM_CONNECTION_LIMIT_H
#define IOCOM_CONNECTION_LIMIT_H

#include <nng/nng.h>
#include <stddef.h>
#include <stdint.h>

#define CONNECTION_LIMIT_MAX	1024
#define CONNECTION_LIMIT_OF_ONE 64

struct connection_limit;

/* Call it before SOCKET listens.  Returns 0 or an error of nng. */
int connection_limit_new(struct connection_limit **guests, nng_socket socket, unsigned max,
			 unsigned max_of_one);
/* Connections refused since the last call.  Callable from any thread. */
uint64_t connection_limit_refused(struct connection_limit *guests);
/* Connections open now.  Callable from any thread; NULL: 0. */
size_t connection_limit_count(struct connection_limit *guests);
/* Call it after the socket was closed.  NULL is fine. */
void connection_limit_free(struct connection_limit *guests);

#endif
