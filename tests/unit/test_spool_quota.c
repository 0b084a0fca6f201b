/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Kept output of ended jobs: bounded by number, age and bytes; the oldest is removed first. */
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

#include "agent/guest/spool_quota.h"
#include "agent/guest/launch.h"
#include "user/record.h"

struct place {
	char dir[64], jobs[96];
};

/* Makes the record of a job that ended SECONDS after the epoch, with BYTES of output; -1: none. */
static void make_of(const struct place *place, uid_t uid, const char *job, time_t seconds,
		    long bytes)
{
	const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
	struct record_spool spool = {.detached = true};
	struct record_exit end = {.value = 3};
	struct record_start start = {.uid = uid};
	char path[256];
	int dir, fd;

	snprintf(path, sizeof(path), "%s/%s", place->jobs, job);
	assert_int_equal(mkdir(path, 0700), 0);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(start.job, sizeof(start.job), "%s", job);
	assert_int_equal(record_write_start(dir, &start, NULL), 0);
	if (seconds) {
		assert_int_equal(record_write_exit(dir, &end, NULL), 0);
		assert_int_equal(utimensat(dir, "exit", times, 0), 0);
	}
	if (bytes >= 0) {
		assert_int_equal(record_write_spool(dir, &spool), 0);
		fd = openat(dir, RECORD_OUT, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_int_equal(ftruncate(fd, bytes), 0);
		close(fd);
		close(openat(dir, RECORD_ERR, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	close(dir);
}

static void make(const struct place *place, const char *job, time_t seconds, long bytes)
{
	make_of(place, 77, job, seconds, bytes);
}

static bool there(const struct place *place, const char *job)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", place->jobs, job);
	return !access(path, F_OK);
}

static bool live(void *arg, const char *job)
{
	return !strcmp(job, arg);
}

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->dir, "/tmp/iocom-kept-XXXXXX");
	if (!mkdtemp(place->dir))
		return -1;
	snprintf(place->jobs, sizeof(place->jobs), "%s/jobs", place->dir);
	*state = place;
	return mkdir(place->jobs, 0700);
}

static int teardown(void **state)
{
	struct place *place = *state;
	char command[128];
	int rc;

	snprintf(command, sizeof(command), "rm -rf %s", place->dir);
	rc = system(command);
	free(place);
	return rc;
}

static void test_bounds(void **state)
{
	const struct spool_quota_limits all = {.jobs = 100, .bytes = 1 << 20, .of_one = UINT64_MAX},
					bytes = {.jobs = 100, .bytes = 250, .of_one = UINT64_MAX},
					number = {.jobs = 2,
						  .bytes = 1 << 20,
						  .of_one = UINT64_MAX},
					age = {.jobs = 100,
					       .oldest_ns = 2500ull * 1000000000u,
					       .bytes = 1000,
					       .of_one = UINT64_MAX};
	const struct place *place = *state;
	struct spool_quota_sum sum;

	make(place, "a-0-1", 1000, 100);
	make(place, "a-0-2", 2000, 100);
	make(place, "a-0-3", 3000, 100);
	make(place, "a-0-4", 4000, 0);
	make(place, "a-0-5", 4500, 900); /* the agent knows that the shim of this job runs */
	make(place, "a-0-6", 5000, -1);	 /* the job is over, and there is no output to fetch */
	assert_int_equal(
		spool_quota_prune(place->jobs, place->dir, &all, live, "a-0-5", &sum, NULL), 0);
	assert_true(sum.jobs == 4 && sum.bytes == 300 && !sum.removed_jobs);
	assert_false(there(place, "a-0-6"));
	assert_true(there(place, "a-0-5"));
	assert_int_equal(
		spool_quota_prune(place->jobs, place->dir, &bytes, live, "a-0-5", &sum, NULL), 0);
	assert_true(sum.jobs == 3 && sum.bytes == 200);
	assert_true(sum.removed_jobs == 1 && sum.removed_bytes == 100);
	assert_false(there(place, "a-0-1"));
	assert_int_equal(
		spool_quota_prune(place->jobs, place->dir, &number, live, "a-0-5", &sum, NULL), 0);
	assert_true(sum.jobs == 2 && !there(place, "a-0-2") && there(place, "a-0-3"));
	assert_int_equal(spool_quota_prune(place->jobs, place->dir, &age, live, "", &sum, NULL), 0);
	assert_true(sum.jobs == 3 && there(place, "a-0-5"));
	assert_int_equal(spool_quota_prune("/no/such", place->dir, &age, live, "", &sum, NULL), 0);
	assert_true(sum.jobs == 0);
}

/* One user's output is removed for that user's share; other users' stays, and root's. */
static void test_share(void **state)
{
	struct spool_quota_limits limits = {.jobs = 100, .bytes = 5000, .of_one = 300};
	const struct place *place = *state;
	struct spool_quota_users users = {0};
	struct spool_quota_sum sum;

	make_of(place, 77, "a-0-1", 1000, 100);
	make_of(place, 78, "a-0-2", 1500, 200);
	make_of(place, 0, "a-0-3", 1600, 2000);
	make_of(place, 77, "a-0-4", 2000, 200);
	make_of(place, 77, "a-0-5", 3000, 100);
	assert_int_equal(
		spool_quota_prune(place->jobs, place->dir, &limits, live, "", &sum, &users), 0);
	assert_true(sum.removed_jobs == 1 && sum.removed_share == 1 && sum.bytes == 2500);
	assert_false(there(place, "a-0-1"));
	assert_true(there(place, "a-0-2") && there(place, "a-0-3"));
	assert_true(spool_quota_users_of(&users, 77) == 300 &&
		    spool_quota_users_of(&users, 78) == 200);
	assert_true(spool_quota_users_of(&users, 0) == 2000 &&
		    spool_quota_users_of(&users, 79) == 0);
	/* The user needs 150 for a new job, so this user's outputs make room. */
	limits.uid = 77;
	limits.of_uid = 150;
	assert_int_equal(
		spool_quota_prune(place->jobs, place->dir, &limits, live, "", &sum, &users), 0);
	assert_true(sum.removed_jobs == 1 && !there(place, "a-0-4") && there(place, "a-0-5"));
	assert_true(there(place, "a-0-2"));
	/* If all outputs together are too much, shares do not matter. */
	limits = (struct spool_quota_limits){.jobs = 100, .bytes = 100, .of_one = 300};
	assert_int_equal(
		spool_quota_prune(place->jobs, place->dir, &limits, live, "", &sum, &users), 0);
	assert_true(sum.removed_jobs == 2 && sum.removed_share == 0);
	spool_quota_users_free(&users);
}

/* Things that are no record are left alone: links, files, other names. */
static void test_strangers(void **state)
{
	const struct spool_quota_limits none = {0};
	const struct place *place = *state;
	struct spool_quota_sum sum;
	char path[128];

	snprintf(path, sizeof(path), "%s/target", place->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/link", place->jobs);
	assert_int_equal(symlink("../target", path), 0);
	snprintf(path, sizeof(path), "%s/file", place->jobs);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(spool_quota_prune(place->jobs, place->dir, &none, live, "", &sum, NULL),
			 0);
	assert_true(there(place, "link") && there(place, "file"));
	snprintf(path, sizeof(path), "%s/target", place->dir);
	assert_int_equal(access(path, F_OK), 0);
}

/* A record whose shim still holds it stays, whatever the agent thinks. */
static void test_held(void **state)
{
	const struct spool_quota_limits all = {.jobs = 100, .bytes = 1 << 20, .of_one = UINT64_MAX};
	const struct place *place = *state;
	struct spool_quota_sum sum;
	char path[128];
	uid_t uid;
	int dir;

	make(place, "b-0-1", 1000, -1);
	snprintf(path, sizeof(path), "%s/b-0-1", place->jobs);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(record_lock(dir), 0);
	assert_int_equal(spool_quota_prune(place->jobs, place->dir, &all, live, "", &sum, NULL), 0);
	assert_true(there(place, "b-0-1"));
	assert_int_equal(launch_owner(place->jobs, "b-0-1", &uid), 0);
	assert_int_equal(uid, 77);
	close(dir);
	assert_int_equal(spool_quota_prune(place->jobs, place->dir, &all, live, "", &sum, NULL), 0);
	assert_false(there(place, "b-0-1"));
	assert_int_equal(launch_owner(place->jobs, "b-0-1", &uid), -ENOENT);
	assert_int_equal(launch_owner(place->jobs, "../x", &uid), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_share, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strangers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
	};

	return cmocka_run_group_tests_name("kept", tests, NULL, NULL);
}
