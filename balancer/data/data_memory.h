/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a user's home remembers of data that went along: the hashes of files as long as nobody has
 * touched them (device, inode, size, times of content and of change), and which node has got what,
 * and how much earlier runs of a class have brought home. The node is the judge of what it still
 * has; this only informs decisions, and saves reading a file twice.  It is a cache in
 * $XDG_CACHE_HOME/iocom/data.db [~/.cache]: without it everything works.
 */
#ifndef IOCOM_DATA_MEMORY_H
#define IOCOM_DATA_MEMORY_H

#include "balancer/data/data_set.h"

struct data_memory; /* NULL is fine everywhere: it remembers nothing */

/* Opens it, or returns NULL. */
struct data_memory *data_memory_open(void);
void data_memory_close(struct data_memory *memory);
/* Fills in the hashes that are known. */
void data_memory_hashes(struct data_memory *memory, struct data_set *set);
/* Item has been read, from SINCE (CLOCK_REALTIME) on, and has the hash in its entry. */
void data_memory_note_hash(struct data_memory *memory, const struct data_item *item,
			   const struct timespec *since);
/* NODE has all files of SET now. */
void data_memory_note_node(struct data_memory *memory, const char *node,
			   const struct data_set *set);
/*
 * Writes which nodes have how many bytes of SET, as "NODE=BYTES,..." (those that have most first,
 * as many as fit) into OUT.
 */
void data_memory_held(struct data_memory *memory, const struct data_set *set, char *out,
		      size_t size);
/*
 * A run of CLASS has brought BYTES home, or has made as many here.
 */
void data_memory_note_brought(struct data_memory *memory, const char *class_name, uint64_t bytes);
/* Returns of how many earlier runs of CLASS it knows that; BYTES: their mean, the newest most. */
int64_t data_memory_brought(struct data_memory *memory, const char *class_name, uint64_t *bytes);

#endif
