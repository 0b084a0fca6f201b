/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One thread for calls that may hang though they never should: munged, the name service.  The
 * caller waits, but no longer than its limit; after that its call is refused, and so is every
 * further call until the thread is back.  A hanging service thus costs the loop one limit, not one
 * per call.
 */
#ifndef IOCOM_DEADLINE_THREAD_H
#define IOCOM_DEADLINE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "iocom/err.h"

/*
 * After a late task no new one is accepted for this long, so that a service that is merely slow
 * cannot hold the loop most of the time either.
 */
#define DEADLINE_REST_MS 1000

struct deadline_thread;

/* The first member of a larger struct on the heap, which must hold all that RUN needs. */
struct deadline_task {
	void (*run)(struct deadline_task *task); /* called in the thread */
	void (*free)(
		struct deadline_task *task); /* frees a task that nobody waits for; either thread */
};

/* Returns 0, -ENOMEM, -EAGAIN (no thread), -EMFILE. */
int deadline_new(struct deadline_thread **thread, struct iocom_err *err);
/* Leaves a hanging thread behind, which then frees what it owns.  NULL is fine. */
void deadline_free(struct deadline_thread *thread);
/*
 * Runs TASK and waits at most LIMIT_MS.  Returns 0: TASK has run and belongs to the caller.
 * Otherwise the thread owns it: -ETIMEDOUT (it is late just now), -EBUSY (an earlier task hangs or
 * was late).
 */
int deadline_run(struct deadline_thread *thread, struct deadline_task *task, unsigned limit_ms);
/* Returns a late task that has finished since, which the caller frees, or NULL. */
struct deadline_task *deadline_late(struct deadline_thread *thread);

#endif
