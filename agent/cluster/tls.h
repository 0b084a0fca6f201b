/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TLS between agents keeps bulletins and control messages secret, with certificates that the
 * administrator provides.  Each end must show a certificate that the CA signed; names in it are not
 * checked.  TLS adds to MUNGE and replaces nothing.  Each job stream has a relay instead
 * (tunnel.h).
 */
#ifndef IOCOM_TLS_H
#define IOCOM_TLS_H

#include <nng/nng.h>

#include "iocom/err.h"

struct tls;

/* Returns 0; -EINVAL, -EACCES and others with the name of the file that cannot be read or used. */
int tls_new(struct tls **tls, const char *certificate, const char *key, const char *ca,
	    struct iocom_err *err);
void tls_free(struct tls *tls); /* sockets may still use it: nng counts references */
/* Like nng_listen and nng_dial (in the background) of "tcp://..."; TLS NULL: no TLS. */
int tls_listen(const struct tls *tls, nng_socket socket, const char *url);
int tls_dial(const struct tls *tls, nng_socket socket, const char *url);

#endif
