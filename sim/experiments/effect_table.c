/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which parameters are read by what.  A parameter without a row is read in every run.
 * tests/sim/test_effect.c changes each parameter under each policy: where this table says that
 * nothing reads it, all results must be the same bytes.
 */
#include <stdio.h>
#include <string.h>

#include <iocom/rules.h>

#include "sim/experiments/effect.h"
#include "sim/experiments/recorded_run.h"

enum {
	FEEDBACK = 1 << 0, /* only with a feedback controller */
	WALL = 1 << 1,	   /* only at rates=wall */
	SAMPLES = 1 << 2,  /* only for a time series or a controller's path */
	RECORDED = 1 << 3, /* only for a recording */
	STREAM = 1 << 4,   /* not in a probe's study */
	NEVER = 1 << 5,	   /* by live agents only */
	SEED = 1 << 6,	   /* given in another way */
};

/* Sets of policies; "!" means all but these. */
#define MOVES	 "!nlb"
#define LOOKS	 "!nlb bs"
#define RESPONDS "!nlb bs zatti-binary zatti-real random threshold shortest"
#define EAGER	 "random threshold shortest"
#define WEIGHTED "wal wal-fc wal-pm"
#define BY_IO	 "io-re io-pm iocm-re iocm-re-hom iocm-pm com"
#define BY_MEM	 "mem-re mem-pm cm iocm-re iocm-re-hom iocm-pm com"
#define BY_CPU	 "cpu-re cpu-pm iocm-re-hom iocm-pm iocm-re mem-re mem-pm cm com"
#define MIGRATES "iocm-pm cpu-pm mem-pm io-pm wal-pm"
#define ZATTI	 "zatti-binary zatti-real"

static const struct row {
	const char *name, *policies; /* policies NULL: any */
	unsigned int needs;
	/* read only while parameter OF is from LEAST to MOST */
	const char *of;
	double least, most;
} rows[] = {
	{"seed", NULL, SEED, NULL, 0, 0},
	{"information_period_ms", LOOKS, 0, NULL, 0, 0},
	{"measure_window_ms", RESPONDS, STREAM, NULL, 0, 0},
	{"follow_recorded", NULL, RECORDED | STREAM, NULL, 0, 0},
	{"measure_new_tasks", RESPONDS, STREAM, NULL, 0, 0},
	{"cpu_load_runnable", LOOKS, STREAM, NULL, 0, 0},
	{"transit_counts", LOOKS, STREAM, NULL, 0, 0},
	{"transfer_disk_work", MOVES, STREAM, NULL, 0, 0},
	{"local_messages_free", NULL, STREAM, NULL, 0, 0},
	{"port_contention", NULL, STREAM, NULL, 0, 0},
	{"whole_gangs", "least-delay", STREAM, NULL, 0, 0},
	{"dedicated_buffer", NULL, STREAM, NULL, 0, 0},
	{"control_per_node", NULL, FEEDBACK | STREAM, NULL, 0, 0},
	{"bs_backfill", "bs", STREAM, NULL, 0, 0},
	{"network_latency_ms", MOVES, STREAM, NULL, 0, 0},
	{"memory_scale", NULL, STREAM, NULL, 0, 0},
	{"cpu_scale", NULL, STREAM, NULL, 0, 0},
	{"warmup_ms", NULL, STREAM, NULL, 0, 0},
	{"until_ms", NULL, STREAM, NULL, 0, 0},
	{"sample_ms", NULL, SAMPLES | STREAM, NULL, 0, 0},
	{"fixed_cost_ms", MOVES, 0, NULL, 0, 0},
	{"cpu_threshold", BY_CPU " " ZATTI, 0, NULL, 0, 0},
	{"rho_max", RESPONDS, 0, NULL, 0, 0},
	{"io_significance", BY_IO, 0, NULL, 0, 0},
	{"significance_demand", BY_IO, WALL, NULL, 0, 0},
	{"network_mb_per_s", NULL, NEVER, NULL, 0, 0},
	{"literal_requests", RESPONDS, 0, NULL, 0, 0},
	{"measured_state", RESPONDS, 0, NULL, 0, 0},
	{"io_cost_test", BY_IO, 0, NULL, 0, 0},
	{"cpu_cost_test", BY_CPU, 0, NULL, 0, 0},
	{"cpu_speed_weighted", BY_CPU, 0, NULL, 0, 0},
	{"require_memory", MOVES, 0, NULL, 0, 0},
	{"delay_harm", "least-delay", 0, NULL, 0, 0},
	{"delay_margin", "least-delay", 0, NULL, 0, 0},
	{"delay_tie", "least-delay", 0, NULL, 0, 0},
	{"delay_prior_ms", "least-delay", 0, NULL, 0, 0},
	{"stage_fallthrough", "iocm-re iocm-re-hom iocm-pm", 0, NULL, 0, 0},
	{"try_next",
	 "cpu-re cpu-pm mem-re mem-pm cm io " WEIGHTED " iocm-re iocm-re-hom iocm-pm com", 0, NULL,
	 0, 0},
	{"examine_max", LOOKS, 0, NULL, 0, 0},
	{"overload_ratio", "cm " WEIGHTED, 0, NULL, 0, 0},
	{"w_io", WEIGHTED, 0, NULL, 0, 0},
	{"wal_normalise", WEIGHTED, 0, NULL, 0, 0},
	{"wal_discrepancy", WEIGHTED, 0, NULL, 0, 0},
	{"discrepancy_after", RESPONDS, 0, NULL, 0, 0},
	{"closed_loop_bound", RESPONDS, 0, NULL, 0, 0},
	{"prediction_feedback", NULL, NEVER, NULL, 0, 0},
	{"mem_ratio_test", BY_MEM, 0, NULL, 0, 0},
	{"mem_order_free", BY_MEM, 0, NULL, 0, 0},
	{"cm_memory_ratio", "cm", 0, NULL, 0, 0},
	{"io_useful_test", "io", 0, NULL, 0, 0},
	{"io_order_share", BY_IO, 0, NULL, 0, 0},
	{"hom_stage_explicit", "iocm-re-hom iocm-pm com", 0, NULL, 0, 0},
	{"hom_pm", "iocm-pm", 0, NULL, 0, 0},
	{"spread_tasks", LOOKS, 0, NULL, 0, 0},
	{"parallel_start", "!bs", STREAM, NULL, 0, 0},
	{"migration_fixed_ms", MIGRATES, 0, NULL, 0, 0},
	{"migrations_max", MIGRATES, 0, NULL, 0, 0},
	{"migration_examine", MIGRATES, 0, NULL, 0, 0},
	{"age_criterion", "cpu-pm", 0, NULL, 0, 0},
	{"com_decision", "com", 0, NULL, 0, 0},
	{"com_port_contention", "com", 0, NULL, 0, 0},
	{"com_strict_maximum", "com", 0, NULL, 0, 0},
	{"com_always_spread", "com", 0, NULL, 0, 0},
	{"com_printed_cost", "com", 0, NULL, 0, 0},
	{"eager_probes", "threshold shortest", 0, NULL, 0, 0},
	{"eager_threshold", EAGER, 0, NULL, 0, 0},
	{"hop_max", ZATTI, STREAM, NULL, 0, 0},
	{"zatti_idle", ZATTI, 0, NULL, 0, 0},
	{"zatti_idle_percent", ZATTI, 0, "zatti_idle", 1, 1},
	{"zatti_queue", ZATTI, 0, NULL, 0, 0},
	{"zatti_queue_delta", ZATTI, 0, NULL, 0, 0},
	{"zatti_blocks_per_s", ZATTI, 0, NULL, 0, 0},
	{"zatti_blocks_delta", ZATTI, 0, NULL, 0, 0},
	{"zatti_relative", ZATTI, 0, NULL, 0, 0},
	{"zatti_superset", "zatti-binary", 0, NULL, 0, 0},
	{"zatti_intervals", "zatti-real", 0, NULL, 0, 0},
	{"zatti_cpu_need", ZATTI, 0, NULL, 0, 0},
	{"zatti_io_need", ZATTI, 0, NULL, 0, 0},
	{"fb_controller", NULL, FEEDBACK | STREAM, NULL, 0, 0},
	{"fb_gain_w", NULL, FEEDBACK | STREAM, NULL, 0, 0},
	{"fb_gain_b", NULL, FEEDBACK | STREAM, "fb_controller", 0, 2},
	{"fb_buffer_unit_mb", NULL, FEEDBACK | STREAM, "fb_controller", 0, 2},
	{"fb_history", NULL, FEEDBACK | STREAM, "fb_controller", 0, 0},
	{"fb_sign_w", NULL, FEEDBACK | STREAM, "fb_controller", 0, 1},
	{"fb_sign_b", NULL, FEEDBACK | STREAM, "fb_controller", 0, 1},
	{"fb_buffer_min_mb", NULL, FEEDBACK | STREAM, NULL, 0, 0},
	{"fb_filter", NULL, FEEDBACK | STREAM, "fb_controller", 1, 3},
	{"fb_dead_band", NULL, FEEDBACK | STREAM, "fb_controller", 1, 3},
	{"fb_step_mb", NULL, FEEDBACK | STREAM, "fb_controller", 3, 3},
	{"fb_known_length", NULL, FEEDBACK | STREAM, "fb_controller", 3, 3},
	{"fb_age_least_ms", NULL, FEEDBACK | STREAM, "fb_controller", 3, 3},
};

static bool effect_in_list(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at += n)
		if ((at == list || at[-1] == ' ' || at[-1] == '!') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

static bool policy_reads(const char *policies, const char *name)
{
	return effect_in_list(policies, name) == (policies[0] != '!');
}

static double effect_value(const struct sim_params *p, const char *name)
{
	const char *found;
	double value = 0;

	for (unsigned int i = 0; (found = sim_params_get(p, i, &value)); i++)
		if (!strcmp(found, name))
			break;
	return value;
}

/* What a row needs besides a policy, in words; NULL: the run has it. */
static const char *effect_lacks(const struct row *r, const struct effect_run *run, bool feedback)
{
	bool wall = run->params->rules.rates == RULES_RATES_WALL;

	if (r->needs & SEED)
		return "--seed gives the seeds of the runs";
	if (r->needs & NEVER)
		return "only live agents read it";
	if (r->needs & STREAM && run->probe)
		return "the studies of a probe do not read it";
	if (r->needs & FEEDBACK && !feedback)
		return "only policies with the feedback controller (wal-fc, feedback+P) read it";
	if (r->needs & WALL && !wall)
		return "it is read only with rates=wall";
	if (r->needs & RECORDED && !run->recorded)
		return "only a recording says where jobs ran";
	if (r->needs & SAMPLES && !run->samples && !feedback)
		return "no time series is kept here";
	return NULL;
}

/* Of the parameters in the table, the outcome that a log recorded (recorded_run.c) reads these. */
static bool effect_recorded_reads(const char *name)
{
	return !strcmp(name, "warmup_ms") || !strcmp(name, "sample_ms");
}

const char *effect_reader(const char *name, const struct effect_run *run, char *text, size_t size)
{
	enum rules_policy policy;
	bool feedback = false;
	const char *lacks;
	const struct row *r = rows, *end = rows + sizeof(rows) / sizeof(rows[0]);

	while (r < end && strcmp(r->name, name) != 0)
		r++;
	if (r == end)
		return NULL;
	if (recorded_is(run->policy))
		return effect_recorded_reads(name) ? NULL
						   : "what the log recorded does not depend on it";
	if (rules_policy_parse_feedback(run->policy, &policy, &feedback))
		return NULL;
	lacks = effect_lacks(r, run, feedback);
	if (lacks)
		return lacks;
	if (r->policies && !policy_reads(r->policies, rules_policy_name(policy))) {
		if (r->policies[0] == '!')
			snprintf(text, size, "all policies but these read it: %s", r->policies + 1);
		else
			snprintf(text, size, "only these policies read it: %s", r->policies);
		return text;
	}
	if (r->of && (effect_value(run->params, r->of) < r->least ||
		      effect_value(run->params, r->of) > r->most)) {
		if (r->least < r->most)
			snprintf(text, size, "it is read only with %s from %g to %g", r->of,
				 r->least, r->most);
		else
			snprintf(text, size, "it is read only with %s=%g", r->of, r->least);
		return text;
	}
	return NULL;
}
