/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A grid of runs and its results; see sweep.h. */
#include "sim/experiments/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload/hash.h"

struct sweep *sweep_new(const char *id, const char *title, const char *x_name)
{
	struct sweep *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->id = strdup(id);
	s->title = strdup(title ? title : "");
	s->x_name = strdup(x_name ? x_name : "");
	s->first_seed = 1;
	if (s->id && s->title && s->x_name)
		return s;
	sweep_free(s);
	return NULL;
}

static void free_results(struct sweep *s)
{
	for (size_t i = 0; s->results && i < sweep_units(s); i++) {
		free(s->results[i].samples);
		free(s->results[i].rows);
	}
	free(s->results);
	s->results = NULL;
}

void sweep_free(struct sweep *s)
{
	if (!s)
		return;
	free_results(s);
	for (size_t i = 0; i < s->npoints; i++) {
		free(s->points[i].label);
		settings_free(&s->points[i].settings);
	}
	for (size_t i = 0; i < s->nseries; i++) {
		free(s->series[i].label);
		free(s->series[i].policy);
		settings_free(&s->series[i].settings);
	}
	for (size_t i = 0; i < s->nparts; i++)
		sweep_free(s->parts[i]);
	free(s->parts);
	free(s->wanted);
	settings_free(&s->settings);
	free(s->points);
	free(s->series);
	free(s->id);
	free(s->title);
	free(s->x_name);
	free(s);
}

int sweep_add_point(struct sweep *s, const char *label, double x, const char *settings,
		    struct iocom_err *err)
{
	struct sweep_point *grown = realloc(s->points, (s->npoints + 1) * sizeof(*grown));
	struct sweep_point *p;

	if (!grown)
		return -ENOMEM;
	s->points = grown;
	p = &s->points[s->npoints];
	*p = (struct sweep_point){.label = strdup(label), .x = x};
	if (!p->label)
		return -ENOMEM;
	s->npoints++;
	return settings_parse(&p->settings, settings, err);
}

int sweep_add_series(struct sweep *s, const char *label, const char *policy, const char *settings,
		     struct iocom_err *err)
{
	struct sweep_series *grown = realloc(s->series, (s->nseries + 1) * sizeof(*grown));
	struct sweep_series *e;

	if (!grown)
		return -ENOMEM;
	s->series = grown;
	e = &s->series[s->nseries++];
	*e = (struct sweep_series){.label = strdup(label), .policy = strdup(policy)};
	if (!e->label || !e->policy)
		return -ENOMEM;
	return settings_parse(&e->settings, settings, err);
}

int sweep_add_part(struct sweep *s, struct sweep *part)
{
	struct sweep **grown = realloc(s->parts, (s->nparts + 1) * sizeof(struct sweep *));

	if (!grown) {
		sweep_free(part);
		return -ENOMEM;
	}
	s->parts = grown;
	s->parts[s->nparts++] = part;
	return 0;
}

struct sweep *sweep_part(struct sweep *s, size_t i)
{
	return i ? s->parts[i - 1] : s;
}

int sweep_results(struct sweep *s)
{
	free_results(s);
	s->results = calloc(sweep_units(s) ? sweep_units(s) : 1, sizeof(*s->results));
	return s->results ? 0 : -ENOMEM;
}

int sweep_grow(struct sweep *s, uint32_t seeds)
{
	size_t cells = s->npoints * s->nseries;
	struct sweep_result *results = calloc(cells * seeds + 1, sizeof(*results));

	if (!results)
		return -ENOMEM;
	for (size_t c = 0; c < cells; c++)
		memcpy(&results[c * seeds], &s->results[c * s->seeds], s->seeds * sizeof(*results));
	free(s->results);
	s->results = results;
	s->seeds = seeds;
	return 0;
}

int sweep_want_none(struct sweep *s)
{
	free(s->wanted);
	s->wanted = calloc(s->npoints * s->nseries + 1, sizeof(*s->wanted));
	return s->wanted ? 0 : -ENOMEM;
}

uint32_t sweep_done(const struct sweep *s, size_t point, size_t series)
{
	uint32_t done = 0;

	for (uint32_t k = 0; k < s->seeds; k++)
		done += sweep_result(s, point, series, k)->done;
	return done;
}

uint32_t sweep_done_least(const struct sweep *s)
{
	uint32_t least = s->seeds;

	for (size_t p = 0; p < s->npoints; p++)
		for (size_t k = 0; k < s->nseries; k++) {
			uint32_t done = sweep_done(s, p, k);

			least = done < least ? done : least;
		}
	return least;
}

size_t sweep_units(const struct sweep *s)
{
	return s->npoints * s->nseries * s->seeds;
}

struct sweep_result *sweep_result(const struct sweep *s, size_t point, size_t series, uint32_t seed)
{
	return &s->results[(point * s->nseries + series) * s->seeds + seed];
}

static const struct sweep_series *series_of(const struct sweep *s, size_t unit)
{
	return &s->series[unit / s->seeds % s->nseries];
}

int sweep_unit_settings(const struct sweep *s, size_t unit, struct settings *out)
{
	const struct settings *parts[] = {
		&s->settings,
		&series_of(s, unit)->settings,
		&s->points[unit / s->seeds / s->nseries].settings,
	};

	*out = (struct settings){0};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (settings_merge(out, parts[i])) {
			settings_free(out);
			return -ENOMEM;
		}
	}
	return 0;
}

const char *sweep_unit_policy(const struct sweep *s, size_t unit)
{
	return series_of(s, unit)->policy;
}

uint64_t sweep_unit_seed(const struct sweep *s, size_t unit)
{
	return s->first_seed + unit % s->seeds;
}

int sweep_find_series(const struct sweep *s, const char *label)
{
	for (size_t i = 0; i < s->nseries; i++)
		if (!strcmp(s->series[i].label, label))
			return (int)i;
	return -1;
}

int sweep_find_point(const struct sweep *s, const char *label)
{
	for (size_t i = 0; i < s->npoints; i++)
		if (!strcmp(s->points[i].label, label))
			return (int)i;
	return -1;
}

void sweep_cell(const struct sweep *s, size_t point, size_t series, enum measure m, double *out)
{
	if (s->asked)
		s->asked[point * s->nseries + series] = true;
	for (uint32_t k = 0; k < s->seeds; k++) {
		const struct sweep_result *r = sweep_result(s, point, series, k);

		out[k] = r->done ? r->values[m] : NAN;
	}
}

size_t sweep_told(const struct sweep *s, size_t point, size_t series, enum measure m)
{
	size_t n = 0;

	for (uint32_t k = 0; k < s->seeds; k++) {
		const struct sweep_result *r = sweep_result(s, point, series, k);

		n += r->done && isfinite(r->values[m]);
	}
	return n;
}

struct interval sweep_mean(const struct sweep *s, size_t point, size_t series, enum measure m)
{
	double values[s->seeds ? s->seeds : 1];

	sweep_cell(s, point, series, m, values);
	return stats_mean(values, s->seeds);
}

bool sweep_has(const struct sweep *s, enum measure m)
{
	for (size_t i = 0; i < sweep_units(s); i++)
		if (s->results[i].done && isfinite(s->results[i].values[m]))
			return true;
	return false;
}

void sweep_input_hash(const struct sweep *s, char out[72])
{
	struct hash hash;

	out[0] = '\0';
	if (hash_begin(&hash))
		return;
	for (size_t i = 0; i < sweep_units(s); i++)
		hash_add(&hash, s->results[i].input, strlen(s->results[i].input));
	if (hash_end(&hash, out))
		out[0] = '\0';
}
