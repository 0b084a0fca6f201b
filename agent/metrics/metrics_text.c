/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The Prometheus text format; see metrics_text.h. */
#include "agent/metrics/metrics_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"
#include "user/utf8.h"

#define ROOM_FIRST (64u * 1024)

void metrics_text_free(struct metrics_text *t)
{
	free(t->data);
	*t = (struct metrics_text){0};
}

static bool metrics_text_reserve(struct metrics_text *t, size_t more)
{
	if (!t->failed && array_reserve(t->data, t->room, t->used + more, ROOM_FIRST))
		t->failed = true;
	return !t->failed;
}

__attribute__((format(printf, 2, 3))) static void metrics_text_add(struct metrics_text *t,
								   const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (n < 0 || !metrics_text_reserve(t, (size_t)n + 1))
		return;
	va_start(args, fmt);
	vsnprintf(t->data + t->used, t->room - t->used, fmt, args);
	va_end(args);
	t->used += (size_t)n;
}

void metrics_family(struct metrics_text *t, const char *name, const char *type, const char *help)
{
	metrics_text_add(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_label(struct metrics_labels *labels, const char *name, const char *value)
{
	char clean[METRICS_LABEL_MAX];
	char *out = labels->text + labels->used;
	size_t room = sizeof(labels->text) - labels->used;
	/* Write a whole label or none: half a set would be another series. */
	size_t worst = strlen(name) + 2 * sizeof(clean) + 5;

	if (room < worst)
		return;
	utf8_copy(clean, sizeof(clean), value, strlen(value));
	out += sprintf(out, "%s%s=\"", labels->used ? "," : "", name);
	for (const char *p = clean; *p; p++) {
		if (*p == '\\' || *p == '"' || *p == '\n')
			*out++ = '\\';
		*out++ = *p == '\n' ? 'n' : *p;
	}
	*out++ = '"';
	*out = 0;
	labels->used = (size_t)(out - labels->text);
}

void metrics_integer(struct metrics_text *t, const char *name, const struct metrics_labels *labels,
		     uint64_t value)
{
	metrics_text_add(t, "%s{%s} %llu\n", name, labels->text, (unsigned long long)value);
}

void metrics_seconds(struct metrics_text *t, const char *name, const struct metrics_labels *labels,
		     uint64_t ns)
{
	metrics_text_add(t, "%s{%s} %llu.%09llu\n", name, labels->text,
			 (unsigned long long)(ns / 1000000000),
			 (unsigned long long)(ns % 1000000000));
}

void metrics_real(struct metrics_text *t, const char *name, const struct metrics_labels *labels,
		  double value)
{
	if (isnan(value))
		metrics_text_add(t, "%s{%s} NaN\n", name, labels->text);
	else if (isinf(value))
		metrics_text_add(t, "%s{%s} %sInf\n", name, labels->text, value < 0 ? "-" : "+");
	else
		metrics_text_add(t, "%s{%s} %.15g\n", name, labels->text, value);
}
