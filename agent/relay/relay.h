/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The relay: TLS for one job stream, in a process of its own.
 *
 *   iocom run -- unix socket -- relay (client) == TLS 1.2 == relay (server) -- socketpair -- shim
 *
 * So shim, agent and CLI use plain sockets as without TLS, an agent's restart cuts no stream,
 * and no root process reads a stranger's handshake: the relay reads its key, becomes nobody, and
 * only then reads from the network. Both ends show a certificate that the administrator's CA
 * signed. TLS gives secrecy and proves that the peer is a machine of the cluster; MUNGE, inside
 * the stream, proves who the user is.
 *
 * An error before the first byte is reported to the plain side as FRAME_ERROR.
 */
#ifndef IOCOM_RELAY_H
#define IOCOM_RELAY_H

#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <stdbool.h>

#include "iocom/err.h"

#define RELAY_FD_PLAIN	   3
#define RELAY_FD_TCP	   4 /* only for a server */
#define RELAY_HANDSHAKE_MS 5000
#define RELAY_DRAIN_MS	   1000
#define RELAY_LINGER_MS	   20000 /* for one side to end after the other */

struct session {
	mbedtls_ssl_context ssl;
	mbedtls_ssl_config config;
	mbedtls_x509_crt own, ca;
	mbedtls_pk_context key;
	int fd;
	int first; /* the first byte received; -1: none yet */
};

/* Reads the three PEM files. Returns 0 or negative errno with ERR. */
int session_init(struct session *session, bool server, const char *certificate, const char *key,
		 const char *ca, struct iocom_err *err);
void session_deinit(struct session *session);
/*
 * Shakes hands over FD, which is connected and non-blocking. Returns 0; -EPROTO: the peer uses
 * no TLS (a client is told so); -EACCES: one of the two certificates is refused; -ETIMEDOUT;
 * negative errno.
 */
int session_handshake(struct session *session, int fd, struct iocom_err *err);

/* Moves bytes between PLAIN and the session until both have ended. Returns 0 or negative errno. */
int pump_run(struct session *session, int plain);

#endif
