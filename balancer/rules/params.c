/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The parameters by name.  One table row per field of struct rules_params holds its range, so
 * that setting and checking cannot disagree.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "balancer/rules/rules_private.h"

enum kind {
	KIND_NUMBER,
	KIND_WHOLE, /* a number without a fraction */
	KIND_BOOLEAN,
};

struct param {
	const char *name;
	size_t offset;
	enum kind kind;
	double least, most; /* both inclusive; unused for booleans */
};

#define NUMBER(field, least, most)                                                                 \
	{                                                                                          \
#field, offsetof(struct rules_params, field), KIND_NUMBER, least, most             \
	}
#define WHOLE(field, least, most)                                                                  \
	{                                                                                          \
#field, offsetof(struct rules_params, field), KIND_WHOLE, least, most              \
	}
#define BOOLEAN(field)                                                                             \
	{                                                                                          \
#field, offsetof(struct rules_params, field), KIND_BOOLEAN, 0, 1                   \
	}
#define ANY   1e300
#define COUNT 4e9

static const struct param params_table[] = {
	NUMBER(fixed_cost_ms, 0, ANY),
	NUMBER(cpu_threshold, 0, ANY),
	NUMBER(rho_max, 0, 0.999999),
	NUMBER(io_significance, 0, ANY),
	NUMBER(significance_demand, 0, ANY),
	NUMBER(reference_mips, 0, ANY),
	NUMBER(network_mb_per_s, 1e-9, ANY),
	BOOLEAN(literal_requests),
	BOOLEAN(measured_state),
	BOOLEAN(io_cost_test),
	BOOLEAN(cpu_cost_test),
	BOOLEAN(cpu_speed_weighted),
	NUMBER(delay_harm, 0, ANY),
	NUMBER(delay_margin, 0, 1),
	NUMBER(delay_tie, 0, 1),
	NUMBER(delay_prior_ms, 0, ANY),
	BOOLEAN(require_memory),
	BOOLEAN(stage_fallthrough),
	BOOLEAN(try_next),
	NUMBER(examine_max, 0, COUNT),
	NUMBER(overload_ratio, 0, ANY),
	NUMBER(w_io, 0, 1),
	BOOLEAN(wal_normalise),
	BOOLEAN(wal_discrepancy),
	BOOLEAN(discrepancy_after),
	BOOLEAN(closed_loop_bound),
	BOOLEAN(prediction_feedback),
	BOOLEAN(mem_ratio_test),
	BOOLEAN(mem_order_free),
	BOOLEAN(cm_memory_ratio),
	BOOLEAN(io_useful_test),
	BOOLEAN(io_order_share),
	BOOLEAN(hom_stage_explicit),
	BOOLEAN(hom_pm),
	BOOLEAN(spread_tasks),
	WHOLE(parallel_start, 0, 1),
	NUMBER(migration_fixed_ms, 0, ANY),
	WHOLE(migrations_max, 0, COUNT),
	WHOLE(migration_examine, 0, COUNT),
	BOOLEAN(age_criterion),
	WHOLE(com_decision, 0, 2),
	BOOLEAN(com_port_contention),
	BOOLEAN(com_strict_maximum),
	BOOLEAN(com_always_spread),
	BOOLEAN(com_printed_cost),
	WHOLE(eager_probes, 0, COUNT),
	NUMBER(eager_threshold, 0, ANY),
	WHOLE(hop_max, 0, COUNT),
	BOOLEAN(zatti_idle),
	NUMBER(zatti_idle_percent, 0, 100),
	NUMBER(zatti_queue, 0, ANY),
	NUMBER(zatti_queue_delta, 0, ANY),
	NUMBER(zatti_blocks_per_s, 0, ANY),
	NUMBER(zatti_blocks_delta, 0, ANY),
	BOOLEAN(zatti_relative),
	BOOLEAN(zatti_superset),
	WHOLE(zatti_intervals, 1, 1000),
	NUMBER(zatti_cpu_need, 0, 100),
	NUMBER(zatti_io_need, 0, ANY),
	WHOLE(fb_controller, 0, RULES_CONTROLLERS - 1),
	NUMBER(fb_gain_w, 0, ANY),
	NUMBER(fb_gain_b, 0, ANY),
	NUMBER(fb_buffer_unit_mb, 0, ANY),
	WHOLE(fb_history, 1, 1e6),
	WHOLE(fb_sign_w, 0, 1),
	WHOLE(fb_sign_b, 0, 1),
	NUMBER(fb_buffer_min_mb, 0, ANY),
	NUMBER(fb_filter, 1e-6, 1),
	NUMBER(fb_dead_band, 0, 1),
	NUMBER(fb_step_mb, 0, ANY),
	BOOLEAN(fb_known_length),
	NUMBER(fb_age_least_ms, 1e-3, ANY),
};

#define PARAMS (sizeof(params_table) / sizeof(params_table[0]))

/* The defaults with computation rates; the differences for live rates are below. */
static const struct rules_params papers = {
	.rates = RULES_RATES_COMPUTATION,
	.fixed_cost_ms = 100,
	.cpu_threshold = 4,
	.rho_max = 0.99,
	.io_significance = 0,
	.significance_demand = 1,
	.reference_mips = 0,
	.network_mb_per_s = 125,
	.literal_requests = true,
	.measured_state = true,
	.io_cost_test = true,
	.cpu_cost_test = true,
	.cpu_speed_weighted = false,
	.delay_harm = 1,
	.delay_margin = 0,
	.delay_tie = 0,
	.delay_prior_ms = 1000,
	.require_memory = false,
	.stage_fallthrough = false,
	.try_next = false,
	.examine_max = 0,
	.overload_ratio = 1.25,
	.w_io = 0.5,
	.wal_normalise = false,
	.wal_discrepancy = true,
	.discrepancy_after = true,
	.closed_loop_bound = true,
	.prediction_feedback = true,
	.mem_ratio_test = true,
	.mem_order_free = false,
	.cm_memory_ratio = false,
	.io_useful_test = true,
	.io_order_share = false,
	.hom_stage_explicit = false,
	.hom_pm = false,
	.spread_tasks = true,
	.parallel_start = 0,
	.migration_fixed_ms = 100,
	.migrations_max = 0,
	.migration_examine = 32,
	.age_criterion = true,
	.com_decision = 0,
	.com_port_contention = false,
	.com_strict_maximum = false,
	.com_always_spread = true,
	.com_printed_cost = false,
	.eager_probes = 3,
	.eager_threshold = 4,
	.hop_max = 3,
	.zatti_idle = false,
	.zatti_idle_percent = 10,
	.zatti_queue = 4,
	.zatti_queue_delta = 3,
	.zatti_blocks_per_s = 15,
	.zatti_blocks_delta = 0,
	.zatti_relative = true,
	.zatti_superset = true,
	.zatti_intervals = 10,
	.zatti_cpu_need = 30,
	.zatti_io_need = 2,
	.fb_controller = 0,
	.fb_gain_w = 0.5,
	.fb_gain_b = 0.5,
	.fb_buffer_unit_mb = 1,
	.fb_history = 50,
	.fb_sign_w = 1,
	.fb_sign_b = 1,
	.fb_buffer_min_mb = 1,
	.fb_filter = 0.1,
	.fb_dead_band = 0.02,
	.fb_step_mb = 16,
	.fb_known_length = false,
	.fb_age_least_ms = 10,
};

void rules_params_default(struct rules_params *params, enum rules_rates rates)
{
	*params = papers;
	params->rates = rates;
	if (rates != RULES_RATES_WALL)
		return;
	params->io_significance = 0.05;
	params->literal_requests = false;
	params->delay_margin = 0.1;
	params->delay_tie = 0.05;
	params->require_memory = true;
	params->stage_fallthrough = true;
	params->try_next = true;
	params->examine_max = 256;
}

static bool params_in_range(const struct param *p, double value)
{
	if (!isfinite(value) || value < p->least || value > p->most)
		return false;
	return p->kind == KIND_NUMBER || value == (double)(uint64_t)value;
}

int rules_params_set(struct rules_params *params, const char *name, double value)
{
	for (size_t i = 0; i < PARAMS; i++) {
		const struct param *p = &params_table[i];
		void *field = (char *)params + p->offset;

		if (strcmp(p->name, name) != 0)
			continue;
		if (!params_in_range(p, value))
			return -EINVAL;
		if (p->kind == KIND_BOOLEAN)
			*(bool *)field = value != 0;
		else
			*(double *)field = value;
		return 0;
	}
	return -ENOENT;
}

double rules_params_get(const struct rules_params *params, unsigned int i, const char **name)
{
	const struct param *p;
	const void *field;

	if (i >= PARAMS) {
		*name = NULL;
		return 0;
	}
	p = &params_table[i];
	field = (const char *)params + p->offset;
	*name = p->name;
	return p->kind == KIND_BOOLEAN ? *(const bool *)field : *(const double *)field;
}

int rules_params_check(const struct rules_params *params)
{
	if (params->rates != RULES_RATES_COMPUTATION && params->rates != RULES_RATES_WALL)
		return -EINVAL;
	for (size_t i = 0; i < PARAMS; i++) {
		const struct param *p = &params_table[i];
		const void *field = (const char *)params + p->offset;

		if (p->kind != KIND_BOOLEAN && !params_in_range(p, *(const double *)field))
			return -EINVAL;
	}
	return 0;
}
