/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One thread for what may hang though it never should: munged, the name service.  Who asks
 * waits, but no longer than his limit; after that he is refused, and so is everybody at
 * once until the thread is back: what hangs costs the loop one limit, not one for each.
 */
#ifndef IOCOM_DEADLINE_THREAD_H
#define IOCOM_DEADLINE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "iocom/err.h"

/* After something was late nothing is asked for so long: what is merely slow may not hold the
 * loop most of the time either. */
#define DEADLINE_REST_MS 1000

struct deadline_thread;

/* Part of a larger one in the heap, which must hold all that RUN needs. */
struct deadline_task {
	void (*run)(struct deadline_task *task);  /* in the thread */
	void (*free)(struct deadline_task *task); /* of one that nobody waits for; either thread */
};

/* 0, -ENOMEM, -EAGAIN (no thread), -EMFILE. */
int deadline_new(struct deadline_thread **worker, struct iocom_err *err);
/* A thread that hangs is left behind, and frees what is its own.  NULL is fine. */
void deadline_free(struct deadline_thread *worker);
/*
 * Runs TASK, waits at most LIMIT_MS.  0: it has run, and is the caller's.  Else it is the
 * worker's: -ETIMEDOUT (just now), -EBUSY (one before hangs, or was late).
 */
int deadline_run(struct deadline_thread *worker, struct deadline_task *task, unsigned limit_ms);
/* One that was too late and has run since, now the caller's to free; or NULL. */
struct deadline_task *deadline_late(struct deadline_thread *worker);

#endif
