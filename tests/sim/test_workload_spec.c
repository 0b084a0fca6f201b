/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The text of --workload: "gen:PRESET,key=value,..." or a file; each error has its position. */
#include "tests/sim/workload_fixture.h"

#include "sim/workload/spec.h"

static struct workload *must_spec(const char *text, const struct workload_options *o)
{
	struct iocom_err err = {0};
	struct workload *w = workload_spec_open(text, o, &err);

	if (!w)
		fail_msg("%s", err.text);
	return w;
}

static void bad(const char *text, const char *message)
{
	struct iocom_err err = {0};
	struct workload *w = workload_spec_open(text, NULL, &err);

	if (w) {
		workload_free(w);
		fail_msg("%s accepted", text);
	}
	assert_string_equal(err.text, message);
}

static void test_good(void **state)
{
	struct workload_options o = defaults();
	struct generator_params p;
	double *weights;
	uint32_t homes = 0;
	struct workload *w;

	(void)state;
	assert_int_equal(workload_spec_parse("gen:acm-30,io_per_ms=0.75,nodes=8,jobs=20,seed=7,"
					     "tasks_min=4,lifetime=gamma,lifetime_shape=3,"
					     "arrivals=regular,interarrival_ms=10",
					     NULL, &p, &weights, NULL),
			 0);
	assert_null(weights);
	NEAR(p.kind[0].io_per_ms, 0.75, 0);
	assert_int_equal(p.nodes, 8);
	assert_int_equal(p.jobs, 20);
	assert_int_equal(p.seed, 7);
	assert_int_equal(p.kind[0].tasks_min, 4);
	assert_int_equal(p.kind[0].tasks_max, 32);
	assert_int_equal(p.lifetime, LIFETIME_GAMMA);
	assert_true(p.arrivals_regular);
	NEAR(p.interarrival_ms, 10, 0);

	w = must_spec("gen:FC,home_weights=1:0:3,jobs=200", NULL);
	assert_int_equal(workload_info(w)->nodes, 3);
	assert_int_equal(workload_info(w)->jobs, 200);
	for (int i = 0; i < 200; i++)
		assert_int_not_equal(must_next(w).home, 1);
	workload_free(w);

	/* fewer weights than nodes are repeated */
	w = must_spec("gen:FC,nodes=5,home_weights=1:0,jobs=300", NULL);
	assert_int_equal(workload_info(w)->nodes, 5);
	for (int i = 0; i < 300; i++) {
		uint32_t home = must_next(w).home;

		assert_int_equal(home % 2, 0);
		homes |= 1U << home;
	}
	assert_int_equal(homes, 1U << 0 | 1U << 2 | 1U << 4);
	workload_free(w);

	/* values that the text does not give come from the options */
	o.seed = 5;
	o.nodes = 3;
	o.jobs_max = 11;
	assert_int_equal(workload_spec_parse("gen:fc", &o, &p, &weights, NULL), 0);
	assert_int_equal(p.seed, 5);
	assert_int_equal(p.nodes, 3);
	assert_int_equal(p.jobs, 11);
	assert_int_equal(
		workload_spec_parse("gen:fc,seed=6,nodes=4,jobs=9", &o, &p, &weights, NULL), 0);
	assert_int_equal(p.seed, 6);
	assert_int_equal(p.nodes, 4);
	assert_int_equal(p.jobs, 9);
}

static void test_bad(void **state)
{
	struct iocom_err err = {0};

	(void)state;
	bad("gen:fc,io_per_ms=fast",
	    "gen:fc,io_per_ms=fast: column 18: expected a number from 0 to 1e+06, found \"fast\"");
	bad("gen:fc,io_per_ms=", "gen:fc,io_per_ms=: column 18: expected a number from 0 to 1e+06, "
				 "found \"\"");
	bad("gen:fc,jobs=2,jobs=3",
	    "gen:fc,jobs=2,jobs=3: column 15: expected each key once, found \"jobs=3\"");
	bad("gen:fc,jobs", "gen:fc,jobs: column 8: expected jobs=VALUE, found \"jobs\"");
	bad("gen:fc,jobs=0", "gen:fc,jobs=0: column 13: expected a whole number from 1 to "
			     "1000000000000000, found \"0\"");
	bad("gen:fc,nodes=-3", "gen:fc,nodes=-3: column 14: expected a whole number from 1 to "
			       "100000000, found \"-3\"");
	bad("gen:fc,share=1.5",
	    "gen:fc,share=1.5: column 14: expected a number from 0 to 1, found \"1.5\"");
	bad("gen:plain,lifetime=normal",
	    "gen:plain,lifetime=normal: column 20: expected constant, exponential, pareto, "
	    "hyperexp or gamma, found \"normal\"");
	bad("gen:plain,arrivals=odd",
	    "gen:plain,arrivals=odd: column 20: expected poisson or regular, found \"odd\"");
	bad("gen:fc,home_weights=1:x",
	    "gen:fc,home_weights=1:x: column 23: expected a home's weight, a number from 0 to "
	    "1e15, found \"x\"");
	bad("gen:fc,nodes=2,home_weights=1:2:3",
	    "gen:fc,nodes=2,home_weights=1:2:3: expected at most a weight for each of 2 nodes, "
	    "found 3");
	bad("gen:fc,home_weights=0:0", "fc: the weights of the homes add up to 0");
	bad("gen:plain,lifetime=hyperexp,lifetime_shape=0.5",
	    "plain: a hyperexponential lifetime needs a squared coefficient of variation of at "
	    "least 1, not 0.5");
	assert_null(workload_spec_open("gen:nosuch,jobs=3", NULL, &err));
	assert_non_null(strstr(err.text, "gen:nosuch,jobs=3: column 5: expected a preset (fc, "));
	assert_non_null(strstr(err.text, "), found \"nosuch\""));
	assert_null(workload_spec_open("gen:fc,io=3", NULL, &err));
	assert_non_null(strstr(err.text, "gen:fc,io=3: column 8: expected a key (seed, jobs, "));
	assert_null(workload_spec_open("gen:fc,,", NULL, &err));
	assert_null(workload_spec_open("gen:", NULL, &err));
	assert_null(workload_spec_open("", NULL, &err));
	assert_null(workload_spec_open("./gen:x", NULL, &err));
	assert_string_equal(err.text, "cannot open ./gen:x: No such file or directory");
}

static void test_file(void **state)
{
	struct workload_options o = defaults();
	struct workload *w;

	(void)state;
	o.run = 0;
	w = must_spec(SAMPLES "csd.csv", &o);
	assert_int_equal(workload_info(w)->jobs, 3);
	workload_free(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests_name("workload spec", tests, NULL, NULL);
}
