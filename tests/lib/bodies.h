/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Work on files whose bytes are fixed by the program: bodies for rig_start and
 * watch_run.  Each takes a struct body and returns 0, or 1 when a call failed.
 */
#ifndef IOCOM_TESTS_BODIES_H
#define IOCOM_TESTS_BODIES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define KIB 1024UL
#define MIB (1024UL * KIB)

struct body {
	const char *path;
	const char *to; /* body_mmap_to_direct writes it, body_direct_to_mmap maps it */
	size_t bytes, block;
	off_t from;
	int flags;  /* of open(2), beside the access mode */
	bool write; /* of the asynchronous bodies (rings.h) */
	bool sync;  /* body_write: fsync at the end */
	size_t gap; /* body_write: bytes left out after each block */
};

int body_read(void *body);
int body_write(void *body);
/* Loads from each page of a cold mapping. */
int body_mmap_read(void *body);
/* The kernel takes the faults, copying from the mapping inside write(2). */
int body_mmap_to_memory(void *body);
/* The faults come through get_user_pages, without an exception. */
int body_mmap_to_direct(void *body);
/* Reads with O_DIRECT into a cold mapping of `to`, whose pages are faulted in first. */
int body_direct_to_mmap(void *body);
/* Asks for the whole file ahead of time, waits until it is in memory, touches nothing. */
int body_fadvise(void *body);
int body_readahead(void *body);
/* Stores to each page of a new file's mapping, then msync. */
int body_mmap_store(void *body);

/* This process's CPU time in milliseconds. */
double body_cpu_ms(void);
/* Computes until it is UNTIL_MS. */
void body_burn(double until_ms);
/* Memory aligned for direct I/O, written to; NULL: none. */
void *body_buffer(size_t bytes);

#endif
