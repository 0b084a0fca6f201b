/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the node and each disk, task and job did in the last documents, for sparklines.  It is
 * bounded: what never did anything has no history, and beyond TOP_HISTORY_THINGS nothing new
 * gets one.
 */
#ifndef IOCOM_TOP_HISTORY_H
#define IOCOM_TOP_HISTORY_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_HISTORY_TURNS  128
#define TOP_HISTORY_THINGS 4096

enum top_series {
	TOP_SERIES_CPU,	    /* node: share of all cores; task, job: cores */
	TOP_SERIES_DISK,    /* node, disk: utilisation; task, job: bytes per second */
	TOP_SERIES_NETWORK, /* bytes per second */
	TOP_SERIES
};

struct top_history;

struct top_history *top_history_new(void); /* NULL: out of memory */
void top_history_free(struct top_history *history);
/* Adds one document's numbers; rows that we cannot allocate show a gap. */
void top_history_add(struct top_history *history, const json_t *document);
/*
 * Returns the last N values, oldest first, 0 if unknown.  ID is that of a row (top_model.h), of
 * a disk (top_history_disk), or 0 for the node.
 */
void top_history_get(const struct top_history *history, uint64_t id, enum top_series series,
		     float *out, size_t n);
uint64_t top_history_disk(const char *name);

#endif
