/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The parameters of a run by name.  One table row describes each field with its range, so that
 * setting, listing and checking agree.  Names that are not in the table belong to the rules.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/params.h"

enum kind {
	KIND_NUMBER,
	KIND_BOOLEAN,
	KIND_UINT32,
	KIND_UINT64,
	KIND_FIDELITY,
};

struct param {
	const char *name;
	size_t offset;
	enum kind kind;
	double least, most; /* both inclusive */
};

#define ROW(field, kind, least, most)                                                              \
	{                                                                                          \
#field, offsetof(struct sim_params, field), kind, least, most                      \
	}
#define NUMBER(field, least, most) ROW(field, KIND_NUMBER, least, most)
#define BOOLEAN(field)		   ROW(field, KIND_BOOLEAN, 0, 1)
#define ANY			   1e15		      /* ms: 30,000 years */
#define EXACT			   9007199254740992.0 /* 2^53: whole numbers a double holds */

static const struct param params_table[] = {
	ROW(fidelity, KIND_FIDELITY, SIM_REQUEST, SIM_FLUID),
	ROW(seed, KIND_UINT64, 0, EXACT),
	ROW(threads, KIND_UINT32, 1, 1024),
	NUMBER(slice_ms, 1e-6, ANY),
	NUMBER(switch_ms, 0, ANY),
	NUMBER(page_fault_ms, 0, ANY),
	BOOLEAN(page_fault_at_disk),
	NUMBER(information_period_ms, 0, ANY),
	NUMBER(measure_window_ms, 1e-3, ANY),
	BOOLEAN(measure_new_tasks),
	BOOLEAN(follow_recorded),
	BOOLEAN(cpu_load_runnable),
	BOOLEAN(transit_counts),
	BOOLEAN(transfer_disk_work),
	BOOLEAN(local_messages_free),
	BOOLEAN(port_contention),
	BOOLEAN(whole_gangs),
	BOOLEAN(dedicated_buffer),
	BOOLEAN(control_per_node),
	ROW(bs_backfill, KIND_UINT32, BS_FCFS, BS_EASY),
	BOOLEAN(priority_decay),
	NUMBER(network_latency_ms, 0, ANY),
	NUMBER(memory_scale, 0, ANY),
	NUMBER(cpu_scale, 1e-12, ANY),
	NUMBER(warmup_ms, 0, ANY),
	NUMBER(until_ms, 0, ANY),
	NUMBER(sample_ms, 0, ANY),
};

#define PARAMS	     (sizeof(params_table) / sizeof(params_table[0]))
#define NAME_MAX_LEN 63

void sim_params_default(struct sim_params *p)
{
	*p = (struct sim_params){
		.fidelity = SIM_REQUEST,
		.seed = 1,
		.threads = 1,
		.slice_ms = 10,
		.switch_ms = 0.1,
		.page_fault_ms = 8.1,
		.page_fault_at_disk = true,
		.information_period_ms = 1000,
		.measure_window_ms = 1000,
		.measure_new_tasks = true,
		.transit_counts = true,
		.local_messages_free = true,
		.port_contention = true,
		.whole_gangs = true,
		.dedicated_buffer = true,
		.network_latency_ms = 0.1,
		.memory_scale = 1,
		.cpu_scale = 1,
	};
	rules_params_default(&p->rules, RULES_RATES_COMPUTATION);
}

static double params_value_of(const struct sim_params *params, const struct param *p)
{
	const void *field = (const char *)params + p->offset;

	switch (p->kind) {
	case KIND_BOOLEAN:
		return *(const bool *)field;
	case KIND_UINT32:
		return *(const uint32_t *)field;
	case KIND_UINT64:
		return (double)*(const uint64_t *)field;
	case KIND_FIDELITY:
		return *(const enum sim_fidelity *)field;
	default:
		return *(const double *)field;
	}
}

static void value_store(struct sim_params *params, const struct param *p, double value)
{
	void *field = (char *)params + p->offset;

	switch (p->kind) {
	case KIND_BOOLEAN:
		*(bool *)field = value != 0;
		break;
	case KIND_UINT32:
		*(uint32_t *)field = (uint32_t)value;
		break;
	case KIND_UINT64:
		*(uint64_t *)field = (uint64_t)value;
		break;
	case KIND_FIDELITY:
		*(enum sim_fidelity *)field = (enum sim_fidelity)value;
		break;
	default:
		*(double *)field = value;
	}
}

static int value_set(struct sim_params *params, const struct param *p, double value,
		     struct iocom_err *err)
{
	const char *whole = p->kind == KIND_NUMBER ? "" : "whole ";

	if (p->kind == KIND_BOOLEAN && value != 0 && value != 1)
		return iocom_err_set(err, -EINVAL, "parameter %s: 0 or 1 expected, not %g", p->name,
				     value);
	if (!isfinite(value) || value < p->least || value > p->most ||
	    (p->kind != KIND_NUMBER && value != floor(value)))
		return iocom_err_set(err, -EINVAL,
				     "parameter %s: a %snumber from %g to %g expected, not %g",
				     p->name, whole, p->least, p->most, value);
	value_store(params, p, value);
	return 0;
}

int sim_params_check(const struct sim_params *params, struct iocom_err *err)
{
	if (params->priority_decay && params->fidelity == SIM_FLUID)
		return iocom_err_set(
			err, -EINVAL,
			"priority_decay: the fluid level has no priorities; use fidelity "
			"request");
	return 0;
}

const char *sim_params_get(const struct sim_params *params, unsigned int i, double *value)
{
	const char *name;

	if (i < PARAMS) {
		*value = params_value_of(params, &params_table[i]);
		return params_table[i].name;
	}
	*value = rules_params_get(&params->rules, i - (unsigned int)PARAMS, &name);
	return name;
}

/* Number of letters to insert, delete or replace to turn A into B (Levenshtein). */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[NAME_MAX_LEN + 2];
	size_t n = strlen(b);

	if (n > NAME_MAX_LEN)
		return NAME_MAX_LEN;
	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned int)j;
	for (unsigned int i = 1; a[i - 1]; i++) {
		unsigned int diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			unsigned int best = diagonal + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[n];
}

/* Smaller means more alike; a name that contains the other counts as one letter off. */
static unsigned int unlikeness(const char *wanted, const char *name)
{
	unsigned int d = distance(wanted, name);

	if (d > 1 && strlen(wanted) >= 3 && (strstr(name, wanted) || strstr(wanted, name)))
		return 1;
	return d;
}

/* Writes up to three names similar to WANTED into TEXT, "a, b, c"; "" when there is none. */
static void near_names(const struct sim_params *params, const char *wanted, char *text, size_t size)
{
	unsigned int most = (unsigned int)(strlen(wanted) / 3) + 1, found = 0;
	size_t used = 0;
	double value;

	text[0] = '\0';
	if (strlen(wanted) > NAME_MAX_LEN)
		return;
	for (unsigned int d = 0; d <= most && found < 3; d++) {
		const char *name;

		for (unsigned int i = 0; found < 3 && (name = sim_params_get(params, i, &value));
		     i++) {
			if (unlikeness(wanted, name) != d)
				continue;
			used += (size_t)snprintf(text + used, size - used, "%s%s",
						 found ? ", " : "", name);
			found++;
		}
	}
}

int sim_params_set(struct sim_params *params, const char *name, double value, struct iocom_err *err)
{
	char near[4 * (NAME_MAX_LEN + 2)];
	int rc;

	for (size_t i = 0; i < PARAMS; i++) {
		if (strcmp(params_table[i].name, name) == 0)
			return value_set(params, &params_table[i], value, err);
	}
	rc = rules_params_set(&params->rules, name, value);
	if (rc == -EINVAL)
		return iocom_err_set(err, rc, "parameter %s: %g is out of its range", name, value);
	if (rc == 0)
		return 0;
	near_names(params, name, near, sizeof(near));
	if (near[0])
		return iocom_err_set(err, -ENOENT, "no parameter is named \"%.80s\"; similar: %s",
				     name, near);
	return iocom_err_set(err, -ENOENT,
			     "no parameter is named \"%.80s\"; iocom-sim(1) lists them", name);
}
