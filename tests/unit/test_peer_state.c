/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Why a configured peer is not heard: which cause is shown, since when, and what ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/cluster/peer_state.h"

#define S 1000000000ull

static struct settings set;
static struct peer_states states;
static struct matrix matrix;

static void configure(const char *address)
{
	struct settings_peer *peer = &set.peers[set.npeers++];

	snprintf(peer->address, sizeof(peer->address), "%s", address);
	peer->port = 7700;
}

static int state_setup(void **state)
{
	(void)state;
	memset(&set, 0, sizeof(set));
	set.port = 7700;
	strcpy(set.listen, "10.0.0.1");
	strcpy(set.address, "10.0.0.1");
	configure("10.0.0.1"); /* this node: one list may serve all */
	configure("10.0.0.2");
	configure("n3.lab");
	configure("[fe80::4]");
	peer_states_init(&states, &set);
	matrix_init(&matrix, "n1");
	return 0;
}

static int state_teardown(void **state)
{
	(void)state;
	matrix_fini(&matrix);
	return 0;
}

static struct peer_state *place(const char *address)
{
	struct gate_place at = {.port = 7700};

	snprintf(at.address, sizeof(at.address), "%s", address);
	return peer_states_at(&states, &at);
}

static bool trouble(struct peer_state *p, enum peer_cause cause, bool sure, uint64_t now)
{
	const struct peer_trouble t = {.cause = cause, .sure = sure, .why = "because"};

	return peer_state_trouble(p, &t, now);
}

static struct iocom_vector hear(const char *address, const char *name, uint64_t boot, uint64_t now,
				bool *twin)
{
	struct iocom_vector v = {
		.boot_id = boot, .sequence = now / S, .time_ns = now, .period_ms = 1000};
	const struct peer_state *other;

	strcpy(v.name, name);
	(void)matrix_put(&matrix, &v, 0, now);
	other = peer_states_heard(&states, place(address), &v, now);
	if (twin)
		*twin = other != NULL;
	return v;
}

static struct peer_status status_of(const char *address, uint64_t now)
{
	struct peer_status s;

	peer_state_status(&states, place(address), &matrix, now, &s);
	assert_true(*s.state);
	/* Whoever is not heard is told what to do. */
	assert_true(s.heard || *s.advice);
	return s;
}

#define shows(address, now, what) assert_string_equal(status_of(address, now).state, what)

static void test_places(void **state)
{
	(void)state;
	assert_int_equal(states.count, 3); /* without this node */
	assert_null(place("10.0.0.1"));
	assert_ptr_equal(peer_states_from(&states, "10.0.0.2"), place("10.0.0.2"));
	assert_ptr_equal(peer_states_from(&states, "fe80::4"), place("[fe80::4]"));
	assert_null(peer_states_from(&states, "fe80::"));
	assert_null(peer_states_from(&states, "10.0.0.20"));
	assert_null(peer_states_from(&states, ""));
	configure("10.0.0.2");
	set.peers[set.npeers - 1].port = 7800;
	peer_states_init(&states, &set);
	assert_null(peer_states_from(&states, "10.0.0.2")); /* there are two at that address */
}

static void test_each_cause(void **state)
{
	static const char *const words[PEER_CAUSES] = {
		[PEER_C_REFUSED] = "refused",	      [PEER_C_TIMED_OUT] = "timed out",
		[PEER_C_UNREACHABLE] = "unreachable", [PEER_C_NAME] = "name unknown",
		[PEER_C_KEY] = "key differs",	      [PEER_C_CLOCK] = "clock differs",
		[PEER_C_SAME_NAME] = "same name",     [PEER_C_CLUSTER] = "other cluster",
		[PEER_C_VERSION] = "other version",   [PEER_C_MUTE] = "no answer",
		[PEER_C_OWN] = "own munged",
	};
	struct peer_state *p = place("10.0.0.2");

	(void)state;
	shows("10.0.0.2", S, "never tried");
	for (unsigned cause = 0; cause < PEER_CAUSES; cause++) {
		uint64_t now = (1000 + cause) * S;

		if (!words[cause])
			continue;
		assert_true(trouble(p, (enum peer_cause)cause, true, now));
		assert_false(trouble(p, (enum peer_cause)cause, true, now + S)); /* no news */
		shows("10.0.0.2", now + S, words[cause]);
		assert_int_equal(status_of("10.0.0.2", now + S).since_ns, now);
		assert_string_equal(status_of("10.0.0.2", now + S).why, "because");
	}
	assert_true(trouble(p, PEER_C_SELF, true, 2000 * S));
	assert_true(status_of("10.0.0.2", 2000 * S).heard); /* nothing is wrong */
	shows("n3.lab", 2000 * S, "never tried");
}

/* What may have several reasons does not hide what is known. */
static void test_sure(void **state)
{
	struct peer_state *p = place("10.0.0.2");

	(void)state;
	assert_true(trouble(p, PEER_C_TIMED_OUT, false, S));
	assert_true(trouble(p, PEER_C_KEY, true, 2 * S));
	assert_false(trouble(p, PEER_C_TIMED_OUT, false, 3 * S));
	shows("10.0.0.2", 3 * S, "key differs");
	/* That it takes connections says nothing about its key ... */
	assert_false(trouble(p, PEER_C_NONE, true, 4 * S));
	shows("10.0.0.2", 4 * S, "key differs");
	/* ... but it is news if nothing listened there. */
	assert_true(trouble(p, PEER_C_REFUSED, true, 5 * S));
	assert_false(trouble(p, PEER_C_NONE, true, 6 * S));
	shows("10.0.0.2", 6 * S, "no answer");
	assert_true(trouble(p, PEER_C_KEY, true, 7 * S));
	assert_true(trouble(p, PEER_C_TIMED_OUT, false, 7 * S + PEER_STATE_SURE_NS));
	shows("10.0.0.2", 8 * S + PEER_STATE_SURE_NS, "timed out");
	assert_non_null(strstr(status_of("10.0.0.2", 8 * S).advice, "TCP ports 7700 to 7702"));
}

static void test_heard_and_silent(void **state)
{
	struct peer_state *p = place("10.0.0.2");

	(void)state;
	trouble(p, PEER_C_CLOCK, true, S);
	hear("10.0.0.2", "n2", 7, 2 * S, NULL);
	shows("10.0.0.2", 2 * S, "heard");
	hear("10.0.0.2", "n2", 7, 4 * S, NULL);
	assert_int_equal(status_of("10.0.0.2", 5 * S).since_ns, 2 * S);
	/* What goes wrong meanwhile (a stranger at its address) is not shown while it is heard. */
	trouble(p, PEER_C_KEY, true, 4 * S + 1);
	shows("10.0.0.2", 5 * S, "heard");
	hear("10.0.0.2", "n2", 7, 5 * S, NULL);
	matrix_expire(&matrix, 9 * S);
	shows("10.0.0.2", 9 * S, "silent");
	assert_int_equal(status_of("10.0.0.2", 9 * S).since_ns, 5 * S);
	trouble(p, PEER_C_REFUSED, true, 10 * S);
	shows("10.0.0.2", 10 * S, "refused");
	assert_int_equal(status_of("10.0.0.2", 10 * S).since_ns, 10 * S);
	hear("10.0.0.2", "n2", 8, 20 * S, NULL);
	shows("10.0.0.2", 20 * S, "heard");
}

/* It answers a greeting, but its bulletins do not come. */
static void test_greeted_only(void **state)
{
	(void)state;
	peer_state_session(place("n3.lab"), "n3");
	shows("n3.lab", S, "silent");
	trouble(place("n3.lab"), PEER_C_NONE, true, S);
	shows("n3.lab", S, "silent");
}

static void test_peer_left(void **state)
{
	struct iocom_vector last = hear("10.0.0.2", "n2", 7, 2 * S, NULL);

	(void)state;
	last.sequence++;
	last.bits = IOCOM_BIT_LEAVES;
	assert_int_equal(matrix_put(&matrix, &last, 0, 3 * S), MATRIX_E_LEFT);
	peer_states_heard(&states, place("10.0.0.2"), &last, 3 * S);
	shows("10.0.0.2", 3 * S, "left");
	trouble(place("10.0.0.2"), PEER_C_REFUSED, true, 4 * S); /* as was to be expected */
	shows("10.0.0.2", 60 * S, "left");
	trouble(place("10.0.0.2"), PEER_C_CLUSTER, true, 61 * S); /* it has begun, elsewhere */
	shows("10.0.0.2", 61 * S, "other cluster");
}

static void test_twins(void **state)
{
	bool twin;

	(void)state;
	hear("10.0.0.2", "n2", 7, 10 * S, &twin);
	assert_false(twin);
	hear("n3.lab", "n2", 8, 10 * S + 1, &twin);
	assert_false(twin); /* it may have begun again and have two addresses */
	hear("10.0.0.2", "n2", 8, 11 * S, &twin);
	assert_false(twin); /* so it was */
	hear("n3.lab", "n2", 8, 11 * S + 1, &twin);
	assert_false(twin);
	shows("n3.lab", 11 * S + 1, "heard");
	/* Now the two are two. */
	hear("10.0.0.2", "n2", 9, 12 * S, &twin);
	hear("n3.lab", "n2", 8, 12 * S + 1, &twin);
	hear("10.0.0.2", "n2", 9, 13 * S, &twin);
	assert_true(twin);
	shows("10.0.0.2", 13 * S, "same name");
	shows("n3.lab", 13 * S, "same name");
	assert_string_equal(status_of("n3.lab", 13 * S).why,
			    "it calls itself n2, as the peer at 10.0.0.2 port 7700 does");
	assert_int_equal(status_of("10.0.0.2", 13 * S).since_ns, 12 * S);
	assert_int_equal(status_of("n3.lab", 13 * S).since_ns,
			 12 * S); /* not since it began itself */
	/* One has got another name. */
	for (unsigned t = 14; t < 24; t++) {
		hear("10.0.0.2", "n2", 9, t * S, &twin);
		hear("n3.lab", "n3", 10, t * S + 1, NULL);
	}
	assert_false(twin);
	shows("10.0.0.2", 24 * S, "heard");
	shows("n3.lab", 24 * S, "heard");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, state_setup, state_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_places),	 CASE(test_each_cause),
		CASE(test_sure),	 CASE(test_heard_and_silent),
		CASE(test_greeted_only), CASE(test_peer_left),
		CASE(test_twins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
