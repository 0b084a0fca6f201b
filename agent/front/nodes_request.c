/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "nodes": the load matrix, limits and counters. */
#include <stdio.h>
#include <stdlib.h>

#include "balancer/view/vector_codec.h"
#include "agent/front/front.h"
#include "agent/front/limits.h"
#include "agent/front/nodes_links.h"
#include "agent/front/nodes_peers.h"
#include "agent/front/status.h"

static json_t *cli_requests_node_json(const struct iocom_vector *v, uint64_t age_ns, bool self,
				      bool alive)
{
	json_t *o = json_object();

	if (!o || vector_json(v, o)) {
		json_decref(o);
		return NULL;
	}
	json_object_set_new(o, "self", json_boolean(self));
	json_object_set_new(o, "alive", json_boolean(alive));
	json_object_set_new(o, "age_ms", json_real((double)age_ns / 1e6));
	return o;
}

/* Returns how right predictions were, by node and policy; NULL: no memory. */
static json_t *nodes_request_predictions(const struct front *front)
{
	struct prediction *list = calloc(PREDICTIONS_MAX, sizeof(*list));
	size_t n = list ? home_predictions(front->home, list) : 0;
	json_t *array = list ? json_array() : NULL;

	for (size_t i = 0; array && i < n; i++) {
		const struct prediction *p = &list[i];

		json_array_append_new(
			array, json_pack("{s:s,s:s,s:I,s:f,s:f,s:f}", "node", p->node, "policy",
					 p->policy, "jobs", (json_int_t)p->jobs, "ratio", p->ratio,
					 "within_1_25", p->within_1_25, "within_2", p->within_2));
	}
	free(list);
	return array;
}

void nodes_request(struct front *front, struct client *c, const msgpack_object *request)
{
	json_t *nodes = json_array(), *dropped = json_array();
	uint64_t now = loop_boot_ns(front->base->loop);
	char text[128];

	(void)request;
	json_array_append_new(
		nodes,
		cli_requests_node_json(&front->pulse->own, now - front->pulse->own_ns, true, true));
	for (size_t i = 0; i < front->peers->matrix.count; i++) {
		const struct matrix_entry *e = matrix_at(&front->peers->matrix, i);
		uint64_t age = matrix_age_ns(e, now);

		if (e->alive) {
			json_array_append_new(nodes,
					      cli_requests_node_json(&e->vector, age, false, true));
			continue;
		}
		if (e->left)
			snprintf(text, sizeof(text), "its agent stopped %.1f s ago, and said so",
				 (double)age / 1e9);
		else
			snprintf(text, sizeof(text),
				 "silent for %.1f s, longer than %d periods of %u ms",
				 (double)age / 1e9, MATRIX_SILENT_PERIODS, e->vector.period_ms);
		json_array_append_new(dropped, json_pack("{s:s,s:s,s:f,s:b}", "name",
							 e->vector.name, "reason", text, "age_ms",
							 (double)age / 1e6, "left", e->left));
	}
	client_json(c,
		    json_pack("{s:i,s:s,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "version", 1, "node",
			      front->base->set->name, "time_ns",
			      (json_int_t)loop_real_ns(front->base->loop), "period_ms",
			      (json_int_t)front->pulse->self.period_ms, "nodes", nodes, "dropped",
			      dropped, "counters", counters_json(front), "bounds",
			      limits_json(front), "predictions", nodes_request_predictions(front),
			      "peers", nodes_peers_json(front), "links", nodes_links_json(front)));
}
