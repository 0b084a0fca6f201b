/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The job view compared with known truth: what the kernel accounts to tasks, network file
 * systems apart from disks, and totals of nested cgroups, of tasks and threads that move, and of
 * ended ones.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
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

#include "tests/lib/bodies.h"
#include "user/monitor/job_times.h"
#include "user/monitor/sample_json.h"
#include "tests/lib/watch.h"

#define BURN_MS 300.0

struct world {
	struct watch watch;
	char big[128]; /* 16 MiB on the rig's disk */
};

/* --- accounting -------------------------------------------------------------- */

static int body_truncate(void *body)
{
	struct body *b = body;

	return body_write(b) || truncate(b->path, 0);
}

static void no_netfs(const char *name, const struct iocom_load *load)
{
	watch_compare(name, "netfs_read_bytes", 0, load->netfs_read_bytes, 0);
	watch_compare(name, "netfs_write_bytes", 0, load->netfs_write_bytes, 0);
}

static bool lacks_accounting(struct watch *watch, const char *name)
{
	watch_sample(watch);
	if (!watch->sample.no_task_io)
		return false;
	watch_degraded(name, "dirtied, cancelled, netfs", "no CONFIG_TASK_IO_ACCOUNTING");
	return true;
}

static void test_disk_accounting(void **state)
{
	struct world *world = *state;
	char path[160];
	struct body w = {.path = path, .bytes = 8 * MIB, .block = MIB};
	struct iocom_load load;

	if (lacks_accounting(&world->watch, "disk file system"))
		return;
	snprintf(path, sizeof(path), "%s/dirty", world->watch.rig.mount);
	load = watch_run(&world->watch, body_write, &w);
	watch_compare("buffered write", "dirtied_bytes", w.bytes, load.dirtied_bytes, 0);
	watch_compare("buffered write", "cancelled_bytes", 0, load.cancelled_bytes, 0);
	no_netfs("buffered write", &load);
	sync();
	snprintf(path, sizeof(path), "%s/truncated", world->watch.rig.mount);
	load = watch_run(&world->watch, body_truncate, &w);
	watch_compare("truncated", "dirtied_bytes", w.bytes, load.dirtied_bytes, 0);
	watch_compare("truncated", "cancelled_bytes", w.bytes, load.cancelled_bytes, 0);
	no_netfs("truncated", &load);
	w.flags = O_DIRECT;
	snprintf(path, sizeof(path), "%s/dirty", world->watch.rig.mount);
	load = watch_run(&world->watch, body_write, &w);
	watch_compare("direct overwrite", "dirtied_bytes", w.bytes, load.dirtied_bytes, 0);
	no_netfs("direct overwrite", &load);
	load = watch_run(&world->watch, body_read, &w);
	no_netfs("direct read", &load);
	rig_drop_caches(&world->watch.rig);
	w.flags = 0;
	load = watch_run(&world->watch, body_read, &w);
	no_netfs("buffered cold read", &load);
	snprintf(path, sizeof(path), "%s/stored", world->watch.rig.mount);
	load = watch_run(&world->watch, body_mmap_store, &w);
	watch_compare("store through mmap", "dirtied_bytes", w.bytes, load.dirtied_bytes, 0);
	no_netfs("store through mmap", &load);
}

/* A reading may fall between the kernel's accounting and the block layer. */
static void test_readings_under_load(void **state)
{
	struct world *world = *state;
	struct body w = {
		.path = world->big, .bytes = 16 * MIB, .block = 256 * KIB, .flags = O_DIRECT};
	uint64_t most = 0;
	double until;
	pid_t pid;

	if (lacks_accounting(&world->watch, "40 readings under load"))
		return;
	pid = fork();
	if (!pid)
		for (;;)
			if (body_read(&w))
				_exit(1);
	until = watch_now_ms() + 2000;
	for (int i = 0; i < 40 || watch_now_ms() < until; i++) {
		struct iocom_err err = {""};
		const struct iocom_task *task;

		if (monitor_sample(world->watch.monitor, &world->watch.sample, &err))
			fail_msg("%s", err.text);
		task = watch_task(&world->watch, pid);
		if (task && task->load.netfs_read_bytes + task->load.netfs_write_bytes > most)
			most = task->load.netfs_read_bytes + task->load.netfs_write_bytes;
		usleep(10000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	watch_compare("readings under load", "netfs bytes, the most seen", 0, most, 0);
}

static int body_fuse(void *body)
{
	struct body *b = body;
	char *map =
		mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, open(b->path, O_RDWR), 0);

	if (map == MAP_FAILED)
		return 1;
	for (size_t at = 0; at < b->bytes; at += 4096)
		map[at] = 1;
	return msync(map, b->bytes, MS_SYNC);
}

/* FUSE over a server in memory: a file system that never reaches the block layer. */
static void test_fuse(void **state)
{
	struct world *world = *state;
	char path[160];
	struct body w = {.path = path, .bytes = 4 * MIB};
	const struct iocom_task *task;
	pid_t pid = -1;
	int rc = -1;
	bool up;

	if (lacks_accounting(&world->watch, "FUSE"))
		return;
	snprintf(path, sizeof(path), "%s/fuse", world->watch.rig.dir);
	assert_int_equal(mkdir(path, 0755), 0);
	rig_shell("nbdfuse %s [ nbdkit --exit-with-parent memory 16M ] & "
		  "for i in $(seq 100); do test -e %s/nbd && exit 0; sleep 0.1; done",
		  path, path);
	snprintf(path, sizeof(path), "%s/fuse/nbd", world->watch.rig.dir);
	up = access(path, F_OK) == 0;
	if (up) {
		pid = rig_start(body_fuse, &w);
		rc = rig_wait(pid);
	}
	rig_shell("fusermount3 -u %s/fuse", world->watch.rig.dir);
	rig_shell("rmdir %s/fuse", world->watch.rig.dir);
	if (!up) {
		watch_degraded("FUSE", "netfs_write_bytes", "no nbdfuse here");
		return;
	}
	assert_int_equal(rc, 0);
	watch_sample(&world->watch);
	task = watch_task(&world->watch, pid);
	assert_non_null(task);
	watch_compare("stores to a mapping on FUSE", "netfs_write_bytes", w.bytes,
		      task->load.netfs_write_bytes, 0);
	watch_compare("stores to a mapping on FUSE", "netfs_read_bytes", 0,
		      task->load.netfs_read_bytes, 0);
	watch_compare("stores to a mapping on FUSE", "dirtied_bytes", w.bytes,
		      task->load.dirtied_bytes, 0);
	watch_degraded("reads from FUSE", "netfs_read_bytes",
		       "the kernel accounts no reads of FUSE");
}

/* --- jobs -------------------------------------------------------------------- */

struct nest {
	struct world *world;
	char top[160], inner[176], deep[192];
	uint64_t id; /* id of the top cgroup */
};

static const char *name_top(void *arg, uint64_t cgroup_id)
{
	return cgroup_id == ((struct nest *)arg)->id ? "nested-job" : NULL;
}

/* Returns what the document says of the job; the sample has a row for each cgroup. */
static double job_number(struct nest *nest, const char *key)
{
	char root[128];
	struct sample_json_options options = {
		.cores = 1, .job_name = name_top, .job_name_arg = nest, .cgroup_root = root};
	double value = -1;
	json_t *doc, *job;
	size_t i;

	assert_int_equal(sample_names_mount("/proc/self/mounts", root, sizeof(root)), 0);
	doc = sample_json(&nest->world->watch.sample, &options);
	assert_non_null(doc);
	json_array_foreach (json_object_get(doc, "jobs"), i, job)
		if (!strcmp(json_string_value(json_object_get(job, "job")) ?: "", "nested-job")) {
			assert_true(value < 0); /* the job has one row */
			value = json_number_value(json_object_get(job, key));
		}
	json_decref(doc);
	return value;
}

/* Reads BYTES in CGROUP, and again in THEN (may be NULL) before the process ends. */
static void read_in(struct nest *nest, const char *cgroup, const char *then, size_t bytes)
{
	struct body w = {
		.path = nest->world->big, .bytes = bytes, .block = 64 * KIB, .flags = O_DIRECT};
	pid_t pid = fork();

	if (!pid) {
		int rc = rig_enter_cgroup(cgroup, 0) || body_read(&w);

		if (!rc && then)
			rc = rig_enter_cgroup(then, 0) || body_read(&w);
		_exit(rc);
	}
	assert_int_equal(rig_wait(pid), 0);
}

/* Nested cgroups are one job: each byte counts once, also for ended, moved and removed ones. */
static void test_nested(void **state)
{
	struct nest nest = {.world = *state};
	const char *cgroup = nest.world->watch.rig.cgroup;

	nest.id = watch_cgroup(cgroup, "nest", nest.top, sizeof(nest.top));
	watch_cgroup(nest.top, "inner", nest.inner, sizeof(nest.inner));
	watch_cgroup(nest.inner, "deep", nest.deep, sizeof(nest.deep));
	read_in(&nest, nest.top, NULL, 4 * MIB);
	read_in(&nest, nest.inner, NULL, 2 * MIB);
	read_in(&nest, nest.deep, nest.inner, MIB);
	watch_sample(&nest.world->watch);
	watch_compare("nested cgroups", "explicit_read_bytes", 8 * MIB,
		      job_number(&nest, "explicit_read_bytes"), 0);
	watch_compare("nested cgroups", "explicit_ops", 8 * MIB / (64 * KIB),
		      job_number(&nest, "explicit_ops"), 0);
	watch_compare("nested cgroups", "live tasks", 0, job_number(&nest, "tasks"), 0);
	/* A process leaves the job: what it does outside is not the job's. */
	read_in(&nest, nest.deep, cgroup, MIB);
	watch_sample(&nest.world->watch);
	watch_compare("nested, one left", "explicit_read_bytes", 9 * MIB,
		      job_number(&nest, "explicit_read_bytes"), 0);
	assert_int_equal(rmdir(nest.deep) | rmdir(nest.inner) | rmdir(nest.top), 0);
}

/* A removed cgroup's total stays; a new cgroup of the same name begins at 0. */
static void test_removed(void **state)
{
	struct nest nest = {.world = *state};
	struct watch *watch = &nest.world->watch;
	uint64_t first;
	const struct iocom_job_load *job;

	first = watch_cgroup(watch->rig.cgroup, "again", nest.top, sizeof(nest.top));
	read_in(&nest, nest.top, NULL, 2 * MIB);
	assert_int_equal(rmdir(nest.top), 0);
	nest.id = watch_cgroup(watch->rig.cgroup, "again", nest.top, sizeof(nest.top));
	assert_true(nest.id != first);
	read_in(&nest, nest.top, NULL, MIB);
	watch_sample(watch);
	job = watch_job(watch, first);
	assert_non_null(job);
	watch_compare("removed cgroup", "explicit_read_bytes", 2 * MIB,
		      job->load.explicit_read_bytes, 0);
	watch_compare("its name used again", "explicit_read_bytes", MIB,
		      job_number(&nest, "explicit_read_bytes"), 0);
	assert_int_equal(rmdir(nest.top), 0);
}

/* --- moves of tasks that did no I/O ------------------------------------------------ */

struct mover {
	char cgroup[2][160];
	uint64_t id[2];
	int told[2], go[2];
	double cpu[2]; /* CPU time in ms, as the mover measured it */
};

static void mover_setup(struct watch *watch, struct mover *m, const char *name)
{
	char leaf[32];

	for (int i = 0; i < 2; i++) {
		snprintf(leaf, sizeof(leaf), "%s%d", name, i);
		m->id[i] =
			watch_cgroup(watch->rig.cgroup, leaf, m->cgroup[i], sizeof(m->cgroup[i]));
	}
	assert_int_equal(pipe(m->told) | pipe(m->go), 0);
}

static void mover_teardown(struct mover *m)
{
	for (int i = 0; i < 2; i++) {
		rmdir(m->cgroup[i]);
		close(m->told[i]);
		close(m->go[i]);
	}
}

/* The process starts in the first cgroup, a reading sees it there, then it moves: its CPU time
 * has two parts. */
static void burn_and_move(struct mover *m)
{
	char byte;

	body_burn(BURN_MS);
	if (write(m->told[1], "r", 1) != 1 || read(m->go[0], &byte, 1) != 1)
		_exit(1);
	m->cpu[0] = body_cpu_ms();
	rig_enter_cgroup(m->cgroup[1], 0);
	body_burn(m->cpu[0] + 2 * BURN_MS);
	m->cpu[1] = body_cpu_ms() - m->cpu[0];
	_exit(write(m->told[1], m->cpu, sizeof(m->cpu)) != sizeof(m->cpu));
}

static void *burn_in_thread(void *m)
{
	burn_and_move(m);
	return NULL;
}

/* Not the leader but its thread computes, and moves them all. */
static void burn_beside_leader(struct mover *m)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, burn_in_thread, m))
		_exit(3);
	pthread_join(thread, NULL);
}

static double job_cpu_ms(const struct watch *watch, uint64_t id)
{
	const struct iocom_job_load *job = watch_job(watch, id);

	return job ? (double)job->load.cpu_ns / 1e6 : 0;
}

static bool coarse(const struct watch *watch, const char *column)
{
	for (size_t i = 0; i < watch->sample.ndegraded; i++)
		if (!strcmp(watch->sample.degraded[i].column, column))
			return true;
	return false;
}

static void move_without_io(struct watch *watch, const char *name, bool threaded)
{
	double stretched;
	struct mover m;
	pid_t parent;
	char byte;

	mover_setup(watch, &m, "cpu");
	parent = fork();
	if (!parent) {
		pid_t child;

		rig_enter_cgroup(m.cgroup[0], 0);
		child = fork();
		if (!child && threaded)
			burn_beside_leader(&m);
		else if (!child)
			burn_and_move(&m);
		_exit(rig_wait(child));
	}
	assert_int_equal(read(m.told[0], &byte, 1), 1);
	watch_sample(watch);
	assert_int_equal(write(m.go[1], "g", 1), 1);
	assert_int_equal(read(m.told[0], m.cpu, sizeof(m.cpu)), sizeof(m.cpu));
	assert_int_equal(rig_wait(parent), 0);
	watch_sample(watch);
	/* An emulator is slow at what the tasks do besides computing. */
	stretched = watch_emulated() ? 10 : 1;
	watch_compare_within(name, "first job's cpu_ms", m.cpu[0], job_cpu_ms(watch, m.id[0]),
			     10 * stretched);
	watch_compare_within(name, "second job's cpu_ms", m.cpu[1], job_cpu_ms(watch, m.id[1]),
			     10 * stretched);
	mover_teardown(&m);
}

static void test_moved_without_io(void **state)
{
	struct watch *watch = &((struct world *)*state)->watch;

	move_without_io(watch, "moved, no I/O", false);
	if (coarse(watch, "cpu_ms"))
		watch_degraded("moved threads, no I/O", "jobs' cpu_ms",
			       "no bpf_iter_task_new: the threads take their past along");
	else
		move_without_io(watch, "moved threads, no I/O", true);
}

/* --- threads ------------------------------------------------------------------- */

struct worker {
	const char *cgroup, *path;
	size_t bytes;
	int rc;
};

/* Moves only the calling thread: cgroup.threads. */
static int enter_threaded(const char *cgroup)
{
	char path[192];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/cgroup.threads", cgroup);
	fd = open(path, O_WRONLY);
	n = write(fd, "0", 1);
	close(fd);
	return n == 1 ? 0 : -1;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct body w = {
		.path = worker->path, .bytes = worker->bytes, .block = 64 * KIB, .flags = O_DIRECT};

	worker->rc = body_read(&w); /* in the cgroup where it started */
	worker->rc |= enter_threaded(worker->cgroup) || body_read(&w);
	return NULL;
}

static int make_threaded(const char *cgroup)
{
	char path[384];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/cgroup.type", cgroup);
	fd = open(path, O_WRONLY);
	n = write(fd, "threaded", 8);
	close(fd);
	return n == 8 ? 0 : -1;
}

static void test_moved_threads(void **state)
{
	struct world *world = *state;
	struct watch *watch = &world->watch;
	char top[160], leaf[2][176];
	uint64_t id[3];
	size_t bytes[2] = {2 * MIB, MIB};
	pid_t pid;

	id[2] = watch_cgroup(watch->rig.cgroup, "threads", top, sizeof(top));
	for (int i = 0; i < 2; i++) {
		id[i] = watch_cgroup(top, i ? "b" : "a", leaf[i], sizeof(leaf[i]));
		assert_int_equal(make_threaded(leaf[i]), 0);
	}
	pid = fork();
	if (!pid) {
		struct worker w[2];
		pthread_t thread[2];

		if (rig_enter_cgroup(top, 0))
			_exit(2);
		for (int i = 0; i < 2; i++) {
			w[i] = (struct worker){leaf[i], world->big, bytes[i], 1};
			if (pthread_create(&thread[i], NULL, work, &w[i]))
				_exit(3);
		}
		for (int i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		_exit(w[0].rc | w[1].rc);
	}
	assert_int_equal(rig_wait(pid), 0);
	watch_sample(watch);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"thread a, moved", "thread b, moved",
						    "threads before the move"};
		const struct iocom_job_load *job = watch_job(watch, id[i]);

		assert_non_null(job);
		watch_compare(names[i], "explicit_read_bytes",
			      i == 2 ? bytes[0] + bytes[1] : bytes[i],
			      job->load.explicit_read_bytes, 0);
	}
	assert_int_equal(rmdir(leaf[0]) | rmdir(leaf[1]) | rmdir(top), 0);
}

/* --- waiting ------------------------------------------------------------------- */

/* Two processes on one CPU; each prints how long the kernel says it waited. */
static void test_run_wait(void **state)
{
	double stretched = watch_emulated() ? 10 : 1; /* a guest also loses its CPU to others */
	struct watch *watch = &((struct world *)*state)->watch;
	double told[2], truth = 0;
	char cgroup[160];
	uint64_t id = watch_cgroup(watch->rig.cgroup, "wait", cgroup, sizeof(cgroup));
	const struct iocom_job_load *job;
	pid_t pid[2];
	int from[2];

	assert_int_equal(pipe(from), 0);
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			cpu_set_t one;
			FILE *f;
			double waited = -1;

			CPU_ZERO(&one);
			CPU_SET(0, &one);
			rig_enter_cgroup(cgroup, 0);
			sched_setaffinity(0, sizeof(one), &one);
			body_burn(BURN_MS);
			f = fopen("/proc/self/schedstat", "re");
			if (!f || fscanf(f, "%*s %lf", &waited) != 1)
				waited = -1;
			_exit(write(from[1], &waited, sizeof(waited)) != sizeof(waited));
		}
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_wait(pid[i]), 0);
		assert_int_equal(read(from[0], &told[i], sizeof(told[i])), sizeof(told[i]));
		truth += told[i] / 1e6;
	}
	close(from[0]);
	close(from[1]);
	watch_sample(watch);
	job = watch_job(watch, id);
	assert_non_null(job);
	rmdir(cgroup);
	if (watch->sample.no_run_wait || told[0] < 0) {
		watch_degraded("two on one CPU", "run_wait_ms", "no CONFIG_SCHED_INFO");
		return;
	}
	assert_true(truth >
		    BURN_MS * 0.5); /* at least the time that one waited while the other ran */
	watch_compare_within("two on one CPU", "run_wait_ms", truth,
			     (double)job->load.run_wait_ns / 1e6, (truth * 0.02 + 20) * stretched);
	watch_compare_within("two on one CPU", "cpu_ms", 2 * BURN_MS,
			     (double)job->load.cpu_ns / 1e6, (2 * BURN_MS * 0.02 + 10) * stretched);
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
	struct body w = {.bytes = 16 * MIB, .block = MIB, .flags = O_SYNC};

	*state = world;
	watch_rig(&world->watch, 128);
	snprintf(world->big, sizeof(world->big), "%s/big", world->watch.rig.mount);
	w.path = world->big;
	if (rig_wait(rig_start(body_write, &w)) != 0)
		return -1;
	watch_open(&world->watch, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disk_accounting),
		cmocka_unit_test(test_readings_under_load),
		cmocka_unit_test(test_fuse),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_moved_without_io),
		cmocka_unit_test(test_moved_threads),
		cmocka_unit_test(test_run_wait),
	};

	return cmocka_run_group_tests_name("job view", tests, world_up, world_down);
}
