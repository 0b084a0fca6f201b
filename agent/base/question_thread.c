/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See question_thread.h.
 *
 *   waiting -> running -> finished -> told (DONE, 0)
 *      |          '-> given up (DONE, -ETIMEDOUT) -> finished -> freed
 *      '-> given up (DONE, -ETIMEDOUT) and freed
 *
 * The lock guards the lists and which task runs; what is given up or forgotten only the loop knows.
 * Limits are times of the loop's clock, kept by a timer of the loop: no thread waits on a condition
 * variable with a limit, which passes at once where libfaketime changes the clock.  The loop and
 * the thread both know it; the one that leaves last frees it.
 */
#include "agent/base/question_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/thread.h"
#include "user/clock.h"

#define STACK_BYTES (512u << 10)

struct task_list {
	struct question_task *first, **last;
};

struct question_thread {
	struct loop *loop;
	unsigned limit_ms, max, count; /* count: waiting, running or finished; the loop's */
	struct loop_post post;
	struct loop_timer timer;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	struct task_list waiting, finished;
	struct question_task *running;
	bool stopping;
};

static void list_clear(struct task_list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

static void list_append(struct task_list *list, struct question_task *task)
{
	task->next = NULL;
	*list->last = task;
	list->last = &task->next;
}

static struct question_task *list_pop(struct task_list *list)
{
	struct question_task *task = list->first;

	if (task) {
		list->first = task->next;
		if (!list->first)
			list->last = &list->first;
	}
	return task;
}

static void list_free(struct task_list *list)
{
	struct question_task *task;

	while ((task = list_pop(list)))
		task->free(task);
}

/* --- the thread -------------------------------------------------------------------- */

static void question_thread_destroy(struct question_thread *w)
{
	list_free(&w->waiting);
	list_free(&w->finished);
	if (w->running)
		w->running->free(w->running);
	pthread_cond_destroy(&w->wanted);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void *question_thread_work(void *arg)
{
	struct question_thread *w = arg;
	bool left_behind = false;

	pthread_mutex_lock(&w->lock);
	while (!w->stopping) {
		struct question_task *task = list_pop(&w->waiting);

		if (!task) {
			pthread_cond_wait(&w->wanted, &w->lock);
			continue;
		}
		w->running = task;
		pthread_mutex_unlock(&w->lock);
		task->run(task);
		pthread_mutex_lock(&w->lock);
		left_behind = w->stopping;
		w->running = NULL;
		list_append(&w->finished, task);
		if (!w->stopping)
			loop_post(w->loop, &w->post);
	}
	pthread_mutex_unlock(&w->lock);
	if (left_behind)
		question_thread_destroy(w);
	return NULL;
}

/* --- the loop ---------------------------------------------------------------------- */

/* Starts the timer for the question that is given up next: the running one, else the first. */
static void question_thread_arm(struct question_thread *w)
{
	const struct question_task *next;
	uint64_t now = loop_boot_ns(w->loop), until_ns = 0;

	pthread_mutex_lock(&w->lock);
	next = w->running && !w->running->given_up ? w->running : w->waiting.first;
	if (next)
		until_ns = next->until_ns;
	pthread_mutex_unlock(&w->lock);
	if (next)
		loop_start(w->loop, &w->timer, until_ns > now ? until_ns - now : 0);
	else
		loop_cancel(w->loop, &w->timer);
}

/*
 * Takes one question whose time is over at NOW: the running one, which stays with the thread, or a
 * waiting one.  NULL: there is none.
 */
static struct question_task *question_thread_overdue(struct question_thread *w, uint64_t now,
						     bool *begun)
{
	struct question_task *task = NULL;

	pthread_mutex_lock(&w->lock);
	*begun = w->running && !w->running->given_up && w->running->until_ns <= now;
	if (*begun)
		task = w->running;
	else if (w->waiting.first && w->waiting.first->until_ns <= now)
		task = list_pop(&w->waiting);
	if (task)
		task->given_up = true;
	pthread_mutex_unlock(&w->lock);
	return task;
}

static void question_thread_give_up(void *arg)
{
	struct question_thread *w = arg;
	uint64_t now = loop_boot_ns(w->loop);
	struct question_task *task;
	bool begun;

	while ((task = question_thread_overdue(w, now, &begun))) {
		w->count--;
		if (!task->forgotten)
			task->done(task, -ETIMEDOUT);
		if (!begun)
			task->free(task);
	}
	question_thread_arm(w);
}

static struct question_task *question_thread_finished(struct question_thread *w)
{
	struct question_task *task;

	pthread_mutex_lock(&w->lock);
	task = list_pop(&w->finished);
	pthread_mutex_unlock(&w->lock);
	return task;
}

/* Tells the ends of some questions; those of more in the next turn. */
static void question_thread_tell(void *arg)
{
	struct question_thread *w = arg;
	struct question_task *task;
	bool more;

	for (unsigned i = 0; i < QUESTION_THREAD_TURN && (task = question_thread_finished(w));
	     i++) {
		w->count -= !task->given_up;
		if (task->given_up || task->forgotten)
			task->free(task);
		else
			task->done(task, 0);
	}
	pthread_mutex_lock(&w->lock);
	more = w->finished.first != NULL;
	pthread_mutex_unlock(&w->lock);
	if (more)
		loop_post(w->loop, &w->post);
	question_thread_arm(w);
}

int question_thread_new(struct question_thread **out, struct loop *loop, unsigned limit_ms,
			unsigned max, struct iocom_err *err)
{
	struct question_thread *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	w->loop = loop;
	w->limit_ms = limit_ms;
	w->max = max;
	w->post = (struct loop_post){.run = question_thread_tell, .arg = w};
	w->timer = (struct loop_timer){.fire = question_thread_give_up, .arg = w};
	list_clear(&w->waiting);
	list_clear(&w->finished);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wanted, NULL);
	rc = thread_start(&w->thread, STACK_BYTES, question_thread_work, w);
	if (rc) {
		question_thread_destroy(w);
		return iocom_err_set(err, rc, "cannot start a thread: %s", strerror(-rc));
	}
	*out = w;
	return 0;
}

void question_thread_free(struct question_thread *w)
{
	pthread_t thread;
	bool runs;

	if (!w)
		return;
	loop_cancel(w->loop, &w->timer);
	thread = w->thread;
	pthread_mutex_lock(&w->lock);
	runs = w->running != NULL;
	w->stopping = true;
	loop_unpost(w->loop, &w->post);
	pthread_cond_signal(&w->wanted);
	pthread_mutex_unlock(&w->lock); /* if the thread runs a task, it owns W from here on */
	if (runs) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	question_thread_destroy(w);
}

int question_thread_ask(struct question_thread *w, struct question_task *task)
{
	int rc = w->count >= w->max ? -ENOBUFS : 0;

	task->until_ns = loop_boot_ns(w->loop) + w->limit_ms * CLOCK_NS_PER_MS;
	task->given_up = task->forgotten = false;
	pthread_mutex_lock(&w->lock);
	if (w->running && w->running->given_up)
		rc = -EBUSY;
	if (!rc) {
		list_append(&w->waiting, task);
		pthread_cond_signal(&w->wanted);
	}
	pthread_mutex_unlock(&w->lock);
	if (rc) {
		task->free(task);
		return rc;
	}
	w->count++;
	if (!w->timer.active)
		question_thread_arm(w);
	return 0;
}

/* Returns true if TASK had not begun and was taken from the list. */
static bool question_thread_take_back(struct question_thread *w, const struct question_task *task)
{
	struct question_task **p = &w->waiting.first;
	bool found;

	pthread_mutex_lock(&w->lock);
	while (*p && *p != task)
		p = &(*p)->next;
	found = *p != NULL;
	if (found) {
		*p = task->next;
		if (!task->next)
			w->waiting.last = p;
	}
	pthread_mutex_unlock(&w->lock);
	return found;
}

void question_thread_forget(struct question_thread *w, struct question_task *task)
{
	if (question_thread_take_back(w, task)) {
		w->count--;
		task->free(task);
	} else {
		task->forgotten = true;
	}
}

size_t question_thread_count(const struct question_thread *w)
{
	return w ? w->count : 0;
}
