/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the monitor says of itself compared with what is true: events by program, how full its
 * tables are, their memory, and how certain its classes are.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bodies.h"
#include "tests/lib/watch.h"

#define FILE_BYTES (16 * MIB)
#define FILES	   300
#define ATTEMPTS   20

struct world {
	struct watch watch;
	char file[128];
};

static int world_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct body w = {.path = world->file, .bytes = FILE_BYTES, .block = MIB};

	*state = world;
	watch_rig(&world->watch, 64);
	snprintf(world->file, sizeof(world->file), "%s/file", world->watch.rig.mount);
	assert_int_equal(body_write(&w), 0);
	sync();
	rig_drop_caches(&world->watch.rig);
	return 0;
}

static int world_down(void **state)
{
	struct world *world = *state;

	watch_close(&world->watch);
	free(world);
	return 0;
}

static int close_monitor(void **state)
{
	struct world *world = *state;

	monitor_free(world->watch.monitor);
	world->watch.monitor = NULL;
	memset(&world->watch.sample, 0, sizeof(world->watch.sample)); /* the monitor owned it */
	return 0;
}

static const struct monitor_map *map(const struct watch *watch, const char *name)
{
	for (size_t i = 0; i < watch->sample.nmaps; i++)
		if (!strcmp(watch->sample.maps[i].name, name))
			return &watch->sample.maps[i];
	fail_msg("no map %s", name);
	return NULL;
}

static void dirty_files(const char *directory)
{
	char path[160] = "";

	for (int i = 0; i < FILES; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/f%d", directory, i);
		fd = open(path, O_WRONLY | O_CREAT, 0600);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, path, sizeof(path)), sizeof(path));
		close(fd);
	}
}

/* Dirties many files before the first look at the tables. */
static void test_tables(void **state)
{
	struct world *world = *state;
	struct watch *watch = &world->watch;
	struct monitor_config config = {0};
	struct iocom_err err = {0};
	struct body w = {.path = world->file, .bytes = 4096, .block = 4096, .flags = O_DIRECT};
	uint64_t entries = 0;

	/* Another process's sync(2) at this moment empties the ledger: try again. */
	for (int attempt = 0; attempt < ATTEMPTS && entries < FILES; attempt++) {
		sync();
		close_monitor(state);
		if (monitor_open(&watch->monitor, &config, &err))
			fail_msg("%s", err.text);
		dirty_files(watch->rig.mount);
		assert_int_equal(rig_wait(rig_start(body_read, &w)), 0); /* a disk is seen */
		if (monitor_sample(watch->monitor, &watch->sample, &err))
			fail_msg("%s", err.text);
		entries = map(watch, "ledger")->entries;
	}
	printf("# |tables: ledger %llu of %llu entries, %llu bytes after %d files were dirtied\n",
	       (unsigned long long)entries, (unsigned long long)map(watch, "ledger")->entries_max,
	       (unsigned long long)map(watch, "ledger")->memory_bytes, FILES);
	/* The machine's other files are added, but never more than there is room for. */
	assert_in_range(entries, FILES, map(watch, "ledger")->entries_max);
	assert_true(map(watch, "disks")->entries >= 1);
	assert_true(map(watch, "disks")->entries_max >= map(watch, "disks")->entries);
	assert_true(map(watch, "threads")->entries == MONITOR_ENTRIES_UNKNOWN);
	assert_true(map(watch, "ledger")->memory_bytes > map(watch, "disks")->memory_bytes);
}

static void test_events(void **state)
{
	struct world *world = *state;
	struct watch *watch = &world->watch;
	struct body w = {.path = world->file, .bytes = FILE_BYTES, .block = 4096};
	struct monitor_config config = {0};
	struct iocom_err err = {0};
	uint64_t runs = 0, bios = FILE_BYTES / 4096;

	w.flags = O_DIRECT;
	if (monitor_open(&watch->monitor, &config, &err))
		fail_msg("%s", err.text);
	assert_int_equal(rig_wait(rig_start(body_read, &w)), 0);
	watch_sample(watch); /* the statistics were on in the first period */
	for (size_t i = 0; i < watch->sample.nprograms; i++)
		if (!strcmp(watch->sample.programs[i].name, "bio_queue"))
			runs = watch->sample.programs[i].runs;
	assert_true(watch->sample.measured_ns > 0);
	printf("# |events: %.0f a second, %.0f ns each, %.2f %% of a core; bio_queue ran %llu "
	       "times for %llu bios and their copies below\n",
	       watch->sample.events.per_s, watch->sample.events.ns_each,
	       100 * watch->sample.events.core_share, (unsigned long long)runs,
	       (unsigned long long)bios);
	assert_true(runs >= bios);
	assert_true(watch->sample.events.per_s * (double)watch->sample.measured_ns / 1e9 >=
		    (double)bios);
	assert_true(watch->sample.events.ns_each > 1);
	assert_true(watch->sample.events.core_share > 0);
}

struct inside {
	const char *cgroup;
	int (*body)(void *);
	struct body *work;
};

static int work_inside(void *argument)
{
	struct inside *in = argument;

	return rig_enter_cgroup(in->cgroup, 0) ? 1 : in->body(in->work);
}

/* Other programs may do the same meanwhile, so only the rig's cgroup counts. */
static void run_inside(struct watch *watch, int (*body)(void *), struct body *work)
{
	struct inside in = {watch->rig.cgroup, body, work};

	assert_int_equal(rig_wait(rig_start(work_inside, &in)), 0);
	watch_sample(watch);
}

/* An exception is a certain sign; get_user_pages leaves none, so its class is inferred. */
static void test_confidence(void **state)
{
	struct world *world = *state;
	struct watch *watch = &world->watch;
	char copy[160];
	struct body w = {.path = copy, .to = copy, .bytes = FILE_BYTES, .block = MIB};
	const char *disks[] = {watch->rig.disk, NULL};
	struct monitor_config config = {.scope_cgroup = watch->rig.cgroup, .scope_disks = disks};
	uint64_t sure, inferred;

	snprintf(copy, sizeof(copy), "%s/copy", watch->rig.mount);
	assert_int_equal(body_write(&w), 0); /* room for the direct write */
	w.path = world->file;
	watch_open(watch, &config);
	rig_drop_caches(&watch->rig);
	run_inside(watch, body_mmap_read, &w);
	w.flags = O_DIRECT;
	run_inside(watch, body_read, &w);
	sure = watch->sample.classifier.inferred_bytes;
	watch_compare_within("user faults, direct reads", "inferred_bytes", 0, (double)sure,
			     64 * KIB);
	assert_true(watch->sample.classifier.task_bytes >= 2 * FILE_BYTES);
	assert_true(monitor_confidence(&watch->sample) > 0.99);
	rig_drop_caches(&watch->rig);
	if (watch->sample.classifier.no_direct_faults) {
		watch_degraded("direct write from cold mmap", "inferred_bytes",
			       "no mm_filemap_fault: such faults count as explicit");
		return;
	}
	w.flags = 0;
	run_inside(watch, body_mmap_to_direct, &w);
	inferred = watch->sample.classifier.inferred_bytes - sure;
	watch_compare("direct write from cold mmap", "inferred_bytes", FILE_BYTES, (double)inferred,
		      0.01);
	/* Read by a mapping, read and written directly: certain; read for the write: inferred. */
	watch_compare("all of these", "confidence, percent", 75,
		      100 * monitor_confidence(&watch->sample), 0.02);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_tables, close_monitor),
		cmocka_unit_test_teardown(test_events, close_monitor),
		cmocka_unit_test_teardown(test_confidence, close_monitor),
	};

	return cmocka_run_group_tests_name("cost", tests, world_up, world_down);
}
