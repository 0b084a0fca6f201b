/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Entries found by their number: the users, tasks and histories that `iocom top` remembers. */
#ifndef IOCOM_TOP_INDEX_H
#define IOCOM_TOP_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of each entry; the entry is one malloc'ed block. */
struct top_entry {
	uint64_t id;
};

/* All zero is an empty index. */
struct top_index {
	struct top_entry **entries; /* in order of id */
	size_t n, room;
};

/* Returns NULL if there is no such entry. */
void *top_index_find(const struct top_index *index, uint64_t id);
/* Takes ENTRY, whose id is new.  Returns 0, or -ENOMEM (then ENTRY is still the caller's). */
int top_index_add(struct top_index *index, struct top_entry *entry);
/* Frees the entries for which KEEP returns false. */
void top_index_sweep(struct top_index *index, bool (*keep)(const struct top_entry *, void *),
		     void *arg);
/* Frees all entries and empties the index. */
void top_index_clear(struct top_index *index);

#endif
