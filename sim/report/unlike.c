/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The papers' figures run under their own configurations, `run` and `replay` under the defaults of
 * the parameters; see unlike.h.
 */
#include "sim/report/unlike.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/effect.h"
#include "sim/experiments/tables.h"
#include "sim/report/replayed.h"

/*
 * The value that PAPER sets for the parameter NAME, or NULL.  Studies of probes and of a whole
 * trace are no configurations for jobs like those of a run.
 */
static const char *value_in(const struct paper *paper, const char *name)
{
	if (!strcmp(name, "fidelity") || paper == &zat_paper || paper == &csd_paper)
		return NULL;
	for (const struct paper_setting *s = paper->settings; s->name; s++)
		if (!strcmp(s->name, name))
			return s->value;
	return NULL;
}

/* Writes the papers that set NAME to another VALUE: "FC, ACM: 1; COM: 2". */
static void tell_papers(FILE *f, const char *name, double value)
{
	const struct paper *paper;
	const char *last = NULL;

	for (size_t i = 0; (paper = paper_at(i)); i++) {
		const char *theirs = value_in(paper, name);

		if (!theirs || strtod(theirs, NULL) == value)
			continue;
		if (last && strcmp(last, theirs) != 0)
			fprintf(f, ": %s; %s", last, paper->name);
		else
			fprintf(f, "%s%s", last ? ", " : "", paper->name);
		last = theirs;
	}
	if (last)
		fprintf(f, ": %s", last);
}

static bool any_unlike(const char *name, double value)
{
	const struct paper *paper;

	for (size_t i = 0; (paper = paper_at(i)); i++) {
		const char *theirs = value_in(paper, name);

		if (theirs && strtod(theirs, NULL) != value)
			return true;
	}
	return false;
}

/* Returns whether a policy of S reads the parameter NAME. */
static bool any_reads(const struct sweep *s, const struct scenario *scenario, const char *name)
{
	struct effect_run run = {.params = &scenario->params, .samples = s->keep_samples};
	char text[256];

	for (size_t i = 0; i < s->nseries; i++) {
		run.policy = s->series[i].policy;
		if (!effect_reader(name, &run, text, sizeof(text)))
			return true;
	}
	return false;
}

static void tell_unlike(const struct sweep *s, const struct scenario *scenario, FILE *f)
{
	bool first = true;
	const char *name;
	double value;

	for (unsigned int i = 0; (name = sim_params_get(&scenario->params, i, &value)); i++) {
		if (!any_unlike(name, value) || !any_reads(s, scenario, name))
			continue;
		fprintf(f, "%s%s=%g (", first ? "" : ", ", name, value);
		tell_papers(f, name, value);
		fputc(')', f);
		first = false;
	}
}

char *report_unlike(const struct sweep *s)
{
	struct scenario scenario;
	struct settings all;
	char *text = NULL;
	size_t size;
	FILE *f;
	int ret;

	/* A batch queue shares nothing, which is all that the papers' parameters are about. */
	if (!sweep_units(s) || (s->batch && !replayed_shares(s)))
		return strdup("");
	if (sweep_unit_settings(s, 0, &all))
		return NULL;
	ret = scenario_open(&scenario, &all, NULL);
	settings_free(&all);
	if (ret)
		return ret == -ENOMEM ? NULL : strdup("");
	f = open_memstream(&text, &size);
	if (f && !scenario_is_probe(&scenario))
		tell_unlike(s, &scenario, f);
	scenario_close(&scenario);
	if (!f || fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
