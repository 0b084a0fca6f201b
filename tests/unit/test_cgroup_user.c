/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The group of a user's jobs: what is written into which file, and what damaged or missing files
 * are taken for.  Folders with plain files play the hierarchies.
 */
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

#include "agent/guest/user_limits.h"
#include "balancer/settings/settings.h"
#include "tests/lib/logged.h"
#include "user/cgroup_user.h"

static char dir[] = "/tmp/iocom-cgroup-user-XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void put(const char *name, const char *text)
{
	char path[256], command[512];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(command, sizeof(command), "mkdir -p $(dirname %s)", path);
	assert_int_equal(system(command), 0);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static const char *get(const char *name)
{
	static char text[256];
	char path[256];
	FILE *in;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	in = fopen(path, "r");
	if (!in)
		return "missing";
	n = fread(text, 1, sizeof(text) - 1, in);
	text[n] = 0;
	fclose(in);
	return text;
}

/* The job's group in a v2 hierarchy "u", and with NV1 in v1's "m" and "p". */
static struct cgroup group_in(size_t nv1)
{
	static const char *const v1[] = {"m", "p"};
	struct cgroup group = {.nv1 = nv1};

	snprintf(group.v2, sizeof(group.v2), "%s/u/user@7/j", dir);
	for (size_t i = 0; i < nv1; i++)
		snprintf(group.v1[i], sizeof(group.v1[i]), "%s/%s/user@7/j", dir, v1[i]);
	return group;
}

static void test_name(void **state)
{
	char name[32];

	(void)state;
	assert_int_equal(cgroup_user_job(name, sizeof(name), 4294967294u, "n1-1-7"), 0);
	assert_string_equal(name, "jobs/user@4294967294/n1-1-7");
	assert_int_equal(cgroup_user_job(name, 20, 4294967294u, "n1-1-7"), -ENAMETOOLONG);
}

/* --- limits --- */

static const struct cgroup_limits limits = {
	.tasks = 50, .memory_bytes = 1000000, .swap_bytes = 5000};

static void test_limits_v2(void **state)
{
	const struct cgroup group = group_in(0);

	(void)state;
	put("u/user@7/pids.max", "max");
	put("u/user@7/memory.max", "max");
	put("u/user@7/memory.swap.max", "max");
	assert_int_equal(cgroup_user_limit(&group, &limits), 0);
	assert_string_equal(get("u/user@7/pids.max"), "50");
	assert_string_equal(get("u/user@7/memory.max"), "1000000");
	assert_string_equal(get("u/user@7/memory.swap.max"), "5000");
	/* none: what an earlier job set goes */
	assert_int_equal(cgroup_user_limit(&group, &(struct cgroup_limits){.swap_bytes = 3}), 0);
	assert_string_equal(get("u/user@7/pids.max"), "max");
	assert_string_equal(get("u/user@7/memory.max"), "max");
	assert_string_equal(get("u/user@7/memory.swap.max"), "max");
}

static void test_limits_v1(void **state)
{
	const struct cgroup group = group_in(2);

	(void)state;
	put("u/user@7/cgroup.procs", "");
	put("m/user@7/memory.limit_in_bytes", "");
	put("m/user@7/memory.memsw.limit_in_bytes", "");
	put("m/user@7/memory.use_hierarchy", "0");
	put("p/user@7/pids.max", "");
	assert_int_equal(cgroup_user_limit(&group, &limits), 0);
	assert_string_equal(get("p/user@7/pids.max"), "50");
	assert_string_equal(get("m/user@7/memory.limit_in_bytes"), "1000000");
	assert_string_equal(get("m/user@7/memory.memsw.limit_in_bytes"), "1005000");
	assert_string_equal(get("m/user@7/memory.use_hierarchy"), "1");
	assert_int_equal(cgroup_user_limit(&group, &(struct cgroup_limits){0}), 0);
	assert_string_equal(get("p/user@7/pids.max"), "max");
	assert_string_equal(get("m/user@7/memory.limit_in_bytes"), "-1");
	assert_string_equal(get("m/user@7/memory.memsw.limit_in_bytes"), "-1");
}

static void test_limits_missing(void **state)
{
	struct cgroup group = group_in(2);

	(void)state;
	put("u/user@7/cgroup.procs", "");
	put("m/user@7/cgroup.procs", "");
	put("p/user@7/cgroup.procs", "");
	assert_int_equal(cgroup_user_limit(&group, &limits), CGROUP_TASKS | CGROUP_MEMORY);
	/* A limit that is not wanted is not missing. */
	assert_int_equal(cgroup_user_limit(&group, &(struct cgroup_limits){.tasks = 1}),
			 CGROUP_TASKS);
	assert_int_equal(cgroup_user_limit(&group, &(struct cgroup_limits){0}), 0);
	put("p/user@7/pids.max", "");
	assert_int_equal(cgroup_user_limit(&group, &limits), CGROUP_MEMORY);
	put("m/user@7/memory.limit_in_bytes", "");
	assert_int_equal(cgroup_user_limit(&group, &limits), 0);
	/* no accounting of swap: no file is made for it */
	assert_string_equal(get("m/user@7/memory.memsw.limit_in_bytes"), "missing");
	snprintf(group.v2, sizeof(group.v2), "no-slash");
	assert_int_equal(cgroup_user_limit(&group, &limits), 0);
}

/* --- events --- */

static void test_events(void **state)
{
	uint64_t value = 99;

	(void)state;
	assert_int_equal(cgroup_user_event("low 0\noom_kill 12\n", "oom_kill", &value), 0);
	assert_int_equal(value, 12);
	assert_int_equal(cgroup_user_event("oom_kill 3", "oom_kill", &value), 0);
	assert_int_equal(value, 3);
	/* part of another key, before or after */
	assert_int_equal(cgroup_user_event("oom_kill_disable 1\noom 4\n", "oom_kill", &value),
			 -ENOENT);
	assert_int_equal(cgroup_user_event("xmax 4\n", "max", &value), -ENOENT);
	assert_int_equal(cgroup_user_event("", "max", &value), -ENOENT);
	assert_int_equal(cgroup_user_event("max", "max", &value), -ENOENT);
	assert_int_equal(cgroup_user_event("max \n", "max", &value), -EBADMSG);
	assert_int_equal(cgroup_user_event("max -1\n", "max", &value), -EBADMSG);
	assert_int_equal(cgroup_user_event("max 7x\n", "max", &value), -EBADMSG);
	assert_int_equal(cgroup_user_event("max 99999999999999999999\n", "max", &value), -EBADMSG);
	assert_int_equal(cgroup_user_event("max 18446744073709551615\n", "max", &value), 0);
	assert_true(value == UINT64_MAX);
}

static void test_troubles(void **state)
{
	const struct cgroup group = group_in(2);
	struct cgroup_troubles t;

	(void)state;
	cgroup_user_troubles(&group, &t); /* nothing there */
	assert_int_equal(t.oom_kills + t.forks_refused + t.user_forks_refused, 0);
	/* v2 before Linux 6.11: at the job's group */
	put("u/user@7/j/memory.events", "low 0\nhigh 0\nmax 5\noom 2\noom_kill 2\n");
	put("u/user@7/j/pids.events", "max 7\n");
	cgroup_user_troubles(&group, &t);
	assert_int_equal(t.oom_kills, 2);
	assert_int_equal(t.forks_refused, 7);
	assert_int_equal(t.user_forks_refused, 0);
	/* later: at the group whose limit it was */
	put("u/user@7/j/pids.events", "max 0\n");
	put("u/user@7/pids.events.local", "max 9\n");
	put("u/user@7/pids.events", "max 9\n");
	cgroup_user_troubles(&group, &t);
	assert_int_equal(t.forks_refused, 0);
	assert_int_equal(t.user_forks_refused, 9);
	/* v1 */
	put("u/user@7/j/memory.events", "garbage");
	put("m/user@7/j/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
	put("p/user@7/j/pids.events", "max 11\n");
	cgroup_user_troubles(&group, &t);
	assert_int_equal(t.oom_kills, 4);
	assert_int_equal(t.forks_refused, 11);
}

/* --- what the machine offers --- */

static void test_bounds(void **state)
{
	struct cgroup jobs = {.nv1 = 2};
	struct cgroup_bounds b;
	char proc[128];

	(void)state;
	snprintf(proc, sizeof(proc), "%s/proc", dir);
	snprintf(jobs.v2, sizeof(jobs.v2), "%s/u/scope/jobs", dir);
	snprintf(jobs.v1[0], sizeof(jobs.v1[0]), "%s/m/scope/jobs", dir);
	snprintf(jobs.v1[1], sizeof(jobs.v1[1]), "%s/p/scope/jobs", dir);
	cgroup_user_bounds(proc, &jobs, &b);
	assert_int_equal(b.tasks + b.memory_bytes + b.swap_bytes, 0);
	put("proc/sys/kernel/pid_max", "32768\n");
	put("proc/sys/kernel/threads-max", "nonsense\n");
	put("proc/meminfo", "MemTotal:        1000 kB\nSwapTotal:        500 kB\n");
	cgroup_user_bounds(proc, &jobs, &b);
	assert_int_equal(b.tasks, 32768);
	assert_int_equal(b.memory_bytes, 1024000);
	assert_int_equal(b.swap_bytes, 512000);
	put("proc/sys/kernel/threads-max", "30000\n");
	/* Groups around the jobs count up to the mount, and not what is above that. */
	put("pids.max", "5\n");
	put("u/cgroup.procs", "");
	put("u/scope/cgroup.procs", "");
	put("u/scope/pids.max", "max\n");
	put("u/scope/memory.max", "900000\n");
	put("u/scope/memory.swap.max", "400000\n");
	cgroup_user_bounds(proc, &jobs, &b);
	assert_int_equal(b.tasks, 30000);
	assert_int_equal(b.memory_bytes, 900000);
	assert_int_equal(b.swap_bytes, 400000);
	put("p/cgroup.procs", "");
	put("p/scope/cgroup.procs", "");
	put("p/pids.max", "200\n");
	put("p/scope/pids.max", "300\n");
	put("m/cgroup.procs", "");
	put("m/memory.limit_in_bytes", "9223372036854771712\n");
	put("m/scope/jobs/cgroup.procs", "");
	put("m/scope/cgroup.procs", "");
	put("m/scope/jobs/memory.limit_in_bytes", "800000\n");
	cgroup_user_bounds(proc, &jobs, &b);
	assert_int_equal(b.tasks, 200);
	assert_int_equal(b.memory_bytes, 800000);
	put("proc/meminfo", "MemTotal:  kB\n");
	cgroup_user_bounds(proc, &jobs, &b);
	assert_int_equal(b.swap_bytes, 0);
}

/* --- settings and defaults --- */

static const struct config_key *key_of(const char *name)
{
	for (size_t i = 0; i < settings_program.nkeys; i++)
		if (!strcmp(settings_program.keys[i].name, name))
			return &settings_program.keys[i];
	return NULL;
}

static void test_settings(void **state)
{
	static const struct {
		const char *key, *value;
		int64_t wanted;
	} good[] = {
		{"user-tasks-max", "auto", SETTINGS_LIMIT_AUTO},
		{"user-tasks-max", "none", 0},
		{"user-tasks-max", "0", 0},
		{"user-tasks-max", "1", 1},
		{"user-tasks-max", "4194304", 4194304},
		{"user-memory-mb", "none", 0},
		{"user-memory-mb", "auto", SETTINGS_LIMIT_AUTO},
		{"user-memory-mb", "16", 16},
		{"user-memory-mb", "1073741824", 1073741824},
	};
	static const char *const bad[][2] = {
		{"user-tasks-max", ""},	       {"user-tasks-max", "-1"},
		{"user-tasks-max", "4194305"}, {"user-tasks-max", "12x"},
		{"user-tasks-max", " 12"},     {"user-tasks-max", "99999999999999999999"},
		{"user-tasks-max", "max"},     {"user-memory-mb", "15"},
		{"user-memory-mb", "1.5"},     {"user-memory-mb", "1073741825"},
	};
	struct settings *set = calloc(1, sizeof(*set));
	struct iocom_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		char *text;

		set->user_tasks_max = set->user_memory_mb = 12345;
		assert_int_equal(
			config_set(&settings_program, good[i].key, good[i].value, set, &err), 0);
		assert_int_equal(!strcmp(good[i].key, "user-tasks-max") ? set->user_tasks_max
									: set->user_memory_mb,
				 good[i].wanted);
		text = settings_text(set, key_of(good[i].key));
		assert_string_equal(text, strcmp(good[i].value, "0") ? good[i].value : "none");
		free(text);
	}
	set->user_tasks_max = set->user_memory_mb = 12345;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(config_set(&settings_program, bad[i][0], bad[i][1], set, &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, bad[i][0]));
		assert_non_null(strstr(err.text, "auto or none, not '"));
	}
	assert_int_equal(set->user_tasks_max, 12345);
	assert_int_equal(set->user_memory_mb, 12345);
	free(set);
}

static void test_choice(void **state)
{
	const struct cgroup_bounds bounds = {
		.tasks = 32768, .memory_bytes = 1000u << 20, .swap_bytes = 100u << 20};
	struct settings *set = calloc(1, sizeof(*set));
	struct cgroup_limits l;

	(void)state;
	set->user_tasks_max = set->user_memory_mb = SETTINGS_LIMIT_AUTO;
	user_limits_choose(set, &bounds, &l);
	assert_int_equal(l.tasks, 10922);
	assert_int_equal(l.memory_bytes, 900u << 20);
	assert_in_range(l.swap_bytes, (90u << 20) - 2, 90u << 20);
	/* an unknown machine has no limit, a tiny one has */
	user_limits_choose(set, &(struct cgroup_bounds){0}, &l);
	assert_int_equal(l.tasks + l.memory_bytes + l.swap_bytes, 0);
	user_limits_choose(set, &(struct cgroup_bounds){.tasks = 2}, &l);
	assert_int_equal(l.tasks, 1);
	set->user_tasks_max = 50;
	set->user_memory_mb = 500;
	user_limits_choose(set, &bounds, &l);
	assert_int_equal(l.tasks, 50);
	assert_int_equal(l.memory_bytes, 500u << 20);
	assert_int_equal(l.swap_bytes, 50u << 20);
	/* more than there is: all of the swap, not more */
	set->user_memory_mb = 4000;
	user_limits_choose(set, &bounds, &l);
	assert_int_equal(l.swap_bytes, 100u << 20);
	set->user_tasks_max = set->user_memory_mb = SETTINGS_LIMIT_NONE;
	user_limits_choose(set, &bounds, &l);
	assert_int_equal(l.tasks + l.memory_bytes + l.swap_bytes, 0);
	free(set);
}

/* Root has no limits; others have those of the settings. */
static void test_whose(void **state)
{
	struct settings *set = calloc(1, sizeof(*set));
	struct user_limits u = {.set = set, .limits = {.tasks = 50}};

	(void)state;
	assert_null(user_limits_of(NULL, 1000, 0));
	assert_int_equal(user_limits_of(&u, 1000, 0)->tasks, 50);
	assert_int_equal(user_limits_of(&u, 0, 0)->tasks, 0);
	assert_int_equal(user_limits_of(&u, 0, 0)->memory_bytes, 0);
	free(set);
}

static void test_json(void **state)
{
	struct user_limits u = {.limits = {.tasks = 50, .swap_bytes = 3 << 20},
				.missing = CGROUP_MEMORY};
	json_t *o = user_limits_json(&u);
	char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);

	(void)state;
	assert_string_equal(
		text, "{\"memory_mb\":null,\"missing\":[\"memory\"],\"swap_mb\":3,\"tasks\":50}");
	free(text);
	json_decref(o);
	u.missing = CGROUP_TASKS;
	o = user_limits_json(&u);
	assert_string_equal(json_string_value(json_array_get(json_object_get(o, "missing"), 0)),
			    "tasks");
	json_decref(o);
}

/* An agent whose cgroups offer nothing says so, once for each limit, and goes on. */
static void test_missing_is_logged(void **state)
{
	struct settings *set = calloc(1, sizeof(*set));
	struct user_limits u;
	struct logger log;

	(void)state;
	assert_int_equal(logged_begin(&log), 0);
	strcpy(set->scope_cgroup, "../nowhere");
	set->user_tasks_max = 5;
	user_limits_init(&u, set, &log, 1);
	assert_int_equal(u.missing, CGROUP_TASKS | CGROUP_MEMORY);
	assert_int_equal(logged("user_tasks_max does not hold: a scope is a path"), 1);
	assert_int_equal(logged("user_memory_mb does not hold: a scope is a path"), 1);
	assert_int_equal(user_limits_of(&u, 1000, 1)->tasks, 5);
	logged_end();
	free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name),
		cmocka_unit_test_setup_teardown(test_limits_v2, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_limits_v1, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_limits_missing, make_dir, remove_dir),
		cmocka_unit_test(test_events),
		cmocka_unit_test_setup_teardown(test_troubles, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_bounds, make_dir, remove_dir),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_whose),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_missing_is_logged),
	};

	return cmocka_run_group_tests_name("cgroup_user", tests, NULL, NULL);
}
