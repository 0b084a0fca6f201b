/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The facts that every output states about the origin of its numbers, and the judging of claims. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/claim_start.h"
#include "sim/experiments/scenario.h"
#include "sim/report/report.h"

const char *verdict_name(enum verdict v)
{
	static const char *const names[VERDICTS] = {
		[VERDICT_HOLDS] = "holds",
		[VERDICT_EXCEEDED] = "exceeded",
		[VERDICT_CONTRADICTED] = "contradicted",
		[VERDICT_UNDECIDED] = "undecided",
		[VERDICT_NOT_TESTED] = "not tested",
	};

	return names[v];
}

bool verdict_needs_reason(enum verdict v)
{
	return v != VERDICT_HOLDS && v != VERDICT_UNDECIDED;
}

void verdict_more(const struct judgement *j, char *out, size_t size)
{
	*out = '\0';
	if (j->verdict != VERDICT_UNDECIDED)
		return;
	if (!j->more_seeds)
		snprintf(out, size, "more seeds do not decide it");
	else if (j->more_seeds >= VERDICT_SEEDS_MAX)
		snprintf(out, size, "%d more seeds would not decide it", VERDICT_SEEDS_MAX);
	else
		snprintf(out, size, "about %u more seed%s would decide it", j->more_seeds,
			 j->more_seeds == 1 ? "" : "s");
}

int report_judge(struct report *r, const struct claim_context *context)
{
	const struct claim *claims = r->experiment ? r->experiment->claims : NULL;
	size_t n = 0;

	while (claims && claims[n].text)
		n++;
	r->judged = calloc(n ? n : 1, sizeof(*r->judged));
	if (!r->judged)
		return -ENOMEM;
	r->njudged = n;
	for (size_t i = 0; i < n; i++) {
		r->judged[i].claim = &claims[i];
		claim_judge(context, &claims[i], &r->judged[i].judgement);
		claim_start(context, r->experiment, &claims[i], r->judged[i].judgement.start,
			    sizeof(r->judged[i].judgement.start));
	}
	return 0;
}

void report_free(struct report *r)
{
	free(r->judged);
	r->judged = NULL;
	r->njudged = 0;
}

/* Parameters to leave out: other facts list the seeds, and threads do not change results. */
static bool told_elsewhere(const char *name)
{
	return !strcmp(name, "seed") || !strcmp(name, "threads");
}

static int tell_settings(const struct settings *s, const char *prefix, report_fact_fn *fact,
			 void *arg)
{
	for (size_t i = 0; i < s->n; i++) {
		char *name;

		if (told_elsewhere(s->v[i].name))
			continue;
		if (asprintf(&name, "%s%s", prefix, s->v[i].name) < 0)
			return -ENOMEM;
		fact(arg, name, s->v[i].value);
		free(name);
	}
	return 0;
}

/* Reports all parameters of the sweep's first run as one text. */
static int tell_parameters(const struct sweep *s, report_fact_fn *fact, void *arg)
{
	struct settings all;
	struct scenario scenario;
	const char *name;
	char *text = NULL;
	size_t size;
	double value;
	FILE *f;

	if (!sweep_units(s))
		return 0;
	if (sweep_unit_settings(s, 0, &all))
		return -ENOMEM;
	f = scenario_open(&scenario, &all, NULL) ? NULL : open_memstream(&text, &size);
	settings_free(&all);
	if (!f)
		return -ENOMEM;
	for (unsigned int i = 0; (name = sim_params_get(&scenario.params, i, &value)); i++)
		if (!told_elsewhere(name))
			fprintf(f, "%s%s=%.10g", i ? " " : "", name, value);
	scenario_close(&scenario);
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	fact(arg, "parameters of the first run", text);
	free(text);
	return 0;
}

static int tell_series(const struct sweep *s, report_fact_fn *fact, void *arg)
{
	for (size_t i = 0; i < s->nseries; i++) {
		char *name;
		int ret;

		if (!s->series[i].settings.n)
			continue;
		if (asprintf(&name, "series %s: ", s->series[i].label) < 0)
			return -ENOMEM;
		ret = tell_settings(&s->series[i].settings, name, fact, arg);
		free(name);
		if (ret)
			return ret;
	}
	for (size_t i = 0; i < s->npoints; i++) {
		char *name;
		int ret;

		if (asprintf(&name, "point %s: ", s->points[i].label) < 0)
			return -ENOMEM;
		ret = tell_settings(&s->points[i].settings, name, fact, arg);
		free(name);
		if (ret)
			return ret;
	}
	return 0;
}

int report_facts(const struct sweep *s, report_fact_fn *fact, void *arg)
{
	char text[128];
	int ret;

	fact(arg, "program", "iocom-sim " IOCOM_VERSION);
	fact(arg, "experiment", s->id);
	fact(arg, "title", s->title);
	snprintf(text, sizeof(text), "%llu..%llu", (unsigned long long)s->first_seed,
		 (unsigned long long)(s->first_seed + s->seeds - 1));
	fact(arg, "seeds", text);
	fact(arg, "workload", s->source);
	sweep_input_hash(s, text);
	fact(arg, "input", text);
	if (s->synthetic[0])
		fact(arg, "generated, not in the trace", s->synthetic);
	ret = tell_settings(&s->settings, "set ", fact, arg);
	if (!ret)
		ret = tell_series(s, fact, arg);
	return ret ? ret : tell_parameters(s, fact, arg);
}
