/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The registry of experiments and the grid of runs that each needs. */
#include "sim/experiments/experiment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/experiments/tables.h"

static const struct experiment *const tables[] = {
	fc_experiments,	       fc_control_experiments, sld_experiments,	      acm_experiments,
	acm_het_experiments,   com_experiments,	       zat_index_experiments, zat_experiments,
	zat_bound_experiments, extra_experiments,      read_experiments,	      gap_experiments,
};

static const struct paper *const papers[] = {
	&fc_paper,  &sld_paper, &acm_paper, &acm_app_paper, &acm_het_paper,
	&com_paper, &zat_paper, &csd_paper, &own_paper,
};

#define TRACE_HOURS  5 /* hours of the process trace */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct experiment *experiment_at(size_t i)
{
	for (size_t t = 0; t < COUNT(tables); t++)
		for (const struct experiment *e = tables[t]; e->id; e++)
			if (!i--)
				return e;
	return NULL;
}

const struct experiment *experiment_find(const char *id)
{
	const struct experiment *e;

	for (size_t i = 0; (e = experiment_at(i)); i++)
		if (!strcasecmp(e->id, id))
			return e;
	return NULL;
}

const struct paper *paper_at(size_t i)
{
	return i < COUNT(papers) ? papers[i] : NULL;
}

const struct paper *paper_find(const char *name)
{
	for (size_t i = 0; i < COUNT(papers); i++)
		if (!strcmp(papers[i]->name, name))
			return papers[i];
	return NULL;
}

/* --- grids ----------------------------------------------------------------------- */

/* Replaces the generated hour by the trace and removes the generator's keys. */
static int use_trace(struct sweep *s, const struct experiment *e, const char *trace,
		     struct iocom_err *err)
{
	int ret;

	settings_remove(&s->settings, "load.");
	ret = settings_set(&s->settings, "workload", trace);
	s->few_seeds = true;
	if (s->seeds > TRACE_HOURS)
		s->seeds = TRACE_HOURS;
	return ret ? ret : settings_parse(&s->settings, e->trace, err);
}

static bool is_generated(const char *workload)
{
	return workload && !strncmp(workload, "gen:", 4);
}

/*
 * Adds EXTRA.  A trace as the workload of an experiment with generated jobs gives these their
 * arrivals, homes and computation (process_trace.h); what the paper draws of these goes.
 */
static int add_extra(struct sweep *s, const struct settings *extra, struct iocom_err *err)
{
	static const char *const drawn[] = {"load.home_weights", "load.home_skew",
					    "load.lifetime_shape"};
	const char *trace = settings_get(extra, "workload");
	char *generated = NULL;
	int ret;

	if (!trace || is_generated(trace) || !is_generated(settings_get(&s->settings, "workload")))
		return settings_merge(&s->settings, extra);
	if (strchr(trace, ','))
		return iocom_err_set(err, -EINVAL, "workload: the path %s has a comma", trace);
	generated = strdup(settings_get(&s->settings, "workload"));
	if (!generated)
		return -ENOMEM;
	for (size_t i = 0; i < COUNT(drawn); i++)
		settings_remove(&s->settings, drawn[i]);
	ret = settings_merge(&s->settings, extra);
	if (!ret)
		ret = settings_set(&s->settings, "workload", generated);
	if (!ret)
		ret = settings_set(&s->settings, "load.trace", trace);
	free(generated);
	return ret;
}

static int base_settings(struct sweep *s, const struct experiment *e, const char *trace,
			 const struct settings *extra, struct iocom_err *err)
{
	const struct paper *paper = paper_find(e->config ? e->config : e->paper);
	int ret = 0;

	for (const struct paper_setting *p = paper ? paper->settings : NULL; p && p->name && !ret;
	     p++)
		ret = settings_set(&s->settings, p->name, p->value);
	if (!ret)
		ret = settings_parse(&s->settings, e->settings, err);
	if (!ret && trace && e->trace)
		ret = use_trace(s, e, trace, err);
	if (!ret && extra)
		ret = add_extra(s, extra, err);
	return ret;
}

/* Adds the values of e->axis, "7.2 7.4 ...", as points. */
static int axis_points(struct sweep *s, const struct experiment *e, struct iocom_err *err)
{
	char *values = strdup(e->values), *save = NULL;
	int ret = values ? 0 : -ENOMEM;

	for (char *v = values ? strtok_r(values, " ", &save) : NULL; v && !ret;
	     v = strtok_r(NULL, " ", &save)) {
		char setting[128];

		snprintf(setting, sizeof(setting), "%s=%s", e->axis, v);
		ret = sweep_add_point(s, v, atof(v), setting, err);
	}
	free(values);
	return ret;
}

/* Adds the policies "nlb wal ..." as series. */
static int named_series(struct sweep *s, const struct experiment *e, struct iocom_err *err)
{
	char *names = strdup(e->policies), *save = NULL;
	int ret = names ? 0 : -ENOMEM;

	for (char *p = names ? strtok_r(names, " ", &save) : NULL; p && !ret;
	     p = strtok_r(NULL, " ", &save))
		ret = sweep_add_series(s, p, p, NULL, err);
	free(names);
	return ret;
}

static int experiment_fill(struct sweep *s, const struct experiment *e, const char *trace,
			   const struct settings *extra, struct iocom_err *err)
{
	int ret = base_settings(s, e, trace, extra, err);

	if (!ret && e->axis)
		ret = axis_points(s, e, err);
	for (const struct point *p = e->points; p && p->label && !ret; p++)
		ret = sweep_add_point(s, p->label, p->x, p->settings, err);
	if (!ret && e->policies)
		ret = named_series(s, e, err);
	for (const struct series *x = e->series; x && x->policy && !ret; x++)
		ret = sweep_add_series(s, x->label ? x->label : x->policy, x->policy, x->settings,
				       err);
	return ret;
}

static struct sweep *experiment_grid(const struct experiment *e, uint32_t seeds, const char *trace,
				     const struct settings *extra, struct iocom_err *err)
{
	struct sweep *s = sweep_new(e->id, e->title, e->x_name);

	if (!s) {
		iocom_err_set(err, -ENOMEM, "no memory");
		return NULL;
	}
	s->seeds = seeds;
	if (!experiment_fill(s, e, trace, extra, err))
		return s;
	sweep_free(s);
	return NULL;
}

/* Adds JUDGED under reading R as a part of S. */
static int add_judged(struct sweep *s, const struct experiment *judged, const struct reading *r,
		      const struct settings *extra, struct iocom_err *err)
{
	uint32_t seeds = s->seeds < READING_SEEDS ? s->seeds : READING_SEEDS;
	struct settings all = {0};
	struct sweep *part = NULL;
	bool other = r->other && !strcmp(r->other, judged->id);
	int ret = settings_parse(&all, other ? r->other_settings : r->settings, err);

	if (!ret && extra)
		ret = settings_merge(&all, extra);
	if (!ret)
		part = experiment_grid(judged, seeds, NULL, &all, err);
	settings_free(&all);
	return part ? sweep_add_part(s, part) : ret ? ret : -EINVAL;
}

/* Adds all judged experiments under each reading. */
static int judged_parts(struct sweep *s, const struct experiment *e, const struct settings *extra,
			struct iocom_err *err)
{
	int ret = 0;

	for (const struct reading *r = e->readings; r && r->label && !ret; r++) {
		char *ids = strdup(e->judged), *save = NULL;

		ret = ids ? 0 : -ENOMEM;
		for (char *id = ids ? strtok_r(ids, " ", &save) : NULL; id && !ret;
		     id = strtok_r(NULL, " ", &save))
			ret = add_judged(s, experiment_find(id), r, extra, err);
		free(ids);
	}
	return ret;
}

/* Adds the same experiment with equal starts. */
static int equal_part(struct sweep *s, const struct experiment *e, const struct settings *extra,
		      struct iocom_err *err)
{
	static const struct reading equal = {.settings = EQUAL_START};

	return e->spread_series ? add_judged(s, e, &equal, extra, err) : 0;
}

struct sweep *experiment_sweep(const struct experiment *e, uint32_t seeds, const char *trace,
			       const struct settings *extra, struct iocom_err *err)
{
	struct sweep *s = experiment_grid(e, seeds, trace, extra, err);

	if (!s)
		return NULL;
	s->keep_samples = e->plot == PLOT_SERIES;
	s->keep_rows = e->plot == PLOT_SCATTER;
	if (!equal_part(s, e, extra, err) && !judged_parts(s, e, extra, err))
		return s;
	sweep_free(s);
	return NULL;
}
