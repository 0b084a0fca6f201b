/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where `iocom top` gets its documents: from the node's agent, or, as root
 * and without one, from a monitor of its own.  Both give the same document.
 */
#ifndef IOCOM_TOP_SOURCE_H
#define IOCOM_TOP_SOURCE_H

#include <jansson.h>
#include <stdbool.h>

#include "iocom/err.h"

struct top_source;

struct top_source_options {
	const char *run_dir; /* NULL: the default */
	bool direct;	     /* do not ask an agent */
	bool wait;	     /* an agent that goes away is waited for */
	double interval_s;
};

/* An agent that is not there, and waited for. */
struct top_source_gone {
	const char *why; /* a sentence; valid until the next call */
	double since_s;	 /* so long ago it went away */
	double retry_s;	 /* the next try is then */
};

#define TOP_SOURCE_E_AGAIN 1 /* no document yet */

/* 0, or negative errno with the sentence. */
int top_source_open(struct top_source **source, const struct top_source_options *options,
		    struct iocom_err *err);
void top_source_free(struct top_source *source);
/* To poll for input before top_source_next; -1: there is none, only time. */
int top_source_fd(const struct top_source *source);
/* Call top_source_next after so many ms at the latest; -1: only when the fd is readable. */
int top_source_due_ms(const struct top_source *source);
/*
 * The next document, the caller's.  0; TOP_SOURCE_E_AGAIN; negative errno.  Call
 * only when the descriptor is readable, or the time has come.  With `wait` an
 * agent that goes away gives TOP_SOURCE_E_AGAIN, and is asked for again after
 * pauses that double up to some seconds.
 */
int top_source_next(struct top_source *source, json_t **document, struct iocom_err *err);
/* True while an agent is waited for; GONE then says so. */
bool top_source_gone(const struct top_source *source, struct top_source_gone *gone);
/* "agent" or "direct". */
const char *top_source_kind(const struct top_source *source);

#endif
