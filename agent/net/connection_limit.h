/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Bounds the connections that other machines keep open to a listening nng socket, in all and per
 * address: nobody can use up this agent's descriptors or keep the other nodes out.  (nng drops a
 * connection that does not speak its protocol after 10 s.)
 *
 * A connection on which a message without a valid seal came is cut, and its address pays
 * (address_budget.h); an address that has spent its budget is refused.
 */
#ifndef IOCOM_CONNECTION_LIMIT_H
#define IOCOM_CONNECTION_LIMIT_H

#include <nng/nng.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/counters.h"
#include "agent/gate/net_limits.h"

struct connection_limit;

struct connection_limit_bounds {
	unsigned max, max_of_one;
	/*
	 * When a bound is reached, the oldest connection that has sent nothing sealed yields to the
	 * newcomer, and its address pays.
	 */
	bool yield;
};

/* Call it before SOCKET listens or dials.  Returns 0 or an error of nng. */
int connection_limit_new(struct connection_limit **guests, nng_socket socket,
			 const struct connection_limit_bounds *bounds);
/* Adds what was counted since the last call: guests_refused, connections_cut, addresses_refused. */
void connection_limit_count_into(struct connection_limit *guests, struct counters *counters);
/*
 * Connections open now, and addresses that have something to pay.  Callable from any thread; NULL:
 * 0.
 */
size_t connection_limit_count(struct connection_limit *guests);
size_t connection_limit_payers(struct connection_limit *guests);
/* Returns true if PIPE was cut: what still comes from it is not looked at. */
bool connection_limit_is_cut(struct connection_limit *guests, nng_pipe pipe);
/* Returns true if something well sealed has come from PIPE. */
bool connection_limit_is_proven(struct connection_limit *guests, nng_pipe pipe);
/*
 * A message of PIPE was opened; REFUSAL is 0 or enum seal_refusal (seal.h), negative errno is no
 * fault of PIPE.  Garbage and forged seals cut the connection.
 */
void connection_limit_judge(struct connection_limit *guests, nng_pipe pipe, int refusal);
/* Call it after the socket was closed.  NULL is fine. */
void connection_limit_free(struct connection_limit *guests);

#endif
