/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Work on files whose bytes are fixed by the program: bodies for rig_start and
 * watch_run.  Each takes a struct body and returns 0, or 1 when a call failed.
 */
#ifndef IOCOM_TESTS_BODIES_H
#define IOCOM_TESTS_BODIES_H

#include <stddef.h>
#include <sys/types.h>

#define KIB 1024UL
#define MIB (1024UL * KIB)

struct body {
	const char *path;
	const char *to; /* body_mmap_to_direct: the file it writes */
	size_t bytes, block;
	off_t from;
	int flags; /* of open(2), beside the access mode */
};

int body_read(void *body);
int body_write(void *body);
/* Loads from each page of a cold mapping. */
int body_mmap_read(void *body);
/* The kernel takes the faults, copying from the mapping inside write(2). */
int body_mmap_to_memory(void *body);
/* The faults come through get_user_pages, without an exception. */
int body_mmap_to_direct(void *body);
/* Stores to each page of a new file's mapping, then msync. */
int body_mmap_store(void *body);

/* Memory aligned for direct I/O, written to; NULL: none. */
void *body_buffer(size_t bytes);

#endif
