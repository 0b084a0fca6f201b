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
	const char *name; /* of its file */
	const struct loop *loop;
	const char *hidden;
	uint64_t since_ns;
	bool paused;
	FILE *out, *log, *stderr_before;
	char *text;
	size_t size;
} trace;

/* --- golden files ----------------------------------------------------------------------- */

static void golden_path(char path[512], const char *name)
{
	const char *dir = getenv("GOLDEN_DIR");

	snprintf(path, 512, "%s/%s.txt", dir ? dir : "tests/golden", name);
}

static void golden_write(const char *path, const char *title, const char *text)
{
	FILE *out = fopen(path, title ? "a" : "w");

	assert_non_null(out);
	if (title)
		fprintf(out, "== %s\n%s\n", title, text);
	else
		fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

/* Its text; NULL: it cannot be read. */
static char *golden_read(const char *path)
{
	FILE *in = fopen(path, "r"), *out;
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

/* The section in ALL, which is cut at its end: a blank line before the next one, or the last. */
static char *golden_section(char *all, const char *title)
{
	char head[128], *at, *end;

	if (!all || !title)
		return all;
	snprintf(head, sizeof(head), "== %s\n", title);
	at = strstr(all, head);
	if (!at)
		return NULL;
	at += strlen(head);
	end = strstr(at, "\n== ");
	if (!end && *at && at[strlen(at) - 1] == '\n')
		end = at + strlen(at) - 1;
	if (end)
		*end = 0;
	return at;
}

static size_t line_length(const char *text)
{
	size_t n = strcspn(text, "\n");

	return n + (text[n] == '\n');
}

static int golden_line(const char *all, const char *at)
{
	int line = 1;

	while (all < at)
		line += *all++ == '\n';
	return line;
}

static void golden_compare(const char *path, const char *all, const char *there, const char *now)
{
	size_t n = line_length(now);

	while (n && !strncmp(there, now, n)) {
		there += n;
		now += n;
		n = line_length(now);
	}
	if (*now || *there)
		fail_msg("%s:%d: expected: %.*s\n  it is: %.*s\n  GOLDEN_UPDATE=1 rewrites it",
			 path, golden_line(all, there), (int)strcspn(there, "\n"), there,
			 (int)strcspn(now, "\n"), now);
}

void trace_golden(const char *name, const char *title, const char *text)
{
	char path[512], *all;
	const char *there;

	golden_path(path, name);
	if (getenv("GOLDEN_UPDATE"))
		golden_write(path, title, text);
	all = golden_read(path);
	there = golden_section(all, title);
	if (there)
		golden_compare(path, all, there, text);
	else
		fail_msg("%s: there is no %s; GOLDEN_UPDATE=1 writes it", path,
			 title ? title : "such file");
	free(all);
}

void trace_hide(FILE *out, const char *text, const char *hidden)
{
	size_t n = strlen(hidden);
	const char *at;

	for (; (at = strstr(text, hidden)); text = at + n)
		fprintf(out, "%.*sDIR", (int)(at - text), text);
	fputs(text, out);
}

/* --- traces ----------------------------------------------------------------------------- */

void trace_file(const char *name)
{
	char path[512];
	FILE *file;

	trace.name = name;
	golden_path(path, name);
	file = getenv("GOLDEN_UPDATE") ? fopen(path, "w") : NULL;
	if (file)
		fclose(file);
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
	trace_hide(trace.out, line, trace.hidden);
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
	trace_hide(trace.out, line, trace.hidden);
	fputc('\n', trace.out);
}

void trace_pause(bool pause)
{
	trace.paused = pause;
}

/* What the test framework says goes to the real standard error. */
void trace_compare(const char *title)
{
	fflush(trace.log);
	fflush(trace.out);
	stderr = trace.stderr_before;
	trace_golden(trace.name, title, trace.text);
	stderr = trace.log;
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
