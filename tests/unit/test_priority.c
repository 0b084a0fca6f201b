/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Threads of libraries run below the loop's level; threads that were there before keep theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/base/priority.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *stay(void *arg)
{
	*(_Atomic pid_t *)arg = gettid();
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return NULL;
}

static pthread_t start(_Atomic pid_t *id)
{
	pthread_t thread;

	*id = 0;
	assert_int_equal(pthread_create(&thread, NULL, stay, (void *)id), 0);
	while (!*id)
		usleep(1000);
	return thread;
}

static int level(pid_t thread)
{
	return getpriority(PRIO_PROCESS, (id_t)thread);
}

static int below(int own)
{
	return own + PRIORITY_LEVELS < 19 ? own + PRIORITY_LEVELS : 19;
}

static void test_levels(void **state)
{
	_Atomic pid_t before, after;
	struct priority_mark mark;
	pthread_t threads[2];
	int own = level(gettid());

	(void)state;
	pthread_mutex_lock(&gate);
	threads[0] = start(&before);
	priority_mark(&mark);
	assert_int_equal(mark.count, 2);
	assert_int_equal(priority_lower(&mark), 0);
	threads[1] = start(&after);
	assert_int_equal(priority_lower(&mark), 1);
	assert_int_equal(level(after), below(own));
	assert_int_equal(level(before), own);
	assert_int_equal(level(gettid()), own);
	assert_int_equal(level(getpid()), own);
	/* Again: a level is set, not added. */
	assert_int_equal(priority_lower(&mark), 1);
	assert_int_equal(level(after), below(own));
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* nng starts its threads with its first socket, and no others later. */
static void test_nng(void **state)
{
	struct priority_mark mark;
	nng_socket first, second;
	size_t n;

	(void)state;
	priority_mark(&mark);
	assert_int_equal(nng_pub0_open(&first), 0);
	n = priority_lower(&mark);
	assert_in_range(n, 1, 1000);
	assert_int_equal(nng_pub0_open(&second), 0);
	assert_int_equal(nng_listen(second, "tcp://127.0.0.1:0", NULL, 0), 0);
	assert_int_equal(priority_lower(&mark), n);
	nng_close(first);
	nng_close(second);
}

/* If more threads are there than are remembered, none is lowered by mistake. */
static void test_many(void **state)
{
	_Atomic pid_t ids[PRIORITY_THREADS];
	pthread_t threads[PRIORITY_THREADS];
	struct priority_mark mark;
	int own = level(gettid());

	(void)state;
	pthread_mutex_lock(&gate);
	for (int i = 0; i < PRIORITY_THREADS; i++)
		threads[i] = start(&ids[i]);
	priority_mark(&mark);
	assert_int_equal(mark.count, PRIORITY_THREADS);
	assert_int_equal(priority_lower(&mark), 0);
	for (int i = 0; i < PRIORITY_THREADS; i++)
		assert_int_equal(level(ids[i]), own);
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < PRIORITY_THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_nng),
	};

	return cmocka_run_group_tests_name("priority", tests, NULL, NULL);
}
