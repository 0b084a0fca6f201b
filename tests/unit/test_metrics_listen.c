/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The listening socket of /metrics: addresses, and what is said when one cannot be had. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/metrics/metrics_listen.h"

static uint16_t port_of(int listener)
{
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);

	assert_int_equal(getsockname(listener, (struct sockaddr *)&own, &length), 0);
	return ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
					       : ((struct sockaddr_in *)&own)->sin_port);
}

static void test_in_use(void **state)
{
	struct iocom_err err = {0};
	int first, second;
	char port[16];

	(void)state;
	assert_int_equal(metrics_listen(&first, "127.0.0.1", 0, &err), 0);
	assert_true(fcntl(first, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(first, F_GETFD) & FD_CLOEXEC);
	snprintf(port, sizeof(port), "%u", port_of(first));
	assert_int_equal(metrics_listen(&second, "127.0.0.1", port_of(first), &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, port));
	assert_int_equal(second, -1);
	close(first);
}

static void test_addresses(void **state)
{
	static const char *const good[] = {"0.0.0.0", "::1", "[::1]"}; /* forms of the setting */
	struct iocom_err err = {0};
	int fd;

	(void)state;
	assert_int_equal(metrics_listen(&fd, "localhost", 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "localhost"));
	/* An address that is not ours (TEST-NET-1). */
	assert_int_equal(metrics_listen(&fd, "192.0.2.1", 0, &err), -EADDRNOTAVAIL);
	assert_non_null(strstr(err.text, "192.0.2.1"));
	assert_int_equal(metrics_listen(&fd, "", 0, &err), -EINVAL);
	assert_int_equal(fd, -1);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		int rc = metrics_listen(&fd, good[i], 0, &err);

		if (rc == -EAFNOSUPPORT || (i && rc == -EADDRNOTAVAIL)) {
			print_message("# no IPv6 here: %s is not tried\n", good[i]);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_true(port_of(fd) != 0);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_use),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
