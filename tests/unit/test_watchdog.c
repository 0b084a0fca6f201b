/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What systemd's watchdog hears: a socket of ours stands for systemd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/watchdog.h"
#include "user/clock.h"

#define BEGIN_NS (1000 * CLOCK_NS_PER_S)

struct stand {
	struct loop *loop;
	struct watchdog watchdog;
	struct loop_timer stuck;
	int systemd; /* the socket */
	unsigned heard_while_stuck;
};

static int begin(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(sa);
	static struct stand s;
	char path[128];

	s = (struct stand){0};
	*state = &s;
	assert_int_equal(loop_new_virtual(&s.loop, BEGIN_NS, BEGIN_NS, NULL), 0);
	s.systemd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The kernel makes up an abstract name. */
	assert_int_equal(bind(s.systemd, (struct sockaddr *)&sa, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(s.systemd, (struct sockaddr *)&sa, &length), 0);
	snprintf(path, sizeof(path), "@%.*s", (int)(length - sizeof(sa_family_t) - 1),
		 sa.sun_path + 1);
	setenv("NOTIFY_SOCKET", path, 1);
	setenv("WATCHDOG_USEC", "30000000", 1);
	unsetenv("WATCHDOG_PID");
	return 0;
}

static int end(void **state)
{
	struct stand *s = *state;

	loop_free(s->loop);
	close(s->systemd);
	return 0;
}

/* How many messages came since the last call; each must be WATCHDOG=1. */
static unsigned heard(struct stand *s)
{
	char text[64];
	unsigned count = 0;
	ssize_t n;

	while ((n = recv(s->systemd, text, sizeof(text), 0)) >= 0) {
		assert_int_equal(n, strlen("WATCHDOG=1"));
		assert_memory_equal(text, "WATCHDOG=1", (size_t)n);
		count++;
	}
	assert_int_equal(errno, EAGAIN);
	return count;
}

static void test_every_half_period(void **state)
{
	struct stand *s = *state;

	watchdog_start(&s->watchdog, s->loop);
	loop_advance(s->loop, 0);
	assert_int_equal(heard(s), 1);
	loop_advance(s->loop, 14999 * CLOCK_NS_PER_MS);
	assert_int_equal(heard(s), 0);
	loop_advance(s->loop, CLOCK_NS_PER_MS);
	assert_int_equal(heard(s), 1);
	for (unsigned i = 0; i < 6; i++) { /* read in time: the socket's queue is short */
		loop_advance(s->loop, 15 * CLOCK_NS_PER_S);
		assert_int_equal(heard(s), 1);
	}
	/* Nothing but the loop feeds it. */
	usleep(1000);
	assert_int_equal(heard(s), 0);
}

static void stay(void *arg)
{
	struct stand *s = arg;

	usleep(300000); /* six half periods */
	s->heard_while_stuck = heard(s);
	loop_stop(s->loop);
}

/* A handler that does not return in time: nothing is said meanwhile, on the real clock. */
static void test_not_while_stuck(void **state)
{
	struct stand *s = *state;

	loop_free(s->loop);
	assert_int_equal(loop_new(&s->loop, NULL), 0);
	setenv("WATCHDOG_USEC", "100000", 1);
	watchdog_start(&s->watchdog, s->loop);
	s->stuck = (struct loop_timer){.fire = stay, .arg = s};
	loop_start(s->loop, &s->stuck, 0);
	assert_int_equal(loop_run(s->loop), 0);
	/* What was said before the handler began. */
	assert_int_equal(s->heard_while_stuck, 1);
	assert_int_equal(heard(s), 0);
}

static void test_whose_watchdog(void **state)
{
	static const char *const none[] = {"", "0", "-1", "x", "5x", " 5", "99999999999999999999"};
	struct stand *s = *state;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(watchdog_period_us(), 30000000);
	snprintf(pid, sizeof(pid), "%d", (int)getppid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(watchdog_period_us(), 0);
	watchdog_start(&s->watchdog, s->loop);
	loop_advance(s->loop, 60 * CLOCK_NS_PER_S);
	assert_int_equal(heard(s), 0);
	setenv("WATCHDOG_PID", "", 1);
	assert_int_equal(watchdog_period_us(), 0);
	unsetenv("WATCHDOG_PID");
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		setenv("WATCHDOG_USEC", none[i], 1);
		assert_int_equal(watchdog_period_us(), 0);
	}
	unsetenv("WATCHDOG_USEC");
	assert_int_equal(watchdog_period_us(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_half_period, begin, end),
		cmocka_unit_test_setup_teardown(test_not_while_stuck, begin, end),
		cmocka_unit_test_setup_teardown(test_whose_watchdog, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
