/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See paths.h.
 *
 * A question belongs to both the loop and its thread.  The thread frees it if the loop has given it
 * up; otherwise the loop does, when the thread's post arrives.
 */
#include "agent/guest/paths.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/places.h"
#include "user/clock.h"

#define STACK_BYTES (256u << 10)

struct question {
	struct question *next;
	struct paths *paths;
	struct job_order order;
	struct account user;
	struct admission_verdict verdict;
	struct loop_timer timer;
	struct loop_post post;
	paths_done done; /* NULL: already answered as late */
	void *arg;
	pthread_mutex_t lock;
	bool seen, abandoned;
	atomic_int at; /* the path that the thread is checking */
};

struct paths {
	struct loop *loop;
	struct counters *counters;
	struct question *first;
	unsigned count, late;
};

static void paths_question_free(struct question *q)
{
	pthread_mutex_destroy(&q->lock);
	account_free(&q->user);
	free(q);
}

size_t paths_count(const struct paths *paths, size_t *late)
{
	*late = paths ? paths->late : 0;
	return paths ? paths->count : 0;
}

/*
 * Returns how many of UID's questions are in the list from FIRST on; LATE: how many of them hang.
 */
static unsigned paths_count_of(const struct question *first, uid_t uid, unsigned *late)
{
	unsigned n = 0;

	*late = 0;
	for (const struct question *q = first; q; q = q->next) {
		n += q->user.uid == uid;
		*late += q->user.uid == uid && !q->done;
	}
	return n;
}

/* Returns how many checks hang, counting at most PATHS_LATE_OF_USER per user. */
static unsigned late_of_all(const struct paths *paths)
{
	unsigned n = 0, same;

	if (paths->late < PATHS_LATE_MAX)
		return paths->late;
	for (const struct question *q = paths->first; q; q = q->next) {
		if (q->done)
			continue;
		paths_count_of(q->next, q->user.uid, &same);
		n += same < PATHS_LATE_OF_USER;
	}
	return n;
}

static int room_for(const struct paths *paths, uid_t uid, struct iocom_err *err)
{
	static const struct places checks = {
		.what = "path checks there",
		.limit = "paths_looked_at",
		.one = "paths_looked_at",
		.max = PATHS_MAX,
		.of_root = PATHS_OF_ROOT,
		.of_one = PATHS_OF_USER,
	};
	static const struct places hanging = {
		.what = "path checks there whose file systems do not answer",
		.limit = "paths_that_hang",
		.one = "paths_that_hang_of_a_user",
		.max = PATHS_LATE_MAX,
		.of_root = PATHS_LATE_OF_ROOT,
		.of_one = PATHS_LATE_OF_USER,
	};
	unsigned late, of_user = paths_count_of(paths->first, uid, &late);
	int rc = places_ask(&checks, uid, paths->count, of_user, paths->counters, err);

	return rc ? rc : places_ask(&hanging, uid, late_of_all(paths), late, paths->counters, err);
}

static void *paths_look(void *arg)
{
	struct question *q = arg;
	bool abandoned;

	admission_paths(&q->order, &q->user, &q->at, &q->verdict);
	pthread_mutex_lock(&q->lock);
	q->seen = true;
	abandoned = q->abandoned;
	if (!abandoned)
		loop_post(q->paths->loop, &q->post);
	pthread_mutex_unlock(&q->lock);
	if (abandoned)
		paths_question_free(q);
	return NULL;
}

static void paths_forget(struct question *q)
{
	struct paths *paths = q->paths;

	for (struct question **p = &paths->first; *p; p = &(*p)->next)
		if (*p == q) {
			*p = q->next;
			paths->count--;
			paths->late -= !q->done;
			break;
		}
	loop_cancel(paths->loop, &q->timer);
}

/* The thread has finished its check. */
static void looked(void *arg)
{
	struct question *q = arg;

	pthread_mutex_lock(&q->lock); /* the thread may still hold the lock */
	pthread_mutex_unlock(&q->lock);
	paths_forget(q);
	if (q->done)
		q->done(q->arg, &q->order, &q->verdict);
	paths_question_free(q);
}

static void paths_overdue(void *arg)
{
	struct question *q = arg;
	paths_done done = q->done;
	struct admission_verdict slow;
	bool directory = atomic_load(&q->at) == ADMISSION_AT_CWD;

	slow = (struct admission_verdict){.reason = "path-slow"};
	snprintf(slow.text, sizeof(slow.text),
		 "%s %.120s: its file system did not answer within %d ms",
		 directory ? "working directory" : "executable",
		 directory ? q->order.cwd : q->order.executable, PATHS_LIMIT_MS);
	q->done = NULL;
	q->paths->late++;
	done(q->arg, &q->order, &slow);
}

static int paths_start(struct question *q)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int rc = pthread_attr_init(&attributes);

	if (rc)
		return -rc;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	rc = pthread_create(&thread, &attributes, paths_look, q);
	pthread_attr_destroy(&attributes);
	return -rc;
}

int paths_ask(struct paths *paths, const struct job_order *order, struct account *user,
	      paths_done done, void *arg, struct iocom_err *err)
{
	int rc = room_for(paths, user->uid, err);
	struct question *q = rc ? NULL : calloc(1, sizeof(*q));

	if (!q) {
		account_free(user);
		return rc ? rc : iocom_err_set(err, -ENOMEM, "out of memory");
	}
	q->paths = paths;
	q->order = *order;
	q->user = *user;
	q->done = done;
	q->arg = arg;
	q->timer = (struct loop_timer){.fire = paths_overdue, .arg = q};
	q->post = (struct loop_post){.run = looked, .arg = q};
	pthread_mutex_init(&q->lock, NULL);
	rc = paths_start(q);
	if (rc) {
		paths_question_free(q);
		return iocom_err_set(err, rc, "cannot start a thread: %s", strerror(-rc));
	}
	q->next = paths->first;
	paths->first = q;
	paths->count++;
	loop_start(paths->loop, &q->timer, PATHS_LIMIT_MS * CLOCK_NS_PER_MS);
	return 0;
}

int paths_new(struct paths **out, struct loop *loop, struct counters *counters)
{
	struct paths *paths = calloc(1, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	paths->loop = loop;
	paths->counters = counters;
	*out = paths;
	return 0;
}

void paths_free(struct paths *paths)
{
	if (!paths)
		return;
	while (paths->first) {
		const struct admission_verdict stop = {.reason = "path-slow",
						       .text = "the agent is stopping"};
		struct question *q = paths->first;
		bool seen;

		paths_forget(q);
		if (q->done)
			q->done(q->arg, &q->order, &stop);
		pthread_mutex_lock(&q->lock);
		q->abandoned = true;
		seen = q->seen;
		pthread_mutex_unlock(&q->lock);
		if (!seen)
			continue; /* the thread owns it now */
		loop_unpost(paths->loop, &q->post);
		paths_question_free(q);
	}
	free(paths);
}
