/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Threads of the agent: they take no signals, which are for the loop. */
#ifndef IOCOM_THREAD_H
#define IOCOM_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Starts WORK(ARG) in a thread with a stack of STACK_BYTES.  Returns 0 or negative errno. */
int thread_start(pthread_t *thread, size_t stack_bytes, void *(*work)(void *arg), void *arg);

#endif
