/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One task or job in full; see top_detail.h. */
#include "balancer/top/top_detail.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "balancer/top/top_format.h"

#define NAME_BYTES 96
#define LABEL	   20
#define SPARK_MAX  60

enum unit { UNIT_BYTES, UNIT_COUNT, UNIT_MS };

struct field {
	const char *key, *name;
	enum unit unit;
	enum top_ink ink;
	const char *group; /* printed before its first field */
};

static const struct field fields[] = {
	{"explicit_read_bytes", "read", UNIT_BYTES, TOP_INK_EXPLICIT, "explicit"},
	{"explicit_write_bytes", "written", UNIT_BYTES, TOP_INK_EXPLICIT, NULL},
	{"explicit_ops", "requests", UNIT_COUNT, TOP_INK_EXPLICIT, NULL},
	{"implicit_bytes", "by page faults", UNIT_BYTES, TOP_INK_IMPLICIT, "implicit"},
	{"implicit_ops", "requests", UNIT_COUNT, TOP_INK_IMPLICIT, NULL},
	{"major_faults", "major faults", UNIT_COUNT, TOP_INK_IMPLICIT, NULL},
	{"minor_faults", "minor faults", UNIT_COUNT, TOP_INK_IMPLICIT, NULL},
	{"sent_bytes", "sent", UNIT_BYTES, TOP_INK_NETWORK, "network"},
	{"received_bytes", "received", UNIT_BYTES, TOP_INK_NETWORK, NULL},
	{"local_bytes", "within machine", UNIT_BYTES, TOP_INK_NETWORK, NULL},
	{"sent_messages", "messages sent", UNIT_COUNT, TOP_INK_NETWORK, NULL},
	{"received_messages", "messages received", UNIT_COUNT, TOP_INK_NETWORK, NULL},
	{"cpu_ms", "CPU time", UNIT_MS, TOP_INK_PLAIN, "cpu"},
};

/* Fields shown elsewhere, or of no interest to a person. */
static const char *const known[] = {"pid",	 "uid",	  "cgroup_id", "tasks",
				    "rss_bytes", "share", "ppid",      "start_ns"};

struct page {
	const struct top_detail_options *options;
	const json_t *source;
	struct top_line *lines, spare;
	size_t n;
};

static struct top_line *top_detail_next_line(struct page *p)
{
	struct top_line *line = p->n < TOP_DETAIL_LINES ? &p->lines[p->n++] : &p->spare;

	line->n = 0;
	line->rank = 0;
	return line;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* "-" if the document does not have it. */
static void number_text(char out[TOP_NUMBER_MAX], const json_t *number, enum unit unit)
{
	double value = json_number_value(number);

	if (!json_is_number(number) || !(value > 0))
		snprintf(out, TOP_NUMBER_MAX, json_is_number(number) ? "0" : "-");
	else if (unit == UNIT_MS && value >= 999.5)
		snprintf(out, TOP_NUMBER_MAX, "%.2f s ", value / 1e3);
	else if (unit == UNIT_MS)
		snprintf(out, TOP_NUMBER_MAX, "%.1f ms", value);
	else if (unit == UNIT_BYTES)
		top_format_bytes(out, value);
	else
		top_format_count(out, value);
}

/* The columns are: group, name, per second, in all, exactly. */
static void field_line(struct page *p, const struct field *f, const char *name)
{
	const json_t *total = json_object_get(p->source, f->key);
	char rate[TOP_NUMBER_MAX], sum[TOP_NUMBER_MAX], key[NAME_BYTES + 8], label[NAME_BYTES] = "";
	struct top_line *line = top_detail_next_line(p);
	double value = json_number_value(total);
	const json_t *per;

	snprintf(key, sizeof(key), "%.*s_per_s", NAME_BYTES, f->key);
	per = json_object_get(p->source, key);
	top_format_fit(label, sizeof(label), name, LABEL, TOP_FIT_LEFT);
	number_text(rate, per, f->unit);
	number_text(sum, total, f->unit);
	top_line_add(line, 3, f->ink, "%-9s", f->group ? f->group : "");
	top_line_add(line, 0, TOP_INK_PLAIN, "%s", label);
	top_line_add(line, 1, TOP_INK_PLAIN, " %11s", rate);
	top_line_add(line, 2, TOP_INK_PLAIN, " %11s", sum);
	if (json_is_number(total) && value >= 1000)
		top_line_add(line, 4, TOP_INK_DIM, " %20.0f", value);
}

static void head_lines(struct page *p, const struct top_row *row)
{
	double ago = p->options->seen_ago_s;
	struct top_line *line = top_detail_next_line(p);
	char rss[TOP_NUMBER_MAX], share[TOP_NUMBER_MAX], span[TOP_NUMBER_MAX];

	if (row->is_job)
		top_line_add(line, 0, TOP_INK_NAME, "job %.200s",
			     *row->label ? row->label : "(root)");
	else
		top_line_add(line, 0, TOP_INK_NAME, "%.60s  pid %.0f", row->comm,
			     row->value[TOP_PID]);
	if (row->exited)
		top_line_add(line, 1, TOP_INK_WARM, "  has ended");
	top_format_span(span, ago);
	if (ago >= 0)
		top_line_add(line, 1, TOP_INK_WARM, "  gone, last seen %s ago", span);
	line = top_detail_next_line(p);
	top_format_bytes(rss, row->value[TOP_RSS]);
	top_format_percent(share, row->value[TOP_SHARE]);
	top_line_add(line, 0, TOP_INK_PLAIN, "share %s%% of %.10s", share, row->resource);
	top_line_add(line, 1, TOP_INK_PLAIN, "  resident %s", rss);
	if (row->is_job)
		top_line_add(line, 2, TOP_INK_PLAIN, "  %.0f live tasks", row->value[TOP_TASKS]);
	else
		top_line_add(line, 2, TOP_INK_PLAIN, "  user %.32s  job %.150s", row->user,
			     *row->label ? row->label : "-");
	if (strcmp(row->label, row->job) != 0)
		top_line_add(top_detail_next_line(p), 0, TOP_INK_DIM, "cgroup %.200s", row->job);
	if (!row->is_job && strcmp(row->command, row->comm)) {
		char command[TOP_PIECE_BYTES] = "";
		unsigned width = top_format_width(row->command);

		top_format_fit(command, sizeof(command), row->command, width, TOP_FIT_LEFT);
		top_line_add(top_detail_next_line(p), 0, TOP_INK_DIM, "%s", command);
	}
}

static void past_lines(struct page *p, const struct top_row *row)
{
	static const char *const names[TOP_SERIES] = {"cpu", "disk", "net"};
	size_t n = p->options->width > 40 ? p->options->width - 30 : 10;

	n = n < SPARK_MAX ? n : SPARK_MAX;
	for (unsigned s = 0; p->options->history && s < TOP_SERIES; s++) {
		struct top_line *line = top_detail_next_line(p);
		char text[TOP_PIECE_BYTES] = "", most[TOP_NUMBER_MAX];
		float values[SPARK_MAX], peak = 0;

		top_history_get(p->options->history, row->id, s, values, n);
		for (size_t i = 0; i < n; i++)
			peak = values[i] > peak ? values[i] : peak;
		if (s == TOP_SERIES_CPU)
			top_format_percent(most, peak);
		else
			top_format_bytes(most, peak);
		top_format_spark(text, sizeof(text), values, n, 0, p->options->utf8);
		top_line_add(line, 0, TOP_INK_NAME, "%-5s", names[s]);
		top_line_add(line, 0, TOP_INK_SPARK, "%s", text);
		if (!(peak > 0))
			continue;
		top_line_add(line, 1, TOP_INK_DIM, "  peak %s%s", most,
			     s == TOP_SERIES_CPU ? "%" : "/s");
	}
}

static bool top_detail_is_known(const char *key)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcmp(fields[i].key, key))
			return true;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i], key))
			return true;
	return false;
}

/* "service_ms" -> "service ms" */
static void plain_name(char out[NAME_BYTES], const char *key)
{
	snprintf(out, NAME_BYTES, "%s", key);
	for (char *c = out; *c; c++)
		*c = *c == '_' ? ' ' : *c;
}

/* Prints an object of the document on one line: "name value  name value". */
static void nested_line(struct page *p, const char *key, json_t *value)
{
	struct top_line *line = top_detail_next_line(p);
	char name[NAME_BYTES], number[TOP_NUMBER_MAX];
	const char *member;
	json_t *of;

	plain_name(name, key);
	top_line_add(line, 0, TOP_INK_NAME, "%s ", name);
	json_object_foreach (value, member, of) {
		double n = json_number_value(of);

		plain_name(name, member);
		if (json_is_real(of) && fabs(n) < 10)
			snprintf(number, sizeof(number), "%.3g", n);
		else
			top_format_count(number, n);
		if (json_is_string(of))
			top_line_add(line, 1, TOP_INK_PLAIN, " %s %.60s ", name,
				     json_string_value(of));
		else if (json_is_number(of))
			top_line_add(line, 1, TOP_INK_PLAIN, " %s %s ", name, number);
	}
}

/* The remote addresses of a job's traffic: rates, then sums. */
static void remote_lines(struct page *p, const json_t *remotes)
{
	static const char *const keys[] = {"sent_bytes_per_s", "received_bytes_per_s", "sent_bytes",
					   "received_bytes"};
	static const char *const titles[] = {"sent/s", "received/s", "sent", "received"};
	struct top_line *line;
	const json_t *remote;
	size_t i;

	json_array_foreach (remotes, i, remote) {
		char address[NAME_BYTES] = "", number[TOP_NUMBER_MAX];

		if (!i) {
			line = top_detail_next_line(p);
			top_line_add(line, 0, TOP_INK_TITLE, "%-29s", "remote address");
			for (unsigned k = 0; k < 4; k++)
				top_line_add(line, (unsigned char)(1 + k), TOP_INK_TITLE, " %11s",
					     titles[k]);
		}
		line = top_detail_next_line(p);
		top_format_fit(address, sizeof(address), top_string(remote, "address"), 29,
			       TOP_FIT_LEFT);
		top_line_add(line, 0, TOP_INK_NETWORK, "%s", address);
		for (unsigned k = 0; k < 4; k++) {
			number_text(number, json_object_get(remote, keys[k]), UNIT_BYTES);
			top_line_add(line, (unsigned char)(1 + k), TOP_INK_PLAIN, " %11s", number);
		}
	}
}

static void nested_lines(struct page *p)
{
	json_t *source = (json_t *)(uintptr_t)p->source, *value, *element;
	const char *key;
	size_t i;

	json_object_foreach (source, key, value) {
		if (json_is_object(value))
			nested_line(p, key, value);
		if (!strcmp(key, "remotes"))
			remote_lines(p, value);
		else
			json_array_foreach (value, i, element)
				if (json_is_object(element))
					nested_line(p, key, element);
	}
}

static enum unit top_detail_unit_of(const char *key)
{
	return ends_with(key, "_bytes") ? UNIT_BYTES : ends_with(key, "_ms") ? UNIT_MS : UNIT_COUNT;
}

/* Numbers of the document that the table above lacks; some have a rate and no sum. */
static void other_lines(struct page *p)
{
	json_t *source = (json_t *)(uintptr_t)p->source, *value;
	const char *key;
	bool first = true;

	json_object_foreach (source, key, value) {
		char base[NAME_BYTES], name[NAME_BYTES];
		struct field f = {.key = base, .unit = UNIT_COUNT};

		snprintf(base, sizeof(base), "%s", key);
		if (ends_with(base, "_per_s")) {
			base[strlen(base) - strlen("_per_s")] = 0;
			if (json_object_get(p->source, base))
				continue; /* printed together with its sum */
		}
		if (!json_is_number(value) || top_detail_is_known(base))
			continue;
		f.unit = top_detail_unit_of(base);
		f.group = first ? "more" : NULL;
		first = false;
		plain_name(name, base);
		field_line(p, &f, name);
	}
}

size_t top_detail(const struct top_row *row, const struct top_detail_options *options,
		  struct top_line *lines)
{
	struct page p = {.options = options, .source = row->source, .lines = lines};
	struct top_line *titles;

	head_lines(&p, row);
	past_lines(&p, row);
	titles = top_detail_next_line(&p);
	top_line_add(titles, 3, TOP_INK_TITLE, "%-9s", "");
	top_line_add(titles, 0, TOP_INK_TITLE, "%-*s", LABEL, "");
	top_line_add(titles, 1, TOP_INK_TITLE, " %11s", "a second");
	top_line_add(titles, 2, TOP_INK_TITLE, " %11s", "in all");
	top_line_add(titles, 4, TOP_INK_TITLE, " %20s", "exactly");
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		field_line(&p, &fields[i], fields[i].name);
	other_lines(&p);
	nested_lines(&p);
	for (size_t i = 0; i < p.n; i++)
		top_line_fit(&lines[i], options->width);
	return p.n;
}
