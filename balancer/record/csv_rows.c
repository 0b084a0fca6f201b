/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Turns documents into CSV; see csv_rows.h. */
#include "balancer/record/csv_rows.h"

#include <csv.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "iocom/array.h"

#define NS_PER_S    1000000000
#define LINE_LEAST  1024
#define NUMBER_ROOM 64

/* A column's value is a member, or "part.member". */
struct column {
	const char *name, *path;
};

#define SAME(name)                                                                                 \
	{                                                                                          \
		name, name                                                                         \
	}
#define LOAD_COUNTS                                                                                \
	SAME("explicit_read_bytes"), SAME("explicit_write_bytes"), SAME("explicit_ops"),           \
		SAME("implicit_bytes"), SAME("implicit_ops"), SAME("major_faults"),                \
		SAME("minor_faults"), SAME("sent_bytes"), SAME("received_bytes"),                  \
		SAME("sent_messages"), SAME("received_messages"), SAME("local_bytes"),             \
		SAME("cpu_ms"), SAME("dirtied_bytes"), SAME("cancelled_bytes"),                    \
		SAME("netfs_read_bytes"), SAME("netfs_write_bytes"), SAME("run_wait_ms"),          \
		SAME("io_wait_ms")
#define RATE(prefix, name)                                                                         \
	{                                                                                          \
		name "_per_s", prefix name "_per_s"                                                \
	}
#define LOAD_RATES(prefix)                                                                         \
	RATE(prefix, "explicit_read_bytes"), RATE(prefix, "explicit_write_bytes"),                 \
		RATE(prefix, "explicit_ops"), RATE(prefix, "implicit_bytes"),                      \
		RATE(prefix, "implicit_ops"), RATE(prefix, "major_faults"),                        \
		RATE(prefix, "minor_faults"), RATE(prefix, "sent_bytes"),                          \
		RATE(prefix, "received_bytes"), RATE(prefix, "sent_messages"),                     \
		RATE(prefix, "received_messages"), RATE(prefix, "local_bytes"),                    \
		RATE(prefix, "cpu_ms"), RATE(prefix, "dirtied_bytes"),                             \
		RATE(prefix, "cancelled_bytes"), RATE(prefix, "netfs_read_bytes"),                 \
		RATE(prefix, "netfs_write_bytes"), RATE(prefix, "run_wait_ms"),                    \
		RATE(prefix, "io_wait_ms")

static const struct column node_columns[] = {
	{"tasks", "totals.tasks"},
	{"cores", "totals.cores"},
	{"run_queue", "totals.run_queue"},
	LOAD_RATES("totals."),
	{"metadata_bytes", "unattributed.metadata_bytes"},
	{"writeback_bytes", "unattributed.writeback_bytes"},
	{"swap_out_bytes", "unattributed.swap_out_bytes"},
	{"other_bytes", "unattributed.other_bytes"},
	{"drops", "drops"}, /* an object: take the sum of its numbers */
	{"events_per_s", "cost.events_per_s"},
	{"ns_per_event", "cost.ns_per_event"},
	{"program_core_share", "cost.program_core_share"},
	{"sweep_ms", "cost.sweep_ms"},
	{"agent_cpu_ms", "cost.user_cpu_ms"},
	{"inferred_bytes", "cost.classifier.inferred_bytes"},
	{"confidence", "cost.classifier.confidence"},
	{NULL, NULL}};
static const struct column disk_columns[] = {{"disk", "name"},
					     SAME("requests"),
					     SAME("read_bytes"),
					     SAME("write_bytes"),
					     SAME("service_sum_ns"),
					     SAME("service_sum2_ms2"),
					     SAME("task_bytes"),
					     SAME("stacked_bytes"),
					     SAME("unattributed_bytes"),
					     SAME("foreign_bytes"),
					     SAME("kernel_bytes"),
					     SAME("residual_bytes"),
					     SAME("requests_per_s"),
					     SAME("read_bytes_per_s"),
					     SAME("write_bytes_per_s"),
					     SAME("utilisation"),
					     SAME("service_ms"),
					     SAME("response_sum_ns"),
					     {NULL, NULL}};
static const struct column job_columns[] = {SAME("job"),
					    SAME("cgroup_id"),
					    SAME("tasks"),
					    SAME("rss_bytes"),
					    LOAD_COUNTS,
					    LOAD_RATES(""),
					    SAME("share"),
					    SAME("share_of"),
					    SAME("com_ms_per_s"),
					    SAME("disk_ms_per_s"),
					    SAME("disk_low_ms_per_s"),
					    SAME("disk_high_ms_per_s"),
					    SAME("fault_ms_per_s"),
					    SAME("disk_wait_ms_per_s"),
					    SAME("name"),
					    {NULL, NULL}};
static const struct column task_columns[] = {
	SAME("pid"),	{"command", "comm"}, SAME("uid"),  SAME("job"),
	SAME("exited"), SAME("rss_bytes"),   LOAD_COUNTS,  LOAD_RATES(""),
	SAME("share"),	SAME("share_of"),    SAME("name"), {NULL, NULL}};
static const struct column program_columns[] = {
	{"program", "name"}, SAME("runs"), SAME("run_ns"), SAME("ns_per_run"), {NULL, NULL}};
static const struct column map_columns[] = {
	{"map", "name"}, SAME("entries"), SAME("entries_max"), SAME("memory_bytes"), {NULL, NULL}};

struct csv_kind {
	const char *name;
	const char *rows; /* the document's array of rows; NULL: the document is the row */
	const struct column *columns;
};

static const struct csv_kind kinds[] = {
	{"node", NULL, node_columns},
	{"disks", "disks", disk_columns},
	{"jobs", "jobs", job_columns},
	{"tasks", "tasks", task_columns},
	{"programs", "cost.programs", program_columns},
	{"maps", "cost.maps", map_columns},
};

const struct csv_kind *csv_kind_find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

const char *csv_kind_name(const struct csv_kind *kind)
{
	return kind->name;
}

/* --- text ------------------------------------------------------------------------ */

static int csv_rows_reserve(struct csv_text *t, size_t more)
{
	return array_reserve(t->data, t->room, t->used + more, LINE_LEAST);
}

static int csv_rows_add(struct csv_text *t, const char *text)
{
	size_t n = strlen(text);

	if (csv_rows_reserve(t, n + 1))
		return -ENOMEM;
	memcpy(t->data + t->used, text, n + 1);
	t->used += n;
	return 0;
}

/* Always quoted, so that a column is text in all rows or in none. */
static int add_text(struct csv_text *t, const char *text)
{
	size_t n = strlen(text);

	if (csv_rows_reserve(t, 2 * n + 3))
		return -ENOMEM;
	t->used += csv_write(t->data + t->used, t->room - t->used, text, n);
	return 0;
}

/* The sum of the numbers in OBJECT. */
static json_int_t sum_of(const json_t *object)
{
	json_int_t sum = 0;
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)object, key, value)
		sum += json_integer_value(value);
	return sum;
}

static int add_value(struct csv_text *t, const json_t *value)
{
	char number[NUMBER_ROOM];

	if (json_is_string(value))
		return add_text(t, json_string_value(value));
	if (json_is_integer(value))
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		snprintf(number, sizeof(number), "%.15g", json_real_value(value));
	else if (json_is_object(value))
		snprintf(number, sizeof(number), "%lld", (long long)sum_of(value));
	else if (json_is_boolean(value))
		snprintf(number, sizeof(number), "%d", json_is_true(value));
	else
		number[0] = 0; /* unknown */
	return csv_rows_add(t, number);
}

/* --- rows ---------------------------------------------------------------------------- */

static const json_t *member(const json_t *object, const char *path)
{
	char part[64];
	const char *dot;

	for (; (dot = strchr(path, '.')); path = dot + 1) {
		snprintf(part, sizeof(part), "%.*s", (int)(dot - path), path);
		object = json_object_get(object, part);
	}
	return json_object_get(object, path);
}

/* "2026-11-22T07:02:59.123Z" */
static int add_time(struct csv_text *t, json_int_t time_ns)
{
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	char date[32], text[48];
	struct tm utc;

	if (!gmtime_r(&seconds, &utc))
		return csv_rows_add(t, "");
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text, sizeof(text), "%s.%03dZ", date, (int)(time_ns % NS_PER_S / 1000000));
	return csv_rows_add(t, text);
}

int csv_header(const struct csv_kind *kind, struct csv_text *out)
{
	int rc = csv_rows_add(out, "time,interval_s,node");

	for (const struct column *c = kind->columns; c->name; c++) {
		rc |= csv_rows_add(out, ",");
		rc |= csv_rows_add(out, c->name);
	}
	return (rc | csv_rows_add(out, "\n")) ? -ENOMEM : 0;
}

static int csv_rows_row(const struct csv_kind *kind, const json_t *document, const json_t *object,
			struct csv_text *out)
{
	const char *node = json_string_value(json_object_get(document, "node"));
	char seconds[NUMBER_ROOM];
	int rc = add_time(out, json_integer_value(json_object_get(document, "time_ns")));

	snprintf(seconds, sizeof(seconds), ",%.3f,",
		 (double)json_integer_value(json_object_get(document, "elapsed_ns")) / NS_PER_S);
	rc |= csv_rows_add(out, seconds);
	rc |= add_text(out, node ? node : "");
	for (const struct column *c = kind->columns; c->name; c++) {
		rc |= csv_rows_add(out, ",");
		/* The document leaves "exited" out if it is false. */
		if (!strcmp(c->name, "exited"))
			rc |= csv_rows_add(
				out, json_is_true(json_object_get(object, c->path)) ? "1" : "0");
		else
			rc |= add_value(out, member(object, c->path));
	}
	return rc | csv_rows_add(out, "\n");
}

int csv_rows(const struct csv_kind *kind, const json_t *document, struct csv_text *out)
{
	const json_t *list = kind->rows ? member(document, kind->rows) : NULL;
	int rc = 0;

	if (!kind->rows)
		return csv_rows_row(kind, document, document, out) ? -ENOMEM : 0;
	for (size_t i = 0; i < json_array_size(list); i++)
		rc |= csv_rows_row(kind, document, json_array_get(list, i), out);
	return rc ? -ENOMEM : 0;
}
