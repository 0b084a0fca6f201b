/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A strict reader of the Prometheus text format; see exposition.h. */
#include "tests/lib/exposition.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_CHARS 128
#define SERIES_MAX     200000

struct reader {
	char *why;
	char family[NAME_MAX_CHARS]; /* the family being read */
	bool counter;
	char **families, **series; /* the families that were read before */
	size_t nfamilies, nseries;
};

__attribute__((format(printf, 2, 3))) static int fail(struct reader *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->why, EXPOSITION_WHY, fmt, args);
	va_end(args);
	return -1;
}

static size_t name_length(const char *p, bool colons)
{
	size_t n = 0;

	while (isalpha((unsigned char)p[n]) || p[n] == '_' || (colons && p[n] == ':') ||
	       (n && isdigit((unsigned char)p[n])))
		n++;
	return n;
}

/* Returns how many bytes the UTF-8 character at P has; 0: it is not valid. */
static size_t character(const unsigned char *p)
{
	size_t n = *p < 0x80 ? 1 : *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc2 ? 2 : 0;
	unsigned long code = n > 1 ? *p & (0xff >> (n + 1)) : *p;

	if (*p > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if ((n == 3 && code < 0x800) || (n == 4 && (code < 0x10000 || code > 0x10ffff)) ||
	    (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return n;
}

/* AT points after the opening quote, and at the end after the closing one. */
static int quoted(struct reader *r, const char **at)
{
	const char *p = *at;

	while (*p != '"') {
		size_t n = character((const unsigned char *)p);

		if (!*p || *p == '\n')
			return fail(r, "a label's value does not end: %.80s", *at);
		if (!n)
			return fail(r, "a label's value is no UTF-8: %.80s", *at);
		if (*p == '\\' && !strchr("\\\"n", p[1]))
			return fail(r, "a wrong escape: %.80s", *at);
		p += *p == '\\' ? 2 : n;
	}
	*at = p + 1;
	return 0;
}

static int labels(struct reader *r, const char **at)
{
	const char *p = *at + 1;

	while (*p != '}') {
		size_t n = name_length(p, false);

		if (!n || p[n] != '=' || p[n + 1] != '"')
			return fail(r, "a wrong label: %.80s", p);
		if ((n == 3 && !strncmp(p, "job", 3)) || (n == 8 && !strncmp(p, "instance", 8)))
			return fail(r, "a label that Prometheus sets itself: %.80s", p);
		p += n + 2;
		if (quoted(r, &p))
			return -1;
		if (*p == ',' && p[1] != '}')
			p++;
		else if (*p != '}')
			return fail(r, "labels do not end: %.80s", *at);
	}
	*at = p + 1;
	return 0;
}

static int remember(struct reader *r, char ***list, size_t *n, const char *what, size_t length)
{
	char *copy = strndup(what, length);

	if (*n % 1024 == 0)
		*list = realloc(*list, (*n + 1024) * sizeof(**list));
	if (!*list || !copy || *n >= SERIES_MAX)
		abort();
	(*list)[(*n)++] = copy;
	(void)r;
	return 0;
}

static int sample(struct reader *r, const char *line)
{
	const char *p = line;
	size_t n = name_length(line, true);
	double value;
	char *end;

	if (!n || n != strlen(r->family) || strncmp(line, r->family, n))
		return fail(r, "not of the family %s: %.80s", r->family, line);
	p += n;
	if (*p == '{' && labels(r, &p))
		return -1;
	remember(r, &r->series, &r->nseries, line, (size_t)(p - line));
	if (*p++ != ' ')
		return fail(r, "no value: %.80s", line);
	value = strtod(p, &end);
	if (end == p || *end != '\n')
		return fail(r, "no number: %.80s", line);
	if (r->counter && !(value >= 0 && isfinite(value)))
		return fail(r, "a counter of %g: %.80s", value, line);
	return 0;
}

static int family(struct reader *r, const char *line)
{
	size_t n = name_length(line + 7, true);
	const char *rest = line + 7 + n, *type;
	bool total;

	if (!n || n >= NAME_MAX_CHARS || *rest != ' ' || rest[1] == '\n' || rest[1] == ' ')
		return fail(r, "no HELP: %.80s", line);
	snprintf(r->family, sizeof(r->family), "%.*s", (int)n, line + 7);
	type = strchr(rest, '\n') + 1;
	if (strncmp(type, "# TYPE ", 7) || strncmp(type + 7, r->family, n) || type[7 + n] != ' ')
		return fail(r, "no TYPE follows: %.80s", line);
	r->counter = !strncmp(type + 7 + n, " counter\n", 9);
	if (!r->counter && strncmp(type + 7 + n, " gauge\n", 7))
		return fail(r, "neither counter nor gauge: %.80s", type);
	total = n > 6 && !strcmp(r->family + n - 6, "_total");
	if (total != r->counter)
		return fail(r, "_total is for counters and all of them: %s", r->family);
	return remember(r, &r->families, &r->nfamilies, r->family, n);
}

static int read_lines(struct reader *r, const char *text)
{
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		if (!strchr(line, '\n'))
			return fail(r, "the last line does not end: %.80s", line);
		if (!strncmp(line, "# HELP ", 7)) {
			if (family(r, line))
				return -1;
			line = strchr(line, '\n') + 1; /* the TYPE line */
		} else if (sample(r, line)) {
			return -1;
		}
	}
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int unique(struct reader *r, char **list, size_t n)
{
	if (n)
		qsort(list, n, sizeof(*list), by_text);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(list[i - 1], list[i]))
			return fail(r, "twice: %s", list[i]);
	return 0;
}

static void release(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

int exposition_check(const char *text, char why[EXPOSITION_WHY])
{
	struct reader r = {.why = why};
	int rc = read_lines(&r, text), n = (int)r.nseries;

	if (!rc)
		rc = unique(&r, r.families, r.nfamilies);
	if (!rc)
		rc = unique(&r, r.series, r.nseries);
	release(r.families, r.nfamilies);
	release(r.series, r.nseries);
	return rc ? -1 : n;
}

double exposition_value(const char *text, const char *series)
{
	size_t n = strlen(series);

	for (const char *p = text; (p = strstr(p, series)); p += n)
		if ((p == text || p[-1] == '\n') && p[n] == ' ')
			return strtod(p + n, NULL);
	return NAN;
}

double exposition_sum(const char *text, const char *name)
{
	size_t n = strlen(name);
	double sum = 0;

	for (const char *p = text; (p = strstr(p, name)); p += n) {
		const char *end = strchr(p, '\n');

		if ((p != text && p[-1] != '\n') || (p[n] != '{' && p[n] != ' ') || !end)
			continue;
		while (end[-1] != ' ')
			end--;
		sum += strtod(end, NULL);
	}
	return sum;
}
