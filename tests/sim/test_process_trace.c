/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A process trace as the source of a generator's arrivals, homes and computation: which part each
 * seed gets, how it is scaled, and the figures of FC, ACM and COM run with it.
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
#include <unistd.h>

#include "sim/experiments/effect.h"
#include "sim/experiments/experiment.h"
#include "sim/experiments/runner.h"
#include "sim/workload/spec.h"

#define ROWS  40 /* processes of each of two runs */
#define HOSTS 6

static char path[] = "/tmp/test_process_trace.XXXXXX";

/* Host and computation of process I of a run. */
static unsigned int host_of(unsigned int i)
{
	return i % 4 ? 5 : i / 4 % HOSTS;
}

static double cpu_s(unsigned int i)
{
	return i % 10 ? 0.1 : 5;
}

/* Runs 3 and 1, with a process every 2 and every 5 s. */
static int make_trace(void **state)
{
	FILE *f = fdopen(mkstemp(path), "w");

	(void)state;
	assert_non_null(f);
	fputs("hour,min,unk,sec,prog\n", f);
	for (unsigned int run = 0; run < 2; run++)
		for (unsigned int i = 0; i < ROWS; i++) {
			unsigned int s = 7 + i * (run ? 5 : 2);

			fprintf(f, "%u,%u,%u,%g,p\n", (run ? 60 : 180) + s / 60, s % 60, host_of(i),
				cpu_s(i));
		}
	assert_int_equal(fclose(f), 0);
	return 0;
}

static int remove_trace(void **state)
{
	(void)state;
	return unlink(path);
}

static struct workload *trace_workload(const char *preset, uint64_t seed, struct iocom_err *err)
{
	struct workload_options options;
	struct workload *w;
	char *text;

	workload_options_default(&options);
	options.seed = seed;
	assert_true(asprintf(&text, "gen:%s,trace=%s", preset, path) > 0);
	w = workload_spec_open(text, &options, err);
	free(text);
	return w;
}

/* --- parts ----------------------------------------------------------------------------- */

static void expect_part(uint64_t seed, unsigned int first, const char *about)
{
	static const char preset[] =
		"fc,jobs=10,interarrival_ms=100,lifetime_mean_ms=59,lifetime_max_ms=0";
	struct workload *w = trace_workload(preset, seed, NULL);
	struct sim_job job;

	assert_non_null(w);
	assert_int_equal(workload_info(w)->jobs, 10);
	if (!strstr(workload_info(w)->note, about))
		fail_msg("seed %u: %s", (unsigned int)seed, workload_info(w)->note);
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(workload_next(w, &job, NULL), 1);
		assert_true(fabs(job.arrival_ms - 100 * i) < 1e-6);
		assert_int_equal(job.home, host_of(first + i));
		/* The mean of a run is 0.59 s: every tenth process has 5 s, the others 0.1 s. */
		assert_true(fabs(job.cpu_ms - 100 * cpu_s(first + i)) < 1e-6);
		assert_true(job.io_per_ms > 0); /* generated, as the trace has none */
	}
	assert_int_equal(workload_next(w, &job, NULL), 0);
	workload_free(w);
}

static void each_seed_has_a_part(void **state)
{
	(void)state;
	expect_part(1, 0, "jobs 1-10 of 40, run 3 (2 of them) of test_process_trace.");
	expect_part(2, 0, "jobs 1-10 of 40, run 1 ");
	expect_part(3, 10, "jobs 11-20 of 40, run 3 ");
	expect_part(8, 30, "jobs 31-40 of 40, run 1 ");
	expect_part(9, 0, "jobs 1-10 of 40, run 3 ");
}

/* A cut keeps the mean, and one that cannot is an error. */
static void long_processes_are_cut(void **state)
{
	struct workload *w = trace_workload(
		"fc,jobs=40,lifetime_mean_ms=59,lifetime_max_ms=200", 1, NULL);
	struct iocom_err err = {0};
	double sum = 0, most = 0;
	struct sim_job job;

	(void)state;
	assert_non_null(w);
	while (workload_next(w, &job, NULL) == 1) {
		sum += job.cpu_ms;
		most = fmax(most, job.cpu_ms);
	}
	workload_free(w);
	assert_true(fabs(sum / 40 - 59) < 1e-6);
	assert_true(most == 200);
	assert_null(trace_workload("fc,lifetime_mean_ms=300,lifetime_max_ms=200", 1, &err));
	assert_non_null(strstr(err.text, "cannot have a mean of 300 ms"));
}

/* Each of six hosts stands for every sixth node; on fewer nodes hosts share them. */
static void hosts_stand_for_nodes(void **state)
{
	static const unsigned int nodes[] = {32, 6, 4};

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		char preset[64];
		struct workload *w;
		struct sim_job job;
		unsigned int i = 0, beyond = 0;

		snprintf(preset, sizeof(preset), "acm-30,nodes=%u,jobs=40", nodes[k]);
		w = trace_workload(preset, 1, NULL);
		assert_non_null(w);
		for (; workload_next(w, &job, NULL) == 1; i++) {
			assert_true(job.home < nodes[k]);
			if (nodes[k] >= HOSTS)
				assert_int_equal(job.home % HOSTS, host_of(i));
			beyond += job.home >= HOSTS;
		}
		assert_int_equal(i, 40);
		assert_true((beyond > 10) == (nodes[k] == 32));
		workload_free(w);
	}
}

static void what_is_no_trace(void **state)
{
	struct iocom_err err = {0};

	(void)state;
	assert_null(workload_spec_open("gen:fc,trace=/none", NULL, &err));
	assert_non_null(strstr(err.text, "/none"));
	err.text[0] = '\0';
	assert_null(workload_spec_open("gen:fc,trace=", NULL, &err));
	assert_non_null(strstr(err.text, "the path of a process trace"));
}

/* --- figures ------------------------------------------------------------------------------ */

/* An experiment with --set workload=TRACE runs, keeps its preset, and says which part it used. */
static void figure_with_trace(const char *id, const char *preset)
{
	struct runner_options options = {.jobs = 1};
	struct settings given = {0};
	struct iocom_err err = {0};
	struct sweep *s;

	assert_int_equal(settings_set(&given, "workload", path), 0);
	assert_int_equal(settings_set(&given, "load.jobs", "6"), 0);
	s = experiment_sweep(experiment_find(id), 2, NULL, &given, &err);
	assert_non_null(s);
	assert_string_equal(settings_get(&s->settings, "workload"), preset);
	assert_string_equal(settings_get(&s->settings, "load.trace"), path);
	assert_null(settings_get(&s->settings, "load.home_weights"));
	assert_null(settings_get(&s->settings, "load.home_skew"));
	assert_int_equal(effect_check(&s, 1, &given, false, &err), 0);
	if (runner_run(&s, 1, &options, &err))
		fail_msg("%s: %s", id, err.text);
	if (!strstr(s->source, "jobs 1-6 of 40, run 3"))
		fail_msg("%s: %s", id, s->source);
	sweep_free(s);
	settings_free(&given);
}

static void figures_with_trace(void **state)
{
	(void)state;
	figure_with_trace("FC-3-DATA", "gen:fc");
	figure_with_trace("ACM-CPU", "gen:acm-30");
	figure_with_trace("COM-EQUAL-4c", "gen:com");
}

/* Homes that the trace gives cannot be given again. */
static void homes_without_effect(void **state)
{
	struct settings given = {0};
	struct iocom_err err = {0};
	struct sweep *s;

	(void)state;
	assert_int_equal(settings_set(&given, "workload", path), 0);
	assert_int_equal(settings_set(&given, "load.home_weights", "1:2"), 0);
	s = experiment_sweep(experiment_find("FC-3-DATA"), 1, NULL, &given, &err);
	assert_non_null(s);
	assert_true(effect_check(&s, 1, &given, false, &err) < 0);
	assert_non_null(strstr(err.text, "--set load.home_weights has no effect here"));
	sweep_free(s);
	assert_int_equal(settings_set(&given, "workload", "a,b"), 0);
	assert_null(experiment_sweep(experiment_find("FC-3-DATA"), 1, NULL, &given, &err));
	assert_non_null(strstr(err.text, "has a comma"));
	settings_free(&given);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_seed_has_a_part),	 cmocka_unit_test(long_processes_are_cut),
		cmocka_unit_test(hosts_stand_for_nodes), cmocka_unit_test(what_is_no_trace),
		cmocka_unit_test(figures_with_trace),	 cmocka_unit_test(homes_without_effect),
	};

	return cmocka_run_group_tests(tests, make_trace, remove_trace);
}
