/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Golden traces; see trace.h. */
#include "tests/lib/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/clock.h"

static struct {
	char path[256];
	const struct loop *loop;
	const char *hidden;
	uint64_t since_ns;
	bool paused;
	FILE *out, *log, *stderr_before;
	char *text;
	size_t size;
} trace;

void trace_file(const char *name)
{
	const char *dir = getenv("GOLDEN_DIR");
	FILE *file;

	snprintf(trace.path, sizeof(trace.path), "%s/%s.txt", dir ? dir : "tests/golden", name);
	file = getenv("GOLDEN_UPDATE") ? fopen(trace.path, "w") : NULL;
	if (file)
		fclose(file);
}

/* Writes TEXT with DIR in place of the path that differs from run to run. */
static void trace_put(const char *text)
{
	size_t n = strlen(trace.hidden);
	const char *at;

	for (; (at = strstr(text, trace.hidden)); text = at + n)
		fprintf(trace.out, "%.*sDIR", (int)(at - text), text);
	fputs(text, trace.out);
}

static void trace_time(void)
{
	uint64_t ns = loop_boot_ns(trace.loop) - trace.since_ns;

	fprintf(trace.out, "%6llu ", (unsigned long long)(ns / CLOCK_NS_PER_MS));
}

/* Takes a log line, which was written to the replacement of standard error. */
static ssize_t trace_logged(void *cookie, const char *data, size_t n)
{
	char line[1400];

	(void)cookie;
	if (trace.paused)
		return (ssize_t)n;
	snprintf(line, sizeof(line), "log %.*s", (int)n, data);
	trace_time();
	trace_put(line);
	return (ssize_t)n;
}

void trace_begin(const struct loop *loop, const char *hidden)
{
	const cookie_io_functions_t to_trace = {.write = trace_logged};

	trace.loop = loop;
	trace.hidden = hidden;
	trace.paused = false;
	trace.since_ns = loop_boot_ns(loop);
	trace.out = open_memstream(&trace.text, &trace.size);
	trace.log = fopencookie(NULL, "w", to_trace);
	assert_non_null(trace.out);
	assert_non_null(trace.log);
	setvbuf(trace.log, NULL, _IOLBF, 2048);
	trace.stderr_before = stderr;
	stderr = trace.log;
}

void trace_line(const char *fmt, ...)
{
	char line[1400];
	va_list ap;

	if (trace.paused)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	trace_time();
	trace_put(line);
	fputc('\n', trace.out);
}

void trace_pause(bool pause)
{
	trace.paused = pause;
}

static char *trace_read(void)
{
	FILE *in = fopen(trace.path, "r"), *out;
	char *text = NULL;
	size_t size;
	int c;

	if (!in)
		return NULL;
	out = open_memstream(&text, &size);
	assert_non_null(out);
	while ((c = fgetc(in)) != EOF)
		fputc(c, out);
	fclose(in);
	fclose(out);
	return text;
}

/*
 * Returns the section's first line. A section ends at a line that begins with "==" or at the file's
 * end.
 */
static const char *trace_section(const char *all, const char *title)
{
	char head[128];
	const char *at;

	snprintf(head, sizeof(head), "== %s\n", title);
	at = all ? strstr(all, head) : NULL;
	return at ? at + strlen(head) : NULL;
}

static void trace_differs(const char *title, const char *there, const char *now)
{
	fprintf(trace.stderr_before, "%s, %s\n  there: %.*s\n  now:   %.*s\n", trace.path, title,
		(int)strcspn(there, "\n"), there, (int)strcspn(now, "\n"), now);
	fail_msg("the trace differs; GOLDEN_UPDATE=1 rewrites it");
}

static void trace_same(const char *title, const char *there)
{
	const char *now = trace.text;

	while (*now && !strncmp(there, now, strcspn(now, "\n") + 1)) {
		there += strcspn(now, "\n") + 1;
		now += strcspn(now, "\n") + 1;
	}
	if (*now || (*there && strncmp(there, "\n== ", 4) && strcmp(there, "\n")))
		trace_differs(title, there, now);
}

void trace_compare(const char *title)
{
	const char *there;
	char *all;
	FILE *file;

	fflush(trace.log);
	fflush(trace.out);
	if (getenv("GOLDEN_UPDATE")) {
		file = fopen(trace.path, "a");
		assert_non_null(file);
		fprintf(file, "== %s\n%s\n", title, trace.text);
		assert_int_equal(fclose(file), 0);
		return;
	}
	all = trace_read();
	there = trace_section(all, title);
	trace_same(title, there ? there : "(nothing: GOLDEN_UPDATE=1 writes it)");
	free(all);
}

void trace_end(void)
{
	if (!trace.out)
		return;
	stderr = trace.stderr_before;
	fclose(trace.log);
	fclose(trace.out);
	free(trace.text);
	trace.out = NULL;
	trace.text = NULL;
}
