/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whom an agent hears directly: all in a small cluster, a part of a large one, its configured peers
 * while they are unknown, who asked for a while, and nobody whom only a dead network part knew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/cluster/hearing.h"
#include "tests/lib/logged.h"
#include "tests/lib/net_counted.h"
#include "user/clock.h"

#define PORT  7700
#define LARGE 200

static struct settings set = {.name = "here", .period_s = 1};
static struct logger log_;
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters, .set = &set, .boot_id = 7};
static struct net_counted net;
static struct matrix matrix;
static struct peer_states states;
static struct hearing hearing;
static uint64_t sequence;

static void ask_key(void *arg, const struct gate_place *at)
{
	(void)arg;
	(void)at;
}

static int setup(void **state)
{
	struct bulletin_config config = {.counters = &counters, .ask_key = ask_key};

	(void)state;
	counters = (struct counters){0};
	sequence = 0;
	if (logged_begin(&log_) || net_counted_begin(&net, &base))
		return 1;
	config.loop = base.loop;
	config.net = net.part;
	matrix_init(&matrix, "here");
	/* One configured peer, "peer", which is at 10.9.0.1. */
	states = (struct peer_states){.count = 1};
	states.all[0].at = (struct gate_place){.address = "10.9.0.1", .port = PORT};
	hearing = (struct hearing){
		.base = &base, .matrix = &matrix, .states = &states, .dials = true};
	return bulletin_new(&hearing.bulletin, &config, NULL);
}

static int teardown(void **state)
{
	(void)state;
	bulletin_free(hearing.bulletin);
	matrix_fini(&matrix);
	logged_end();
	net_counted_end(&net, &base);
	return 0;
}

static void address_of(unsigned node, char out[IOCOM_ADDRESS_MAX])
{
	snprintf(out, IOCOM_ADDRESS_MAX, "10.1.%u.%u", node / 200, node % 200 + 1);
}

/* The nodes from FIRST to LAST, without it, are heard of now. */
static void heard_of(unsigned first, unsigned last)
{
	struct iocom_vector v = {
		.port = PORT, .boot_id = 1, .period_ms = 1000, .cores = 1, .cpu_speed = 1};

	v.sequence = ++sequence;
	for (unsigned i = first; i < last; i++) {
		snprintf(v.name, sizeof(v.name), "n%u", i);
		address_of(i, v.address);
		assert_int_equal(matrix_put(&matrix, &v, 0, loop_boot_ns(base.loop)), 0);
	}
}

static void peer_heard(void)
{
	struct iocom_vector v = {.name = "peer",
				 .address = "10.9.0.1",
				 .port = PORT,
				 .boot_id = 1,
				 .period_ms = 1000,
				 .cores = 1,
				 .cpu_speed = 1};

	v.sequence = ++sequence;
	strcpy(states.all[0].node, "peer");
	assert_int_equal(matrix_put(&matrix, &v, 0, loop_boot_ns(base.loop)), 0);
}

static void plan(void)
{
	hearing_plan(&hearing);
	net_counted_run(&net, CLOCK_NS_PER_MS);
}

/* Periods go by in which the nodes up to LARGE are heard of, but MUTE is never heard. */
static void settle(unsigned periods, const struct matrix_entry *mute)
{
	for (unsigned s = 0; s < periods; s++) {
		net_counted_run(&net, CLOCK_NS_PER_S);
		heard_of(0, LARGE);
		for (size_t i = 0; i < matrix.count; i++)
			if (matrix.entries[i] != mute)
				hearing_heard(&hearing, matrix.entries[i]->vector.name);
		plan();
	}
}

static bool hears(unsigned node)
{
	char address[IOCOM_ADDRESS_MAX];

	address_of(node, address);
	return net_counted_hears(&net, address, PORT);
}

static void test_small(void **state)
{
	(void)state;
	plan();
	assert_int_equal(net.nhears, 1); /* the configured peer */
	heard_of(0, GOSSIP_DIRECT - 1);
	plan();
	for (unsigned i = 0; i < GOSSIP_DIRECT - 1; i++)
		assert_true(hears(i));
	assert_int_equal(net.nhears, GOSSIP_DIRECT);
	plan(); /* again: nothing is told twice */
	assert_int_equal(net.got[GATE_DIAL], GOSSIP_DIRECT);
	assert_int_equal(net.got[GATE_UNDIAL], 0);
}

/* A large cluster; the plan is gossip's, whose own tests say what it reaches. */
static void test_large(void **state)
{
	size_t kept = 0;

	(void)state;
	heard_of(0, LARGE);
	plan();
	/* Each must be greeted: not all at once.  Those that do not answer keep their places. */
	assert_int_equal(net.nhears, 1 + HEARING_BEGINS);
	plan();
	assert_int_equal(net.nhears, 1 + HEARING_BEGINS);
	settle(6, NULL);
	assert_in_range(net.nhears, 10, LARGE / 3);
	assert_true(net_counted_hears(&net, "10.9.0.1", PORT)); /* it is unknown yet */
	for (size_t i = 0; i < matrix.count; i++) {
		const struct matrix_entry *e = matrix_at(&matrix, i);

		assert_int_equal(e->tie.on,
				 net_counted_hears(&net, e->vector.address, e->vector.port));
		if (!gossip_tells(&matrix.place, &e->place, gossip_slices_kept(LARGE + 1)))
			continue;
		assert_true(e->tie.on);
		kept++;
	}
	assert_true(kept > 0);
}

/* In a large cluster a configured peer is one node of many once it is known. */
static void test_configured(void **state)
{
	size_t others = 0;

	(void)state;
	/* Without the slice in question nobody hears the peer for the plan's sake. */
	heard_of(0, LARGE);
	peer_heard();
	plan();
	settle(2, NULL);
	peer_heard();
	plan();
	assert_int_equal(net_counted_hears(&net, "10.9.0.1", PORT),
			 matrix_find(&matrix, "peer")->tie.on);
	/* Lost, it is dialled until it is back. */
	net_counted_run(&net, 4 * CLOCK_NS_PER_S);
	heard_of(0, LARGE);
	(void)matrix_expire(&matrix, loop_boot_ns(base.loop));
	settle(4, NULL);
	assert_true(net_counted_hears(&net, "10.9.0.1", PORT));
	for (unsigned i = 0; i < LARGE; i++)
		others += hears(i);
	assert_in_range(others, 10, LARGE / 3);
}

/* A liar names a thousand nodes of this one's slice, at addresses that come first. */
static void test_invented(void **state)
{
	enum { INVENTED = 1024, TRUE = 5 };
	struct iocom_vector v = {.port = 1, .boot_id = 1, .period_ms = 1000, .cores = 1};
	unsigned told = 0;

	(void)state;
	heard_of(0, TRUE);
	plan();
	for (unsigned i = 0; i < TRUE; i++) {
		snprintf(v.name, sizeof(v.name), "n%u", i);
		hearing_heard(&hearing, v.name);
	}
	v.sequence = ++sequence;
	for (unsigned i = 0; told < INVENTED; i++) {
		struct gossip_place place;

		snprintf(v.name, sizeof(v.name), "x%u", i);
		snprintf(v.address, sizeof(v.address), "1.1.%u.%u", told / 200, told % 200);
		place = gossip_place(v.name);
		if (!gossip_tells(&matrix.place, &place, GOSSIP_SLICES_MAX))
			continue;
		assert_int_equal(matrix_put(&matrix, &v, 0, loop_boot_ns(base.loop)), 0);
		told++;
	}
	for (size_t i = 0; i < matrix.count; i++) /* as if these, too, were of its slice */
		matrix.entries[i]->place.slice = matrix.place.keeps;
	plan();
	/* The peer, those that are heard, and a few that are not heard yet. */
	assert_int_equal(net.nhears, 1 + TRUE + HEARING_BEGINS);
	for (unsigned i = 0; i < TRUE; i++)
		assert_true(hears(i));
	assert_true(net_counted_hears(&net, "10.9.0.1", PORT));
}

static void test_asked(void **state)
{
	const struct gate_place at = {.address = "10.8.0.1", .port = PORT};
	struct gate_place one = at;

	(void)state;
	hearing_ask(&hearing, "newcomer", &at);
	net_counted_run(&net, CLOCK_NS_PER_MS);
	assert_true(net_counted_hears(&net, at.address, PORT)); /* at once */
	plan();
	assert_true(net_counted_hears(&net, at.address, PORT));
	net_counted_run(&net, HEARING_ASKED_NS);
	plan();
	assert_false(net_counted_hears(&net, at.address, PORT)); /* it never came */
	for (unsigned i = 0; i < HEARING_ASKED_MAX + 3; i++) {
		snprintf(one.address, sizeof(one.address), "10.8.1.%u", i);
		hearing_ask(&hearing, "newcomer", &one);
	}
	assert_int_equal(counters.hellos_refused, 3);
	assert_int_equal(hearing.nasked, HEARING_ASKED_MAX);
}

/* One that is heard of makes room when it is no news any more, and one that is known need not ask.
 */
static void test_asked_and_known(void **state)
{
	struct gate_place at = {.port = PORT};

	(void)state;
	heard_of(0, LARGE);
	address_of(LARGE, at.address);
	snprintf(states.all[0].node, IOCOM_NAME_MAX, "n0");
	hearing_ask(&hearing, "n0", &at);
	assert_int_equal(hearing.nasked, 0);
	hearing_ask(&hearing, "n200", &at);
	assert_int_equal(hearing.nasked, 1);
	heard_of(LARGE, LARGE + 1);
	plan();
	assert_int_equal(hearing.nasked, 1);
	net_counted_run(&net, HEARING_ASKED_PERIODS * CLOCK_NS_PER_S);
	heard_of(0, LARGE + 1);
	plan();
	assert_int_equal(hearing.nasked, 0);
}

/* What only the last network part had heard of is not dialled by the next. */
static void test_another_part(void **state)
{
	const struct gate_place at = {.address = "10.8.0.1", .port = PORT};

	(void)state;
	heard_of(0, 5);
	hearing_ask(&hearing, "newcomer", &at);
	plan();
	assert_int_equal(net.nhears, 7);
	hearing_lost(&hearing);
	matrix_doubt(&matrix);
	net_counted_another(&net);
	plan();
	assert_int_equal(net.nhears, 2); /* the configured peer, and who asked by a session */
	heard_of(0, 3);
	plan();
	assert_int_equal(net.nhears, 5);
}

/* A keeper that brings nothing is replaced. */
static void test_mute(void **state)
{
	const unsigned kept = gossip_slices_kept(LARGE + 1);
	struct matrix_entry *mute = NULL;

	(void)state;
	heard_of(0, LARGE);
	plan();
	settle(6, NULL);
	for (size_t i = 0; i < matrix.count && !mute; i++)
		if (matrix.entries[i]->tie.on &&
		    !gossip_tells(&matrix.place, &matrix.entries[i]->place, kept))
			mute = matrix.entries[i];
	assert_non_null(mute);
	settle(GOSSIP_MUTE_PERIODS + 1, mute);
	assert_false(mute->tie.on);
	assert_true(mute->alive);
	assert_false(net_counted_hears(&net, mute->vector.address, PORT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_small, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_configured, setup, teardown),
		cmocka_unit_test_setup_teardown(test_invented, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asked_and_known, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_part, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mute, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
