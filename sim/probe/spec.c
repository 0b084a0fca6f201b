/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Parses "probe:NAME,key=value,..." and names the columns that are kept; see probe.h. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/probe/probe.h"

/* ZAT Table 1. */
static const struct probe_job jobs[] = {
	{"cc", 56.98, 27.52, 5.46, 7},
	{"io", 20.75, 17.28, 27.70, 7},
	{"cpu", 51.10, 13.09, 0.0, 5},
	{"nroff", 51.59, 46.83, 0.4, 73},
};
#define JOBS (sizeof(jobs) / sizeof(jobs[0]))

static const struct {
	const char *name;
	size_t offset;
	double value, low, high;
} keys[] = {
#define KEY(name, value, low, high)                                                                \
	{                                                                                          \
#name, offsetof(struct probe_spec, name), value, low, high                         \
	}
	KEY(jobs, 289, 1, 1e6),
	KEY(days, 30, 0.01, 1e4),
	KEY(local, 3, 0, 1000),
	KEY(remote, 1.5, 0, 1000),
	KEY(io_share, 0.3, 0, 1),
	KEY(swing, 0.6, 0, 1),
	KEY(mood_sd, 0.5, 0, 10),
	KEY(mood_h, 6, 0.01, 1e4),
	KEY(short_s, 30, 0.1, 1e6),
	KEY(long_s, 600, 0.1, 1e6),
	KEY(short_share, 0.5, 0, 1),
	KEY(loop_io_per_ms, 0.1336, 0, 100),
	KEY(loop_mb, 0.15, 0, 1000),
	KEY(idle_mb, 0.4, 0, 1000),
	KEY(system, 0.43, 0, 0.99),
	KEY(warmup_s, 150, 0, 1e5),
	KEY(alpha, 0.5, 0.001, 1),
	KEY(busy_local_ms, 700, 0, 1e6),
	KEY(busy_remote_ms, 800, 0, 1e6),
	KEY(busy_queue, 6.5, 0.01, 1e6),
	KEY(utilisation, 0.5, 0.0001, 0.999),
	KEY(hours, 5, 0.001, 1e6),
#undef KEY
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static double *field(struct probe_spec *spec, size_t k)
{
	return (double *)(void *)((char *)spec + keys[k].offset);
}

static int set_key(struct probe_spec *spec, const char *key, const char *value,
		   struct iocom_err *err)
{
	char *end;
	double x = strtod(value, &end);

	if (!strcmp(key, "exact")) {
		spec->exact = x != 0;
		if (*value && !*end && (x == 0 || x == 1))
			return 0;
		return iocom_err_set(err, -EINVAL, "probe: exact: expected 0 or 1, found \"%.40s\"",
				     value);
	}
	for (size_t k = 0; k < KEYS; k++) {
		if (strcmp(key, keys[k].name))
			continue;
		if (!*value || *end || !(x >= keys[k].low && x <= keys[k].high))
			return iocom_err_set(err, -EINVAL,
					     "probe: %s: expected a number from %g to %g, found "
					     "\"%.40s\"",
					     key, keys[k].low, keys[k].high, value);
		*field(spec, k) = x;
		return 0;
	}
	return iocom_err_set(err, -EINVAL, "probe: there is no key \"%.40s\"", key);
}

static int set_name(struct probe_spec *spec, const char *name, struct iocom_err *err)
{
	for (size_t i = 0; i < JOBS; i++)
		if (!strcmp(name, jobs[i].name))
			spec->job = &jobs[i];
	if (spec->job || !strcmp(name, "imbalance"))
		return 0;
	return iocom_err_set(err, -EINVAL,
			     "probe: expected cc, io, cpu, nroff or imbalance, found \"%.40s\"",
			     name);
}

int probe_spec_parse(struct probe_spec *spec, const char *text, struct iocom_err *err)
{
	char *copy = strdup(text + strlen(PROBE_PREFIX)), *rest = copy, *item;
	int ret;

	if (!copy)
		return iocom_err_set(err, -ENOMEM, "no memory");
	*spec = (struct probe_spec){0};
	for (size_t k = 0; k < KEYS; k++)
		*field(spec, k) = keys[k].value;
	ret = set_name(spec, strsep(&rest, ","), err);
	while (!ret && (item = strsep(&rest, ","))) {
		char *equals = strchr(item, '=');

		if (!equals) {
			ret = iocom_err_set(err, -EINVAL,
					    "probe: expected key=value, found \"%.40s\"", item);
			break;
		}
		*equals = '\0';
		ret = set_key(spec, item, equals + 1, err);
	}
	if (!ret && spec->jobs != floor(spec->jobs))
		ret = iocom_err_set(err, -EINVAL, "probe: jobs: expected a count, found %g",
				    spec->jobs);
	free(copy);
	return ret;
}

/* --- what is kept --------------------------------------------------------------------- */

static const struct {
	const char *name, *title;
} columns[PROBE_COLUMNS] = {
	{"hour", "hour of the study"},
	{"local_s", "response time, local (s)"},
	{"remote_s", "response time, remote (s)"},
	{"overhead_s", "cost of remote execution (s)"},
	{"remote_pure_s", "response time, remote without its cost (s)"},
	{"idle_percent", "cpu_idle, local (%)"},
	{"run_queue", "run queue, local (processes)"},
	{"blocks_per_s", "i/o traffic, local (blocks/s)"},
	{"free_pages", "free list, local (pages)"},
	{"active_pages", "active list, local (pages)"},
	{"load_average", "load average, local"},
	{"remote_idle_percent", "cpu_idle, remote (%)"},
	{"remote_run_queue", "run queue, remote (processes)"},
	{"remote_blocks_per_s", "i/o traffic, remote (blocks/s)"},
	{"remote_free_pages", "free list, remote (pages)"},
	{"remote_active_pages", "active list, remote (pages)"},
	{"remote_load_average", "load average, remote"},
};

const char *probe_column_name(enum probe_column c)
{
	return columns[c].name;
}

const char *probe_column_title(enum probe_column c)
{
	return columns[c].title;
}
