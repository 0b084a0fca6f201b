/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Writes compared with known truth: the kernel writes later, and not always everything; what it
 * wrote belongs to the task that dirtied it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bodies.h"
#include "tests/lib/watch.h"

#define PART		(8 * MIB)
#define WRITEBACK_ERROR 0.01 /* the writer gets at least 99 % */
#define COWRITER_ERROR	0.05
#define BYTES_ERROR	0.001
#define NOTHING		(64 * KIB) /* up to this many bytes of a PART count as none */
#define IDENTITY_ERROR	0.01
#define BUSY_READINGS	20
#define BUSY_AT_MOST	500 /* readings at most until one finds bios in flight */
#define SMALL_FILES	500
#define OVERLAP_TRIES	3
#define INODE_TRIES	200
#define BUSY_BYTES	(256 * MIB)
#define STACKED_MIB	16

struct world {
	struct watch watch;
	char path[160]; /* file of the running test */
};

static const char *fresh(struct world *world, const char *name)
{
	snprintf(world->path, sizeof(world->path), "%s/%s", world->watch.rig.mount, name);
	return world->path;
}

/* Runs BODY to its end. Returns its pid; what it dirtied is still in memory. */
static pid_t write_and_exit(int (*body)(void *), struct body *b)
{
	pid_t pid = rig_start(body, b);

	assert_int_equal(rig_wait(pid), 0);
	return pid;
}

/* Waits until all writeback is done and its bytes are folded. */
static void settle(struct world *world)
{
	sync();
	watch_sample(&world->watch);
}

/*
 * Returns what PID did up to the last reading. An ended process without a row did nothing since
 * the reading before.
 */
static struct iocom_load load_of(struct world *world, pid_t pid)
{
	const struct iocom_task *task = watch_task(&world->watch, pid);
	struct iocom_load nothing = {0};

	return task ? task->load : nothing;
}

static void test_after_exit(void **state)
{
	struct world *world = *state;
	struct body b = {.path = fresh(world, "late"), .bytes = 4 * PART, .block = MIB};
	const struct iocom_task *task;
	struct iocom_task first;
	pid_t pid = write_and_exit(body_write, &b);

	watch_sample(&world->watch);
	task = watch_task(&world->watch, pid);
	assert_non_null(task);
	assert_true(task->exited);
	assert_int_equal(strncmp(task->comm, program_invocation_short_name, 15), 0);
	first = *task;
	settle(world);
	task = watch_task(&world->watch, pid); /* shown once more, because late bytes came */
	if (!task) {
		/* Unless another process's sync(2) had written them already. */
		assert_int_equal(first.load.explicit_write_bytes, b.bytes);
		task = &first;
	}
	watch_compare("writeback after exit", "explicit_write_bytes", (double)b.bytes,
		      (double)task->load.explicit_write_bytes, BYTES_ERROR);
	assert_int_equal(task->load.implicit_bytes, 0);
}

static void test_synchronous(void **state)
{
	struct world *world = *state;
	struct body b = {
		.path = fresh(world, "sync"), .bytes = 2 * MIB, .block = 64 * KIB, .flags = O_SYNC};
	struct iocom_load load;

	load = watch_run(&world->watch, body_write, &b);
	watch_compare("O_SYNC write", "explicit_write_bytes", (double)b.bytes,
		      (double)load.explicit_write_bytes, BYTES_ERROR);
	watch_compare("O_SYNC write", "implicit_bytes", 0, (double)load.implicit_bytes, 0);
	b.flags = 0;
	b.sync = true;
	b.bytes = PART;
	load = watch_run(&world->watch, body_write, &b);
	watch_compare("write, fsync", "explicit_write_bytes", (double)b.bytes,
		      (double)load.explicit_write_bytes, BYTES_ERROR);
	b.sync = false;
	b.flags = O_DIRECT;
	load = watch_run(&world->watch, body_write, &b);
	watch_compare("direct write", "explicit_write_bytes", (double)b.bytes,
		      (double)load.explicit_write_bytes, BYTES_ERROR);
}

static void test_mapping(void **state)
{
	struct world *world = *state;
	struct body b = {.path = fresh(world, "stored"), .bytes = PART};
	struct iocom_load load = watch_run(&world->watch, body_mmap_store, &b);

	watch_compare("store through mmap", "implicit_bytes", (double)b.bytes,
		      (double)load.implicit_bytes, WRITEBACK_ERROR);
	watch_compare_within("store through mmap", "explicit_write_bytes", 0,
			     (double)load.explicit_write_bytes, NOTHING);
}

/* The kernel itself dirties pages through a mapping: it copies a direct read there. */
static void test_mapping_direct(void **state)
{
	struct world *world = *state;
	char from[160];
	struct body b = {.path = from, .bytes = PART, .block = MIB};
	struct iocom_load load;
	pid_t pid;

	if (!watch_hook("mm_filemap_fault", 2)) {
		watch_degraded("direct read to mmap, writeback", "implicit_bytes",
			       "no mm_filemap_fault: counted as explicit");
		return;
	}
	b.flags = O_SYNC;
	strcpy(from, fresh(world, "source"));
	assert_int_equal(rig_wait(rig_start(body_write, &b)), 0);
	rig_shell("fallocate -l %lu %s", PART, fresh(world, "target"));
	b.to = world->path;
	pid = write_and_exit(body_direct_to_mmap, &b);
	settle(world);
	load = load_of(world, pid);
	watch_compare("direct read to mmap, writeback", "explicit_read_bytes", (double)b.bytes,
		      (double)load.explicit_read_bytes, BYTES_ERROR);
	watch_compare("direct read to mmap, writeback", "implicit_bytes", (double)b.bytes,
		      (double)load.implicit_bytes, WRITEBACK_ERROR);
}

static void expect_pair(struct world *world, const char *name, const pid_t *pids,
			const unsigned long *truth, double error)
{
	char what[64];

	for (int i = 0; i < 2; i++) {
		struct iocom_load load = load_of(world, pids[i]);

		snprintf(what, sizeof(what), "explicit_write_bytes, %s", i ? "2nd" : "1st");
		if (truth[i])
			watch_compare(name, what, (double)truth[i],
				      (double)load.explicit_write_bytes, error);
		else
			watch_compare_within(name, what, 0, (double)load.explicit_write_bytes,
					     NOTHING);
	}
}

static void test_cowriters(void **state)
{
	struct world *world = *state;
	const char *path = fresh(world, "halves");
	struct body a = {.path = path, .bytes = PART, .block = 64 * KIB}, b = a;
	uint64_t bytes = 0;
	pid_t pids[2];

	b.bytes = 3 * PART;
	b.from = (off_t)PART;
	pids[0] = rig_start(body_write, &a);
	pids[1] = rig_start(body_write, &b);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_wait(pids[i]), 0);
	settle(world);
	expect_pair(world, "co-writers, 1:3, apart", pids, (unsigned long[]){PART, 3 * PART},
		    WRITEBACK_ERROR);

	/* The task that dirtied a page owns it; to write to it again costs no I/O. */
	a.bytes = b.bytes = 2 * PART;
	b.from = (off_t)PART;
	for (int i = 0; i < OVERLAP_TRIES && bytes != 3 * PART; i++) {
		char name[32];

		snprintf(name, sizeof(name), "overlap%d", i);
		a.path = b.path = fresh(world, name);
		pids[0] = write_and_exit(body_write, &a);
		pids[1] = write_and_exit(body_write, &b);
		settle(world);
		/*
		 * More: another process's sync(2) came in between, so the page was dirtied
		 * twice.
		 */
		bytes = load_of(world, pids[0]).explicit_write_bytes +
			load_of(world, pids[1]).explicit_write_bytes;
	}
	expect_pair(world, "co-writers, overlapping", pids, (unsigned long[]){2 * PART, PART},
		    COWRITER_ERROR);

	a.path = b.path = fresh(world, "interleaved");
	a.bytes = b.bytes = PART;
	a.block = b.block = a.gap = b.gap = 16 * KIB;
	a.from = 0;
	b.from = 16 * (off_t)KIB;
	pids[0] = write_and_exit(body_write, &a);
	pids[1] = write_and_exit(body_write, &b);
	settle(world);
	expect_pair(world, "co-writers, interleaved", pids, (unsigned long[]){PART, PART},
		    COWRITER_ERROR);
}

/* Bytes truncated before they were written cost no task anything. */
static void test_truncated(void **state)
{
	struct world *world = *state;
	struct body a = {.path = fresh(world, "cut"), .bytes = PART, .block = 64 * KIB}, b = a;
	pid_t pids[2];

	pids[0] = write_and_exit(body_write, &a);
	assert_int_equal(truncate(a.path, 0), 0);
	settle(world);
	watch_compare_within("truncated before writeback", "explicit_write_bytes", 0,
			     (double)load_of(world, pids[0]).explicit_write_bytes, NOTHING);

	/*
	 * Use another file: ext4 writes a file that was cut to nothing as soon as it is closed
	 * again.
	 */
	a.path = fresh(world, "cut-quarter");
	pids[0] = write_and_exit(body_write, &a);
	assert_int_equal(truncate(a.path, (off_t)PART / 4), 0);
	settle(world);
	watch_compare("truncated to a quarter", "explicit_write_bytes", (double)PART / 4,
		      (double)load_of(world, pids[0]).explicit_write_bytes, WRITEBACK_ERROR);

	a.path = b.path = fresh(world, "cut-second");
	b.from = (off_t)PART;
	pids[0] = write_and_exit(body_write, &a);
	pids[1] = write_and_exit(body_write, &b);
	assert_int_equal(truncate(a.path, (off_t)PART), 0);
	settle(world);
	expect_pair(world, "2nd writer's part cut off", pids, (unsigned long[]){PART, 0},
		    WRITEBACK_ERROR);

	a.path = b.path = fresh(world, "cut-again");
	b.from = 0;
	pids[0] = write_and_exit(body_write, &a);
	assert_int_equal(truncate(a.path, 0), 0);
	pids[1] = write_and_exit(body_write, &b);
	settle(world);
	expect_pair(world, "truncated, written by another", pids, (unsigned long[]){0, PART},
		    WRITEBACK_ERROR);
}

static void test_unlinked(void **state)
{
	struct world *world = *state;
	struct body b = {.path = fresh(world, "gone"), .bytes = PART, .block = 64 * KIB};
	pid_t pid = write_and_exit(body_write, &b);

	assert_int_equal(unlink(b.path), 0);
	settle(world);
	watch_compare_within("unlinked before writeback", "explicit_write_bytes", 0,
			     (double)load_of(world, pid).explicit_write_bytes, NOTHING);
}

/* A new file in a removed one's inode does not inherit its writers. */
static void test_inode_reused(void **state)
{
	struct world *world = *state;
	struct body b = {.path = fresh(world, "reused"), .bytes = PART, .block = 64 * KIB};
	pid_t pids[2];
	struct stat before, after;
	int tries = 0;

	pids[0] = write_and_exit(body_write, &b);
	assert_int_equal(stat(b.path, &before), 0);
	assert_int_equal(unlink(b.path), 0);
	do {
		pids[1] = write_and_exit(body_write, &b);
		assert_int_equal(stat(b.path, &after), 0);
		if (after.st_ino != before.st_ino)
			assert_int_equal(unlink(b.path), 0);
	} while (after.st_ino != before.st_ino && ++tries < INODE_TRIES);
	assert_int_equal(after.st_ino, before.st_ino);
	settle(world);
	expect_pair(world, "inode reused", pids, (unsigned long[]){0, PART}, WRITEBACK_ERROR);
}

/* An inode is removed and reused many times: each writer pays for its own bytes. */
static void test_many_files(void **state)
{
	struct world *world = *state;
	struct body b = {.bytes = 64 * KIB, .block = 64 * KIB};
	uint64_t bytes = 0;
	pid_t pids[100];

	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
		char name[32];

		snprintf(name, sizeof(name), "file%zu", i);
		b.path = fresh(world, name);
		pids[i] = write_and_exit(body_write, &b);
		if (i % 2)
			assert_int_equal(unlink(b.path), 0);
	}
	settle(world);
	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++)
		bytes += load_of(world, pids[i]).explicit_write_bytes;
	watch_compare("100 files, half of them removed", "explicit_write_bytes", 50.0 * 64 * KIB,
		      (double)bytes, WRITEBACK_ERROR);
}

static int body_small_files(void *directory)
{
	char path[200];

	for (int i = 0; i < SMALL_FILES; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/empty%d", (const char *)directory, i);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0)
			return 1;
		close(fd);
	}
	return 0;
}

/* Names and inodes are the file system's work, not the task's data. */
static void test_metadata(void **state)
{
	struct world *world = *state;
	uint64_t before = world->watch.sample.unattributed.metadata_bytes;
	struct iocom_load load;
	pid_t pid = rig_start(body_small_files, world->watch.rig.mount);

	assert_int_equal(rig_wait(pid), 0);
	settle(world);
	load = load_of(world, pid);
	watch_compare("500 empty files", "explicit_write_bytes", 0,
		      (double)load.explicit_write_bytes, 0);
	printf("# |500 empty files: %lu bytes of metadata\n",
	       world->watch.sample.unattributed.metadata_bytes - before);
	assert_true(world->watch.sample.unattributed.metadata_bytes - before >= 64 * KIB);
}

/* Makes a loop device over a file of the rig's disk; it goes when FD is closed. */
static int stack_loop(struct world *world, char *device, size_t size)
{
	int control, number, fd, file;

	assert_int_equal(rig_shell("fallocate -l %dM %s", STACKED_MIB, fresh(world, "image")), 0);
	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	number = ioctl(control, LOOP_CTL_GET_FREE);
	close(control);
	snprintf(device, size, "/dev/loop%d", number);
	fd = open(device, O_RDWR | O_CLOEXEC);
	file = open(world->path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && file >= 0);
	assert_int_equal(ioctl(fd, LOOP_SET_FD, file), 0);
	close(file);
	assert_int_equal(rig_shell("losetup -d %s", device),
			 0); /* the device is removed as soon as no process has it open */
	return fd;
}

/* The bytes count once for the task, and on the disk below as stacked. */
static void test_loop_over_file(void **state)
{
	struct world *world = *state;
	struct iocom_disk before, after;
	struct iocom_load load;
	struct body b = {.bytes = PART, .block = 256 * KIB, .flags = O_DIRECT};
	char device[32];
	int fd = stack_loop(world, device, sizeof(device));

	settle(world);
	before = *watch_disk(&world->watch);
	b.path = device;
	load = watch_run(&world->watch, body_write, &b);
	settle(world);
	after = *watch_disk(&world->watch);
	close(fd);
	watch_compare("loop over a file, write", "explicit_write_bytes", (double)b.bytes,
		      (double)load.explicit_write_bytes, BYTES_ERROR);
	watch_compare("loop over a file, write", "stacked_bytes below", (double)b.bytes,
		      (double)(after.stacked_bytes - before.stacked_bytes), WRITEBACK_ERROR);
	watch_compare_within("loop over a file, write", "task_bytes below", 0,
			     (double)(after.task_bytes - before.task_bytes), NOTHING);
}

/* Every byte of the kernel's own statistics is in one of the columns. */
static void test_identity(void **state)
{
	struct world *world = *state;
	const struct iocom_disk *disk;
	double sum;

	settle(world);
	disk = watch_disk(&world->watch);
	sum = (double)(disk->task_bytes + disk->stacked_bytes + disk->unattributed_bytes +
		       disk->foreign_bytes);
	watch_compare("disk identity, at rest", "sum of columns", (double)disk->kernel_bytes, sum,
		      IDENTITY_ERROR);
	for (size_t i = 0; i < world->watch.sample.ndisks; i++) {
		disk = &world->watch.sample.disks[i];
		printf("# |%-8s task %lu stacked %lu unattributed %lu foreign %lu kernel %lu "
		       "residual %ld\n",
		       disk->name, disk->task_bytes, disk->stacked_bytes, disk->unattributed_bytes,
		       disk->foreign_bytes, disk->kernel_bytes, disk->residual_bytes);
	}
	printf("# |unattributed: metadata %lu writeback %lu swap-out %lu other %lu\n",
	       world->watch.sample.unattributed.metadata_bytes,
	       world->watch.sample.unattributed.writeback_bytes,
	       world->watch.sample.unattributed.swap_out_bytes,
	       world->watch.sample.unattributed.other_bytes);
}

/* Writes without end; a child reads with direct I/O. */
static int body_busy(void *body)
{
	struct body b = *(struct body *)body;

	for (int i = 0; i < 64; i++) {
		b.flags = 0;
		b.sync = i % 4 == 0;
		if (body_write(&b))
			return 1;
		b.flags = O_DIRECT;
		if (body_read(&b))
			return 1;
	}
	return 0;
}

/* The check holds at each reading, also while bios are in flight. */
static void test_identity_busy(void **state)
{
	struct world *world = *state;
	struct body b[2];
	char paths[2][160];
	uint64_t bytes = 0, in_flight = 0;
	double share = 0, worst = 0;
	pid_t pids[2];

	for (int i = 0; i < 2; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/busy%d", world->watch.rig.mount, i);
		b[i] = (struct body){.path = paths[i], .bytes = PART, .block = 256 * KIB};
		pids[i] = rig_start(body_busy, &b[i]);
	}
	for (int n = 0; n < BUSY_READINGS || (!in_flight && n < BUSY_AT_MOST); n++) {
		watch_sample(&world->watch);
		share = world->watch.sample.identity.residual_share;
		worst = share > worst ? share : worst;
		if (world->watch.sample.identity.in_flight_bytes > in_flight)
			in_flight = world->watch.sample.identity.in_flight_bytes;
		bytes = world->watch.sample.identity.kernel_bytes;
	}
	for (int i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		rig_wait(pids[i]);
	}
	printf("# |identity under load: %lu bytes, worst residual %.4f %%, most in flight %lu\n",
	       bytes, worst * 100, in_flight);
	watch_compare_within("disk identity, under load", "residual, ppm", 0, worst * 1e6,
			     IDENTITY_ERROR * 1e6);
	settle(world);
	watch_compare_within("disk identity, after load", "residual, ppm", 0,
			     world->watch.sample.identity.residual_share * 1e6,
			     IDENTITY_ERROR * 1e6);
	assert_true(in_flight > 0);
}

static int world_down(void **state)
{
	struct world *world = *state;

	watch_close(&world->watch);
	free(world);
	return 0;
}

static int world_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	*state = world;
	watch_rig(&world->watch, 512);
	watch_open(&world->watch, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after_exit),     cmocka_unit_test(test_synchronous),
		cmocka_unit_test(test_mapping),	       cmocka_unit_test(test_mapping_direct),
		cmocka_unit_test(test_cowriters),      cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_unlinked),       cmocka_unit_test(test_inode_reused),
		cmocka_unit_test(test_many_files),     cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_loop_over_file), cmocka_unit_test(test_identity),
		cmocka_unit_test(test_identity_busy),
	};

	return cmocka_run_group_tests_name("accuracy of writes", tests, world_up, world_down);
}
