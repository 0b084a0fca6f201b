/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Parameters by name: defaults, ranges, similar names, and those of the rules. */
#include <errno.h>
#include <string.h>

#include "tests/sim/node_driver.h"
#include "sim/params.h"
#include "sim/result.h"

static double value_of(const struct sim_params *p, const char *name)
{
	const char *found;
	double value;

	for (unsigned int i = 0; (found = sim_params_get(p, i, &value)); i++) {
		if (strcmp(found, name) == 0)
			return value;
	}
	fail_msg("no parameter %s", name);
	return 0;
}

static void defaults_are_the_readings(void **state)
{
	struct sim_params p;

	(void)state;
	sim_params_default(&p);
	assert_true(value_of(&p, "fidelity") == 0 && value_of(&p, "threads") == 1);
	assert_true(value_of(&p, "slice_ms") == 10 && value_of(&p, "switch_ms") == 0.1);
	assert_true(value_of(&p, "page_fault_ms") == 8.1);
	assert_true(value_of(&p, "page_fault_at_disk") == 1);
	assert_true(value_of(&p, "cpu_load_runnable") == 0 && value_of(&p, "transit_counts") == 1);
	assert_true(value_of(&p, "transfer_disk_work") == 0);
	assert_true(value_of(&p, "local_messages_free") == 1);
	assert_true(value_of(&p, "port_contention") == 1);
	assert_true(value_of(&p, "dedicated_buffer") == 1);
	assert_true(value_of(&p, "control_per_node") == 0 && value_of(&p, "bs_backfill") == 0);
	assert_true(value_of(&p, "priority_decay") == 0);
	assert_true(value_of(&p, "network_latency_ms") == 0.1);
	assert_true(value_of(&p, "memory_scale") == 1 && value_of(&p, "cpu_scale") == 1);
	assert_true(value_of(&p, "cpu_threshold") == 4); /* a parameter of the rules */
	assert_int_equal(p.rules.rates, RULES_RATES_COMPUTATION);
}

/* Every listed name can be set to its value, and each name is listed once. */
static void every_name_can_be_set(void **state)
{
	struct sim_params p, q;
	const char *name, *other;
	double value, unused;

	(void)state;
	sim_params_default(&p);
	memcpy(&q, &p, sizeof(q)); /* copies the padding too */
	for (unsigned int i = 0; (name = sim_params_get(&p, i, &value)); i++) {
		assert_int_equal(sim_params_set(&q, name, value, NULL), 0);
		for (unsigned int k = 0; k < i; k++) {
			other = sim_params_get(&p, k, &unused);
			assert_string_not_equal(name, other);
		}
	}
	assert_memory_equal(&p, &q, sizeof(p));
}

static void values_are_kept(void **state)
{
	struct sim_params p;

	(void)state;
	sim_params_default(&p);
	assert_int_equal(sim_params_set(&p, "seed", 9007199254740992.0, NULL), 0);
	assert_true(p.seed == 9007199254740992u);
	assert_int_equal(sim_params_set(&p, "threads", 2, NULL), 0);
	assert_int_equal(sim_params_set(&p, "fidelity", 1, NULL), 0);
	assert_int_equal(sim_params_set(&p, "page_fault_at_disk", 0, NULL), 0);
	assert_int_equal(sim_params_set(&p, "until_ms", 1e9, NULL), 0);
	assert_int_equal(sim_params_set(&p, "w_io", 0.25, NULL), 0);
	assert_int_equal(p.threads, 2);
	assert_int_equal(p.fidelity, SIM_FLUID);
	assert_false(p.page_fault_at_disk);
	assert_true(p.until_ms == 1e9 && p.rules.w_io == 0.25);
	assert_true(value_of(&p, "seed") == 9007199254740992.0 && value_of(&p, "w_io") == 0.25);
}

static void refuses(const char *name, double value, int code, const char *what)
{
	struct sim_params p, q;
	struct iocom_err err = {{0}};

	sim_params_default(&p);
	memcpy(&q, &p, sizeof(q)); /* copies the padding too */
	assert_int_equal(sim_params_set(&q, name, value, &err), code);
	assert_memory_equal(&p, &q, sizeof(p));
	if (!strstr(err.text, what))
		fail_msg("%s = %g: %s", name, value, err.text);
}

static void what_is_out_of_range(void **state)
{
	(void)state;
	refuses("slice_ms", 0, -EINVAL, "slice_ms");
	refuses("switch_ms", -1, -EINVAL, "switch_ms");
	refuses("switch_ms", NAN, -EINVAL, "switch_ms");
	refuses("switch_ms", INFINITY, -EINVAL, "switch_ms");
	refuses("threads", 0, -EINVAL, "from 1");
	refuses("threads", 1.5, -EINVAL, "whole");
	refuses("seed", -1, -EINVAL, "seed");
	refuses("fidelity", 2, -EINVAL, "fidelity");
	refuses("bs_backfill", 3, -EINVAL, "from 0 to 2");
	refuses("rho_max", 1, -EINVAL, "rho_max");
}

static void unknown_names_have_neighbours(void **state)
{
	(void)state;
	refuses("slice", 1, -ENOENT, "slice_ms");
	refuses("page_fault_disk", 1, -ENOENT, "page_fault_at_disk");
	refuses("cpu_treshold", 1, -ENOENT, "cpu_threshold");
	refuses("xyzzy", 1, -ENOENT, "iocom-sim(1)");
	refuses("", 1, -ENOENT, "no parameter");
	refuses("a_name_that_is_much_longer_than_any_parameter_of_the_simulator_could_ever_be_in_"
		"it",
		1, -ENOENT, "no parameter");
}

static void result_frees_what_it_owns(void **state)
{
	struct sim_result r = {.nnodes = 2, .nsamples = 3};

	(void)state;
	r.nodes = calloc(2, sizeof(*r.nodes));
	r.samples = calloc(3, sizeof(*r.samples));
	sim_result_free(&r);
	assert_null(r.nodes);
	sim_result_free(&r);
	sim_result_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_the_readings),
		cmocka_unit_test(every_name_can_be_set),
		cmocka_unit_test(values_are_kept),
		cmocka_unit_test(what_is_out_of_range),
		cmocka_unit_test(unknown_names_have_neighbours),
		cmocka_unit_test(result_frees_what_it_owns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
