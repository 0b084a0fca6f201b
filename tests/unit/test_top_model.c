/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "balancer/top/top_format.h"
#include "balancer/top/top_model.h"
#include "balancer/top/top_table.h"

static void test_numbers(void **state)
{
	static const struct {
		double value;
		const char *bytes, *count;
	} cases[] = {
		{0, "-", "-"},
		{0.04, "1", "0.1"},
		{0.4, "1", "0.4"},
		{999, "999", "999"},
		{999.6, "1.00K", "1.00K"},
		{1000, "1.00K", "1.00K"},
		{9994, "9.99K", "9.99K"},
		{9996, "10.0K", "10.0K"},
		{99960, "100K", "100K"},
		{999600, "1.00M", "1.00M"},
		{12345678, "12.3M", "12.3M"},
		{5e12, "5.00T", "5.00T"},
		{-3, "-", "-"},
	};
	char out[TOP_NUMBER_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		top_format_bytes(out, cases[i].value);
		assert_string_equal(out, cases[i].bytes);
		top_format_count(out, cases[i].value);
		assert_string_equal(out, cases[i].count);
	}
	for (double v = 0.01; v < 1e18; v *= 1.01) { /* always fits its column */
		top_format_bytes(out, v);
		assert_true(strlen(out) <= 5);
		top_format_count(out, v);
		assert_true(strlen(out) <= 5);
		top_format_percent(out, v);
		assert_true(strlen(out) <= 5);
	}
}

static void test_spans(void **state)
{
	char out[TOP_NUMBER_MAX];

	(void)state;
	top_format_span(out, 12.2);
	assert_string_equal(out, "12s");
	top_format_span(out, 184);
	assert_string_equal(out, "3m04s");
	top_format_span(out, 3725);
	assert_string_equal(out, "1h02m");
	top_format_span(out, 356400);
	assert_string_equal(out, "4d03h");
	top_format_span(out, -1);
	assert_string_equal(out, "0s");
}

static void assert_fit(const char *text, unsigned columns, enum top_fit fit, const char *expected)
{
	char out[64] = "";

	top_format_fit(out, sizeof(out), text, columns, fit);
	assert_string_equal(out, expected);
}

static void test_fit(void **state)
{
	(void)state;
	assert_fit("abc", 5, TOP_FIT_LEFT, "abc  ");
	assert_fit("abc", 5, TOP_FIT_RIGHT, "  abc");
	assert_fit("abcdef", 4, TOP_FIT_LEFT, "abcd");
	assert_fit("/a/b/c.service", 10, TOP_FIT_MIDDLE, "/a/~ervice");
	/* names that differ at the end, or at the beginning only, do not look alike */
	assert_fit("node1-1764198897-17", 12, TOP_FIT_MIDDLE, "nod~98897-17");
	assert_fit("node1-1764198897-18", 12, TOP_FIT_MIDDLE, "nod~98897-18");
	assert_fit("other-1764198897-18", 12, TOP_FIT_MIDDLE, "oth~98897-18");
	assert_fit("abcdef", 2, TOP_FIT_MIDDLE, "~f");
	assert_fit("abcdef", 1, TOP_FIT_MIDDLE, "a");
	assert_fit("abcdef", 0, TOP_FIT_MIDDLE, "");
	assert_fit("abc", 3, TOP_FIT_MIDDLE, "abc");
	assert_fit("a\xe2\x80\xae"
		   "b",
		   3, TOP_FIT_LEFT, "a?b");		 /* a right-to-left override character */
	assert_fit("a\x80\x9b", 3, TOP_FIT_LEFT, "a??"); /* bytes that are not UTF-8 */
	assert_fit("", 2, TOP_FIT_LEFT, "  ");
	assert_fit("a\x1b[2Jb", 6, TOP_FIT_LEFT, "a?[2Jb"); /* no escape character gets through */
	assert_fit("a\nb\tc\x7f", 6, TOP_FIT_LEFT, "a?b?c?");
	assert_fit("\xc2\x9b"
		   "1m",
		   3, TOP_FIT_LEFT, "?1m"); /* the 8-bit form of ESC [ */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return;
	assert_fit("\xe6\x97\xa5\xe6\x9c\xac", 5, TOP_FIT_LEFT, "\xe6\x97\xa5\xe6\x9c\xac ");
	assert_fit("\xe6\x97\xa5\xe6\x9c\xac", 3, TOP_FIT_LEFT, "\xe6\x97\xa5 ");
	assert_fit("\xe6\x97\xa5\xe6\x9c\xac", 4, TOP_FIT_MIDDLE, "\xe6\x97\xa5\xe6\x9c\xac");
	assert_fit("x\xe6\x97\xa5\xe6\x9c\xac", 4, TOP_FIT_MIDDLE, "x~\xe6\x9c\xac");
}

static json_t *document(void)
{
	return json_pack(
		"{s:s, s:{s:i, s:f}, s:[{s:i,s:s,s:i,s:s,s:f,s:f,s:s}, {s:i,s:s,s:i,s:n,s:f,s:b},"
		" {s:i,s:s,s:i,s:s,s:f}], s:[{s:s,s:f},{s:s,s:f},{s:n,s:f}], s:[]}",
		"node", "n1", "totals", "cores", 2, "cpu_ms_per_s", 1000.0, "tasks",
		/* three tasks */
		"pid", 30, "comm", "zip", "uid", 0, "job", "/a", "share", 0.5, "cpu_ms_per_s",
		900.0, "share_of", "cpu", "pid", 10, "comm", "awk", "uid", 4000000, "job", "share",
		0.2, "exited", 1, "pid", 20, "comm", "make", "uid", 4000000, "job", "/b", "share",
		0.3,
		/* three jobs */
		"jobs", "job", "/a", "share", 0.5, "job", "/b", "share", 0.3, "job", "share", 0.2,
		"disks");
}

static void assert_pids(struct top_model *model, const struct top_model_options *options,
			const int *pids, size_t n)
{
	const struct top_row *rows;
	size_t have;

	assert_int_equal(top_model_arrange(model, options), 0);
	rows = top_model_rows(model, &have);
	assert_int_equal(have, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal((int)rows[i].value[TOP_PID], pids[i]);
}

static void test_arrange(void **state)
{
	struct top_model *model = top_model_new();
	struct top_model_options o = {.key = TOP_SHARE};
	const struct top_row *rows;
	json_t *doc = document();
	size_t n;

	(void)state;
	assert_non_null(doc);
	assert_int_equal(top_model_set(model, doc, NULL), 0);
	json_decref(doc); /* the model keeps its own reference */
	assert_pids(model, &o, (int[]){30, 20, 10}, 3);
	rows = top_model_rows(model, &n);
	assert_true(rows[0].value[TOP_CPU] == 0.9 && !rows[0].idle);
	assert_string_equal(rows[0].user, "root");
	/* no user has this uid, so the number is shown */
	assert_string_equal(rows[1].user, "4000000");
	assert_true(rows[1].idle && rows[2].exited && !rows[2].idle);
	assert_string_equal(rows[2].job, "");
	o.key = TOP_PID;
	assert_pids(model, &o, (int[]){10, 20, 30}, 3);
	o.reverse = true;
	assert_pids(model, &o, (int[]){30, 20, 10}, 3);
	o = (struct top_model_options){.key = TOP_COMMAND};
	assert_pids(model, &o, (int[]){10, 20, 30}, 3);
	o = (struct top_model_options){.key = TOP_SHARE, .filter_uid = true, .uid = 4000000};
	assert_pids(model, &o, (int[]){20, 10}, 2);
	o.jobs = true;
	assert_int_equal(top_model_arrange(model, &o), 0);
	rows = top_model_rows(model, &n);
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].job, "/b");
	top_model_free(model);
}

/*
 * What people call a job is shown, sorted by and found; its path is found, too. A user's job has
 * processes of root that look after it. A session's number becomes a name if a user has it.
 */
static void test_labels(void **state)
{
	json_t *doc = json_pack(
		"{s:[{s:i,s:i,s:s,s:s},{s:i,s:i,s:s,s:s},{s:i,s:i,s:s,s:s},{s:i,s:i,s:s,s:s}],"
		"s:[{s:s,s:s},{s:s,s:s},{s:s,s:s},{s:s,s:s},{s:s}], s:[]}",
		"tasks", "pid", 1, "uid", 77, "job", "/s/job_5", "name", "slurm:5", "pid", 2, "uid",
		0, "job", "/s/job_5", "name", "slurm:5", "pid", 3, "uid", 77, "job", "/d", "name",
		"docker:1", "pid", 4, "uid", 0, "job", "/d", "name", "docker:1", "jobs", "job",
		"/s/job_5", "name", "slurm:5", "job", "/d", "name", "docker:1", "job", "/u0",
		"name", "session:0", "job", "/u1", "name", "session:4000000", "job", "n1-1-1",
		"disks");
	static const char *const labels[] = {"docker:1", "n1-1-1", "session:4000000",
					     "session:root", "slurm:5"};
	struct top_model *model = top_model_new();
	struct top_model_options o = {.key = TOP_JOB, .jobs = true};
	const struct top_row *rows;
	size_t n;

	(void)state;
	assert_non_null(doc);
	assert_int_equal(top_model_set(model, doc, NULL), 0);
	json_decref(doc);
	assert_int_equal(top_model_arrange(model, &o), 0);
	rows = top_model_rows(model, &n);
	assert_int_equal(n, 5);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(rows[i].label, labels[i]);
	assert_string_equal(rows[4].job, "/s/job_5");
	for (size_t i = 0; i < 3; i++) {
		o.text = ((const char *const[]){"SLURM:5", "job_5", NULL})[i];
		o.filter_uid = !o.text;
		o.uid = 77;
		assert_int_equal(top_model_arrange(model, &o), 0);
		rows = top_model_rows(model, &n);
		assert_int_equal(n, 1);
		assert_string_equal(rows[0].label, "slurm:5");
	}
	o = (struct top_model_options){.key = TOP_PID, .text = "slurm"};
	assert_pids(model, &o, (int[]){1, 2}, 2);
	top_model_free(model);
}

/* Jobs that ended and did nothing do not fill the screen; a filter still finds them. */
static void test_busy_jobs(void **state)
{
	struct top_model *model = top_model_new();
	struct top_model_options o = {.key = TOP_SHARE, .jobs = true};
	json_t *doc =
		json_pack("{s:[],s:[{s:s,s:i},{s:s,s:i},{s:s,s:i,s:f}],s:[]}", "tasks", "jobs",
			  "job", "/over", "tasks", 0, "job", "/asleep", "tasks", 1, "job", "/late",
			  "tasks", 0, "explicit_write_bytes_per_s", 4096.0, "disks");
	const struct top_row *rows;
	size_t n;

	(void)state;
	assert_non_null(doc);
	assert_int_equal(top_model_set(model, doc, NULL), 0);
	json_decref(doc);
	assert_int_equal(top_model_arrange(model, &o), 0);
	top_model_rows(model, &n);
	assert_int_equal(n, 3);
	o.busy_jobs = true;
	assert_int_equal(top_model_arrange(model, &o), 0);
	rows = top_model_rows(model, &n);
	assert_int_equal(n, 2);
	assert_string_not_equal(rows[0].job, "/over");
	assert_string_not_equal(rows[1].job, "/over");
	o.text = "over";
	assert_int_equal(top_model_arrange(model, &o), 0);
	top_model_rows(model, &n);
	assert_int_equal(n, 1);
	top_model_free(model);
}

/* Finds rows that match in any of their texts; they are listed by name. */
static void test_words(void **state)
{
	struct top_model *model = top_model_new();
	struct top_model_options o = {.key = TOP_SHARE};
	json_t *doc = document();

	(void)state;
	assert_int_equal(top_model_set(model, doc, NULL), 0);
	json_decref(doc);
	o.text = "ZIP";
	assert_pids(model, &o, (int[]){30}, 1);
	o.text = "root";
	assert_pids(model, &o, (int[]){30}, 1);
	o.text = " 4000000  /B ";
	assert_pids(model, &o, (int[]){20}, 1);
	o.text = "10";
	assert_pids(model, &o, (int[]){10}, 1);
	o.text = "zip awk"; /* all the words must match, not any one */
	assert_pids(model, &o, NULL, 0);
	o.text = "";
	assert_pids(model, &o, (int[]){30, 20, 10}, 3);
	o.active = true; /* 20 is idle, 10 has ended */
	assert_pids(model, &o, (int[]){30, 10}, 2);
	o.io = true;
	assert_pids(model, &o, NULL, 0);
	top_model_free(model);
}

/* Ended tasks of one name, user and job are one row; live ones and others stay. */
static void test_fold(void **state)
{
	static const struct {
		int pid, uid, exited;
		const char *comm;
	} tasks[] = {{1, 0, 0, "true"}, {2, 0, 1, "true"}, {3, 0, 1, "true"}, {4, 0, 1, "false"},
		     {5, 7, 1, "true"}, {6, 0, 1, "true"}, {7, 0, 0, "true"}};
	json_t *doc = json_pack("{s:[],s:[],s:[]}", "tasks", "jobs", "disks");
	struct top_model_options o = {.key = TOP_CPU, .fold = true};
	struct top_model *model = top_model_new();
	const struct top_row *rows;
	size_t n;
	uint64_t id;

	(void)state;
	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++)
		json_array_append_new(json_object_get(doc, "tasks"),
				      json_pack("{s:i,s:i,s:b,s:s,s:f,s:s,s:f,s:i}", "pid",
						tasks[i].pid, "uid", tasks[i].uid, "exited",
						tasks[i].exited, "comm", tasks[i].comm, "share",
						0.1, "share_of", "cpu", "cpu_ms_per_s", 100.0,
						"explicit_read_bytes_per_s", 4096));
	assert_int_equal(top_model_set(model, doc, NULL), 0);
	json_decref(doc);
	assert_int_equal(top_model_arrange(model, &o), 0);
	rows = top_model_rows(model, &n);
	assert_int_equal(n, 5);
	assert_int_equal(rows[0].folded, 3); /* the sum is now the largest value */
	assert_string_equal(rows[0].comm, "true");
	assert_true(rows[0].value[TOP_READ] == 3 * 4096);
	assert_true(rows[0].value[TOP_CPU] > 0.29 && rows[0].value[TOP_CPU] < 0.31);
	id = rows[0].id;
	for (size_t i = 1; i < n; i++) {
		assert_int_equal(rows[i].folded, 0);
		assert_true(rows[i].id != id);
	}
	o.fold = false;
	assert_pids(model, &o, (int[]){1, 2, 3, 4, 5, 6, 7}, 7);
	top_model_free(model);
}

static void test_find(void **state)
{
	struct top_model *model = top_model_new();
	struct top_model_options o = {.key = TOP_SHARE, .text = "nothing has this"};
	json_t *doc = document();
	struct top_row row;

	(void)state;
	assert_int_equal(top_model_set(model, doc, NULL), 0);
	assert_null(top_model_previous(model));
	json_decref(doc);
	assert_int_equal(top_model_find(model, 20, &o, &row), 0);
	assert_string_equal(row.comm, "make");
	assert_int_equal(top_model_find(model, 21, &o, &row), -ENOENT);
	top_model_free(model);
}

/* The previous document counts only if counting was not interrupted. */
static void test_previous(void **state)
{
	static const struct {
		json_int_t time, since;
		bool same;
	} steps[] = {{100, 50, false},
		     {110, 50, true},
		     {5, -60, true}, /* the clock was set back */
		     {20, 15, false},
		     {30, 15, true}};
	struct top_model *model = top_model_new();

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		json_t *doc = json_pack("{s:[],s:[],s:[],s:I,s:I}", "tasks", "jobs", "disks",
					"time_ns", steps[i].time, "since_ns", steps[i].since);

		assert_int_equal(top_model_set(model, doc, NULL), 0);
		json_decref(doc);
		assert_true((top_model_previous(model) != NULL) == steps[i].same);
	}
	top_model_free(model);
}

static void test_degraded(void **state)
{
	json_t *doc = json_pack("{s:[s,{s:s,s:s},n,i]}", "degraded", "local_bytes", "column",
				"implicit", "why", "no hook", 3);

	(void)state;
	assert_true(top_key_degraded(doc, TOP_LOCAL));
	assert_true(top_key_degraded(doc, TOP_IMPLICIT));
	assert_false(top_key_degraded(doc, TOP_READ));
	json_decref(doc);
	assert_false(top_key_degraded(NULL, TOP_READ));
}

static void test_filtered_document(void **state)
{
	struct top_model_options o = {.key = TOP_PID, .filter_uid = true, .uid = 4000000};
	struct top_model *model = top_model_new();
	json_t *doc = document(), *out, *first;

	(void)state;
	assert_int_equal(top_model_set(model, doc, NULL), 0);
	out = top_model_filtered(model, &o, true);
	assert_int_equal(json_array_size(json_object_get(out, "tasks")), 2);
	first = json_array_get(json_object_get(out, "tasks"), 0);
	assert_int_equal(json_integer_value(json_object_get(first, "pid")), 10);
	assert_int_equal(json_array_size(json_object_get(out, "jobs")), 1);
	assert_string_equal(top_string(out, "node"), "n1");
	json_decref(out);
	o = (struct top_model_options){.key = TOP_SHARE};
	out = top_model_filtered(model, &o, false); /* nothing to filter: the same document */
	assert_true(json_equal(out, doc));
	json_decref(out);
	json_decref(doc);
	top_model_free(model);
}

static void test_bad_documents(void **state)
{
	static const char *const bad[] = {"{}", "[]", "{\"tasks\":[],\"jobs\":[]}",
					  "{\"tasks\":[1],\"jobs\":[],\"disks\":[]}",
					  "{\"tasks\":{},\"jobs\":[],\"disks\":[]}"};
	static const char strange[] = "{\"tasks\":[{\"pid\":\"x\",\"comm\":5,\"share\":null}],"
				      "\"jobs\":[{}],\"disks\":[{}],"
				      "\"drops\":[],\"cost\":7}";
	struct top_model_options o = {.key = TOP_COMMAND};
	struct top_model *model = top_model_new();
	struct iocom_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *doc = json_loads(bad[i], 0, NULL);

		err.text[0] = 0;
		assert_int_equal(top_model_set(model, doc, &err), -EPROTO);
		assert_true(*err.text);
		json_decref(doc);
	}
	json_t *doc = json_loads(strange, 0, NULL);

	assert_int_equal(top_model_set(model, doc, &err), 0);
	assert_int_equal(top_model_arrange(model, &o), 0);
	o.jobs = true;
	assert_int_equal(top_model_arrange(model, &o), 0);
	o.tree = true;
	assert_int_equal(top_model_arrange(model, &o), 0);
	json_decref(doc);
	top_model_free(model);
}

static void test_keys(void **state)
{
	enum top_key key;

	(void)state;
	for (unsigned i = 0; i < TOP_KEYS; i++) {
		assert_int_equal(top_key_parse(top_key_name(i), &key), 0);
		assert_int_equal(key, i);
		assert_non_null(top_table_help(i));
	}
	assert_int_equal(top_key_parse("nonsense", &key), -EINVAL);
	assert_null(top_key_name(TOP_KEYS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),	      cmocka_unit_test(test_spans),
		cmocka_unit_test(test_fit),	      cmocka_unit_test(test_arrange),
		cmocka_unit_test(test_labels),	      cmocka_unit_test(test_words),
		cmocka_unit_test(test_busy_jobs),     cmocka_unit_test(test_fold),
		cmocka_unit_test(test_find),	      cmocka_unit_test(test_previous),
		cmocka_unit_test(test_degraded),      cmocka_unit_test(test_filtered_document),
		cmocka_unit_test(test_bad_documents), cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
