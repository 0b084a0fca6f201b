/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the network part's control share. */
#ifndef IOCOM_NET_CONTROL_OWN_H
#define IOCOM_NET_CONTROL_OWN_H

#include <nng/nng.h>
#include <stdbool.h>

#include "agent/net/connection_limit.h"
#include "agent/net/net_control.h"

struct net_exchange;
struct net_peer;

/* Takes one question at a time. */
struct net_server {
	struct net_control *control;
	nng_ctx ctx;
	nng_aio *aio;
	struct loop_post post;
	nng_pipe from;			 /* where the question came from, ... */
	char address[IOCOM_ADDRESS_MAX]; /* ... numeric; "": it is closed already */
	uint64_t ticket;		 /* of the question that root has; 0: none */
	bool sending;
};

struct net_control {
	struct net_control_config config;
	nng_socket rep;
	struct connection_limit *guests;
	bool listening;
	struct net_server servers[GATE_QUESTIONS_MAX];
	uint64_t tickets;
	struct net_peer *peers[NET_CONTROL_PEERS_MAX];
	size_t npeers;
	struct net_exchange *exchanges;
	uint64_t clock;
};

/* --- net_exchange.c --- */

/* Ends all questions without a word, and closes the connections to peers. */
void net_exchange_stop(struct net_control *control);

#endif
