/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Control between agents (agent/cluster/control.h) at the network: brings questions of other agents
 * to root and sends root's answers, and asks root's questions.  Of a question it reads what kind of
 * message it is, and the head of a greeting; all else is for root to open.
 */
#ifndef IOCOM_NET_CONTROL_H
#define IOCOM_NET_CONTROL_H

#include <stdint.h>

#include "agent/base/base.h"
#include "agent/gate/gate.h"
#include "agent/gate/net_limits.h"

struct names;
struct net_control;

struct net_control_config {
	const struct base *base; /* all are borrowed */
	struct gate *gate;
	struct names *names;
	const char *listen;
	uint16_t port; /* the base port */
};

/* Begins to listen.  Returns 0; -EADDRINUSE and others with the reason in ERR. */
int net_control_new(struct net_control **control, const struct net_control_config *config,
		    struct iocom_err *err);
void net_control_free(struct net_control *control); /* NULL is fine */

/* Messages of root. */
void net_control_reply(struct net_control *control, const struct gate_reply *reply,
		       const void *answer, size_t length);
void net_control_ask(struct net_control *control, const struct gate_ask *ask, const void *question,
		     size_t length);
void net_control_forget(struct net_control *control, uint64_t id);

/* Fills in what COUNTS says of this, and updates the counters of refused connections. */
void net_control_count(struct net_control *control, struct gate_counts *counts);

#endif
