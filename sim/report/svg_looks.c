/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Looks of the figures.  The colours are those of Okabe and Ito, which people with any colour
 * vision can tell apart; marks and dashes differ as well, for print.  A policy has the same
 * colour in all figures.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/report/svg.h"

#define FIRST_MARK  4 /* gnuplot's square; the marks before it are crosses */
#define MARKS	    10
#define DASHES	    5
#define TITLE_WIDTH 92	  /* characters */
#define ON_ANOTHER  0.025 /* of the height */

static const char *const colours[SVG_COLOURS] = {"#000000", "#E69F00", "#56B4E9", "#009E73",
						 "#0072B2", "#D55E00", "#CC79A7", "#8A7500"};

static const struct look looks[] = {
	{"nlb", 0, 4, 3},	 {"cpu-re", 1, 6, 1},	    {"cm", 1, 8, 1},
	{"mem-re", 2, 8, 1},	 {"io", 3, 12, 1},	    {"io-re", 3, 12, 1},
	{"iocm-re", 4, 7, 1},	 {"iocm-re-hom", 4, 7, 1},  {"iocm-pm", 5, 5, 1},
	{"wal", 4, 7, 1},	 {"wal-fc", 5, 5, 1},	    {"com", 5, 5, 1},
	{"bs", 6, 10, 2},	 {"cpu-pm", 6, 9, 1},	    {"mem-pm", 7, 9, 2},
	{"io-pm", 7, 11, 1},	 {"wal-pm", 6, 11, 2},	    {"random", 0, 6, 4},
	{"threshold", 2, 4, 2},	 {"shortest", 3, 8, 2},	    {"zatti-binary", 6, 7, 1},
	{"zatti-real", 7, 5, 1}, {"least-delay", 5, 13, 1},
};

const char *svg_colour(unsigned int i)
{
	return colours[i % SVG_COLOURS];
}

const char *svg_light(unsigned int i, char out[SVG_COLOUR])
{
	unsigned long rgb = strtoul(svg_colour(i) + 1, NULL, 16);
	unsigned int part[3];

	for (int k = 0; k < 3; k++) {
		part[k] = (unsigned int)(rgb >> (16 - 8 * k)) & 0xff;
		part[k] = 255 - (255 - part[k]) * 5 / 8;
	}
	snprintf(out, SVG_COLOUR, "#%02x%02x%02x", part[0], part[1], part[2]);
	return out;
}

const char *svg_short_label(const struct report *r, size_t series)
{
	const char *label = r->sweep->series[series].label;
	const char *comma = r->facets ? strstr(label, ", ") : NULL;

	return comma ? comma + 2 : label;
}

/* Finds an earlier series of the same name in another facet; returns K if there is none. */
static size_t first_alike(const struct report *r, size_t k)
{
	for (size_t i = 0; r->facets && i < k; i++)
		if (!strcmp(svg_short_label(r, i), svg_short_label(r, k)))
			return i;
	return k;
}

static bool look_of_policy(const char *policy, const bool *used, struct look *out)
{
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		if (strcasecmp(looks[i].policy, policy) || used[looks[i].colour])
			continue;
		*out = looks[i];
		return true;
	}
	return false;
}

/* Whether an earlier series, or any that has the look of its policy, has this mark. */
static bool mark_used(const struct look *out, size_t n, size_t k, unsigned int mark)
{
	for (size_t i = 0; i < n; i++)
		if (out[i].mark == mark && (i < k || out[i].policy))
			return true;
	return false;
}

static struct look free_look(const bool *used, const struct look *out, size_t n, size_t k)
{
	unsigned int colour = 0, mark = FIRST_MARK;

	while (colour < SVG_COLOURS && used[colour])
		colour++;
	if (colour == SVG_COLOURS)
		colour = (unsigned int)(k % SVG_COLOURS);
	while (mark < FIRST_MARK + MARKS && mark_used(out, n, k, mark))
		mark++;
	if (mark == FIRST_MARK + MARKS)
		mark = (unsigned int)(FIRST_MARK + k % MARKS);
	return (struct look){"", colour, mark, (unsigned int)(1 + k / SVG_COLOURS)};
}

void svg_looks(const struct report *r, struct look *out)
{
	const struct sweep *s = r->sweep;
	bool used[SVG_COLOURS] = {false};

	memset(out, 0, s->nseries * sizeof(*out));
	for (size_t k = 0; k < s->nseries; k++) {
		out[k].policy = NULL;
		if (first_alike(r, k) == k && look_of_policy(s->series[k].policy, used, &out[k]))
			used[out[k].colour] = true;
	}
	for (size_t k = 0; k < s->nseries; k++) {
		if (first_alike(r, k) != k) {
			out[k] = out[first_alike(r, k)];
			continue;
		}
		if (out[k].policy)
			continue;
		out[k] = free_look(used, out, s->nseries, k);
		used[out[k].colour] = true;
	}
}

/* Whether two lines cannot be told apart at most of their points. */
static bool on_another(const struct report *r, const struct axis *y, size_t a, size_t b)
{
	size_t near = 0, all = 0;

	for (size_t p = 0; p < r->sweep->npoints; p++) {
		double u = axis_at(y, sweep_mean(r->sweep, p, a, r->y).mean);
		double v = axis_at(y, sweep_mean(r->sweep, p, b, r->y).mean);

		if (!isfinite(u) || !isfinite(v))
			continue;
		all++;
		near += fabs(u - v) < ON_ANOTHER;
	}
	return 2 * near > all;
}

void svg_tell_apart(const struct report *r, const struct axis *y, struct look *look)
{
	for (size_t k = 1; k < r->sweep->nseries; k++) {
		for (size_t i = 0; i < k; i++) {
			/* Dash 1 is solid. */
			if (on_another(r, y, i, k) && look[k].dash <= look[i].dash)
				look[k].dash = look[i].dash % DASHES + 1;
		}
	}
}

void svg_quoted(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
	}
	fputc('"', f);
}

void svg_value(FILE *f, double v)
{
	if (isfinite(v))
		fprintf(f, " %.9g", v);
	else
		fputs(" NaN", f);
}

void svg_empty(FILE *f)
{
	fputs("set label 1 'no value was measured' at graph 0.5,0.5 center\n"
	      "plot [1:2] [1:2] NaN notitle\nunset label 1\n",
	      f);
}

/* Where the title is broken: at the last blank that leaves a line of TITLE_WIDTH; 0: nowhere. */
static size_t title_break(const char *title)
{
	size_t at = TITLE_WIDTH;

	if (strlen(title) <= TITLE_WIDTH)
		return 0;
	while (at && title[at] != ' ')
		at--;
	return at;
}

static void whole_title(const struct sweep *s, char *out, size_t size)
{
	snprintf(out, size, "%s: %s", s->id, s->title);
}

unsigned int svg_title_lines(const struct sweep *s)
{
	char title[512];

	whole_title(s, title, sizeof(title));
	return title_break(title) ? 2 : 1;
}

void svg_layout(const struct sweep *s, size_t rows, size_t columns, unsigned int legend, FILE *f)
{
	char title[512];
	size_t at;

	whole_title(s, title, sizeof(title));
	at = title_break(title);
	fprintf(f, "set multiplot layout %zu,%zu title ", rows, columns);
	if (at) {
		title[at] = '\0';
		svg_quoted(f, title);
		fputs(".\"\\n\".", f);
		svg_quoted(f, title + at + 1);
	} else {
		svg_quoted(f, title);
	}
	/* Each row of a legend takes a line of the title. */
	for (unsigned int i = 0; i < legend; i++)
		fputs(".\"\\n \"", f);
	fputs(" font ',14'\n", f);
}
