/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What balancing has gained: values computed by hand, jobs that are not judged, and whether the
 * intervals contain a gain that is known because it was made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/report/gain.h"

#define JOBS 12000

static struct gain_job jobs[JOBS];
static size_t njobs;
static struct gain_report report;
static const struct gain_filter all = {0};

static void almost(double got, double wanted)
{
	if (!(fabs(got - wanted) < 1e-9 * fmax(1, fabs(wanted))))
		fail_msg("%.12g is not %.12g", got, wanted);
}

static int begin(void **state)
{
	(void)state;
	njobs = 0;
	return 0;
}

/* A job that counts: it left for THERE, or stayed if THERE is NULL. */
static struct gain_job *add(const char *there, double wall_ms, double expected_home_ms)
{
	struct gain_job *job = &jobs[njobs++];

	*job = (struct gain_job){.policy = "iocm-re",
				 .node = there ? there : "home",
				 .user = "ada",
				 .class_name = "sort",
				 .wall_ms = wall_ms,
				 .expected_ms = expected_home_ms,
				 .expected_home_ms = expected_home_ms,
				 .known = true,
				 .balanced = true,
				 .moved = there != NULL,
				 .well = true};
	return job;
}

static void add_times(unsigned n, const char *there, double wall_ms, double expected_home_ms)
{
	while (n--)
		add(there, wall_ms, expected_home_ms);
}

static const struct gain_row *compute(const struct gain_filter *filter)
{
	assert_int_equal(gain_compute(jobs, njobs, filter, &report), 0);
	assert_int_equal(report.by[GAIN_TOTAL].nrows, 1);
	return &report.by[GAIN_TOTAL].rows[0];
}

/* --- by hand ------------------------------------------------------------------------- */

/* Those at home took what was expected, so the expectation counts as it is: no spread. */
static void test_exact(void **state)
{
	const struct gain_row *total;

	(void)state;
	add_times(10, NULL, 100, 100);
	add_times(5, "there", 40, 100);
	total = compute(&all);
	assert_int_equal(total->jobs, 15);
	assert_int_equal(total->left, 5);
	assert_int_equal(total->judged, 5);
	assert_int_equal(total->verdict, GAIN_TOLD);
	almost(total->time_ms, 1200);
	almost(total->took_ms, 200);
	almost(total->home_ms, 500);
	almost(total->gain_ms, 300);
	almost(total->low_ms, 300);
	almost(total->high_ms, 300);
	assert_int_equal(report.stayed, 10);
	almost(report.stayed_median, 1);
}

/* Those at home took 1.5 times as long as expected: so would the others have. */
static void test_errors_count(void **state)
{
	const struct gain_row *total;

	(void)state;
	add_times(10, NULL, 150, 100);
	add_times(6, "there", 200, 100);
	total = compute(&all);
	almost(total->home_ms, 900);
	almost(total->gain_ms, -300);
	almost(total->high_ms, -300);
	assert_int_equal(total->verdict, GAIN_TOLD); /* a loss is told, too */
	almost(report.stayed_median, 1.5);
}

/* Errors of 0.5 and 1.5, ten of each: a mean of 1, and a job gains -20 or 80 ms. */
static void test_spread(void **state)
{
	const struct gain_row *total;

	(void)state;
	add_times(10, NULL, 50, 100);
	add_times(10, NULL, 150, 100);
	add_times(100, "there", 70, 100);
	total = compute(&all);
	almost(total->gain_ms, 3000);
	/*
	 * Standard deviation of the sum: 100 jobs of 50 ms each, and of the mean of 20 errors:
	 * sqrt(100 x 50^2 + (100 x 50)^2 / 20) = 1225 ms; 1.96 of them on each side.
	 */
	assert_true(fabs(total->low_ms - (3000 - 2401)) < 300);
	assert_true(fabs(total->high_ms - (3000 + 2401)) < 300);
	assert_int_equal(total->verdict, GAIN_TOLD);
}

static void test_unsure(void **state)
{
	const struct gain_row *total;

	(void)state;
	add_times(10, NULL, 50, 100);
	add_times(10, NULL, 150, 100);
	add_times(100, "there", 95, 100);
	total = compute(&all);
	almost(total->gain_ms, 500);
	assert_true(total->low_ms < 0 && total->high_ms > 0);
	assert_int_equal(total->verdict, GAIN_UNSURE);
}

/* A class with ten jobs at home has errors of its own; one with nine has those of all. */
static void test_classes(void **state)
{
	const struct gain_row *total;

	(void)state;
	add_times(10, NULL, 100, 100);
	for (int i = 0; i < 10; i++)
		add(NULL, 300, 100)->class_name = "mmap";
	for (int i = 0; i < 5; i++)
		add("there", 100, 100)->class_name = "mmap"; /* 300 at home */
	for (int i = 0; i < 5; i++)
		add("there", 100, 100)->class_name = "new"; /* (10 x 1 + 10 x 3) / 20: 200 */
	for (int i = 0; i < 5; i++) {
		struct gain_job *job = add("there", 100, 100); /* of another user: 200, too */

		job->class_name = "mmap";
		job->user = "bob";
	}
	total = compute(&all);
	almost(total->home_ms, 5 * 300 + 5 * 200 + 5 * 200);
	assert_int_equal(report.by[GAIN_CLASS].nrows, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct gain_row *row = &report.by[GAIN_CLASS].rows[i];

		if (!strcmp(row->name, "mmap"))
			almost(row->home_ms, strcmp(row->user, "bob") ? 1500 : 1000);
	}
	assert_int_equal(report.by[GAIN_USER].nrows, 2);
}

/* No error counts for more than 10, no job for more than 20 times its time. */
static void test_bounds(void **state)
{
	(void)state;
	add_times(10, NULL, 1e6, 100);
	add_times(5, "there", 100, 150); /* 10 x 150 */
	almost(compute(&all)->home_ms, 5 * 1500);
	add_times(5, "there", 10, 150); /* 20 x 10 */
	almost(compute(&all)->home_ms, 5 * 1500 + 5 * 200);
	almost(report.stayed_median, 1e4);
}

static void test_predictions(void **state)
{
	static const double ratios[] = {0.4, 0.5, 0.8, 1, 1.25, 1.3, 2, 2.1, 5};
	const struct gain_predictions *p = &report.predictions;

	(void)state;
	for (size_t i = 0; i < 9; i++)
		add(i % 2 ? "there" : NULL, 100 * ratios[i], 7)->expected_ms = 100;
	compute(&all);
	assert_int_equal(p->jobs, 9);
	almost(p->median, 1.25);
	almost(p->low, 0.44);  /* 0.4 of the way from the first to the second */
	almost(p->high, 3.84); /* 0.6 of the way from 2.1 to 5 */
	almost(p->within_quarter, 3 / 9.0);
	almost(p->within_two, 6 / 9.0);
}

/* --- what cannot be told ----------------------------------------------------------------- */

static void test_empty(void **state)
{
	const struct gain_row *total;

	(void)state;
	total = compute(&all);
	assert_int_equal(total->jobs, 0);
	assert_int_equal(total->verdict, GAIN_FEW);
	assert_int_equal(report.predictions.jobs, 0);
	assert_int_equal(report.by[GAIN_POLICY].nrows, 0);
	assert_int_equal(report.stayed, 0);
	almost(report.stayed_median, 0);
}

static void test_one(void **state)
{
	const struct gain_row *total;

	(void)state;
	add("there", 50, 100);
	total = compute(&all);
	assert_int_equal(total->jobs, 1);
	assert_int_equal(total->judged, 1);
	assert_int_equal(total->verdict, GAIN_FEW);
	almost(total->gain_ms, 0); /* no bare number */
	assert_int_equal(report.predictions.jobs, 1);
	almost(report.predictions.low, 0.5);
	almost(report.predictions.high, 0.5);
}

static void test_thresholds(void **state)
{
	(void)state;
	add_times(9, NULL, 100, 100);
	add_times(4, "there", 50, 100);
	assert_int_equal(compute(&all)->verdict, GAIN_FEW);
	add_times(1, "there", 50, 100);
	assert_int_equal(compute(&all)->verdict, GAIN_NO_SCALE);
	almost(compute(&all)->gain_ms, 0);
	add_times(1, NULL, 100, 100);
	assert_int_equal(compute(&all)->verdict, GAIN_TOLD);
}

/* One job at home that is longer than all others says too little, however many they are. */
static void test_outweighed(void **state)
{
	(void)state;
	add_times(50, NULL, 100, 100);
	add_times(5, "there", 50, 100);
	assert_int_equal(compute(&all)->verdict, GAIN_TOLD);
	add(NULL, 1e9, 1e9);
	assert_int_equal(compute(&all)->verdict, GAIN_NO_SCALE);
}

/* Long jobs' errors weigh more: (1 x 50 + 3 x 150) / 200 = (50 + 450) / 200. */
static void test_weights(void **state)
{
	(void)state;
	add_times(20, NULL, 50, 50);
	add_times(20, NULL, 450, 150);
	add_times(5, "there", 100, 100);
	almost(compute(&all)->home_ms, 5 * 250);
}

static void test_unknown(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++)
		add(i % 2 ? "there" : NULL, 50, 100)->known = false;
	add("there", 50, 0); /* known, but not what home would take */
	assert_int_equal(compute(&all)->verdict, GAIN_FEW);
	assert_int_equal(compute(&all)->judged, 0);
	assert_int_equal(compute(&all)->left, 16);
	assert_int_equal(report.left_out[GAIN_UNKNOWN], 31);
	assert_int_equal(report.predictions.jobs, 0);
	assert_int_equal(report.stayed, 0);
}

static void test_absurd(void **state)
{
	static const double bad[] = {-1, NAN, INFINITY, -INFINITY};

	(void)state;
	add_times(10, NULL, 100, 100);
	add_times(5, "there", 40, 100);
	for (int i = 0; i < 4; i++) {
		add("there", bad[i], 100);
		add("there", 40, bad[i]);
		add(NULL, bad[i], bad[i]);
	}
	add("there", 0, 100);
	almost(compute(&all)->gain_ms, 300);
	assert_int_equal(report.left_out[GAIN_ABSURD], 13);
	assert_int_equal(report.predictions.jobs, 15);
	almost(compute(&all)->time_ms, 1200 + 4 * 40);
	add("there", 1e-300, 1e300); /* absurd, but bounded: 20 x 1e-300 */
	assert_true(isfinite(compute(&all)->gain_ms));
	assert_true(fabs(compute(&all)->gain_ms - 300) < 1);
}

static void test_left_out(void **state)
{
	(void)state;
	add_times(10, NULL, 100, 100);
	add_times(5, "there", 40, 100);
	add("there", 1, 100)->balanced = false;
	add("there", 1, 100)->well = false;
	add(NULL, 1, 100)->balanced = false;
	add(NULL, 1, 100)->well = false;
	almost(compute(&all)->gain_ms, 300);
	assert_int_equal(report.left_out[GAIN_NAMED], 2);
	assert_int_equal(report.left_out[GAIN_FAILED], 2);
	assert_int_equal(report.stayed, 10);
	assert_int_equal(compute(&all)->jobs, 19);
	assert_int_equal(compute(&all)->left, 6); /* the failed one left, too */
}

/* --- tables ---------------------------------------------------------------------------- */

static void test_filter(void **state)
{
	static const struct gain_filter io = {.policy = "IO-re"}, far = {.node = "far"};
	static const struct gain_filter none = {.policy = "io-re", .node = "nowhere"};

	(void)state;
	add_times(10, NULL, 100, 100);
	for (int i = 0; i < 5; i++)
		add("near", 40, 100)->policy = "io-re";
	add_times(6, "far", 90, 100);
	assert_int_equal(compute(&io)->jobs, 5);
	almost(compute(&io)->gain_ms, 300); /* with the errors of jobs that are not asked for */
	assert_int_equal(report.predictions.jobs, 5);
	assert_int_equal(compute(&far)->jobs, 6);
	almost(compute(&far)->gain_ms, 60);
	assert_int_equal(compute(&none)->jobs, 0);
	assert_int_equal(compute(&all)->jobs, 21);
	assert_int_equal(report.by[GAIN_NODE].nrows, 3);
	assert_string_equal(report.by[GAIN_NODE].rows[0].name, "home"); /* 1000 ms: the longest */
	assert_string_equal(report.by[GAIN_NODE].rows[1].name, "far");
	assert_string_equal(report.by[GAIN_NODE].rows[2].name, "near");
	assert_int_equal(report.by[GAIN_NODE].rows[0].verdict, GAIN_FEW);
	almost(report.by[GAIN_NODE].rows[1].gain_ms, 60);
	almost(report.by[GAIN_NODE].rows[2].gain_ms, 300);
	almost(report.by[GAIN_POLICY].rows[0].gain_ms, 60);
	almost(report.by[GAIN_POLICY].rows[1].low_ms, 300);
}

/* The rows of 30 nodes: the 19 with most time, and one for the 11 others. */
static void test_rows(void **state)
{
	static char names[30][8];
	const struct gain_table *table = &report.by[GAIN_NODE];

	(void)state;
	for (int i = 0; i < 30; i++) {
		snprintf(names[i], sizeof(names[i]), "n%d", i);
		add(names[i], 100 + i, 200);
	}
	add_times(10, NULL, 1, 1); /* "home" has 10 ms: among the others */
	compute(&all);
	assert_int_equal(table->nrows, GAIN_ROWS);
	assert_int_equal(table->others, 12);
	assert_string_equal(table->rows[0].name, "n29");
	assert_string_equal(table->rows[18].name, "n11");
	assert_null(table->rows[19].name);
	assert_int_equal(table->rows[19].jobs, 21);
	assert_int_equal(table->rows[19].judged, 11);
	almost(table->rows[19].gain_ms, 11 * 100 - (0 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10));
	assert_int_equal(table->rows[19].verdict, GAIN_TOLD);
}

/* More jobs than it takes: the first ones. */
static void test_many(void **state)
{
	(void)state;
	add_times(GAIN_JOBS / 2, NULL, 100, 100);
	add_times(GAIN_JOBS / 2, "there", 50, 100);
	add_times(JOBS - GAIN_JOBS, "there", 1e9, 100);
	assert_int_equal(compute(&all)->jobs, GAIN_JOBS);
	almost(compute(&all)->gain_ms, GAIN_JOBS / 2 * 50.0);
}

/* --- a gain that is known ------------------------------------------------------------- */

static uint64_t seed;

static double uniform(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double gaussian(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/*
 * Makes a week of jobs that take 0.5 to 50 s, with expectations 1.3 times too low and scattered
 * by a factor of 1.6, and returns what those that left gained.
 */
static double make(uint64_t number, unsigned stay, unsigned leave, double speedup)
{
	double gain = 0;

	seed = number;
	njobs = 0;
	for (unsigned i = 0; i < stay + leave; i++) {
		double home_ms = 500 * pow(100, uniform());
		double expected_ms = home_ms / 1.3 * exp(0.47 * gaussian());
		double wall_ms = home_ms / speedup * exp(0.3 * gaussian());

		if (i < stay) {
			add(NULL, home_ms, expected_ms);
			continue;
		}
		add("there", wall_ms, expected_ms);
		gain += home_ms - wall_ms;
	}
	return gain;
}

/* Of 200 such weeks: how many have an interval, the gain in it, and the wrong sign. */
struct covered {
	unsigned given, inside, wrong;
};

static struct covered covered(unsigned stay, unsigned leave, double speedup)
{
	struct covered c = {0};

	for (uint64_t number = 1; number <= 200; number++) {
		double gain = make(number, stay, leave, speedup);
		const struct gain_row *total = compute(&all);

		c.given += total->verdict == GAIN_TOLD || total->verdict == GAIN_UNSURE;
		c.inside += total->low_ms <= gain && gain <= total->high_ms;
		c.wrong += total->verdict == GAIN_TOLD && gain * total->gain_ms < 0;
	}
	print_message("%u stay, %u leave, %.1f times as fast: %u of %u intervals have the gain, "
		      "%u say the wrong sign\n",
		      stay, leave, speedup, c.inside, c.given, c.wrong);
	return c;
}

static void test_coverage(void **state)
{
	static const struct {
		unsigned stay, leave;
		double speedup;
	} weeks[] = {{60, 60, 1.5}, {200, 40, 1}, {40, 40, 0.8}, {30, 200, 2}};

	(void)state;
	for (size_t i = 0; i < sizeof(weeks) / sizeof(*weeks); i++) {
		struct covered c = covered(weeks[i].stay, weeks[i].leave, weeks[i].speedup);

		assert_int_equal(c.given, 200);
		assert_true(c.inside >= 180);
		assert_true(c.wrong <= 10);
	}
}

/* Few jobs stayed: not every week gets an interval, and those that do are as good. */
static void test_coverage_of_few(void **state)
{
	struct covered c = covered(15, 100, 2);

	(void)state;
	assert_in_range(c.given, 60, 199);
	assert_true(c.inside * 10 >= c.given * 9);
}

/* The intervals are not so wide that they say nothing. */
static void test_power(void **state)
{
	unsigned told = 0;

	(void)state;
	for (uint64_t number = 1; number <= 20; number++) {
		make(number, 200, 200, 2);
		told += compute(&all)->verdict == GAIN_TOLD && compute(&all)->gain_ms > 0;
	}
	assert_true(told >= 19);
}

static void test_same_again(void **state)
{
	double low, high;

	(void)state;
	make(7, 100, 100, 1.5);
	low = compute(&all)->low_ms;
	high = compute(&all)->high_ms;
	assert_true(low < high);
	assert_true(compute(&all)->low_ms == low && compute(&all)->high_ms == high);
	/* All jobs are of one policy: its row says what the total says. */
	assert_int_equal(report.by[GAIN_POLICY].nrows, 1);
	assert_true(report.by[GAIN_POLICY].rows[0].low_ms == low);
	assert_true(report.by[GAIN_POLICY].rows[0].high_ms == high);
}

#define CASE(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_exact),	CASE(test_errors_count),
		CASE(test_spread),	CASE(test_unsure),
		CASE(test_classes),	CASE(test_bounds),
		CASE(test_predictions), CASE(test_empty),
		CASE(test_one),		CASE(test_thresholds),
		CASE(test_outweighed),	CASE(test_weights),
		CASE(test_unknown),	CASE(test_absurd),
		CASE(test_left_out),	CASE(test_filter),
		CASE(test_rows),	CASE(test_many),
		CASE(test_coverage),	CASE(test_coverage_of_few),
		CASE(test_power),	CASE(test_same_again),
	};

	return cmocka_run_group_tests_name("gain", tests, NULL, NULL);
}
