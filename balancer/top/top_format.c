/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Formats numbers and names for a terminal; see top_format.h. */
#include "balancer/top/top_format.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "user/utf8.h"

#define UNITS "KMGTPE"

/* VALUE in units of 1000 with three digits, or four if they fit in five characters. */
static void scaled(char out[TOP_NUMBER_MAX], double value)
{
	size_t unit = 0;

	value /= 1000;
	while (value >= 999.5 && unit + 1 < sizeof(UNITS) - 1) {
		value /= 1000;
		unit++;
	}
	snprintf(out, TOP_NUMBER_MAX, "%.*f%c",
		 value < 9.995	 ? 2
		 : value < 99.95 ? 1
				 : 0,
		 value, UNITS[unit]);
}

void top_format_bytes(char out[TOP_NUMBER_MAX], double value)
{
	if (!(value > 0))
		snprintf(out, TOP_NUMBER_MAX, "-");
	else if (value < 999.5)
		snprintf(out, TOP_NUMBER_MAX, "%.0f", value < 1 ? 1 : value);
	else
		scaled(out, value);
}

void top_format_count(char out[TOP_NUMBER_MAX], double value)
{
	if (!(value > 0))
		snprintf(out, TOP_NUMBER_MAX, "-");
	else if (value < 9.95)
		snprintf(out, TOP_NUMBER_MAX, "%.1f", value < 0.1 ? 0.1 : value);
	else if (value < 999.5)
		snprintf(out, TOP_NUMBER_MAX, "%.0f", value);
	else
		scaled(out, value);
}

void top_format_percent(char out[TOP_NUMBER_MAX], double value)
{
	double percent = value * 100;

	if (!(percent >= 0.05))
		snprintf(out, TOP_NUMBER_MAX, "-");
	else if (percent < 99.95)
		snprintf(out, TOP_NUMBER_MAX, "%.1f", percent);
	else if (percent < 99999.5)
		snprintf(out, TOP_NUMBER_MAX, "%.0f", percent);
	else
		snprintf(out, TOP_NUMBER_MAX, "99999");
}

void top_format_span(char out[TOP_NUMBER_MAX], double seconds)
{
	unsigned long s = seconds > 0 ? (unsigned long)(seconds + 0.5) : 0;

	if (s < 60)
		snprintf(out, TOP_NUMBER_MAX, "%lus", s);
	else if (s < 3600)
		snprintf(out, TOP_NUMBER_MAX, "%lum%02lus", s / 60, s % 60);
	else if (s < 86400)
		snprintf(out, TOP_NUMBER_MAX, "%luh%02lum", s / 3600, s / 60 % 60);
	else
		snprintf(out, TOP_NUMBER_MAX, "%lud%02luh", s / 86400 % 100000, s / 3600 % 24);
}

/*
 * The columns of the next character.  *BYTES is 0 at the end; *SHOWN is false if '?' replaces
 * it.
 */
static unsigned top_format_measure(const char *text, size_t *bytes, bool *shown)
{
	uint32_t c;
	int columns;

	*bytes = utf8_next(text, &c);
	columns = utf8_printable(c) ? wcwidth((wchar_t)c) : -1;
	*shown = columns >= 0;
	return *shown ? (unsigned)columns : 1;
}

unsigned top_format_width(const char *text)
{
	unsigned width = 0;
	size_t bytes;
	bool shown;

	for (;; text += bytes) {
		unsigned columns = top_format_measure(text, &bytes, &shown);

		if (!bytes)
			return width;
		width += columns;
	}
}

static void top_format_append(char *out, size_t size, const char *bytes, size_t n)
{
	size_t have = strlen(out);

	if (have + n < size) {
		memcpy(out + have, bytes, n);
		out[have + n] = 0;
	}
}

static void pad(char *out, size_t size, unsigned columns)
{
	while (columns--)
		top_format_append(out, size, " ", 1);
}

/* Appends as much of TEXT as fits in COLUMNS.  Returns how many it took. */
static unsigned top_format_head(char *out, size_t size, const char *text, unsigned columns)
{
	unsigned used = 0;
	size_t bytes;
	bool shown;

	for (;; text += bytes) {
		unsigned next = top_format_measure(text, &bytes, &shown);

		if (!bytes || used + next > columns)
			return used;
		top_format_append(out, size, shown ? text : "?", shown ? bytes : 1);
		used += next;
	}
}

/* Returns the end of TEXT that takes at most COLUMNS. */
static const char *top_format_tail(const char *text, unsigned columns)
{
	unsigned width = top_format_width(text);
	size_t bytes;
	bool shown;

	for (; width > columns; text += bytes)
		width -= top_format_measure(text, &bytes, &shown);
	return text;
}

void top_format_fit(char *out, size_t size, const char *text, unsigned columns, enum top_fit fit)
{
	unsigned width = top_format_width(text), used = 0;

	if (fit == TOP_FIT_RIGHT && width < columns)
		pad(out, size, columns - width);
	if (fit == TOP_FIT_MIDDLE && width > columns && columns > 1) {
		/* a third of it is the head; the tail tells more: numbers, the end of a path */
		used = top_format_head(out, size, text, (columns - 1) / 3);
		top_format_append(out, size, "~", 1);
		text = top_format_tail(text, columns - ++used);
	}
	used += top_format_head(out, size, text, columns - used);
	if (used < columns && (fit != TOP_FIT_RIGHT || width > columns))
		pad(out, size, columns - used);
}

void top_format_spark(char *out, size_t size, const float *values, size_t n, double most, bool utf8)
{
	/* A blank for nothing, then blocks of one to eight eighths. */
	static const char *const blocks[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
					     "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const plain[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};

	if (!(most > 0)) {
		most = 0;
		for (size_t i = 0; i < n; i++)
			most = values[i] > most ? values[i] : most;
	}
	for (size_t i = 0; i < n; i++) {
		double part = most > 0 ? values[i] / most : 0;
		unsigned level = part >= 1 ? 8 : part > 0 ? 1 + (unsigned)(part * 8) : 0;
		const char *mark = (utf8 ? blocks : plain)[level > 8 ? 8 : level];

		top_format_append(out, size, mark, strlen(mark));
	}
}
