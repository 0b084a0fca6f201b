/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Questions between agents, for peers.c only; see peers.h. */
#ifndef IOCOM_PEER_REQUESTS_H
#define IOCOM_PEER_REQUESTS_H

#include "agent/cluster/peers.h"

/* The control_handler: answers a question of another node. */
int peer_requests_handle(void *peers, const struct control_head *head, const msgpack_object *body,
			 msgpack_sbuffer *out);
/* Returns true if V is of a configured peer, which is asked to hear this node. */
bool peer_requests_greets(const struct settings *set, const struct iocom_vector *v);
/* Asks the configured peers that we hear to subscribe to this node. */
void peer_requests_hello(struct peers *peers);
/* Ends this node's questions to itself with -ECANCELED. */
void peer_requests_stop(struct peers *peers);

#endif
