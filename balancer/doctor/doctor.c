/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The report of `iocom doctor`; see doctor.h. */
#include "balancer/doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "balancer/listing.h"
#include "user/utf8.h"

#define SAYS_MAX 1536

static const char *const state_names[] = {"skipped", "ok", "degraded", "broken"};

int doctor_init(struct doctor *d)
{
	d->checks = json_array();
	d->hooks = json_array();
	d->degraded = json_array();
	return d->checks && d->hooks && d->degraded ? 0 : -ENOMEM;
}

void doctor_deinit(struct doctor *d)
{
	json_decref(d->checks);
	json_decref(d->hooks);
	json_decref(d->degraded);
}

json_t *doctor_add(struct doctor *d, const char *check, enum doctor_state state, const char *advice,
		   const char *fmt, ...)
{
	char says[SAYS_MAX], clean[SAYS_MAX * 3];
	json_t *object;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(says, sizeof(says), fmt, ap);
	va_end(ap);
	utf8_copy(clean, sizeof(clean), says, sizeof(says));
	if (state > d->worst)
		d->worst = state;
	object = json_pack("{s:s,s:s,s:s,s:s?}", "check", check, "state", state_names[state],
			   "says", clean, "advice", advice);
	if (!json_array_append_new(d->checks, object))
		return object;
	d->failed = true;
	return NULL;
}

json_t *doctor_report(const struct doctor *d)
{
	struct timespec now;

	if (d->failed)
		return NULL;
	clock_gettime(CLOCK_REALTIME, &now);
	/* The state is "ok" also when we are not root and all that we could check is good. */
	return json_pack("{s:i,s:s,s:I,s:s,s:b,s:O,s:O,s:O}", "version", 1, "iocom", IOCOM_VERSION,
			 "time_ns", (json_int_t)now.tv_sec * 1000000000 + now.tv_nsec, "state",
			 state_names[d->worst > DOCTOR_OK ? d->worst : DOCTOR_OK], "root", d->root,
			 "checks", d->checks, "hooks", d->hooks, "degraded", d->degraded);
}

/* --- for people ------------------------------------------------------------------ */

struct page {
	FILE *out;
	unsigned width; /* 0: no limit */
	bool colour;
};

/* The columns that TEXT takes, one for each character of UTF-8. */
static size_t columns(const char *text, size_t bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* Prints TEXT's words from column AT on; further lines begin at INDENT. */
static void flow(const struct page *page, const char *text, size_t indent)
{
	size_t at = indent;

	while (*text) {
		size_t bytes = strcspn(text, " "), wide = columns(text, bytes);

		if (page->width && at > indent && at + 1 + wide > page->width) {
			fprintf(page->out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', page->out);
			at++;
		}
		/* Control characters (as in file names) must not reach the terminal. */
		for (size_t i = 0; i < bytes; i++)
			fputc((unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i],
			      page->out);
		at += wide;
		text += bytes + strspn(text + bytes, " ");
	}
	fputc('\n', page->out);
}

static void print_state(const struct page *page, const char *state, int width)
{
	const char *on = !strcmp(state, "broken")     ? "\033[31m"
			 : !strcmp(state, "degraded") ? "\033[33m"
			 : !strcmp(state, "ok")	      ? "\033[32m"
						      : "\033[2m";

	fprintf(page->out, "%s%-*s%s", page->colour ? on : "", width, state,
		page->colour ? "\033[0m" : "");
}

static void print_check(const struct page *page, const json_t *check, int name_width)
{
	const char *says = listing_string(check, "says"), *advice = listing_string(check, "advice");
	char line[4 * SAYS_MAX];

	print_state(page, listing_string(check, "state"), 10);
	fprintf(page->out, "%-*s", name_width + 2, listing_string(check, "check"));
	snprintf(line, sizeof(line), "%s%s%s", says, *advice ? "; " : "", advice);
	flow(page, line, (size_t)(10 + name_width + 2));
}

static int longest(const json_t *array, const char *key)
{
	int width = 0, n;
	const json_t *object;
	size_t i;

	json_array_foreach (array, i, object) {
		n = (int)strlen(listing_string(object, key));
		if (n > width)
			width = n;
	}
	return width;
}

static void print_hooks(const struct page *page, const json_t *hooks)
{
	int wide = longest(hooks, "hook");
	const json_t *hook, *column;
	char line[SAYS_MAX];
	size_t i, c;

	fprintf(page->out, "\n%-14s%-*s%s\n", "HOOK", wide + 2, "", "FEEDS");
	json_array_foreach (hooks, i, hook) {
		const char *error = listing_string(hook, "error"),
			   *name = listing_string(hook, "hook");
		bool iterator = !strcmp(listing_string(hook, "kind"), "iterator");
		size_t at = 0;

		line[0] = 0;
		json_array_foreach (json_object_get(hook, "columns"), c, column)
			at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%s", c ? " " : "",
					       json_string_value(column));
		if (*error)
			snprintf(line + at, sizeof(line) - at, " (%s)", error);
		fprintf(page->out, "%-14s%s%-*s", listing_string(hook, "state"),
			iterator ? "iter/" : "", wide + 2 - 5 * iterator, name);
		flow(page, line, (size_t)(14 + wide + 2));
	}
}

static void print_degraded(const struct page *page, const json_t *degraded)
{
	int wide = longest(degraded, "column");
	const json_t *d;
	char line[SAYS_MAX];
	size_t i;

	fprintf(page->out, "\n%-14s%-*s%s\n", "COLUMN", wide + 2, "", "WHY");
	json_array_foreach (degraded, i, d) {
		fprintf(page->out, "%-14s%-*s",
			json_is_true(json_object_get(d, "unknown")) ? "unknown" : "less exact",
			wide + 2, listing_string(d, "column"));
		snprintf(line, sizeof(line), "%s (no %s)", listing_string(d, "why"),
			 listing_string(d, "hook"));
		flow(page, line, (size_t)(14 + wide + 2));
	}
}

/* What follows the checks is long: the last line says again what to look at. */
static void print_verdict(const struct page *page, const json_t *checks)
{
	static const char *const states[] = {"broken", "degraded"};
	const char *gap = "";
	char line[SAYS_MAX] = "";
	const json_t *check;
	size_t i, n = 0;

	for (size_t s = 0; s < sizeof(states) / sizeof(states[0]); s++) {
		const char *before = ": ", *last = "";

		json_array_foreach (checks, i, check) {
			const char *name = listing_string(check, "check");

			if (strcmp(listing_string(check, "state"), states[s]) != 0 ||
			    !strcmp(name, last)) /* one row a peer, for example */
				continue;
			last = name;
			n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s%s%s", gap,
					      *before == ':' ? states[s] : "", before, name);
			if (n >= sizeof(line))
				return;
			before = ", ";
			gap = "";
		}
		gap = n ? "; " : "";
	}
	fputc('\n', page->out);
	flow(page, n ? line : "all is in order", 0);
}

void doctor_print(const json_t *report, FILE *out, unsigned width, bool colour)
{
	const struct page page = {out, width, colour};
	const json_t *checks = json_object_get(report, "checks"), *check;
	const json_t *hooks = json_object_get(report, "hooks");
	const json_t *degraded = json_object_get(report, "degraded");
	int name_width = longest(checks, "check");
	size_t i;

	json_array_foreach (checks, i, check)
		print_check(&page, check, name_width);
	if (json_array_size(hooks))
		print_hooks(&page, hooks);
	if (json_array_size(degraded))
		print_degraded(&page, degraded);
	print_verdict(&page, checks);
}

double doctor_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
