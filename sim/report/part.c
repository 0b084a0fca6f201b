/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Writes the results of a shard to a file; see part.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/part.h"

static json_t *pack_settings(const struct settings *s)
{
	json_t *out = json_object();

	for (size_t i = 0; i < s->n; i++)
		json_object_set_new(out, s->v[i].name, json_string(s->v[i].value));
	return out;
}

static json_t *part_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *pack_used(const struct sweep_used *used)
{
	json_t *out = json_array();

	json_array_append_new(out, json_integer((json_int_t)used->records));
	for (unsigned int why = 0; why < WORKLOAD_LEFT_COUNT; why++)
		json_array_append_new(out, json_integer((json_int_t)used->left[why]));
	return out;
}

static json_t *pack_sweep(const struct report *r)
{
	const struct sweep *s = r->sweep;
	json_t *points = json_array(), *series = json_array(), *kinds = json_array();

	for (size_t i = 0; i < s->npoints; i++)
		json_array_append_new(points,
				      json_pack("{s:s, s:o, s:o}", "label", s->points[i].label, "x",
						part_number(s->points[i].x), "settings",
						pack_settings(&s->points[i].settings)));
	for (size_t i = 0; i < s->nseries; i++)
		json_array_append_new(series,
				      json_pack("{s:s, s:s, s:o}", "label", s->series[i].label,
						"policy", s->series[i].policy, "settings",
						pack_settings(&s->series[i].settings)));
	for (uint32_t i = 0; i < s->nkinds; i++)
		json_array_append_new(kinds, json_string(s->kinds[i]));
	return json_pack(
		"{s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:o, s:i, s:I, s:i, s:i, s:b, s:b, s:o, "
		"s:o, s:o, s:o, s:s, s:s}",
		"id", s->id, "title", s->title, "x_name", s->x_name, "experiment",
		r->experiment != NULL, "keep_samples", s->keep_samples, "keep_rows", s->keep_rows,
		"keep_outcomes", s->keep_outcomes, "batch", s->batch, "used", pack_used(&s->used),
		"seeds", (int)s->seeds, "first_seed", (json_int_t)s->first_seed, "plot",
		(int)r->plot, "measure", (int)r->y, "log_y", r->log_y, "facets", r->facets,
		"settings", pack_settings(&s->settings), "points", points, "series", series,
		"kinds", kinds, "source", s->source, "synthetic", s->synthetic);
}

/* Packs the sweep with its parts; only the sweep itself describes these. */
static json_t *pack_whole(const struct report *r)
{
	json_t *out = pack_sweep(r), *parts = json_array();
	struct report part = *r;

	for (size_t i = 0; i < r->sweep->nparts; i++) {
		part.sweep = r->sweep->parts[i];
		json_array_append_new(parts, pack_sweep(&part));
	}
	if (out && r->sweep->nparts)
		json_object_set(out, "parts", parts);
	json_decref(parts);
	return out;
}

static json_t *pack_samples(const struct sweep_result *r)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < r->nsamples; i++) {
		const struct sim_sample *x = &r->samples[i];

		json_array_append_new(out,
				      json_pack("[f, f, f, f, f, f, I, I, f, f, f]", x->time_ms,
						x->cpu_utilisation, x->disk_utilisation,
						x->tasks_mean, x->tasks_max, x->io_imbalance,
						(json_int_t)x->remote, (json_int_t)x->migrations,
						x->w_io, x->buffer_mb, x->slowdown));
	}
	return out;
}

static json_t *pack_rows(const struct sweep_result *r)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < r->nrows; i++) {
		json_t *row = json_array();

		for (unsigned int c = 0; c < PROBE_COLUMNS; c++)
			json_array_append_new(row, json_real(r->rows[i].v[c]));
		json_array_append_new(out, row);
	}
	return out;
}

/* Rows of all groups: group, key, sums. */
static json_t *pack_outcome(const struct outcome *o)
{
	json_t *out = json_array();

	for (unsigned int g = 0; g < OUTCOME_GROUPS; g++) {
		for (uint32_t i = 0; i < o->n[g]; i++) {
			const struct outcome_row *row = &o->rows[g][i];
			json_t *packed = json_pack("[i, f]", (int)g, row->key);

			for (unsigned int k = 0; k < OUTCOME_SUMS; k++)
				json_array_append_new(packed, json_real(row->sums[k]));
			json_array_append_new(out, packed);
		}
	}
	return out;
}

static json_t *pack_unit(size_t sweep, size_t unit, const struct sweep_result *r)
{
	json_t *values = json_array(), *out;

	for (unsigned int m = 0; m < M_COUNT; m++)
		json_array_append_new(values, part_number(r->values[m]));
	out = json_pack("{s:I, s:I, s:s, s:o}", "sweep", (json_int_t)sweep, "unit",
			(json_int_t)unit, "input", r->input, "values", values);
	if (out && r->nsamples)
		json_object_set_new(out, "samples", pack_samples(r));
	if (out && r->nrows)
		json_object_set_new(out, "rows", pack_rows(r));
	if (out && r->outcome.n[OUTCOME_WEEKS])
		json_object_set_new(out, "outcome", pack_outcome(&r->outcome));
	return out;
}

static int part_write_line(FILE *f, json_t *line)
{
	if (!line)
		return -ENOMEM;
	json_dumpf(line, f, JSON_COMPACT | JSON_REAL_PRECISION(17));
	fputc('\n', f);
	json_decref(line);
	return 0;
}

/* Writes the runs of S, which is part PART of report REPORT (0: the report's own sweep). */
static int write_units(FILE *f, size_t report, size_t part, const struct sweep *s, size_t *written)
{
	int ret = 0;

	for (size_t u = 0; u < sweep_units(s) && !ret; u++) {
		json_t *line;

		if (!s->results[u].done)
			continue;
		line = pack_unit(report, u, &s->results[u]);
		if (line && part)
			json_object_set_new(line, "part", json_integer((json_int_t)part));
		ret = part_write_line(f, line);
		(*written)++;
	}
	return ret;
}

int part_write(FILE *f, const struct report *reports, size_t n, bool page, unsigned int shard,
	       unsigned int shards)
{
	json_t *sweeps = json_array();
	size_t written = 0;
	int ret;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(sweeps, pack_whole(&reports[i]));
	ret = part_write_line(f, json_pack("{s:i, s:s, s:i, s:i, s:b, s:o}", "iocom_sim_part", 1,
					   "version", IOCOM_VERSION, "shard", (int)shard, "shards",
					   (int)shards, "page", page, "sweeps", sweeps));
	for (size_t i = 0; i < n && !ret; i++)
		for (size_t k = 0; k <= reports[i].sweep->nparts && !ret; k++)
			ret = write_units(f, i, k, sweep_part(reports[i].sweep, k), &written);
	return ret ? ret : part_write_line(f, json_pack("{s:I}", "end", (json_int_t)written));
}
