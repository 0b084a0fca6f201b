/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/monitor/sample_json.h"
#include "user/monitor/sample_window.h"
#include "user/utf8.h"

#define SECOND 1000000000ULL

static struct iocom_load heavy(void)
{
	return (struct iocom_load){
		.explicit_read_bytes = 64 << 20,
		.explicit_write_bytes = 2000,
		.explicit_ops = 30,
		.implicit_bytes = 4096,
		.implicit_ops = 1,
		.major_faults = 2,
		.minor_faults = 5,
		.sent_bytes = 700,
		.received_bytes = 900,
		.sent_messages = 7,
		.received_messages = 9,
		.local_bytes = 11,
		.dirtied_bytes = 8192,
		.cancelled_bytes = 4096,
		.netfs_read_bytes = 21,
		.netfs_write_bytes = 22,
		.cpu_ns = 1234567890,
		.run_wait_ns = 2500000,
		.io_wait_ns = 3000,
	};
}

static const json_t *find(const json_t *doc, const char *array, const char *key, json_int_t value)
{
	const json_t *element;
	size_t i;

	json_array_foreach (json_object_get(doc, array), i, element)
		if (json_integer_value(json_object_get(element, key)) == value)
			return element;
	return NULL;
}

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_number(value))
		fail_msg("no number %s", key);
	return json_number_value(value);
}

static const char *string(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "(no string)";
}

static void test_task_fields(void **state)
{
	struct iocom_task task = {.pid = 77, .uid = 1000, .comm = "dd", .rss_bytes = 5000};
	struct monitor_sample sample = {.time_ns = 10 * SECOND,
					.since_ns = 4 * SECOND,
					.elapsed_ns = 2 * SECOND,
					.tasks = &task,
					.ntasks = 1};
	struct sample_json_options options = {.node = "n1", .cores = 2};
	const json_t *t;
	json_t *doc;

	(void)state;
	task.load = heavy();
	task.delta = (struct iocom_load){.explicit_read_bytes = 1 << 20, .cpu_ns = SECOND / 2};
	doc = sample_json(&sample, &options);
	assert_non_null(doc);
	assert_string_equal(string(doc, "node"), "n1");
	assert_true(number(doc, "time_ns") == 10e9 && number(doc, "since_ns") == 4e9);
	t = find(doc, "tasks", "pid", 77);
	assert_string_equal(string(t, "comm"), "dd");
	assert_true(json_is_null(json_object_get(t, "job")));
	assert_null(json_object_get(t, "exited"));
	assert_true(number(t, "explicit_read_bytes") == 64 << 20);
	assert_true(number(t, "explicit_read_bytes_per_s") == 1 << 19);
	assert_true(number(t, "explicit_write_bytes") == 2000);
	assert_true(number(t, "explicit_ops") == 30 && number(t, "implicit_bytes") == 4096);
	assert_true(number(t, "implicit_ops") == 1 && number(t, "major_faults") == 2);
	assert_true(number(t, "minor_faults") == 5 && number(t, "sent_bytes") == 700);
	assert_true(number(t, "received_bytes") == 900 && number(t, "sent_messages") == 7);
	assert_true(number(t, "received_messages") == 9 && number(t, "local_bytes") == 11);
	assert_true(number(t, "dirtied_bytes") == 8192 && number(t, "cancelled_bytes") == 4096);
	assert_true(number(t, "netfs_read_bytes") == 21 && number(t, "netfs_write_bytes") == 22);
	assert_true(number(t, "run_wait_ms") == 2.5 && number(t, "io_wait_ms") == 0.003);
	assert_true(number(t, "cpu_ms") == 1234.568); /* to the microsecond */
	assert_true(number(t, "cpu_ms_per_s") == 250);
	assert_true(number(t, "local_bytes_per_s") == 0 && number(t, "rss_bytes") == 5000);
	json_decref(doc);
}

/* A value that the kernel does not tell is null, never 0. */
static void test_degraded(void **state)
{
	static const struct monitor_degraded degraded[] = {
		{"sent_bytes", "sock_send_length", "no such tracepoint", true},
		{"local_bytes", "sock_send_length", "half of it", false},
		{"no_counter", "other", "a column elsewhere", true},
	};
	struct iocom_task task = {.pid = 77, .comm = "dd"};
	struct monitor_sample sample = {.elapsed_ns = SECOND,
					.tasks = &task,
					.ntasks = 1,
					.degraded = degraded,
					.ndegraded = 3};
	struct sample_json_options options = {.node = "n1", .cores = 2};
	json_t *doc, *list;
	const json_t *t;

	(void)state;
	task.load = heavy();
	task.delta = heavy();
	doc = sample_json(&sample, &options);
	t = find(doc, "tasks", "pid", 77);
	assert_true(json_is_null(json_object_get(t, "sent_bytes")));
	assert_true(json_is_null(json_object_get(t, "sent_bytes_per_s")));
	assert_true(
		json_is_null(json_object_get(json_object_get(doc, "totals"), "sent_bytes_per_s")));
	assert_true(number(t, "local_bytes") == 11 && number(t, "local_bytes_per_s") == 11);
	assert_true(number(t, "sent_messages") == 7);
	list = json_object_get(doc, "degraded");
	assert_int_equal(json_array_size(list), 3);
	assert_string_equal(string(json_array_get(list, 0), "column"), "sent_bytes");
	assert_string_equal(string(json_array_get(list, 0), "hook"), "sock_send_length");
	assert_string_equal(string(json_array_get(list, 0), "why"), "no such tracepoint");
	assert_true(json_is_true(json_object_get(json_array_get(list, 0), "unknown")));
	assert_true(json_is_false(json_object_get(json_array_get(list, 1), "unknown")));
	json_decref(doc);
}

static void test_every_count_has_a_rate(void **state)
{
	struct iocom_task task = {.pid = 1};
	struct monitor_sample sample = {.tasks = &task, .ntasks = 1}; /* no time has passed */
	struct sample_json_options options = {.cores = 1};
	json_t *doc = sample_json(&sample, &options);
	json_t *t = json_array_get(json_object_get(doc, "tasks"), 0), *value;
	const char *key;
	unsigned counts = 0;

	(void)state;
	json_object_foreach (t, key, value) {
		char rate[64];

		if (strstr(key, "_per_s") || !strcmp(key, "rss_bytes") || !strcmp(key, "pid") ||
		    !strcmp(key, "uid") || !json_is_number(value) || !strcmp(key, "share"))
			continue;
		snprintf(rate, sizeof(rate), "%s_per_s", key);
		assert_true(number(t, rate) == 0); /* 0, not infinite */
		counts++;
	}
	assert_int_equal(counts, 19);
	json_decref(doc);
}

/* A value that the kernel does not account is null, not 0. */
static void test_lacking_is_null(void **state)
{
	static const char *const io[] = {"dirtied_bytes", "cancelled_bytes", "netfs_read_bytes",
					 "netfs_write_bytes"};
	struct iocom_task task = {.pid = 1};
	struct monitor_sample sample = {.tasks = &task, .ntasks = 1, .no_io_wait = true};
	struct sample_json_options options = {.cores = 1};
	json_t *doc = sample_json(&sample, &options), *t = json_object_get(doc, "tasks");

	(void)state;
	t = json_array_get(t, 0);
	assert_true(json_is_null(json_object_get(t, "io_wait_ms")));
	assert_true(json_is_null(json_object_get(t, "io_wait_ms_per_s")));
	assert_true(number(t, "run_wait_ms") == 0 && number(t, "netfs_read_bytes") == 0);
	json_decref(doc);
	sample.no_task_io = sample.no_run_wait = true;
	doc = sample_json(&sample, &options);
	t = json_array_get(json_object_get(doc, "tasks"), 0);
	for (size_t i = 0; i < sizeof(io) / sizeof(io[0]); i++)
		assert_true(json_is_null(json_object_get(t, io[i])));
	assert_true(json_is_null(json_object_get(t, "run_wait_ms")));
	assert_true(json_is_null(json_object_get(t, "dirtied_bytes_per_s")));
	assert_true(number(t, "cpu_ms") == 0);
	json_decref(doc);
}

static void test_sorted_by_share(void **state)
{
	struct iocom_task tasks[] = {
		{.pid = 1, .delta = {.cpu_ns = SECOND / 2}},		 /* 25 % of two cores */
		{.pid = 2, .delta = {.explicit_write_bytes = 30000000}}, /* 30 % of 100 MB/s */
		{.pid = 3, .delta = {.received_bytes = 4000000}},	 /* 40 % of 10 MB/s */
		{.pid = 4, .delta = {.implicit_bytes = 50000000, .cpu_ns = SECOND / 5}},
	};
	struct monitor_sample sample = {.elapsed_ns = SECOND, .tasks = tasks, .ntasks = 4};
	struct sample_json_options options = {
		.cores = 2, .disk_mb_per_s = 100, .network_mb_per_s = 10};
	json_t *doc = sample_json(&sample, &options);
	static const json_int_t order[] = {4, 3, 2, 1};
	static const char *const of[] = {"disk", "network", "disk", "cpu"};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const json_t *t = json_array_get(json_object_get(doc, "tasks"), i);

		assert_int_equal(json_integer_value(json_object_get(t, "pid")), order[i]);
		assert_string_equal(string(t, "share_of"), of[i]);
	}
	json_decref(doc);
}

/* Unknown capacity: the busiest disk's speed counts, 20 MB in one second of service. */
static void test_capacity_measured(void **state)
{
	struct iocom_disk disks[] = {
		{.name = "a", .read_bytes = 20000000, .service_sum_ns = SECOND},
		{.name = "b", .read_bytes = 900, .service_sum_ns = 10},
	};
	struct iocom_task task = {.pid = 1, .delta = {.explicit_read_bytes = 10000000}};
	struct monitor_sample sample = {
		.elapsed_ns = SECOND, .tasks = &task, .ntasks = 1, .disks = disks, .ndisks = 2};
	struct sample_json_options options = {.cores = 1};
	json_t *doc = sample_json(&sample, &options);

	(void)state;
	assert_true(number(find(doc, "tasks", "pid", 1), "share") == 0.5);
	json_decref(doc);
}

/* If all tasks together exceed the capacity, their sum counts instead: no share is above 1. */
static void test_capacity_exceeded(void **state)
{
	struct iocom_task tasks[] = {
		{.pid = 1, .delta = {.explicit_write_bytes = 300000000}},
		{.pid = 2, .delta = {.implicit_bytes = 100000000}},
		{.pid = 3, .delta = {.sent_bytes = 50000000}},
	};
	struct monitor_sample sample = {.elapsed_ns = SECOND, .tasks = tasks, .ntasks = 3};
	struct sample_json_options options = {
		.cores = 1, .disk_mb_per_s = 150, .network_mb_per_s = 10};
	json_t *doc = sample_json(&sample, &options);

	(void)state;
	assert_true(number(find(doc, "tasks", "pid", 1), "share") == 0.75);
	assert_true(number(find(doc, "tasks", "pid", 2), "share") == 0.25);
	assert_true(number(find(doc, "tasks", "pid", 3), "share") == 1);
	json_decref(doc);
}

static void test_bad_names(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"plain", "plain"},
		{"\xc3\xa9", "\xc3\xa9"},
		{"\xff", "\xef\xbf\xbd"},
		{"a\xc3", "a\xef\xbf\xbd"},		  /* a character that is cut */
		{"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"}, /* an overlong form */
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* half a surrogate */
		{"\xf0\x9f\x90\xa7", "\xf0\x9f\x90\xa7"},
		{"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xe0\x80\xaf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	};
	/* Texts are cleaned for a log and a terminal. */
	static const struct {
		const char *in, *out;
	} plain[] = {
		{"", ""},
		{"as it is: \xc3\xa9 \xe6\x97\xa5 ~", "as it is: \xc3\xa9 \xe6\x97\xa5 ~"},
		{"a\nb\tc\x1b[2J\x7f", "a?b?c?[2J?"},
		{"\xc2\x9b"
		 "2J\xc2\xa0",
		 "??2J\xc2\xa0"}, /* C1 in UTF-8 */
		{"\x9b"
		 "2J\xff",
		 "?2J?"},
		{"cut \xe6\x97", "cut ??"},
	};
	struct iocom_task task = {.pid = 1};
	struct monitor_sample sample = {.tasks = &task, .ntasks = 1};
	struct sample_json_options options = {.node = "\xff", .cores = 1};
	char out[64], *text;
	json_t *doc;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *parsed;

		utf8_copy(out, sizeof(out), cases[i].in, 16);
		assert_string_equal(out, cases[i].out);
		parsed = json_string(out); /* jansson checks it */
		assert_non_null(parsed);
		json_decref(parsed);
	}
	utf8_copy(out, 4, "\xe6\x97\xa5\xe6\x97\xa5", 16);
	assert_string_equal(out, "\xe6\x97\xa5");
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		strcpy(out, plain[i].in);
		utf8_plain(out);
		assert_string_equal(out, plain[i].out);
	}
	memset(task.comm, 0xfe, sizeof(task.comm)); /* full, without a NUL */
	doc = sample_json(&sample, &options);
	text = json_dumps(doc, SAMPLE_JSON_DUMP);
	json_decref(doc);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	assert_int_equal(strlen(string(find(doc, "tasks", "pid", 1), "comm")), 48);
	free(text);
	json_decref(doc);
	/* A control sequence's start in UTF-8 is not printed unchanged. */
	snprintf(task.comm, sizeof(task.comm),
		 "a\xc2\x9b"
		 "31mb");
	doc = sample_json(&sample, &options);
	text = json_dumps(doc, SAMPLE_JSON_DUMP);
	json_decref(doc);
	assert_non_null(strstr(text, "\"a\\u009B31mb\""));
	free(text);
}

static const char *job_name(void *arg, uint64_t id)
{
	return id == *(uint64_t *)arg ? "n1-5-1" : NULL;
}

static uint64_t make_cgroup(const char *root, const char *path)
{
	char full[256];
	struct stat st;

	snprintf(full, sizeof(full), "%s%s", root, path);
	if (*path)
		assert_int_equal(mkdir(full, 0755), 0);
	assert_int_equal(stat(full, &st), 0);
	return st.st_ino;
}

static void remove_cgroup(const char *root, const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_int_equal(rmdir(full), 0);
}

/* The root is null; a plain cgroup is its path; a cgroup below a job is folded into the job. */
static void test_job_names(void **state)
{
	char root[] = "/tmp/iocom-names-XXXXXX";
	uint64_t ids[4];
	struct iocom_task tasks[4] = {{.pid = 1}, {.pid = 2}, {.pid = 3}, {.pid = 4}};
	struct iocom_job_load jobs[4];
	struct monitor_sample sample = {
		.elapsed_ns = SECOND, .tasks = tasks, .ntasks = 4, .jobs = jobs, .njobs = 4};
	struct sample_json_options options = {.cores = 1, .cgroup_root = root};
	const json_t *job;
	json_t *doc;

	(void)state;
	assert_non_null(mkdtemp(root));
	ids[0] = make_cgroup(root, "");
	ids[1] = make_cgroup(root, "/plain");
	ids[2] = make_cgroup(root, "/job");
	ids[3] = make_cgroup(root, "/job/inner");
	options.job_name = job_name;
	options.job_name_arg = &ids[2];
	for (size_t i = 0; i < 4; i++) {
		tasks[i].cgroup_id = ids[i];
		jobs[i] = (struct iocom_job_load){
			.cgroup_id = ids[i], .tasks = 1, .load.sent_bytes = 10 * (i + 1)};
	}
	doc = sample_json(&sample, &options);
	assert_true(json_is_null(json_object_get(find(doc, "tasks", "pid", 1), "job")));
	assert_string_equal(string(find(doc, "tasks", "pid", 2), "job"), "/plain");
	assert_string_equal(string(find(doc, "tasks", "pid", 3), "job"), "n1-5-1");
	assert_string_equal(string(find(doc, "tasks", "pid", 4), "job"), "n1-5-1");
	assert_int_equal(json_array_size(json_object_get(doc, "jobs")), 3);
	job = find(doc, "jobs", "cgroup_id", (json_int_t)ids[2]);
	assert_true(number(job, "tasks") == 2 && number(job, "sent_bytes") == 70);
	json_decref(doc);
	remove_cgroup(root, "/job/inner");
	remove_cgroup(root, "/job");
	remove_cgroup(root, "/plain");
	remove_cgroup(root, "");
}

static void test_names_remembered(void **state)
{
	char root[] = "/tmp/iocom-names-XXXXXX";
	struct sample_names *names;
	uint64_t a, b, parent = 1;

	(void)state;
	assert_non_null(mkdtemp(root));
	a = make_cgroup(root, "/a");
	names = sample_names_new(root);
	assert_string_equal(sample_names_path(names, a, &parent), "/a");
	assert_int_equal(parent, make_cgroup(root, ""));
	b = make_cgroup(root, "/a/b");
	sample_names_begin(names);
	assert_string_equal(sample_names_path(names, b, NULL), "/a/b");
	remove_cgroup(root, "/a/b");
	sample_names_begin(names);
	assert_string_equal(sample_names_path(names, b, NULL), "/a/b");
	assert_null(sample_names_path(names, UINT64_MAX, NULL));
	assert_string_equal(sample_names_path(names, a, NULL), "/a");
	sample_names_free(names);
	remove_cgroup(root, "/a");
	remove_cgroup(root, "");
}

/*
 * The steps of a Slurm job are one job, with the sum of what they did, here and in the rows by
 * remote address; tasks carry the same name. A job of iocom keeps its own.
 */
static void test_named_groups(void **state)
{
	static const char *const paths[] = {"/system.slice",
					    "/system.slice/slurmstepd.scope",
					    "/system.slice/slurmstepd.scope/job_12",
					    "/system.slice/slurmstepd.scope/job_12/step_0",
					    "/system.slice/slurmstepd.scope/job_12/step_1",
					    "/system.slice/a.service",
					    "/system.slice/a.service/job",
					    "/user.slice",
					    "/user.slice/user-0.slice",
					    "/user.slice/user-0.slice/session-1.scope"};
	enum { PATHS = sizeof(paths) / sizeof(paths[0]) };
	char root[] = "/tmp/iocom-named-XXXXXX";
	uint64_t ids[PATHS];
	struct iocom_task tasks[] = {{.pid = 1}, {.pid = 2, .uid = 1000}, {.pid = 3}, {.pid = 4}};
	struct iocom_job_load jobs[4];
	struct monitor_sample sample = {
		.elapsed_ns = SECOND, .tasks = tasks, .ntasks = 4, .jobs = jobs, .njobs = 4};
	struct sample_json_options options = {
		.cores = 1, .cgroup_root = root, .job_name = job_name, .job_name_arg = &ids[6]};
	const json_t *job;
	json_t *doc;

	(void)state;
	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < PATHS; i++)
		ids[i] = make_cgroup(root, paths[i]);
	for (size_t i = 0; i < 4; i++) {
		tasks[i].cgroup_id = ids[(size_t[]){3, 4, 6, 9}[i]];
		jobs[i] = (struct iocom_job_load){.cgroup_id = tasks[i].cgroup_id,
						  .tasks = 1,
						  .load.explicit_write_bytes = 100 << i,
						  .delta.explicit_write_bytes = 10 << i};
	}
	doc = sample_json(&sample, &options);
	assert_int_equal(json_array_size(json_object_get(doc, "jobs")), 3);
	job = find(doc, "jobs", "cgroup_id", (json_int_t)ids[2]);
	assert_string_equal(string(job, "name"), "slurm:12");
	assert_string_equal(string(job, "job"), paths[2]);
	assert_true(number(job, "tasks") == 2 && number(job, "explicit_write_bytes") == 300);
	assert_true(number(job, "explicit_write_bytes_per_s") == 30);
	assert_string_equal(string(find(doc, "tasks", "pid", 2), "name"), "slurm:12");
	assert_string_equal(string(find(doc, "tasks", "pid", 2), "job"), paths[2]);
	job = find(doc, "jobs", "cgroup_id", (json_int_t)ids[6]);
	assert_string_equal(string(job, "job"), "n1-5-1");
	assert_null(json_object_get(job, "name"));
	job = find(doc, "jobs", "cgroup_id", (json_int_t)ids[8]);
	assert_string_equal(string(job, "name"), "session:root");
	json_decref(doc);
	/* The user of a Slurm job sees it, although Slurm's own process in it is root's. */
	options.own_only = true;
	options.uid = 1000;
	doc = sample_json(&sample, &options);
	assert_int_equal(json_array_size(json_object_get(doc, "jobs")), 1);
	assert_string_equal(string(find(doc, "jobs", "cgroup_id", (json_int_t)ids[2]), "name"),
			    "slurm:12");
	json_decref(doc);
	/* Root's are his own job, and his session, even if another user works in it. */
	options.uid = 0;
	tasks[3].uid = 1000;
	doc = sample_json(&sample, &options);
	assert_int_equal(json_array_size(json_object_get(doc, "jobs")), 2);
	assert_string_equal(string(find(doc, "jobs", "cgroup_id", (json_int_t)ids[8]), "name"),
			    "session:root");
	json_decref(doc);
	for (size_t i = PATHS; i-- > 0;)
		remove_cgroup(root, paths[i]);
	remove_cgroup(root, "");
}

static void test_mount_found(void **state)
{
	char path[] = "/tmp/iocom-mounts-XXXXXX", out[64];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	dprintf(fd, "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n");
	assert_int_equal(sample_names_mount(path, out, sizeof(out)), -ENOENT);
	dprintf(fd, "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n");
	assert_int_equal(sample_names_mount(path, out, sizeof(out)), 0);
	assert_string_equal(out, "/sys/fs/cgroup/unified");
	assert_int_equal(sample_names_mount(path, out, 5), -ENAMETOOLONG);
	close(fd);
	unlink(path);
}

/* Other users' tasks and jobs are left out; totals and disks stay complete. */
static void test_own_only(void **state)
{
	struct iocom_task tasks[] = {
		{.pid = 1, .uid = 0, .cgroup_id = 10, .delta.sent_bytes = 5},
		{.pid = 2, .uid = 1000, .cgroup_id = 11, .delta.sent_bytes = 7},
		{.pid = 3, .uid = 1000, .cgroup_id = 12},
		{.pid = 4, .uid = 1001, .cgroup_id = 12},
	};
	struct iocom_job_load jobs[] = {{.cgroup_id = 10}, {.cgroup_id = 11}, {.cgroup_id = 12}};
	struct iocom_disk disk = {.name = "vda", .residual_bytes = -5};
	struct monitor_sample sample = {.elapsed_ns = SECOND,
					.tasks = tasks,
					.ntasks = 4,
					.jobs = jobs,
					.njobs = 3,
					.disks = &disk,
					.ndisks = 1};
	struct sample_json_options options = {.cores = 1, .own_only = true, .uid = 1000};
	json_t *doc = sample_json(&sample, &options);

	(void)state;
	assert_int_equal(json_array_size(json_object_get(doc, "tasks")), 2);
	assert_null(find(doc, "tasks", "pid", 1));
	assert_null(find(doc, "tasks", "pid", 4));
	assert_int_equal(json_array_size(json_object_get(doc, "jobs")), 1);
	assert_non_null(find(doc, "jobs", "cgroup_id", 11));
	assert_true(number(json_object_get(doc, "totals"), "sent_bytes_per_s") == 12);
	assert_true(number(json_array_get(json_object_get(doc, "disks"), 0), "residual_bytes") ==
		    -5);
	json_decref(doc);
}

static void test_rest_of_document(void **state)
{
	struct iocom_disk before = {.name = "vda", .requests = 100, .service_sum_ns = SECOND};
	struct iocom_disk disk = {.name = "vda",
				  .requests = 300,
				  .read_bytes = 8000,
				  .service_sum_ns = 2 * SECOND,
				  .stacked_bytes = 42};
	struct monitor_drop drops[] = {{"ledger", "it is lost", 3}, {"jobs", "x", 0}};
	struct monitor_program programs[] = {{"on_bio", 4, 400}, {"off", 0, 0}};
	struct monitor_map maps[] = {{"ledger", 8, 3, 4096},
				     {"threads", 0, MONITOR_ENTRIES_UNKNOWN, 0}};
	struct monitor_sample sample = {
		.time_ns = 100 * SECOND,
		.elapsed_ns = 2 * SECOND,
		.suspended_ns = 3 * SECOND,
		.gap_ns = 4 * SECOND,
		.lost = {.explicit_read_bytes = 7, .cpu_ns = 2000000},
		.disks = &disk,
		.ndisks = 1,
		.unattributed = {1, UINT64_MAX, 3},
		.drops = drops,
		.ndrops = 2,
		.programs = programs,
		.nprograms = 2,
		.measured_ns = 1500000,
		.events = {.per_s = 20, .ns_each = 50.5, .core_share = 0.000001},
		.maps = maps,
		.nmaps = 2,
		.classifier = {.task_bytes = 400, .inferred_bytes = 100, .no_direct_faults = true},
		.taken = {.talks = 6, .streams = 7},
		.sweep_ns = 1500000,
	};
	struct sample_json_options options = {
		.cores = 1, .disks_before = &before, .ndisks_before = 1};
	json_t *doc = sample_json(&sample, &options), *d, *p;

	(void)state;
	assert_true(number(doc, "suspended_ns") == 3e9 && number(doc, "gap_ns") == 4e9);
	d = json_object_get(doc, "lost");
	assert_true(number(d, "explicit_read_bytes") == 7 && number(d, "cpu_ms") == 2);
	assert_true(number(d, "sent_bytes") == 0);
	assert_null(json_object_get(d, "explicit_read_bytes_per_s"));
	d = json_array_get(json_object_get(doc, "disks"), 0);
	assert_true(number(d, "stacked_bytes") == 42 && number(d, "requests_per_s") == 100);
	assert_true(number(d, "utilisation") == 0.5 && number(d, "service_ms") == 5);
	assert_true(number(json_object_get(doc, "drops"), "ledger") == 3);
	assert_true(number(json_object_get(doc, "drops"), "jobs") == 0);
	assert_string_equal(string(json_object_get(doc, "drops_help"), "ledger"), "it is lost");
	assert_null(json_object_get(json_object_get(doc, "drops_help"), "jobs"));
	assert_true(number(json_object_get(doc, "unattributed"), "swap_out_bytes") == 3);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(doc, "unattributed"),
							    "writeback_bytes")),
			 INT64_MAX);
	assert_true(number(json_object_get(doc, "cost"), "measured_ms") == 1.5);
	assert_true(number(json_object_get(doc, "cost"), "events_per_s") == 20);
	assert_true(number(json_object_get(doc, "cost"), "ns_per_event") == 50.5);
	assert_true(number(json_object_get(doc, "cost"), "program_core_share") == 1e-6);
	p = json_object_get(json_object_get(doc, "cost"), "maps");
	assert_string_equal(string(json_array_get(p, 0), "name"), "ledger");
	assert_true(number(json_array_get(p, 0), "entries") == 3);
	assert_true(number(json_array_get(p, 0), "entries_max") == 8);
	assert_true(number(json_array_get(p, 0), "memory_bytes") == 4096);
	assert_true(json_is_null(json_object_get(json_array_get(p, 1), "entries")));
	assert_true(json_is_null(json_object_get(json_array_get(p, 1), "entries_max")));
	assert_true(json_is_null(json_object_get(json_array_get(p, 1), "memory_bytes")));
	p = json_object_get(json_object_get(doc, "cost"), "taken");
	assert_true(number(p, "talks") == 6 && number(p, "streams") == 7);
	p = json_object_get(json_object_get(doc, "cost"), "classifier");
	assert_true(number(p, "task_bytes") == 400 && number(p, "inferred_bytes") == 100);
	assert_true(number(p, "confidence") == 0.75);
	p = json_object_get(p, "missing");
	assert_int_equal(json_array_size(p), 1);
	assert_string_equal(json_string_value(json_array_get(p, 0)), "direct_faults");
	p = json_object_get(json_object_get(doc, "cost"), "programs");
	assert_true(number(json_array_get(p, 0), "ns_per_run") == 100);
	assert_true(json_is_null(json_object_get(json_array_get(p, 1), "ns_per_run")));
	assert_true(number(json_object_get(doc, "cost"), "sweep_ms") == 1.5);
	json_decref(doc);
	/* The service of requests that ended in it is longer than the interval: busy all the time.
	 */
	sample.elapsed_ns = SECOND * 98 / 100;
	doc = sample_json(&sample, &options);
	d = json_array_get(json_object_get(doc, "disks"), 0);
	assert_true(number(d, "utilisation") == 1 && number(d, "service_ms") == 5);
	json_decref(doc);
	sample.elapsed_ns = 2 * SECOND;
	options.disks_before = NULL;
	options.ndisks_before = 0;
	doc = sample_json(&sample, &options); /* 98 s of counting are outside these 2 s */
	d = json_array_get(json_object_get(doc, "disks"), 0);
	assert_true(json_is_null(json_object_get(d, "utilisation")));
	json_decref(doc);
}

static void add(struct sample_window *w, struct iocom_task *tasks, size_t n, uint64_t cpu_ns)
{
	struct iocom_job_load job = {.cgroup_id = 5, .delta.cpu_ns = cpu_ns};
	struct iocom_disk disk = {.name = "vda", .requests = cpu_ns};
	struct monitor_sample sample = {.elapsed_ns = SECOND,
					.tasks = tasks,
					.ntasks = n,
					.jobs = &job,
					.njobs = 1,
					.disks = &disk,
					.ndisks = 1,
					.run_queue = (double)cpu_ns};

	assert_int_equal(sample_window_add(w, &sample), 0);
}

/*
 * Three readings: the ended task is there once, deltas add up, live tasks have the newest
 * values.
 */
static void test_window(void **state)
{
	struct iocom_task first[] = {{.pid = 9, .delta.sent_bytes = 1, .load.sent_bytes = 1},
				     {.pid = 4, .exited = true, .delta.sent_bytes = 50}};
	struct iocom_task second[] = {{.pid = 9, .delta.sent_bytes = 2, .load.sent_bytes = 3},
				      {.pid = 4, .start_ns = 8, .delta.sent_bytes = 6}};
	struct sample_window *w = sample_window_new();
	const struct iocom_disk *before;
	struct monitor_sample out;
	size_t nbefore;

	(void)state;
	assert_int_equal(sample_window_take(w, &out, &before, &nbefore), -ENODATA);
	add(w, first, 2, 10);
	add(w, second, 2, 20);
	assert_int_equal(sample_window_take(w, &out, &before, &nbefore), 0);
	assert_int_equal(nbefore, 0);
	assert_int_equal(out.ntasks, 3); /* pid 4 came back as another process */
	assert_true(out.tasks[0].pid == 4 && out.tasks[0].exited);
	assert_int_equal(out.tasks[0].delta.sent_bytes, 50);
	assert_true(out.tasks[1].pid == 4 && !out.tasks[1].exited);
	assert_int_equal(out.tasks[2].delta.sent_bytes, 3);
	assert_int_equal(out.tasks[2].load.sent_bytes, 3);
	assert_int_equal(out.jobs[0].delta.cpu_ns, 30);
	assert_int_equal(out.elapsed_ns, 2 * SECOND);
	assert_true(out.run_queue == 15);
	add(w, second, 1, 40);
	assert_int_equal(sample_window_take(w, &out, &before, &nbefore), 0);
	assert_int_equal(out.ntasks, 1);
	assert_int_equal(out.elapsed_ns, SECOND);
	assert_int_equal(nbefore, 1);
	assert_int_equal(before[0].requests, 20);
	assert_int_equal(sample_window_take(w, &out, &before, &nbefore), -ENODATA);
	sample_window_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_task_fields),
		cmocka_unit_test(test_degraded),
		cmocka_unit_test(test_every_count_has_a_rate),
		cmocka_unit_test(test_lacking_is_null),
		cmocka_unit_test(test_sorted_by_share),
		cmocka_unit_test(test_capacity_measured),
		cmocka_unit_test(test_capacity_exceeded),
		cmocka_unit_test(test_bad_names),
		cmocka_unit_test(test_job_names),
		cmocka_unit_test(test_names_remembered),
		cmocka_unit_test(test_named_groups),
		cmocka_unit_test(test_mount_found),
		cmocka_unit_test(test_own_only),
		cmocka_unit_test(test_rest_of_document),
		cmocka_unit_test(test_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
