/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The network part of the agent: sockets, first decoders, and HTTP, between the network and the
 * gate to the root part (agent/gate/).  It has no rights: what it may do is what root's side of the
 * gate lets a stranger do.
 *
 *   net_bulletin   P        bulletins out and in; vectors that are newer than those known go to
 * root net_control    P + 1    questions of other agents; net_exchange: those of this one
 *   net_streams    P + 2    job streams and renewals, up to their first message
 *   net_http                /metrics
 *   net_probe               asks silent peers why
 */
#ifndef IOCOM_NET_H
#define IOCOM_NET_H

#include <sys/types.h>

#include "agent/base/base.h"
#include "agent/gate/gate.h"

struct names;
struct net;

struct net_config {
	struct loop *loop;   /* borrowed */
	int fd;		     /* this end of the gate; taken */
	struct names *names; /* looks up hosts; NULL: numeric addresses only.  Borrowed. */
	/* Called when the sockets are open, before anything of the network is read; may be NULL. */
	int (*ready)(void *arg, struct iocom_err *err);
	/* The gate is closed, or broken: this is the end. */
	void (*over)(void *arg);
	void *arg;
};

/*
 * Reads the set-up, which root has sent, opens the sockets, and tells root.  Returns 0; negative
 * errno with the reason in ERR: root has been told, too.
 */
int net_new(struct net **net, const struct net_config *config, struct iocom_err *err);
void net_free(struct net *net); /* NULL is fine */

#endif
