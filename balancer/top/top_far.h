/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Readings of another node, which is asked once an interval through this node's agent (reach.h). */
#ifndef IOCOM_TOP_FAR_H
#define IOCOM_TOP_FAR_H

#include <jansson.h>
#include <stdint.h>

#include "iocom/err.h"

#define TOP_FAR_MOST_MS 60000 /* longest interval that another node's agent remembers */

struct top_far;

/*
 * Returns 1: NODE is another node that this one's agent knows; 0: it is this one; -ENOENT, or
 * negative errno as reach_open.
 */
int top_far_is_other(const char *run_dir, const char *node, struct iocom_err *err);
/* RUN_DIR (NULL: the default) and NODE are copied.  NULL: no memory. */
struct top_far *top_far_new(const char *run_dir, const char *node, uint64_t interval_ms);
void top_far_free(struct top_far *far); /* NULL is fine */
/*
 * Asks for what happened since the last call, and waits for the answer for 2.5 s at most.  Returns
 * 0 and DOCUMENT, which the caller owns, or NULL: the node has just begun to count; or as
 * reach_ask, and -ENOENT: no node of that name is known.
 */
int top_far_ask(struct top_far *far, json_t **document, struct iocom_err *err);

#endif
