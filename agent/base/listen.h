/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Sockets that listen over TCP at an address of the configuration. */
#ifndef IOCOM_AGENT_LISTEN_H
#define IOCOM_AGENT_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "iocom/err.h"
#include "iocom/vector.h"

#define LISTEN_BACKLOG 256

struct listen_address {
	struct sockaddr_storage at;
	socklen_t length;
};

/*
 * Finds ADDRESS: numeric, IPv6 with or without brackets, or with NAMES a name, which may ask the
 * name service.
 * Returns 0; -EADDRNOTAVAIL with the reason in ERR.
 */
int listen_find(struct listen_address *found, const char *address, uint16_t port, bool names,
		struct iocom_err *err);
/*
 * Writes the numeric form of ADDRESS, IPv6 in brackets.  Returns as listen_find; -ENAMETOOLONG,
 * too.
 */
int listen_numeric(char out[IOCOM_ADDRESS_MAX], const char *address, struct iocom_err *err);
/*
 * Listens at AT.  Returns 0: LISTENER, which does not block and is closed at exec, is the caller's;
 * negative errno: it is -1.
 */
int listen_open(int *listener, const struct listen_address *at);

#endif
