/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Job streams under TLS: each end has a relay (relay/relay.h), spawned here.  The target's agent
 * puts one before each incoming stream.  For an outgoing stream, `iocom run` hands its local
 * connection to its agent, because only root may read the key (front/tunnel_request.c).
 */
#ifndef IOCOM_TUNNEL_H
#define IOCOM_TUNNEL_H

#include <sys/types.h>

#include "agent/base/base.h"
#include "iocom/vector.h"

struct tunnels;

#define TUNNELS_MAX	4096
#define TUNNELS_OF_ONE	2048 /* per user; root may have them all */
#define TUNNELS_OF_ROOT 64   /* places that only root takes */

/*
 * Puts a relay before the stream on FD.  Returns 0: PLAIN is the relay's end without TLS,
 * non-blocking, the caller's; FD stays the caller's too.  Negative errno with the reason in ERR.
 */
int tunnel_accept(const struct tunnels *tunnels, int fd, int *plain, struct iocom_err *err);
/*
 * Asks PEER's job port whether the two agents understand each other.  ANSWER, the caller's: carries
 * FRAME_ERROR with the reason if not, then ends.  Returns 0 or negative errno with the reason in
 * ERR.
 */
int tunnel_ask(const struct tunnels *tunnels, const struct settings_peer *peer, int *answer,
	       struct iocom_err *err);
/*
 * Makes the table of relays for outgoing streams: bounded, since each is a process.  Relays run as
 * the setting relay_user; "": as iocom if there is such a user, else as nobody, which other daemons
 * may use too (*SHARED).  Returns 0, -ENOMEM, -EINVAL no such user or root, with the reason in ERR.
 */
int tunnels_new(struct tunnels **tunnels, const struct base *base, bool *shared,
		struct iocom_err *err);
/* The uid of the relays. */
uid_t tunnels_uid(const struct tunnels *tunnels);
size_t tunnels_count(const struct tunnels *tunnels); /* NULL: 0 */
void tunnels_free(struct tunnels *tunnels);
/* Handles the end of child PID, which need not be a relay; TUNNELS may be NULL. */
void tunnels_reaped(struct tunnels *tunnels, pid_t pid);
/*
 * Starts a relay for UID between FD, which stays the caller's, and NODE's job port.  Returns 0;
 * -EAGAIN UID has too many; others, with the reason in ERR.
 */
int tunnels_open(struct tunnels *tunnels, uid_t uid, int fd, const struct iocom_vector *node,
		 struct iocom_err *err);

#endif
