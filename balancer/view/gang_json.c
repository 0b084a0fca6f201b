/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The numbers of a parallel job's placement; see gang_json.h. */
#include "balancer/view/gang_json.h"

#include <stdio.h>

#define TEXT_BYTES 512

typedef const char *gang_name(const void *arg, uint32_t node);

static json_t *gang_cost_json(const struct rules_gang_cost *c, gang_name *name, const void *arg)
{
	return json_pack("{s:f,s:f,s:f,s:I,s:I,s:s,s:f,s:f,s:f,s:f}", "response_ms", c->response_ms,
			 "harm_ms", c->harm_ms, "price_ms", c->price_ms, "nodes",
			 (json_int_t)c->nodes, "task", (json_int_t)c->task, "node",
			 name(arg, c->node), "work_ms", c->work_ms, "way_ms", c->way_ms, "port_ms",
			 c->port_ms, "message_ms", c->message_ms);
}

void gang_text(const struct rules_gang_plan *p, gang_name *name, const void *arg, char *out,
	       size_t size)
{
	const struct rules_gang_cost *c = &p->chosen;
	char packed[128] = "all on one node: does not fit";
	char spread[128] = "one a node: does not fit";

	if (p->has_packed)
		snprintf(packed, sizeof(packed), "all on %s: %.1f s", name(arg, p->packed.node),
			 p->packed.response_ms / 1e3);
	if (p->has_spread)
		snprintf(spread, sizeof(spread), "one a node: %.1f s", p->spread.response_ms / 1e3);
	snprintf(out, size,
		 "slowest task %u on %s, of %u node%s: %.1f s of work + %.1f s of communication%s; "
		 "%s; %s; a mean task alone: %.1f s processor, %.1f s disk, %.1f s communication, "
		 "so %s binds",
		 c->task, name(arg, c->node), c->nodes, c->nodes == 1 ? "" : "s",
		 (c->work_ms + c->way_ms) / 1e3, (c->port_ms + c->message_ms) / 1e3,
		 p->moved ? ", after tasks moved to free slots" : "", packed, spread,
		 p->cpu_ms / 1e3, p->disk_ms / 1e3, p->com_ms / 1e3,
		 rules_gang_bound_name(p->bound));
}

json_t *gang_json(const struct rules_gang_plan *p, gang_name *name, const void *arg)
{
	char text[TEXT_BYTES];

	gang_text(p, name, arg, text, sizeof(text));
	return json_pack(
		"{s:s,s:s,s:f,s:f,s:f,s:b,s:I,s:o,s:o,s:o}", "text", text, "bound",
		rules_gang_bound_name(p->bound), "cpu_ms", p->cpu_ms, "disk_ms", p->disk_ms,
		"com_ms", p->com_ms, "searched", p->searched, "moved", (json_int_t)p->moved,
		"chosen", gang_cost_json(&p->chosen, name, arg), "packed",
		p->has_packed ? gang_cost_json(&p->packed, name, arg) : json_null(), "spread",
		p->has_spread ? gang_cost_json(&p->spread, name, arg) : json_null());
}
