/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What `iocom top` shows in a given number of columns: lines, head, table, details. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "balancer/top/top_detail.h"
#include "balancer/top/top_format.h"
#include "balancer/top/top_head.h"
#include "balancer/top/top_table.h"

static void test_line(void **state)
{
	struct top_line line = {0};
	char text[TOP_LINE_BYTES];

	(void)state;
	top_line_add(&line, 0, TOP_INK_PLAIN, "%s", "first");
	top_line_add(&line, 2, TOP_INK_PLAIN, " second");
	top_line_add(&line, 1, TOP_INK_PLAIN, " th\x1bird ");
	top_line_text(&line, text);
	assert_string_equal(text, "first second th?ird");
	top_line_fit(&line, 19); /* the blank at the end counts */
	top_line_text(&line, text);
	assert_string_equal(text, "first th?ird");
	top_line_fit(&line, 3);
	top_line_text(&line, text);
	assert_string_equal(text, "fir");
	for (unsigned i = 0; i < 2 * TOP_PIECES; i++)
		top_line_add(&line, 0, TOP_INK_PLAIN, "x");
	assert_int_equal(line.n, TOP_PIECES);
}

static void test_lines_most(void **state)
{
	struct top_line lines[4] = {{.rank = 0}, {.rank = 3}, {.rank = 1}, {.rank = 3}};

	(void)state;
	assert_int_equal(top_lines_most(lines, 4, 5), 4);
	assert_int_equal(top_lines_most(lines, 4, 2), 2);
	assert_int_equal(lines[0].rank, 0);
	assert_int_equal(lines[1].rank, 1);
	assert_int_equal(top_lines_most(lines, 2, 0), 0);
}

static void test_spark(void **state)
{
	static const float values[] = {0, 0.001f, 0.5f, 1, 2};
	char out[64] = "", small[4] = "";

	(void)state;
	top_format_spark(out, sizeof(out), values, 5, 1, false);
	assert_string_equal(out, " .+@@");
	out[0] = 0;
	top_format_spark(out, sizeof(out), values, 5, 0, false); /* relative to the largest */
	assert_string_equal(out, " .-+@");
	out[0] = 0;
	top_format_spark(out, sizeof(out), values, 5, 1, true);
	assert_string_equal(out, " \u2581\u2585\u2588\u2588");
	out[0] = 0;
	top_format_spark(out, sizeof(out), values, 1, 0, true); /* nothing happened at all */
	assert_string_equal(out, " ");
	top_format_spark(small, sizeof(small), values, 5, 1,
			 true); /* a character is never cut in half */
	assert_string_equal(small, " ");
}

static unsigned width_of(const struct top_column *c, size_t n)
{
	unsigned width = 0;

	for (size_t i = 0; i < n; i++)
		width += c[i].width + (i ? 1 : 0);
	return width;
}

static bool has(const struct top_column *c, size_t n, unsigned key)
{
	for (size_t i = 0; i < n; i++)
		if (c[i].key == key)
			return true;
	return false;
}

/* At every width no line is wider than the screen, and the sort column is there. */
static void test_layout_fits(void **state)
{
	struct top_column c[TOP_COLUMNS];

	(void)state;
	for (unsigned i = 0; i < 8 * TOP_KEYS; i++) {
		struct top_layout l = {.sort = i / 8,
				       .jobs = i & 1,
				       .long_names = i & 2,
				       .past = i & 4,
				       .need_job = 50};

		for (l.width = 8; l.width <= 300; l.width++) {
			size_t n = top_table_layout(c, &l);
			bool of_tasks =
				l.sort == TOP_PID || l.sort == TOP_USER || l.sort == TOP_COMMAND;
			bool of_view = l.jobs ? !of_tasks : l.sort != TOP_TASKS;

			assert_true(n > 0 && n <= TOP_COLUMNS);
			assert_true(width_of(c, n) <= l.width);
			if (l.width >= 16)
				assert_true(has(c, n, l.sort) == of_view);
			if (l.long_names && !l.jobs && l.width >= 60)
				assert_int_equal(c[n - 1].key, TOP_COMMAND);
			if (l.long_names && !l.jobs && l.width >= 200)
				/* the last column takes the remaining width */
				assert_int_equal(width_of(c, n), l.width);
		}
	}
}

static void test_layout_80(void **state)
{
	static const enum top_key shown[] = {TOP_PID,	TOP_USER,     TOP_COMMAND, TOP_READ,
					     TOP_WRITE, TOP_IMPLICIT, TOP_SENT,	   TOP_RECEIVED,
					     TOP_CPU,	TOP_RSS,      TOP_SHARE};
	struct top_layout l = {.width = 80, .sort = TOP_SHARE};
	struct top_column c[TOP_COLUMNS];
	size_t n = top_table_layout(c, &l);
	struct top_line groups;
	char text[TOP_LINE_BYTES];

	(void)state;
	assert_int_equal(n, sizeof(shown) / sizeof(shown[0]));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(c[i].key, shown[i]);
	top_table_groups(c, n, false, &groups);
	top_line_text(&groups, text);
	assert_string_equal(text, "                              -explicit-- fault --network--");
	l.width = 200;
	n = top_table_layout(c, &l);
	assert_int_equal(n, TOP_KEYS - 1); /* all but TASKS */
	assert_true(c[0].roomy);
	top_table_groups(c, n, false, &groups);
	top_line_text(&groups, text);
	assert_non_null(strstr(text, " explicit: calls implicit: faults ---"));
	l.past = true;
	l.need_job = 20;
	n = top_table_layout(c, &l);
	assert_int_equal(c[n - 1].key, TOP_PAST);
}

/* Every cell is as wide as its column, for any numbers and names. */
/* If the root's job is the only one, its whole name is shown. */
static void test_root_job_fits(void **state)
{
	struct top_row row = {
		.is_job = true, .comm = "", .command = "", .job = "", .label = "", .user = ""};
	struct top_layout l = {.width = 80, .jobs = true, .sort = TOP_SHARE};

	(void)state;
	top_table_needs(&l, &row, 1);
	assert_true(l.need_job >= strlen("(root)"));
}

static void test_cells_fit(void **state)
{
	static const double values[] = {0, 0.01, 7, 999.5, 123456, 9.9995e8, 1e18};
	struct top_row row = {.user = "a-very-long-user-name-that-goes-on",
			      .comm = "name",
			      .command = "name --with=arguments\tand \x1b[2J escapes",
			      .job = "/a/long/path/to/a/cgroup/that/does/not/end.slice",
			      .label = "/a/long/path/to/a/cgroup/that/does/not/end.slice",
			      .resource = "network",
			      .depth = 70,
			      .rails = UINT64_MAX};
	struct top_layout l = {.past = true};
	struct top_column c[TOP_COLUMNS];

	(void)state;
	for (unsigned i = 0; i < 4 * sizeof(values) / sizeof(values[0]); i++) {
		struct top_look look = {.utf8 = true, .jobs = i & 1};

		for (unsigned k = 0; k < TOP_KEYS; k++)
			row.value[k] = values[i / 4];
		row.is_job = i & 2;
		row.exited = i & 1;
		l.jobs = i & 1;
		for (l.width = 10; l.width < 300; l.width += 7) {
			size_t n = top_table_layout(c, &l);

			for (size_t k = 0; k < n; k++) {
				char cell[TOP_LINE_BYTES] = "";

				top_table_cell(cell, sizeof(cell), &c[k], &row, &look);
				assert_int_equal(top_format_width(cell), c[k].width);
				assert_null(strpbrk(cell, "\x1b\t"));
			}
		}
	}
}

static json_t *node_document(double utilisation)
{
	return json_pack("{s:s, s:I, s:I, s:{s:i, s:f, s:f}, s:[{s:i,s:b}], s:[],"
			 " s:[{s:s,s:f},{s:s,s:f,s:f,s:f,s:i,s:i,s:i,s:i},{s:s,s:f}],"
			 " s:{s:i, s:i}, s:{s:s}, s:{s:f,s:[{s:i,s:i}]}}",
			 "node", "n7", "since_ns", (json_int_t)1000000000, "time_ns",
			 (json_int_t)11000000000, "totals", "cores", 4, "cpu_ms_per_s", 1000.0,
			 "sent_bytes_per_s", 2.5e6, "tasks", "pid", 1, "exited", 1, "jobs", "disks",
			 "name", "vda", "utilisation", 0.1, "name", "vdb", "utilisation",
			 utilisation, "read_bytes_per_s", 1.5e6, "service_ms", 2.5, "kernel_bytes",
			 1000, "task_bytes", 900, "unattributed_bytes", 60, "residual_bytes", 40,
			 "name", "vdc", "utilisation", 0.9, "drops", "ledger", 5, "jobs", 0,
			 "drops_help", "ledger", "writers unknown", "cost", "user_cpu_ms", 100.0,
			 "programs", "runs", 1000, "run_ns", 200000000);
}

static void assert_line(const struct top_line *line, const char *has_text)
{
	char text[TOP_LINE_BYTES];

	top_line_text(line, text);
	if (!strstr(text, has_text))
		fail_msg("'%s' has no '%s'", text, has_text);
}

static void test_head(void **state)
{
	struct top_line lines[TOP_HEAD_LINES];
	struct top_head_options o = {.width = 80, .disks = 2};
	json_t *doc = node_document(0.9), *degraded;
	size_t n = top_head(doc, NULL, &o, lines);

	(void)state;
	assert_int_equal(n, 6); /* node, lost, cpu, two disks, network */
	assert_line(&lines[0], "n7 ");
	assert_line(&lines[0], ", 1 ended");
	assert_line(&lines[0], "own cost 3.0%"); /* 100 ms + 200 ms in 10 s */
	assert_line(&lines[1], "LOST   ledger 5: writers unknown");
	assert_int_equal(lines[1].piece[0].ink, TOP_INK_ALERT);
	assert_line(&lines[2], " 25.0%  of 4 cores");
	assert_line(&lines[3], "vdb"); /* the busiest first */
	assert_line(&lines[3], "r 1.50M w     0");
	assert_line(&lines[3], "2.50 ms tasks 90% unattr 6% resid 4%");
	assert_line(&lines[4], "vdc");
	assert_line(&lines[4], "+1 more");
	assert_line(&lines[5], "sent 2.50M");
	o.width = 200;
	o.cost = true;
	n = top_head(doc, NULL, &o, lines);
	assert_int_equal(n, 8);
	assert_line(&lines[3], "tasks 90.0%  stacked 0.0%  unattributed 6.0%");
	assert_line(&lines[7], "100 events/s of 200000 ns");
	/* Fields of the cost and the identity that only later versions have. */
	json_object_update_new(json_object_get(doc, "cost"),
			       json_pack("{s:f,s:f,s:f,s:[{s:i},{s:n}],s:{s:f}}", "events_per_s",
					 2500.0, "ns_per_event", 80.0, "program_core_share", 0.002,
					 "maps", "memory_bytes", 3000000, "memory_bytes",
					 "classifier", "confidence", 0.999));
	json_object_set_new(doc, "identity", json_pack("{s:f}", "residual_share", 0.0012));
	json_object_set_new(doc, "gap_ns", json_integer(61000000000));
	n = top_head(doc, NULL, &o, lines);
	assert_line(&lines[0], "after a gap of 1m01s");
	assert_line(&lines[6], "residual 0.12%");
	assert_line(&lines[7], "kernel 0.20%: 2.50K events/s of 80 ns");
	assert_line(&lines[7], "tables 3.00M  classes 99.9% sure");
	degraded = json_pack("[s,{s:s,s:s}]", "local_bytes", "column", "implicit_bytes", "why",
			     "no tracepoint");
	json_object_set_new(doc, "degraded", degraded);
	n = top_head(doc, NULL, &o, lines);
	assert_line(&lines[2], "DEGRADED local_bytes, implicit_bytes (no tracepoint)");
	json_decref(doc);
}

/* Bytes that are charged but not completed must not make a part larger than the whole. */
static void test_parts(void **state)
{
	struct top_line lines[TOP_HEAD_LINES];
	struct top_head_options o = {.width = 200, .disks = 1};
	json_t *doc =
		json_pack("{s:s,s:{},s:[],s:[],s:[{s:s,s:f,s:i,s:i,s:i}]}", "node", "n7", "totals",
			  "tasks", "jobs", "disks", "name", "vda", "utilisation", 0.5,
			  "kernel_bytes", 1000, "task_bytes", 1200, "stacked_bytes", 300);
	size_t n = top_head(doc, NULL, &o, lines), i = 0;

	(void)state;
	assert_non_null(doc);
	while (i < n && strncmp(lines[i].piece[0].text, "vda", 3) != 0)
		i++;
	assert_true(i < n);
	assert_line(&lines[i], "tasks 80.0%  stacked 20.0%");
	json_decref(doc);
}

/* With the previous document the cost is that of the interval. */
static void test_head_interval(void **state)
{
	struct top_line lines[TOP_HEAD_LINES];
	struct top_head_options o = {.width = 80, .disks = 1};
	json_t *before = node_document(0.9), *doc = node_document(0.9), *cost;

	(void)state;
	cost = json_object_get(doc, "cost");
	json_object_set_new(cost, "user_cpu_ms", json_real(150));
	json_object_set_new(doc, "time_ns", json_integer(12000000000));
	top_head(doc, before, &o, lines);
	assert_line(&lines[0], "own cost 5.0%");
	/* The programs were measured for only 2 s: 10 % of a core in that time, not 2 %. */
	json_object_set_new(cost, "measured_ms", json_real(2000));
	top_head(doc, before, &o, lines);
	assert_line(&lines[0], "own cost 15.0%");
	json_decref(doc);
	json_decref(before);
}

/* No line of the head is ever wider than the screen. */
static void test_head_fits(void **state)
{
	struct top_line lines[TOP_HEAD_LINES];
	struct top_history *history = top_history_new();
	json_t *doc = node_document(1.5);
	char text[TOP_LINE_BYTES];

	(void)state;
	top_history_add(history, doc);
	for (unsigned width = 8; width <= 300; width++) {
		struct top_head_options o = {width, 8, true, true, history};
		size_t n = top_head(doc, NULL, &o, lines);

		assert_true(n >= 8);
		for (size_t i = 0; i < n; i++) {
			top_line_text(&lines[i], text);
			assert_true(top_format_width(text) <= width);
		}
	}
	json_decref(doc);
	top_history_free(history);
}

static void test_detail(void **state)
{
	struct top_detail_options o = {.width = 80, .seen_ago_s = -1};
	static struct top_line lines[TOP_DETAIL_LINES];
	struct top_row row = {
		.comm = "cc1", .command = "cc1 -O2", .user = "me", .job = "/a", .label = "/a"};
	char text[TOP_LINE_BYTES], all[16384] = "";
	size_t n;

	(void)state;
	row.source =
		json_pack("{s:i,s:s,s:I,s:f,s:i,s:n,s:i,s:[{s:s,s:i}],s:f,s:{s:f,s:s}}", "pid", 7,
			  "comm", "cc1", "explicit_read_bytes", (json_int_t)1234567890,
			  "explicit_read_bytes_per_s", 2.5e6, "implicit_bytes", 4096, "sent_bytes",
			  "netfs_read_bytes", 777, "remotes", "address", "10.0.0.1", "sent_bytes",
			  5, "disk_wait_ms_per_s", 12.5, "parts", "cpu", 0.0625, "most", "disk");
	row.resource = "cpu";
	row.value[TOP_PID] = 7;
	n = top_detail(&row, &o, lines);
	for (size_t i = 0; i < n; i++) {
		top_line_text(&lines[i], text);
		assert_true(top_format_width(text) <= 80);
		strcat(strcat(all, text), "\n");
	}
	assert_non_null(strstr(all, "cc1  pid 7\n"));
	assert_non_null(strstr(all, "cc1 -O2\n"));
	assert_non_null(strstr(all, "2.50M       1.23G           1234567890\n"));
	snprintf(text, sizeof(text), "network  %-20s %11s %11s\n", "sent", "-", "-");
	assert_non_null(strstr(all, text)); /* the value is null in the document */
	assert_non_null(strstr(
		all, "more     netfs read bytes")); /* a field that we do not know is shown */
	assert_non_null(strstr(all, "     disk wait ms             12.5 ms           -\n"));
	assert_non_null(strstr(all, "\nparts  cpu 0.0625  most disk\n"));
	assert_non_null(strstr(all, "\n10.0.0.1                                -           -      "
				    "     5           -\n"));
	o.seen_ago_s = 65;
	top_detail(&row, &o, lines);
	assert_line(&lines[0], "gone, last seen 1m05s ago");
	for (o.width = 8; o.width < 200; o.width++) {
		n = top_detail(&row, &o, lines);
		for (size_t i = 0; i < n; i++) {
			top_line_text(&lines[i], text);
			assert_true(top_format_width(text) <= o.width);
		}
	}
	json_decref(row.source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),	      cmocka_unit_test(test_lines_most),
		cmocka_unit_test(test_spark),	      cmocka_unit_test(test_layout_fits),
		cmocka_unit_test(test_layout_80),     cmocka_unit_test(test_cells_fit),
		cmocka_unit_test(test_root_job_fits), cmocka_unit_test(test_head),
		cmocka_unit_test(test_parts),	      cmocka_unit_test(test_head_interval),
		cmocka_unit_test(test_head_fits),     cmocka_unit_test(test_detail),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
