/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Job streams under TLS: each end has a relay (relay/relay.h), spawned here.  The target's
 * agent puts one before a stream that arrives; for one that leaves, `iocom run` hands its
 * local connection over, because the key is root's
 * (front/tunnel_request.c).
 */
#ifndef IOCOM_TUNNEL_H
#define IOCOM_TUNNEL_H

#include <sys/types.h>

#include "agent/base/base.h"
#include "iocom/vector.h"

struct tunnels;

#define TUNNELS_MAX    4096
#define TUNNELS_OF_ONE 2048 /* of one user; root may have them all */

/*
 * A stream came in on FD.  0: PLAIN is its end without TLS, non-blocking, the caller's;
 * FD stays the caller's too.  Negative errno with the sentence.
 */
int tunnel_accept(const struct tunnels *tunnels, int fd, int *plain, struct iocom_err *err);
/*
 * Asks PEER's job port whether we understand each other.  ANSWER, the caller's: FRAME_ERROR
 * with what is wrong, or nothing, then the end.  0 or negative errno with the sentence.
 */
int tunnel_ask(const struct tunnels *tunnels, const struct settings_peer *peer, int *answer,
	       struct iocom_err *err);
/*
 * The table of relays for streams that leave: a bound, since each is a process.  They run as
 * the setting relay_user; "": as iocom, where there is such a user, or nobody, which other daemons
 * may be too. *SHARED: the latter.  0, -ENOMEM, -EINVAL no such user or root, with the sentence.
 */
int tunnels_new(struct tunnels **tunnels, const struct base *base, bool *shared,
		struct iocom_err *err);
/* The uid of the relays. */
uid_t tunnels_uid(const struct tunnels *tunnels);
size_t tunnels_count(const struct tunnels *tunnels); /* NULL: none */
void tunnels_free(struct tunnels *tunnels);
/* A child of the agent ended; TUNNELS may be NULL, PID any. */
void tunnels_reaped(struct tunnels *tunnels, pid_t pid);
/*
 * A relay between FD, which stays the caller's, and NODE's job port, for UID.  0; -EAGAIN too
 * many are UID's, and others, with the sentence.
 */
int tunnels_open(struct tunnels *tunnels, uid_t uid, int fd, const struct iocom_vector *node,
		 struct iocom_err *err);

#endif
