/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Connections to an nng socket: a limit for each address and one for all; a closed connection
 * makes room.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/util/platform.h>

#include "agent/cluster/connection_limit.h"

#define CLIENTS 6

struct world {
	nng_socket rep, client[CLIENTS];
	struct connection_limit *guests;
	char url[64];
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

static int up(struct world *w, unsigned max, unsigned max_of_one)
{
	nng_listener listener;
	int port = 0;

	assert_int_equal(nng_rep0_open(&w->rep), 0);
	assert_int_equal(connection_limit_new(&w->guests, w->rep, max, max_of_one), 0);
	assert_int_equal(nng_listen(w->rep, "tcp://127.0.0.1:0", &listener, 0), 0);
	assert_int_equal(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port), 0);
	snprintf(w->url, sizeof(w->url), "tcp://127.0.0.1:%d", port);
	return 0;
}

static void down(struct world *w, int clients)
{
	for (int i = 0; i < clients; i++)
		nng_close(w->client[i]);
	nng_close(w->rep);
	connection_limit_free(w->guests);
}

static void wait_refused(struct world *w)
{
	uint64_t refused = 0;

	for (int i = 0; i < 2000 && !refused; i++) {
		nng_msleep(10);
		refused = connection_limit_refused(w->guests);
	}
	assert_true(refused > 0);
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
	assert_int_equal(connection_limit_refused(w.guests), 0);
	dial(&w, 2, "127.0.0.1");
	wait_refused(&w);
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
	wait_refused(&w);
	assert_true(unheard(&w, 3));
	assert_true(heard(&w, 0));
	down(&w, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_one),
		cmocka_unit_test(test_in_all),
	};

	return cmocka_run_group_tests_name("guests", tests, NULL, NULL);
}
