/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The options for reading traces and generating missing fields: defaults and one table of names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/workload.h"
#include "sim/workload/lines.h"

enum type { REAL, COUNT32, COUNT64, INTEGER, YESNO };

static const struct option {
	const char *name;
	enum type type;
	size_t offset;
	double low, high;
	const char *meaning;
} table[] = {
#define OPTION(field, type, low, high, meaning)                                                    \
	{                                                                                          \
#field, type, offsetof(struct workload_options, field), low, high, meaning         \
	}
	OPTION(seed, COUNT64, 0, 18446744073709551615.0, "seed of all generated values"),
	OPTION(nodes, COUNT32, 0, 1000000,
	       "nodes that jobs without a host are spread over; 0: the trace's own"),
	OPTION(from_s, REAL, 0, 1e12, "only arrivals from this time on, which becomes time 0"),
	OPTION(to_s, REAL, 0, 1e12, "only arrivals before this time; 0: to the end"),
	OPTION(jobs_max, COUNT64, 0, 1e15, "most jobs; 0: all"),
	OPTION(time_scale, REAL, 1e-9, 1e9, "multiplies arrival times"),
	OPTION(memory_mean_mb, REAL, 0, 1e9, "mean memory of a job, Pareto"),
	OPTION(memory_shape, REAL, 0, 1e3, "shape of that Pareto, above 1; 0: constant"),
	OPTION(io_per_ms, REAL, 0, 1e6, "mean accesses per ms of computation, uniform on 0 .. 2x"),
	OPTION(request_kb, REAL, 0, 1e9, "mean size of an access, Gamma"),
	OPTION(request_sd_kb, REAL, 0, 1e9, "its standard deviation"),
	OPTION(reaccess, REAL, 0, 1e6, "data re-access rate r"),
	OPTION(faults_per_ms, REAL, 0, 1e6, "page faults per ms of computation"),
	OPTION(initial_mb, REAL, 0, 1e9, "data on the home's disk that a job needs"),
	OPTION(min_cpu_ms, REAL, 0, 1e15, "jobs of less computation are left out"),
	OPTION(home_skew, REAL, 0, 100, "inequality of the homes of jobs without a host"),
	OPTION(tasks_max, COUNT32, 0, 1e9,
	       "wider jobs are folded to this many tasks; 0: unchanged"),
	OPTION(requested, YESNO, 0, 1, "SWF: use what was requested, not what was used"),
	OPTION(batch, YESNO, 0, 1,
	       "SWF: tasks compute for the job's run time; wider jobs than the cluster are left "
	       "out"),
	OPTION(time_unit_s, REAL, 1e-12, 1e6, "block csv: seconds per unit of its time column"),
	OPTION(burst_gap_ms, REAL, -1, 1e12,
	       "block csv: requests at most so far apart are one job; -1: each is a job"),
	OPTION(run, INTEGER, -1, 1e6, "CSD: number of the run; -1: the first in the file"),
#undef OPTION
};

#define OPTIONS (sizeof(table) / sizeof(table[0]))

void workload_options_default(struct workload_options *o)
{
	*o = (struct workload_options){
		.seed = 1,
		.time_scale = 1,
		.memory_mean_mb = 4,
		.memory_shape = 1.5,
		.request_kb = 256,
		.request_sd_kb = 51.2,
		.reaccess = 5,
		.faults_per_ms = 0.5,
		.time_unit_s = 1,
		.run = -1,
	};
}

static int options_parse(const struct option *option, const char *value, double *out)
{
	struct token f = {.text = value, .length = strlen(value)};

	if (option->type == YESNO) {
		static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};

		for (unsigned int i = 0; i < 6; i++) {
			if (!strcasecmp(value, words[i])) {
				*out = i % 2;
				return 0;
			}
		}
	}
	if (!token_parse(&f, out) || *out < option->low || *out > option->high)
		return -EINVAL;
	if (option->type != REAL && *out != (double)(int64_t)*out)
		return -EINVAL;
	return 0;
}

static void store(struct workload_options *o, const struct option *option, double value)
{
	void *at = (char *)o + option->offset;

	switch (option->type) {
	case REAL:
		*(double *)at = value;
		break;
	case COUNT32:
		*(uint32_t *)at = (uint32_t)value;
		break;
	case COUNT64:
		*(uint64_t *)at = (uint64_t)value;
		break;
	case INTEGER:
		*(int32_t *)at = (int32_t)value;
		break;
	case YESNO:
		*(bool *)at = value != 0;
		break;
	}
}

static double options_load(const struct workload_options *o, const struct option *option)
{
	const void *at = (const char *)o + option->offset;

	switch (option->type) {
	case REAL:
		return *(const double *)at;
	case COUNT32:
		return *(const uint32_t *)at;
	case COUNT64:
		return (double)*(const uint64_t *)at;
	case INTEGER:
		return *(const int32_t *)at;
	case YESNO:
		break;
	}
	return *(const bool *)at;
}

int workload_options_set(struct workload_options *o, const char *name, const char *value,
			 struct iocom_err *err)
{
	char names[600] = "";
	double number;

	for (size_t i = 0; i < OPTIONS; i++) {
		if (strcmp(table[i].name, name))
			continue;
		if (table[i].type == COUNT64) {
			char *end;

			errno = 0;
			if (*value >= '0' && *value <= '9') {
				unsigned long long whole = strtoull(value, &end, 10);

				if (!*end && !errno && (double)whole <= table[i].high) {
					*(uint64_t *)(void *)((char *)o + table[i].offset) = whole;
					return 0;
				}
			}
		} else if (!options_parse(&table[i], value, &number)) {
			store(o, &table[i], number);
			return 0;
		}
		return iocom_err_set(err, -EINVAL,
				     "%s: expected a %snumber from %g to %g, found \"%.40s\"", name,
				     table[i].type == REAL ? "" : "whole ", table[i].low,
				     table[i].high, value);
	}
	for (size_t i = 0; i < OPTIONS; i++) {
		strcat(names, i ? ", " : "");
		strcat(names, table[i].name);
	}
	return iocom_err_set(err, -ENOENT, "a workload has no option \"%.40s\"; it has: %s", name,
			     names);
}

const char *workload_options_get(const struct workload_options *o, unsigned int i, double *value,
				 const char **meaning)
{
	if (i >= OPTIONS)
		return NULL;
	if (value)
		*value = options_load(o, &table[i]);
	if (meaning)
		*meaning = table[i].meaning;
	return table[i].name;
}
