/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Draws figures with gnuplot and writes all files of a figure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "sim/report/replayed.h"
#include "sim/report/svg.h"

static void head(const struct report *r, const char *path, FILE *f)
{
	unsigned int height = r->plot == PLOT_SERIES	? 640
			      : r->facets		? svg_facets_height(r)
			      : r->plot == PLOT_COMPARE ? 560
							: 420;
	fprintf(f,
		"set terminal svg size %u,%u noenhanced font 'Helvetica,13' background '#ffffff' "
		"linewidth 1.4\n"
		"set encoding utf8\nset grid ytics linecolor rgb '#d0d0d0' linewidth 0.5\n"
		"set border 3 linecolor rgb '#444444'\nset tics nomirror out\n"
		"set key outside right top vertical Left reverse samplen 2.5\nset output ",
		SVG_WIDTH, height);
	svg_quoted(f, path);
	fputc('\n', f);
}

static int run_gnuplot(const char *script, struct iocom_err *err)
{
	FILE *f = popen("gnuplot >/dev/null 2>&1", "we");
	int status;

	if (!f)
		return iocom_err_set(err, -errno, "cannot start gnuplot: %s", strerror(errno));
	fputs(script, f);
	status = pclose(f);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return iocom_err_set(err, 1,
				     "no figures: gnuplot is not installed (Debian: gnuplot-nox); "
				     "CSV and JSON are written");
	if (status)
		return iocom_err_set(err, -EIO,
				     "gnuplot failed (status %d): was it interrupted, or is no "
				     "space left?",
				     status);
	return 0;
}

static int script(const struct report *r, const char *path, FILE *f)
{
	const struct sweep *s = r->sweep;
	struct look *look = calloc(s->nseries ? s->nseries : 1, sizeof(*look));
	int ret = 0;

	if (!look)
		return -ENOMEM;
	svg_looks(r, look);
	head(r, path, f);
	if (r->plot == PLOT_LINES || r->plot == PLOT_BARS) {
		if (!r->facets)
			svg_layout(s, 1, 1, 0, f);
		ret = svg_grid(r, look, f);
	} else if (r->plot == PLOT_SCATTER) {
		svg_layout(s, 1, 1, 0, f);
		svg_scatter(r, f);
	} else if (r->plot == PLOT_SERIES) {
		svg_time(r, f);
	} else if (r->plot == PLOT_USE) {
		svg_use(r, f);
	} else {
		svg_compare(r, look, f);
	}
	fputs("unset multiplot\n", f);
	free(look);
	return ret;
}

static void svg_escaped(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", f);
		else if (*text == '<')
			fputs("&lt;", f);
		else if (*text == '>')
			fputs("&gt;", f);
		else
			/* XML allows hardly any control character. */
			fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
	}
}

static void svg_fact(void *arg, const char *name, const char *text)
{
	svg_escaped(arg, name);
	fputs(": ", arg);
	svg_escaped(arg, text);
	fputc('\n', arg);
}

/* Replaces the name that gnuplot wrote by the metadata: <desc>...</desc>. */
static int svg_describe(const struct report *r, const char *path, struct iocom_err *err)
{
	FILE *f = fopen(path, "r+e");
	char *text = NULL, *desc, *end;
	size_t size = 0;
	ssize_t n;
	int ret = 0;

	if (!f)
		return iocom_err_set(err, -errno, "gnuplot wrote no figure");
	n = getdelim(&text, &size, '\0', f);
	desc = n > 0 ? strstr(text, "<desc>") : NULL;
	end = desc ? strstr(desc, "</desc>") : NULL;
	if (end) {
		rewind(f);
		fwrite(text, 1, (size_t)(desc - text) + 6, f);
		ret = report_facts(r->sweep, svg_fact, f);
		fputs(end, f);
	}
	free(text);
	if (!end)
		ret = iocom_err_set(err, -EIO, "gnuplot's figure is incomplete (no space left?)");
	if (fclose(f) && !ret)
		ret = iocom_err_set(err, -errno, "cannot write the figure: %s", strerror(errno));
	return ret;
}

int report_svg(const struct report *r, const char *path, struct iocom_err *err)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int ret = f ? script(r, path, f) : -ENOMEM;

	if (f && fclose(f) && !ret)
		ret = -ENOMEM;
	if (ret)
		iocom_err_set(err, ret, "no memory for the figure");
	else
		ret = run_gnuplot(text, err);
	free(text);
	return ret ? ret : svg_describe(r, path, err);
}

/* --- all files of a figure ------------------------------------------------------- */

static int svg_write_one(const struct report *r, struct output *o, const char *suffix,
			 int (*writer)(const struct report *, FILE *), struct iocom_err *err)
{
	char name[256];
	FILE *f;
	int ret;

	snprintf(name, sizeof(name), "%s%s", r->sweep->id, suffix);
	f = output_file(o, name, err);
	if (!f)
		return -EIO;
	ret = writer(r, f);
	if (ret)
		iocom_err_set(err, ret, "no memory for the results");
	return output_close(o, f, ret ? NULL : err) ?: ret;
}

/* The use of the machines over time, beside another figure.  Returns like report_svg. */
static int svg_write_use(const struct report *r, struct output *o, struct iocom_err *err)
{
	struct report use = *r;
	const char *path;
	char name[256];
	int ret = svg_write_one(r, o, REPORT_SAMPLES, report_samples_csv, err);

	if (ret)
		return ret;
	use.plot = PLOT_USE;
	snprintf(name, sizeof(name), "%s%s", r->sweep->id, REPORT_USE);
	path = output_path(o, name);
	return path ? report_svg(&use, path, err) : -ENOMEM;
}

int report_write(const struct report *r, struct output *o, struct iocom_err *err)
{
	char name[256];
	const char *path;
	int ret = svg_write_one(r, o, ".csv", report_csv, err);

	if (!ret)
		ret = svg_write_one(r, o, ".json", report_json_write, err);
	if (!ret && r->sweep->keep_samples && r->plot == PLOT_SERIES)
		ret = svg_write_one(r, o, REPORT_SAMPLES, report_samples_csv, err);
	if (!ret && r->plot == PLOT_SCATTER)
		ret = svg_write_one(r, o, ".executions.csv", report_rows_csv, err);
	if (!ret && r->sweep->keep_outcomes)
		ret = svg_write_one(r, o, REPORT_GROUPS, replayed_csv, err);
	if (!ret && r->sweep->keep_samples && r->plot != PLOT_SERIES)
		ret = svg_write_use(r, o, err);
	if (ret < 0)
		return ret;
	snprintf(name, sizeof(name), "%s.svg", r->sweep->id);
	path = output_path(o, name);
	return path ? report_svg(r, path, err) : -ENOMEM;
}
