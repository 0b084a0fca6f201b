/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Results as CSV (RFC 4180 after the comment lines, which begin with "#"): a row for each point
 * and series; for each measure its mean over the seeds and the ends of its 95 % interval.  A point
 * of several sweeps has a column for each swept setting.
 */
#include <math.h>
#include <string.h>

#include "sim/report/report.h"

static void comment(void *arg, const char *name, const char *value)
{
	fprintf(arg, "# %s: ", name);
	for (; *value; value++)
		fputc(*value == '\n' || *value == '\r' ? ' ' : *value, arg);
	fputc('\n', arg);
}

static void quoted(FILE *f, const char *text)
{
	if (!strpbrk(text, ",\"\n")) {
		fputs(text, f);
		return;
	}
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', f);
		fputc(*text, f);
	}
	fputc('"', f);
}

static void csv_number(FILE *f, double value)
{
	fputc(',', f);
	if (isfinite(value))
		fprintf(f, "%.9g", value);
}

/* Returns the settings of the points if several were swept, else NULL. */
static const struct settings *swept(const struct report *r)
{
	const struct sweep *s = r->sweep;

	return !r->experiment && s->npoints && s->points[0].settings.n > 1 ? &s->points[0].settings
									    : NULL;
}

/* Writes the names of the columns that say which point it is; POINT: its values instead. */
static void point_columns(const struct report *r, const struct sweep_point *point, FILE *f)
{
	const struct settings *names = swept(r);

	if (!names) {
		quoted(f, point ? point->label : r->sweep->x_name[0] ? r->sweep->x_name : "point");
		return;
	}
	for (size_t i = 0; i < names->n; i++) {
		const char *value = point ? settings_get(&point->settings, names->v[i].name)
					  : names->v[i].name;

		if (i)
			fputc(',', f);
		quoted(f, value ? value : "");
	}
}

static void report_csv_header(const struct report *r, const bool *has, FILE *f)
{
	const struct sweep *s = r->sweep;

	point_columns(r, NULL, f);
	fputs(",series,policy,seeds", f);
	for (unsigned int m = 0; m < M_COUNT; m++) {
		char name[64];

		if (!has[m])
			continue;
		snprintf(name, sizeof(name), "%s", measure_name(m));
		if (m >= M_KIND && m - M_KIND < s->nkinds)
			snprintf(name, sizeof(name), "slowdown_of_%s", s->kinds[m - M_KIND]);
		for (int part = 0; part < 3; part++) {
			char column[80];

			snprintf(column, sizeof(column), "%s%s", name,
				 part == 0   ? ""
				 : part == 1 ? "_low"
					     : "_high");
			fputc(',', f);
			quoted(f, column);
		}
	}
	fputs("\n", f);
}

int report_csv(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	bool has[M_COUNT];
	int ret = report_facts(s, comment, f);

	if (ret)
		return ret;
	for (unsigned int m = 0; m < M_COUNT; m++)
		has[m] = sweep_has(s, m);
	report_csv_header(r, has, f);
	for (size_t p = 0; p < s->npoints; p++) {
		for (size_t k = 0; k < s->nseries; k++) {
			point_columns(r, &s->points[p], f);
			fputc(',', f);
			quoted(f, s->series[k].label);
			fputc(',', f);
			quoted(f, s->series[k].policy);
			fprintf(f, ",%u", sweep_done(s, p, k));
			for (unsigned int m = 0; m < M_COUNT; m++) {
				struct interval i;

				if (!has[m])
					continue;
				i = sweep_mean(s, p, k, m);
				csv_number(f, i.mean);
				csv_number(f, i.low);
				csv_number(f, i.high);
			}
			fputs("\n", f);
		}
	}
	return 0;
}

int report_samples_csv(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	int ret = report_facts(s, comment, f);

	if (ret)
		return ret;
	point_columns(r, NULL, f);
	fputs(",series,time_s,cpu_utilisation,disk_utilisation,tasks_mean,tasks_max,"
	      "io_imbalance,remote,migrations,w_io,buffer_mb,slowdown\n",
	      f);
	for (size_t p = 0; p < s->npoints; p++) {
		for (size_t k = 0; k < s->nseries; k++) {
			const struct sweep_result *result = sweep_result(s, p, k, 0);

			for (uint32_t i = 0; i < result->nsamples; i++) {
				const struct sim_sample *x = &result->samples[i];

				point_columns(r, &s->points[p], f);
				fputc(',', f);
				quoted(f, s->series[k].label);
				csv_number(f, x->time_ms / 1000);
				csv_number(f, x->cpu_utilisation);
				csv_number(f, x->disk_utilisation);
				csv_number(f, x->tasks_mean);
				csv_number(f, x->tasks_max);
				csv_number(f, x->io_imbalance);
				csv_number(f, (double)x->remote);
				csv_number(f, (double)x->migrations);
				csv_number(f, x->w_io);
				csv_number(f, x->buffer_mb);
				csv_number(f, x->slowdown);
				fputs("\n", f);
			}
		}
	}
	return 0;
}

int report_rows_csv(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	int ret = report_facts(s, comment, f);

	if (ret)
		return ret;
	fputs("point,series,seed", f);
	for (unsigned int c = 0; c < PROBE_COLUMNS; c++)
		fprintf(f, ",%s", probe_column_name(c));
	fputc('\n', f);
	for (size_t u = 0; u < sweep_units(s); u++) {
		const struct sweep_result *result = &s->results[u];
		size_t cell = u / s->seeds;

		for (uint32_t i = 0; i < result->nrows; i++) {
			quoted(f, s->points[cell / s->nseries].label);
			fputc(',', f);
			quoted(f, s->series[cell % s->nseries].label);
			fprintf(f, ",%llu", (unsigned long long)sweep_unit_seed(s, u));
			for (unsigned int c = 0; c < PROBE_COLUMNS; c++)
				csv_number(f, result->rows[i].v[c]);
			fputc('\n', f);
		}
	}
	return 0;
}
