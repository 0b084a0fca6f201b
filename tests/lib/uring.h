/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* io_uring by the bare system calls: what the kernel does is the same as with liburing. */
#ifndef IOCOM_TESTS_URING_H
#define IOCOM_TESTS_URING_H

#include <linux/io_uring.h>

struct uring {
	int fd;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *entries;
};

/* FLAGS: IORING_SETUP_*.  0, or negative errno. */
int uring_open(struct uring *u, unsigned entries, unsigned flags);
/* The next request, zeroed; uring_push hands it over once it is filled in. */
struct io_uring_sqe *uring_next(struct uring *u);
void uring_push(struct uring *u);
/* Submits the N requests that were pushed and waits for N results; 0 or -1. */
int uring_submit(struct uring *u, unsigned n);
/* Waits for a result and takes it; 0 or -1. */
int uring_take(struct uring *u, int *result);

#endif
