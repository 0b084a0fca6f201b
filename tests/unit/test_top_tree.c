/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom top`: trees, values from /proc, histories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balancer/top/top_history.h"
#include "balancer/top/top_index.h"
#include "balancer/top/top_model.h"
#include "balancer/top/top_proc.h"

/* Makes tasks of a document from {pid, parent, cpu}. */
static json_t *family(const int (*tasks)[3], size_t n)
{
	json_t *doc = json_pack("{s:[],s:[],s:[]}", "tasks", "jobs", "disks");

	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			json_object_get(doc, "tasks"),
			json_pack("{s:i,s:i,s:s,s:f,s:f}", "pid", tasks[i][0], "ppid", tasks[i][1],
				  "comm", tasks[i][0] == 5 ? "wanted" : "task", "share",
				  tasks[i][2] / 100.0, "cpu_ms_per_s", tasks[i][2] * 10.0));
	return doc;
}

/* Writes the tree as "pid depth rails last" for each row. */
static void draw(struct top_model *model, const struct top_model_options *o, char *out, size_t size)
{
	const struct top_row *rows;
	size_t n;

	out[0] = 0;
	assert_int_equal(top_model_arrange(model, o), 0);
	rows = top_model_rows(model, &n);
	for (size_t i = 0; i < n; i++) {
		size_t have = strlen(out);

		snprintf(out + have, size - have, "%s%.0f:%u%s%s", i ? " " : "",
			 rows[i].value[TOP_PID], rows[i].depth, rows[i].last ? "" : "+",
			 rows[i].context ? "c" : "");
	}
}

static void assert_tree(const int (*tasks)[3], size_t n, const struct top_model_options *o,
			const char *expected)
{
	struct top_model *model = top_model_new();
	json_t *doc = family(tasks, n);
	char out[4096];

	assert_int_equal(top_model_set(model, doc, NULL), 0);
	draw(model, o, out, sizeof(out));
	assert_string_equal(out, expected);
	json_decref(doc);
	top_model_free(model);
}

static void test_tree(void **state)
{
	static const int tasks[][3] = {{1, 0, 0}, {2, 1, 5}, {3, 1, 1},
				       {4, 3, 9}, {5, 2, 1}, {6, 99, 50}};
	struct top_model_options o = {.key = TOP_SHARE, .tree = true};

	(void)state;
	/*
	 * 6 has a parent that we do not see, so it is a root. 3 and its child did more than 2
	 * and its child.
	 */
	assert_tree(tasks, 6, &o, "6:0 1:0 3:1+ 4:2 2:1 5:2");
	o.reverse = true;
	assert_tree(tasks, 6, &o, "1:0 2:1+ 5:2 3:1 4:2 6:0");
	o.reverse = false;
	o.key = TOP_PID;
	assert_tree(tasks, 6, &o, "1:0 2:1+ 5:2 3:1 4:2 6:0");
	o.text = "wanted"; /* its ancestors stay visible */
	assert_tree(tasks, 6, &o, "1:0c 2:1c 5:2");
	o.text = "nobody";
	assert_tree(tasks, 6, &o, "");
}

/* Even if parents contradict each other, every row appears once. */
static void test_tree_circles(void **state)
{
	static const int circle[][3] = {{1, 3, 1}, {2, 1, 1}, {3, 2, 1}, {4, 4, 1}, {5, 1, 1}};
	struct top_model_options o = {.key = TOP_PID, .tree = true};
	struct top_model *model = top_model_new();
	enum { CHAIN = 1000 };
	int(*chain)[3] = calloc(CHAIN, sizeof(*chain));
	const struct top_row *rows;
	json_t *doc;
	size_t n;

	(void)state;
	assert_tree(circle, 5, &o, "1:0 2:1+ 3:2 5:1 4:0");
	for (int i = 0; i < CHAIN; i++) {
		chain[i][0] = i + 1;
		chain[i][1] = i;
	}
	doc = family(chain, CHAIN);
	assert_int_equal(top_model_set(model, doc, NULL), 0);
	assert_int_equal(top_model_arrange(model, &o), 0);
	rows = top_model_rows(model, &n);
	assert_int_equal(n, CHAIN);
	for (size_t i = 0; i < n; i++)
		assert_int_equal((int)rows[i].value[TOP_PID], (int)i + 1);
	json_decref(doc);
	top_model_free(model);
	free(chain);
}

static void test_tree_of_jobs(void **state)
{
	json_t *doc = json_pack(
		"{s:[{s:i,s:s,s:s},{s:i,s:s,s:s},{s:i,s:s,s:n}],"
		" s:[{s:s,s:i,s:f},{s:s,s:i,s:f},{s:s,s:i,s:f},{s:s,s:i,s:f},{s:n,s:i}], s:[]}",
		"tasks", "pid", 7, "comm", "x", "job", "/a/b/c", "pid", 8, "comm", "y", "job",
		"n1-1", "pid", 9, "comm", "z", "job", "jobs", "job", "/a", "cgroup_id", 1, "share",
		0.1, "job", "/a/b/c", "cgroup_id", 2, "share", 0.3, "job", "n1-1", "cgroup_id", 3,
		"share", 0.2, "job", "/ab", "cgroup_id", 4, "share", 0.01, "job", "cgroup_id", 5,
		"disks");
	static const struct {
		const char *job;
		unsigned depth;
		bool is_job;
	} expected[] = {{"/a", 0, true},   {"/a/b/c", 1, true}, {"/a/b/c", 2, false},
			{"n1-1", 0, true}, {"n1-1", 1, false},	{"/ab", 0, true},
			{"", 0, true},	   {"", 1, false}};
	struct top_model_options o = {.key = TOP_SHARE, .tree = true, .jobs = true};
	struct top_model *model = top_model_new();
	const struct top_row *rows;
	size_t n;

	(void)state;
	assert_non_null(doc);
	assert_int_equal(top_model_set(model, doc, NULL), 0);
	assert_int_equal(top_model_arrange(model, &o), 0);
	rows = top_model_rows(model, &n);
	assert_int_equal(n, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(rows[i].job, expected[i].job);
		assert_int_equal(rows[i].depth, expected[i].depth);
		assert_true(rows[i].is_job == expected[i].is_job);
	}
	json_decref(doc);
	top_model_free(model);
}

static void write_file(const char *dir, const char *name, const char *text, size_t n)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	close(fd);
}

static void make_task(const char *root, int pid, const char *stat, const char *line, size_t n)
{
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/%d", root, pid);
	assert_int_equal(mkdir(dir, 0700), 0);
	write_file(dir, "stat", stat, strlen(stat));
	write_file(dir, "cmdline", line, n);
}

static void remove_tree(const char *root)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	assert_int_equal(system(command), 0);
}

static int setup_root(void **state)
{
	*state = strdup("/tmp/iocom-top-proc-XXXXXX");
	return *state && mkdtemp(*state) ? 0 : -1;
}

static int teardown_root(void **state)
{
	remove_tree(*state);
	free(*state);
	return 0;
}

static void test_proc(void **state)
{
	static const char line[] =
		"cc1\0-O2\0a\x1b[2J\xff file\0"; /* the size includes the NUL of the literal */
	static char huge[100000];
	const char *root = *state;
	struct top_proc *proc;

	memset(huge, 'x', sizeof(huge));
	make_task(root, 10, "10 (cc1) S 3 10 10 0", line, sizeof(line));
	make_task(root, 11, "11 (a) b) S) R 10 1", "", 0);
	make_task(root, 12, "12 (huge) S 0 1", huge, sizeof(huge));
	make_task(root, 13, "13 nonsense", "x", 1);
	proc = top_proc_new(root);
	assert_int_equal(top_proc_parent(proc, 10, "cc1"), 3);
	assert_int_equal(top_proc_parent(proc, 11, "a) b) S"),
			 10); /* a name that looks like further fields */
	assert_int_equal(top_proc_parent(proc, 12, "huge"), 0);
	assert_int_equal(top_proc_parent(proc, 13, "x"), 0);
	assert_int_equal(top_proc_parent(proc, 14, "none"), 0);
	assert_int_equal(top_proc_parent(proc, -1, "none"), 0);
	assert_string_equal(top_proc_command(proc, 10, "cc1"), "cc1 -O2 a\x1b[2J\xef\xbf\xbd file");
	/* a kernel thread has no command line */
	assert_null(top_proc_command(proc, 11, "a) b) S"));
	assert_int_equal(strlen(top_proc_command(proc, 12, "huge")), TOP_COMMAND_MAX - 1);
	assert_null(top_proc_command(proc, 13, "x"));
	/* Another task's name means that the pid is of another namespace or was reused. */
	assert_null(top_proc_command(proc, 10, "other"));
	assert_int_equal(top_proc_parent(proc, 10, "other"), 0);
	top_proc_turn(proc);
	assert_null(top_proc_command(proc, 10, "other"));
	assert_int_equal(top_proc_parent(proc, 10, "cc1"), 3);
	assert_null(
		top_proc_command(proc, 10, "cc1")); /* another name was asked for in this turn */
	top_proc_turn(proc);
	assert_non_null(top_proc_command(proc, 10, "cc1"));
	/* Answers are remembered for some turns, even when the task is gone. */
	remove_tree(root);
	assert_int_equal(top_proc_parent(proc, 10, "cc1"), 3);
	for (unsigned i = 0; i < 20; i++)
		top_proc_turn(proc);
	assert_int_equal(top_proc_parent(proc, 10, "cc1"), 0);
	top_proc_free(proc);
	top_proc_free(NULL);
}

static json_t *turn_document(double cores, int pid, const char *comm, double cpu_ms)
{
	return json_pack("{s:{s:f,s:f},s:[{s:i,s:s,s:f}],s:[],s:[{s:s,s:f}]}", "totals", "cores",
			 cores, "cpu_ms_per_s", 500.0, "tasks", "pid", pid, "comm", comm,
			 "cpu_ms_per_s", cpu_ms, "jobs", "disks", "name", "vda", "utilisation",
			 0.25);
}

static void turn(struct top_history *history, int pid, const char *comm, double cpu_ms)
{
	json_t *doc = turn_document(2, pid, comm, cpu_ms);

	top_history_add(history, doc);
	json_decref(doc);
}

static void test_history(void **state)
{
	struct top_history *history = top_history_new();
	float out[TOP_HISTORY_TURNS + 8];

	(void)state;
	turn(history, 7, "a", 1000);
	turn(history, 8, "b", 0); /* 7 did nothing, so it has no history yet */
	turn(history, 7, "a", 500);
	top_history_get(history, 7, TOP_SERIES_CPU, out, 4);
	assert_true(out[0] == 0 && out[1] == 1 && out[2] == 0 && out[3] == 0.5f);
	top_history_get(history, 0, TOP_SERIES_CPU, out, 2);
	assert_true(out[0] == 0.25f && out[1] == 0.25f);
	top_history_get(history, top_history_disk("vda"), TOP_SERIES_DISK, out, 4);
	assert_true(out[0] == 0 && out[1] == 0.25f && out[3] == 0.25f);
	top_history_get(history, 8, TOP_SERIES_CPU, out, 1);
	assert_true(out[0] == 0);
	turn(history, 7, "other", 250); /* another task has the pid now */
	top_history_get(history, 7, TOP_SERIES_CPU, out, 3);
	assert_true(out[0] == 0 && out[1] == 0 && out[2] == 0.25f);
	for (unsigned i = 0; i < TOP_HISTORY_TURNS - 1; i++)
		turn(history, 9, "c", 100);
	top_history_get(history, 7, TOP_SERIES_CPU, out, TOP_HISTORY_TURNS + 8);
	assert_true(out[8] == 0.25f); /* the oldest kept value, and nothing before it */
	assert_true(out[7] == 0 && out[9] == 0);
	turn(history, 9, "c", 100);
	top_history_get(history, 7, TOP_SERIES_CPU, out, TOP_HISTORY_TURNS + 8);
	for (unsigned i = 0; i < TOP_HISTORY_TURNS + 8; i++)
		assert_true(out[i] == 0);
	top_history_free(history);
	top_history_free(NULL);
}

/* More busy tasks than are remembered: the others have no history. */
static void test_history_bound(void **state)
{
	struct top_history *history = top_history_new();
	unsigned with = 0;
	float out;

	(void)state;
	for (unsigned turns = 0; turns < 3; turns++) {
		json_t *doc = turn_document(2, 1, "a", 0), *tasks = json_object_get(doc, "tasks");

		for (int pid = 1000; pid < 1000 + 2 * TOP_HISTORY_THINGS; pid++)
			json_array_append_new(
				tasks, json_pack("{s:i,s:f}", "pid", pid, "cpu_ms_per_s", 10.0));
		top_history_add(history, doc);
		json_decref(doc);
	}
	for (uint64_t pid = 1000; pid < 1000 + 2 * TOP_HISTORY_THINGS; pid++) {
		top_history_get(history, pid, TOP_SERIES_CPU, &out, 1);
		with += out > 0;
	}
	assert_in_range(with, TOP_HISTORY_THINGS - 8, TOP_HISTORY_THINGS);
	top_history_get(history, 0, TOP_SERIES_CPU, &out, 1);
	assert_true(out > 0); /* the node's history stays */
	top_history_free(history);
}

static bool odd(const struct top_entry *entry, void *arg)
{
	(void)arg;
	return entry->id & 1;
}

static void test_index(void **state)
{
	struct top_index index = {0};

	(void)state;
	for (uint64_t i = 0; i < 500; i++) {
		struct top_entry *entry = calloc(1, sizeof(*entry));

		entry->id = i * 7919 % 500;
		assert_int_equal(top_index_add(&index, entry), 0);
	}
	for (uint64_t i = 0; i < 500; i++)
		assert_non_null(top_index_find(&index, i));
	assert_null(top_index_find(&index, 500));
	top_index_sweep(&index, odd, NULL);
	assert_int_equal(index.n, 250);
	assert_null(top_index_find(&index, 2));
	assert_int_equal(((struct top_entry *)top_index_find(&index, 3))->id, 3);
	top_index_clear(&index);
	assert_null(top_index_find(&index, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_tree_circles),
		cmocka_unit_test(test_tree_of_jobs),
		cmocka_unit_test_setup_teardown(test_proc, setup_root, teardown_root),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_history_bound),
		cmocka_unit_test(test_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
