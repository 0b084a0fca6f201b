/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Why the tasks of a parallel job go where they go, in numbers (MODEL 3.18):
 *
 *   { "text", "bound": "cpu" | "disk" | "communication", "cpu_ms", "disk_ms", "com_ms",
 *     "searched", "moved", "chosen": {}, "packed": {}, "spread": {} }
 *
 * where the last three, of which packed and spread may be null, are
 *
 *   { "response_ms", "harm_ms", "price_ms", "nodes", "task", "node", "work_ms", "way_ms",
 *     "port_ms", "message_ms" }
 */
#ifndef IOCOM_GANG_JSON_H
#define IOCOM_GANG_JSON_H

#include <jansson.h>

#include "iocom/gang.h"

/* NAME gives the names of nodes.  Returns NULL if there is no memory. */
json_t *gang_json(const struct rules_gang_plan *plan,
		  const char *(*name)(const void *arg, uint32_t node), const void *arg);
/*
 * Writes one sentence, with NUL, at most SIZE bytes: "slowest task 7 on n3: 4.1 s of work + 9.2 s
 * of communication; all on n1: 12.0 s; ...".
 */
void gang_text(const struct rules_gang_plan *plan,
	       const char *(*name)(const void *arg, uint32_t node), const void *arg, char *out,
	       size_t size);

#endif
