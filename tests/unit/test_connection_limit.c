/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Connections to an nng socket: a limit for each address and one for all; a closed connection
 * makes room.  Those that send junk are cut, and their addresses pay.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/util/platform.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/net/address_budget.h"
#include "agent/net/connection_limit.h"
#include "agent/base/seal_refusal.h"
#include "user/clock.h"

#define CLIENTS 6

struct world {
	nng_socket rep, client[CLIENTS];
	struct connection_limit *guests;
	struct counters counters;
	char url[64];
	int port;
};

/*
 * Dials with a socket of its own, and so with a connection of its own. FROM is the address to dial
 * from.
 */
static void dial(struct world *w, int i, const char *from)
{
	nng_sockaddr sa = {.s_in = {.sa_family = NNG_AF_INET}};
	nng_dialer dialer;
	unsigned b[4];

	assert_int_equal(sscanf(from, "%u.%u.%u.%u", &b[0], &b[1], &b[2], &b[3]), 4);
	sa.s_in.sa_addr = b[0] | b[1] << 8 | b[2] << 16 | b[3] << 24; /* network order */
	assert_int_equal(nng_req0_open(&w->client[i]), 0);
	nng_socket_set_ms(w->client[i], NNG_OPT_RECONNMINT, 10);
	nng_socket_set_ms(w->client[i], NNG_OPT_RECONNMAXT, 20);
	assert_int_equal(nng_dialer_create(&dialer, w->client[i], w->url), 0);
	assert_int_equal(nng_dialer_set_addr(dialer, NNG_OPT_LOCADDR, &sa), 0);
	nng_dialer_start(dialer, NNG_FLAG_NONBLOCK);
}

static void is_over(void *arg)
{
	atomic_store((atomic_bool *)arg, true);
}

/* Returns true if a question of client I arrives and is answered within LIMIT_MS. */
static bool heard_within(struct world *w, int i, int limit_ms)
{
	atomic_bool over = false;
	nng_aio *answer;
	char *got = NULL;
	size_t n;
	bool ok;

	nng_socket_set_ms(w->client[i], NNG_OPT_SENDTIMEO, limit_ms);
	nng_socket_set_ms(w->rep, NNG_OPT_RECVTIMEO, 20);
	if (nng_send(w->client[i], (void *)"question", 8, 0))
		return false;
	assert_int_equal(nng_aio_alloc(&answer, is_over, &over), 0);
	nng_aio_set_timeout(answer, limit_ms);
	nng_recv_aio(w->client[i], answer);
	/* An earlier question that was given up may arrive first: each gets its answer. */
	while (!atomic_load(&over))
		if (!nng_recv(w->rep, &got, &n, NNG_FLAG_ALLOC)) {
			nng_free(got, n);
			(void)nng_send(w->rep, (void *)"answer", 6, 0);
		}
	nng_aio_wait(answer);
	ok = !nng_aio_result(answer);
	if (ok)
		nng_msg_free(nng_aio_get_msg(answer));
	nng_aio_free(answer);
	return ok;
}

static bool heard(struct world *w, int i)
{
	return heard_within(w, i, 20000);
}

static bool unheard(struct world *w, int i)
{
	return !heard_within(w, i, 300);
}

static void up_with(struct world *w, const struct connection_limit_bounds *bounds)
{
	nng_listener listener;

	*w = (struct world){0};
	assert_int_equal(nng_rep0_open(&w->rep), 0);
	assert_int_equal(connection_limit_new(&w->guests, w->rep, bounds), 0);
	assert_int_equal(nng_listen(w->rep, "tcp://127.0.0.1:0", &listener, 0), 0);
	assert_int_equal(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &w->port), 0);
	snprintf(w->url, sizeof(w->url), "tcp://127.0.0.1:%d", w->port);
}

static void up(struct world *w, unsigned max, unsigned max_of_one)
{
	up_with(w, &(struct connection_limit_bounds){.max = max, .max_of_one = max_of_one});
}

static void down(struct world *w, int clients)
{
	for (int i = 0; i < clients; i++)
		nng_close(w->client[i]);
	nng_close(w->rep);
	connection_limit_free(w->guests);
}

/* Waits until COUNTER, one of w->counters, is at least LEAST. */
static void wait_counted(struct world *w, const uint64_t *counter, uint64_t least)
{
	for (int i = 0; i < 2000 && *counter < least; i++) {
		nng_msleep(10);
		connection_limit_count_into(w->guests, &w->counters);
	}
	assert_true(*counter >= least);
}

static uint64_t counted(struct world *w, const uint64_t *counter)
{
	connection_limit_count_into(w->guests, &w->counters);
	return *counter;
}

static void test_of_one(void **state)
{
	struct world w;

	(void)state;
	up(&w, 10, 2);
	dial(&w, 0, "127.0.0.1");
	dial(&w, 1, "127.0.0.1");
	assert_true(heard(&w, 0));
	assert_true(heard(&w, 1));
	assert_int_equal(counted(&w, &w.counters.guests_refused), 0);
	dial(&w, 2, "127.0.0.1");
	wait_counted(&w, &w.counters.guests_refused, 1);
	assert_true(unheard(&w, 2));
	dial(&w, 3, "127.0.0.2"); /* another address has room */
	assert_true(heard(&w, 3));
	assert_true(heard(&w, 0));
	nng_close(w.client[1]); /* one closes, and the third gets in, because it tries repeatedly */
	assert_true(heard(&w, 2));
	down(&w, 4);
}

static void test_in_all(void **state)
{
	char from[16];
	struct world w;

	(void)state;
	up(&w, 3, 2);
	for (int i = 0; i < 3; i++) {
		snprintf(from, sizeof(from), "127.0.0.%d", i + 1);
		dial(&w, i, from);
		assert_true(heard(&w, i));
	}
	dial(&w, 3, "127.0.0.4");
	wait_counted(&w, &w.counters.guests_refused, 1);
	assert_true(unheard(&w, 3));
	assert_true(heard(&w, 0));
	down(&w, 4);
}

/* --- connections that send junk -------------------------------------------------------- */

/* Connects from the address FROM and shakes hands as a requester does; the descriptor. */
static int connect_raw(const struct world *w, const char *from)
{
	static const uint8_t hello[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
	struct sockaddr_in sa = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint8_t answer[8];

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, from, &sa.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &sa.sin_addr), 1);
	sa.sin_port = htons((uint16_t)w->port);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(send(fd, hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
	assert_int_equal(recv(fd, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
	return fd;
}

/* A message whose payload has WANT bytes, of which HAVE come. */
static void send_raw(int fd, uint8_t want, uint8_t have)
{
	uint8_t bytes[8 + 4 + 64] = {[7] = (uint8_t)(4 + want), [8] = 0x80, [11] = 1};

	memset(bytes + 12, 'j', 64);
	assert_int_equal(send(fd, bytes, 12u + have, MSG_NOSIGNAL), 12 + have);
}

/* Returns true if the peer closed FD, within LIMIT_MS. */
static bool closed_within(int fd, int limit_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char byte;

	return poll(&p, 1, limit_ms) > 0 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

/* Takes one message and returns its pipe. */
static nng_pipe take_one(struct world *w)
{
	nng_pipe pipe;
	nng_msg *msg;

	nng_socket_set_ms(w->rep, NNG_OPT_RECVTIMEO, 20000);
	assert_int_equal(nng_recvmsg(w->rep, &msg, 0), 0);
	pipe = nng_msg_get_pipe(msg);
	nng_msg_free(msg);
	return pipe;
}

static void wait_count(struct world *w, size_t count)
{
	for (int i = 0; i < 2000 && connection_limit_count(w->guests) != count; i++)
		nng_msleep(10);
	assert_int_equal(connection_limit_count(w->guests), count);
}

static unsigned descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(all);
	while (readdir(all))
		n++;
	closedir(all);
	return n;
}

/* Streams pieces of messages until the connection is closed. */
static void *stream_raw(void *arg)
{
	static const uint8_t one[8 + 4 + 64] = {[7] = 68, [8] = 0x80, [11] = 1, [12] = 'j'};
	int fd = *(int *)arg;

	for (size_t at = 0; send(fd, one + at, 19, MSG_NOSIGNAL) == 19;)
		at = (at + 19) % sizeof(one);
	return NULL;
}
_Static_assert((8 + 4 + 64) % 19 == 0, "the pieces make whole messages");

/* Takes what was received before the cut, without which nng reads no further, and sees no end. */
static void drop_messages(struct world *w, size_t others)
{
	nng_msg *msg;

	nng_socket_set_ms(w->rep, NNG_OPT_RECVTIMEO, 10);
	for (int i = 0; i < 2000 && connection_limit_count(w->guests) != others;)
		if (nng_recvmsg(w->rep, &msg, 0))
			i++;
		else
			nng_msg_free(msg);
	assert_int_equal(connection_limit_count(w->guests), others);
}

/* Streams junk from address FROM, and is cut for it; OTHERS are connected, too. */
static void be_cut(struct world *w, const char *from, size_t others)
{
	int fd = connect_raw(w, from);
	pthread_t thread;
	nng_pipe pipe;

	assert_int_equal(pthread_create(&thread, NULL, stream_raw, &fd), 0);
	pipe = take_one(w);
	assert_false(connection_limit_is_cut(w->guests, pipe));
	connection_limit_judge(w->guests, pipe, SEAL_E_GARBAGE);
	assert_true(connection_limit_is_cut(w->guests, pipe));
	connection_limit_judge(w->guests, pipe, SEAL_E_GARBAGE); /* it pays once */
	pthread_join(thread, NULL);
	close(fd);
	drop_messages(w, others);
}

/* Connects from FROM; returns true if it was let in, false if its address was refused. */
static bool let_in(struct world *w, const char *from, int *fd)
{
	size_t before = connection_limit_count(w->guests);
	uint64_t refused = counted(w, &w->counters.addresses_refused);

	*fd = connect_raw(w, from);
	for (int i = 0; i < 2000; i++) {
		if (connection_limit_count(w->guests) > before)
			return true;
		if (counted(w, &w->counters.addresses_refused) > refused)
			return false;
		nng_msleep(10);
	}
	fail();
	return false;
}

/* A connection that sent junk is cut, though the half of another message was read. */
static void test_cut(void **state)
{
	uint64_t began;
	unsigned before;
	size_t payers;
	struct world w;
	int honest;

	(void)state;
	up(&w, 64, 64);
	began = clock_boot_ns();
	be_cut(&w, "127.0.0.4", 0); /* nng has opened all that it keeps */
	before = descriptors();
	honest = connect_raw(&w, "127.0.0.5");
	wait_count(&w, 1);
	for (unsigned i = 0; i < ADDRESS_BUDGET_FREE / 2; i++)
		be_cut(&w, "127.0.0.5", 1);
	assert_int_equal(counted(&w, &w.counters.connections_cut), 1 + ADDRESS_BUDGET_FREE / 2);
	payers = connection_limit_payers(w.guests);
	/* A unit comes back after a second: a busy machine may be too late to see it. */
	if (clock_boot_ns() - began < ADDRESS_BUDGET_UNIT_NS)
		assert_int_equal(payers, 2);
	assert_in_range(payers, 0, 2);
	assert_false(closed_within(honest, 0));
	close(honest);
	wait_count(&w, 0);
	/* nng frees what it has closed. */
	for (int i = 0; i < 2000 && descriptors() > before; i++)
		nng_msleep(10);
	assert_int_equal(descriptors(), before);
	down(&w, 0);
}

/*
 * An address that has spent its budget is refused; its connections that sent no junk stay, another
 * address is let in, and so is a node that shares the address, once it has sent sealed messages.
 */
static void test_budget(void **state)
{
	enum { HELD = ADDRESS_BUDGET_FREE + 24 };
	int held[HELD], honest, late;
	nng_pipe sealed;
	struct world w;
	bool in = true;

	(void)state;
	up(&w, 1024, 1024);
	honest = connect_raw(&w, "127.0.0.5");
	send_raw(honest, 16, 16);
	sealed = take_one(&w);
	connection_limit_judge(w.guests, sealed, 0);
	for (int i = 0; i < HELD; i++)
		held[i] = connect_raw(&w, "127.0.0.5");
	wait_count(&w, 1 + HELD);
	for (int i = 0; i < HELD; i++) {
		send_raw(held[i], 16, 16);
		connection_limit_judge(w.guests, take_one(&w), SEAL_E_FORGED);
		assert_true(closed_within(held[i], 20000));
		close(held[i]);
		/* On a busy machine some of the budget may have come back. */
		if (i < ADDRESS_BUDGET_FREE - 1 || !in)
			continue;
		wait_count(&w, (size_t)(HELD - i));
		in = let_in(&w, "127.0.0.5", &late);
		if (!in)
			assert_true(closed_within(late, 20000));
		close(late);
		wait_count(&w, (size_t)(HELD - i));
	}
	assert_false(in);
	wait_count(&w, 1);
	assert_false(closed_within(honest, 0));
	assert_true(let_in(&w, "127.0.0.6", &late));
	close(late);
	wait_count(&w, 1);
	for (unsigned i = 0; i < ADDRESS_BUDGET_FREE; i++)
		connection_limit_judge(w.guests, sealed, 0);
	assert_true(let_in(&w, "127.0.0.5", &late));
	close(late);
	close(honest);
	down(&w, 0);
}

/*
 * When the bound is reached, the oldest that has sent nothing sealed yields; whoever has proved
 * to be a node never does.
 */
static void test_yield(void **state)
{
	const struct connection_limit_bounds bounds = {.max = 4, .max_of_one = 3, .yield = true};
	int node, silent[3], late;
	struct world w;

	(void)state;
	up_with(&w, &bounds);
	node = connect_raw(&w, "127.0.0.5");
	send_raw(node, 16, 16);
	connection_limit_judge(w.guests, take_one(&w), 0);
	for (int i = 0; i < 2; i++) {
		silent[i] = connect_raw(&w, "127.0.0.5");
		wait_count(&w, 2 + (size_t)i);
	}
	/* The address has as many as it may have. */
	silent[2] = connect_raw(&w, "127.0.0.5");
	assert_true(closed_within(silent[0], 20000));
	assert_false(closed_within(silent[1], 0));
	/* All places are taken. */
	late = connect_raw(&w, "127.0.0.6");
	wait_count(&w, 4);
	close(late);
	wait_count(&w, 3);
	late = connect_raw(&w, "127.0.0.7");
	wait_count(&w, 4);
	send_raw(late, 16, 16);
	connection_limit_judge(w.guests, take_one(&w), 0);
	close(silent[0]);
	silent[0] = connect_raw(&w, "127.0.0.6");
	assert_true(closed_within(silent[1], 20000));
	assert_false(closed_within(silent[2], 0));
	assert_int_equal(counted(&w, &w.counters.connections_cut), 2);
	assert_int_equal(w.counters.guests_refused, 0);
	assert_false(closed_within(node, 0));
	assert_false(closed_within(late, 0));
	for (int i = 0; i < 3; i++)
		close(silent[i]);
	close(node);
	close(late);
	down(&w, 0);
}

/*
 * Messages that root sealed some time ago cost little, because a node whose clock differs sends
 * them, but not nothing, because they can be repeated.  What munged does not answer costs nothing.
 */
static void test_stale(void **state)
{
	struct world w;
	nng_pipe pipe;
	int fd, i;

	(void)state;
	up(&w, 64, 64);
	fd = connect_raw(&w, "127.0.0.5");
	send_raw(fd, 16, 16);
	pipe = take_one(&w);
	for (i = 0; i < 10000; i++)
		connection_limit_judge(w.guests, pipe, -EHOSTDOWN);
	assert_int_equal(connection_limit_payers(w.guests), 0);
	for (i = 0; i < 100000 && !connection_limit_is_cut(w.guests, pipe); i++)
		connection_limit_judge(w.guests, pipe, i % 2 ? SEAL_E_SKEW : SEAL_E_REPLAYED);
	assert_true(i > 4 * ADDRESS_BUDGET_FREE);
	assert_true(closed_within(fd, 20000));
	close(fd);
	down(&w, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_one), cmocka_unit_test(test_in_all),
		cmocka_unit_test(test_cut),    cmocka_unit_test(test_budget),
		cmocka_unit_test(test_yield),  cmocka_unit_test(test_stale),
	};

	return cmocka_run_group_tests_name("guests", tests, NULL, NULL);
}
