/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See deadline_thread.h.
 *
 * There is at most one task.  The thread owns it while it is RUNNING or LATE.  A task that the
 * thread has not begun within the limit, because the machine is too busy to give it a CPU, is taken
 * back: only a running task can be late.  The loop and the thread both know the worker; the one
 * that leaves last frees it.
 */
#include "agent/base/deadline_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/base/thread.h"
#include "user/clock.h"

#define STACK_BYTES (512u << 10) /* the name service's modules need room */

enum state {
	IDLE,
	ASKED,	   /* the thread has not seen it yet */
	RUNNING,   /* the thread works on it */
	DONE,	   /* the loop may take it */
	LATE,	   /* it runs, but the loop has stopped waiting */
	LATE_DONE, /* it finished after all */
};

struct deadline_thread {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	int done; /* an eventfd: poll takes a duration, a condition variable only a time */
	struct deadline_task *task;
	enum state state;
	bool stopping;
	uint64_t rest_until_ns; /* CLOCK_BOOTTIME; only the loop uses it */
};

static void last_one_out(struct deadline_thread *w)
{
	if (w->task)
		w->task->free(w->task);
	pthread_cond_destroy(&w->wanted);
	close(w->done);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void *deadline_thread_work(void *arg)
{
	const uint64_t one = 1;
	struct deadline_thread *w = arg;
	bool left_behind = false;

	pthread_mutex_lock(&w->lock);
	while (!w->stopping) {
		struct deadline_task *task = w->task;

		if (w->state != ASKED) {
			pthread_cond_wait(&w->wanted, &w->lock);
			continue;
		}
		w->state = RUNNING;
		pthread_mutex_unlock(&w->lock);
		task->run(task);
		pthread_mutex_lock(&w->lock);
		left_behind = w->stopping;
		w->state = w->state == LATE ? LATE_DONE : DONE;
		(void)!write(w->done, &one, sizeof(one));
	}
	pthread_mutex_unlock(&w->lock);
	if (left_behind)
		last_one_out(w);
	return NULL;
}

int deadline_new(struct deadline_thread **out, struct iocom_err *err)
{
	struct deadline_thread *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	w->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->done < 0) {
		rc = -errno;
		free(w);
		return iocom_err_set(err, rc, "cannot make an eventfd: %s", strerror(-rc));
	}
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wanted, NULL);
	rc = thread_start(&w->thread, STACK_BYTES, deadline_thread_work, w);
	if (rc) {
		last_one_out(w);
		return iocom_err_set(err, rc, "cannot start a thread: %s", strerror(-rc));
	}
	*out = w;
	return 0;
}

void deadline_free(struct deadline_thread *w)
{
	pthread_t thread;
	bool hangs;

	if (!w)
		return;
	thread = w->thread;
	pthread_mutex_lock(&w->lock);
	hangs = w->state == LATE;
	w->stopping = true;
	pthread_cond_signal(&w->wanted);
	pthread_mutex_unlock(&w->lock); /* if the thread hangs, it owns W from here on */
	if (hangs) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	last_one_out(w);
}

/* Waits until the thread is done, but no longer than LIMIT_MS. */
static void wait_done(struct deadline_thread *w, unsigned limit_ms)
{
	uint64_t until = clock_boot_ns() + limit_ms * CLOCK_NS_PER_MS, now;
	struct pollfd done = {.fd = w->done, .events = POLLIN};

	while ((now = clock_boot_ns()) < until)
		if (poll(&done, 1, (int)((until - now) / CLOCK_NS_PER_MS) + 1) > 0)
			return;
}

/*
 * The limit has passed: the loop stops waiting.  Returns true if the thread had not begun the task.
 */
static bool deadline_thread_give_up(struct deadline_thread *w)
{
	bool begun = w->state == RUNNING;

	w->rest_until_ns = clock_boot_ns() + DEADLINE_REST_MS * CLOCK_NS_PER_MS;
	w->state = begun ? LATE : IDLE;
	if (!begun)
		w->task = NULL;
	return !begun;
}

int deadline_run(struct deadline_thread *w, struct deadline_task *task, unsigned limit_ms)
{
	struct deadline_task *late = deadline_late(w);
	bool unused = false;
	uint64_t count;
	int rc = 0;

	if (late)
		late->free(late);
	if (clock_boot_ns() < w->rest_until_ns) {
		task->free(task);
		return -EBUSY;
	}
	pthread_mutex_lock(&w->lock);
	if (w->state != IDLE) {
		pthread_mutex_unlock(&w->lock);
		task->free(task);
		return -EBUSY;
	}
	(void)!read(w->done, &count, sizeof(count)); /* clears the event of an earlier, late task */
	w->task = task;
	w->state = ASKED;
	pthread_cond_signal(&w->wanted);
	pthread_mutex_unlock(&w->lock);
	wait_done(w, limit_ms);
	pthread_mutex_lock(&w->lock);
	if (w->state == ASKED || w->state == RUNNING) {
		unused = deadline_thread_give_up(w);
		rc = -ETIMEDOUT;
	} else {
		w->state = IDLE;
		w->task = NULL;
	}
	pthread_mutex_unlock(&w->lock);
	if (unused)
		task->free(task);
	return rc;
}

struct deadline_task *deadline_late(struct deadline_thread *w)
{
	struct deadline_task *late = NULL;

	pthread_mutex_lock(&w->lock);
	if (w->state == LATE_DONE) {
		late = w->task;
		w->task = NULL;
		w->state = IDLE;
	}
	pthread_mutex_unlock(&w->lock);
	return late;
}
