/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where `iocom top` gets its documents: from the node's agent or, as root without an agent,
 * from its own monitor.  Both give the same document.
 */
#ifndef IOCOM_TOP_SOURCE_H
#define IOCOM_TOP_SOURCE_H

#include <jansson.h>
#include <stdbool.h>

#include "iocom/err.h"

struct top_source;

struct top_source_options {
	const char *run_dir; /* NULL: the default */
	const char *node;    /* another node, which is asked through this one; NULL: this one */
	bool direct;	     /* do not ask an agent */
	bool wait;	     /* wait for an agent that goes away to come back */
	double interval_s;
};

/* An agent that is gone and that we wait for. */
struct top_source_gone {
	const char *why; /* a sentence; valid until the next call */
	double since_s;	 /* it has been gone for this long */
	double retry_s;	 /* seconds until the next attempt */
};

#define TOP_SOURCE_E_AGAIN 1 /* no document yet */

/* Returns 0, or negative errno with the reason in ERR. */
int top_source_open(struct top_source **source, const struct top_source_options *options,
		    struct iocom_err *err);
void top_source_free(struct top_source *source);
/*
 * The descriptor to poll for input before top_source_next; -1: there is none, only the time
 * counts.
 */
int top_source_fd(const struct top_source *source);
/*
 * Call top_source_next after this many ms at the latest; -1: only when the descriptor is
 * readable.
 */
int top_source_due_ms(const struct top_source *source);
/*
 * Gets the next document, which the caller owns.  Returns 0; TOP_SOURCE_E_AGAIN; negative
 * errno. Call it only when the descriptor is readable or the time has come.  With `wait`, an
 * agent that goes away gives TOP_SOURCE_E_AGAIN; later calls try it again, after pauses that
 * double up to some seconds.
 */
int top_source_next(struct top_source *source, json_t **document, struct iocom_err *err);
/* Returns whether we wait for an agent that is gone; GONE gets the details. */
bool top_source_gone(const struct top_source *source, struct top_source_gone *gone);
/* "agent", "direct", or "node": another one. */
const char *top_source_kind(const struct top_source *source);

#endif
