/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Results as CSV (RFC 4180 after the comment lines, which begin with "#"): a row for each point
 * and series; for each measure its mean over the seeds and the ends of its 95 % interval.
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

void report_csv_text(FILE *f, const char *text)
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

int report_csv_facts(const struct sweep *s, FILE *f)
{
	return report_facts(s, comment, f);
}

static void csv_number(FILE *f, double value)
{
	fputc(',', f);
	if (isfinite(value))
		fprintf(f, "%.9g", value);
}

static void report_csv_header(const struct sweep *s, const bool *has, FILE *f)
{
	report_csv_text(f, s->x_name[0] ? s->x_name : "point");
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
			report_csv_text(f, column);
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
	report_csv_header(s, has, f);
	for (size_t p = 0; p < s->npoints; p++) {
		for (size_t k = 0; k < s->nseries; k++) {
			report_csv_text(f, s->points[p].label);
			fputc(',', f);
			report_csv_text(f, s->series[k].label);
			fputc(',', f);
			report_csv_text(f, s->series[k].policy);
			fprintf(f, ",%u", s->seeds);
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
	fputs("point,series,time_s,cpu_utilisation,disk_utilisation,tasks_mean,tasks_max,"
	      "io_imbalance,remote,migrations,w_io,buffer_mb,slowdown\n",
	      f);
	for (size_t p = 0; p < s->npoints; p++) {
		for (size_t k = 0; k < s->nseries; k++) {
			const struct sweep_result *result = sweep_result(s, p, k, 0);

			for (uint32_t i = 0; i < result->nsamples; i++) {
				const struct sim_sample *x = &result->samples[i];

				report_csv_text(f, s->points[p].label);
				fputc(',', f);
				report_csv_text(f, s->series[k].label);
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
			report_csv_text(f, s->points[cell / s->nseries].label);
			fputc(',', f);
			report_csv_text(f, s->series[cell % s->nseries].label);
			fprintf(f, ",%llu", (unsigned long long)sweep_unit_seed(s, u));
			for (unsigned int c = 0; c < PROBE_COLUMNS; c++)
				csv_number(f, result->rows[i].v[c]);
			fputc('\n', f);
		}
	}
	return 0;
}
