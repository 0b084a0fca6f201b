/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A subscription against a publisher that is this test, which sends what it likes, and against
 * nng's own publisher.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>

#include <cmocka.h>

#include "agent/net/subscription.h"
#include "user/clock.h"

#define MESSAGE_MAX 100000
#define PATIENCE_NS (20 * CLOCK_NS_PER_S)
#define PUB	    "\0SP\0\0\x20\0\0"
#define SUB	    "\0SP\0\0\x21\0\0"
#define GREETING    8

struct stand {
	struct loop *loop;
	struct loop_timer patience;
	struct subscription *s;
	/* The publisher. */
	int listener, connection; /* -1: none */
	uint16_t port;
	struct loop_fd listens;
	/* What the subscription did. */
	unsigned connections, came, until_came, until_connections, asked, until_asked;
	bool may, cuts;
	char last[MESSAGE_MAX + 1];
	size_t last_length;
};

static void too_long(void *arg)
{
	(void)arg;
	fail_msg("nothing came");
}

static void look(struct stand *t)
{
	if (t->came >= t->until_came && t->connections >= t->until_connections)
		loop_stop(t->loop);
}

static void came(void *arg, void *message, size_t length)
{
	struct stand *t = arg;

	t->came++;
	memcpy(t->last, message, length);
	t->last[length] = 0;
	t->last_length = length;
	if (t->cuts)
		subscription_cut(t->s);
	look(t);
}

static bool may(void *arg, const struct sockaddr *to)
{
	struct stand *t = arg;

	assert_int_equal(to->sa_family, AF_INET);
	if (++t->asked == t->until_asked)
		loop_stop(t->loop);
	return t->may;
}

/* The newest connection counts; the one before is closed. */
static void connected(void *arg, uint32_t events)
{
	struct stand *t = arg;

	(void)events;
	if (t->connection >= 0)
		close(t->connection);
	t->connection = accept(t->listener, NULL, NULL);
	assert_true(t->connection >= 0);
	t->connections++;
	look(t);
}

static void listen_at(struct stand *t, uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(at);
	int on = 1;

	t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(t->listener >= 0);
	setsockopt(t->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(t->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(t->listener, 5), 0);
	assert_int_equal(getsockname(t->listener, (struct sockaddr *)&at, &n), 0);
	t->port = ntohs(at.sin_port);
	t->listens = (struct loop_fd){.fd = t->listener, .ready = connected, .arg = t};
	assert_int_equal(loop_add(t->loop, &t->listens, EPOLLIN), 0);
}

static void stop_listening(struct stand *t)
{
	loop_remove(t->loop, &t->listens);
	close(t->listener);
	t->listener = -1;
}

static int up(void **state)
{
	struct stand *t = calloc(1, sizeof(*t));
	struct subscription_config config = {
		.message_max = MESSAGE_MAX, .may = may, .came = came, .arg = t};

	*state = t;
	assert_int_equal(loop_new(&t->loop, NULL), 0);
	t->listener = t->connection = -1;
	t->may = true;
	t->patience = (struct loop_timer){.fire = too_long};
	listen_at(t, 0);
	config.loop = config.reads = t->loop;
	t->s = subscription_new(&config);
	assert_non_null(t->s);
	assert_false(subscription_reads(t->s));
	return 0;
}

static int down(void **state)
{
	struct stand *t = *state;

	subscription_free(t->s);
	subscription_free(NULL);
	if (t->connection >= 0)
		close(t->connection);
	if (t->listener >= 0)
		stop_listening(t);
	loop_free(t->loop);
	free(t);
	return 0;
}

static void run(struct stand *t)
{
	loop_start(t->loop, &t->patience, PATIENCE_NS);
	assert_int_equal(loop_run(t->loop), 0);
	loop_cancel(t->loop, &t->patience);
}

/* Runs until N more messages have come. */
static void run_for(struct stand *t, unsigned n)
{
	t->until_came = t->came + n;
	run(t);
}

/* Runs until there are N more connections. */
static void run_to(struct stand *t, unsigned n)
{
	t->until_came = 0;
	t->until_connections = t->connections + n;
	run(t);
}

static void say(const struct stand *t, const void *bytes, size_t n)
{
	assert_int_equal(send(t->connection, bytes, n, MSG_NOSIGNAL), n);
}

static void say_message(const struct stand *t, const char *text)
{
	uint8_t head[8] = {0};

	head[6] = (uint8_t)(strlen(text) >> 8);
	head[7] = (uint8_t)strlen(text);
	say(t, head, sizeof(head));
	say(t, text, strlen(text));
}

static void begin(struct stand *t)
{
	char greeting[GREETING];

	assert_int_equal(subscription_dial(t->s, "127.0.0.1", t->port), 0);
	run_to(t, 1);
	say(t, PUB, GREETING);
	say_message(t, "first");
	run_for(t, 1);
	assert_string_equal(t->last, "first");
	assert_true(subscription_reads(t->s));
	assert_int_equal(recv(t->connection, greeting, GREETING, MSG_WAITALL), GREETING);
	assert_memory_equal(greeting, SUB, GREETING);
}

static void test_messages(void **state)
{
	static const char two[] = "\0\0\0\0\0\0\0\3one\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\4four\0\0\0";
	struct stand *t = *state;

	begin(t);
	/* Three at once, one of them empty, and the beginning of the next. */
	say(t, two, sizeof(two) - 1);
	run_for(t, 3);
	assert_string_equal(t->last, "four");
	say(t, "\0\0\0\0\2h", 6); /* the rest of its length, and half of it */
	t->until_came = t->came + 1;
	say(t, "i", 1);
	run(t);
	assert_string_equal(t->last, "hi");
	assert_int_equal(t->connections, 1);
}

/* The longest message comes in pieces; its memory is given back, and the next is a short one. */
static void test_longest(void **state)
{
	static char most[MESSAGE_MAX];
	uint8_t head[8] = {
		0, 0, 0, 0, 0, MESSAGE_MAX >> 16, (MESSAGE_MAX >> 8) & 0xff, MESSAGE_MAX & 0xff};
	struct stand *t = *state;

	begin(t);
	memset(most, 'x', sizeof(most));
	say(t, head, sizeof(head));
	say(t, most, sizeof(most));
	run_for(t, 1);
	assert_int_equal(t->last_length, MESSAGE_MAX);
	assert_memory_equal(t->last, most, sizeof(most));
	say_message(t, "short");
	run_for(t, 1);
	assert_string_equal(t->last, "short");
	assert_int_equal(t->connections, 1);
}

/* What is no publisher, or sends too much at once, is left; and it is tried again. */
static void test_nonsense(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} cases[] = {
		{"\0SP\0\0\x21\0\0", 8},	  /* a subscriber */
		{"HTTP/1.1", 8},		  /* anything else */
		{"\0SP\1\0\x20\0\0", 8},	  /* another version */
		{PUB "\0\0\0\0\0\1\x86\xa1", 16}, /* one byte too long */
		{PUB "\xff\xff\xff\xff\xff\xff\xff\xff", 16},
		{PUB "\0\0\0\0\0\0\0\3on", 18}, /* the end in a message */
		{"", 0},
	};
	struct stand *t = *state;

	assert_int_equal(subscription_dial(t->s, "127.0.0.1", t->port), 0);
	run_to(t, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		say(t, cases[i].bytes, cases[i].n);
		shutdown(t->connection, SHUT_WR);
		run_to(t, 1);
		assert_int_equal(t->came, 0);
		assert_false(subscription_reads(t->s));
	}
	say(t, PUB, GREETING);
	say_message(t, "well");
	run_for(t, 1);
	assert_string_equal(t->last, "well");
}

/* Cut while messages are looked at: those after it do not count, and a new connection is made. */
static void test_cut(void **state)
{
	static const char two[] = "\0\0\0\0\0\0\0\3bad\0\0\0\0\0\0\0\5later";
	struct stand *t = *state;

	begin(t);
	t->cuts = true;
	say(t, two, sizeof(two) - 1);
	run_to(t, 1);
	assert_int_equal(t->came, 2);
	assert_string_equal(t->last, "bad");
	t->cuts = false;
	say(t, PUB, GREETING);
	say_message(t, "again");
	run_for(t, 1);
	subscription_cut(t->s); /* from outside */
	assert_false(subscription_reads(t->s));
	subscription_cut(t->s);
	run_to(t, 1);
}

/* Nothing listens at first, or it may not connect: it comes as soon as both are otherwise. */
static void test_waits(void **state)
{
	struct stand *t = *state;
	uint16_t port = t->port;

	t->may = false;
	assert_int_equal(subscription_dial(t->s, "127.0.0.1", port), 0);
	t->until_asked = 2;
	run(t);
	assert_int_equal(t->connections, 0);
	stop_listening(t);
	t->may = true;
	t->until_asked = 5; /* the connections before are refused */
	run(t);
	assert_int_equal(t->connections, 0);
	listen_at(t, port);
	run_to(t, 1);
}

static void test_elsewhere(void **state)
{
	static const char *const bad[] = {"", "localhost", "127.0.0.1:1", "::g"};
	struct stand *t = *state;

	begin(t);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(subscription_dial(t->s, bad[i], 1), -EINVAL);
	assert_true(subscription_reads(t->s));
	say_message(t, "still here");
	run_for(t, 1);
	stop_listening(t);
	listen_at(t, 0);
	assert_int_equal(subscription_dial(t->s, "127.0.0.1", t->port), 0);
	assert_false(subscription_reads(t->s));
	run_to(t, 1);
	assert_int_equal(ntohs(((const struct sockaddr_in *)subscription_address(t->s))->sin_port),
			 t->port);
}

struct publisher {
	struct loop *loop;
	struct loop_timer timer;
	nng_socket pub;
};

/* Nobody may have subscribed yet, and then it is lost: so it comes again and again. */
static void publish(void *arg)
{
	struct publisher *p = arg;

	assert_int_equal(nng_send(p->pub, "from nng", 8, 0), 0);
	loop_start(p->loop, &p->timer, 20 * CLOCK_NS_PER_MS);
}

static void test_nng(void **state)
{
	struct stand *t = *state;
	struct publisher p = {.loop = t->loop, .timer = {.fire = publish, .arg = &p}};
	char url[64];

	snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", t->port);
	stop_listening(t);
	assert_int_equal(nng_pub0_open(&p.pub), 0);
	assert_int_equal(nng_listen(p.pub, url, NULL, 0), 0);
	assert_int_equal(subscription_dial(t->s, "127.0.0.1", t->port), 0);
	loop_start(t->loop, &p.timer, 0);
	run_for(t, 3);
	assert_int_equal(t->last_length, 8);
	assert_string_equal(t->last, "from nng");
	loop_cancel(t->loop, &p.timer);
	nng_close(p.pub);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_messages, up, down),
		cmocka_unit_test_setup_teardown(test_longest, up, down),
		cmocka_unit_test_setup_teardown(test_nonsense, up, down),
		cmocka_unit_test_setup_teardown(test_cut, up, down),
		cmocka_unit_test_setup_teardown(test_waits, up, down),
		cmocka_unit_test_setup_teardown(test_elsewhere, up, down),
		cmocka_unit_test_setup_teardown(test_nng, up, down),
	};

	return cmocka_run_group_tests_name("subscription", tests, NULL, NULL);
}
