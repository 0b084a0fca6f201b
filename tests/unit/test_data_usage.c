/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What users' caches of jobs' data have seen: the file, an older one, a broken one, all users. */
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

#include "user/data_usage.h"

static char top[64];

static int make_top(void **state)
{
	(void)state;
	strcpy(top, "/tmp/iocom-usage-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int drop_top(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

/* Makes the directory NAME and returns it, open. */
static int directory(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	assert_int_equal(mkdir(path, 0700), 0);
	return open(path, O_RDONLY | O_DIRECTORY);
}

static void put(int at, const char *text)
{
	int fd = openat(at, "usage", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void jobs_and_refusals_add_up(void **state)
{
	const struct data_stats first = {.copied_bytes = 100,
					 .copied_files = 2,
					 .cache_bytes = 100,
					 .cache_files = 2,
					 .quota_bytes = 1000};
	const struct data_stats second = {.copied_bytes = 5,
					  .copied_files = 1,
					  .found_bytes = 60,
					  .found_files = 1,
					  .evicted_bytes = 40,
					  .evicted_files = 1,
					  .cache_bytes = 65,
					  .cache_files = 2,
					  .quota_bytes = 900};
	int at = directory("0");
	struct data_usage u;

	(void)state;
	assert_int_equal(data_usage_read(at, &u), -ENOENT);
	assert_int_equal(data_usage_add(at, &first), 0);
	assert_int_equal(data_usage_refuse(at), 0);
	assert_int_equal(data_usage_add(at, &second), 0);
	assert_int_equal(data_usage_read(at, &u), 0);
	assert_int_equal(u.jobs, 2);
	assert_int_equal(u.refused, 1);
	assert_int_equal(u.sum.copied_files, 3);
	assert_int_equal(u.sum.found_files, 1);
	assert_int_equal(u.sum.evicted_files, 1);
	assert_int_equal(u.sum.cache_bytes, 65); /* as the last one left them */
	assert_int_equal(u.sum.quota_bytes, 900);
	close(at);
}

static void an_older_file_counts_and_a_broken_one_does_not(void **state)
{
	int at = directory("0");
	struct data_usage u;

	(void)state;
	put(at, "jobs 3\ncopied_bytes 1\ncopied_files 2\nfound_bytes 3\nfound_files 4\n"
		"evicted_bytes 5\nevicted_files 6\ncache_bytes 7\ncache_files 8\nquota_bytes 9\n");
	assert_int_equal(data_usage_read(at, &u), 0);
	assert_int_equal(u.jobs, 3);
	assert_int_equal(u.refused, 0);
	assert_int_equal(data_usage_refuse(at), 0);
	assert_int_equal(data_usage_read(at, &u), 0);
	assert_int_equal(u.jobs, 3);
	assert_int_equal(u.refused, 1);
	put(at, "jobs 3\ncopied_bytes x\n");
	assert_int_equal(data_usage_read(at, &u), -EBADMSG);
	assert_int_equal(u.jobs, 0);
	close(at);
}

static void all_users_are_summed_up(void **state)
{
	const struct data_stats stats = {
		.found_files = 1, .cache_bytes = 95, .cache_files = 3, .quota_bytes = 100};
	int one = directory("0"), two = directory("1000"), none = directory("7"),
	    other = directory("lost+found");
	struct data_usage_all all;
	char path[128];

	(void)state;
	assert_int_equal(data_usage_add(one, &stats), 0);
	assert_int_equal(data_usage_add(two, &stats), 0);
	assert_int_equal(data_usage_add(other, &stats), 0); /* no user's */
	put(none, "nonsense");
	/* A user's directory that is a link is not followed. */
	snprintf(path, sizeof(path), "%s/8", top);
	assert_int_equal(symlink("0", path), 0);
	assert_int_equal(data_usage_all(top, &all), 0);
	assert_int_equal(all.users, 2);
	assert_int_equal(all.full, 2);
	assert_int_equal(all.sum.jobs, 2);
	assert_int_equal(all.sum.sum.found_files, 2);
	assert_int_equal(all.sum.sum.cache_bytes, 190);
	assert_int_equal(all.sum.sum.quota_bytes, 100);
	assert_int_equal(data_usage_all("/nowhere", &all), -ENOENT);
	assert_int_equal(all.users, 0);
	close(one);
	close(two);
	close(none);
	close(other);
}

#define IN_TOP(test) cmocka_unit_test_setup_teardown(test, make_top, drop_top)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_TOP(jobs_and_refusals_add_up),
		IN_TOP(an_older_file_counts_and_a_broken_one_does_not),
		IN_TOP(all_users_are_summed_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
