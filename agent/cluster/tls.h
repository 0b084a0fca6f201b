/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TLS between agents: secrecy of bulletins and control messages, with the files the
 * administrator names.  Mutual: each end shows a certificate that the CA signed; names in
 * it are not looked at.  It adds to MUNGE and replaces nothing.  Job streams have a relay
 * each (tunnel.h).
 */
#ifndef IOCOM_TLS_H
#define IOCOM_TLS_H

#include <nng/nng.h>

#include "iocom/err.h"

struct tls;

/* 0; -EINVAL, -EACCES and others: a file cannot be read or used, with its name. */
int tls_new(struct tls **tls, const char *certificate, const char *key, const char *ca,
	    struct iocom_err *err);
void tls_free(struct tls *tls); /* sockets may still use it: nng counts */
/* As nng_listen and nng_dial (in the background) of "tcp://..."; TLS NULL: without. */
int tls_listen(const struct tls *tls, nng_socket socket, const char *url);
int tls_dial(const struct tls *tls, nng_socket socket, const char *url);

#endif
