/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Ends one TCP connection of an nng socket.  nng_pipe_close is not for that: in nng 1.5.2, closing
 * a pipe that has read half of a message stops the thread that frees pipes for ever, and the
 * descriptors of all later connections stay open.  Shutting the connection down lets nng end it as
 * if the peer had closed it.
 */
#ifndef IOCOM_CONNECTION_CUT_H
#define IOCOM_CONNECTION_CUT_H

#include <nng/nng.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "iocom/vector.h"

/* Where a connection begins and ends, which names it. */
struct connection_ends {
	struct sockaddr_storage local, remote; /* AF_INET or AF_INET6 */
};

/* Returns 0, or an error of nng: PIPE is gone, or is not TCP. */
int connection_ends_of(nng_pipe pipe, struct connection_ends *ends);
/* Fills OUT with the numeric address that PIPE comes from; "": it is gone. */
void connection_address(nng_pipe pipe, char out[IOCOM_ADDRESS_MAX]);
/* Callable from any thread.  Returns false if this process has no such connection. */
bool connection_cut(const struct connection_ends *ends);

#endif
