/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The monitor against known truth: each workload's bytes are fixed by its
 * program, the disk is a real block device, and what was measured is printed
 * beside what is true.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "monitor.h"
#include "rig.h"

#define KIB		1024UL
#define MIB		(1024UL * KIB)
#define FILE_MIB	64UL
#define SETTLE_US	150000 /* an RCU grace period, for the ended to be folded */
#define SHORT_PROCESSES 2000
#define SWEEP_THREADS	12000

struct world {
	struct rig rig;
	struct monitor *monitor;
	struct monitor_sample sample;
	char big[128];	 /* a file of FILE_MIB on the rig's disk */
	char small[128]; /* one of 16 MiB */
};

/* One piece of work for a child. */
struct work {
	struct world *world;
	const char *path;
	size_t bytes, block;
	off_t from;
	int flags; /* of open(2) */
};

static int row_header;

static void compare(const char *name, const char *what, double truth, double measured,
		    double tolerance)
{
	double error = truth ? (measured - truth) / truth : measured;

	if (!row_header++)
		printf("# |%-28s %-22s %12s %12s %9s\n", "case", "quantity", "truth", "measured",
		       "error");
	printf("# |%-28s %-22s %12.0f %12.0f %8.3f%%\n", name, what, truth, measured, error * 100);
	fflush(stdout);
	if (error > tolerance || error < -tolerance)
		fail_msg("%s: %s is %.0f, should be %.0f", name, what, measured, truth);
}

static void sample_now(struct world *world)
{
	struct iocom_err err = {""};

	usleep(SETTLE_US);
	if (monitor_sample(world->monitor, &world->sample, &err))
		fail_msg("monitor_sample: %s", err.text);
}

static const struct iocom_task *find_task(const struct world *world, pid_t pid)
{
	const struct iocom_task *found = NULL;

	for (size_t i = 0; i < world->sample.ntasks; i++)
		if (world->sample.tasks[i].pid == pid &&
		    (!found || found->start_ns < world->sample.tasks[i].start_ns))
			found = &world->sample.tasks[i];
	return found;
}

static const struct iocom_disk *find_disk(const struct world *world)
{
	for (size_t i = 0; i < world->sample.ndisks; i++)
		if (!strcmp(world->sample.disks[i].name, world->rig.disk))
			return &world->sample.disks[i];
	fail_msg("disk %s is not in the sample", world->rig.disk);
	return NULL;
}

/* Runs BODY to its end; what the monitor says of it, at its exit. */
static struct iocom_load run(struct world *world, int (*body)(void *argument), struct work *work)
{
	const struct iocom_task *task;
	pid_t pid = rig_start(body, work);

	assert_int_equal(rig_wait(pid), 0);
	sample_now(world);
	task = find_task(world, pid);
	assert_non_null(task);
	assert_true(task->exited);
	return task->load;
}

static void *aligned(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	memset(p, 7, bytes);
	return p;
}

static int body_read(void *argument)
{
	struct work *w = argument;
	char *buffer = aligned(w->block);
	int fd = open(w->path, O_RDONLY | w->flags);

	if (fd < 0 || !buffer)
		return 1;
	for (size_t at = 0; at < w->bytes; at += w->block)
		if (pread(fd, buffer, w->block, w->from + (off_t)at) != (ssize_t)w->block)
			return 1;
	return 0;
}

static int body_write(void *argument)
{
	struct work *w = argument;
	char *buffer = aligned(w->block);
	int fd = open(w->path, O_WRONLY | O_CREAT | w->flags, 0644);

	if (fd < 0 || !buffer)
		return 1;
	for (size_t at = 0; at < w->bytes; at += w->block)
		if (pwrite(fd, buffer, w->block, w->from + (off_t)at) != (ssize_t)w->block)
			return 1;
	return 0;
}

static char *map_cold(struct work *w)
{
	int fd = open(w->path, O_RDONLY);
	char *map = mmap(NULL, w->bytes, PROT_READ, MAP_SHARED, fd, w->from);

	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

static int body_mmap_read(void *argument)
{
	struct work *w = argument;
	volatile char *map = map_cold(w);
	unsigned sum = 0;

	if (!map)
		return 1;
	for (size_t at = 0; at < w->bytes; at += 4096)
		sum += (unsigned char)map[at];
	return sum == 1;
}

/* The kernel takes the faults, copying from the mapping inside write(2). */
static int body_mmap_to_memory(void *argument)
{
	struct work *w = argument;
	char *map = map_cold(w);
	int fd = memfd_create("sink", 0);

	if (!map || fd < 0)
		return 1;
	for (size_t at = 0; at < w->bytes; at += w->block)
		if (write(fd, map + at, w->block) != (ssize_t)w->block)
			return 1;
	return 0;
}

/* The faults come through get_user_pages, without an exception. */
static int body_mmap_to_direct(void *argument)
{
	struct work *w = argument;
	char *map = map_cold(w), path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/direct", w->world->rig.mount);
	fd = open(path, O_WRONLY | O_DIRECT);
	if (!map || fd < 0)
		return 1;
	for (size_t at = 0; at < w->bytes; at += w->block)
		if (write(fd, map + at, w->block) != (ssize_t)w->block)
			return 1;
	return 0;
}

static int body_mmap_store(void *argument)
{
	struct work *w = argument;
	int fd = open(w->path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	char *map;

	if (fd < 0 || ftruncate(fd, (off_t)w->bytes))
		return 1;
	map = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	for (size_t at = 0; at < w->bytes; at += 4096)
		map[at] = 1;
	return msync(map, w->bytes, MS_SYNC);
}

static void test_reads(void **state)
{
	struct world *world = *state;
	struct work w = {.world = world, .path = world->big, .bytes = FILE_MIB * MIB, .block = MIB};
	struct iocom_load load;

	w.flags = O_DIRECT;
	load = run(world, body_read, &w);
	compare("direct read", "explicit_read_bytes", w.bytes, load.explicit_read_bytes, 0.001);
	compare("direct read", "implicit_bytes", 0, load.implicit_bytes, 0);
	rig_drop_caches();
	w.flags = 0;
	w.block = 64 * KIB;
	load = run(world, body_read, &w);
	compare("buffered cold read", "explicit_read_bytes", w.bytes, load.explicit_read_bytes,
		0.001);
	compare("buffered cold read", "implicit_bytes", 0, load.implicit_bytes, 0);
}

static void test_faults(void **state)
{
	struct world *world = *state;
	struct work w = {.world = world, .path = world->big, .bytes = FILE_MIB * MIB, .block = MIB};
	struct iocom_load load;
	char path[160];

	rig_drop_caches();
	load = run(world, body_mmap_read, &w);
	compare("cold mmap read", "implicit_bytes", w.bytes, load.implicit_bytes, 0.01);
	compare("cold mmap read", "explicit_read < 1 %", 0,
		(double)load.explicit_read_bytes / (double)w.bytes, 0.01);
	assert_true(load.major_faults > 0);
	w.bytes = 16 * MIB; /* of a file just as long: no read-ahead beyond it */
	w.path = world->small;
	rig_drop_caches();
	load = run(world, body_mmap_to_memory, &w);
	compare("fault inside write(2)", "implicit_bytes", w.bytes, load.implicit_bytes, 0.01);
	snprintf(path, sizeof(path), "%s/direct", world->rig.mount);
	rig_shell("fallocate -l 16M %s", path);
	rig_drop_caches();
	load = run(world, body_mmap_to_direct, &w);
	compare("direct write from cold mmap", "implicit_bytes", w.bytes, load.implicit_bytes,
		0.01);
	compare("direct write from cold mmap", "explicit_write_bytes", w.bytes,
		load.explicit_write_bytes, 0.01);
	w.bytes = 8 * MIB;
	snprintf(path, sizeof(path), "%s/stored", world->rig.mount);
	w.path = path;
	load = run(world, body_mmap_store, &w);
	compare("store through mmap", "implicit_bytes", w.bytes, load.implicit_bytes, 0.01);
}

static void test_writes(void **state)
{
	struct world *world = *state;
	char path[160];
	struct work w = {.world = world, .path = path, .bytes = FILE_MIB * MIB, .block = MIB};
	const struct iocom_task *task;
	struct iocom_load load;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/late", world->rig.mount);
	pid = rig_start(body_write, &w);
	assert_int_equal(rig_wait(pid), 0);
	sample_now(world);
	task = find_task(world, pid);
	assert_non_null(task);
	sync();
	sample_now(world);
	task = find_task(world, pid);
	assert_non_null(task); /* once more: its late bytes came */
	assert_true(task->exited);
	assert_string_equal(task->comm, program_invocation_short_name);
	compare("writeback after exit", "explicit_write_bytes", w.bytes,
		task->load.explicit_write_bytes, 0.001);

	snprintf(path, sizeof(path), "%s/sync", world->rig.mount);
	w.bytes = 2 * MIB;
	w.block = 64 * KIB;
	w.flags = O_SYNC;
	load = run(world, body_write, &w);
	compare("O_SYNC write", "explicit_write_bytes", w.bytes, load.explicit_write_bytes, 0.001);
	compare("O_SYNC write", "implicit_bytes", 0, load.implicit_bytes, 0);
	rig_shell("fallocate -l 16M %s", path);
	w.bytes = 16 * MIB;
	w.flags = O_DIRECT;
	load = run(world, body_write, &w);
	compare("direct write", "explicit_write_bytes", w.bytes, load.explicit_write_bytes, 0.001);
}

static void test_cowriters(void **state)
{
	struct world *world = *state;
	char path[160];
	struct work w[2];
	pid_t pids[2];

	snprintf(path, sizeof(path), "%s/shared", world->rig.mount);
	for (int i = 0; i < 2; i++) {
		w[i] = (struct work){.world = world,
				     .path = path,
				     .bytes = (i ? 24UL : 8UL) * MIB,
				     .block = 64 * KIB,
				     .from = i ? 8 * (off_t)MIB : 0};
		pids[i] = rig_start(body_write, &w[i]);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_wait(pids[i]), 0);
	sync();
	sample_now(world);
	for (int i = 0; i < 2; i++) {
		const struct iocom_task *task = find_task(world, pids[i]);

		assert_non_null(task);
		compare(i ? "co-writer, 24 of 32 MiB" : "co-writer, 8 of 32 MiB",
			"explicit_write_bytes", w[i].bytes, task->load.explicit_write_bytes, 0.01);
	}
}

static void test_short_processes(void **state)
{
	struct world *world = *state;
	struct work w = {.world = world,
			 .path = world->big,
			 .bytes = 64 * KIB,
			 .block = 64 * KIB,
			 .flags = O_DIRECT};
	uint64_t bytes = 0, cpu = 0;
	size_t rows = 0;
	pid_t first = 0, last = 0;

	sample_now(world);
	for (int i = 0; i < SHORT_PROCESSES; i++) {
		w.from = (off_t)(i % 1024) * 64 * (off_t)KIB;
		last = rig_start(body_read, &w);
		first = first ? first : last;
		assert_int_equal(rig_wait(last), 0);
	}
	for (int n = 0; n < 5 && rows < SHORT_PROCESSES; n++) {
		sample_now(world);
		for (size_t i = 0; i < world->sample.ntasks; i++) {
			const struct iocom_task *task = &world->sample.tasks[i];

			if (!task->exited || strcmp(task->comm, program_invocation_short_name) != 0)
				continue;
			rows++;
			bytes += task->load.explicit_read_bytes;
			cpu += task->load.cpu_ns;
		}
	}
	compare("2,000 short processes", "rows", SHORT_PROCESSES, rows, 0);
	compare("2,000 short processes", "explicit_read_bytes", SHORT_PROCESSES * w.bytes, bytes,
		0);
	assert_true(cpu > 0);
}

static int body_spin_5ms(void *argument)
{
	struct timespec a, b;

	(void)argument;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < 5000000L);
	return 0;
}

static void test_5ms_task(void **state)
{
	struct world *world = *state;
	const struct iocom_task *task;
	struct rusage usage;
	double truth_us;
	int status;
	pid_t pid;

	sample_now(world);
	pid = rig_start(body_spin_5ms, NULL);
	assert_int_equal(wait4(pid, &status, 0, &usage), pid);
	truth_us = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
		   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	sample_now(world);
	task = find_task(world, pid);
	assert_non_null(task);
	assert_true(task->exited);
	compare("5 ms task", "cpu_us, as wait4 tells", truth_us, (double)task->load.cpu_ns / 1000,
		0.01);
}

/* Whoever did the I/O, a cgroup's total is exact, also across a move. */
static void test_jobs(void **state)
{
	struct world *world = *state;
	struct work w = {.world = world,
			 .path = world->big,
			 .bytes = 4 * MIB,
			 .block = 64 * KIB,
			 .flags = O_DIRECT};
	char cgroup[2][160];
	uint64_t id[2], bytes[2] = {0, 0};
	struct stat st;
	int go[2];
	pid_t pid;
	char byte = 0;

	for (int i = 0; i < 2; i++) {
		snprintf(cgroup[i], sizeof(cgroup[i]), "%s/job%d", world->rig.cgroup, i);
		assert_int_equal(mkdir(cgroup[i], 0755), 0);
		assert_int_equal(stat(cgroup[i], &st), 0);
		id[i] = st.st_ino;
	}
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (!pid) {
		rig_enter_cgroup(cgroup[0], 0);
		body_read(&w);
		w.bytes = 12 * MIB;
		rig_enter_cgroup(cgroup[1], 0);
		body_read(&w);
		_exit(read(go[0], &byte, 1) != 1);
	}
	usleep(300000);
	sample_now(world); /* while it lives */
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(rig_wait(pid), 0);
	for (int i = 0; i < 2; i++)
		rmdir(cgroup[i]);
	sample_now(world); /* after it and its cgroup are gone */
	for (size_t j = 0; j < world->sample.njobs; j++)
		for (int i = 0; i < 2; i++)
			if (world->sample.jobs[j].cgroup_id == id[i])
				bytes[i] = world->sample.jobs[j].load.explicit_read_bytes;
	compare("moved between cgroups", "first job's bytes", 4 * MIB, bytes[0], 0);
	compare("moved between cgroups", "second job's bytes", 12 * MIB, bytes[1], 0);
	close(go[0]);
	close(go[1]);
}

static void test_service(void **state)
{
	struct world *world = *state;
	struct work w = {.world = world,
			 .path = world->big,
			 .bytes = 8 * MIB,
			 .block = 4 * KIB,
			 .flags = O_DIRECT};
	struct iocom_disk before, after;
	double mean_ms, second_ms2, elapsed_ms;

	sample_now(world);
	before = *find_disk(world);
	run(world, body_read, &w);
	after = *find_disk(world);
	compare("2,048 direct reads", "disk requests", 2048, after.requests - before.requests,
		0.001);
	compare("2,048 direct reads", "disk read_bytes", w.bytes,
		after.read_bytes - before.read_bytes, 0.001);
	mean_ms = (double)(after.service_sum_ns - before.service_sum_ns) / 2048e6;
	second_ms2 = (after.service_sum2_ms2 - before.service_sum2_ms2) / 2048;
	elapsed_ms = (double)world->sample.elapsed_ns / 1e6;
	printf("# |service of one 4 KiB read: mean %.4f ms, mean square %.6f ms2, busy %.1f %%\n",
	       mean_ms, second_ms2, mean_ms * 2048 / elapsed_ms * 100);
	assert_true(mean_ms > 0 && mean_ms * 2048 < elapsed_ms);
	assert_true(second_ms2 >= mean_ms * mean_ms * 0.999);
}

static void *sleep_long(void *argument)
{
	return pause(), argument;
}

static int body_threads(void *argument)
{
	int *ready = argument;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	for (int i = 0; i < SWEEP_THREADS - 1; i++)
		if (pthread_create(&thread, &attr, sleep_long, NULL))
			return 1;
	if (write(ready[1], "", 1) != 1)
		return 1;
	pause();
	return 0;
}

static void test_sweep(void **state)
{
	struct world *world = *state;
	double best_ms = 1e9, look_ms = 1e9;
	struct timespec a, b;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = rig_start(body_threads, ready);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		rig_wait(pid);
		skip();
	}
	for (int i = 0; i < 5; i++) {
		sample_now(world);
		if ((double)world->sample.sweep_ns / 1e6 < best_ms)
			best_ms = (double)world->sample.sweep_ns / 1e6;
		clock_gettime(CLOCK_MONOTONIC, &a);
		assert_int_equal(monitor_look(world->monitor, NULL), 0);
		clock_gettime(CLOCK_MONOTONIC, &b);
		if ((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6 <
		    look_ms)
			look_ms = (double)(b.tv_sec - a.tv_sec) * 1e3 +
				  (double)(b.tv_nsec - a.tv_nsec) / 1e6;
	}
	kill(pid, SIGKILL);
	rig_wait(pid);
	close(ready[0]);
	printf("# |%d threads: sweep %.2f ms, look at the run queue %.2f ms\n", SWEEP_THREADS,
	       best_ms, look_ms);
	assert_true(best_ms < 30);
}

/* Every byte of the kernel's own statistics is in one of the columns. */
static void test_disk_identity(void **state)
{
	struct world *world = *state;
	const struct iocom_disk *disk;
	double sum;

	sync();
	sample_now(world);
	disk = find_disk(world);
	sum = (double)(disk->task_bytes + disk->stacked_bytes + disk->unattributed_bytes +
		       disk->foreign_bytes);
	compare("disk identity", "sum of columns", disk->kernel_bytes, sum, 0.01);
	for (size_t i = 0; i < world->sample.ndisks; i++) {
		disk = &world->sample.disks[i];
		printf("# |%-8s task %lu stacked %lu unattributed %lu foreign %lu kernel %lu "
		       "residual %ld\n",
		       disk->name, disk->task_bytes, disk->stacked_bytes, disk->unattributed_bytes,
		       disk->foreign_bytes, disk->kernel_bytes, disk->residual_bytes);
	}
	printf("# |unattributed: metadata %lu writeback %lu swap-out %lu other %lu\n",
	       world->sample.unattributed.metadata_bytes,
	       world->sample.unattributed.writeback_bytes,
	       world->sample.unattributed.swap_out_bytes, world->sample.unattributed.other_bytes);
}

static void test_no_drops(void **state)
{
	struct world *world = *state;

	sample_now(world);
	for (size_t i = 0; i < world->sample.nprograms; i++)
		if (world->sample.programs[i].runs)
			printf("# |program %-14s %8lu runs %8.1f ns\n",
			       world->sample.programs[i].name, world->sample.programs[i].runs,
			       (double)world->sample.programs[i].run_ns /
				       (double)world->sample.programs[i].runs);
	for (size_t i = 0; i < world->sample.ndrops; i++)
		if (world->sample.drops[i].count)
			fail_msg("drop %s: %lu", world->sample.drops[i].name,
				 world->sample.drops[i].count);
}

/* A monitor with a scope sees its cgroup's tasks, its disk, and strangers as foreign. */
static void test_scope(void **state)
{
	struct world *world = *state, scoped = {.rig = world->rig};
	const char *disks[] = {world->rig.disk, NULL};
	char path[160];
	struct monitor_config config = {.scope_cgroup = path, .scope_disks = disks};
	struct work w = {.world = world,
			 .path = world->big,
			 .bytes = 8 * MIB,
			 .block = 64 * KIB,
			 .flags = O_DIRECT};
	struct iocom_err err = {""};
	const struct iocom_task *task;
	pid_t inside, outside;

	snprintf(path, sizeof(path), "%s/node", world->rig.cgroup);
	assert_int_equal(mkdir(path, 0755), 0);
	if (monitor_open(&scoped.monitor, &config, &err))
		fail_msg("%s", err.text);
	snprintf(path, sizeof(path), "%s/node/job", world->rig.cgroup);
	assert_int_equal(mkdir(path, 0755), 0);
	inside = fork();
	if (!inside) {
		rig_enter_cgroup(path, 0);
		_exit(body_read(&w));
	}
	outside = rig_start(body_read, &w);
	assert_int_equal(rig_wait(inside), 0);
	assert_int_equal(rig_wait(outside), 0);
	sample_now(&scoped);
	task = find_task(&scoped, inside);
	assert_non_null(task);
	compare("scope: task inside", "explicit_read_bytes", w.bytes,
		task->load.explicit_read_bytes, 0.001);
	assert_null(find_task(&scoped, outside));
	assert_int_equal(scoped.sample.ndisks, 1);
	compare("scope: task outside", "foreign_bytes", w.bytes, find_disk(&scoped)->foreign_bytes,
		0.01);
	monitor_free(scoped.monitor);
}

static void test_errors(void **state)
{
	struct monitor *monitor;
	struct iocom_err err = {""};
	struct monitor_config no_cgroup = {.scope_cgroup = "/no/such/cgroup"};
	const char *names[] = {"no-such-disk", NULL};
	struct monitor_config no_disk = {.scope_disks = names};

	(void)state;
	assert_int_equal(monitor_open(&monitor, &no_cgroup, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/no/such/cgroup"));
	assert_int_equal(monitor_open(&monitor, &no_disk, &err), -ENODEV);
	assert_non_null(strstr(err.text, "no-such-disk"));
}

static int world_down(void **state)
{
	struct world *world = *state;

	monitor_free(world->monitor);
	rig_down(&world->rig);
	free(world);
	return 0;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int world_up(void **state)
{
	struct monitor_config config = {0};
	struct iocom_err err = {""};
	struct world *world = calloc(1, sizeof(*world));
	struct work w = {.world = world, .bytes = FILE_MIB * MIB, .block = MIB, .flags = O_SYNC};
	double began;

	*state = world;
	if (rig_up(&world->rig, 512)) {
		printf("1..0 # SKIP %s\n", world->rig.why);
		exit(0);
	}
	snprintf(world->big, sizeof(world->big), "%s/big", world->rig.mount);
	w.path = world->big;
	if (rig_wait(rig_start(body_write, &w)) != 0)
		return -1;
	snprintf(world->small, sizeof(world->small), "%s/small", world->rig.mount);
	w.path = world->small;
	w.bytes = 16 * MIB;
	if (rig_wait(rig_start(body_write, &w)) != 0)
		return -1;
	rig_drop_caches();
	began = now_ms();
	if (monitor_open(&world->monitor, &config, &err) ||
	    monitor_sample(world->monitor, &world->sample, &err)) {
		printf("# %s\n", err.text);
		return -1;
	}
	printf("# |start to first sample %.1f ms\n", now_ms() - began);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),	      cmocka_unit_test(test_faults),
		cmocka_unit_test(test_writes),	      cmocka_unit_test(test_cowriters),
		cmocka_unit_test(test_service),	      cmocka_unit_test(test_5ms_task),
		cmocka_unit_test(test_jobs),	      cmocka_unit_test(test_short_processes),
		cmocka_unit_test(test_scope),	      cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_disk_identity), cmocka_unit_test(test_no_drops),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests_name("monitor", tests, world_up, world_down);
}
