/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Asynchronous work on files by bare system calls, which the kernel handles like those of libaio
 * and liburing (uring.h). Bodies as in bodies.h: BLOCK bytes per request, up to RINGS_DEPTH
 * requests in flight; they read, or write with `write`. They return 1 if a call failed, and 77
 * if the kernel does not offer it.
 */
#ifndef IOCOM_TESTS_RINGS_H
#define IOCOM_TESTS_RINGS_H

#include "tests/lib/bodies.h"

#define RINGS_DEPTH  16
#define RINGS_ABSENT 77

/* Uses io_submit(2). */
int body_aio(void *body);
/* Use io_uring: plain, with a polling kernel thread, and with each request given to a worker. */
int body_uring(void *body);
int body_uring_sqpoll(void *body);
int body_uring_async(void *body);

#endif
