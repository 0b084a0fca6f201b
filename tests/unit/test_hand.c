/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The feedback controller's hand on a directory that looks like control groups: what is bounded,
 * what is written down before, and that the originals come back on every way out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/feedback/hand_own.h"

#define MIB (UINT64_C(1) << 20)

static char dir[64], store[96];
static struct cgroup_mounts mounts;
static struct hand *hand;
static struct hand_done done;
static struct iocom_err err;

static void run(const char *fmt, const char *a)
{
	char command[512];

	snprintf(command, sizeof(command), fmt, dir, a);
	if (system(command))
		fail_msg("%s", command);
}

static void begin(void)
{
	assert_int_equal(hand_new(&hand, &mounts, "", store), 0);
}

/* The agent dies: nothing is given back. */
static void killed(void)
{
	hand_put(hand);
	begin();
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/iocom-hand-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	mounts = (struct cgroup_mounts){0};
	snprintf(mounts.v2, sizeof(mounts.v2), "%s/cg", dir);
	snprintf(store, sizeof(store), "%s/state/feedback.originals", dir);
	run("mkdir -p %s/cg/iocom %s", "");
	run("mkdir -m 0700 %s/state %s", "");
	memset(&done, 0, sizeof(done));
	begin();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hand_put(hand);
	run("rm -rf %s %s", "");
	return 0;
}

static const char *group_path(const char *name, const char *file)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/cg/iocom/%s/%s", dir, name, file);
	return path;
}

static void put(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static const char *get(const char *path)
{
	static char text[4096];
	FILE *in = fopen(path, "r");
	size_t n;

	if (!in)
		return "(none)";
	n = fread(text, 1, sizeof(text) - 1, in);
	text[n] = 0;
	text[strcspn(text, "\n")] = 0;
	fclose(in);
	return text;
}

static const char *high_of(const char *name)
{
	return get(group_path(name, "memory.high"));
}

/* A group that uses BYTES, CACHE of them page cache, and has the bound HIGH. */
static void group_uses(const char *name, uint64_t bytes, uint64_t cache)
{
	char text[160];

	snprintf(text, sizeof(text), "%" PRIu64 "\n", bytes);
	put(group_path(name, "memory.current"), text);
	snprintf(text, sizeof(text), "anon %" PRIu64 "\nfile %" PRIu64 "\nshmem %" PRIu64 "\n",
		 bytes - cache, cache + MIB, MIB);
	put(group_path(name, "memory.stat"), text);
}

static void group_make(const char *name, uint64_t bytes, uint64_t cache, const char *high)
{
	run("mkdir -p %s/cg/iocom/%s", name);
	group_uses(name, bytes, cache);
	put(group_path(name, "memory.high"), high);
}

static struct hand_job job_of(const char *name, uint64_t missed)
{
	struct hand_job job = {.missed_bytes = missed};

	snprintf(job.name, sizeof(job.name), "%s", name);
	snprintf(job.job, sizeof(job.job), "%s", strrchr(name, '/') + 1);
	return job;
}

static struct hand_job jobs[4];

/* One turn with the first N jobs. */
static void turn(size_t n, uint64_t buffer, bool dry)
{
	struct hand_turn t = {.buffer_bytes = buffer, .dry = dry, .jobs = jobs, .njobs = n};

	hand_turn(hand, &t);
	done = t.done;
}

#define SCAN  "jobs/user@7/n1-1-1"
#define COUNT "jobs/user@8/n1-1-2"
#define GUEST "guests/user@7/n2-1-3"

static void scan_and_count(void)
{
	group_make(SCAN, 210 * MIB, 200 * MIB, "max\n");
	group_make(COUNT, 300 * MIB, 20 * MIB, "max\n");
	jobs[0] = job_of(SCAN, 0);
	jobs[1] = job_of(COUNT, 0);
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 10);
}

static void test_holds_what_does_io(void **state)
{
	(void)state;
	scan_and_count();
	turn(2, 64 * MIB, false);
	assert_int_equal(jobs[0].state, HAND_HELD);
	assert_int_equal(number(high_of(SCAN)), 74 * MIB);
	assert_string_equal(jobs[0].original, "max");
	assert_int_equal(jobs[1].state, HAND_FREE);
	assert_string_equal(high_of(COUNT), "max");
	assert_int_equal(done.writes, 1);
	assert_int_equal(hand_held(hand), 1);
	assert_string_equal(get(store), "iocom-feedback 1");
	/* The same again: nothing is written for nothing. */
	turn(2, 64 * MIB, false);
	assert_int_equal(done.writes, 0);
	/* Held until it ends, though its cache is small now. */
	group_uses(SCAN, 40 * MIB, 4 * MIB);
	turn(2, 64 * MIB, false);
	assert_int_equal(jobs[0].state, HAND_HELD);
	assert_int_equal(number(high_of(SCAN)), 100 * MIB);
}

static void test_shares(void **state)
{
	(void)state;
	group_make(SCAN, 110 * MIB, 100 * MIB, "max\n");
	group_make(GUEST, 40 * MIB, 40 * MIB, "max\n");
	jobs[0] = job_of(SCAN, 0);
	/* It reads what it does not find: its part of the buffer is that, too. */
	jobs[1] = job_of(GUEST, 60 * MIB);
	turn(2, 80 * MIB, false);
	assert_int_equal(number(high_of(SCAN)), 50 * MIB);
	assert_int_equal(number(high_of(GUEST)), 40 * MIB);
	/* The least, however small the buffer. */
	turn(2, 2 * MIB, false);
	assert_int_equal(number(high_of(GUEST)), 16 * MIB);
}

static void test_dry_run_changes_nothing(void **state)
{
	(void)state;
	scan_and_count();
	turn(2, 64 * MIB, true);
	assert_int_equal(jobs[0].state, HAND_WOULD);
	assert_int_equal(jobs[0].high_bytes, 74 * MIB);
	assert_string_equal(high_of(SCAN), "max");
	assert_int_equal(access(store, F_OK), -1);
}

static void test_close_gives_back(void **state)
{
	(void)state;
	scan_and_count();
	put(group_path(SCAN, "memory.high"), "1073741824\n");
	turn(2, 64 * MIB, false);
	hand_close(hand, &done);
	assert_int_equal(done.restored, 1);
	assert_string_equal(high_of(SCAN), "1073741824");
	assert_int_equal(access(store, F_OK), -1);
	/* And turns are over, until it is opened. */
	turn(2, 64 * MIB, false);
	assert_string_equal(high_of(SCAN), "1073741824");
	hand_open(hand);
	turn(2, 64 * MIB, false);
	assert_int_equal(number(high_of(SCAN)), 74 * MIB);
}

static void test_killed(void **state)
{
	(void)state;
	scan_and_count();
	turn(2, 64 * MIB, false);
	killed();
	assert_int_equal(hand_recover(hand, &done, &err), 0);
	assert_int_equal(done.restored, 1);
	assert_string_equal(high_of(SCAN), "max");
	assert_int_equal(access(store, F_OK), -1);
	/* Twice is once. */
	assert_int_equal(hand_recover(hand, &done, &err), 0);
	assert_int_equal(done.restored, 0);
}

/* Between the file and the group: the group has what it had, or the value before the last one. */
static void test_killed_in_the_middle(void **state)
{
	char before[32];

	(void)state;
	scan_and_count();
	turn(2, 64 * MIB, false);
	snprintf(before, sizeof(before), "%s", high_of(SCAN));
	turn(2, 128 * MIB, false);
	put(group_path(SCAN, "memory.high"), before);
	killed();
	assert_int_equal(hand_recover(hand, &done, &err), 0);
	assert_string_equal(high_of(SCAN), "max");
	turn(2, 64 * MIB, false);
	put(group_path(SCAN, "memory.high"), "max\n"); /* the first write never came */
	killed();
	assert_int_equal(hand_recover(hand, &done, &err), 0);
	assert_int_equal(done.foreign, 0);
	assert_string_equal(high_of(SCAN), "max");
}

static void test_changed_by_somebody_else(void **state)
{
	(void)state;
	scan_and_count();
	turn(2, 64 * MIB, false);
	put(group_path(SCAN, "memory.high"), "12345344\n");
	turn(2, 32 * MIB, false);
	assert_int_equal(done.foreign, 1);
	assert_int_equal(jobs[0].state, HAND_FOREIGN);
	turn(2, 16 * MIB, false);
	assert_int_equal(done.foreign, 0); /* said once */
	hand_close(hand, &done);
	assert_string_equal(high_of(SCAN), "12345344");
	hand_open(hand);
	/* After a kill, too. */
	put(group_path(SCAN, "memory.high"), "max\n");
	turn(2, 64 * MIB, false);
	put(group_path(SCAN, "memory.high"), "12345344\n");
	killed();
	assert_int_equal(hand_recover(hand, &done, &err), 0);
	assert_int_equal(done.foreign, 1);
	assert_string_equal(high_of(SCAN), "12345344");
	assert_int_equal(access(store, F_OK), -1);
}

static void test_gone(void **state)
{
	(void)state;
	scan_and_count();
	group_make(GUEST, 40 * MIB, 40 * MIB, "max\n");
	jobs[2] = job_of(GUEST, 0);
	turn(3, 64 * MIB, false);
	assert_int_equal(hand_held(hand), 2);
	run("rm -r %s/cg/iocom/%s", SCAN);
	turn(3, 64 * MIB, false);
	assert_int_equal(jobs[0].state, HAND_GONE);
	assert_int_equal(hand_held(hand), 1);
	run("rm -r %s/cg/iocom/%s", GUEST);
	killed();
	assert_int_equal(hand_recover(hand, &done, &err), 0);
	assert_int_equal(done.gone, 1);
	assert_int_equal(done.refused, 0);
	assert_int_equal(access(store, F_OK), -1);
}

/* The job has ended, but its group is still there: a process in it lingers. */
static void test_ended(void **state)
{
	(void)state;
	scan_and_count();
	turn(2, 64 * MIB, false);
	jobs[0] = jobs[1];
	turn(1, 64 * MIB, false);
	assert_int_equal(done.restored, 1);
	assert_string_equal(high_of(SCAN), "max");
}

/* /proc/sys lets not even root write this number. */
static void test_refused(void **state)
{
	(void)state;
	scan_and_count();
	run("ln -sf /proc/sys/kernel/ngroups_max %s/cg/iocom/%s/memory.high", SCAN);
	turn(2, 64 * MIB, false);
	assert_int_equal(jobs[0].state, HAND_REFUSED);
	assert_int_equal(done.refused, 1);
	assert_non_null(strstr(done.why, "cannot bound the memory of " SCAN));
	/* Not again, and there is nothing to give back. */
	turn(2, 64 * MIB, false);
	assert_int_equal(done.refused, 0);
	hand_close(hand, &done);
	assert_int_equal(done.refused, 0);
	assert_int_equal(done.restored, 0);
}

static void test_no_file_no_change(void **state)
{
	(void)state;
	scan_and_count();
	run("rm -r %s/state %s", "");
	turn(2, 64 * MIB, false);
	assert_int_equal(done.writes, 0);
	assert_non_null(strstr(done.why, "cannot write"));
	assert_string_equal(high_of(SCAN), "max");
	run("mkdir -m 0700 %s/state %s", "");
	turn(2, 64 * MIB, false);
	assert_int_equal(number(high_of(SCAN)), 74 * MIB);
}

static void test_damaged(void **state)
{
	static const char *const texts[] = {
		"",
		"iocom-feedback 2\nscope -\nend\n",
		"iocom-feedback 1\nscope -\n",
		"iocom-feedback 1\nscope -\ngroup ../../x v2 max 1 1\nend\n",
		"iocom-feedback 1\nscope -\ngroup jobs/user@7/../../x v2 max 1 1\nend\n",
		"iocom-feedback 1\nscope -\ngroup system.slice v2 max 1 1\nend\n",
		"iocom-feedback 1\nscope -\ngroup " SCAN " v2 lots 1 1\nend\n",
		"iocom-feedback 1\nscope -\ngroup " SCAN " v2 max -1 1\nend\n",
		"iocom-feedback 1\nscope -\ngroup " SCAN " v2 max 1 1 1\nend\n",
	};

	(void)state;
	scan_and_count();
	put(group_path(SCAN, "memory.high"), "1\n");
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		put(store, texts[i]);
		assert_int_equal(chmod(store, 0600), 0);
		if (hand_recover(hand, &done, &err) != -EBADMSG)
			fail_msg("case %zu is taken", i);
		assert_non_null(strstr(err.text, "line"));
		assert_int_equal(access(store, F_OK), -1); /* set aside */
		assert_int_equal(hand_held(hand), 0);
		assert_string_equal(high_of(SCAN), "1");
	}
}

/* Somebody else's file is not believed. */
static void test_mode(void **state)
{
	(void)state;
	scan_and_count();
	put(group_path(SCAN, "memory.high"), "1\n");
	put(store, "iocom-feedback 1\nscope -\ngroup " SCAN " v2 max 1 1\nend\n");
	assert_int_equal(chmod(store, 0666), 0);
	assert_true(hand_recover(hand, &done, &err) < 0);
	assert_string_equal(high_of(SCAN), "1");
}

static void test_v1(void **state)
{
	char path[256];

	(void)state;
	snprintf(mounts.v1[0], sizeof(mounts.v1[0]), "%s/v1", dir);
	mounts.nv1 = 1;
	run("mkdir -p %s/cg/iocom/%s", SCAN);
	run("mkdir -p %s/v1/iocom/%s", SCAN);
	hand_put(hand);
	begin();
	jobs[0] = job_of(SCAN, 0);
	snprintf(path, sizeof(path), "%s/v1/iocom/" SCAN "/memory.usage_in_bytes", dir);
	put(path, "104857600\n");
	snprintf(path, sizeof(path), "%s/v1/iocom/" SCAN "/memory.stat", dir);
	put(path, "cache 1\ntotal_cache 94371840\ntotal_shmem 0\n");
	assert_null(cgroup_high_offered(&mounts, ""));
	turn(1, 32 * MIB, false);
	assert_int_equal(jobs[0].state, HAND_NONE);
	snprintf(path, sizeof(path), "%s/v1/memory.soft_limit_in_bytes", dir);
	put(path, "9223372036854771712\n");
	assert_string_equal(cgroup_high_offered(&mounts, ""), "memory.soft_limit_in_bytes");
	snprintf(path, sizeof(path), "%s/v1/iocom/" SCAN "/memory.soft_limit_in_bytes", dir);
	put(path, "9223372036854771712\n");
	turn(1, 32 * MIB, false);
	assert_int_equal(jobs[0].state, HAND_HELD);
	assert_int_equal(number(get(path)), 42 * MIB);
	killed();
	assert_int_equal(hand_recover(hand, &done, &err), 0);
	assert_string_equal(get(path), "9223372036854771712");
}

static void test_offered(void **state)
{
	char path[128];

	(void)state;
	assert_null(cgroup_high_offered(&mounts, ""));
	snprintf(path, sizeof(path), "%s/cg/cgroup.controllers", dir);
	put(path, "cpuset cpu io hugetlb\n");
	assert_null(cgroup_high_offered(&mounts, ""));
	put(path, "cpuset cpu io memory hugetlb\n");
	assert_string_equal(cgroup_high_offered(&mounts, ""), "memory.high");
}

static void test_names(void **state)
{
	(void)state;
	assert_true(cgroup_high_is_job(SCAN));
	assert_true(cgroup_high_is_job(GUEST));
	assert_false(cgroup_high_is_job("jobs/n1-1-1"));
	assert_false(cgroup_high_is_job("jobs/user@7"));
	assert_false(cgroup_high_is_job("jobs/user@7/"));
	assert_false(cgroup_high_is_job("jobs/user@/n1-1-1"));
	assert_false(cgroup_high_is_job("jobs/user@7/../x"));
	assert_false(cgroup_high_is_job("jobs/user@7/a/b"));
	assert_false(cgroup_high_is_job("shims/user@7/n1-1-1"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_holds_what_does_io),
		T(test_shares),
		T(test_dry_run_changes_nothing),
		T(test_close_gives_back),
		T(test_killed),
		T(test_killed_in_the_middle),
		T(test_changed_by_somebody_else),
		T(test_gone),
		T(test_ended),
		T(test_refused),
		T(test_no_file_no_change),
		T(test_damaged),
		T(test_mode),
		T(test_v1),
		T(test_offered),
		T(test_names),
	};

	return cmocka_run_group_tests_name("hand", tests, NULL, NULL);
}
