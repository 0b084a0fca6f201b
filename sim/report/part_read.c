/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads and joins the results of shards; see part.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/scenario.h"
#include "sim/report/part.h"

#define RUNS_MAX 100000000 /* per sweep; bounds what a damaged file may request */

/* A file that is being read. */
struct reader {
	FILE *f;
	const char *path;
	size_t line;
	struct iocom_err *err;
};

__attribute__((format(printf, 2, 3))) static int part_read_bad(struct reader *r, const char *fmt,
							       ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return iocom_err_set(r->err, -EINVAL, "%s:%zu: %s", r->path, r->line, text);
}

/*
 * Reads the next line as JSON; NULL with the error set.  It reads no further than the
 * line, because the file may have no end.
 */
static json_t *part_read_next(struct reader *r, int *ret)
{
	json_error_t why;
	json_t *out;
	int c;

	r->line++;
	do {
		c = fgetc(r->f);
	} while (c == '\n');
	if (c == EOF) {
		*ret = ferror(r->f)
			       ? part_read_bad(r, "%s", strerror(errno))
			       : part_read_bad(r, "expected another line: the part was cut off");
		return NULL;
	}
	ungetc(c, r->f);
	out = json_loadf(r->f, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &why);
	*ret = json_is_object(out) ? 0 : part_read_bad(r, "expected a JSON object: %s", why.text);
	if (*ret) {
		json_decref(out);
		return NULL;
	}
	return out;
}

/* --- sweeps ---------------------------------------------------------------------- */

static int unpack_settings(struct settings *s, json_t *object)
{
	const char *name;
	json_t *value;
	int ret = json_is_object(object) ? 0 : -EINVAL;

	json_object_foreach (object, name, value) {
		if (!ret)
			ret = json_is_string(value)
				      ? settings_set(s, name, json_string_value(value))
				      : -EINVAL;
	}
	return ret;
}

static int unpack_points(struct sweep *s, json_t *array)
{
	json_t *point;
	size_t i;
	int ret = json_is_array(array) ? 0 : -EINVAL;

	json_array_foreach (array, i, point) {
		const char *label = json_string_value(json_object_get(point, "label"));
		json_t *x = json_object_get(point, "x");

		if (!ret)
			ret = label ? sweep_add_point(s, label,
						      json_is_number(x) ? json_number_value(x)
									: NAN,
						      NULL, NULL)
				    : -EINVAL;
		if (!ret)
			ret = unpack_settings(&s->points[i].settings,
					      json_object_get(point, "settings"));
	}
	return ret;
}

static int unpack_series(struct sweep *s, json_t *array)
{
	json_t *one;
	size_t i;
	int ret = json_is_array(array) ? 0 : -EINVAL;

	json_array_foreach (array, i, one) {
		const char *label = json_string_value(json_object_get(one, "label"));
		const char *policy = json_string_value(json_object_get(one, "policy"));

		if (!ret)
			ret = label && policy ? sweep_add_series(s, label, policy, NULL, NULL)
					      : -EINVAL;
		if (!ret)
			ret = unpack_settings(&s->series[i].settings,
					      json_object_get(one, "settings"));
	}
	return ret;
}

static int unpack_lists(struct sweep *s, json_t *object)
{
	json_t *kinds = json_object_get(object, "kinds"), *kind;
	size_t i;
	int ret = unpack_settings(&s->settings, json_object_get(object, "settings"));

	if (!ret)
		ret = unpack_points(s, json_object_get(object, "points"));
	if (!ret)
		ret = unpack_series(s, json_object_get(object, "series"));
	if (ret)
		return ret;
	json_array_foreach (kinds, i, kind) {
		if (i < SIM_KINDS_MAX && json_is_string(kind))
			snprintf(s->kinds[s->nkinds++], sizeof(s->kinds[0]), "%s",
				 json_string_value(kind));
	}
	return 0;
}

/* An id becomes a file name, so it must not lead out of the directory. */
static bool names_file(const char *id)
{
	return *id && *id != '.' && strlen(id) < 128 && !strchr(id, '/');
}

/* A part that does not tell leaves it unknown. */
static void unpack_used(struct sweep *s, json_t *array)
{
	json_t *value;
	size_t i;

	json_array_foreach (array, i, value) {
		uint64_t n = (uint64_t)json_integer_value(value);

		if (!i)
			s->used.records = n;
		else if (i <= WORKLOAD_LEFT_COUNT)
			s->used.left[i - 1] = n;
	}
}

static int unpack_sweep(struct report *r, json_t *object)
{
	const char *id, *title, *x_name, *source, *synthetic;
	int experiment, keep, rows, outcomes, batch, seeds, plot, y, log_y, facets, ret;
	json_int_t first;
	struct sweep *s;

	if (json_unpack(object,
			"{s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:i, s:I, s:i, s:i, s:b, s:b, "
			"s:s, s:s}",
			"id", &id, "title", &title, "x_name", &x_name, "experiment", &experiment,
			"keep_samples", &keep, "keep_rows", &rows, "keep_outcomes", &outcomes,
			"batch", &batch, "seeds", &seeds, "first_seed", &first, "plot", &plot,
			"measure", &y, "log_y", &log_y, "facets", &facets, "source", &source,
			"synthetic", &synthetic))
		return -EINVAL;
	if (!names_file(id) || seeds < 1 || plot < 0 || plot > PLOT_SCATTER || y < 0 ||
	    y >= M_COUNT)
		return -EINVAL;
	s = sweep_new(id, title, x_name);
	if (!s)
		return -ENOMEM;
	*r = (struct report){
		.sweep = s,
		.experiment = experiment ? experiment_find(id) : NULL,
		.plot = (enum plot)plot,
		.y = (enum measure)y,
		.log_y = log_y,
		.facets = facets,
	};
	s->keep_samples = keep;
	s->keep_rows = rows;
	s->keep_outcomes = outcomes;
	s->batch = batch;
	unpack_used(s, json_object_get(object, "used"));
	s->seeds = (uint32_t)seeds;
	s->first_seed = (uint64_t)first;
	snprintf(s->source, sizeof(s->source), "%s", source);
	snprintf(s->synthetic, sizeof(s->synthetic), "%s", synthetic);
	ret = unpack_lists(s, object);
	if (!ret && (!s->npoints || !s->nseries || sweep_units(s) > RUNS_MAX))
		ret = -EINVAL;
	return ret ? ret : sweep_results(s);
}

static int part_read_unpack_whole(struct report *r, json_t *object)
{
	json_t *parts = json_object_get(object, "parts"), *part;
	int ret = unpack_sweep(r, object);
	size_t i;

	json_array_foreach (parts, i, part) {
		struct report one = {0};

		if (ret)
			break;
		ret = unpack_sweep(&one, part);
		if (ret)
			sweep_free(one.sweep);
		else
			ret = sweep_add_part(r->sweep, one.sweep);
	}
	return ret;
}

/* --- runs ------------------------------------------------------------------------ */

static int unpack_samples(struct sweep_result *r, json_t *array)
{
	json_t *row;
	size_t i;

	r->samples =
		calloc(json_array_size(array) ? json_array_size(array) : 1, sizeof(*r->samples));
	if (!r->samples)
		return -ENOMEM;
	json_array_foreach (array, i, row) {
		struct sim_sample *x = &r->samples[i];
		json_int_t remote, migrations;

		if (json_unpack(row, "[F, F, F, F, F, F, I, I, F, F, F]", &x->time_ms,
				&x->cpu_utilisation, &x->disk_utilisation, &x->tasks_mean,
				&x->tasks_max, &x->io_imbalance, &remote, &migrations, &x->w_io,
				&x->buffer_mb, &x->slowdown))
			return -EINVAL;
		x->remote = (uint64_t)remote;
		x->migrations = (uint64_t)migrations;
		r->nsamples++;
	}
	return 0;
}

static int unpack_rows(struct sweep_result *r, json_t *array)
{
	json_t *row, *value;
	size_t i, c;

	r->rows = calloc(json_array_size(array) ? json_array_size(array) : 1, sizeof(*r->rows));
	if (!r->rows)
		return -ENOMEM;
	json_array_foreach (array, i, row) {
		if (json_array_size(row) != PROBE_COLUMNS)
			return -EINVAL;
		json_array_foreach (row, c, value) {
			if (!json_is_number(value))
				return -EINVAL;
			r->rows[i].v[c] = json_number_value(value);
		}
		r->nrows++;
	}
	return 0;
}

static int unpack_outcome(struct sweep_result *r, json_t *array)
{
	json_t *packed;
	size_t i;

	json_array_foreach (array, i, packed) {
		json_int_t group = json_integer_value(json_array_get(packed, 0));
		struct outcome_row *row;

		if (json_array_size(packed) != 2 + OUTCOME_SUMS || group < 0 ||
		    group >= OUTCOME_GROUPS)
			return -EINVAL;
		row = outcome_row(&r->outcome, (enum outcome_group)group,
				  json_number_value(json_array_get(packed, 1)));
		if (!row)
			return -ENOMEM;
		for (size_t k = 0; k < OUTCOME_SUMS; k++)
			row->sums[k] = json_number_value(json_array_get(packed, 2 + k));
	}
	return 0;
}

/* Finds the result that a line belongs to; NULL: there is none. */
static struct sweep_result *find_result(const struct parts *parts, json_int_t report,
					json_int_t part, json_int_t unit)
{
	struct sweep *s;

	if (report < 0 || (size_t)report >= parts->n || part < 0 || unit < 0)
		return NULL;
	s = parts->reports[report].sweep;
	if ((size_t)part > s->nparts)
		return NULL;
	s = sweep_part(s, (size_t)part);
	return (size_t)unit < sweep_units(s) ? &s->results[unit] : NULL;
}

static int unpack_unit(struct reader *reader, struct parts *parts, json_t *line)
{
	json_int_t sweep, unit;
	const char *input;
	json_t *values, *samples = json_object_get(line, "samples");
	json_t *rows = json_object_get(line, "rows"), *outcome = json_object_get(line, "outcome");
	struct sweep_result *r;

	if (json_unpack(line, "{s:I, s:I, s:s, s:o}", "sweep", &sweep, "unit", &unit, "input",
			&input, "values", &values))
		return part_read_bad(reader, "expected a run: sweep, unit, input, values");
	r = find_result(parts, sweep, json_integer_value(json_object_get(line, "part")), unit);
	if (!r)
		return part_read_bad(
			reader,
			"expected a run of the sweeps in line 1, found sweep %lld unit "
			"%lld",
			(long long)sweep, (long long)unit);
	if (r->done)
		return part_read_bad(reader, "this run is in another part already");
	if (json_array_size(values) != M_COUNT)
		return part_read_bad(reader, "expected %d values, found %zu", (int)M_COUNT,
				     json_array_size(values));
	for (unsigned int m = 0; m < M_COUNT; m++) {
		json_t *value = json_array_get(values, m);

		r->values[m] = json_is_number(value) ? json_number_value(value) : NAN;
	}
	snprintf(r->input, sizeof(r->input), "%s", input);
	r->done = true;
	if (samples && unpack_samples(r, samples))
		return part_read_bad(reader, "expected samples of 11 numbers");
	if (rows && unpack_rows(r, rows))
		return part_read_bad(reader, "expected executions of %d numbers", PROBE_COLUMNS);
	if (outcome && unpack_outcome(r, outcome))
		return part_read_bad(reader, "expected outcomes of %d numbers", 2 + OUTCOME_SUMS);
	return 0;
}

/* --- files ----------------------------------------------------------------------- */

/* The facts that all parts read until now have told. */
struct joined {
	json_t *sweeps; /* from the first header, without fields that only one shard knows */
	unsigned int shards;
	bool *seen;
};

/* Removes the fields that only the shard of the first run knows, and keeps them in PARTS. */
static void take_words(struct parts *parts, json_t *sweeps)
{
	json_t *sweep, *kind;
	size_t i, k;

	json_array_foreach (sweeps, i, sweep) {
		const char *source = json_string_value(json_object_get(sweep, "source"));
		const char *synthetic = json_string_value(json_object_get(sweep, "synthetic"));

		if (i < parts->n && source && *source) {
			struct sweep *s = parts->reports[i].sweep;

			snprintf(s->source, sizeof(s->source), "%s", source);
			snprintf(s->synthetic, sizeof(s->synthetic), "%s",
				 synthetic ? synthetic : "");
			unpack_used(s, json_object_get(sweep, "used"));
			s->nkinds = 0;
			json_array_foreach (json_object_get(sweep, "kinds"), k, kind) {
				if (k < SIM_KINDS_MAX && json_is_string(kind))
					snprintf(s->kinds[s->nkinds++], sizeof(s->kinds[0]), "%s",
						 json_string_value(kind));
			}
		}
		json_object_del(sweep, "source");
		json_object_del(sweep, "synthetic");
		json_object_del(sweep, "kinds");
		json_object_del(sweep, "used");
	}
}

static int first_header(struct reader *r, struct parts *parts, json_t *sweeps)
{
	size_t n = json_array_size(sweeps);

	parts->reports = calloc(n ? n : 1, sizeof(*parts->reports));
	if (!parts->reports)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int ret = part_read_unpack_whole(&parts->reports[i], json_array_get(sweeps, i));

		parts->n += parts->reports[i].sweep != NULL;
		if (ret)
			return part_read_bad(r, "expected sweeps; number %zu is damaged", i);
	}
	return 0;
}

static int part_read_header(struct reader *r, struct parts *parts, struct joined *joined,
			    json_t *line)
{
	int format, shard, shards, page, ret = 0;
	const char *version;
	json_t *sweeps;

	if (json_unpack(line, "{s:i, s:s, s:i, s:i, s:b, s:o}", "iocom_sim_part", &format,
			"version", &version, "shard", &shard, "shards", &shards, "page", &page,
			"sweeps", &sweeps) ||
	    format != 1 || shards < 1 || shards > 1000000 || shard < 1 || shard > shards)
		return part_read_bad(r, "expected the header of a part (written with --shard)");
	if (strcmp(version, IOCOM_VERSION))
		return part_read_bad(r, "the part was written by version %s; this is %s", version,
				     IOCOM_VERSION);
	if (!joined->sweeps) {
		ret = first_header(r, parts, sweeps);
		parts->page = page;
		joined->shards = (unsigned int)shards;
		joined->seen = calloc((size_t)shards + 1, sizeof(bool));
		if (!ret && !joined->seen)
			ret = -ENOMEM;
	}
	if (ret)
		return ret;
	take_words(parts, sweeps);
	if (!joined->sweeps)
		joined->sweeps = json_incref(sweeps);
	if ((unsigned int)shards != joined->shards || !json_equal(joined->sweeps, sweeps))
		return part_read_bad(r, "the part belongs to another sweep than the first file");
	if (joined->seen[shard])
		return part_read_bad(r, "shard %d is given twice", shard);
	joined->seen[shard] = true;
	return 0;
}

static int read_runs(struct reader *r, struct parts *parts)
{
	size_t n = 0;

	for (;;) {
		int ret;
		json_t *line = part_read_next(r, &ret), *end = json_object_get(line, "end");

		if (!line)
			return ret;
		if (end) {
			if (json_integer_value(end) != (json_int_t)n)
				ret = part_read_bad(r, "expected %lld runs, found %zu",
						    (long long)json_integer_value(end), n);
			json_decref(line);
			return ret;
		}
		ret = unpack_unit(r, parts, line);
		json_decref(line);
		if (ret)
			return ret;
		n++;
	}
}

static int read_part(struct parts *parts, struct joined *joined, const char *path,
		     struct iocom_err *err)
{
	struct reader r = {.f = fopen(path, "re"), .path = path, .err = err};
	json_t *line;
	int ret;

	if (!r.f)
		return iocom_err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	line = part_read_next(&r, &ret);
	if (line)
		ret = part_read_header(&r, parts, joined, line);
	json_decref(line);
	if (!ret)
		ret = read_runs(&r, parts);
	fclose(r.f);
	return ret;
}

/* Outputs list all parameters of a sweep's first run, so its settings must be valid. */
static int part_read_check_settings(const struct sweep *s, struct iocom_err *err)
{
	struct settings all;
	struct scenario scenario;
	int ret = sweep_unit_settings(s, 0, &all);

	if (ret)
		return ret;
	ret = scenario_open(&scenario, &all, err);
	settings_free(&all);
	if (!ret)
		scenario_close(&scenario);
	return ret;
}

static int part_read_complete(const struct parts *parts, const struct joined *joined,
			      struct iocom_err *err)
{
	for (unsigned int i = 1; i <= joined->shards; i++)
		if (!joined->seen[i])
			return iocom_err_set(err, -EINVAL, "shard %u of %u is missing", i,
					     joined->shards);
	for (size_t i = 0; i < parts->n; i++) {
		for (size_t k = 0; k <= parts->reports[i].sweep->nparts; k++) {
			const struct sweep *s = sweep_part(parts->reports[i].sweep, k);

			for (size_t u = 0; u < sweep_units(s); u++)
				if (!s->results[u].done)
					return iocom_err_set(err, -EINVAL,
							     "no part has run %zu of %s", u, s->id);
		}
	}
	return 0;
}

int parts_read(struct parts *parts, char *const *paths, size_t npaths, struct iocom_err *err)
{
	struct joined joined = {0};
	int ret = 0;

	*parts = (struct parts){0};
	for (size_t i = 0; i < npaths && !ret; i++)
		ret = read_part(parts, &joined, paths[i], err);
	if (!ret)
		ret = part_read_complete(parts, &joined, err);
	for (size_t i = 0; i < parts->n && !ret; i++)
		ret = part_read_check_settings(parts->reports[i].sweep, err);
	json_decref(joined.sweeps);
	free(joined.seen);
	if (ret)
		parts_free(parts);
	return ret;
}

void parts_free(struct parts *parts)
{
	for (size_t i = 0; i < parts->n; i++) {
		sweep_free(parts->reports[i].sweep);
		report_free(&parts->reports[i]);
	}
	free(parts->reports);
	*parts = (struct parts){0};
}
