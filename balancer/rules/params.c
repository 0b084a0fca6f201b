/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The parameters by name: one table row per field of struct rules_params with
 * the range it accepts, so that setting and checking cannot disagree.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "rules_private.h"

struct param {
	const char *name;
	size_t offset;
	bool boolean;
	double least, most; /* both inclusive; unused for booleans */
};

#define NUMBER(field, least, most)                                                                 \
	{                                                                                          \
#field, offsetof(struct rules_params, field), false, least, most                   \
	}
#define BOOLEAN(field)                                                                             \
	{                                                                                          \
#field, offsetof(struct rules_params, field), true, 0, 1                           \
	}
#define ANY 1e300

static const struct param params_table[] = {
	NUMBER(fixed_cost_ms, 0, ANY),
	NUMBER(cpu_threshold, 0, ANY),
	NUMBER(rho_max, 0, 0.999999),
	NUMBER(io_significance, 0, ANY),
	NUMBER(reference_mips, 0, ANY),
	NUMBER(network_mb_per_s, 1e-9, ANY),
	BOOLEAN(literal_requests),
	BOOLEAN(measured_state),
	BOOLEAN(io_cost_test),
	BOOLEAN(cpu_cost_test),
	BOOLEAN(cpu_speed_weighted),
	BOOLEAN(require_memory),
	BOOLEAN(stage_fallthrough),
	BOOLEAN(try_next),
	NUMBER(examine_max, 0, 4e9),
	NUMBER(overload_ratio, 0, ANY),
	NUMBER(w_io, 0, 1),
};

#define PARAMS (sizeof(params_table) / sizeof(params_table[0]))

void rules_params_default(struct rules_params *params, enum rules_rates rates)
{
	bool wall = rates == RULES_RATES_WALL;

	*params = (struct rules_params){
		.rates = rates,
		.fixed_cost_ms = 100,
		.cpu_threshold = 4,
		.rho_max = 0.99,
		.io_significance = wall ? 0.05 : 0,
		.reference_mips = 0,
		.network_mb_per_s = 125,
		.literal_requests = !wall,
		.measured_state = true,
		.io_cost_test = true,
		.cpu_cost_test = true,
		.cpu_speed_weighted = false,
		.require_memory = wall,
		.stage_fallthrough = wall,
		.try_next = wall,
		.examine_max = wall ? 256 : 0,
		.overload_ratio = 1.25,
		.w_io = 0.5,
	};
}

static bool in_range(const struct param *p, double value)
{
	return isfinite(value) && value >= p->least && value <= p->most;
}

int rules_params_set(struct rules_params *params, const char *name, double value)
{
	for (size_t i = 0; i < PARAMS; i++) {
		const struct param *p = &params_table[i];
		void *field = (char *)params + p->offset;

		if (strcmp(p->name, name) != 0)
			continue;
		if (!in_range(p, value) || (p->boolean && value != 0 && value != 1))
			return -EINVAL;
		if (p->boolean)
			*(bool *)field = value != 0;
		else
			*(double *)field = value;
		return 0;
	}
	return -ENOENT;
}

int rules_params_check(const struct rules_params *params)
{
	if (params->rates != RULES_RATES_COMPUTATION && params->rates != RULES_RATES_WALL)
		return -EINVAL;
	for (size_t i = 0; i < PARAMS; i++) {
		const struct param *p = &params_table[i];
		const void *field = (const char *)params + p->offset;

		if (!p->boolean && !in_range(p, *(const double *)field))
			return -EINVAL;
	}
	return 0;
}
