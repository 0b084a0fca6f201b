/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Calls that may hang run in a thread: the loop waits for one of them once, not for every
 * caller.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "user/clock.h"
#include "agent/base/deadline_thread.h"

#define LONG_MS	 20000
#define SHORT_MS 20

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int begun, runs, frees;

struct task {
	struct deadline_task task;
	int result;
	pthread_t by;
	bool interruptible;
};

static void task_free(struct deadline_task *task)
{
	frees++;
	free(task);
}

/* Hangs while the test holds the gate. */
static void run(struct deadline_task *task)
{
	struct task *t = (struct task *)task;
	sigset_t blocked;

	begun++;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	t->interruptible = !sigismember(&blocked, SIGTERM);
	t->result = ++runs;
	t->by = pthread_self();
}

static struct deadline_task *task_new(void)
{
	struct task *t = calloc(1, sizeof(*t));

	t->task = (struct deadline_task){.run = run, .free = task_free};
	return &t->task;
}

static void nap(unsigned ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static int until(atomic_int *what, int value)
{
	for (int i = 0; i < 2000 && *what < value; i++)
		nap(10);
	return *what;
}

/*
 * Makes a call that hangs: the caller holds the gate. On a busy machine the thread may not begin
 * within the limit and lose the task; then this tries again.
 */
static struct deadline_task *ask_hanging(struct deadline_thread *w)
{
	for (;;) {
		struct deadline_task *task = task_new();
		int before = begun, freed = frees;

		assert_int_equal(deadline_run(w, task, SHORT_MS), -ETIMEDOUT);
		if (begun > before)
			return task;
		assert_int_equal(frees, freed + 1);
		frees = freed;
		nap(DEADLINE_REST_MS);
	}
}

static void test_answers(void **state)
{
	struct deadline_thread *w = NULL;
	struct deadline_task *task;

	(void)state;
	runs = frees = 0;
	assert_int_equal(deadline_new(&w, NULL), 0);
	for (int i = 1; i <= 1000; i++) {
		task = task_new();
		assert_int_equal(deadline_run(w, task, LONG_MS), 0);
		assert_int_equal(((struct task *)task)->result, i);
		assert_false(pthread_equal(((struct task *)task)->by, pthread_self()));
		assert_false(((struct task *)task)->interruptible); /* signals go to the loop */
		task_free(task);
	}
	assert_null(deadline_late(w));
	assert_int_equal(frees, 1000);
	deadline_free(w);
}

static void test_hangs(void **state)
{
	struct deadline_thread *w = NULL;
	struct deadline_task *late;
	uint64_t before, asked_again = 0;
	int rc;

	(void)state;
	runs = frees = 0;
	assert_int_equal(deadline_new(&w, NULL), 0);
	pthread_mutex_lock(&gate);
	before = clock_boot_ns();
	ask_hanging(w);
	assert_true(clock_boot_ns() - before >= SHORT_MS * CLOCK_NS_PER_MS);
	assert_null(deadline_late(w));
	/* No other caller waits, neither with a limit of hours nor after the pause. */
	assert_int_equal(deadline_run(w, task_new(), 3600000), -EBUSY);
	nap(DEADLINE_REST_MS + 50);
	assert_int_equal(deadline_run(w, task_new(), 3600000), -EBUSY);
	assert_int_equal(frees, 2);
	pthread_mutex_unlock(&gate);
	assert_int_equal(until(&runs, 1), 1);
	/* The thread works again, and its late answer is dropped. */
	do {
		late = task_new();
		rc = deadline_run(w, late, LONG_MS);
		asked_again++;
	} while (rc == -EBUSY && asked_again < 2000 && (nap(10), true));
	assert_int_equal(rc, 0);
	assert_int_equal(((struct task *)late)->result, 2);
	task_free(late);
	assert_int_equal(frees, 3 + asked_again);
	deadline_free(w);
}

/* A slow call that ends after all: the next caller with the same question gets its answer. */
static void test_late(void **state)
{
	struct deadline_thread *w = NULL;
	struct deadline_task *task, *late = NULL;
	uint64_t given_up;
	int rc;

	(void)state;
	runs = frees = 0;
	assert_int_equal(deadline_new(&w, NULL), 0);
	pthread_mutex_lock(&gate);
	task = ask_hanging(w);
	given_up = clock_boot_ns();
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < 2000 && !late; i++, nap(10))
		late = deadline_late(w);
	assert_ptr_equal(late, task);
	assert_int_equal(((struct task *)late)->result, 1);
	assert_null(deadline_late(w));
	task_free(late);
	/*
	 * It was slow, so for a while no call is made: slow calls must not hold the loop in
	 * turn.
	 */
	while ((rc = deadline_run(w, task = task_new(), LONG_MS)) == -EBUSY)
		nap(10);
	assert_int_equal(rc, 0);
	assert_true(clock_boot_ns() - given_up >= DEADLINE_REST_MS * CLOCK_NS_PER_MS);
	task_free(task);
	deadline_free(w);
}

/* A call that hangs at the end is left behind, and frees its own memory. */
static void test_end(void **state)
{
	struct deadline_thread *w = NULL;

	(void)state;
	runs = frees = 0;
	deadline_free(NULL);
	assert_int_equal(deadline_new(&w, NULL), 0);
	deadline_free(w); /* never asked */
	assert_int_equal(deadline_new(&w, NULL), 0);
	pthread_mutex_lock(&gate);
	ask_hanging(w);
	deadline_free(w);
	assert_int_equal(frees, 0);
	pthread_mutex_unlock(&gate);
	assert_int_equal(until(&frees, 1), 1);
	/* The same happens for a call that was late and whose answer no caller took. */
	assert_int_equal(deadline_new(&w, NULL), 0);
	pthread_mutex_lock(&gate);
	ask_hanging(w);
	pthread_mutex_unlock(&gate);
	assert_int_equal(until(&runs, 2), 2);
	deadline_free(w);
	assert_int_equal(until(&frees, 2), 2);
}

/*
 * A thread that gets no CPU has not begun its task: the task is taken back, and the worker serves
 * again.  With one processor for both threads and no time to wait, the thread is nearly always
 * late.
 */
static void test_no_cpu(void **state)
{
	cpu_set_t one, before;
	struct deadline_thread *w = NULL;
	struct deadline_task *task;
	int taken_back = 0, rc;

	(void)state;
	begun = runs = frees = 0;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(deadline_new(&w, NULL), 0);
	for (int i = 0; i < 3; i++) {
		int was = begun;

		rc = deadline_run(w, task = task_new(), 0);
		assert_true(rc == 0 || rc == -ETIMEDOUT);
		if (rc == 0)
			task_free(task);
		else
			taken_back += begun == was;
		nap(DEADLINE_REST_MS + 50);
	}
	assert_true(taken_back > 0);
	/* After all this it answers again. */
	while ((rc = deadline_run(w, task = task_new(), LONG_MS)) == -EBUSY &&
	       frees < LONG_MS / SHORT_MS)
		nap(SHORT_MS);
	assert_int_equal(rc, 0);
	task_free(task);
	deadline_free(w);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers), cmocka_unit_test(test_hangs),
		cmocka_unit_test(test_late),	cmocka_unit_test(test_end),
		cmocka_unit_test(test_no_cpu),
	};

	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
