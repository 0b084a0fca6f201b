/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Questions that may hang: a thread answers them in order, the loop goes on meanwhile, and gives
 * each up after its limit.  All of it runs once more under libfaketime, where a condition variable
 * with a limit would end at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/question_thread.h"
#include "user/clock.h"

#define LONG_MS	 20000
#define SHORT_MS 50
#define MAX	 5

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int begun, runs, frees;
static struct loop *loop;
static int dones, given_up, ticks;
static struct loop_timer tick;

struct question {
	struct question_task task;
	int number, result;
	pthread_t by;
	bool interruptible;
};

static void question_free(struct question_task *task)
{
	frees++;
	free(task);
}

/* Hangs while the test holds the gate. */
static void question_run(struct question_task *task)
{
	struct question *q = (struct question *)task;
	sigset_t blocked;

	begun++;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	q->interruptible = !sigismember(&blocked, SIGTERM);
	q->result = ++runs;
	q->by = pthread_self();
}

static void question_done(struct question_task *task, int rc)
{
	struct question *q = (struct question *)task;

	if (rc) {
		assert_int_equal(rc, -ETIMEDOUT);
		given_up++;
		return;
	}
	assert_int_equal(q->number, dones++);
	assert_false(pthread_equal(q->by, pthread_self()));
	assert_false(q->interruptible); /* signals go to the loop */
	question_free(task);
}

static struct question_task *question_new(int number)
{
	struct question *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	q->number = number;
	q->task = (struct question_task){
		.run = question_run, .done = question_done, .free = question_free};
	return &q->task;
}

static void fire(void *arg)
{
	(void)arg;
	ticks++;
	loop_stop(loop);
	loop_start(loop, &tick, 5 * CLOCK_NS_PER_MS);
}

/* Lets the loop run until *WHAT is VALUE. */
static void until(const int *what, int value)
{
	for (int i = 0; i < 4000 && *what != value; i++)
		loop_run(loop);
	assert_int_equal(*what, value);
}

static void until_atomic(atomic_int *what, int value)
{
	for (int i = 0; i < 4000 && *what != value; i++)
		loop_run(loop);
	assert_int_equal(*what, value);
}

static int setup(void **state)
{
	(void)state;
	begun = runs = frees = 0;
	dones = given_up = ticks = 0;
	if (loop_new(&loop, NULL))
		return -1;
	tick = (struct loop_timer){.fire = fire};
	loop_start(loop, &tick, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	loop_cancel(loop, &tick);
	loop_free(loop);
	return 0;
}

static void test_answers(void **state)
{
	struct question_thread *w = NULL;

	(void)state;
	assert_int_equal(question_thread_new(&w, loop, LONG_MS, 1000, NULL), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(question_thread_ask(w, question_new(i)), 0);
	assert_int_equal(question_thread_count(w), 1000);
	until(&dones, 1000);
	assert_int_equal(question_thread_count(w), 0);
	assert_int_equal(given_up, 0);
	assert_int_equal(frees, 1000);
	assert_int_equal(question_thread_count(NULL), 0);
	question_thread_free(w);
}

static struct loop_timer turn;
static int turns, told, most;

/* Fires once in each turn, before the posts. */
static void turn_fire(void *arg)
{
	(void)arg;
	turns++;
	most = dones - told > most ? dones - told : most;
	told = dones;
	loop_start(loop, &turn, 1);
}

/* A turn of the loop tells a few ends only: timers that are due fire between them. */
static void test_turns(void **state)
{
	struct question_thread *w = NULL;

	(void)state;
	assert_int_equal(question_thread_new(&w, loop, LONG_MS, 1000, NULL), 0);
	for (int i = 0; i < 10 * QUESTION_THREAD_TURN; i++)
		assert_int_equal(question_thread_ask(w, question_new(i)), 0);
	for (int i = 0; i < 2000 && runs < 10 * QUESTION_THREAD_TURN; i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	assert_int_equal(runs, 10 * QUESTION_THREAD_TURN);
	turns = told = most = 0;
	turn = (struct loop_timer){.fire = turn_fire};
	loop_start(loop, &turn, 0);
	until(&dones, 10 * QUESTION_THREAD_TURN);
	assert_int_equal(most, QUESTION_THREAD_TURN);
	assert_true(turns >= 10);
	loop_cancel(loop, &turn);
	question_thread_free(w);
}

/*
 * A question hangs: it is given up after the limit, not before; the loop goes on.  Others that wait
 * are given up, too, and further ones are refused at once, until the thread is back.
 */
static void test_hangs(void **state)
{
	struct question_thread *w = NULL;
	uint64_t before = clock_boot_ns();
	int rc;

	(void)state;
	assert_int_equal(question_thread_new(&w, loop, SHORT_MS, MAX, NULL), 0);
	pthread_mutex_lock(&gate);
	/* On a busy machine a question may be given up before the thread has begun it. */
	do {
		before = clock_boot_ns();
		given_up = ticks = 0;
		frees = 0;
		assert_int_equal(question_thread_ask(w, question_new(-1)), 0);
		assert_int_equal(question_thread_ask(w, question_new(-1)), 0);
		until(&given_up, 2);
	} while (!begun);
	assert_true(clock_boot_ns() - before >= SHORT_MS * CLOCK_NS_PER_MS);
	assert_true(ticks > 0);
	assert_int_equal(frees, 1); /* the thread has the other */
	assert_int_equal(question_thread_count(w), 0);
	assert_int_equal(question_thread_ask(w, question_new(-1)), -EBUSY);
	assert_int_equal(frees, 2);
	pthread_mutex_unlock(&gate);
	until_atomic(&frees, 3); /* its late answer is dropped */
	assert_int_equal(dones, 0);
	for (int i = 0; i < 400 && !dones; i++) {
		given_up = 0;
		rc = question_thread_ask(w, question_new(0));
		if (rc) { /* the one before was too slow, and runs yet */
			assert_int_equal(rc, -EBUSY);
			loop_run(loop);
			continue;
		}
		for (int j = 0; j < 4000 && !dones && !given_up; j++)
			loop_run(loop);
	}
	assert_int_equal(dones, 1);
	question_thread_free(w);
}

static void test_full(void **state)
{
	struct question_thread *w = NULL;

	(void)state;
	assert_int_equal(question_thread_new(&w, loop, LONG_MS, MAX, NULL), 0);
	pthread_mutex_lock(&gate);
	for (int i = 0; i < MAX; i++)
		assert_int_equal(question_thread_ask(w, question_new(i)), 0);
	assert_int_equal(question_thread_ask(w, question_new(99)), -ENOBUFS);
	assert_int_equal(frees, 1);
	pthread_mutex_unlock(&gate);
	until(&dones, MAX);
	assert_int_equal(question_thread_ask(w, question_new(MAX)), 0);
	until(&dones, MAX + 1);
	question_thread_free(w);
}

/* Nobody hears of a forgotten question, whether it waits, runs or has run. */
static void test_forget(void **state)
{
	struct question_task *q[MAX];
	struct question_thread *w = NULL;

	(void)state;
	assert_int_equal(question_thread_new(&w, loop, LONG_MS, MAX, NULL), 0);
	pthread_mutex_lock(&gate);
	for (int i = 0; i < 4; i++)
		assert_int_equal(question_thread_ask(w, q[i] = question_new(i == 2 ? 0 : 99)), 0);
	until_atomic(&begun, 1);
	question_thread_forget(w, q[3]);
	question_thread_forget(w, q[1]);
	assert_int_equal(frees, 2);
	question_thread_forget(w, q[0]);
	assert_int_equal(frees, 2);
	pthread_mutex_unlock(&gate);
	until(&dones, 1);
	assert_int_equal(frees, 4);
	assert_int_equal(question_thread_count(w), 0);
	/* The list is whole: what comes now is asked. */
	assert_int_equal(question_thread_ask(w, q[0] = question_new(99)), 0);
	for (int i = 0; i < 2000 && runs < 3; i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	question_thread_forget(w, q[0]);
	assert_int_equal(question_thread_ask(w, question_new(1)), 0);
	until(&dones, 2);
	assert_int_equal(frees, 6);
	question_thread_free(w);
}

/* Open questions are freed at the end; the one that runs, by the thread, which is left behind. */
static void test_end(void **state)
{
	struct question_thread *w = NULL;

	(void)state;
	question_thread_free(NULL);
	assert_int_equal(question_thread_new(&w, loop, LONG_MS, MAX, NULL), 0);
	question_thread_free(w); /* never asked */
	assert_int_equal(question_thread_new(&w, loop, LONG_MS, MAX, NULL), 0);
	pthread_mutex_lock(&gate);
	for (int i = 0; i < 3; i++)
		assert_int_equal(question_thread_ask(w, question_new(99)), 0);
	until_atomic(&begun, 1);
	question_thread_free(w);
	assert_int_equal(frees, 0);
	pthread_mutex_unlock(&gate);
	until_atomic(&frees, 3);
	/* The same for one that has run, and whose end was not told. */
	assert_int_equal(question_thread_new(&w, loop, LONG_MS, MAX, NULL), 0);
	assert_int_equal(question_thread_ask(w, question_new(99)), 0);
	for (int i = 0; i < 2000 && runs < 2; i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	question_thread_free(w);
	until_atomic(&frees, 4);
	assert_int_equal(dones, 0);
}

/*
 * A thread that gets no processor has not begun its question: the question is taken back, and the
 * thread serves again.  With one processor and no time to wait, the thread is nearly always late.
 */
static void test_no_cpu(void **state)
{
	cpu_set_t one, before;
	struct question_thread *w = NULL;
	int taken_back = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(question_thread_new(&w, loop, 0, MAX, NULL), 0);
	for (int i = 0; i < 2000 && !taken_back; i++) {
		int was = begun, freed = frees, rc = question_thread_ask(w, question_new(dones));

		given_up = 0;
		if (rc) { /* one that was given up while it ran */
			assert_int_equal(rc, -EBUSY);
			loop_run(loop);
			continue;
		}
		while (frees == freed)
			loop_run(loop);
		taken_back += given_up && begun == was;
	}
	assert_true(taken_back > 0);
	question_thread_free(w);
	/* The same thread answers after that, if it has time. */
	dones = 0;
	assert_int_equal(question_thread_new(&w, loop, LONG_MS, MAX, NULL), 0);
	assert_int_equal(question_thread_ask(w, question_new(0)), 0);
	until(&dones, 1);
	question_thread_free(w);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* --- under libfaketime ------------------------------------------------------------------ */

static const char *self;

/* Runs this program with the clock of date SHIFT off; returns its exit status. */
static int run_faked(const char *library, const char *shift)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		setenv("LD_PRELOAD", library, 1);
		setenv("FAKETIME", shift, 1);
		setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
		setenv("TEST_WORKER_FAKED", "1", 1);
		if (!freopen("/dev/null", "w", stdout))
			_exit(126);
		execl(self, self, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* libfaketime leaves what it shares between processes when one ends by exec or is killed. */
static void forget_faked(void)
{
	glob_t found = {0};

	if (!glob("/dev/shm/*faketime*", 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++) {
			const char *end = strrchr(found.gl_pathv[i], '_');

			if (end && kill((pid_t)atoi(end + 1), 0) && errno == ESRCH)
				unlink(found.gl_pathv[i]);
		}
	globfree(&found);
}

static void test_faked_clock(void **state)
{
	glob_t found = {0};

	(void)state;
	if (getenv("IOCOM_SANITIZED")) {
		print_message("a sanitizer must be the first library\n");
		skip();
	}
	if (glob("/usr/lib/*/faketime/libfaketimeMT.so.1", 0, NULL, &found)) {
		print_message("libfaketime is not installed\n");
		skip();
	}
	assert_int_equal(run_faked(found.gl_pathv[0], "-300s"), 0);
	assert_int_equal(run_faked(found.gl_pathv[0], "+300s"), 0);
	globfree(&found);
	forget_faked();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_answers), TEST(test_turns), TEST(test_hangs),	 TEST(test_full),
		TEST(test_forget),  TEST(test_end),   TEST(test_no_cpu),
	};
	const struct CMUnitTest faked[] = {cmocka_unit_test(test_faked_clock)};
	int failed;

	(void)argc;
	self = argv[0];
	failed = cmocka_run_group_tests_name("question_thread", tests, NULL, NULL);
	if (!getenv("TEST_WORKER_FAKED"))
		failed += cmocka_run_group_tests_name("question_thread under libfaketime", faked,
						      NULL, NULL);
	return failed;
}
