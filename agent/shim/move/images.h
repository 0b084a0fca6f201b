/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The images of a job that moves: a file system in memory that nothing but a descriptor leads to,
 * so that it is gone with the last process that has it.  Its pages are charged to the cgroup of who
 * writes them, and it holds no more than it was made for.
 */
#ifndef IOCOM_SHIM_MOVE_IMAGES_H
#define IOCOM_SHIM_MOVE_IMAGES_H

#include <stdint.h>

#include "iocom/err.h"

#define IMAGES_PATH_MAX	 48
#define IMAGES_FILES_MAX 65536
#define IMAGES_NAME_MAX	 128
/* Free memory that must be left on the node besides what the images need. */
#define IMAGES_SPARE_BYTES (64ULL << 20)

struct images {
	int fd; /* the directory; -1: none */
	/* Leads there by this process, also for others of root while it lives. */
	char path[IMAGES_PATH_MAX];
};

/*
 * Makes a file system for BYTES.  Returns 0; -ENOSPC: the node's memory has too little room;
 * -ENOTSUP: the kernel is older than Linux 5.2; other negative errno.
 */
int images_make(struct images *images, uint64_t bytes, struct iocom_err *err);
/* Sums up the files.  Returns 0 or negative errno. */
int images_size(const struct images *images, uint64_t *bytes, uint64_t *files);
void images_free(struct images *images);

#endif
