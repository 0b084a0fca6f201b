/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See nodes_peers.h. */
#include "agent/front/nodes_peers.h"

#include <stdio.h>

#include "user/utf8.h"

/* The seconds since THEN, CLOCK_BOOTTIME; null: 0. */
static json_t *nodes_peers_since(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns ? json_real(now_ns > then_ns ? (double)(now_ns - then_ns) / 1e9 : 0)
		       : json_null();
}

/* Another node's sentence may be in it, and its bytes may be anything. */
static json_t *nodes_peers_text(const char *text)
{
	char clean[3 * 2 * PEER_STATE_WHY + 1];

	utf8_copy(clean, sizeof(clean), text, strlen(text));
	return json_string(clean);
}

static json_t *nodes_peers_one(const struct front *front, const struct peer_state *p, uint64_t now)
{
	char name[IOCOM_ADDRESS_MAX + 8];
	struct peer_status status;
	json_t *o = json_object();

	peer_state_status(&front->peers->states, p, &front->peers->matrix, now, &status);
	snprintf(name, sizeof(name), "%s:%u", p->at.address, p->at.port);
	json_object_set_new(o, "peer", nodes_peers_text(name));
	json_object_set_new(o, "state", json_string(status.state));
	json_object_set_new(o, "heard", json_boolean(status.heard));
	json_object_set_new(o, "since_s", nodes_peers_since(status.since_ns, now));
	json_object_set_new(o, "node", *p->node ? nodes_peers_text(p->node) : json_null());
	json_object_set_new(o, "last_heard_s", nodes_peers_since(p->heard_ns, now));
	json_object_set_new(o, "why", nodes_peers_text(status.why));
	json_object_set_new(o, "advice", json_string(status.advice));
	json_object_set_new(o, "ahead_s",
			    p->cause == PEER_C_CLOCK && p->ahead_s ? json_integer(p->ahead_s)
								   : json_null());
	return o;
}

json_t *nodes_peers_json(const struct front *front)
{
	uint64_t now = loop_boot_ns(front->base->loop);
	json_t *array = json_array();

	for (size_t i = 0; i < front->peers->states.count; i++)
		json_array_append_new(array,
				      nodes_peers_one(front, &front->peers->states.all[i], now));
	return array;
}
