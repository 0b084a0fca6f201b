/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Where the agent listens: numeric forms of addresses, and sockets that listen there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/listen.h"
#include "agent/cluster/stream.h"

static void is_numeric(const char *address, const char *numeric)
{
	char out[IOCOM_ADDRESS_MAX];

	assert_int_equal(listen_numeric(out, address, NULL), 0);
	assert_string_equal(out, numeric);
}

static void test_numeric(void **state)
{
	char out[IOCOM_ADDRESS_MAX];

	(void)state;
	is_numeric("192.0.2.7", "192.0.2.7");
	is_numeric("0.0.0.0", "0.0.0.0");
	is_numeric("::", "[::]");
	is_numeric("[::1]", "[::1]");
	is_numeric("2001:db8:0:0::7", "[2001:db8::7]");
	assert_int_equal(listen_numeric(out, "localhost", NULL), 0);
	assert_true(!strcmp(out, "127.0.0.1") || !strcmp(out, "[::1]"));
}

static void test_no_address(void **state)
{
	static const char *const all[] = {
		"",
		"[]",
		"no.such.name.invalid",
		"1.2.3.4.5",
		"[::1",
		"0123456789012345678901234567890123456789012345678901234567890123456789"};
	char out[IOCOM_ADDRESS_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct iocom_err err = {0};

		assert_int_equal(listen_numeric(out, all[i], &err), -EADDRNOTAVAIL);
		assert_string_equal(out, "");
		assert_non_null(strstr(err.text, "cannot listen at "));
	}
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in sa;
	socklen_t n = sizeof(sa);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	assert_int_equal(sa.sin_family, AF_INET);
	return ntohs(sa.sin_port);
}

static void test_listens(void **state)
{
	struct iocom_err err = {0};
	int fd, again;
	char words[64];

	(void)state;
	assert_int_equal(streams_listen(&fd, "127.0.0.1", 0, NULL), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(accept(fd, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(streams_listen(&again, "127.0.0.1", port_of(fd), &err), -EADDRINUSE);
	assert_int_equal(again, -1);
	snprintf(words, sizeof(words),
		 "cannot take job streams at 127.0.0.1 port %u: ", port_of(fd));
	assert_non_null(strstr(err.text, words));
	assert_non_null(strstr(err.text, "perhaps by another iocomd"));
	close(fd);
	assert_int_equal(streams_listen(&fd, "192.0.2.7", 0, &err), -EADDRNOTAVAIL);
	assert_int_equal(fd, -1);
	assert_int_equal(streams_listen(&fd, "no.such.name.invalid", 0, &err), -EADDRNOTAVAIL);
	assert_int_equal(fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numeric),
		cmocka_unit_test(test_no_address),
		cmocka_unit_test(test_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
