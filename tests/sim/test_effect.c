/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Settings without an effect are refused, and only these.  Each parameter is changed under each
 * policy: where effect_table.c says that nothing reads it, the results are the same numbers; and
 * each has an effect in some run, or is one that the simulator never reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <iocom/rules.h>

#include "sim/experiments/effect.h"
#include "sim/experiments/experiment.h"

/*
 * Loads in which most parameters matter: unequal nodes, paging, parallel jobs, messages.  Without
 * balancing some would page for hours, so all end early.
 */
static const char *const loads[] = {
	"nodes=3xfc+2xfc:cpu_mips=200,ram=220,disk_mb_per_s=10+1xfc:cores=2 workload=gen:acm-30 "
	"load.jobs=30 load.interarrival_ms=60 load.lifetime_mean_ms=300 load.lifetime_max_ms=3000 "
	"load.io_per_ms=0.3 load.faults_per_ms=2 load.initial_mb=1 load.write_fraction=0.2 "
	"memory_scale=10 load.home_weights=20:1:1:10:20:30 load.barrier_ms=100 "
	"information_period_ms=100 until_ms=10000",
	"nodes=5xcom+1xcom:cpu_mips=200 workload=gen:com-io load.jobs=20 load.interarrival_ms=200 "
	"load.lifetime_mean_ms=300 load.lifetime_max_ms=3000 load.tasks_min=1 load.tasks_max=6 "
	"load.messages_per_ms=0.4 load.io_per_ms=0.3 load.share=0.6 information_period_ms=100 "
	"load.faults_per_ms=2 memory_scale=20 until_ms=20000",
	"nodes=4xfc workload=gen:fc load.jobs=50 load.interarrival_ms=130 "
	"load.lifetime_mean_ms=100 load.lifetime_max_ms=2000 memory_scale=20 load.io_per_ms=2 "
	"load.faults_per_ms=5 information_period_ms=100 until_ms=20000",
};

#define LOADS	 (sizeof(loads) / sizeof(loads[0]))
#define POLICIES (RULES_POLICIES + 2)

static const char *policy_at(unsigned int i)
{
	return i < RULES_POLICIES      ? rules_policy_name(i)
	       : i == RULES_POLICIES ? "feedback+nlb"
				       : "feedback+com";
}

/* Runs one seed and reads its measures.  Returns false if the settings do not fit together. */
static bool run(const struct settings *all, const char *policy, double values[M_COUNT])
{
	struct scenario scenario;
	struct sim_result result;
	struct workload *w;
	struct sim_run run;
	int ret;

	if (scenario_open(&scenario, all, NULL))
		return false;
	w = scenario_workload(&scenario, 1, NULL);
	assert_non_null(w);
	scenario.params.seed = 1;
	run = (struct sim_run){.cluster = &scenario.cluster,
			       .workload = w,
			       .policy = policy,
			       .params = &scenario.params};
	ret = sim_run(&run, &result, NULL);
	if (!ret) {
		measure_all(&result, values);
		/* How often the simulator pauses is no result. */
		values[M_EVENTS] = NAN;
		sim_result_free(&result);
	}
	workload_free(w);
	scenario_close(&scenario);
	return !ret;
}

static bool equal(const double *a, const double *b)
{
	for (unsigned int m = 0; m < M_COUNT; m++)
		if (a[m] != b[m] && !(isnan(a[m]) && isnan(b[m])))
			return false;
	return true;
}

/* The load with MORE, at the fluid or the request level. */
static void settings_of(struct settings *all, size_t load, bool request, const char *more)
{
	*all = (struct settings){0};
	assert_int_equal(settings_parse(all, loads[load], NULL), 0);
	assert_int_equal(settings_parse(all, request ? "fidelity=request" : "fidelity=fluid", NULL),
			 0);
	assert_int_equal(settings_parse(all, more, NULL), 0);
}

static bool is_read(const struct settings *all, const char *policy, const char *name)
{
	struct effect_run about = {.policy = policy};
	struct scenario scenario;
	char text[256];
	bool read;

	assert_int_equal(scenario_open(&scenario, all, NULL), 0);
	about.params = &scenario.params;
	read = !effect_reader(name, &about, text, sizeof(text));
	scenario_close(&scenario);
	return read;
}

/* Sets NAME to other value I; false: no more. */
static bool other(struct settings *all, const char *name, double was, unsigned int i)
{
	const double values[] = {was == 0 ? 1 : 0, was * 10, was / 10, 2, 50, 0.5, 1e4};
	char text[32];

	if (i == sizeof(values) / sizeof(values[0]))
		return false;
	snprintf(text, sizeof(text), "%.17g", values[i]);
	assert_int_equal(settings_set(all, name, text), 0);
	return true;
}

/* Returns whether another value of NAME changes any result of the run. */
static bool changes(size_t load, bool request, const char *more, unsigned int p, const char *name,
		    double was, unsigned int tries)
{
	/* Runs without any change, which all parameters share. */
	static double plain[LOADS][2][POLICIES][M_COUNT];
	static bool known[LOADS][2][POLICIES];
	double own[M_COUNT], now[M_COUNT], *base = *more ? own : plain[load][request][p];
	struct settings all;
	bool changed = false;

	settings_of(&all, load, request, more);
	if (*more || !known[load][request][p])
		assert_true(run(&all, policy_at(p), base));
	known[load][request][p] |= !*more;
	for (unsigned int i = 0; !changed && i < tries && other(&all, name, was, i); i++)
		changed = run(&all, policy_at(p), now) && !equal(base, now);
	settings_free(&all);
	return changed;
}

/* --- what is refused has no effect ---------------------------------------------------- */

static void refused_have_no_effect(void **state)
{
	struct sim_params params;
	const char *name;
	unsigned int pairs = 0;
	double was;

	(void)state;
	sim_params_default(&params);
	for (unsigned int i = 0; (name = sim_params_get(&params, i, &was)); i++) {
		/* Every third policy, others for each parameter: all take too long. */
		for (unsigned int p = i % 3; p < POLICIES; p += 3) {
			size_t load = (i + p / 3) % LOADS;
			struct settings all;
			bool read;

			settings_of(&all, load, false, "");
			read = is_read(&all, policy_at(p), name);
			settings_free(&all);
			if (read || !strcmp(name, "sample_ms") || !strcmp(name, "seed"))
				continue;
			pairs++;
			if (changes(load, p % 2, "", p, name, was, 2))
				fail_msg("%s is refused under %s, but changes results", name,
					 policy_at(p));
		}
	}
	assert_true(pairs > 300);
}

/* --- what is not refused has one ------------------------------------------------------- */

/* Parameters that need a load of their own to show. */
static const struct {
	const char *name, *more, *policy;
} shown_by[] = {
	{"significance_demand", "rates=wall", NULL},
	{"delay_prior_ms", "load.lifetime=constant load.lifetime_mean_ms=0", "least-delay"},
	{"com_port_contention", "com_decision=0 load.messages_per_ms=1 load.jobs=60 load.interarrival_ms=80 "
	 "local_messages_free=0", "com"},
	{"com_always_spread", "load.messages_per_ms=0.4 load.jobs=60", "com"},
	{"fb_buffer_min_mb", "fb_controller=3 fb_step_mb=100 nodes.buffer_mb=20", "wal-fc"},
	{"zatti_idle_percent", "zatti_idle=1", NULL},
	{"fb_filter", "fb_controller=2 w_io=0.5", "wal-fc"},
	{"fb_dead_band", "fb_controller=1", "wal-fc"},
	{"fb_step_mb", "fb_controller=3", "wal-fc"},
	{"fb_known_length", "fb_controller=3", "wal-fc"},
	{"fb_age_least_ms", "fb_controller=3", "wal-fc"},
};

/*
 * Read by live agents only, or their effect is on what is kept and how fast, or, for the last two,
 * the unit tests of the rules show it and no load here is rare enough.
 */
static bool shows_elsewhere(const char *name)
{
	if (!strcmp(name, "hom_stage_explicit") || !strcmp(name, "zatti_intervals"))
		return true;
	return !strcmp(name, "threads") || !strcmp(name, "fidelity") || !strcmp(name, "seed") || !strcmp(name, "sample_ms") ||
	       !strcmp(name, "follow_recorded") || !strcmp(name, "prediction_feedback") ||
	       !strcmp(name, "network_mb_per_s");
}

static bool shows(const char *name, double was)
{
	const char *more = "", *policy = NULL;

	for (size_t i = 0; i < sizeof(shown_by) / sizeof(shown_by[0]); i++)
		if (!strcmp(shown_by[i].name, name)) {
			more = shown_by[i].more;
			policy = shown_by[i].policy;
		}
	for (size_t load = 0; load < LOADS; load++) {
		for (unsigned int p = 0; p < POLICIES; p++) {
			const char *of = policy_at(p);
			struct settings all;
			bool read;

			if (policy && strcmp(policy, of) != 0)
				continue;
			settings_of(&all, load, false, more);
			read = is_read(&all, of, name);
			settings_free(&all);
			if (read && (changes(load, false, more, p, name, was, 7) ||
				     changes(load, true, more, p, name, was, 7)))
				return true;
		}
	}
	return false;
}

static void accepted_have_an_effect(void **state)
{
	struct sim_params params;
	const char *name;
	char without[1024] = "";
	double was;

	(void)state;
	sim_params_default(&params);
	for (unsigned int i = 0; (name = sim_params_get(&params, i, &was)); i++)
		if (!shows_elsewhere(name) && !shows(name, was))
			snprintf(without + strlen(without), sizeof(without) - strlen(without),
				 " %s", name);
	if (without[0])
		fail_msg("accepted without an effect:%s", without);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_have_no_effect),
		cmocka_unit_test(accepted_have_an_effect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
