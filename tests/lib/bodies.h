/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Work on files with a fixed number of bytes: bodies for rig_start and watch_run. Each takes a
 * struct body and returns 0, or 1 if a call failed.
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
	int flags;  /* flags of open(2) besides the access mode */
	bool write; /* for the asynchronous bodies (rings.h) */
	bool sync;  /* body_write: fsync at the end */
	size_t gap; /* body_write: bytes to skip after each block */
};

int body_read(void *body);
int body_write(void *body);
/* Loads from each page of a cold mapping. */
int body_mmap_read(void *body);
/* The kernel takes the faults when write(2) copies from the mapping. */
int body_mmap_to_memory(void *body);
/* The faults come through get_user_pages, without an exception. */
int body_mmap_to_direct(void *body);
/* Reads with O_DIRECT into a cold mapping of `to`, whose pages must be faulted in first. */
int body_direct_to_mmap(void *body);
/* Asks for the whole file in advance, waits until it is in memory, and touches nothing. */
int body_fadvise(void *body);
int body_readahead(void *body);
/* Stores to each page of a new file's mapping, then msync. */
int body_mmap_store(void *body);

/* Returns this process's CPU time in milliseconds. */
double body_cpu_ms(void);
/* Computes until that time is UNTIL_MS. */
void body_burn(double until_ms);
/* Returns memory for direct I/O, aligned and written to, or NULL. */
void *body_buffer(size_t bytes);

#endif
