/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A network part that is played by the test: it says that it is ready, answers nothing, counts what
 * root tells it, and keeps the places that it is to hear.  On a loop with a clock of its own.
 */
#ifndef IOCOM_TESTS_NET_COUNTED_H
#define IOCOM_TESTS_NET_COUNTED_H

#include "agent/base/base.h"
#include "agent/gate/gate.h"
#include "agent/gate/net_limits.h"
#include "agent/gate/net_part.h"

struct net_counted {
	struct loop *loop;
	struct net_part *part;
	struct gate *gate;
	unsigned starts, got[GATE_TYPES];
	struct gate_message last;
	struct gate_place hears[2 * BULLETIN_DIALED_MAX];
	size_t nhears;
};

/* Makes BASE's loop, and starts a part with NET behind it.  Returns 0, or another value. */
int net_counted_begin(struct net_counted *net, struct base *base);
void net_counted_end(struct net_counted *net, struct base *base);
/* Lets NS pass. */
void net_counted_run(struct net_counted *net, uint64_t ns);
/* It ends, and another begins a second later. */
void net_counted_another(struct net_counted *net);
bool net_counted_hears(const struct net_counted *net, const char *address, uint16_t port);

#endif
