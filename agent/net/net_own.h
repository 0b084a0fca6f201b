/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the network part share. */
#ifndef IOCOM_NET_OWN_H
#define IOCOM_NET_OWN_H

#include "agent/base/complaints.h"
#include "agent/base/loop_share.h"
#include "agent/base/matrix.h"
#include "agent/net/net.h"
#include "agent/net/net_bulletin.h"
#include "agent/net/net_control.h"
#include "agent/net/net_http.h"
#include "agent/net/net_probe.h"
#include "agent/net/net_streams.h"

struct net {
	struct net_config config;
	struct gate_setup setup;
	struct logger log;
	struct counters counters;
	struct loop_share shares;
	struct complaints complaints;
	struct base base; /* without settings */
	struct gate *gate;
	struct matrix matrix; /* of what is relayed */
	struct net_bulletin *bulletin;
	struct net_control *control;
	struct net_streams *streams;
	struct net_probes *probes;
	struct net_http *http;
	struct loop_post want_page;
	bool is_open; /* all that it serves stands */
	unsigned pings;
	struct gate_counts told;
	uint64_t pinged_ns;
	/* What root is to be told of. */
	struct gate_vector heard[GATE_VECTORS];
	size_t nheard;
	bool counts_wait; /* for the next vector that root is told of */
	bool told_vector; /* since the last ping */
	bool is_set_up;
	int streams_fd, http_fd; /* until who serves them has them; -1: none */
};

#endif
