/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The links to other nodes, as `iocom nodes --links` shows them (agent/measure/links.h). */
#ifndef IOCOM_NODES_LINKS_H
#define IOCOM_NODES_LINKS_H

#include <jansson.h>

#include "agent/front/front.h"

/* Looks at the connections to all nodes that are heard; call it each period. */
void nodes_links_look(struct front *front);
/*
 * Makes an array with an object for each other node that is heard: node, address, source ("tcp"),
 * connections, round_trip_ms, round_trip_age_s, carried_mb_per_s, at_least_mb_per_s,
 * at_least_age_s, tcp_mb_per_s, tcp_age_s; null is not known.
 */
json_t *nodes_links_json(const struct front *front);
void nodes_links_stop(struct front *front);

#endif
