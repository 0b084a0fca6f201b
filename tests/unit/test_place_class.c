/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the class of a submission tells: set needs, the size of the input, light classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "balancer/profile/profile_runs.h"
#include "balancer/view/placement.h"
#include "tests/lib/parties.h"
#include "user/pack.h"

#define NEAR(a, b) assert_true((double)(a) > (b)-1e-6 && (double)(a) < (b) + 1e-6)

static struct parties all;
static struct iocom_err err;
static json_t *document;
static struct placement answer;

static int begin(void **state)
{
	(void)state;
	parties_begin(&all, 2);
	all.nodes[0].set.light_ms = 200;
	placement_init(&answer);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	placement_fini(&answer);
	json_decref(document);
	document = NULL;
	parties_end(&all);
	return 0;
}

/* A run of class sort that needed CPU_MS on an input of INPUT_MB. */
static void ran(double cpu_ms, double input_mb)
{
	struct profile run = {.cpu_ms = cpu_ms,
			      .wall_ms = cpu_ms,
			      .memory_mb = 5,
			      .read_mb = input_mb > 0 ? input_mb : 0};
	struct profile_origin origin = {.input_mb = input_mb, .node = "n1"};

	assert_int_equal(
		profile_learn_run(all.nodes[0].profiles, PARTIES_UID, "sort", &run, &origin, &err),
		0);
}

static struct placement_ask ask_sort(void)
{
	struct placement_ask ask;

	placement_ask_init(&ask);
	strcpy(ask.cwd, "/");
	strcpy(ask.executable, "/bin/sort");
	strcpy(ask.class_name, "sort");
	return ask;
}

static void told(void *arg, json_t *got, const char *why)
{
	(void)arg;
	assert_null(why);
	document = got;
}

static void place(const struct placement_ask *ask)
{
	msgpack_sbuffer request;
	msgpack_unpacked map;

	placement_fini(&answer);
	json_decref(document);
	document = NULL;
	placement_ask_pack(ask, &request);
	assert_int_equal(unpack_map(&map, request.data, request.size), 0);
	home_place(all.nodes[0].home, PARTIES_UID, &map.data, told, NULL);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&request);
	assert_non_null(document);
	assert_int_equal(placement_read(&answer, document, "it", &err), 0);
}

static void test_light(void **state)
{
	struct placement_ask ask = ask_sort();

	(void)state;
	ran(20, -1);
	ran(20, -1);
	place(&ask);
	assert_string_equal(answer.light, ""); /* two runs are no proof */
	ran(20, -1);
	place(&ask);
	assert_non_null(strstr(answer.light, "20 ms of work"));
	assert_non_null(strstr(answer.light, "200 ms (light_ms)"));
	assert_string_equal(answer.policy, "nlb");
	assert_string_equal(answer.node, "n1");
	/* Who says where, by what or what it needs, decides. */
	strcpy(ask.policy, "cpu-re");
	place(&ask);
	assert_string_equal(answer.light, "");
	assert_string_equal(answer.policy, "cpu-re");
	ask = ask_sort();
	ask.need.value[NEED_CPU_S] = 0.01;
	place(&ask);
	assert_string_equal(answer.light, "");
	ask = ask_sort();
	strcpy(ask.node, "n2");
	place(&ask);
	assert_string_equal(answer.light, "");
	ask = ask_sort();
	all.nodes[0].set.light_ms = 0;
	place(&ask);
	assert_string_equal(answer.light, "");
	all.nodes[0].set.light_ms = 19;
	place(&ask);
	assert_string_equal(answer.light, "");
}

/* Work that is more than light, or much memory, may go. */
static void test_heavy(void **state)
{
	struct placement_ask ask = ask_sort();
	struct profile run = {.cpu_ms = 20, .wall_ms = 20, .memory_mb = 1e6};

	(void)state;
	for (int i = 0; i < 4; i++)
		ran(5000, -1);
	place(&ask);
	assert_string_equal(answer.light, "");
	strcpy(ask.class_name, "big");
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			profile_learn(all.nodes[0].profiles, PARTIES_UID, "big", &run, &err), 0);
	place(&ask);
	assert_string_equal(answer.light, "");
}

static void test_input(void **state)
{
	struct placement_ask ask = ask_sort();

	(void)state;
	for (int i = 1; i <= 5; i++)
		ran(1000.0 * i, 100.0 * i);
	ask.input_bytes = 340000000;
	place(&ask);
	NEAR(answer.need.value[NEED_CPU_S], 3.4);
	assert_int_equal(answer.need.source[NEED_CPU_S], NEED_PROFILE);
	assert_non_null(strstr(answer.learned, "for 340 MB of input, from 5 runs"));
	ask.input_bytes = -1;
	place(&ask);
	assert_null(strstr(answer.learned, "of input"));
	assert_non_null(strstr(answer.learned, "from 5 runs (5 cold ones)"));
}

/* An option comes before what is set, and that before what is learned. */
static void test_set(void **state)
{
	struct placement_ask ask = ask_sort();
	struct need_options set;

	(void)state;
	need_options_init(&set);
	set.value[NEED_CPU_S] = 7;
	assert_int_equal(profile_set(all.nodes[0].profiles, PARTIES_UID, "sort", &set, &err), 0);
	place(&ask);
	NEAR(answer.need.value[NEED_CPU_S], 7); /* also before any run */
	assert_int_equal(answer.need.source[NEED_CPU_S], NEED_SET);
	assert_string_equal(answer.learned, "");
	for (int i = 0; i < 3; i++)
		ran(20, -1);
	place(&ask);
	NEAR(answer.need.value[NEED_CPU_S], 7);
	NEAR(answer.need.value[NEED_MEMORY_MB], 5);
	assert_string_equal(answer.light, ""); /* its user knows better */
	ask.need.value[NEED_CPU_S] = 9;
	place(&ask);
	NEAR(answer.need.value[NEED_CPU_S], 9);
	assert_int_equal(answer.need.source[NEED_CPU_S], NEED_OPTION);
	assert_int_equal(profile_unset(all.nodes[0].profiles, PARTIES_UID, "sort", &err), 0);
	place(&ask);
	NEAR(answer.need.value[NEED_CPU_S], 9);
	ask = ask_sort();
	place(&ask);
	NEAR(answer.need.value[NEED_CPU_S], 0.02);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_light, begin, finish),
		cmocka_unit_test_setup_teardown(test_heavy, begin, finish),
		cmocka_unit_test_setup_teardown(test_input, begin, finish),
		cmocka_unit_test_setup_teardown(test_set, begin, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
