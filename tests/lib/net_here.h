/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The network part of an agent in the test's own process and loop, unconfined. */
#ifndef IOCOM_TESTS_NET_HERE_H
#define IOCOM_TESTS_NET_HERE_H

#include "agent/base/base.h"
#include "agent/gate/net_part.h"
#include "agent/net/net.h"

struct net_here {
	struct base base;
	struct net_part *part;
	struct net *net;
	unsigned starts;
	bool away; /* it cannot be started */
};

/* What a node NAME needs that listens at 127.0.0.1 and PORT, without job streams. */
struct gate_setup net_here_setup(const char *name, uint16_t port);
/*
 * Starts it for the root part that has BASE, which is copied; STREAMS and HTTP are listeners (-1:
 * none), borrowed.  Returns 0 or negative errno with the reason in ERR.
 */
int net_here_start(struct net_here *here, const struct base *base, const struct gate_setup *setup,
		   int streams, int http, struct iocom_err *err);
/* The network part dies; the loop starts it again. */
void net_here_kill(struct net_here *here);
void net_here_stop(struct net_here *here);

#endif
