/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What is known of the links to other nodes; see nodes_links.h. */
#include "agent/front/nodes_links.h"

#include "agent/measure/links.h"

void nodes_links_look(struct front *front)
{
	const struct matrix *matrix = &front->peers->matrix;
	struct iocom_err err = {0};

	if (!matrix->count || front->links_refused)
		return;
	if (!front->links)
		front->links = links_new();
	if (!front->links)
		return;
	for (size_t i = 0; i < matrix->count; i++) {
		const struct matrix_entry *e = matrix_at(&front->peers->matrix, i);

		if (e->alive) /* one too many is seen in the list of bounds */
			links_watch(front->links, e->vector.address);
	}
	if (links_look(front->links, loop_boot_ns(front->base->loop), &err)) {
		front->links_refused = true;
		log_write(front->base->log, LOG_L_WARNING, "%s", err.text);
	}
}

/* VALUE, or null unless it was seen at SEEN_NS. */
static json_t *links_value(double value, uint64_t seen_ns)
{
	return seen_ns ? json_real(value) : json_null();
}

static json_t *links_age(uint64_t now_ns, uint64_t seen_ns)
{
	return links_value((double)(now_ns - seen_ns) / 1e9, seen_ns);
}

static json_t *links_row(const struct matrix_entry *e, const struct link_rate *r, uint64_t now)
{
	return json_pack("{s:s,s:s,s:s,s:I,s:o,s:o,s:f,s:o,s:o,s:o,s:o}", "node", e->vector.name,
			 "address", e->vector.address, "source", "tcp", "connections",
			 (json_int_t)r->connections, "round_trip_ms",
			 links_value(r->round_trip_ms, r->round_trip_ns), "round_trip_age_s",
			 links_age(now, r->round_trip_ns), "carried_mb_per_s", r->carried_mb_per_s,
			 "at_least_mb_per_s", links_value(r->at_least_mb_per_s, r->at_least_ns),
			 "at_least_age_s", links_age(now, r->at_least_ns), "tcp_mb_per_s",
			 links_value(r->tcp_mb_per_s, r->tcp_ns), "tcp_age_s",
			 links_age(now, r->tcp_ns));
}

json_t *nodes_links_json(const struct front *front)
{
	const struct matrix *matrix = &front->peers->matrix;
	uint64_t now = loop_boot_ns(front->base->loop);
	json_t *array = json_array();

	for (size_t i = 0; array && front->links && i < matrix->count; i++) {
		const struct matrix_entry *e = matrix_at(&front->peers->matrix, i);
		const struct link_rate *r =
			e->alive ? links_find(front->links, e->vector.address) : NULL;

		if (r)
			json_array_append_new(array, links_row(e, r, now));
	}
	return array;
}

void nodes_links_stop(struct front *front)
{
	links_free(front->links);
	front->links = NULL;
}
