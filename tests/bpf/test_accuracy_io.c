/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Reads and page faults compared with known truth: each workload moves a fixed number of bytes,
 * the disk is a real block device, and the measured number is printed beside the true one.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bodies.h"
#include "tests/lib/rings.h"
#include "tests/lib/watch.h"

#define DISK_MIB      256
#define BIG	      (32 * MIB)
#define SMALL	      (8 * MIB)
#define LIMITED	      (512 * KIB)
#define LIMITED_BLOCK (128 * KIB)
#define LIMIT	      (512 * KIB) /* a second */
/*
 * The kernel gives slices of 100 ms for nothing; in one LIMITED_BLOCK does not fit.  So the first
 * one waits 150 ms, on any machine, and those behind it; a busy machine only adds to that.
 */
#define LIMITED_MS    100
#define BYTES_ERROR   0.001
#define CLASS_ERROR   0.01
#define TMPFS_MIB     "16M"
#define MEMORY_BLOCKS 64

struct world {
	struct watch watch;
	char big[128];	 /* a file of BIG bytes on the rig's disk */
	char small[128]; /* a file of SMALL bytes */
};

/* Runs BODY. All its bytes must be in one column, by EXPLICIT, and none in the other. */
static void expect_read(struct world *world, const char *name, int (*body)(void *), struct body *b,
			bool explicit)
{
	struct iocom_load load;

	rig_drop_caches(&world->watch.rig);
	load = watch_run(&world->watch, body, b);
	watch_compare(name, explicit ? "explicit_read_bytes" : "implicit_bytes", (double)b->bytes,
		      (double)(explicit ? load.explicit_read_bytes : load.implicit_bytes),
		      BYTES_ERROR);
	watch_compare_within(name, explicit ? "implicit_bytes" : "explicit_read_bytes", 0,
			     (double)(explicit ? load.implicit_bytes : load.explicit_read_bytes),
			     CLASS_ERROR * (double)b->bytes);
	assert_true(explicit ? load.explicit_ops > 0 : load.major_faults > 0 || load.implicit_ops);
}

static void test_reads(void **state)
{
	struct world *world = *state;
	struct body b = {.path = world->big, .bytes = BIG, .block = MIB, .flags = O_DIRECT};

	expect_read(world, "direct read", body_read, &b, true);
	b.flags = 0;
	b.block = 64 * KIB;
	expect_read(world, "buffered cold read", body_read, &b, true);
	b.path = world->small;
	b.bytes = SMALL;
	b.block = 4 * KIB;
	expect_read(world, "sequential 4 KiB reads", body_read, &b, true);
}

static void test_read_ahead(void **state)
{
	struct world *world = *state;
	struct body b = {.path = world->small, .bytes = SMALL, .block = 128 * KIB};

	expect_read(world, "fadvise WILLNEED", body_fadvise, &b, true);
	expect_read(world, "readahead(2)", body_readahead, &b, true);
}

static bool offered(int (*body)(void *), struct body *b)
{
	struct body one = *b;
	int rc;
	pid_t pid = fork();

	one.bytes = one.block;
	if (!pid)
		_exit(body(&one));
	rc = rig_wait(pid);
	return rc != RINGS_ABSENT;
}

static void test_rings(void **state)
{
	static const struct {
		const char *name;
		int (*body)(void *);
	} cases[] = {
		{"libaio, depth 16", body_aio},
		{"io_uring", body_uring},
		{"io_uring SQPOLL", body_uring_sqpoll},
		{"io_uring forced async", body_uring_async},
	};
	struct world *world = *state;
	char name[48];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct body b = {
			.path = world->big, .bytes = BIG, .block = 64 * KIB, .flags = O_DIRECT};

		if (!offered(cases[i].body, &b)) {
			watch_degraded(cases[i].name, "explicit_read_bytes",
				       "this kernel does not offer it");
			continue;
		}
		snprintf(name, sizeof(name), "%s, direct", cases[i].name);
		expect_read(world, name, cases[i].body, &b, true);
		b.flags = 0;
		snprintf(name, sizeof(name), "%s, buffered", cases[i].name);
		expect_read(world, name, cases[i].body, &b, true);
	}
}

static void test_ring_writes(void **state)
{
	struct world *world = *state;
	char path[160];
	struct body b = {
		.path = path, .bytes = SMALL, .block = 64 * KIB, .flags = O_DIRECT, .write = true};
	int (*const bodies[])(void *) = {body_aio, body_uring, body_uring_sqpoll, body_uring_async};
	const char *const names[] = {"libaio write", "io_uring write", "io_uring SQPOLL write",
				     "io_uring forced async write"};

	snprintf(path, sizeof(path), "%s/rings", world->watch.rig.mount);
	rig_shell("fallocate -l %lu %s", SMALL, path);
	for (size_t i = 0; i < 4; i++) {
		struct iocom_load load;

		if (!offered(bodies[i], &b))
			continue;
		load = watch_run(&world->watch, bodies[i], &b);
		watch_compare(names[i], "explicit_write_bytes", (double)b.bytes,
			      (double)load.explicit_write_bytes, BYTES_ERROR);
	}
}

static void test_faults(void **state)
{
	struct world *world = *state;
	struct body b = {.path = world->big, .bytes = BIG, .block = MIB};

	expect_read(world, "cold mmap read", body_mmap_read, &b, false);
	b.path = world->small;
	b.bytes = SMALL;
	expect_read(world, "fault inside write(2)", body_mmap_to_memory, &b, false);
}

/* Faults that come without an exception: get_user_pages on a cold mapping. */
static void test_direct_faults(void **state)
{
	struct world *world = *state;
	char path[160];
	struct body b = {.path = world->small, .to = path, .bytes = SMALL, .block = MIB};
	struct iocom_load load;

	if (!watch_hook("mm_filemap_fault", 2)) {
		watch_degraded("direct write from cold mmap", "implicit_bytes",
			       "no mm_filemap_fault: counted as explicit");
		return;
	}
	snprintf(path, sizeof(path), "%s/direct", world->watch.rig.mount);
	rig_shell("fallocate -l %lu %s", SMALL, path);
	rig_drop_caches(&world->watch.rig);
	load = watch_run(&world->watch, body_mmap_to_direct, &b);
	watch_compare("direct write from cold mmap", "implicit_bytes", (double)b.bytes,
		      (double)load.implicit_bytes, CLASS_ERROR);
	watch_compare("direct write from cold mmap", "explicit_write_bytes", (double)b.bytes,
		      (double)load.explicit_write_bytes, CLASS_ERROR);
	b.path = world->big;
	b.to = world->small;
	rig_drop_caches(&world->watch.rig);
	load = watch_run(&world->watch, body_direct_to_mmap, &b);
	watch_compare("direct read to cold mmap", "implicit_bytes", (double)b.bytes,
		      (double)load.implicit_bytes, CLASS_ERROR);
	watch_compare("direct read to cold mmap", "explicit_read_bytes", (double)b.bytes,
		      (double)load.explicit_read_bytes, CLASS_ERROR);
}

/* Runs BODY in the limited cgroup. */
struct limited {
	const struct rig *rig;
	int (*body)(void *);
	struct body *argument;
};

static int body_limited(void *limited)
{
	struct limited *l = limited;

	return rig_enter_cgroup(l->rig->limits, 0) || l->body(l->argument);
}

/* Runs BODY once and compares.  Returns how long it took, in ms. */
static double run_limited(struct world *world, const char *name, int (*body)(void *),
			  struct body *b, bool explicit, bool write)
{
	struct limited limited = {&world->watch.rig, body, b};
	double began, took;
	struct iocom_load load;

	rig_drop_caches(&world->watch.rig);
	began = watch_now_ms();
	load = watch_run(&world->watch, body_limited, &limited);
	took = watch_now_ms() - began - WATCH_SETTLE_US / 1e3;
	printf("# |%s: %.0f ms\n", name, took);
	watch_compare(name,
		      !explicit ? "implicit_bytes"
		      : write	? "explicit_write_bytes"
				: "explicit_read_bytes",
		      (double)b->bytes,
		      (double)(!explicit ? load.implicit_bytes
			       : write	 ? load.explicit_write_bytes
					 : load.explicit_read_bytes),
		      BYTES_ERROR);
	/* Waiting must not make bytes look like those of a network file system. */
	watch_compare(name, "netfs bytes", 0,
		      (double)(load.netfs_read_bytes + load.netfs_write_bytes), 0);
	return took;
}

/* The same bytes are in the same column as without a limit.  HELD: some of them have to wait. */
static void expect_limited(struct world *world, const char *name, int (*body)(void *),
			   struct body *b, bool explicit, bool write, bool held)
{
	double took = run_limited(world, name, body, b, explicit, write);

	if (held)
		assert_true(took >= LIMITED_MS); /* otherwise the limit had no effect */
}

/* A bio over its limit is sent later, by a kernel thread. */
static void test_limited_reads(void **state)
{
	static const struct {
		const char *name;
		int (*body)(void *);
		int flags;
		bool explicit, raw;
	} cases[] = {
		{"limited direct read", body_read, O_DIRECT, true, false},
		{"limited buffered read", body_read, 0, true, false},
		{"limited libaio read", body_aio, O_DIRECT, true, false},
		{"limited io_uring read", body_uring, O_DIRECT, true, false},
		{"limited forced async read", body_uring_async, O_DIRECT, true, false},
		{"limited mmap read", body_mmap_read, 0, false, false},
		{"limited raw direct read", body_read, O_DIRECT, true, true},
		{"limited raw buffered read", body_read, 0, true, true},
	};
	struct world *world = *state;
	char path[160], device[64];
	struct body b = {.path = path, .bytes = LIMITED, .block = LIMITED_BLOCK, .flags = O_SYNC};

	snprintf(device, sizeof(device), "/dev/%s", world->watch.rig.disk);
	snprintf(path, sizeof(path), "%s/limited", world->watch.rig.mount);
	assert_int_equal(rig_wait(rig_start(body_write, &b)), 0);
	if (rig_limit(&world->watch.rig, false, LIMIT)) {
		watch_degraded("limited reads", "all columns",
			       "this machine offers no I/O limits (blkio, io)");
		return;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		b.flags = cases[i].flags;
		b.path = cases[i].raw ? device : path;
		b.from = cases[i].raw ? (off_t)(DISK_MIB * MIB - LIMITED)
				      : 0; /* there is nothing to read ahead */
		expect_limited(world, cases[i].name, cases[i].body, &b, cases[i].explicit, false,
			       true);
	}
	rig_limit(&world->watch.rig, false, 0);
}

static void test_limited_writes(void **state)
{
	struct world *world = *state;
	char path[160];
	struct body b = {.path = path, .bytes = LIMITED, .block = LIMITED_BLOCK, .flags = O_DIRECT};

	snprintf(path, sizeof(path), "%s/limited", world->watch.rig.mount);
	rig_shell("fallocate -l %lu %s", LIMITED, path);
	if (rig_limit(&world->watch.rig, true, LIMIT)) {
		watch_degraded("limited writes", "all columns",
			       "this machine offers no I/O limits (blkio, io)");
		return;
	}
	expect_limited(world, "limited direct write", body_write, &b, true, true, true);
	b.flags = 0;
	b.sync = true;
	/* Version 2 limits a file's writeback only together with the memory controller. */
	expect_limited(world, "limited write, fsync", body_write, &b, true, true, false);
	rig_limit(&world->watch.rig, true, 0);
}

/* A file system in memory is no disk load. */
static void test_tmpfs(void **state)
{
	struct world *world = *state;
	char path[160];
	struct body b = {.path = path, .bytes = SMALL, .block = 64 * KIB};
	struct iocom_load written, read;

	snprintf(path, sizeof(path), "%s/tmpfs", world->watch.rig.dir);
	assert_int_equal(
		rig_shell("mkdir %s && mount -t tmpfs -o size=" TMPFS_MIB " none %s", path, path),
		0);
	strcat(path, "/file");
	written = watch_run(&world->watch, body_write, &b);
	read = watch_run(&world->watch, body_read, &b);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rig_shell("umount %s", path), 0);
	watch_compare("file in tmpfs", "explicit_write_bytes", 0,
		      (double)written.explicit_write_bytes, 0);
	watch_compare("file in tmpfs", "explicit_read_bytes", 0, (double)read.explicit_read_bytes,
		      0);
}

/* A compressed disk in memory is no disk load either. */
static void test_zram(void **state)
{
	struct world *world = *state;
	char path[64];
	struct body b = {.path = path, .bytes = SMALL, .block = 64 * KIB, .flags = O_DIRECT};
	FILE *hot = fopen("/sys/class/zram-control/hot_add", "re");
	struct iocom_load load = {0};
	int number = -1, rc;
	bool seen = false;
	pid_t pid;

	if (!hot || fscanf(hot, "%d", &number) != 1) {
		if (hot)
			fclose(hot);
		print_message("no zram\n");
		skip();
	}
	fclose(hot);
	snprintf(path, sizeof(path), "/dev/zram%d", number);
	rc = rig_shell("echo %lu > /sys/block/zram%d/disksize", SMALL, number);
	pid = rig_start(body_write, &b);
	rc |= rig_wait(pid);
	watch_sample(&world->watch);
	rig_shell("echo 1 > /sys/block/zram%d/reset; echo %d > /sys/class/zram-control/hot_remove",
		  number, number);
	assert_int_equal(rc, 0);
	assert_non_null(watch_task(&world->watch, pid));
	load = watch_task(&world->watch, pid)->load;
	for (size_t i = 0; i < world->watch.sample.ndisks; i++)
		seen |= !strncmp(world->watch.sample.disks[i].name, "zram", 4);
	watch_compare("direct write to zram", "explicit_write_bytes", 0,
		      (double)load.explicit_write_bytes, 0);
	assert_false(seen);
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
	struct body b = {.path = world->big, .bytes = BIG, .block = MIB, .flags = O_SYNC};

	*state = world;
	watch_rig(&world->watch, DISK_MIB);
	snprintf(world->big, sizeof(world->big), "%s/big", world->watch.rig.mount);
	if (rig_wait(rig_start(body_write, &b)) != 0)
		return -1;
	snprintf(world->small, sizeof(world->small), "%s/small", world->watch.rig.mount);
	b.path = world->small;
	b.bytes = SMALL;
	if (rig_wait(rig_start(body_write, &b)) != 0)
		return -1;
	rig_drop_caches(&world->watch.rig);
	watch_open(&world->watch, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),	      cmocka_unit_test(test_read_ahead),
		cmocka_unit_test(test_rings),	      cmocka_unit_test(test_ring_writes),
		cmocka_unit_test(test_faults),	      cmocka_unit_test(test_direct_faults),
		cmocka_unit_test(test_limited_reads), cmocka_unit_test(test_limited_writes),
		cmocka_unit_test(test_tmpfs),	      cmocka_unit_test(test_zram),
	};

	return cmocka_run_group_tests_name("accuracy of reads", tests, world_up, world_down);
}
