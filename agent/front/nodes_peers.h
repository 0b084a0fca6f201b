/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The configured peers, as `iocom nodes` and `iocom doctor` show them. */
#ifndef IOCOM_NODES_PEERS_H
#define IOCOM_NODES_PEERS_H

#include <jansson.h>

#include "agent/front/front.h"

/*
 * Makes an array with an object for each configured peer: peer, state, heard, since_s (null: since
 * the agent began), node and last_heard_s (null: never), why, advice, ahead_s (null: not known).
 */
json_t *nodes_peers_json(const struct front *front);

#endif
