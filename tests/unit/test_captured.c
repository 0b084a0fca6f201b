/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A network part that is captured: what it never answers is not waited for, what it asks for
 * without end is refused, and what it made root remember goes with it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/cluster/bulletin.h"
#include "agent/cluster/control_own.h"
#include "tests/lib/logged.h"
#include "tests/lib/net_counted.h"
#include "user/clock.h"

static struct settings set = {.name = "here"};
static struct logger log_;
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters, .set = &set, .boot_id = 7};
static struct net_part *part;
static struct net_counted net;

static void run(uint64_t ns)
{
	net_counted_run(&net, ns);
}

static int setup(void **state)
{
	int rc;

	(void)state;
	counters = (struct counters){0};
	rc = logged_begin(&log_) || net_counted_begin(&net, &base);
	part = net.part;
	return rc;
}

static int teardown(void **state)
{
	(void)state;
	logged_end();
	net_counted_end(&net, &base);
	return 0;
}

/* --- questions ---------------------------------------------------------------------------- */

struct heard {
	unsigned times;
	int rc;
	char why[128];
};

static void on_answer(void *arg, int rc, uint8_t *answer, size_t length, const char *why)
{
	struct heard *heard = arg;

	(void)answer;
	(void)length;
	heard->times++;
	heard->rc = rc;
	snprintf(heard->why, sizeof(heard->why), "%s", why);
}

static const struct gate_place place = {.address = "127.0.0.1", .port = 7000};

/* It takes a question and says nothing, but it is no hung process: it answers pings. */
static void test_says_nothing(void **state)
{
	struct control c = {.config = {.loop = base.loop, .net = part, .counters = &counters}};
	struct heard heard = {0};
	struct exchange *x = exchange_new(&c, &place, on_answer, &heard);

	(void)state;
	assert_non_null(x);
	assert_int_equal(exchange_send(x, "x", 1, 0, NULL), 0);
	run(CONTROL_TIMEOUT_MS * CLOCK_NS_PER_MS);
	assert_int_equal(net.got[GATE_ASK], 1);
	assert_int_equal(heard.times, 0);
	run(CONTROL_TIMEOUT_MS * CLOCK_NS_PER_MS);
	assert_int_equal(heard.times, 1);
	assert_int_equal(heard.rc, -ETIMEDOUT);
	assert_string_equal(heard.why, "the network part of this node says nothing");
	run(CLOCK_NS_PER_MS);
	assert_int_equal(net.got[GATE_FORGET], 1);
	exchange_free(x);
	run(CLOCK_NS_PER_MS);
	assert_int_equal(net.got[GATE_FORGET], 1);
}

/* An error without a sentence still says something; the number of no question finds none. */
static void test_no_sentence(void **state)
{
	struct gate_message m = {.type = GATE_ANSWERED, .answered = {.rc = -ECONNREFUSED}};
	struct control c = {.config = {.loop = base.loop, .net = part, .counters = &counters}};
	struct heard heard = {0};
	struct exchange *idle = exchange_new(&c, &place, on_answer, &heard), *x;

	(void)state;
	x = exchange_new(&c, &place, on_answer, &heard);
	exchange_start(&c);
	assert_int_equal(exchange_send(x, "x", 1, 0, NULL), 0);
	run(CLOCK_NS_PER_MS);
	assert_int_equal(gate_send(net.gate, &m, NULL, 0, NULL), 0); /* number 0: `idle` has it */
	run(CLOCK_NS_PER_MS);
	assert_int_equal(heard.times, 0);
	m.answered.id = net.last.ask.id;
	assert_int_equal(gate_send(net.gate, &m, NULL, 0, NULL), 0);
	assert_int_equal(gate_send(net.gate, &m, NULL, 0, NULL), 0); /* and once more */
	run(CLOCK_NS_PER_MS);
	assert_int_equal(heard.times, 1);
	assert_string_equal(heard.why, strerror(ECONNREFUSED));
	net_part_serve(part, GATE_ANSWERED, NULL, NULL);
	exchange_free(x);
	exchange_free(idle);
}

/* --- keys, and what is remembered ------------------------------------------------------------ */

static unsigned asked;

static void on_ask_key(void *arg, const struct gate_place *at)
{
	(void)arg;
	(void)at;
	asked++;
}

static struct bulletin *bulletin(void)
{
	const struct bulletin_config config = {
		.loop = base.loop, .net = part, .counters = &counters, .ask_key = on_ask_key};
	struct bulletin *b;

	asked = 0;
	assert_int_equal(bulletin_new(&b, &config, NULL), 0);
	return b;
}

static void ask_key(unsigned n)
{
	const struct gate_message m = {.type = GATE_ASK_KEY, .place = place};

	while (n--)
		assert_int_equal(gate_send(net.gate, &m, NULL, 0, NULL), 0);
	run(20 * CLOCK_NS_PER_MS);
}

static void test_keys_without_end(void **state)
{
	struct bulletin *b = bulletin();

	(void)state;
	ask_key(BULLETIN_KEYS_MAX + 100);
	assert_int_equal(asked, BULLETIN_KEYS_MAX);
	assert_int_equal(counters.keys_refused, 100);
	assert_int_equal(net.got[GATE_PUBLISHER_KEY], 100);
	bulletin_key(b, &place, "", NULL);
	ask_key(2);
	assert_int_equal(asked, BULLETIN_KEYS_MAX + 1);
	bulletin_free(b);
}

/* Makes PLACES of N nodes, from the one numbered FIRST on. */
static void places_of(struct gate_place *places, size_t n, unsigned first)
{
	for (size_t i = 0; i < n; i++) {
		places[i] = (struct gate_place){.port = 7000};
		snprintf(places[i].address, sizeof(places[i].address), "10.0.0.%u",
			 first + (unsigned)i);
	}
}

static void test_places_it_is_told(void **state)
{
	struct gate_place places[2 * BULLETIN_DIALED_MAX];
	struct bulletin *b = bulletin();

	(void)state;
	places_of(places, 3, 7);
	places[3] = places[1]; /* twice */
	bulletin_want(b, places, 4);
	run(CLOCK_NS_PER_MS);
	assert_int_equal(net.got[GATE_DIAL], 3);
	assert_int_equal(net.got[GATE_UNDIAL], 0);
	places_of(places, 3, 8);
	bulletin_want(b, places, 3); /* one goes, one comes */
	run(CLOCK_NS_PER_MS);
	assert_int_equal(net.got[GATE_DIAL], 4);
	assert_int_equal(net.got[GATE_UNDIAL], 1);
	net_counted_another(&net);
	assert_int_equal(net.got[GATE_EPOCH], 1);
	assert_int_equal(net.got[GATE_DIAL], 0); /* by the next plan */
	bulletin_want(b, places, 2);
	run(CLOCK_NS_PER_MS);
	assert_int_equal(net.got[GATE_DIAL], 2);
	bulletin_free(b);
}

static void test_too_many_places(void **state)
{
	struct gate_place places[2 * BULLETIN_DIALED_MAX], one;
	struct bulletin *b = bulletin();

	(void)state;
	places_of(places, 2 * BULLETIN_DIALED_MAX, 1);
	bulletin_want(b, places, 2 * BULLETIN_DIALED_MAX);
	places_of(&one, 1, 5000);
	bulletin_dial(b, &one);
	run(CLOCK_NS_PER_MS);
	assert_int_equal(net.got[GATE_DIAL] - net.got[GATE_UNDIAL], BULLETIN_DIALED_MAX);
	bulletin_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_says_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_sentence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keys_without_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places_it_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_places, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
