/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A thread that answers questions which may hang though they never should (munged), while the loop
 * goes on:
 *
 *   loop: question_thread_ask --> queue --> thread: run --> loop_post --> loop: done
 *                                     |
 *                      nothing within the limit --> loop: done, -ETIMEDOUT
 *
 * The questions are answered in order.  The queue is bounded.  While a question that was given up
 * still runs, further ones are refused at once: a service that hangs costs nobody more than one
 * limit.  A question that the thread has not begun within the limit, because the machine is too
 * busy to give it a processor, is taken back and keeps nobody out.
 */
#ifndef IOCOM_QUESTION_THREAD_H
#define IOCOM_QUESTION_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/loop.h"
#include "iocom/err.h"

/* Ends of questions that are told in one turn of the loop; then timers and clients get theirs. */
#define QUESTION_THREAD_TURN 8

struct question_thread;

/*
 * The first member of a larger struct on the heap, which must hold all that RUN needs.  The caller
 * sets the first three; the rest belongs to this.
 */
struct question_task {
	void (*run)(struct question_task *task); /* called in the thread */
	/*
	 * Called in the loop, once.  RC 0: TASK has run and belongs to the callee.  -ETIMEDOUT: it
	 * was given up.  It may be running: only what RUN does not change may be read, and the
	 * thread frees it.
	 */
	void (*done)(struct question_task *task, int rc);
	void (*free)(struct question_task *task); /* either thread */
	struct question_task *next;
	uint64_t until_ns; /* when it is given up (CLOCK_BOOTTIME) */
	bool given_up, forgotten;
};

/*
 * LIMIT_MS: how long a question may take.  MAX: questions that are waiting or running.  Borrows
 * LOOP.  Returns 0, -ENOMEM, -EAGAIN (no thread).
 */
int question_thread_new(struct question_thread **thread, struct loop *loop, unsigned limit_ms,
			unsigned max, struct iocom_err *err);
/*
 * Frees the questions that have no answer yet, without a call of DONE.  A thread in a question is
 * left behind; it then frees what it owns.  NULL is fine.
 */
void question_thread_free(struct question_thread *thread);
/*
 * Takes TASK in any case.  Returns 0: DONE will be called.  Otherwise TASK is freed: -EBUSY (an
 * earlier question hangs), -ENOBUFS (MAX questions are waiting).
 */
int question_thread_ask(struct question_thread *thread, struct question_task *task);
/* The caller does not want TASK's answer any more: DONE is not called, and this frees it. */
void question_thread_forget(struct question_thread *thread, struct question_task *task);
/* Returns how many questions are waiting or running; NULL: 0. */
size_t question_thread_count(const struct question_thread *thread);

#endif
