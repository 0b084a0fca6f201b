/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Formats numbers and names for a terminal; see top_format.h. */
#include "balancer/top/top_format.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

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
 * Decodes one character of UTF-8, or 0 for an invalid byte.  Returns its bytes, 0 at the end of
 * the text.
 */
static size_t top_format_decode(const char *text, wchar_t *c)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	unsigned long value = n == 1 ? s[0] : s[0] & (0xff >> (n + 1));

	if (!s[0])
		return 0;
	if ((s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4) { /* not the first byte of a character */
		*c = 0;
		return 1;
	}
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80) { /* not UTF-8 */
			*c = 0;
			return 1;
		}
		value = value << 6 | (s[i] & 0x3f);
	}
	*c = (wchar_t)value;
	return n;
}

/* Invisible characters that can turn the direction of the line or hide what follows. */
static bool is_format(wchar_t c)
{
	return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c == 0x061c;
}

/*
 * The columns of the next character.  *BYTES is 0 at the end; *SHOWN is false if '?' replaces
 * it.
 */
static unsigned top_format_measure(const char *text, size_t *bytes, bool *shown)
{
	wchar_t c = 0;
	int columns;

	*bytes = top_format_decode(text, &c);
	columns = c >= 0x20 && c != 0x7f && !is_format(c) ? wcwidth(c) : -1;
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

void top_format_fit(char *out, size_t size, const char *text, unsigned columns, enum top_fit fit)
{
	unsigned width = top_format_width(text), used = 0;
	size_t bytes;
	bool shown;

	if (fit == TOP_FIT_RIGHT && width < columns)
		pad(out, size, columns - width);
	if (fit == TOP_FIT_TAIL && width > columns && columns > 1) {
		top_format_append(out, size, "<", 1);
		used = 1;
		while (width > columns - 1) {
			width -= top_format_measure(text, &bytes, &shown);
			text += bytes;
		}
	}
	for (;; text += bytes) {
		unsigned next = top_format_measure(text, &bytes, &shown);

		if (!bytes || used + next > columns)
			break;
		top_format_append(out, size, shown ? text : "?", shown ? bytes : 1);
		used += next;
	}
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
