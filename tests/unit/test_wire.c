/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How long a silent peer counts as present: the kernel's settings, and its answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/stage.h"
#include "user/wire.h"

static int option(int fd, int level, int name)
{
	socklen_t length = sizeof(int);
	int value = -1;

	assert_int_equal(getsockopt(fd, level, name, &value, &length), 0);
	return value;
}

/* Returns the seconds after which the kernel gives up an idle connection. */
static int patience(int fd)
{
	assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	return option(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
	       option(fd, IPPROTO_TCP, TCP_KEEPINTVL) * option(fd, IPPROTO_TCP, TCP_KEEPCNT);
}

static void test_idle_peer(void **state)
{
	struct wire wire;
	int fd[2];

	(void)state;
	stage_pair(fd);
	assert_int_equal(wire_init(&wire, fd[0], NULL), 0);
	assert_in_range(patience(wire.fd), 1, WIRE_SILENCE_S);
	/* A peer that does not read must not count as gone for that. */
	assert_int_equal(option(wire.fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
	for (unsigned s = 1; s <= 3600; s += 7) {
		wire_patience(&wire, s);
		/* A setting is exact to one second or to one twentieth of itself. */
		assert_in_range(patience(wire.fd), s, s + 1 + s / 20);
		assert_int_equal(wire.silence_s, s);
	}
	wire_deinit(&wire);
	close(fd[1]);
}

static void test_peer_that_does_not_read(void **state)
{
	static char full[FRAME_DATA_MAX];
	struct wire wire;
	int fd[2];

	(void)state;
	stage_pair(fd);
	assert_int_equal(wire_init(&wire, fd[0], NULL), 0);
	for (int i = 0; i < 1000 && wire_idle(&wire); i++)
		assert_int_equal(wire_data(&wire, 1, 0, full, sizeof(full)), 0);
	assert_false(wire_idle(&wire));
	/*
	 * The peer's window is closed, so window probes are sent, and the peer's kernel answers
	 * them.
	 */
	wire_patience(&wire, 1);
	for (int i = 0; i < 5; i++) {
		usleep(500000);
		assert_false(wire_silent(&wire));
	}
	wire_deinit(&wire);
	close(fd[1]);
}

static void test_local_peer(void **state)
{
	struct wire wire;
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	assert_int_equal(wire_init(&wire, fd[0], NULL), 0);
	assert_false(wire_silent(&wire));
	assert_int_equal(wire_look_ms(&wire), WIRE_LOOK_MS);
	wire_deinit(&wire);
	assert_false(wire_silent(&wire));
	close(fd[1]);
}

/* Another process may share the socket and clear its flags, or let it linger: nothing waits. */
static void test_shared_socket(void **state)
{
	const struct linger hour = {.l_onoff = 1, .l_linger = 3600};
	static char full[FRAME_DATA_MAX];
	struct wire wire;
	int fd[2], theirs;

	(void)state;
	alarm(60);
	stage_pair(fd);
	theirs = fcntl(fd[0], F_DUPFD_CLOEXEC, 3);
	assert_int_equal(wire_init(&wire, fd[0], NULL), 0);
	assert_int_equal(fcntl(theirs, F_SETFL, 0), 0);
	assert_int_equal(setsockopt(theirs, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
	close(theirs);
	assert_int_equal(wire_fill(&wire), 0);
	for (int i = 0; i < 1000 && wire_idle(&wire); i++)
		assert_int_equal(wire_data(&wire, 1, 0, full, sizeof(full)), 0);
	assert_false(wire_idle(&wire));
	assert_int_equal(wire_flush(&wire), 0);
	wire_deinit(&wire);
	close(fd[1]);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_peer),
		cmocka_unit_test(test_peer_that_does_not_read),
		cmocka_unit_test(test_local_peer),
		cmocka_unit_test(test_shared_socket),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
