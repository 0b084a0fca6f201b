/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Asynchronous work on files, by the bare system calls: what the kernel does is
 * the same as with libaio and liburing (uring.h).  Bodies as in bodies.h: BLOCK bytes a
 * request, up to RINGS_DEPTH requests in flight, reads (or writes: `write`).
 * They return 1 when a call failed; 77 when the kernel does not offer it.
 */
#ifndef IOCOM_TESTS_RINGS_H
#define IOCOM_TESTS_RINGS_H

#include "tests/lib/bodies.h"

#define RINGS_DEPTH  16
#define RINGS_ABSENT 77

/* io_submit(2). */
int body_aio(void *body);
/* io_uring: plain, with a polling kernel thread, each request given to a worker. */
int body_uring(void *body);
int body_uring_sqpoll(void *body);
int body_uring_async(void *body);

#endif
