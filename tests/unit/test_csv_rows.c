/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Documents as CSV: quoting, unknown values, and that no number is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "balancer/record/csv_rows.h"
#include "user/monitor/sample_json.h"

static const char *const kinds[] = {"node", "disks", "jobs", "tasks", "programs", "maps"};

static json_t *document(void)
{
	static struct iocom_task tasks[] = {
		{.pid = 7, .uid = 1, .comm = "a,\"b\"\nc", .exited = true},
		{.pid = 8, .comm = "\xff"}};
	static const struct iocom_job_load jobs[] = {{.cgroup_id = 5, .tasks = 2}};
	static const struct iocom_disk disks[] = {{.name = "vda", .residual_bytes = -5}};
	static const struct monitor_drop drops[] = {{"ledger", "h", 3}, {"late", "h", 4}};
	static const struct monitor_program programs[] = {{"bio_queue", 10, 1000}, {"none", 0, 0}};
	static const struct monitor_map maps[] = {{"ledger", 8, 3, 4096},
						  {"threads", 0, MONITOR_ENTRIES_UNKNOWN, 0}};
	struct monitor_sample sample = {.time_ns = 1700000000123456789ull,
					.since_ns = 1600000000000000000ull,
					.elapsed_ns = 1500000000,
					.tasks = tasks,
					.ntasks = 2,
					.jobs = jobs,
					.njobs = 1,
					.disks = disks,
					.ndisks = 1,
					.drops = drops,
					.ndrops = 2,
					.programs = programs,
					.nprograms = 2,
					.maps = maps,
					.nmaps = 2,
					.live_tasks = 2};
	struct sample_json_options options = {.node = "n,1", .cores = 4};

	tasks[0].load.cpu_ns = 1234567;
	return sample_json(&sample, &options);
}

static char *table(const char *name, const json_t *doc)
{
	const struct csv_kind *kind = csv_kind_find(name);
	struct csv_text t = {0};

	assert_non_null(kind);
	assert_string_equal(csv_kind_name(kind), name);
	assert_int_equal(csv_header(kind, &t), 0);
	assert_int_equal(csv_rows(kind, doc, &t), 0);
	assert_int_equal(strlen(t.data), t.used);
	return t.data;
}

/* Counts commas outside quotes in the record at TEXT; NEXT gets the position after its line end. */
static size_t commas(const char *text, const char **next)
{
	bool quoted = false;
	size_t n = 0;

	for (; *text && (quoted || *text != '\n'); text++) {
		quoted ^= *text == '"';
		n += !quoted && *text == ',';
	}
	assert_int_equal(*text, '\n');
	*next = text + 1;
	return n;
}

static void test_shape(void **state)
{
	static const size_t rows[] = {1, 1, 1, 2, 2, 2};
	json_t *doc = document();

	(void)state;
	for (size_t k = 0; k < 6; k++) {
		char *text = table(kinds[k], doc);
		const char *at = text;
		size_t n = 0, columns = commas(at, &at);

		assert_int_equal(strncmp(text, "time,interval_s,node,", 21), 0);
		for (; *at; n++) {
			assert_int_equal(strncmp(at, "2023-11-14T22:13:20.123Z,1.500,\"n,1\",", 37),
					 0);
			assert_int_equal(commas(at, &at), columns);
		}
		assert_int_equal(n, rows[k]);
		free(text);
	}
	assert_null(csv_kind_find("nothing"));
	assert_null(csv_kind_find(""));
	json_decref(doc);
}

static void test_values(void **state)
{
	json_t *doc = document();
	char *text = table("tasks", doc);

	(void)state;
	assert_non_null(strstr(text, ",7,\"a,\"\"b\"\"\nc\",1,,1,0,"));
	assert_non_null(strstr(text, ",8,\"\xef\xbf\xbd\",0,,0,0,"));
	assert_non_null(strstr(text, ",1.235,")); /* cpu_ms */
	free(text);
	text = table("jobs", doc);
	assert_non_null(strstr(text, ",\"cgroup:5\",5,2,"));
	free(text);
	text = table("disks", doc);
	assert_non_null(strstr(text, ",-5,,,,,,0\n")); /* the rates are unknown */
	free(text);
	text = table("node", doc);
	assert_non_null(strstr(text, ",7,0,,0,")); /* drops: 3 + 4; ns_per_event is unknown */
	free(text);
	text = table("programs", doc);
	assert_non_null(strstr(text, ",\"bio_queue\",10,1000,100\n"));
	assert_non_null(strstr(text, ",\"none\",0,0,\n"));
	free(text);
	text = table("maps", doc);
	assert_non_null(strstr(text, ",\"ledger\",3,8,4096\n"));
	assert_non_null(strstr(text, ",\"threads\",,,\n"));
	free(text);
	json_decref(doc);
}

/* A document of another version, or an unrelated one: empty values, never a crash. */
static void test_foreign(void **state)
{
	json_t *doc = json_pack("{s:s,s:[{},3,n],s:i,s:s}", "time_ns", "x", "tasks", "jobs", 5,
				"cost", "none");

	(void)state;
	for (size_t k = 0; k < 6; k++) {
		char *text = table(kinds[k], doc);
		const char *at = text;
		size_t columns = commas(at, &at);

		while (*at)
			assert_int_equal(commas(at, &at), columns);
		free(text);
	}
	json_decref(doc);
}

static bool has_column(const char *header, const char *name)
{
	size_t n = strlen(name);
	const char *end = strchr(header, '\n');

	for (const char *p = header; p < end; p = p + strcspn(p, ",\n") + 1)
		if (!strncmp(p, name, n) && (p[n] == ',' || p[n] == '\n'))
			return true;
	return false;
}

/* Every field of a task, job or disk is a column. */
static void test_complete(void **state)
{
	json_t *doc = document(), *value;
	const char *key;

	(void)state;
	for (size_t k = 1; k < 4; k++) {
		char *text = table(kinds[k], doc);

		json_object_foreach (json_array_get(json_object_get(doc, kinds[k]), 0), key, value)
			if (json_is_number(value) && strcmp(key, "major") && strcmp(key, "minor") &&
			    !has_column(text, key))
				fail_msg("%s: no column %s", kinds[k], key);
		free(text);
	}
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
