/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Draws time series in panels one above the other. */
#include <math.h>
#include <stddef.h>

#include "sim/experiments/recorded_run.h"
#include "sim/report/svg.h"

#define TICS 4

struct panel {
	const char *title;
	size_t offset;
};

static const struct panel control_panels[] = {
	{"slowdown", offsetof(struct sim_sample, slowdown)},
	{"W_IO", offsetof(struct sim_sample, w_io)},
	{"buffer (MB)", offsetof(struct sim_sample, buffer_mb)},
};

static const struct panel load_panels[] = {
	{"CPU utilisation", offsetof(struct sim_sample, cpu_utilisation)},
	{"disk utilisation", offsetof(struct sim_sample, disk_utilisation)},
	{"largest over mean L_IO", offsetof(struct sim_sample, io_imbalance)},
};

static const struct panel use_panels[] = {
	{"processors busy", offsetof(struct sim_sample, cpu_utilisation)},
	{"disks busy", offsetof(struct sim_sample, disk_utilisation)},
};

static bool has_control(const struct sweep *s)
{
	for (size_t k = 0; k < s->npoints * s->nseries; k++) {
		const struct sweep_result *r = &s->results[k * s->seeds];

		for (uint32_t i = 0; i < r->nsamples; i++)
			if (r->samples[i].slowdown > 0)
				return true;
	}
	return false;
}

static double svg_time_value_of(const struct sim_sample *sample, const struct panel *panel)
{
	const void *at = (const char *)sample + panel->offset;

	return *(const double *)at;
}

/* Writes $t<point>_<series>: time in units of UNIT_MS, then the panels' values. */
static void time_data(const struct sweep *s, double unit_ms, const struct panel *panels,
		      size_t npanels, FILE *f)
{
	for (size_t p = 0; p < s->npoints; p++) {
		for (size_t k = 0; k < s->nseries; k++) {
			const struct sweep_result *r = sweep_result(s, p, k, 0);

			fprintf(f, "$t%zu_%zu << END_OF_DATA\n", p, k);
			for (uint32_t i = 0; i < r->nsamples; i++) {
				svg_value(f, r->samples[i].time_ms / unit_ms);
				for (size_t n = 0; n < npanels; n++)
					svg_value(f, svg_time_value_of(&r->samples[i], &panels[n]));
				fputc('\n', f);
			}
			if (!r->nsamples)
				fputs("NaN NaN NaN NaN\n", f);
			fputs("END_OF_DATA\n", f);
		}
	}
}

/* Finds the range of a panel; false: it has no value. */
static bool panel_range(const struct sweep *s, const struct panel *panel, double *low, double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (size_t k = 0; k < s->npoints * s->nseries; k++) {
		const struct sweep_result *r = &s->results[k * s->seeds];

		for (uint32_t i = 0; i < r->nsamples; i++) {
			double value = svg_time_value_of(&r->samples[i], panel);

			if (!isfinite(value))
				continue;
			*low = fmin(*low, value);
			*high = fmax(*high, value);
		}
	}
	return *low <= *high;
}

static void time_panel(const struct sweep *s, size_t n, FILE *f)
{
	double lines = (double)(s->npoints * s->nseries);
	size_t line = 0;

	/* Later lines are thinner and dashed: earlier ones show below them. */
	fputs("plot ", f);
	for (size_t p = 0; p < s->npoints; p++) {
		for (size_t k = 0; k < s->nseries; k++, line++) {
			char title[160];
			bool points;

			/* What a log recorded is the same at each point, on its own machines. */
			if (p && recorded_is(s->series[k].policy))
				continue;
			points = s->npoints > 1 && !recorded_is(s->series[k].policy);
			snprintf(title, sizeof(title), "%s%s%s",
				 s->nseries > 1 ? s->series[k].label : "",
				 s->nseries > 1 && points ? ", " : "",
				 points ? s->points[p].label : "");
			fprintf(f,
				"%s$t%zu_%zu using 1:%zu with lines linecolor rgb '%s' linewidth "
				"%.2f dashtype %zu title ",
				line ? ", " : "", p, k, n + 2, svg_colour((unsigned int)line),
				2.4 - 1.6 * (double)line / lines, 1 + line % 5);
			svg_quoted(f, title);
		}
	}
	fputc('\n', f);
}

void svg_time(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	const struct panel *panels = has_control(s) ? control_panels : load_panels;
	size_t n = sizeof(load_panels) / sizeof(load_panels[0]);

	time_data(s, 1000, panels, n, f);
	svg_layout(s, n, 1, 0, f);
	fprintf(f, "set lmargin 12\nset rmargin 30\n");
	for (size_t i = 0; i < n; i++) {
		struct axis a;
		double low, high;
		bool any = panel_range(s, &panels[i], &low, &high);

		axis_fit_between(&a, low, high, TICS);
		svg_y_axis(&a, panels[i].title, f);
		if (i + 1 == n)
			fputs("set xlabel 'time (s)'\n", f);
		if (any)
			time_panel(s, i, f);
		else
			svg_empty(f);
		fputs("unset key\n", f);
	}
}

static bool svg_uses_disks(const struct sweep *s)
{
	for (size_t k = 0; k < s->npoints * s->nseries; k++) {
		const struct sweep_result *r = &s->results[k * s->seeds];

		for (uint32_t i = 0; i < r->nsamples; i++)
			if (r->samples[i].disk_utilisation > 0)
				return true;
	}
	return false;
}

void svg_use(const struct report *r, FILE *f)
{
	const struct sweep *s = r->sweep;
	size_t n = svg_uses_disks(s) ? 2 : 1;

	time_data(s, 86400000, use_panels, sizeof(use_panels) / sizeof(use_panels[0]), f);
	svg_layout(s, n, 1, 0, f);
	fprintf(f, "set lmargin 12\nset rmargin 30\n");
	for (size_t i = 0; i < n; i++) {
		double low, high;
		struct axis a;

		bool any = panel_range(s, &use_panels[i], &low, &high);

		/* A log may say that more processors were busy than the machine has. */
		axis_fit_between(&a, 0, any ? fmax(high, 1) : 1, TICS);
		svg_y_axis(&a, use_panels[i].title, f);
		if (i + 1 == n)
			fputs("set xlabel 'time (days)'\n", f);
		if (any)
			time_panel(s, i, f);
		else
			svg_empty(f);
		fputs("unset key\n", f);
	}
}
