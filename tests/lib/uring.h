/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* io_uring by bare system calls, which the kernel handles like those of liburing. */
#ifndef IOCOM_TESTS_URING_H
#define IOCOM_TESTS_URING_H

#include <linux/io_uring.h>

struct uring {
	int fd;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *entries;
};

/* FLAGS are IORING_SETUP_*. Returns 0 or negative errno. */
int uring_open(struct uring *u, unsigned entries, unsigned flags);
/* Returns the next request, zeroed; fill it in, then uring_push hands it over. */
struct io_uring_sqe *uring_next(struct uring *u);
void uring_push(struct uring *u);
/* Submits the N pushed requests and waits for N results. Returns 0 or -1. */
int uring_submit(struct uring *u, unsigned n);
/* Waits for a result and takes it. Returns 0 or -1. */
int uring_take(struct uring *u, int *result);

#endif
