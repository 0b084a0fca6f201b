/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Finds settings without an effect; see effect.h.
 *
 * Whether a workload depends on one of its keys is not written down anywhere: the workload is made
 * with the given value and with others, and its jobs are compared until two differ.
 */
#include "sim/experiments/effect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload/spec.h"

#define WORKLOAD	"load."
#define GENERATED	"gen:"
#define GENERATED_JOBS	100000 /* jobs of a generator that are compared; of a trace all are */
#define RECORDED_JOBS	1000   /* jobs that are asked for the node where they ran */

/* One run and the setting in question. */
struct effect_cell {
	const struct sweep *sweep;
	size_t unit;
	struct settings all;
	struct scenario scenario;
};

static int cell_open(struct effect_cell *c, const struct sweep *s, size_t unit,
		     struct iocom_err *err)
{
	int ret;

	*c = (struct effect_cell){.sweep = s, .unit = unit};
	ret = sweep_unit_settings(s, unit, &c->all);
	if (ret)
		return ret;
	ret = scenario_open(&c->scenario, &c->all, err);
	if (ret)
		settings_free(&c->all);
	return ret;
}

static void cell_close(struct effect_cell *c)
{
	scenario_close(&c->scenario);
	settings_free(&c->all);
}

/* --- keys of the workload ---------------------------------------------------------- */

static bool jobs_differ(const struct sim_job *a, const struct sim_job *b)
{
	return a->arrival_ms != b->arrival_ms || a->home != b->home || a->tasks != b->tasks ||
	       a->kind != b->kind || a->cpu_ms != b->cpu_ms || a->io_per_ms != b->io_per_ms ||
	       a->request_kb != b->request_kb || a->request_sd_kb != b->request_sd_kb ||
	       a->reaccess != b->reaccess || a->requests != b->requests ||
	       a->memory_mb != b->memory_mb || a->faults_per_ms != b->faults_per_ms ||
	       a->initial_mb != b->initial_mb || a->write_fraction != b->write_fraction ||
	       a->barrier_ms != b->barrier_ms || a->messages_per_ms != b->messages_per_ms ||
	       a->message_kb != b->message_kb;
}

static bool workloads_differ(struct workload *a, struct workload *b, uint64_t most)
{
	struct sim_job x, y;

	for (uint64_t i = 0; i < most; i++) {
		int more = workload_next(a, &x, NULL);

		if (more != workload_next(b, &y, NULL))
			return true;
		if (more != 1)
			return false;
		if (jobs_differ(&x, &y))
			return true;
	}
	return false;
}

/* Opens the cell's workload with NAME=VALUE instead; NULL: there is no such workload. */
static struct workload *workload_with(const struct effect_cell *c, const char *name,
				      const char *value)
{
	struct settings all = {0};
	struct scenario s;
	struct workload *w;

	if (settings_merge(&all, &c->all) || settings_set(&all, name, value) ||
	    scenario_open(&s, &all, NULL)) {
		settings_free(&all);
		return NULL;
	}
	settings_free(&all);
	w = scenario_workload(&s, sweep_unit_seed(c->sweep, c->unit), NULL);
	scenario_close(&s);
	return w;
}

/* Writes other value I of a key whose value is TEXT; false: there are no more. */
static bool other_value(const char *text, unsigned int i, char *out, size_t size)
{
	static const char *const others[] = {"0",	 "1",	    "2",     "3",	"0.5",
					     "1.5",	 "10",	    "no",    "yes",	"constant",
					     "gamma",	 "pareto",  "regular", "poisson", "1:2",
					     "5:1:3"};
	char *end;
	double value = strtod(text, &end);
	bool number = *text && !*end;

	if (i == 0 && number)
		snprintf(out, size, "%.15g", value * 2);
	else if (i == 1 && number)
		snprintf(out, size, "%.15g", value / 2);
	else if (i == 2 && number)
		snprintf(out, size, "%.15g", value + 1);
	else if (i < 3)
		snprintf(out, size, "%s", text);
	else if (i - 3 < sizeof(others) / sizeof(others[0]))
		snprintf(out, size, "%s", others[i - 3]);
	else
		return false;
	return true;
}

/* Returns whether any job depends on the key NAME of the workload ("load.KEY"). */
static bool workload_reads(const struct effect_cell *c, const char *name)
{
	const char *text = settings_get(&c->all, name);
	uint64_t most = strncmp(c->scenario.workload, GENERATED, strlen(GENERATED))
				? UINT64_MAX
				: GENERATED_JOBS;
	unsigned int compared = 0;
	bool reads = false;
	char other[64];

	for (unsigned int i = 0; !reads && other_value(text, i, other, sizeof(other)); i++) {
		struct workload *a, *b;

		if (!strcmp(other, text))
			continue;
		b = workload_with(c, name, other);
		if (!b)
			continue;
		a = workload_with(c, name, text);
		compared++;
		/* Errors of the given value are reported elsewhere. */
		reads = !a || workloads_differ(a, b, most);
		workload_free(a);
		workload_free(b);
	}
	return reads || !compared;
}

/* Returns whether the workload is a recording whose jobs say where they ran. */
static bool effect_recorded(const struct effect_cell *c)
{
	struct workload *w = scenario_is_probe(&c->scenario)
				     ? NULL
				     : scenario_workload(&c->scenario,
							 sweep_unit_seed(c->sweep, c->unit), NULL);
	struct sim_job job;
	bool recorded = false;

	for (int i = 0; w && i < RECORDED_JOBS && !recorded && workload_next(w, &job, NULL) == 1;
	     i++)
		recorded = job.has_asked && job.asked.node != UINT32_MAX;
	workload_free(w);
	return recorded;
}

/* --- one run ------------------------------------------------------------------------- */

/* Returns NULL if the run reads setting NAME, else who does. */
static const char *cell_lacks(const struct effect_cell *c, const char *name, char *text,
			      size_t size)
{
	struct effect_run run = {
		.params = &c->scenario.params,
		.policy = sweep_unit_policy(c->sweep, c->unit),
		.samples = c->sweep->keep_samples,
		.probe = scenario_is_probe(&c->scenario),
	};

	if (!strncmp(name, WORKLOAD, strlen(WORKLOAD)))
		return run.probe || workload_reads(c, name)
			       ? NULL
			       : "no job of this workload depends on it";
	if (!strcmp(name, "follow_recorded"))
		run.recorded = effect_recorded(c);
	return effect_reader(name, &run, text, size);
}

static bool sets_itself(const struct sweep *s, size_t unit, const char *name, bool swept)
{
	size_t cell = unit / s->seeds;

	return settings_get(&s->series[cell % s->nseries].settings, name) ||
	       (!swept && settings_get(&s->points[cell / s->nseries].settings, name));
}

/* --- all runs -------------------------------------------------------------------------- */

/*
 * Looks for a run of S that reads NAME.  Returns 1: there is one; 0: TEXT says why this is none;
 * negative errno.
 */
static int sweep_reads(const struct sweep *s, const char *name, bool swept, char *text, size_t size,
		       struct iocom_err *err)
{
	for (size_t unit = 0; unit < sweep_units(s); unit += s->seeds) {
		struct effect_cell c;
		char words[256];
		const char *lacks;
		int ret;

		/* A trace was made a key of each generator (experiment.c). */
		if (!strcmp(name, "workload") && settings_get(&s->settings, "load.trace"))
			return 1;
		if (sets_itself(s, unit, name, swept)) {
			if (!text[0])
				snprintf(text, size, "%s sets it itself in each of its runs",
					 s->id);
			continue;
		}
		ret = cell_open(&c, s, unit, err);
		if (ret)
			return ret;
		lacks = cell_lacks(&c, name, words, sizeof(words));
		if (lacks)
			snprintf(text, size, "%s", lacks);
		cell_close(&c);
		if (!lacks)
			return 1;
	}
	return 0;
}

static const char *option_of(const char *name, bool swept)
{
	return swept ? "--sweep " : !strcmp(name, "fidelity") ? "--" : "--set ";
}

/* Threads change the duration of a run, never its results. */
static bool effect_exempt(const char *name)
{
	return !strcmp(name, "threads");
}

static int check_name(struct sweep *const *sweeps, size_t n, const char *name, bool swept,
		      struct iocom_err *err)
{
	char text[256] = "";

	if (effect_exempt(name))
		return 0;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k <= sweeps[i]->nparts; k++) {
			int ret = sweep_reads(sweep_part(sweeps[i], k), name, swept, text,
					      sizeof(text), err);

			if (ret)
				return ret < 0 ? ret : 0;
		}
	}
	return iocom_err_set(err, -EINVAL, "%s%s has no effect here: %s", option_of(name, swept),
			     name, text[0] ? text : "nothing runs");
}

int effect_check(struct sweep *const *sweeps, size_t n, const struct settings *given, bool swept,
		 struct iocom_err *err)
{
	const struct settings *points = n && swept && sweeps[0]->npoints
						? &sweeps[0]->points[0].settings
						: NULL;
	int ret = 0;

	for (size_t i = 0; i < given->n && !ret; i++)
		ret = check_name(sweeps, n, given->v[i].name, false, err);
	for (size_t i = 0; points && i < points->n && !ret; i++)
		ret = check_name(sweeps, n, points->v[i].name, true, err);
	return ret;
}
