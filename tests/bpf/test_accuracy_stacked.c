/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Disks made of disks (device mapper, md): a task's bytes count once, on the disk it used; on
 * those below they are stacked bytes. Needs dmsetup, mdadm and kernel drivers; a test that lacks
 * one is skipped with the reason.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bodies.h"
#include "tests/lib/watch.h"

#define DISK_MIB       24
#define SECTORS	       (DISK_MIB * MIB / 512)
#define PART	       (8 * MIB)
#define BYTES_ERROR    0.001
#define IDENTITY_ERROR 0.01
#define STACKED_ERROR  0.01
#define CRYPT_KEY      "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

struct world {
	struct watch watch;
	char lower[2][32]; /* names of two loop devices over files */
	int fd[2];
};

/* Returns a disk's bytes in the last reading; zeros if it did nothing yet. */
static struct iocom_disk disk_named(const struct watch *watch, const char *name)
{
	struct iocom_disk nothing = {.name = ""};

	for (size_t i = 0; i < watch->sample.ndisks; i++)
		if (!strcmp(watch->sample.disks[i].name, name))
			return watch->sample.disks[i];
	return nothing;
}

/* Makes a loop device over a file beside the rig's image; it goes when no process has it open. */
static int make_lower(struct world *world, int i)
{
	char path[160], device[64];
	int control, number, file;

	snprintf(path, sizeof(path), "%s/lower%d", world->watch.rig.dir, i);
	if (rig_shell("truncate -s %dM %s", DISK_MIB, path))
		return -1;
	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	number = ioctl(control, LOOP_CTL_GET_FREE);
	close(control);
	snprintf(world->lower[i], sizeof(world->lower[i]), "loop%d", number);
	snprintf(device, sizeof(device), "/dev/loop%d", number);
	world->fd[i] = open(device, O_RDWR | O_CLOEXEC);
	file = open(path, O_RDWR | O_CLOEXEC);
	if (world->fd[i] < 0 || file < 0 || ioctl(world->fd[i], LOOP_SET_FD, file))
		return -1;
	close(file);
	return rig_shell("losetup -d %s", device);
}

/* Finds the kernel's name ("dm-0") of the device mapper's device NAME. */
static int find_mapped(const char *name, char *kernel, size_t size)
{
	DIR *blocks = opendir("/sys/block");
	struct dirent *entry;
	char path[300], line[128];
	int found = -1;

	while (blocks && found && (entry = readdir(blocks))) {
		FILE *file;

		snprintf(path, sizeof(path), "/sys/block/%s/dm/name", entry->d_name);
		file = strncmp(entry->d_name, "dm-", 3) ? NULL : fopen(path, "re");
		if (!file)
			continue;
		if (fgets(line, sizeof(line), file)) {
			line[strcspn(line, "\n")] = '\0';
			found = strcmp(line, name) ? -1 : 0;
		}
		fclose(file);
		if (!found)
			snprintf(kernel, size, "%.31s", entry->d_name);
	}
	if (blocks)
		closedir(blocks);
	return found;
}

/* Makes a mapped device by TABLE and finds its kernel name. Skips the test if that is
 * impossible. */
static void map_disk(struct world *world, const char *table, char *kernel, size_t size)
{
	const char *name = world->watch.rig.name;

	/* Remove what a failed test left. */
	rig_shell("umount %s/tmpfs; dmsetup remove --noudevsync --retry %s", world->watch.rig.dir,
		  name);
	if (rig_shell("dmsetup version")) {
		print_message("no device mapper, or no dmsetup\n");
		skip();
	}
	if (rig_shell("dmsetup create %s --noudevsync --table '%s'", name, table)) {
		print_message("this kernel cannot map: %s\n", table);
		skip();
	}
	assert_int_equal(find_mapped(name, kernel, size), 0);
}

static void unmap_disk(struct world *world)
{
	assert_int_equal(rig_shell("dmsetup remove --noudevsync --retry %s", world->watch.rig.name),
			 0);
}

/*
 * Runs BODY on disk TOP. Its bytes must count once on TOP, TIMES on the disks below together,
 * and there nothing may be charged to a task.
 */
static void expect_stacked(struct world *world, const char *name, const char *top,
			   int (*body)(void *), bool write, int flags, unsigned times)
{
	struct iocom_disk before[2], after[2];
	char path[64];
	struct body b = {
		.path = path, .bytes = PART, .block = 64 * KIB, .flags = flags, .sync = write};
	struct iocom_load load;
	uint64_t stacked = 0, tasks = 0, bytes, size = 0;
	int fd;

	snprintf(path, sizeof(path), "/dev/%s", top);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, BLKGETSIZE64, &size), 0);
	close(fd);
	b.from = (off_t)(size - PART) &
		 ~(off_t)4095; /* the end of the disk: nothing to read ahead */
	rig_drop_caches(&world->watch.rig);
	watch_sample(&world->watch);
	for (int i = 0; i < 2; i++)
		before[i] = disk_named(&world->watch, world->lower[i]);
	load = watch_run(&world->watch, body, &b);
	bytes = write ? load.explicit_write_bytes : load.explicit_read_bytes;
	for (int i = 0; i < 2; i++) {
		after[i] = disk_named(&world->watch, world->lower[i]);
		stacked += after[i].stacked_bytes - before[i].stacked_bytes;
		tasks += after[i].task_bytes - before[i].task_bytes;
	}
	watch_compare(name, write ? "explicit_write_bytes" : "explicit_read_bytes", PART,
		      (double)bytes, BYTES_ERROR);
	watch_compare(name, "stacked_bytes below", (double)PART * times, (double)stacked,
		      STACKED_ERROR);
	watch_compare_within(name, "task_bytes below", 0, (double)tasks, 0);
}

static void expect_all(struct world *world, const char *kind, const char *top, unsigned copies)
{
	char name[64];

	snprintf(name, sizeof(name), "%s, direct write", kind);
	expect_stacked(world, name, top, body_write, true, O_DIRECT, copies);
	snprintf(name, sizeof(name), "%s, write, fsync", kind);
	expect_stacked(world, name, top, body_write, true, 0, copies);
	snprintf(name, sizeof(name), "%s, direct read", kind);
	expect_stacked(world, name, top, body_read, false, O_DIRECT, 1);
	snprintf(name, sizeof(name), "%s, buffered read", kind);
	expect_stacked(world, name, top, body_read, false, 0, 1);
}

static void test_linear(void **state)
{
	struct world *world = *state;
	char table[128], top[32];

	snprintf(table, sizeof(table), "0 %lu linear /dev/%s 0", SECTORS, world->lower[0]);
	map_disk(world, table, top, sizeof(top));
	expect_all(world, "dm-linear", top, 1);
	unmap_disk(world);
}

static void test_crypt(void **state)
{
	struct world *world = *state;
	char table[256], top[32];

	snprintf(table, sizeof(table), "0 %lu crypt aes-xts-plain64 " CRYPT_KEY " 0 /dev/%s 0",
		 SECTORS, world->lower[0]);
	map_disk(world, table, top, sizeof(top));
	expect_all(world, "dm-crypt", top, 1);
	unmap_disk(world);
}

/* A file system on a mapped disk: writeback is charged to the writer through both. */
static void test_file_on_linear(void **state)
{
	struct world *world = *state;
	struct iocom_disk before, after, above[2];
	char table[128], top[32], path[128];
	struct body b = {.path = path, .bytes = PART, .block = 64 * KIB};
	const struct iocom_task *task;
	pid_t pid;

	snprintf(table, sizeof(table), "0 %lu linear /dev/%s 0", SECTORS, world->lower[0]);
	map_disk(world, table, top, sizeof(top));
	snprintf(path, sizeof(path), "%s/tmpfs",
		 world->watch.rig.dir); /* the mount that the rig unmounts */
	assert_int_equal(rig_shell("mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "
				   "/dev/%s && mkdir -p %s && mount /dev/%s %s",
				   top, path, top, path),
			 0);
	strcat(path, "/file");
	sync();
	watch_sample(&world->watch);
	before = disk_named(&world->watch, world->lower[0]);
	above[0] = disk_named(&world->watch, top);
	pid = rig_start(body_write, &b);
	assert_int_equal(rig_wait(pid), 0);
	sync();
	watch_sample(&world->watch);
	after = disk_named(&world->watch, world->lower[0]);
	above[1] = disk_named(&world->watch, top);
	task = watch_task(&world->watch, pid);
	*strrchr(path, '/') = '\0';
	rig_shell("umount %s", path);
	unmap_disk(world);
	assert_non_null(task);
	watch_compare("file on dm-linear, writeback", "explicit_write_bytes", PART,
		      (double)task->load.explicit_write_bytes, STACKED_ERROR);
	/* All bytes that reached the disk above, also the file system's own. */
	watch_compare("file on dm-linear, writeback", "stacked_bytes below",
		      (double)(above[1].kernel_bytes - above[0].kernel_bytes),
		      (double)(after.stacked_bytes - before.stacked_bytes), BYTES_ERROR);
	watch_compare_within("file on dm-linear, writeback", "task_bytes below", 0,
			     (double)(after.task_bytes - before.task_bytes), 0);
}

/* Makes an array of the two disks. Skips the test if that is impossible. */
static void expect_array(struct world *world, const char *kind, int level, unsigned copies)
{
	char top[32];

	snprintf(top, sizeof(top), "md%d", world->watch.rig.md);
	rig_shell("dmsetup remove --noudevsync --retry %s; mdadm --stop /dev/%s",
		  world->watch.rig.name, top); /* remove what a failed test left */
	if (rig_shell("mdadm --version")) {
		print_message("no mdadm\n");
		skip();
	}
	if (rig_shell("yes | mdadm --build /dev/%s --level=%d --raid-devices=2 --assume-clean "
		      "/dev/%s /dev/%s",
		      top, level, world->lower[0], world->lower[1]) &&
	    rig_shell("yes | mdadm --build /dev/%s --level=%d --raid-devices=2 /dev/%s /dev/%s",
		      top, level, world->lower[0], world->lower[1])) {
		print_message("this kernel makes no %s\n", kind);
		skip();
	}
	expect_all(world, kind, top, copies);
	assert_int_equal(rig_shell("mdadm --stop /dev/%s", top), 0);
}

static void test_raid0(void **state)
{
	expect_array(*state, "md raid0", 0, 1);
}

static void test_raid1(void **state)
{
	expect_array(*state, "md raid1", 1, 2);
}

/* The columns of the disks below are complete. */
static void test_identity(void **state)
{
	struct world *world = *state;

	sync();
	watch_sample(&world->watch);
	for (int i = 0; i < 2; i++) {
		struct iocom_disk disk = disk_named(&world->watch, world->lower[i]);

		watch_compare_within("disk below, identity", "residual_bytes", 0,
				     (double)disk.residual_bytes,
				     IDENTITY_ERROR * (double)disk.kernel_bytes);
	}
}

static int world_down(void **state)
{
	struct world *world = *state;

	for (int i = 0; i < 2; i++)
		if (world->fd[i] >= 0)
			close(world->fd[i]);
	watch_close(&world->watch);
	free(world);
	return 0;
}

static int world_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	*state = world;
	world->fd[0] = world->fd[1] = -1;
	watch_rig(&world->watch, 64);
	if (make_lower(world, 0) || make_lower(world, 1))
		return -1;
	watch_open(&world->watch, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linear),	       cmocka_unit_test(test_crypt),
		cmocka_unit_test(test_file_on_linear), cmocka_unit_test(test_raid0),
		cmocka_unit_test(test_raid1),	       cmocka_unit_test(test_identity),
	};

	return cmocka_run_group_tests_name("stacked disks", tests, world_up, world_down);
}
