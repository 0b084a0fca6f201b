/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The page of metrics: its text, its escapes, and which jobs have series of their own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/lib/exposition.h"
#include "agent/metrics/metrics_jobs.h"
#include "agent/metrics/metrics_page.h"

#define MINUTE (60ull * 1000000000ull)

/* --- jobs ---------------------------------------------------------------------------- */

static void did(struct metrics_jobs *jobs, const char *name, uint64_t bytes)
{
	struct iocom_job_load row = {.tasks = 2, .rss_bytes = 4096};

	row.delta.explicit_read_bytes = bytes;
	row.delta.cpu_ns = bytes ? 1 : 0;
	assert_true(metrics_jobs_matters(&row));
	metrics_jobs_add(jobs, name, &row);
}

/* Returns what NAME has read, by its series; -1: it has none. */
static long long has(const struct metrics_jobs *jobs, const char *name)
{
	struct metrics_job rows[64];
	struct metrics_jobs_view view;

	metrics_jobs_view(jobs, &view, NULL);
	assert_in_range(view.max, 0, 64);
	metrics_jobs_view(jobs, &view, rows);
	assert_true(view.count <= view.max);
	if (!strcmp(name, "other"))
		return (long long)view.other.load.explicit_read_bytes;
	for (size_t i = 0; i < view.count; i++)
		if (!strcmp(rows[i].name, name))
			return (long long)rows[i].load.explicit_read_bytes;
	return -1;
}

static void test_jobs_beyond_the_limit(void **state)
{
	struct metrics_jobs *jobs = metrics_jobs_new(2);
	struct metrics_jobs_view view;

	(void)state;
	metrics_jobs_begin(jobs, MINUTE);
	did(jobs, "/idle", 0); /* names without activity get no place */
	did(jobs, "/a", 10);
	did(jobs, "/b", 20);
	did(jobs, "/c", 40);
	did(jobs, NULL, 80);
	did(jobs, "/a", 100); /* a second cgroup of the same job */
	assert_int_equal(has(jobs, "/idle"), -1);
	assert_int_equal(has(jobs, "/a"), 110);
	assert_int_equal(has(jobs, "/b"), 20);
	assert_int_equal(has(jobs, "/c"), -1);
	assert_int_equal(has(jobs, "other"), 120);
	metrics_jobs_view(jobs, &view, NULL);
	assert_int_equal(view.other_cgroups, 2); /* /c and the nameless one; /idle did nothing */
	assert_int_equal(view.other.tasks, 6);
	/* Levels are set anew each time, counters stay. */
	metrics_jobs_begin(jobs, 2 * MINUTE);
	metrics_jobs_view(jobs, &view, NULL);
	assert_int_equal(view.other.tasks, 0);
	assert_int_equal(view.other.rss_bytes, 0);
	assert_int_equal(has(jobs, "other"), 120);
	metrics_jobs_free(jobs);
}

static void test_jobs_none(void **state)
{
	struct metrics_jobs *jobs = metrics_jobs_new(0);

	(void)state;
	metrics_jobs_begin(jobs, 1000 * MINUTE);
	did(jobs, "/a", 10);
	did(jobs, "/b", 10);
	assert_int_equal(has(jobs, "other"), 20);
	metrics_jobs_free(jobs);
	metrics_jobs_free(NULL);
}

/* An idle job loses its place, and continues from its old values when it comes back. */
static void test_jobs_come_back(void **state)
{
	struct metrics_jobs *jobs = metrics_jobs_new(1);
	struct metrics_jobs_view view;

	(void)state;
	metrics_jobs_begin(jobs, MINUTE);
	did(jobs, "/a", 1000);
	metrics_jobs_begin(jobs, 2 * MINUTE);
	did(jobs, "/b", 1); /* /a has not been idle for long enough */
	assert_int_equal(has(jobs, "/b"), -1);
	metrics_jobs_begin(jobs, 12 * MINUTE);
	did(jobs, "/b", 2);
	assert_int_equal(has(jobs, "/a"), -1);
	assert_int_equal(has(jobs, "/b"), 2);
	/* the bytes of a job are not moved to another series, or they would count twice */
	assert_int_equal(has(jobs, "other"), 1);
	did(jobs, "/a", 4);
	assert_int_equal(has(jobs, "other"), 5);
	metrics_jobs_begin(jobs, 30 * MINUTE);
	did(jobs, "/a", 8);
	assert_int_equal(has(jobs, "/b"), -1);
	assert_int_equal(has(jobs, "/a"), 1008);
	metrics_jobs_view(jobs, &view, NULL);
	assert_int_equal(view.replaced, 2);
	metrics_jobs_free(jobs);
}

/* Random work of many names through few places: no counter goes down, no byte is lost. */
static void test_jobs_never_go_down(void **state)
{
	struct metrics_jobs *jobs = metrics_jobs_new(8);
	struct metrics_job rows[8], before[40] = {0};
	struct metrics_jobs_view view;
	uint64_t truth = 0, other = 0, seen = 0;
	unsigned seed = 4;

	(void)state;
	/* 40 names: 8 with a place, 32 remembered, and none is ever forgotten. */
	for (unsigned minute = 1; minute < 4000; minute++) {
		metrics_jobs_begin(jobs, minute * MINUTE);
		for (unsigned i = 0; i < 4; i++) {
			uint64_t bytes = 1 + (unsigned)rand_r(&seed) % 1000;
			unsigned who = (unsigned)rand_r(&seed) % 4 + minute / 40 * 7;
			char name[32];

			snprintf(name, sizeof(name), "/%u", who % 40);
			did(jobs, name, bytes);
			truth += bytes;
		}
		metrics_jobs_view(jobs, &view, rows);
		for (size_t i = 0; i < view.count; i++) {
			struct metrics_job *was = &before[atoi(rows[i].name + 1)];

			assert_true(rows[i].load.explicit_read_bytes >=
				    was->load.explicit_read_bytes);
			*was = rows[i];
		}
		assert_true(view.other.load.explicit_read_bytes >= other);
		other = view.other.load.explicit_read_bytes;
	}
	for (size_t i = 0; i < 40; i++)
		seen += before[i].load.explicit_read_bytes;
	assert_int_equal(seen + other, truth);
	assert_true(view.replaced > 100);
	metrics_jobs_free(jobs);
}

/* --- text ----------------------------------------------------------------------------- */

static void test_labels(void **state)
{
	struct metrics_labels labels = {0};
	struct metrics_text t = {0};
	char longest[3000], why[EXPOSITION_WHY];

	(void)state;
	metrics_label(&labels, "node", "a\"b\\c\nd");
	assert_string_equal(labels.text, "node=\"a\\\"b\\\\c\\nd\"");
	metrics_label(&labels, "x",
		      "\xff"
		      "\xc3\xa4"
		      "\xed\xa0\x80"
		      "}");
	memset(longest, '"', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	metrics_family(&t, "iocom_x", "gauge", "Help.");
	metrics_real(&t, "iocom_x", &labels, -1.5);
	metrics_real(&t, "iocom_x", &(struct metrics_labels){"a=\"1\"", 5}, NAN);
	metrics_real(&t, "iocom_x", &(struct metrics_labels){"a=\"2\"", 5}, -INFINITY);
	labels = (struct metrics_labels){0};
	metrics_label(&labels, "job_name", longest);
	assert_in_range(labels.used, METRICS_LABEL_MAX, 2 * METRICS_LABEL_MAX + 16);
	metrics_real(&t, "iocom_x", &labels, 1);
	/* there is no room, so the label is left out completely */
	metrics_label(&labels, "b", longest);
	metrics_family(&t, "iocom_y_seconds_total", "counter", "Help.");
	metrics_seconds(&t, "iocom_y_seconds_total", &labels, 18446744073709551615ull);
	if (exposition_check(t.data, why) != 5)
		fail_msg("%s\n%s", why, t.data);
	assert_non_null(strstr(t.data, "\xef\xbf\xbd\xc3\xa4"));
	assert_non_null(strstr(t.data, "} 18446744073.709551615\n"));
	metrics_text_free(&t);
}

/* The reader of these tests refuses wrong pages. */
static void test_reader_refuses(void **state)
{
	static const char *const wrong[] = {
		"x 1\n",
		"# HELP x h\nx 1\n",
		"# HELP x h\n# TYPE x gauge\nx 1",
		"# HELP x h\n# TYPE x gauge\nx 1\nx 2\n",
		"# HELP x h\n# TYPE x gauge\nx{a=\"1\"} 1\nx{a=\"1\"} 2\n",
		"# HELP x h\n# TYPE x counter\nx 1\n",
		"# HELP x_total h\n# TYPE x_total gauge\nx_total 1\n",
		"# HELP x_total h\n# TYPE x_total counter\nx_total -1\n",
		"# HELP x h\n# TYPE x gauge\ny 1\n",
		"# HELP x h\n# TYPE x gauge\nx{a=\"1} 1\n",
		"# HELP x h\n# TYPE x gauge\nx{a=\"\\t\"} 1\n",
		"# HELP x h\n# TYPE x gauge\nx{a=\"\xff\"} 1\n",
		"# HELP x h\n# TYPE x gauge\nx{job=\"a\"} 1\n",
		"# HELP x h\n# TYPE x gauge\nx{a=\"1\"} one\n",
		"# HELP x h\n# TYPE x gauge\nx 1\n# HELP x h\n# TYPE x gauge\n",
	};
	char why[EXPOSITION_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (exposition_check(wrong[i], why) != -1)
			fail_msg("was accepted: %s", wrong[i]);
	assert_int_equal(exposition_check("# HELP x h\n# TYPE x gauge\nx{a=\"\\n\"} 1e3\n", why),
			 1);
}

/* --- the page --------------------------------------------------------------------------- */

static char *page_of(struct metrics_jobs *jobs, const struct iocom_load *total)
{
	static const struct iocom_disk disks[] = {
		{.name = "vda",
		 .requests = 7,
		 .read_bytes = 1 << 20,
		 .service_sum_ns = 1500000000,
		 .residual_bytes = -4096},
		{.name = "loop1", .requests = 1},
		{.name = "loop1",
		 .minor = 1,
		 .requests = 3}, /* the disk came back; its name existed already */
	};
	static const struct monitor_drop drops[] = {{"ledger", "help", 5}, {"late", "help", 0}};
	static const struct monitor_program programs[] = {{"bio_queue", 1000, 80000}};
	static const struct monitor_map maps[] = {{"ledger", 8, 3, 4096},
						  {"threads", 0, MONITOR_ENTRIES_UNKNOWN, 0}};
	struct monitor_sample sample = {.time_ns = 1700000000500000000ull,
					.disks = disks,
					.ndisks = 3,
					.drops = drops,
					.ndrops = 2,
					.programs = programs,
					.nprograms = 1,
					.measured_ns = 500000000,
					.maps = maps,
					.nmaps = 2,
					.classifier = {400, 100, false, false},
					.taken = {6, 7}};
	struct metrics_page *page = metrics_page_new(&sample, jobs);
	size_t length;
	char *text;

	assert_non_null(page);
	strcpy(page->vector.name, "n1");
	page->vector.memory_mb = 1000;
	page->vector.cpu_burst = 1.5;
	page->vector.cpu_sharers = 2.5;
	page->vector.disk_sharers = 0.75;
	page->vector.cpu_left_ms = 1250;
	page->vector.disk_left_ms = 500;
	page->vector.bits = IOCOM_BIT_CPU;
	page->counters.jobs_started = 3;
	page->counters.ticks = 17;
	page->counters.tick_late_ms = 42;
	page->bounds[0] = (struct limit){"jobs", 3, 4096, false, "admissions_refused", 0};
	page->bounds[1] = (struct limit){"of_a_user", LIMIT_UNKNOWN, 9, false, NULL, 0};
	page->bounds[2] = (struct limit){"nonces", 7, 0, false, NULL, 0};
	page->nbounds = 3;
	page->predictions[0] = (struct prediction){
		.node = "n2",
		.policy = "iocm-re",
		.ratio = 1.25,
		.total = {.jobs = 7, .within_1_25 = 3, .within_2 = 5, .log_error = 2.5}};
	page->predictions[1] = (struct prediction){.node = "n2", .policy = "wal", .ratio = 2};
	page->npredictions = 2;
	page->has_load_average = true;
	page->load_average[1] = 0.5;
	page->total = *total;
	assert_int_equal(metrics_page_render(page, &text, &length), 0);
	assert_int_equal(strlen(text), length);
	metrics_page_free(page);
	return text;
}

static void test_page(void **state)
{
	struct metrics_jobs *jobs = metrics_jobs_new(2);
	struct iocom_load total = {.explicit_read_bytes = 150, .cpu_ns = 1};
	char why[EXPOSITION_WHY], *text;

	(void)state;
	metrics_jobs_begin(jobs, MINUTE);
	did(jobs, "/quote\"back\\slash\nline\xff", 10);
	/* the job's name collides with the series for all others, and must stay one series */
	did(jobs, "other", 20);
	did(jobs, "/c", 120);
	text = page_of(jobs, &total);
	if (exposition_check(text, why) < 100)
		fail_msg("%s", why);
#define IS(series, value) assert_true(exposition_value(text, series) == (value))
	IS("iocom_node_memory_bytes{node=\"n1\"}", 1e9);
	IS("iocom_node_available_cpu{node=\"n1\"}", 1);
	IS("iocom_node_available_io{node=\"n1\"}", 0);
	IS("iocom_node_cpu_burst_ratio{node=\"n1\"}", 1.5);
	IS("iocom_node_cpu_sharers{node=\"n1\"}", 2.5);
	IS("iocom_node_disk_sharers{node=\"n1\"}", 0.75);
	IS("iocom_node_cpu_left_seconds{node=\"n1\"}", 1.25);
	IS("iocom_node_disk_left_seconds{node=\"n1\"}", 0.5);
	IS("iocom_node_load_average{node=\"n1\",minutes=\"5\"}", 0.5);
	IS("iocom_reading_time_seconds{node=\"n1\"}", 1700000000.5);
	IS("iocom_node_cpu_seconds_total{node=\"n1\"}", 1e-9);
	IS("iocom_job_explicit_read_bytes_total{node=\"n1\",job_name=\"/quote\\\"back\\\\slash"
	   "\\nline\xef\xbf\xbd\"}",
	   10);
	IS("iocom_job_explicit_read_bytes_total{node=\"n1\",job_name=\"other\"}", 20);
	IS("iocom_job_explicit_read_bytes_total{node=\"n1\",job_name=\"/c\"}", 120);
	IS("iocom_disk_service_seconds_total{node=\"n1\",disk=\"vda\"}", 1.5);
	IS("iocom_disk_residual_bytes{node=\"n1\",disk=\"vda\"}", -4096);
	IS("iocom_disk_requests_total{node=\"n1\",disk=\"loop1\"}", 3);
	IS("iocom_drops_total{node=\"n1\",cause=\"ledger\"}", 5);
	IS("iocom_agent_events_total{node=\"n1\",event=\"jobs_started\"}", 3);
	IS("iocom_agent_events_total{node=\"n1\",event=\"ticks\"}", 17);
	IS("iocom_agent_tick_late_ms{node=\"n1\"}", 42);
	IS("iocom_bound_used{node=\"n1\",bound=\"jobs\"}", 3);
	IS("iocom_bound_max{node=\"n1\",bound=\"jobs\"}", 4096);
	assert_null(strstr(text, "iocom_bound_used{node=\"n1\",bound=\"of_a_user\"}"));
	assert_null(strstr(text, "iocom_bound_max{node=\"n1\",bound=\"nonces\"}"));
	IS("iocom_prediction_jobs_total{node=\"n1\",target=\"n2\",policy=\"iocm-re\"}", 7);
	IS("iocom_prediction_log_error_total{node=\"n1\",target=\"n2\",policy=\"iocm-re\"}", 2.5);
	IS("iocom_prediction_within_1_25x_total{node=\"n1\",target=\"n2\",policy=\"iocm-re\"}", 3);
	IS("iocom_prediction_within_2x_total{node=\"n1\",target=\"n2\",policy=\"iocm-re\"}", 5);
	IS("iocom_prediction_ratio{node=\"n1\",target=\"n2\",policy=\"iocm-re\"}", 1.25);
	IS("iocom_prediction_ratio{node=\"n1\",target=\"n2\",policy=\"wal\"}", 2);
	IS("iocom_program_runs_total{node=\"n1\",program=\"bio_queue\"}", 1000);
	IS("iocom_program_run_seconds_total{node=\"n1\",program=\"bio_queue\"}", 80e-6);
	IS("iocom_programs_measured_seconds_total{node=\"n1\"}", 0.5);
	IS("iocom_map_entries{node=\"n1\",map=\"ledger\"}", 3);
	IS("iocom_map_entries_max{node=\"n1\",map=\"ledger\"}", 8);
	IS("iocom_map_memory_bytes{node=\"n1\",map=\"ledger\"}", 4096);
	IS("iocom_slot_taken_total{node=\"n1\",map=\"talks\"}", 6);
	IS("iocom_slot_taken_total{node=\"n1\",map=\"streams\"}", 7);
	IS("iocom_classifier_confidence_ratio{node=\"n1\"}", 0.75);
	assert_null(strstr(text, "map=\"threads\""));
	IS("iocom_jobs_named_max{node=\"n1\"}", 2);
	/* The named ones and "other" add up to the node. */
	assert_true(exposition_sum(text, "iocom_job_explicit_read_bytes_total") == 150);
	free(text);
	metrics_jobs_free(jobs);
}

/* A value that the kernel does not tell is left out, not shown as 0. */
static void test_page_degraded(void **state)
{
	static const struct monitor_degraded degraded[] = {
		{"sent_bytes", "sock_send_length", "why", true},
		{"implicit_bytes", "mm_filemap_fault", "why", false}};
	struct metrics_jobs *jobs = metrics_jobs_new(1);
	struct monitor_sample sample = {.degraded = degraded, .ndegraded = 2};
	struct metrics_page *page = metrics_page_new(&sample, jobs);
	char why[EXPOSITION_WHY], *text;
	size_t length;

	(void)state;
	assert_non_null(page);
	assert_int_equal(metrics_page_render(page, &text, &length), 0);
	if (exposition_check(text, why) < 50)
		fail_msg("%s", why);
	IS("iocom_column_degraded{node=\"\",column=\"sent_bytes\",hook=\"sock_send_length\"}", 1);
	IS("iocom_column_degraded{node=\"\",column=\"implicit_bytes\",hook=\"mm_filemap_fault\"}",
	   0);
	assert_null(strstr(text, "_sent_bytes_total"));
	IS("iocom_node_implicit_bytes_total{node=\"\"}", 0);
	IS("iocom_node_received_bytes_total{node=\"\"}", 0);
	IS("iocom_job_received_bytes_total{node=\"\",job_name=\"other\"}", 0);
	metrics_page_free(page);
	metrics_jobs_free(jobs);
	free(text);
}

/* Each counter of a load has its series: a new one must not be forgotten here. */
static void test_page_has_every_counter(void **state)
{
	struct metrics_jobs *jobs = metrics_jobs_new(0);
	struct iocom_load total;
	uint64_t *words = (uint64_t *)&total;
	size_t n = sizeof(total) / sizeof(*words);
	char *text;

	(void)state;
	for (size_t i = 0; i < n; i++)
		words[i] = 770077000000000ull + i * 1000000000ull;
	text = page_of(jobs, &total);
	for (size_t i = 0; i < n; i++) {
		char whole[64], seconds[64];

		snprintf(whole, sizeof(whole), " %llu\n", (unsigned long long)words[i]);
		snprintf(seconds, sizeof(seconds), " %llu.000000000\n",
			 (unsigned long long)(words[i] / 1000000000));
		if (!strstr(text, whole) && !strstr(text, seconds))
			fail_msg("word %zu of struct iocom_load is in no metric", i);
	}
	free(text);
	metrics_jobs_free(jobs);
}

static void test_promtool(void **state)
{
	struct metrics_jobs *jobs = metrics_jobs_new(4);
	struct iocom_load total = {0};
	char *text;
	FILE *f;
	int rc;

	(void)state;
	if (system("command -v promtool >/dev/null 2>&1")) {
		metrics_jobs_free(jobs);
		skip(); /* Prometheus is not installed; exposition_check reads the same format */
	}
	metrics_jobs_begin(jobs, MINUTE);
	did(jobs, "/quote\"back\\slash\nline\xff", 10);
	text = page_of(jobs, &total);
	f = popen("promtool check metrics 2>&1", "w");
	assert_non_null(f);
	fputs(text, f);
	rc = pclose(f);
	assert_true(WIFEXITED(rc) && WEXITSTATUS(rc) == 0);
	free(text);
	metrics_jobs_free(jobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jobs_beyond_the_limit),
		cmocka_unit_test(test_jobs_none),
		cmocka_unit_test(test_jobs_come_back),
		cmocka_unit_test(test_jobs_never_go_down),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_reader_refuses),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_page_degraded),
		cmocka_unit_test(test_page_has_every_counter),
		cmocka_unit_test(test_promtool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
