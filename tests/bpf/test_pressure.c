/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Many of everything at once: all that is not counted as lost must be exact. This short form
 * takes seconds; IOCOM_PRESSURE=full (make check-pressure) has 100,000 threads, 100,000 dirty
 * files, 20,000 cgroups, ten seconds of exits, and 300 disks.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bodies.h"
#include "tests/lib/watch.h"

#define BLOCK		   (4 * KIB)
#define FILE_BLOCKS	   256
#define PIDS_SPARE	   4000 /* left to the rest of the machine */
#define THREADS_A_PROCESS  2000
#define CGROUPS_A_READING  2000
#define LOOPS		   300
#define STORM_LOOPS	   4
#define STORM_READINGS_A_S 2
#define PID_MAX		   "/proc/sys/kernel/pid_max"
#define THREADS_MAX	   "/proc/sys/kernel/threads-max"

struct world {
	struct watch watch;
	bool full;
	char file[160];
};

static long read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	long value = -1;

	if (file && fscanf(file, "%ld", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

static bool write_number(const char *path, long value)
{
	FILE *file = fopen(path, "we");

	if (!file)
		return false;
	fprintf(file, "%ld", value);
	return !fclose(file);
}

static double resident_mb(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (file && fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static uint64_t make_cgroup(const char *path)
{
	struct stat st;

	return mkdir(path, 0755) || stat(path, &st) ? 0 : st.st_ino;
}

static int open_file(const char *path)
{
	return open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

static void read_block(int fd, char *buffer, unsigned i)
{
	if (pread(fd, buffer, BLOCK, (off_t)(i % FILE_BLOCKS) * (off_t)BLOCK) != (ssize_t)BLOCK)
		_exit(1);
}

/* --- threads ------------------------------------------------------------------- */

struct herd {
	const char *file, *cgroup;
	unsigned threads;
	int ready[2], fd;
	pthread_mutex_t turn;
	char *buffer; /* shared by all, protected by `turn` */
};

static void *read_and_stay(void *argument)
{
	struct herd *herd = argument;

	pthread_mutex_lock(&herd->turn);
	read_block(herd->fd, herd->buffer, 0);
	pthread_mutex_unlock(&herd->turn);
	if (write(herd->ready[1], "", 1) != 1)
		_exit(2);
	return pause(), argument;
}

static int body_herd(void *argument)
{
	struct herd *herd = argument;
	pthread_attr_t attr;
	pthread_t thread;

	if (rig_enter_cgroup(herd->cgroup, 0))
		return 1;
	herd->fd = open_file(herd->file);
	herd->buffer = body_buffer(BLOCK);
	pthread_mutex_init(&herd->turn, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	pthread_attr_setguardsize(&attr, 0);
	for (unsigned i = 1; i < herd->threads; i++)
		if (pthread_create(&thread, &attr, read_and_stay, herd))
			return 1;
	read_and_stay(herd);
	return 1;
}

/* Returns how many threads this machine lets us have, at most WANTED. */
static unsigned threads_allowed(unsigned wanted)
{
	long most = read_number(PID_MAX), threads = read_number(THREADS_MAX);

	if (threads < most)
		most = threads;
	most -= PIDS_SPARE;
	return most < (long)wanted ? (unsigned)most : wanted;
}

static void check_threads(struct world *world, unsigned wanted)
{
	unsigned threads = threads_allowed(wanted) / THREADS_A_PROCESS * THREADS_A_PROCESS;
	unsigned processes = threads / THREADS_A_PROCESS, ready = 0;
	struct herd herd = {.file = world->file, .threads = THREADS_A_PROCESS};
	pid_t *pids = calloc(processes, sizeof(*pids));
	const struct iocom_job_load *job;
	char path[200], bytes[4096];
	uint64_t id, rows = 0;
	ssize_t n;

	assert_non_null(pids);
	snprintf(path, sizeof(path), "%s/herd", world->watch.rig.cgroup);
	id = make_cgroup(path);
	assert_true(id);
	herd.cgroup = path;
	assert_int_equal(pipe(herd.ready), 0);
	for (unsigned i = 0; i < processes; i++)
		pids[i] = rig_start(body_herd, &herd);
	close(herd.ready[1]);
	while (ready < threads && (n = read(herd.ready[0], bytes, sizeof(bytes))) > 0)
		ready += (unsigned)n;
	watch_sample(&world->watch);
	printf("# |%u threads: sweep %.1f ms, %.0f ns each; this process %.1f MB\n", ready,
	       (double)world->watch.sample.sweep_ns / 1e6,
	       (double)world->watch.sample.sweep_ns / ready, resident_mb());
	for (unsigned i = 0; i < processes; i++) {
		const struct iocom_task *task = watch_task(&world->watch, pids[i]);

		rows += task ? task->load.explicit_read_bytes : 0;
	}
	for (unsigned i = 0; i < processes; i++) {
		kill(pids[i], SIGKILL);
		rig_wait(pids[i]);
	}
	close(herd.ready[0]);
	free(pids);
	assert_int_equal(ready, threads);
	watch_compare_lost("many threads, alive", "rows' read bytes", (double)threads * BLOCK,
			   (double)rows, watch_missed(&world->watch) * BLOCK);
	watch_sample(&world->watch);
	job = watch_job(&world->watch, id);
	assert_non_null(job);
	watch_compare_lost("many threads, killed", "job's read bytes", (double)threads * BLOCK,
			   (double)job->load.explicit_read_bytes,
			   watch_missed(&world->watch) * BLOCK);
	/* A few threads may find the storage of their CPU in use by somebody who was preempted. */
	assert_true(watch_drop(&world->watch, "task_storage") <= threads / 100);
}

static void test_threads(void **state)
{
	struct world *world = *state;
	long pid_max = read_number(PID_MAX);

	if (world->full && pid_max < 200000)
		write_number(PID_MAX, 200000);
	check_threads(world, world->full ? 100000 : 4000);
	if (world->full)
		write_number(PID_MAX, pid_max);
}

/* --- dirty files ----------------------------------------------------------------- */

struct files {
	const char *dir, *cgroup;
	unsigned count;
};

static int body_files(void *argument)
{
	const struct files *f = argument;
	char path[200], *buffer = body_buffer(BLOCK);

	if (rig_enter_cgroup(f->cgroup, 0))
		return 1;
	for (unsigned i = 0; i < f->count; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%u", f->dir, i);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0 || write(fd, buffer, BLOCK) != (ssize_t)BLOCK)
			return 1;
		close(fd);
	}
	return 0;
}

static void test_files(void **state)
{
	struct world *world = *state;
	char dir[160], path[200];
	struct files f = {.dir = dir, .cgroup = path, .count = world->full ? 100000 : 5000};
	const struct iocom_job_load *job;
	uint64_t id;

	snprintf(dir, sizeof(dir), "%s/many", world->watch.rig.mount);
	assert_int_equal(mkdir(dir, 0700), 0);
	snprintf(path, sizeof(path), "%s/files", world->watch.rig.cgroup);
	id = make_cgroup(path);
	assert_true(id);
	assert_int_equal(rig_wait(rig_start(body_files, &f)), 0);
	rmdir(path);
	sync();
	watch_sample(&world->watch);
	job = watch_job(&world->watch, id);
	assert_non_null(job);
	watch_compare("many dirty files", "job's write bytes", (double)f.count * BLOCK,
		      (double)job->load.explicit_write_bytes, 0);
	assert_int_equal(watch_drop(&world->watch, "ledger"), 0);
}

/* --- cgroups --------------------------------------------------------------------- */

struct herdsman {
	const char *file, *cgroup;
	unsigned from, count;
	uint64_t *ids; /* shared; they grow */
};

static int body_cgroups(void *argument)
{
	const struct herdsman *h = argument;
	char path[256], *buffer = body_buffer(BLOCK);
	int fd = open_file(h->file);

	for (unsigned i = h->from; i < h->from + h->count; i++) {
		pid_t pid;

		snprintf(path, sizeof(path), "%s/many/%u", h->cgroup, i);
		h->ids[i] = make_cgroup(path);
		if (!h->ids[i])
			return 1;
		pid = fork();
		if (!pid) {
			if (rig_enter_cgroup(path, 0))
				_exit(1);
			read_block(fd, buffer, i);
			_exit(0);
		}
		if (rig_wait(pid))
			return 1;
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Returns the bytes since the previous reading in the first COUNT of IDS. */
static uint64_t read_in_jobs(const struct watch *watch, const uint64_t *ids, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < watch->sample.njobs; i++)
		if (bsearch(&watch->sample.jobs[i].cgroup_id, ids, count, sizeof(*ids), by_id))
			bytes += watch->sample.jobs[i].delta.explicit_read_bytes;
	return bytes;
}

static void test_cgroups(void **state)
{
	struct world *world = *state;
	unsigned count = world->full ? 20000 : 300, done;
	struct herdsman h = {.file = world->file, .cgroup = world->watch.rig.cgroup};
	double began = watch_now_ms();
	uint64_t bytes = 0;
	char path[200];

	h.ids = mmap(NULL, count * sizeof(*h.ids), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(h.ids, MAP_FAILED);
	snprintf(path, sizeof(path), "%s/many", world->watch.rig.cgroup);
	assert_int_equal(mkdir(path, 0755), 0);
	for (done = 0; done < count; done += h.count) {
		h.from = done;
		h.count = count - done < CGROUPS_A_READING ? count - done : CGROUPS_A_READING;
		assert_int_equal(rig_wait(rig_start(body_cgroups, &h)), 0);
		watch_sample(&world->watch);
		bytes += read_in_jobs(&world->watch, h.ids, done + h.count);
	}
	printf("# |%u cgroups in %.1f s: %zu known, drop ended_jobs %lu, sweep %.1f ms\n", count,
	       (watch_now_ms() - began) / 1e3, world->watch.sample.njobs,
	       watch_drop(&world->watch, "ended_jobs"), (double)world->watch.sample.sweep_ns / 1e6);
	rig_shell("find %s -depth -type d -delete", path);
	watch_compare("many cgroups", "jobs' read bytes", (double)count * BLOCK, (double)bytes, 0);
	munmap(h.ids, count * sizeof(*h.ids));
	assert_int_equal(watch_drop(&world->watch, "jobs"), 0);
	if (count > 16384)
		assert_true(watch_drop(&world->watch, "ended_jobs") > 0);
}

/* --- exits ----------------------------------------------------------------------- */

struct storm {
	const char *cgroup;
	unsigned milliseconds;
	uint64_t *ended; /* shared */
};

static int body_storm(void *argument)
{
	const struct storm *s = argument;
	double until = watch_now_ms() + s->milliseconds;

	if (rig_enter_cgroup(s->cgroup, 0))
		return 1;
	while (watch_now_ms() < until) {
		pid_t pid = vfork();

		if (!pid)
			_exit(0);
		if (rig_wait(pid))
			return 1;
		__atomic_add_fetch(s->ended, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

static size_t exited_in(const struct watch *watch, uint64_t id)
{
	size_t rows = 0;

	for (size_t i = 0; i < watch->sample.ntasks; i++) {
		const struct iocom_task *task = &watch->sample.tasks[i];

		rows += task->cgroup_id == id && task->exited;
	}
	return rows;
}

static void test_exits(void **state)
{
	struct world *world = *state;
	struct storm s = {.milliseconds = world->full ? 10000 : 1500};
	unsigned readings = s.milliseconds * STORM_READINGS_A_S / 1000;
	uint64_t id, late = watch_drop(&world->watch, "late");
	pid_t loops[STORM_LOOPS];
	double missed;
	size_t rows = 0;
	char path[200];

	s.ended = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(s.ended, MAP_FAILED);
	snprintf(path, sizeof(path), "%s/storm", world->watch.rig.cgroup);
	id = make_cgroup(path);
	assert_true(id);
	s.cgroup = path;
	for (int i = 0; i < STORM_LOOPS; i++)
		loops[i] = rig_start(body_storm, &s);
	for (unsigned i = 0; i < readings; i++) {
		usleep(1000000 / STORM_READINGS_A_S);
		watch_sample(&world->watch);
		rows += exited_in(&world->watch, id);
	}
	for (int i = 0; i < STORM_LOOPS; i++)
		assert_int_equal(rig_wait(loops[i]), 0);
	watch_sample(&world->watch);
	rows += exited_in(&world->watch, id);
	late = watch_drop(&world->watch, "late") - late;
	printf("# |%lu exits, %.0f a second: drop late %lu, exited %lu\n", *s.ended,
	       (double)*s.ended * 1e3 / s.milliseconds, late, watch_drop(&world->watch, "exited"));
	/* Each missing row is a drop; without drops all rows are there, those of the loops too. */
	missed = watch_missed(&world->watch);
	assert_true((double)(rows + late) + missed >= (double)(*s.ended + STORM_LOOPS));
	if (!late)
		watch_compare_lost("storm of exits", "rows", (double)(*s.ended + STORM_LOOPS),
				   (double)rows, missed);
	munmap(s.ended, 4096);
}

/* --- disks ----------------------------------------------------------------------- */

/* Makes a loop device over IMAGE that goes with its descriptor; -1: there are no more. */
static int open_loop(int control, int image)
{
	struct loop_config config = {.fd = (__u32)image,
				     .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_READ_ONLY};
	char path[32];
	int fd, n;

	for (int tries = 0; tries < 20; tries++) {
		n = ioctl(control, LOOP_CTL_GET_FREE);
		snprintf(path, sizeof(path), "/dev/loop%d", n);
		fd = n < 0 ? -1 : open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
		if (fd < 0)
			return -1;
		if (!ioctl(fd, LOOP_CONFIGURE, &config))
			return fd;
		close(fd); /* another process was faster */
	}
	return -1;
}

/* Returns what tasks did on the disk behind FD, by the last reading. */
static uint64_t disk_bytes(const struct watch *watch, int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	for (size_t i = 0; i < watch->sample.ndisks; i++) {
		const struct iocom_disk *disk = &watch->sample.disks[i];

		if (disk->major == major(st.st_rdev) && disk->minor == minor(st.st_rdev))
			return disk->task_bytes;
	}
	return 0;
}

/* Removes new loop devices, unless another process uses them. */
static void remove_loops(int control, const int *numbers, unsigned count, int first)
{
	for (unsigned i = 0; i < count; i++)
		if (numbers[i] >= first)
			ioctl(control, LOOP_CTL_REMOVE, numbers[i]);
}

static int first_new_loop(void)
{
	char path[64];
	int n = 0;

	do
		snprintf(path, sizeof(path), "/sys/block/loop%d", n++);
	while (!access(path, F_OK));
	return n - 1;
}

static void test_disks(void **state)
{
	struct world *world = *state;
	unsigned wanted = world->full ? LOOPS : 12, disks = 0, exact = 0;
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), fds[LOOPS], numbers[LOOPS];
	int image = open(world->file, O_RDONLY | O_CLOEXEC), first = first_new_loop();
	char *buffer = body_buffer(BLOCK);
	uint64_t before[LOOPS];
	struct stat st;

	if (control < 0 || image < 0)
		skip();
	while (disks < wanted && (fds[disks] = open_loop(control, image)) >= 0) {
		assert_int_equal(fstat(fds[disks], &st), 0);
		numbers[disks++] = (int)minor(st.st_rdev);
	}
	/* Reading the first block shows the monitor which disk has this device number now. */
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < disks; i++)
			assert_int_equal(pread(fds[i], buffer, BLOCK, 0), BLOCK);
		watch_sample(&world->watch);
		for (unsigned i = 0; i < disks; i++) {
			uint64_t bytes = disk_bytes(&world->watch, fds[i]);

			exact += round && bytes - before[i] == BLOCK;
			before[i] = bytes;
		}
	}
	for (unsigned i = 0; i < disks; i++)
		close(fds[i]);
	remove_loops(control, numbers, disks, first);
	close(control);
	close(image);
	munmap(buffer, BLOCK);
	watch_compare("many disks", "disks with exact bytes", disks, exact, 0);
	assert_int_equal(watch_drop(&world->watch, "disks"), 0);
	if (disks < wanted)
		printf("# |only %u loop devices were to be had\n", disks);
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
	struct body w = {
		.bytes = FILE_BLOCKS * BLOCK, .block = FILE_BLOCKS * BLOCK, .flags = O_SYNC};
	const char *form = getenv("IOCOM_PRESSURE");

	*state = world;
	world->full = form && !strcmp(form, "full");
	watch_rig(&world->watch, world->full ? 3072 : 256);
	snprintf(world->file, sizeof(world->file), "%s/file", world->watch.rig.mount);
	w.path = world->file;
	if (rig_wait(rig_start(body_write, &w)) != 0)
		return -1;
	watch_open(&world->watch, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads), cmocka_unit_test(test_files),
		cmocka_unit_test(test_cgroups), cmocka_unit_test(test_exits),
		cmocka_unit_test(test_disks),
	};

	return cmocka_run_group_tests_name("monitor: pressure", tests, world_up, world_down);
}
