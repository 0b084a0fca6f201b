/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Predictions against what happened: running errors, corrections, and what must not move them. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "agent/home/outcomes.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))
#define USER	   1000

static struct profile_store *profiles;
static struct counters counters;
static struct outcomes *outcomes;
static struct prediction list[PREDICTIONS_MAX];
static struct iocom_err err;
static char dir[] = "/tmp/iocom-test-outcomes-XXXXXX", path[64];

static int setup(void **state)
{
	const struct profile run = {.cpu_ms = 100};

	(void)state;
	counters = (struct counters){0};
	return profile_open(&profiles, ":memory:", &err) ||
	       profile_learn(profiles, USER, "sort", &run, &err) ||
	       outcomes_new(&outcomes, profiles, &counters);
}

static int teardown(void **state)
{
	(void)state;
	outcomes_free(outcomes);
	profile_close(profiles);
	return 0;
}

/* A job of class "sort" that took WALL_MS, where EXPECTED_MS were expected with FACTOR in them. */
static void take(const char *node, double wall_ms, double expected_ms, double factor, bool teaches)
{
	const struct journal_expectation e = {.there_ms = expected_ms, .there_factor = factor};
	const struct outcome job = {
		.uid = USER,
		.class_name = "sort",
		.node = node,
		.policy = "iocm-re",
		.wall_ms = wall_ms,
		.expected = &e,
		.teaches = teaches,
	};

	assert_int_equal(outcomes_take(outcomes, &job, &err), 0);
}

static void recall(const char *node, double wall_ms, double expected_ms)
{
	const struct journal_expectation e = {.there_ms = expected_ms};

	outcomes_recall(outcomes, &(struct outcome){.node = node,
						    .policy = "iocm-re",
						    .wall_ms = wall_ms,
						    .expected = &e});
}

static const struct prediction *of(const char *node)
{
	size_t n = outcomes_list(outcomes, list);

	assert_int_equal(n, outcomes_count(outcomes));
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].node, node))
			return &list[i];
	return NULL;
}

/* Nodes n0, n1, ... n9 are in the view, in reverse order; others are not. */
static uint32_t index_of(const void *arg, const char *node)
{
	(void)arg;
	return node[0] == 'n' && node[2] == 0 ? (uint32_t)('9' - node[1]) : UINT32_MAX;
}

static struct outcomes_factors factors_of(uid_t uid, const char *class_name)
{
	struct outcomes_factors f;

	assert_int_equal(outcomes_correct(outcomes, uid, class_name, index_of, NULL, &f, &err), 0);
	return f;
}

static double factor_at(const struct outcomes_factors *f, uint32_t node)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->at[i].node == node)
			return f->at[i].factor;
	return f->others;
}

static double doubt_of(uint32_t node)
{
	const struct outcomes_factors f = factors_of(USER + 1, "never seen");

	return outcomes_doubt(&f, node);
}

/* --- running errors -------------------------------------------------------------- */

static void test_running(void **state)
{
	const struct prediction *p;

	(void)state;
	assert_int_equal(outcomes_count(outcomes), 0);
	take("n2", 2000, 1000, 1, false);
	take("n2", 500, 1000, 1, false);
	take("n3", 1200, 1000, 1, false);
	p = of("n2");
	assert_string_equal(p->policy, "iocm-re");
	assert_int_equal(p->jobs, 2);
	assert_int_equal(p->total.jobs, 2);
	assert_int_equal(p->total.within_2, 2);
	assert_int_equal(p->total.within_1_25, 0);
	NEAR(p->total.log_error, 2 * log(2));
	NEAR(p->within_2, 1);
	NEAR(p->within_1_25, 0);
	/* Both errors cancel, but for the older one's smaller weight. */
	NEAR(p->ratio, exp((0.98 * log(2) - log(2)) / 1.98));
	p = of("n3");
	NEAR(p->ratio, 1.2);
	NEAR(p->within_1_25, 1);
	/* Three hundred right ones later nothing is left of the wrong ones but the totals. */
	for (int i = 0; i < 300; i++)
		take("n2", 1000, 1000, 1, false);
	take("n2", 10000, 1000, 1, false);
	p = of("n2");
	assert_int_equal(p->jobs, 303);
	assert_true(p->within_2 > 0.97 && p->within_2 < 1 && p->ratio > 1.02 && p->ratio < 1.06);
	assert_int_equal(p->total.within_2, 302);
}

/* Times that cannot be are counted and change nothing; without an expectation there is no error. */
static void test_absurd(void **state)
{
	static const double absurd[] = {0, -5, NAN, INFINITY, -INFINITY};

	(void)state;
	for (size_t i = 0; i < sizeof(absurd) / sizeof(*absurd); i++) {
		take("n2", absurd[i], 1000, 1, true);
		assert_int_equal(counters.outcomes_refused, i + 1);
		take("n2", 1000, absurd[i], 1, true);
		recall("n2", absurd[i], 1000);
		recall("n2", 1000, absurd[i]);
	}
	assert_int_equal(counters.outcomes_refused, 5);
	assert_int_equal(outcomes_count(outcomes), 0);
	NEAR(factors_of(USER, "sort").others, 0);
	/* A factor that is none counts as 1. */
	take("n2", 2000, 1000, NAN, true);
	take("n2", 2000, 1000, 0, true);
	NEAR(factors_of(USER, "sort").others, pow(2, 2 / 4.0));
}

/* A new agent has the same running errors, made from the journal, newest first. */
static void test_recall(void **state)
{
	struct prediction before;

	(void)state;
	for (int i = 1; i <= 70; i++)
		take("n2", 100 * i, 1000, 1, false);
	before = *of("n2");
	outcomes_free(outcomes);
	assert_int_equal(outcomes_new(&outcomes, profiles, &counters), 0);
	for (int i = 60; i >= 1; i--)
		recall("n2", 100 * i, 1000);
	assert_int_equal(of("n2")->total.jobs, 0); /* since the agent began */
	for (int i = 61; i <= 70; i++)
		take("n2", 100 * i, 1000, 1, false);
	NEAR(of("n2")->ratio, before.ratio);
	NEAR(of("n2")->within_2, before.within_2);
	NEAR(of("n2")->within_1_25, before.within_1_25);
	assert_int_equal(of("n2")->jobs, 70);
	assert_int_equal(of("n2")->total.jobs, 10);
}

/* Ever new nodes take the places of those that had no job for longest; older jobs take none. */
static void test_bounded(void **state)
{
	char name[16];

	(void)state;
	take("n2", 1000, 1000, 1, false);
	for (int i = 0; i < PREDICTIONS_MAX - 1; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		take(name, 1000, 1000, 1, false);
	}
	assert_int_equal(outcomes_count(outcomes), PREDICTIONS_MAX);
	take("n2", 1000, 1000, 1, false);
	recall("old", 1000, 1000);
	assert_null(of("old"));
	assert_int_equal(counters.predictions_replaced, 0);
	take("new", 2000, 1000, 1, false);
	assert_int_equal(counters.predictions_replaced, 1);
	assert_int_equal(outcomes_count(outcomes), PREDICTIONS_MAX);
	assert_null(of("m0"));
	assert_int_equal(of("n2")->jobs, 2);
	assert_int_equal(of("new")->jobs, 1); /* nothing is left of the other one */
	NEAR(of("new")->ratio, 2);
}

/* --- corrections ------------------------------------------------------------------ */

static void test_shrunk(void **state)
{
	struct outcomes_factors f = factors_of(USER, "sort");

	(void)state;
	NEAR(f.others, 0); /* nothing is known */
	assert_int_equal(f.count, 0);
	take("n2", 2000, 1000, 1, true);
	f = factors_of(USER, "sort");
	NEAR(f.others, pow(2, 1 / 3.0)); /* one job says little */
	assert_int_equal(f.count, 1);
	assert_int_equal(f.at[0].node, 7);
	NEAR(f.at[0].factor, pow(2, 1 / 3.0 + 1 / 3.0 * (1 - 1 / 3.0)));
	/* The more jobs, the nearer it is to what they took; other nodes are somewhere between. */
	for (int i = 0; i < 40; i++) {
		take("n2", 2000, 1000, 1, true);
		take("n4", 1000, 1000, 1, true);
	}
	f = factors_of(USER, "sort");
	assert_int_equal(f.count, 2);
	assert_true(f.at[0].node < f.at[1].node); /* in the view's order, not the names' */
	/* Nothing expected more of it, so it is doubted, too. */
	assert_true(factor_at(&f, 7) / outcomes_doubt(&f, 7) > 1.9);
	assert_true(factor_at(&f, 7) / outcomes_doubt(&f, 7) < 2);
	assert_true(factor_at(&f, 5) >= 1 && factor_at(&f, 5) < 1.05);
	assert_true(f.others > 1.2 && f.others < 1.7);
	/* Others' classes, and this user's others, know nothing of it. */
	NEAR(factors_of(USER + 1, "sort").others, 0);
	NEAR(factors_of(USER, "join").others, 0);
}

/* What was corrected already is not corrected twice: the factor settles where the truth is. */
static void test_settles(void **state)
{
	double factor = 1;

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct outcomes_factors f;

		take("n2", 3000, 1000 * factor, factor, true);
		f = factors_of(USER, "sort");
		factor = factor_at(&f, 7);
		assert_true(factor >= 1 && factor <= 3 + 1e-9);
	}
	assert_true(factor > 2.95);
	assert_true(of("n2")->ratio < 1.1); /* so predictions became right */
}

/* --- short jobs -------------------------------------------------------------------- */

/* A job at NODE that took WALL_MS, where EXPECTED_MS were expected there and HOME_MS at home. */
static void take_slack(const char *node, double wall_ms, double expected_ms, double home_ms)
{
	const struct journal_expectation e = {
		.there_ms = expected_ms, .home_ms = home_ms, .there_factor = 1, .home_factor = 1};
	const struct outcome job = {
		.uid = USER,
		.class_name = "sort",
		.node = node,
		.policy = "iocm-re",
		.wall_ms = wall_ms,
		.slack_ms = OUTCOMES_SLACK_MS,
		.expected = &e,
		.teaches = true,
	};

	assert_int_equal(outcomes_take(outcomes, &job, &err), 0);
}

/*
 * Jobs of milliseconds everywhere: at home their start was not expected, elsewhere the way there
 * was expected to take longer than it does.  That is no factor of what long jobs take, nor a reason
 * for a doubt; the predictions were wrong all the same.
 */
static void test_start_is_no_factor(void **state)
{
	struct outcomes_factors f;

	(void)state;
	for (int i = 0; i < 20; i++) {
		take_slack("n1", 40, 2, 2);
		take_slack("n1", 300, 2, 2); /* the machine had something else to do */
		take_slack("n2", 35, 102, 2);
		take_slack("n3", 35, 1102, 2); /* input of long ago: little is left of the way */
	}
	f = factors_of(USER, "sort");
	assert_int_equal(f.count, 0);
	NEAR(f.others, 0);
	NEAR(doubt_of(8), 1);
	assert_true(of("n1")->ratio > 4 && of("n2")->ratio < 0.5);
}

/* The factor of the class at NODE, without what its doubt adds. */
static double corrected(const struct outcomes_factors *f, uint32_t node)
{
	return factor_at(f, node) / outcomes_doubt(f, node);
}

/* Longer ones teach, but not what their start alone can have been. */
static void test_slack(void **state)
{
	struct outcomes_factors f;

	(void)state;
	for (int i = 0; i < 40; i++) {
		take_slack("n1", 340, 300, 300);
		take_slack("n2", 310, 400, 300);
	}
	f = factors_of(USER, "sort");
	assert_int_equal(f.count, 2);
	NEAR(factor_at(&f, 8), 1);
	NEAR(factor_at(&f, 7), 1);
	/* A node that is slower by half, or faster: learned, and the more the longer the jobs. */
	for (int i = 0; i < 80; i++) {
		take_slack("n2", 3100, 2100, 2000);
		take_slack("n3", 1100, 2100, 2000);
		take_slack("n4", 31000, 20100, 20000);
		take_slack("n1", 2040, 2000, 2000);
	}
	f = factors_of(USER, "sort");
	assert_true(corrected(&f, 7) > 1.3 && corrected(&f, 7) < 1.5);
	assert_true(corrected(&f, 6) < 0.7 && corrected(&f, 6) > 0.5);
	assert_true(corrected(&f, 5) > corrected(&f, 7));
	assert_true(factor_at(&f, 8) > 0.9 && factor_at(&f, 8) < 1.1);
}

/* A node that says that it is very fast makes no long job a short one: home knows better. */
static void test_short_by_lie(void **state)
{
	struct outcomes_factors f;

	(void)state;
	for (int i = 0; i < 8; i++)
		take_slack("n2", 2500, 20, 2000);
	f = factors_of(USER, "sort");
	assert_true(factor_at(&f, 7) > 3);
	assert_true(doubt_of(7) > 2);
}

/* A node that lies, or a run that hung, moves the factor to its bound at most, and not at once. */
static void test_cut(void **state)
{
	struct outcomes_factors f;

	(void)state;
	for (int i = 0; i < 10; i++)
		take("n2", 1000, 1000, 1, true);
	take("n2", 1e12, 1000, 1, true);
	f = factors_of(USER, "sort");
	assert_true(factor_at(&f, 7) > 1 && factor_at(&f, 7) < 1.2);
	for (int i = 0; i < 1000; i++)
		take("n2", 1e12, 1e-3, 1, true);
	f = factors_of(USER, "sort");
	assert_true(factor_at(&f, 7) > 3.9 && factor_at(&f, 7) <= RULES_CORRECTION_MAX);
	for (int i = 0; i < 1000; i++)
		take("n2", 1e-3, 1e12, 1, true);
	f = factors_of(USER, "sort");
	assert_true(factor_at(&f, 7) < 0.26 && factor_at(&f, 7) >= RULES_CORRECTION_MIN);
	assert_true(f.others >= RULES_CORRECTION_MIN);
}

/* --- nodes that are not believed --------------------------------------------------- */

/* The corrected expectation of a job of class "sort" at n2, whose rules alone expect RULES_MS. */
static double expected_now(double rules_ms)
{
	const struct outcomes_factors f = factors_of(USER, "sort");

	return rules_ms * (f.count ? factor_at(&f, 7) : 1);
}

/* Runs jobs at n2 that take WALL_MS, where the rules alone expect RULES_MS. */
static void run(int jobs, double wall_ms, double rules_ms)
{
	for (int i = 0; i < jobs; i++) {
		double expected = expected_now(rules_ms);

		take("n2", wall_ms, expected, expected / rules_ms, true);
	}
}

/*
 * A node that says that it is a hundred times as fast as it is: after a few jobs, of any class and
 * of any user, that is not believed any more.
 */
static void test_lying_node(void **state)
{
	struct outcomes_factors f;

	(void)state;
	run(3, 1000, 10);
	assert_true(doubt_of(7) > 2);
	run(30, 1000, 10);
	assert_true(expected_now(10) > 500);
	/* another user's class is warned */
	f = factors_of(USER + 1, "never seen");
	assert_int_equal(f.count, 1);
	assert_true(f.others == 0 && f.at[0].node == 7 && f.at[0].factor > 10);
	NEAR(f.at[0].factor, doubt_of(7));
	NEAR(doubt_of(8), 1);
	/* it mends its ways: jobs there do what is expected, then less, and the doubt goes */
	run(30, 10, 10);
	NEAR(doubt_of(7), 1);
}

/* Errors that corrections by class take care of are no reason for a doubt. */
static void test_no_doubt(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++)
		run(1, i % 2 ? 2000 : 900, 1000);
	NEAR(doubt_of(7), 1);
	run(1, 1e9, 1000); /* a run that hung */
	NEAR(doubt_of(7), 1);
}

/* A class that sleeps takes long everywhere: no node is to blame. */
static void test_sleepers(void **state)
{
	const struct journal_expectation e = {.there_ms = 10, .there_factor = 1};
	const struct outcome job = {.uid = USER,
				    .class_name = "sort",
				    .node = "n2",
				    .policy = "p",
				    .wall_ms = 30000,
				    .expected = &e,
				    .teaches = true,
				    .idle = true};

	(void)state;
	for (int i = 0; i < 30; i++)
		assert_int_equal(outcomes_take(outcomes, &job, &err), 0);
	NEAR(doubt_of(7), 1);
}

/* A node that nobody uses is tried again after some dozen jobs elsewhere. */
static void test_doubts_fade(void **state)
{
	(void)state;
	run(30, 1e6, 10);
	assert_true(doubt_of(7) > 200 && doubt_of(7) <= 256 + 1e-6);
	for (int i = 0; i < 60; i++)
		take("n3", 1000, 1000, 1, true);
	assert_true(doubt_of(7) > 2);
	for (int i = 0; i < 60; i++)
		take("n3", 1000, 1000, 1, true);
	NEAR(doubt_of(7), 1);
}

/* Jobs that do not teach have a running error only, and so have those without a class. */
static void test_teaches(void **state)
{
	const struct journal_expectation e = {.there_ms = 1000, .there_factor = 1};
	struct outcome job = {.uid = USER,
			      .class_name = "",
			      .node = "n2",
			      .policy = "p",
			      .wall_ms = 2000,
			      .expected = &e,
			      .teaches = true};

	(void)state;
	take("n2", 4000, 1000, 1, false);
	assert_int_equal(of("n2")->jobs, 1);
	NEAR(factors_of(USER, "sort").others, 0);
	assert_int_equal(outcomes_take(outcomes, &job, &err), 0);
	job.class_name = "forgotten meanwhile";
	assert_int_equal(outcomes_take(outcomes, &job, &err), 0);
	NEAR(factors_of(USER, "").others, 0);
	NEAR(factors_of(USER, "forgotten meanwhile").others, 0);
	assert_int_equal(outcomes_count(outcomes), 2); /* by policy, too */
}

/* A node that left the view, or has a new place, corrects nothing or its own place. */
static void test_view(void **state)
{
	struct outcomes_factors f;
	char name[3] = "n0";

	(void)state;
	take("gone", 4000, 1000, 1, true);
	for (int i = 0; i < 10; i++) {
		name[1] = (char)('0' + i);
		take(name, 500 + 100 * i, 1000, 1, true);
	}
	f = factors_of(USER, "sort");
	assert_int_equal(f.count, 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(f.at[i].node, i);
	for (uint32_t i = 1; i < 10; i++)
		assert_true(f.at[i].factor < f.at[i - 1].factor); /* n9 is the first, n0 the last */
}

/* The store fails: no correction, and a sentence. */
static void test_store_fails(void **state)
{
	const struct journal_expectation e = {.there_ms = 1000};
	const struct outcome job = {.uid = USER,
				    .class_name = "sort",
				    .node = "n2",
				    .policy = "p",
				    .wall_ms = 2000,
				    .expected = &e,
				    .teaches = true};
	struct outcomes_factors f;
	sqlite3 *db;

	(void)state;
	teardown(NULL);
	assert_int_equal(profile_open(&profiles, path, &err), 0);
	assert_int_equal(outcomes_new(&outcomes, profiles, &counters), 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DROP TABLE error", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(outcomes_take(outcomes, &job, &err), -EIO);
	assert_string_not_equal(err.text, "");
	assert_int_equal(outcomes_count(outcomes), 1); /* the running error does not need it */
	assert_int_equal(outcomes_correct(outcomes, USER, "sort", index_of, NULL, &f, &err), -EIO);
	assert_int_equal(f.count, 0);
	NEAR(f.others, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_running),	CASE(test_absurd),	 CASE(test_recall),
		CASE(test_bounded),	CASE(test_shrunk),	 CASE(test_settles),
		CASE(test_cut),		CASE(test_teaches),	 CASE(test_view),
		CASE(test_store_fails), CASE(test_lying_node),	 CASE(test_no_doubt),
		CASE(test_doubts_fade), CASE(test_sleepers),	 CASE(test_start_is_no_factor),
		CASE(test_slack),	CASE(test_short_by_lie),
	};
	char command[64];
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? 1 : rc;
}
