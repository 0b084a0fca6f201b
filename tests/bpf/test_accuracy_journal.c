/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a journaling file system writes for a job beside its files' data, compared with the disk. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bodies.h"
#include "tests/lib/watch.h"
#include "user/monitor/monitor_hooks.h"

#define FILES	      400
#define CHANGES	      2000
#define CHANGED_BYTES (64 * KIB) /* one inode's blocks, even if a commit comes between */

struct world {
	struct watch watch;
	char cgroup[160];
	uint64_t id;
};

static bool counted(struct world *world, const char *name)
{
	const struct hooks *hooks = monitor_hooks(world->watch.monitor);

	for (size_t h = 0; h < hooks->count; h++)
		if (!strcmp(hooks->status[h].hook->program, "journal_handle") &&
		    hooks->status[h].state == HOOK_USED)
			return true;
	watch_degraded(name, "metadata_bytes", "no jbd2_handle_stats");
	return false;
}

/* The disk is so large that its blocks have 4 KiB. Runs BODY in the job's cgroup; returns its
 * metadata, and that of the whole disk in DISK. */
static double metadata_of(struct world *world, int (*body)(const char *mount), uint64_t *disk)
{
	const char *mount = world->watch.rig.mount;
	const struct iocom_job_load *job;
	uint64_t before = 0;
	pid_t pid;

	sync();
	watch_sample(&world->watch);
	*disk = world->watch.sample.unattributed.metadata_bytes;
	job = watch_job(&world->watch, world->id);
	before = job ? job->disk.metadata_bytes : 0;
	pid = fork();
	if (!pid)
		_exit(rig_enter_cgroup(world->cgroup, 0) || body(mount));
	assert_int_equal(rig_wait(pid), 0);
	sync();
	watch_sample(&world->watch);
	*disk = world->watch.sample.unattributed.metadata_bytes - *disk;
	job = watch_job(&world->watch, world->id);
	assert_non_null(job);
	return (double)(job->disk.metadata_bytes - before);
}

static int body_make_files(const char *mount)
{
	char path[192];
	int rc = 0;

	for (int i = 0; i < FILES && !rc; i++) {
		snprintf(path, sizeof(path), "%s/made%d", mount, i);
		if (i % 2)
			rc = mkdir(path, 0755);
		else
			rc = close(open(path, O_WRONLY | O_CREAT, 0644));
	}
	return rc;
}

/* The journal's own blocks are nobody's, and other cgroups are not charged. */
static void test_many_files(void **state)
{
	struct world *world = *state;
	const struct iocom_job_load *other;
	uint64_t disk, other_id;
	char path[160];
	double job;

	if (!counted(world, "many files"))
		return;
	other_id = watch_cgroup(world->watch.rig.cgroup, "other", path, sizeof(path));
	job = metadata_of(world, body_make_files, &disk);
	watch_compare("many files", "metadata_bytes", (double)disk, job, 0.3);
	other = watch_job(&world->watch, other_id);
	assert_true(!other || !other->disk.metadata_bytes);
	assert_int_equal(rmdir(path), 0);
}

static int body_change_one(const char *mount)
{
	char path[192];
	int rc;

	snprintf(path, sizeof(path), "%s/changed", mount);
	rc = close(open(path, O_WRONLY | O_CREAT, 0644));
	for (int i = 0; i < CHANGES && !rc; i++)
		rc = chmod(path, i % 2 ? 0644 : 0600);
	return rc;
}

/* A block that changes often is written once a transaction. */
static void test_one_file(void **state)
{
	struct world *world = *state;
	uint64_t disk;
	double job;

	if (!counted(world, "one file"))
		return;
	job = metadata_of(world, body_change_one, &disk);
	printf("# one file, changed often: %.0f bytes, the disk has %llu\n", job,
	       (unsigned long long)disk);
	assert_true(job > 0 && job <= CHANGED_BYTES);
}

static int up(void **state)
{
	static struct world world;

	watch_rig(&world.watch, 640);
	watch_open(&world.watch, NULL);
	world.id = watch_cgroup(world.watch.rig.cgroup, "job", world.cgroup, sizeof(world.cgroup));
	*state = &world;
	return 0;
}

static int down(void **state)
{
	struct world *world = *state;

	rmdir(world->cgroup);
	watch_close(&world->watch);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_one_file),
	};

	return cmocka_run_group_tests(tests, up, down);
}
