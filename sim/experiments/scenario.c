/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Makes a run that is ready to start from settings; see scenario.h. */
#include "sim/experiments/scenario.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload/spec.h"

#define MACHINE	    "nodes."
#define WORKLOAD    "load."
#define TRACE_HOURS 5 /* hours of the process trace */

static const struct {
	const char *name;
	size_t offset;
} machine_fields[] = {
#define FIELD(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct sim_machine, name)                                          \
	}
	FIELD(cpu_mips),   FIELD(cores),	 FIELD(ram_mb),
	FIELD(buffer_mb),  FIELD(disk_fixed_ms), FIELD(disk_mb_per_s),
	FIELD(request_kb), FIELD(request_sd_kb), FIELD(network_mb_per_s),
#undef FIELD
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *scenario_machine_field(unsigned int i)
{
	return i < COUNT(machine_fields) ? machine_fields[i].name : NULL;
}

const char *scenario_option_field(unsigned int i)
{
	return workload_options_get(NULL, i + 1, NULL, NULL); /* the first option is the seed,
							       * which the run has */
}

static int scenario_number(const struct setting *s, double *value, struct iocom_err *err)
{
	char *end;

	errno = 0;
	*value = strtod(s->value, &end);
	if (!*s->value || *end || errno == ERANGE || !isfinite(*value))
		return iocom_err_set(err, -EINVAL, "%s: expected a number, found '%s'", s->name,
				     s->value);
	return 0;
}

static int set_machine(struct scenario *s, const struct setting *setting, struct iocom_err *err)
{
	const char *field = setting->name + strlen(MACHINE);
	double value;
	int ret = scenario_number(setting, &value, err);

	if (ret)
		return ret;
	if (value < 0)
		return iocom_err_set(err, -EINVAL, "%s: expected a number >= 0, found '%s'",
				     setting->name, setting->value);
	for (size_t f = 0; f < COUNT(machine_fields); f++) {
		if (strcmp(field, machine_fields[f].name))
			continue;
		for (uint32_t i = 0; i < s->cluster.n; i++) {
			char *machine = (char *)&s->cluster.machines[i];

			*(double *)(machine + machine_fields[f].offset) = value;
		}
		return 0;
	}
	return iocom_err_set(err, -ENOENT, "%s: machines have no such field", setting->name);
}

static int scenario_set_option(struct scenario *s, const struct setting *setting,
			       struct iocom_err *err)
{
	const char *field = setting->name + strlen(WORKLOAD);

	if (!strcmp(field, "run") && !strcmp(setting->value, "seed")) {
		s->run_by_seed = true;
		return 0;
	}
	if (!strcmp(field, "seed"))
		return iocom_err_set(err, -EINVAL, "%s: use the seed of the run (--seed)",
				     setting->name);
	return workload_options_set(&s->options, field, setting->value, err);
}

/* Removes ",KEY=..." (KEY has LENGTH characters) from the text, if it is there. */
static void drop_key(char *text, const char *key, size_t length)
{
	for (char *at = strchr(text, ','); at; at = strchr(at + 1, ',')) {
		size_t rest = strcspn(at + 1, ",") + 1;

		if (strncmp(at + 1, key, length) || at[1 + length] != '=')
			continue;
		memmove(at, at + rest, strlen(at + rest) + 1);
		return;
	}
}

/* load.KEY=VALUE replaces KEY in "gen:PRESET,KEY=..." or is appended. */
static int add_key(struct scenario *s, const struct setting *setting)
{
	const char *key = setting->name + strlen(WORKLOAD);
	char *text;

	drop_key(s->workload, key, strlen(key));
	if (asprintf(&text, "%s,%s=%s", s->workload, key, setting->value) < 0)
		return -ENOMEM;
	free(s->workload);
	s->workload = text;
	return 0;
}

static int set_fidelity(struct scenario *s, const char *value, struct iocom_err *err)
{
	if (!strcmp(value, "fluid"))
		s->params.fidelity = SIM_FLUID;
	else if (!strcmp(value, "request"))
		s->params.fidelity = SIM_REQUEST;
	else
		return iocom_err_set(err, -EINVAL,
				     "fidelity: expected fluid or request, found '%s'", value);
	return 0;
}

bool scenario_is_probe(const struct scenario *s)
{
	return !strncmp(s->workload, PROBE_PREFIX, strlen(PROBE_PREFIX));
}

static int set_one(struct scenario *s, const struct setting *setting, struct iocom_err *err)
{
	double value;
	int ret;

	if (!strcmp(setting->name, "nodes") || !strcmp(setting->name, "workload") ||
	    !strcmp(setting->name, "rates"))
		return 0;
	if (!strcmp(setting->name, "fidelity"))
		return set_fidelity(s, setting->value, err);
	if (!strncmp(setting->name, MACHINE, strlen(MACHINE)))
		return set_machine(s, setting, err);
	if (!strncmp(setting->name, WORKLOAD, strlen(WORKLOAD)))
		return !strncmp(s->workload, "gen:", 4) || scenario_is_probe(s)
			       ? add_key(s, setting)
			       : scenario_set_option(s, setting, err);
	ret = scenario_number(setting, &value, err);
	return ret ? ret : sim_params_set(&s->params, setting->name, value, err);
}

/* Sets the rules' parameters to the defaults of these rates, before any other setting. */
static int set_rates(struct scenario *s, const char *value, struct iocom_err *err)
{
	bool wall = value && !strcmp(value, "wall");

	if (value && !wall && strcmp(value, "computation"))
		return iocom_err_set(err, -EINVAL,
				     "rates: expected computation or wall, found '%s'", value);
	rules_params_default(&s->params.rules, wall ? RULES_RATES_WALL : RULES_RATES_COMPUTATION);
	return 0;
}

/* Checks the machines after nodes.FIELD=VALUE was applied. */
static int check_machines(const struct scenario *s, struct iocom_err *err)
{
	for (uint32_t i = 0; i < s->cluster.n; i++) {
		const char *wrong = sim_machine_check(&s->cluster.machines[i]);

		if (wrong)
			return iocom_err_set(err, -EINVAL, "nodes: %s", wrong);
	}
	return 0;
}

int scenario_open(struct scenario *s, const struct settings *settings, struct iocom_err *err)
{
	const char *nodes = settings_get(settings, "nodes");
	const char *workload = settings_get(settings, "workload");
	int ret;

	*s = (struct scenario){0};
	if (!workload)
		return iocom_err_set(err, -EINVAL, "no workload given (a trace, or gen:PRESET)");
	if (!nodes)
		return iocom_err_set(err, -EINVAL, "no cluster given (nodes=6xfc, for example)");
	sim_params_default(&s->params);
	s->params.fidelity = SIM_FLUID;
	workload_options_default(&s->options);
	s->workload = strdup(workload);
	if (!s->workload)
		return -ENOMEM;
	ret = sim_cluster_parse(&s->cluster, nodes, err);
	if (ret) {
		free(s->workload);
		s->workload = NULL;
		return ret;
	}
	s->options.nodes = s->cluster.n;
	ret = set_rates(s, settings_get(settings, "rates"), err);
	for (size_t i = 0; i < settings->n && !ret; i++)
		ret = set_one(s, &settings->v[i], err);
	if (!ret)
		ret = check_machines(s, err);
	if (!ret)
		ret = sim_params_check(&s->params, err);
	if (ret)
		scenario_close(s);
	return ret;
}

void scenario_close(struct scenario *s)
{
	sim_cluster_free(&s->cluster);
	free(s->workload);
	s->workload = NULL;
}

struct workload *scenario_workload(const struct scenario *s, uint64_t seed, struct iocom_err *err)
{
	struct workload_options options = s->options;

	if (scenario_is_probe(s)) {
		iocom_err_set(err, -EINVAL, "%s: a probe's study has no stream of jobs",
			      s->workload);
		return NULL;
	}
	options.seed = seed;
	if (s->run_by_seed)
		options.run = (int32_t)((seed + TRACE_HOURS - 1) % TRACE_HOURS);
	return workload_spec_open(s->workload, &options, err);
}
