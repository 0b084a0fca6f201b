/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Disks that go away: one device number, two disks after each other. Their numbers must not mix
 * or go below 0, and a removed disk is not shown any more.
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

#define FIRST_BYTES  (4 * MIB)
#define SECOND_BYTES (512 * KIB)
#define READINGS     20 /* readings after which a removed disk must have left the list */

static const struct iocom_disk *find_disk(const struct watch *watch)
{
	for (size_t i = 0; i < watch->sample.ndisks; i++)
		if (!strcmp(watch->sample.disks[i].name, watch->rig.disk))
			return &watch->sample.disks[i];
	return NULL;
}

static uint64_t replaced(const struct watch *watch)
{
	for (size_t i = 0; i < watch->sample.ndrops; i++)
		if (!strcmp(watch->sample.drops[i].name, "replaced"))
			return watch->sample.drops[i].count;
	fail_msg("no drop named replaced");
	return 0;
}

static void read_disk(const struct watch *watch, size_t bytes)
{
	char path[64];
	struct body w = {.path = path, .bytes = bytes, .block = 64 * KIB, .flags = O_DIRECT};

	snprintf(path, sizeof(path), "/dev/%s", watch->rig.disk);
	assert_int_equal(rig_wait(rig_start(body_read, &w)), 0);
}

static void check_bounds(const struct iocom_disk *disk, uint64_t most)
{
	/* Other programs that look at a new disk (udev) read little. */
	assert_true(disk->task_bytes <= most && disk->read_bytes <= most);
	assert_true(disk->kernel_bytes <= most);
	assert_true(disk->residual_bytes <= (int64_t)MIB && disk->residual_bytes >= -(int64_t)MIB);
	assert_true(disk->service_sum2_ms2 >= 0);
	assert_true(disk->service_sum_ns < 3600000000000ULL);
}

static void test_other_disk(void **state)
{
	struct watch *watch = *state;
	uint64_t before, gone;

	read_disk(watch, FIRST_BYTES);
	watch_sample(watch);
	assert_non_null(find_disk(watch));
	assert_true(find_disk(watch)->task_bytes >= FIRST_BYTES);
	gone = replaced(watch);

	assert_int_equal(rig_shell("umount %s && losetup -d /dev/%s && "
				   "truncate -s 32M %s/other && losetup /dev/%s %s/other",
				   watch->rig.mount, watch->rig.disk, watch->rig.dir,
				   watch->rig.disk, watch->rig.dir),
			 0);
	read_disk(watch, SECOND_BYTES);
	watch_sample(watch);
	assert_true(replaced(watch) > gone);
	if (find_disk(watch))
		check_bounds(find_disk(watch), MIB);
	before = find_disk(watch) ? find_disk(watch)->task_bytes : 0;
	read_disk(watch, SECOND_BYTES);
	watch_sample(watch);
	assert_non_null(find_disk(watch));
	check_bounds(find_disk(watch), 2 * MIB);
	watch_compare("another disk, same number", "task_bytes of the new one", SECOND_BYTES,
		      (double)(find_disk(watch)->task_bytes - before), 0);
}

static void test_no_disk(void **state)
{
	struct watch *watch = *state;
	int readings = 0;

	assert_int_equal(rig_shell("losetup -d /dev/%s", watch->rig.disk), 0);
	do {
		watch_sample(watch);
		if (find_disk(watch))
			check_bounds(find_disk(watch), 4 * MIB);
	} while (find_disk(watch) && ++readings < READINGS);
	printf("# |a disk that went: not shown after %d readings\n", readings + 1);
	assert_null(find_disk(watch));
}

static int world_down(void **state)
{
	watch_close(*state);
	free(*state);
	return 0;
}

static int world_up(void **state)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	*state = watch;
	watch_rig(watch, 64);
	watch_open(watch, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_disk),
		cmocka_unit_test(test_no_disk),
	};

	return cmocka_run_group_tests_name("monitor: disks that go", tests, world_up, world_down);
}
