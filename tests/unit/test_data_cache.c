/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A user's cache of job data, and the directories of such jobs, made and removed. */
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

#include "agent/shim/data_cache.h"
#include "agent/shim/data_io.h"
#include "agent/shim/scratch.h"

#define QUOTA 1000

static char world[64];

static int make_world(void **state)
{
	(void)state;
	strcpy(world, "/tmp/iocom-data-XXXXXX");
	return !mkdtemp(world) || chmod(world, 0700) || chdir(world) || mkdir("c", 0700);
}

static int drop_world(void **state)
{
	(void)state;
	return chdir("/") || scratch_remove_tree(AT_FDCWD, world);
}

static void must_open(struct data_cache *cache)
{
	assert_int_equal(data_cache_open(cache, "c", QUOTA), 0);
}

/* Puts SIZE bytes C into the cache; ENTRY gets what it is then. */
static void put(struct data_cache *cache, char c, size_t size, struct data_entry *entry)
{
	struct data_hash *hash = data_hash_new();
	uint8_t bytes[QUOTA];
	size_t index;
	int fd = data_cache_begin(cache);

	assert_true(fd >= 0);
	memset(bytes, c, size);
	assert_int_equal(data_io_put(fd, bytes, size), 0);
	data_hash_add(hash, bytes, size);
	*entry = (struct data_entry){
		.path = (char *)"x", .mode = 0644, .size = size, .mtime_ns = 1600000000123456789};
	data_hash_end(hash, entry->hash);
	assert_int_equal(data_cache_commit(cache, fd, entry, &index), 0);
}

static bool has(struct data_cache *cache, const struct data_entry *entry)
{
	size_t index;

	return data_cache_find(cache, entry->hash, entry->size, &index);
}

static char *only_name(void)
{
	static char name[512];
	FILE *list = popen("ls c | grep -v tmp", "r");

	assert_non_null(fgets(name, sizeof(name) - 2, list));
	name[strcspn(name, "\n")] = 0;
	pclose(list);
	memmove(name + 2, name, strlen(name) + 1);
	memcpy(name, "c/", 2);
	return name;
}

static void a_whole_file_counts_and_a_half_one_does_not(void **state)
{
	struct data_cache cache;
	struct data_entry entry;
	int fd;

	(void)state;
	must_open(&cache);
	put(&cache, 'a', 10, &entry);
	fd = data_cache_begin(&cache);
	assert_int_equal(data_io_put(fd, "half", 4), 0);
	close(fd); /* as if killed */
	data_cache_close(&cache);
	must_open(&cache);
	assert_true(has(&cache, &entry));
	entry.size++;
	assert_false(has(&cache, &entry));
	assert_int_equal(cache.count, 1);
	data_cache_close(&cache);
	assert_int_equal(system("[ \"$(ls c | wc -l)\" = 1 ]"), 0);
}

/* What somebody has changed is dropped: content, mode; and what has another name's content. */
static void a_changed_file_does_not_count(void **state)
{
	struct data_cache cache;
	struct data_entry entry;

	(void)state;
	for (int i = 0; i < 3; i++) {
		char *name;

		must_open(&cache);
		put(&cache, 'a', 10, &entry);
		data_cache_close(&cache);
		name = only_name();
		if (i == 0) {
			int fd;

			assert_int_equal(chmod(name, 0644), 0);
			fd = open(name, O_WRONLY | O_APPEND);
			assert_int_equal(write(fd, "y", 1), 1);
			close(fd);
			assert_int_equal(chmod(name, 0444), 0);
		} else if (i == 1) {
			assert_int_equal(chmod(name, 0644), 0);
		} else {
			const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 5}};

			assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
		}
		must_open(&cache);
		assert_false(has(&cache, &entry));
		assert_int_equal(access(name, F_OK), -1);
		data_cache_close(&cache);
	}
}

static void what_is_used_least_recently_goes_first(void **state)
{
	struct data_cache cache;
	struct data_entry a, b, c;
	uint64_t pinned;

	(void)state;
	must_open(&cache);
	put(&cache, 'a', 400, &a);
	usleep(1000);
	put(&cache, 'b', 400, &b);
	data_cache_close(&cache);
	usleep(1000);
	must_open(&cache);
	assert_true(has(&cache, &a)); /* used again, and needed now */
	assert_int_equal(data_cache_room(&cache, 300, &pinned), 0);
	assert_int_equal(pinned, 400);
	assert_int_equal(cache.stats.evicted_files, 1);
	put(&cache, 'c', 300, &c);
	assert_int_equal(data_cache_room(&cache, 400, &pinned), -EDQUOT);
	assert_int_equal(pinned, 700);
	data_cache_close(&cache);
	must_open(&cache);
	assert_true(has(&cache, &a) && has(&cache, &c));
	assert_false(has(&cache, &b));
	data_cache_close(&cache);
}

/* A job's link keeps a file from being evicted, and more than the quota is refused at once. */
static void what_a_job_uses_stays(void **state)
{
	struct data_cache cache;
	struct data_entry a;
	uint64_t pinned;
	size_t index;
	struct stat st;

	(void)state;
	must_open(&cache);
	put(&cache, 'a', 600, &a);
	assert_true(data_cache_find(&cache, a.hash, a.size, &index) || cache.count == 1);
	assert_int_equal(data_cache_give(&cache, 0, AT_FDCWD, &a), 0);
	assert_int_equal(stat("x", &st), 0);
	assert_true(st.st_nlink == 2 && (st.st_mode & 0777) == 0444 &&
		    st.st_mtim.tv_nsec == 123456789);
	data_cache_close(&cache);
	must_open(&cache);
	assert_int_equal(data_cache_room(&cache, 500, &pinned), -EDQUOT);
	assert_int_equal(pinned, 600);
	assert_int_equal(data_cache_room(&cache, QUOTA + 1, &pinned), -EDQUOT);
	data_cache_close(&cache);
	unlink("x");
	must_open(&cache);
	assert_int_equal(data_cache_room(&cache, 500, &pinned), 0);
	assert_int_equal(cache.stats.evicted_bytes, 600);
	data_cache_close(&cache);
}

/* What a job may change, and what has another time, is a copy: the cached file stays as it is. */
static void a_job_that_may_write_has_a_copy(void **state)
{
	struct data_cache cache;
	struct data_entry a;
	struct stat st;
	int fd;

	(void)state;
	must_open(&cache);
	put(&cache, 'a', 100, &a);
	a.writable = true;
	a.mtime_ns = 5000000001;
	assert_int_equal(data_cache_give(&cache, 0, AT_FDCWD, &a), 0);
	assert_int_equal(stat("x", &st), 0);
	assert_true(st.st_nlink == 1 && (st.st_mode & 0777) == 0644 && st.st_mtim.tv_sec == 5 &&
		    st.st_size == 100);
	fd = open("x", O_WRONLY);
	assert_int_equal(write(fd, "b", 1), 1);
	close(fd);
	data_cache_close(&cache);
	must_open(&cache);
	assert_true(has(&cache, &a));
	data_cache_close(&cache);
}

/* The cache is the user's own, but what he puts into it by himself does not stay. */
static void what_a_user_puts_there_goes_or_counts(void **state)
{
	struct data_cache cache;
	struct data_entry a;
	char command[400], name[DATA_CACHE_NAME];
	uint64_t pinned;
	int fd;

	(void)state;
	must_open(&cache);
	put(&cache, 'a', 100, &a);
	memcpy(name, cache.at[0].name, sizeof(name));
	data_cache_close(&cache);
	snprintf(command, sizeof(command),
		 "cd c && mkdir -p d/e && head -c 5000000 /dev/zero >d/e/f && chmod 0 d/e/f && "
		 "head -c 100 /dev/zero >junk && ln -s /etc link && mkfifo pipe");
	assert_int_equal(system(command), 0);
	must_open(&cache);
	assert_int_equal(cache.count, 1);
	assert_int_equal(cache.bytes, 100);
	assert_int_equal(system("[ $(ls -A c | wc -l) = 1 ] && test -e /etc/passwd"), 0);
	data_cache_close(&cache);
	/* Blocks behind its end do not change a file, but take the disk. */
	snprintf(command, sizeof(command), "c/%s", name);
	fd = open(command, O_RDONLY);
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
	fd = open(command, O_WRONLY);
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8 << 20)) {
		close(fd);
		return; /* this file system cannot */
	}
	assert_int_equal(futimens(fd, (struct timespec[2]){{.tv_nsec = UTIME_OMIT},
							   {.tv_sec = a.mtime_ns / 1000000000,
							    .tv_nsec = a.mtime_ns % 1000000000}}),
			 0);
	assert_int_equal(fchmod(fd, 0444), 0);
	close(fd);
	must_open(&cache);
	assert_int_equal(cache.count, 1);
	assert_true(cache.bytes >= 8 << 20);
	assert_int_equal(data_cache_room(&cache, cache.quota, &pinned), 0);
	assert_int_equal(cache.bytes, 0);
	assert_true(cache.stats.evicted_bytes >= 8 << 20);
	data_cache_close(&cache);
}

static void directories_are_made_and_removed(void **state)
{
	struct iocom_err err = {0};
	struct scratch scratch;
	char data[128];
	struct stat st;

	(void)state;
	snprintf(data, sizeof(data), "%s/data", world);
	assert_int_equal(mkdir("data", 0711), 0);
	assert_int_equal(scratch_make(&scratch, data, getuid(), getgid(), "n1-1-1", &err), 0);
	assert_int_equal(stat(scratch.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(scratch.cache, &st), 0);
	assert_int_equal(
		scratch_make(&(struct scratch){0}, data, getuid(), getgid(), "n1-1-1", &err),
		-EEXIST);
	scratch_remove(&scratch);
	assert_int_equal(access(scratch.path, F_OK), -1);
	/* Another may write there, or above: not believed. */
	assert_int_equal(chmod("data", 0777), 0);
	assert_true(scratch_make(&scratch, data, getuid(), getgid(), "n1-1-2", &err) < 0);
	scratch_remove(&scratch);
	assert_int_equal(scratch_make(&scratch, "", getuid(), getgid(), "n1-1-2", &err), -ENOENT);
}

/* Whoever moves a directory of others into his own tree does not get it removed by root. */
static void what_is_anothers_stays(void **state)
{
	int at = open(world, O_RDONLY | O_DIRECTORY);

	(void)state;
	if (geteuid())
		skip(); /* only root can make somebody else's */
	assert_int_equal(system("mkdir -p t/theirs/private t/mine/deep t/root t/open/x && "
				"chown -R 65534 t/theirs && chown 65533 t t/mine t/mine/deep && "
				"touch t/theirs/private/f t/mine/f t/root/f t/open/x/f && "
				"chmod 777 t/open"),
			 0);
	assert_true(scratch_remove_tree(at, "t") < 0);
	assert_int_equal(access("t/theirs/private/f", F_OK), 0);
	assert_int_equal(access("t/open/x/f", F_OK), 0);
	assert_int_equal(access("t/mine", F_OK), -1);
	assert_int_equal(access("t/root", F_OK), -1);
	assert_int_equal(system("chown -R 65533 t"), 0);
	assert_int_equal(scratch_remove_tree(at, "t"), 0);
	close(at);
}

/* A tree deeper than descriptors suffice for goes, and what its links lead to stays. */
static void a_tree_goes_and_its_links_are_not_followed(void **state)
{
	char command[400];

	(void)state;
	snprintf(command, sizeof(command),
		 "cd %s && mkdir t other && echo x >other/keep && ln -s ../other t/link && "
		 "ln -s ../other/keep t/file && cd t && for i in $(seq 300); do mkdir d && echo x "
		 ">f "
		 "&& cd d || exit 1; done; ln -s /etc ../gone",
		 world);
	assert_int_equal(system(command), 0);
	assert_int_equal(scratch_remove_tree(AT_FDCWD, "t"), 0);
	assert_int_equal(access("t", F_OK), -1);
	assert_int_equal(access("other/keep", F_OK), 0);
	assert_int_equal(scratch_remove_tree(AT_FDCWD, "t"), 0); /* it is gone already */
	assert_int_equal(symlink("other", "l"), 0);
	assert_true(scratch_remove_tree(AT_FDCWD, "l") < 0);
	assert_int_equal(access("other/keep", F_OK), 0);
}

/* What a killed supervisor left goes, and what a living one has locked stays. */
static void leftovers_are_swept(void **state)
{
	struct iocom_err err = {0};
	struct scratch mine, next;
	char data[128];

	(void)state;
	snprintf(data, sizeof(data), "%s/data", world);
	assert_int_equal(mkdir("data", 0711), 0);
	assert_int_equal(scratch_make(&mine, data, getuid(), getgid(), "n1-1-1", &err), 0);
	snprintf(data, sizeof(data), "%s/data/%u/n1-0-9", world, (unsigned)getuid());
	assert_int_equal(mkdir(data, 0700), 0);
	snprintf(data, sizeof(data), "%s/data", world);
	scratch_sweep(data);
	assert_int_equal(access(mine.path, F_OK), 0);
	assert_int_equal(access(mine.cache, F_OK), 0);
	snprintf(data, sizeof(data), "%s/data/%u/n1-0-9", world, (unsigned)getuid());
	assert_int_equal(access(data, F_OK), -1);
	assert_int_equal(mkdir(data, 0700), 0);
	snprintf(data, sizeof(data), "%s/data", world);
	assert_int_equal(scratch_make(&next, data, getuid(), getgid(), "n1-1-2", &err), 0);
	snprintf(data, sizeof(data), "%s/data/%u/n1-0-9", world, (unsigned)getuid());
	assert_int_equal(access(data, F_OK), -1);
	assert_int_equal(access(mine.path, F_OK), 0);
	scratch_remove(&next);
	scratch_remove(&mine);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, drop_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_whole_file_counts_and_a_half_one_does_not),
		IN_WORLD(a_changed_file_does_not_count),
		IN_WORLD(what_is_used_least_recently_goes_first),
		IN_WORLD(what_a_job_uses_stays),
		IN_WORLD(a_job_that_may_write_has_a_copy),
		IN_WORLD(what_a_user_puts_there_goes_or_counts),
		IN_WORLD(directories_are_made_and_removed),
		IN_WORLD(what_is_anothers_stays),
		IN_WORLD(a_tree_goes_and_its_links_are_not_followed),
		IN_WORLD(leftovers_are_swept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
