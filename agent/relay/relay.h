/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The relay: TLS for one job stream, in a process of its own.
 *
 *   iocom run -- unix socket -- relay (client) == TLS 1.2 == relay (server) -- socketpair -- shim
 *
 * So shim, agent and CLI speak over plain sockets as ever, an agent's restart cuts no
 * stream, and no root process reads a stranger's handshake: the relay reads its key,
 * becomes nobody, and only then listens to the network.  Both ends show a certificate of the CA
 * that the administrator named.  That is secrecy, and that the peer is a machine of the cluster;
 * who the user is MUNGE says, inside.
 *
 * What goes wrong before the first byte is told to the plain side as FRAME_ERROR.
 */
#ifndef IOCOM_RELAY_H
#define IOCOM_RELAY_H

#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <stdbool.h>

#include "iocom/err.h"

#define RELAY_FD_PLAIN	   3
#define RELAY_FD_TCP	   4 /* of a server */
#define RELAY_HANDSHAKE_MS 5000
#define RELAY_DRAIN_MS	   1000
#define RELAY_LINGER_MS	   20000 /* for one side to end when the other did */

struct session {
	mbedtls_ssl_context ssl;
	mbedtls_ssl_config config;
	mbedtls_x509_crt own, ca;
	mbedtls_pk_context key;
	int fd;
	int first; /* the first byte that came; -1: none yet */
};

/* Reads the three PEM files.  0 or negative errno with the sentence. */
int session_init(struct session *session, bool server, const char *certificate, const char *key,
		 const char *ca, struct iocom_err *err);
void session_deinit(struct session *session);
/*
 * Over FD, non-blocking, connected.  0; -EPROTO: the peer speaks without TLS (and is
 * told so, where it is a client); -EACCES: one of the two certificates is refused;
 * -ETIMEDOUT; negative errno.
 */
int session_handshake(struct session *session, int fd, struct iocom_err *err);

/* Moves bytes between PLAIN and the session until both are at their end.  0 or negative errno. */
int pump_run(struct session *session, int plain);

#endif
