/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The tables of experiments: the experiments that back a reason or that a reading judges exist.
 * Claims judged again under another reading, and their runs in shards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/experiments/claim_start.h"
#include "sim/experiments/code_claims.h"
#include "sim/experiments/runner.h"
#include "sim/experiments/scenario.h"
#include "sim/report/part.h"

/* --- tables ------------------------------------------------------------------------- */

static void test_reasons_are_backed(void **state)
{
	const struct experiment *e;

	(void)state;
	for (size_t i = 0; (e = experiment_at(i)); i++) {
		for (const struct claim *c = e->claims; c && c->text; c++) {
			const struct experiment *bound =
				c->bound ? experiment_find(c->bound) : NULL;

			if (c->bound && (!bound || bound->none))
				fail_msg("%s: '%s' is backed by %s, which is no experiment", e->id,
					 c->text, c->bound);
			if (c->why && !c->bound && c->kind != CLAIM_NOT_TESTED)
				fail_msg("%s: '%s' has a reason that nothing backs", e->id,
					 c->text);
		}
	}
}

/* Each paper with a configuration states what was chosen after seeing outcomes. */
static void test_calibration_is_told(void **state)
{
	const struct paper *p;

	(void)state;
	for (size_t i = 0; (p = paper_at(i)); i++)
		if (p->settings[0].name && !p->calibrated)
			fail_msg("%s does not say how its configuration was found", p->name);
}

/* --- common random numbers ----------------------------------------------------------- */

/* Whether a series only chooses a policy and its parameters or machines. */
static bool same_workload(const struct settings *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i].name, "workload") || !strncmp(s->v[i].name, "load.", 5))
			return false;
	return true;
}

/* Hashes the jobs (arrivals, homes, sizes) of UNIT; false: a probe, whose machines make its input.
 */
static bool input_of(const struct sweep *s, size_t unit, char out[72])
{
	struct iocom_err err = {0};
	struct scenario scenario;
	struct settings all;
	bool probe;

	assert_int_equal(sweep_unit_settings(s, unit, &all), 0);
	if (scenario_open(&scenario, &all, &err))
		fail_msg("%s: %s", s->id, err.text);
	settings_free(&all);
	probe = scenario_is_probe(&scenario);
	if (!probe) {
		struct workload *w = scenario_workload(&scenario, sweep_unit_seed(s, unit), &err);

		if (!w)
			fail_msg("%s: %s", s->id, err.text);
		snprintf(out, 72, "%s", workload_info(w)->hash);
		workload_free(w);
	}
	scenario_close(&scenario);
	return !probe;
}

/* Compares the series of each point and seed; counts pairs in *COMPARED. */
static void assert_common_input(const struct sweep *s, size_t *compared)
{
	for (size_t p = 0; p < s->npoints; p++) {
		for (uint32_t seed = 0; seed < s->seeds; seed++) {
			char first[72] = "", other[72];

			for (size_t k = 0; k < s->nseries; k++) {
				size_t unit = (p * s->nseries + k) * s->seeds + seed;

				if (!same_workload(&s->series[k].settings))
					continue;
				if (!input_of(s, unit, other))
					return;
				if (first[0] && strcmp(first, other) != 0)
					fail_msg("%s, %s, %s: the jobs differ from those of the "
						 "other policies",
						 s->id, s->points[p].label, s->series[k].label);
				*compared += first[0] != '\0';
				snprintf(first, sizeof(first), "%s", other);
			}
		}
	}
}

/* At the same point and seed all policies of all experiments get the same jobs; seeds differ. */
static void test_policies_get_the_same_jobs(void **state)
{
	struct settings few = {0};
	const struct experiment *e;
	size_t compared = 0;

	(void)state;
	assert_int_equal(settings_set(&few, "load.jobs", "12"), 0);
	for (size_t i = 0; (e = experiment_at(i)); i++) {
		struct iocom_err err = {0};
		char one[72], two[72];
		struct sweep *s;

		if (e->none)
			continue;
		s = experiment_sweep(e, 2, NULL, &few, &err);
		if (!s)
			fail_msg("%s: %s", e->id, err.text);
		assert_common_input(s, &compared);
		if (s->seeds > 1 && input_of(s, 0, one) && input_of(s, 1, two))
			assert_string_not_equal(one, two);
		sweep_free(s);
	}
	settings_free(&few);
	assert_true(compared > 1000);
}

/* --- readings ------------------------------------------------------------------------- */

static bool has_reading(const struct experiment *e, const char *label)
{
	for (const struct reading *r = e->readings; r->label; r++)
		if (!strcmp(r->label, label))
			return true;
	return false;
}

static size_t words(const char *text)
{
	char *copy = strdup(text), *save = NULL;
	size_t n = 0;

	assert_non_null(copy);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save), n++) {
		const struct experiment *e = experiment_find(w);

		if (!e || e->none || !e->claims)
			fail_msg("%s has no claims to judge", w);
	}
	free(copy);
	return n;
}

/* Readings 1 to 8: each with its common value first, and another. */
static void test_readings(void **state)
{
	(void)state;
	for (int i = 1; i <= 8; i++) {
		char id[16];
		const struct experiment *e;
		size_t readings = 0;
		struct sweep *s;

		snprintf(id, sizeof(id), "READ-%d", i);
		e = experiment_find(id);
		assert_non_null(e);
		assert_non_null(e->readings);
		assert_null(e->readings[0].settings);
		while (e->readings[readings].label)
			readings++;
		assert_true(readings > 1);
		for (const struct claim *c = e->claims; c->text; c++)
			if (c->code == claim_reading && !has_reading(e, c->at))
				fail_msg("%s has no reading '%s'", id, c->at);
		s = experiment_sweep(e, 2 * READING_SEEDS, NULL, NULL, NULL);
		assert_non_null(s);
		assert_int_equal(s->seeds, 2 * READING_SEEDS);
		assert_int_equal(s->nparts, readings * words(e->judged));
		assert_int_equal(s->parts[0]->seeds, READING_SEEDS);
		sweep_free(s);
	}
}

/* --- claims judged again ------------------------------------------------------------ */

/* ACM-18, with two claims: "all rise" and "IOCM-RE grows least". */
static struct sweep *acm_18(double growth_of_others, double growth_of_iocm)
{
	static const char *const series[] = {"cpu-re", "mem-re", "iocm-re"};
	struct sweep *s = sweep_new("ACM-18", "", "");

	assert_non_null(s);
	s->seeds = 3;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(sweep_add_point(s, (char[]){(char)('1' + i), 0}, 0, NULL, NULL),
				 0);
		assert_int_equal(sweep_add_series(s, series[i], series[i], NULL, NULL), 0);
	}
	assert_int_equal(sweep_results(s), 0);
	for (size_t u = 0; u < sweep_units(s); u++) {
		size_t point = u / 9, of = u / 3 % 3, seed = u % 3;
		double growth = of == 2 ? growth_of_iocm : growth_of_others;

		s->results[u].done = true;
		s->results[u].values[M_SLOWDOWN] =
			10 + growth * (double)point + 0.01 * (double)(seed * (of + 1));
	}
	return s;
}

static void judge(struct sweep *chosen, struct sweep *other, double printed, struct judgement *j)
{
	const struct claim claim = {.kind = CLAIM_CODE,
				    .a = "ACM-HET",
				    .at = "work for both disks",
				    .printed = printed,
				    .code = claim_reading};
	struct sweep *s = sweep_new("READ-5", "", "");
	const struct sweep *all[] = {s};
	struct claim_context context = {s, all, 1, 0};

	assert_non_null(s);
	s->seeds = 3;
	assert_int_equal(sweep_add_part(s, chosen), 0);
	assert_int_equal(sweep_add_part(s, other), 0);
	claim_judge(&context, &claim, j);
	sweep_free(s);
}

static void test_claims_that_turn(void **state)
{
	struct judgement j;

	(void)state;
	judge(acm_18(5, 1), acm_18(-1, -3), 1, &j);
	assert_int_equal(j.verdict, VERDICT_HOLDS);
	assert_string_equal(j.measured,
			    "[O] of 2 hold 2 (a delay), 1 (work for both disks); [Q] of 0 hold 0, "
			    "0; 0 undecided; hold no longer: ACM-18.1");
	judge(acm_18(1, 5), acm_18(5, 1), 1, &j);
	assert_string_equal(j.measured,
			    "[O] of 2 hold 1 (a delay), 2 (work for both disks); [Q] of 0 hold 0, "
			    "0; 0 undecided; hold now: ACM-18.2");
	judge(acm_18(5, 1), acm_18(4, 1), 1, &j);
	assert_int_equal(j.verdict, VERDICT_CONTRADICTED);
	assert_null(strstr(j.measured, "hold no"));
	judge(acm_18(5, 1), acm_18(-1, -3), 2, &j);
	assert_int_equal(j.verdict, VERDICT_CONTRADICTED);
}

/* --- runs --------------------------------------------------------------------------- */

static const struct experiment *short_experiment(struct experiment *e)
{
	*e = *experiment_find("READ-5");
	e->judged = "ACM-18";
	return e;
}

static struct sweep *short_sweep(void)
{
	struct settings few = {0};
	struct experiment e;
	struct sweep *s;

	assert_int_equal(settings_parse(&few, "load.jobs=20", NULL), 0);
	s = experiment_sweep(short_experiment(&e), 2, NULL, &few, NULL);
	settings_free(&few);
	assert_non_null(s);
	s->first_seed = 7;
	return s;
}

/* Writes a file with shard I of N (0: all runs); S then has the shard's results. */
static void run_to_part(struct sweep *s, unsigned int i, unsigned int n, char *path)
{
	struct runner_options options = {.jobs = 1, .shard = i, .shards = n};
	struct report report = {.sweep = s, .experiment = experiment_find("READ-5")};
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	assert_non_null(f);
	assert_int_equal(runner_run(&s, 1, &options, NULL), 0);
	assert_int_equal(part_write(f, &report, 1, false, i, n), 0);
	assert_int_equal(fclose(f), 0);
}

static void test_parts_in_shards(void **state)
{
	char first[] = "/tmp/test_experiments.XXXXXX", second[] = "/tmp/test_experiments.XXXXXX";
	struct sweep *whole = short_sweep(), *a = short_sweep(), *b = short_sweep();
	struct runner_options options = {.jobs = 1};
	struct parts parts;

	(void)state;
	assert_int_equal(runner_run(&whole, 1, &options, NULL), 0);
	assert_int_equal(whole->nparts, 2);
	assert_int_equal(whole->parts[1]->first_seed, 7);
	/* Other settings give other results. */
	assert_string_equal(settings_get(&whole->parts[1]->settings, "transfer_disk_work"), "1");
	assert_null(settings_get(&whole->parts[0]->settings, "transfer_disk_work"));

	run_to_part(a, 1, 2, first);
	run_to_part(b, 2, 2, second);
	assert_int_equal(parts_read(&parts, (char *[]){first, second}, 2, NULL), 0);
	assert_int_equal(parts.n, 1);
	assert_int_equal(parts.reports[0].sweep->nparts, 2);
	for (size_t k = 0; k <= 2; k++) {
		const struct sweep *x = sweep_part(whole, k);
		const struct sweep *y = sweep_part(parts.reports[0].sweep, k);

		assert_string_equal(x->id, y->id);
		assert_int_equal(sweep_units(x), sweep_units(y));
		for (size_t u = 0; u < sweep_units(x); u++) {
			assert_true(x->results[u].done && y->results[u].done);
			assert_true(x->results[u].values[M_SLOWDOWN] ==
				    y->results[u].values[M_SLOWDOWN]);
		}
	}
	parts_free(&parts);
	/* A single shard also lacks runs of the parts. */
	assert_int_equal(parts_read(&parts, (char *[]){first}, 1, NULL), -EINVAL);
	unlink(first);
	unlink(second);
	sweep_free(whole);
	sweep_free(a);
	sweep_free(b);
}

/* --- claims that calibrate, and equal starts ----------------------------------------- */

static const struct claim *claim_of(const char *id, size_t n)
{
	const struct experiment *e = experiment_find(id);

	assert_non_null(e);
	return &e->claims[n - 1];
}

static const char *common_value(const char *paper, const char *name)
{
	for (const struct paper_setting *s = paper_find(paper)->settings; s->name; s++)
		if (!strcmp(s->name, name))
			return s->value;
	return NULL;
}

/* The claims that led to the gaps of FC and ACM do not count; others do. */
static void test_what_calibrates(void **state)
{
	(void)state;
	assert_string_equal(common_value("FC", "load.interarrival_ms"), "160");
	assert_string_equal(common_value("ACM", "load.interarrival_ms"), "200");
	assert_true(claim_of("FC-5.3", 1)->calibrates);
	assert_true(claim_of("FC-CONC", 3)->calibrates);
	assert_true(claim_of("FC-4.1", 1)->calibrates && claim_of("FC-4.2", 2)->calibrates);
	assert_true(claim_of("ACM-2", 1)->calibrates);
	assert_false(claim_of("FC-5.3", 2)->calibrates);
	assert_false(claim_of("ACM-3", 1)->calibrates);
	assert_string_equal(experiment_find("GAP-FC")->readings[1].settings,
			    "load.interarrival_ms=130");
}

/* ACM-1 under the gap before has as many tasks per second as the others. */
static void test_other_settings(void **state)
{
	struct sweep *s = experiment_sweep(experiment_find("GAP-ACM"), 2, NULL, NULL, NULL);
	unsigned int found = 0;

	(void)state;
	assert_non_null(s);
	for (size_t i = s->nparts / 2; i < s->nparts; i++) {
		const char *gap = settings_get(&s->parts[i]->settings, "load.interarrival_ms");

		found++;
		assert_string_equal(gap, strcmp(s->parts[i]->id, "ACM-1") ? "300" : "51.7");
	}
	assert_int_equal(found, 9);
	sweep_free(s);
}

/* Four policies at 4 and 16 tasks; COM-aware gains GAIN (0.5: 50 %) over the others. */
static struct sweep *com_4c(double gain)
{
	struct sweep *s = experiment_sweep(experiment_find("COM-4c"), 3, NULL, NULL, NULL);

	assert_non_null(s);
	assert_int_equal(s->nparts, 1);
	assert_string_equal(settings_get(&s->parts[0]->settings, "parallel_start"), "1");
	assert_null(settings_get(&s->settings, "parallel_start"));
	for (size_t part = 0; part < 2; part++) {
		struct sweep *x = sweep_part(s, part);

		assert_int_equal(sweep_results(x), 0);
		for (size_t u = 0; u < sweep_units(x); u++) {
			bool com = u / x->seeds % x->nseries == 3;
			double by = part ? gain / 5 : gain;

			x->results[u].done = true;
			x->results[u].values[M_SLOWDOWN] =
				(com ? 2 : 2 * (1 + by)) * (1 + 0.01 * (double)(u % x->seeds));
		}
	}
	return s;
}

static void start_of(const struct sweep *s, size_t n, char *text, size_t size)
{
	struct claim_context context = {.sweep = s, .all = (const struct sweep *const[]){s}, .nall = 1};

	claim_start(&context, experiment_find("COM-4c"), claim_of("COM-4c", n), text, size);
}

static void test_gain_by_start(void **state)
{
	struct sweep *s = com_4c(0.5);
	char text[256];

	(void)state;
	start_of(s, 4, text, sizeof(text));
	assert_string_equal(
		text,
		"only COM-aware starts with one process a node, the others with all at home: it "
		"gains 50.0 % [50.0, 50.0] over them, and 10.0 % [10.0, 10.0] if all start alike: "
		"80 % of it is that start");
	start_of(s, 1, text, sizeof(text)); /* about all policies */
	assert_non_null(strstr(text, "80 % of it"));
	sweep_free(s);
	s = com_4c(-0.5); /* no gain has no parts */
	start_of(s, 4, text, sizeof(text));
	assert_non_null(strstr(text, "it gains -50.0 %"));
	assert_null(strstr(text, "of it is"));
	sweep_free(s);
}

/* Every claim of the paper that names the COM-aware policy says what its start is worth. */
static void test_starts_are_told(void **state)
{
	const struct experiment *e;
	unsigned int told = 0;

	(void)state;
	for (size_t i = 0; (e = experiment_at(i)); i++) {
		if (strcmp(e->paper, "COM") || !e->claims || !strncmp(e->claims[0].text, "(ours)", 6))
			continue;
		told++;
		if (!e->spread_series)
			fail_msg("%s does not say what the spread start gains", e->id);
	}
	assert_int_equal(told, 19);
	assert_non_null(experiment_find("COM-EQUAL-4c"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons_are_backed),
		cmocka_unit_test(test_calibration_is_told),
		cmocka_unit_test(test_policies_get_the_same_jobs),
		cmocka_unit_test(test_readings),
		cmocka_unit_test(test_claims_that_turn),
		cmocka_unit_test(test_what_calibrates),
		cmocka_unit_test(test_other_settings),
		cmocka_unit_test(test_gain_by_start),
		cmocka_unit_test(test_starts_are_told),
		cmocka_unit_test(test_parts_in_shards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
