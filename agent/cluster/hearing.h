/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whom this node hears directly: the plan of balancer/gossip/gossip.h, made for the nodes that the
 * matrix knows, and carried out by bulletins' subscriptions.  Beside the plan:
 *
 *   configured peers   as long as they are not heard of, and all of them in a small cluster
 *   who asked          (PEER_HELLO) for a while, until others have learned of it, too
 *
 * What the network part says of nodes only decides where it is told to dial: it has no other
 * authority, and after its death nothing that it said alone is dialled.
 */
#ifndef IOCOM_HEARING_H
#define IOCOM_HEARING_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/base.h"
#include "agent/base/matrix.h"
#include "agent/cluster/bulletin.h"
#include "agent/cluster/peer_state.h"

#define HEARING_ASKED_MAX     128
#define HEARING_BEGINS	      8 /* large clusters: dialled at a time, and not heard yet */
#define HEARING_ASKED_PERIODS 4 /* after it is heard of: then it is no news any more */
#define HEARING_ASKED_NS      (30ull * 1000000000ull)
#define HEARING_LOST_NS	      (600ull * 1000000000ull) /* one that was lost is awaited so long */

struct hearing {
	const struct base *base; /* all four are borrowed */
	struct matrix *matrix;
	struct bulletin *bulletin;
	const struct peer_states *states;
	bool dials; /* the agent has begun */
	uint32_t turn;
	struct hearing_asked {
		char node[IOCOM_NAME_MAX];
		struct gate_place at;
		uint64_t until_ns;
	} asked[HEARING_ASKED_MAX];
	size_t nasked;
};

/* Makes a plan and has it carried out; once a period, and when a small cluster grows. */
void hearing_plan(struct hearing *h);
/* Node NAME at AT asks to be heard; in a large cluster that is for those that are new. */
void hearing_ask(struct hearing *h, const char *name, const struct gate_place *at);
/* A bulletin of node NAME itself came. */
void hearing_heard(struct hearing *h, const char *name);
/* A node is there, for the first time or again: a small cluster plans at once. */
void hearing_joined(struct hearing *h);
/* The network part is gone, and with it all subscriptions. */
void hearing_lost(struct hearing *h);

#endif
