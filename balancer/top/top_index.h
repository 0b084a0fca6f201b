/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Things with a number, found by it: what `iocom top` remembers of users, tasks and histories. */
#ifndef IOCOM_TOP_INDEX_H
#define IOCOM_TOP_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of whatever is kept; allocated with malloc as a whole. */
struct top_entry {
	uint64_t id;
};

/* Zero is an empty index. */
struct top_index {
	struct top_entry **entries; /* in order of id */
	size_t n, room;
};

/* NULL when there is none. */
void *top_index_find(const struct top_index *index, uint64_t id);
/* Takes ENTRY, whose id is not there yet.  0, or -ENOMEM (then ENTRY is still the caller's). */
int top_index_add(struct top_index *index, struct top_entry *entry);
/* Frees the entries that are not to be kept. */
void top_index_sweep(struct top_index *index, bool (*keep)(const struct top_entry *, void *),
		     void *arg);
/* Frees all entries; the index is empty then. */
void top_index_clear(struct top_index *index);

#endif
