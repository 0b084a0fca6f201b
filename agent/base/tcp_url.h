/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How nng names a TCP port. */
#ifndef IOCOM_TCP_URL_H
#define IOCOM_TCP_URL_H

#include <stddef.h>

#define TCP_URL_MAX 128

/* "tcp://ADDRESS:PORT"; brackets for IPv6.  OUT has SIZE bytes. */
void tcp_url(char *out, size_t size, const char *address, unsigned port);

#endif
