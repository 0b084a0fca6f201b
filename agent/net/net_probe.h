/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Finds out why a peer is silent: nng dials for ever and reports no reason.  A silent configured
 * peer is asked at its job port, by an empty FRAME_REQUEST, whether the two understand each other.
 * If it answers with a sentence, this agent logs that, again only when it changes.  What became of
 * the connection is told to root, too: refused, timed out, name unknown ...
 */
#ifndef IOCOM_NET_PROBE_H
#define IOCOM_NET_PROBE_H

#include "agent/base/base.h"
#include "agent/base/matrix.h"
#include "agent/base/peer_cause.h"
#include "agent/gate/gate_message.h"

struct names;
struct net_probes;

#define NET_PROBE_FIRST_S 2
#define NET_PROBE_AGAIN_S 60  /* the wait doubles up to this while the peer cannot be reached */
#define NET_PROBE_SAID_S  600 /* the wait after the peer answered with an error */
#define NET_PROBE_LIMIT_S 5   /* for the connection, and for each piece of the answer */

/* Why the peer AT is not heard: WHY is a sentence, "" for PEER_C_NONE: it takes connections. */
typedef void (*net_trouble)(void *arg, const struct gate_place *at, enum peer_cause cause,
			    const char *why);

struct net_probes_config {
	const struct base *base; /* all are borrowed */
	struct names *names;
	const struct matrix *matrix;
	net_trouble trouble;
	void *arg;
};

/* Returns 0 or -ENOMEM. */
int net_probes_new(struct net_probes **probes, const struct net_probes_config *config,
		   struct iocom_err *err);
void net_probes_free(struct net_probes *probes); /* NULL is fine */
/* Looks after the peer at AT from now on; more than SETTINGS_PEERS_MAX are not taken. */
void net_probes_add(struct net_probes *probes, const struct gate_place *at);
/* Once a second: asks at most one peer. */
void net_probes_run(struct net_probes *probes);

#endif
