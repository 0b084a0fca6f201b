/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What links to other nodes do, from the kernel's word of connections (links.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/tcp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/measure/links.h"

#define SECOND 1000000000ull

static struct link_socket connection(const char *address, uint64_t cookie, uint64_t acked)
{
	struct link_socket s = {.cookie = cookie,
				.acked = acked,
				.delivery_bytes_per_s = 3000000,
				.min_rtt_us = 400};

	snprintf(s.address, sizeof(s.address), "%s", address);
	return s;
}

static void look_at(struct links *l, uint64_t now_ns, const struct link_socket *list, size_t n)
{
	links_begin(l, now_ns);
	for (size_t i = 0; i < n; i++)
		links_note(l, &list[i]);
	links_end(l);
}

static void rates_are_what_was_carried(void **state)
{
	struct links *l = links_new();
	struct link_socket s[3] = {connection("10.0.0.2", 1, 500000), connection("10.0.0.2", 2, 0),
				   connection("10.9.9.9", 3, 0)};
	const struct link_rate *r;

	(void)state;
	assert_int_equal(links_watch(l, "10.0.0.2"), 0);
	assert_int_equal(links_watch(l, "10.0.0.2"), 0);
	assert_int_equal(links_watch(l, ""), 0);
	assert_null(links_find(l, "10.9.9.9"));
	r = links_find(l, "10.0.0.2");
	assert_true(r->round_trip_ms < 0);
	look_at(l, 10 * SECOND, s, 3);
	/* What a connection carried before it was seen is not known to be of this time. */
	assert_true(r->carried_mb_per_s == 0 && r->at_least_mb_per_s == 0 && r->tcp_ns == 0);
	assert_int_equal(r->connections, 2);
	assert_true(r->round_trip_ms == 0.4 && r->round_trip_ns == 10 * SECOND);
	s[0].acked += 2000000;
	s[1].acked += 1000000;
	s[1].received += 500000;
	s[1].min_rtt_us = 250;
	look_at(l, 12 * SECOND, s, 3);
	assert_true(r->carried_mb_per_s == 1.5 && r->at_least_mb_per_s == 1.5);
	assert_true(r->tcp_mb_per_s == 3 && r->tcp_ns == 12 * SECOND);
	assert_true(r->round_trip_ms == 0.25);
	/* Less is carried now; one connection is gone. */
	s[0].acked += 100000;
	s[0].app_limited = true;
	s[0].delivery_bytes_per_s = 9000000;
	look_at(l, 13 * SECOND, s, 1);
	assert_true(r->carried_mb_per_s == 0.1 && r->at_least_mb_per_s == 1.5);
	assert_true(r->at_least_ns == 12 * SECOND && r->tcp_mb_per_s == 3);
	assert_int_equal(r->connections, 1);
	/* Nothing is said of a link that is not in use; its round trip keeps its age. */
	look_at(l, 14 * SECOND, s, 0);
	assert_true(r->connections == 0 && r->round_trip_ns == 13 * SECOND);
	links_free(l);
}

static void ports_are_what_is_known(void **state)
{
	struct iocom_vector v = {.address = "10.0.0.2", .sent_mb_per_s = 1, .received_mb_per_s = 2};
	struct rules_port port = {.slots = 5};
	struct links *l = links_new();
	struct link_socket s = connection("10.0.0.2", 1, 0);

	(void)state;
	links_watch(l, "10.0.0.2");
	links_port(NULL, &v, &port);
	assert_true(port.mb_per_s == 0 && port.busy_mb_per_s == 2 && port.round_trip_ms == 0);
	links_port(l, &v, &port);
	assert_true(port.mb_per_s == 0 && port.round_trip_ms == 0);
	look_at(l, SECOND, &s, 1);
	s.acked += 2000000;
	look_at(l, 2 * SECOND, &s, 1);
	links_port(l, &v, &port);
	assert_true(port.mb_per_s == 3 && port.round_trip_ms == 0.4 && port.slots == 5);
	v.network_mb_per_s = 125;
	links_port(l, &v, &port);
	assert_true(port.mb_per_s == 125);
	/* Whoever configured less than was carried was wrong. */
	v.network_mb_per_s = 1;
	links_port(l, &v, &port);
	assert_true(port.mb_per_s == 2);
	links_free(l);
}

static void small_or_odd_counts_say_nothing(void **state)
{
	struct links *l = links_new();
	struct link_socket s = connection("10.0.0.2", 1, 5000000);
	const struct link_rate *r;

	(void)state;
	links_watch(l, "10.0.0.2");
	r = links_find(l, "10.0.0.2");
	look_at(l, SECOND, &s, 1);
	s.acked += LINKS_BULK_BYTES - 1;
	look_at(l, 2 * SECOND, &s, 1);
	assert_true(r->tcp_ns == 0);
	s.acked = 0; /* a count that falls is another connection's */
	look_at(l, 3 * SECOND, &s, 1);
	assert_true(r->carried_mb_per_s == 0);
	s.acked = 1000000;
	look_at(l, 3 * SECOND, &s, 1); /* no time passed */
	assert_true(r->carried_mb_per_s == 0 && isfinite(r->at_least_mb_per_s));
	links_free(l);
}

static void bounds_hold(void **state)
{
	struct links *l = links_new();
	char address[IOCOM_ADDRESS_MAX];
	struct link_socket s = connection("10.1.0.0", 1, 0);

	(void)state;
	for (unsigned i = 0; i < LINKS_PEERS_MAX; i++) {
		snprintf(address, sizeof(address), "10.1.%u.%u", i / 256, i % 256);
		assert_int_equal(links_watch(l, address), 0);
	}
	assert_int_equal(links_watch(l, "10.2.0.0"), -ENOSPC);
	for (int round = 0; round < 3; round++) {
		links_begin(l, (uint64_t)(round + 1) * SECOND);
		for (uint64_t i = 1; i <= LINKS_SOCKETS_MAX + 10; i++) {
			s.cookie = i;
			links_note(l, &s);
		}
		links_end(l);
	}
	assert_int_equal(links_dropped(l), 30);
	assert_int_equal(links_find(l, "10.1.0.0")->connections, LINKS_SOCKETS_MAX);
	links_free(l);
	links_free(NULL);
}

/* --- messages ----------------------------------------------------------------------------- */

struct message {
	struct inet_diag_msg m;
	struct nlattr other;
	uint32_t value;
	struct nlattr attribute;
	struct tcp_info info;
} __attribute__((packed));

static struct message message_good(void)
{
	struct message m = {
		.m = {.idiag_family = AF_INET6},
		.other = {.nla_len = 8, .nla_type = INET_DIAG_MARK},
		.attribute = {.nla_len = sizeof(struct nlattr) + sizeof(struct tcp_info),
			      .nla_type = INET_DIAG_INFO}};

	inet_pton(AF_INET6, "::ffff:10.0.0.2", m.m.id.idiag_dst);
	m.m.id.idiag_cookie[0] = 7;
	m.info.tcpi_bytes_acked = 1234;
	m.info.tcpi_min_rtt = 99;
	return m;
}

static void messages_are_read_within_their_length(void **state)
{
	struct message m = message_good();
	struct link_socket s;

	(void)state;
	assert_int_equal(links_parse(&m, sizeof(m), &s), 0);
	assert_string_equal(s.address, "10.0.0.2");
	assert_true(s.cookie == 7 && s.acked == 1234 && s.min_rtt_us == 99);
	for (size_t n = 0; n < sizeof(m); n++) {
		void *copy = malloc(n + 1); /* a sanitizer sees a look beyond the end */

		memcpy(copy, &m, n);
		links_parse(copy, n, &s);
		free(copy);
	}
	m.attribute.nla_len = 3;
	assert_int_equal(links_parse(&m, sizeof(m), &s), -EINVAL);
	m.attribute.nla_len = 5000;
	assert_int_equal(links_parse(&m, sizeof(m), &s), -EINVAL);
	m.attribute.nla_len = 20; /* a kernel that tells less */
	assert_int_equal(links_parse(&m, sizeof(m), &s), -EINVAL);
	m = message_good();
	m.m.idiag_family = AF_UNIX;
	assert_int_equal(links_parse(&m, sizeof(m), &s), -EINVAL);
	m = message_good();
	m.m.id.idiag_cookie[0] = 0;
	assert_int_equal(links_parse(&m, sizeof(m), &s), -EINVAL);
}

/* --- the kernel ----------------------------------------------------------------------------- */

static void the_kernel_counts_a_connection(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), client, server;
	struct links *l = links_new();
	const struct link_rate *r;
	static char buffer[1000000];
	socklen_t size = sizeof(a);
	struct iocom_err err = {0};
	size_t got = 0;

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&a, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &size), 0);
	client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&a, size), 0);
	server = accept(listener, NULL, NULL);
	assert_true(server >= 0);
	links_watch(l, "127.0.0.2");
	r = links_find(l, "127.0.0.2");
	if (links_look(l, SECOND, &err)) {
		print_message("skipped: %s\n", err.text);
		skip();
	}
	assert_true(r->connections >= 1 && r->carried_mb_per_s == 0);
	while (got < sizeof(buffer)) {
		ssize_t n = send(client, buffer, sizeof(buffer) - got, MSG_DONTWAIT);

		got += n > 0 ? (size_t)n : 0;
		while (recv(server, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
			;
	}
	assert_int_equal(links_look(l, 2 * SECOND, &err), 0);
	/* The last segment's acknowledgement may be under way: never more than was sent. */
	assert_true(r->carried_mb_per_s > 0.5 && r->carried_mb_per_s <= 1.0);
	assert_true(r->at_least_mb_per_s == r->carried_mb_per_s);
	assert_true(r->round_trip_ms > 0 && r->round_trip_ns == 2 * SECOND);
	close(client);
	close(server);
	close(listener);
	links_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_what_was_carried),
		cmocka_unit_test(ports_are_what_is_known),
		cmocka_unit_test(small_or_odd_counts_say_nothing),
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(messages_are_read_within_their_length),
		cmocka_unit_test(the_kernel_counts_a_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
