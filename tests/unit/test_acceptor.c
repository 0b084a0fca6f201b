/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Connections when there is no descriptor left, on a virtual clock, and what is reserved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/acceptor.h"
#include "user/clock.h"

#define BEGIN_NS (1000 * CLOCK_NS_PER_S)

struct stand {
	struct logger log;
	struct counters counters;
	struct base base;
	struct acceptor acceptor;
	struct rlimit limit;
	struct sockaddr_un address;
	socklen_t length;
	int listener;
	unsigned came;
	bool rests;
};

static void came(void *arg, int fd, const struct sockaddr *from, socklen_t length)
{
	struct stand *s = arg;

	assert_int_equal(from->sa_family, AF_UNIX);
	assert_true(length >= sizeof(sa_family_t));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	s->came++;
	if (s->rests)
		acceptor_rest(&s->acceptor);
	close(fd);
}

static int begin(void **state)
{
	static struct stand s;

	s = (struct stand){.base = {.log = &s.log, .counters = &s.counters}};
	*state = &s;
	log_init(&s.log, "test");
	s.address.sun_family = AF_UNIX; /* the kernel makes up an abstract name */
	s.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	s.length = sizeof(sa_family_t);
	assert_int_equal(bind(s.listener, (struct sockaddr *)&s.address, s.length), 0);
	s.length = sizeof(s.address);
	assert_int_equal(getsockname(s.listener, (struct sockaddr *)&s.address, &s.length), 0);
	assert_int_equal(listen(s.listener, 128), 0);
	assert_int_equal(loop_new_virtual(&s.base.loop, BEGIN_NS, BEGIN_NS, NULL), 0);
	s.acceptor = (struct acceptor){.came = came, .arg = &s};
	assert_int_equal(acceptor_start(&s.acceptor, &s.base, s.listener), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &s.limit), 0);
	return 0;
}

static int end(void **state)
{
	struct stand *s = *state;

	setrlimit(RLIMIT_NOFILE, &s->limit);
	acceptor_stop(&s->acceptor);
	loop_free(s->base.loop);
	close(s->listener);
	return 0;
}

static int dial(const struct stand *s)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&s->address, s->length), 0);
	return fd;
}

/* Sets the limit of open files; with 0 no more can be opened. */
static void allow(const struct stand *s, rlim_t descriptors)
{
	struct rlimit limit = {descriptors, s->limit.rlim_max};

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void test_takes_all_that_wait(void **state)
{
	struct stand *s = *state;
	int fds[40];

	for (size_t i = 0; i < 40; i++)
		fds[i] = dial(s);
	loop_advance(s->base.loop, 0);
	assert_int_equal(s->came, 40);
	assert_int_equal(s->counters.accepts_paused, 0);
	for (size_t i = 0; i < 40; i++)
		close(fds[i]);
}

/* Without the pause, the first loop_advance would not return. */
static void test_waits_without_descriptors(void **state)
{
	struct stand *s = *state;
	int fd = dial(s);

	alarm(60);
	allow(s, 0);
	loop_advance(s->base.loop, 0);
	assert_int_equal(s->counters.accepts_paused, 1);
	loop_advance(s->base.loop, CLOCK_NS_PER_S);
	assert_int_equal(s->counters.accepts_paused, 11);
	assert_int_equal(s->came, 0);
	allow(s, s->limit.rlim_cur);
	loop_advance(s->base.loop, 99 * CLOCK_NS_PER_MS);
	assert_int_equal(s->came, 0);
	loop_advance(s->base.loop, CLOCK_NS_PER_MS);
	assert_int_equal(s->came, 1);
	loop_advance(s->base.loop, CLOCK_NS_PER_S);
	assert_int_equal(s->counters.accepts_paused, 11);
	alarm(0);
	close(fd);
}

/* An acceptor that ends while it waits does not come back. */
static void test_ends_while_it_waits(void **state)
{
	struct stand *s = *state;
	int fd = dial(s);

	alarm(60);
	allow(s, 0);
	loop_advance(s->base.loop, 0);
	allow(s, s->limit.rlim_cur);
	acceptor_stop(&s->acceptor);
	loop_advance(s->base.loop, CLOCK_NS_PER_S);
	assert_int_equal(s->came, 0);
	alarm(0);
	close(fd);
}

/* While those that come are of a user that must wait, one is taken in a millisecond. */
static void test_rests(void **state)
{
	struct stand *s = *state;
	int fds[10];

	for (size_t i = 0; i < 10; i++)
		fds[i] = dial(s);
	s->rests = true;
	loop_advance(s->base.loop, 0);
	assert_int_equal(s->came, 1);
	loop_advance(s->base.loop, 5 * CLOCK_NS_PER_MS);
	assert_int_equal(s->came, 6);
	s->rests = false;
	loop_advance(s->base.loop, CLOCK_NS_PER_MS);
	assert_int_equal(s->came, 10);
	assert_int_equal(s->counters.accepts_paused, 0);
	for (size_t i = 0; i < 10; i++)
		close(fds[i]);
}

static void test_errors(void **state)
{
	(void)state;
	assert_true(acceptor_must_wait(EMFILE) && acceptor_must_wait(ENFILE));
	assert_true(acceptor_must_wait(ENOMEM) && acceptor_must_wait(ENOBUFS));
	assert_false(acceptor_must_wait(EAGAIN) || acceptor_must_wait(ECONNABORTED));
}

/* How many descriptors this process has open, or what stands for that in older kernels. */
static rlim_t opened(int newest)
{
	DIR *dir = opendir("/proc/self/fd");
	struct stat st;
	rlim_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	assert_int_equal(stat("/proc/self/fd", &st), 0);
	return st.st_size ? n - 3 /* ".", "..", and the directory */ : (rlim_t)newest + 1;
}

static void test_reserve(void **state)
{
	struct stand *s = *state;
	int newest = dial(s);
	rlim_t n = opened(newest);

	if (s->limit.rlim_max < n + DESCRIPTORS_RESERVED)
		skip();
	allow(s, n + DESCRIPTORS_RESERVED);
	assert_false(descriptors_scarce(newest));
	allow(s, n + DESCRIPTORS_RESERVED - 1);
	assert_true(descriptors_scarce(newest));
	allow(s, 0);
	assert_true(descriptors_scarce(newest));
	close(newest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_takes_all_that_wait, begin, end),
		cmocka_unit_test_setup_teardown(test_waits_without_descriptors, begin, end),
		cmocka_unit_test_setup_teardown(test_ends_while_it_waits, begin, end),
		cmocka_unit_test_setup_teardown(test_rests, begin, end),
		cmocka_unit_test(test_errors),
		cmocka_unit_test_setup_teardown(test_reserve, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
