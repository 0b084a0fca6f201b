/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Ends of tasks: however a task ends, its bytes are in its job and in one row. Each case runs in
 * a cgroup of its own, so that its job's total is known.
 */
#include <errno.h>
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bodies.h"
#include "tests/lib/watch.h"

#define FILE_MIB      16UL
#define BLOCK	      (4 * KIB)
#define STORM	      10000
#define STORM_LOOPS   4
#define LIMITED_LATE  64
#define LIMITED_EXITS 100
#define THREADS	      16
#define CROWD	      300 /* more than one of the kernel's buffers holds */

struct world {
	struct watch watch;
	struct watch limited; /* a second monitor: hardly any room for ended tasks, no walk */
	char file[160], self[256];
};

struct job {
	char path[224];
	uint64_t id;
};

static void job_make(struct world *world, const char *name, struct job *job)
{
	struct stat st;

	snprintf(job->path, sizeof(job->path), "%s/%s", world->watch.rig.cgroup, name);
	assert_int_equal(mkdir(job->path, 0755), 0);
	assert_int_equal(stat(job->path, &st), 0);
	job->id = st.st_ino;
}

/* Runs a task's last actions with system calls only and without locks. */
static void read_block(int fd, char *buffer, unsigned i)
{
	if (pread(fd, buffer, BLOCK, (off_t)(i % (FILE_MIB * MIB / BLOCK)) * (off_t)BLOCK) !=
	    (ssize_t)BLOCK)
		_exit(1);
}

struct work {
	const char *file;
	const char *cgroup;
	const char *self; /* this program, which --read makes end in the same way */
	char *buffer;
	int fd;
	unsigned count;
	int told;
};

static void begin(struct work *w)
{
	if (rig_enter_cgroup(w->cgroup, 0))
		_exit(2);
	w->buffer = body_buffer(BLOCK);
	w->fd = open(w->file, O_RDONLY | O_DIRECT);
	if (w->fd < 0 || !w->buffer)
		_exit(3);
}

static uint64_t job_read_bytes(struct watch *watch, const struct job *job)
{
	const struct iocom_job_load *load = watch_job(watch, job->id);

	return load ? load->load.explicit_read_bytes : 0;
}

/* Starts short processes, one after the other; each reads one block. */
static int body_storm(void *argument)
{
	struct work *w = argument;

	begin(w);
	for (unsigned i = 0; i < w->count; i++) {
		pid_t pid = fork();

		if (!pid) {
			read_block(w->fd, w->buffer, i);
			_exit(0);
		}
		if (rig_wait(pid))
			return 1;
	}
	return 0;
}

struct rows {
	size_t exited;
	uint64_t bytes;
};

static struct rows job_rows(const struct watch *watch, const struct job *job)
{
	struct rows rows = {0};

	for (size_t i = 0; i < watch->sample.ntasks; i++) {
		const struct iocom_task *task = &watch->sample.tasks[i];

		if (task->cgroup_id != job->id || !task->exited ||
		    task->load.explicit_read_bytes != BLOCK)
			continue;
		rows.exited++;
		rows.bytes += task->delta.explicit_read_bytes;
	}
	return rows;
}

/* The reader does not look: 10,000 processes come and go between two readings. */
static void test_storm(void **state)
{
	struct world *world = *state;
	struct job job;
	struct work w = {.file = world->file, .cgroup = job.path, .count = STORM / STORM_LOOPS};
	double began, seconds, missed, lost;
	uint64_t late_before, full;
	pid_t pids[STORM_LOOPS];
	struct rows rows;

	job_make(world, "storm", &job);
	watch_sample(&world->watch);
	watch_sample(&world->limited);
	late_before = watch_drop(&world->limited, "late");
	full = watch_drop(&world->watch, "late");
	began = watch_now_ms();
	for (int i = 0; i < STORM_LOOPS; i++)
		pids[i] = rig_start(body_storm, &w);
	for (int i = 0; i < STORM_LOOPS; i++)
		assert_int_equal(rig_wait(pids[i]), 0);
	seconds = (watch_now_ms() - began) / 1e3;
	printf("# |%d processes in %.1f s: %.0f exits/s\n", STORM, seconds, STORM / seconds);
	watch_sample(&world->watch);
	rows = job_rows(&world->watch, &job);
	missed = watch_missed(&world->watch);
	watch_compare_lost("10,000 processes unread", "job's read bytes", (double)STORM * BLOCK,
			   (double)job_read_bytes(&world->watch, &job), missed * BLOCK);
	/*
	 * All ended tasks of the machine share the room. On a busy machine it fills, and that is
	 * counted.
	 */
	full = watch_drop(&world->watch, "late") - full;
	lost = missed + (double)full;
	printf("# |room for the ended was full %lu times\n", full);
	watch_compare_lost("10,000 processes unread", "rows", STORM, (double)rows.exited, lost);
	watch_compare_lost("10,000 processes unread", "rows' read bytes", (double)STORM * BLOCK,
			   (double)rows.bytes, lost * BLOCK);

	watch_sample(&world->limited);
	rows = job_rows(&world->limited, &job);
	watch_compare_lost("10,000 processes, late full", "job's read bytes", (double)STORM * BLOCK,
			   (double)job_read_bytes(&world->limited, &job),
			   watch_missed(&world->limited) * BLOCK);
	assert_true(rows.exited <= LIMITED_LATE);
	/* Each missing row causes at least one drop: its last counters, and what came later. */
	printf("# |late full: %zu rows, %lu drops\n", rows.exited,
	       watch_drop(&world->limited, "late") - late_before);
	assert_true((double)(watch_drop(&world->limited, "late") - late_before) +
			    watch_missed(&world->limited) >=
		    (double)(STORM - rows.exited));
}

static void *read_and_end(void *argument)
{
	struct work *w = argument;
	char *buffer = body_buffer(BLOCK);

	if (!buffer)
		_exit(4);
	for (unsigned i = 0; i < w->count; i++)
		read_block(w->fd, buffer, i);
	munmap(buffer, BLOCK);
	return NULL;
}

static int body_threads(void *argument)
{
	struct work *w = argument;
	pthread_t threads[THREADS];

	begin(w);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < THREADS; i++)
			if (pthread_create(&threads[i], NULL, read_and_end, w))
				return 1;
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	return 0;
}

/* Runs BODY in a cgroup of its own. Its job and its row must each have TRUTH bytes once. */
static void check_case(struct world *world, const char *name, int (*body)(void *), struct work *w,
		       double truth)
{
	const struct iocom_task *task;
	struct job job;
	uint64_t row = 0, told;
	double lost;
	pid_t pid;
	int status;

	job_make(world, name, &job);
	w->cgroup = job.path;
	w->file = world->file;
	w->self = world->self;
	pid = rig_start(body, w);
	for (int i = 0; i < 4; i++) { /* readings while it runs */
		watch_sample(&world->watch);
		task = watch_task(&world->watch, pid);
		if (task && task->cgroup_id == job.id)
			row = task->load.explicit_read_bytes;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	watch_sample(&world->watch);
	task = watch_task(&world->watch, pid);
	if (task)
		row = task->load.explicit_read_bytes;
	lost = watch_missed(&world->watch) * BLOCK;
	told = job_read_bytes(&world->watch, &job);
	watch_compare_lost(name, "job's read bytes", truth, (double)told, lost);
	watch_compare_lost(name, "row's read bytes", truth, (double)row, lost);
	watch_sample(&world->watch); /* the counts then stay the same */
	assert_int_equal(job_read_bytes(&world->watch, &job), told);
}

static void test_threads_end(void **state)
{
	struct work w = {.count = 4};

	check_case(*state, "160 threads end", body_threads, &w, 160.0 * 4 * BLOCK);
}

static void *read_slowly(void *argument)
{
	struct work *w = argument;
	char *buffer = body_buffer(BLOCK);

	if (!buffer)
		_exit(4);
	for (unsigned i = 0; i < w->count; i++) {
		read_block(w->fd, buffer, i);
		usleep(1000);
	}
	_exit(0); /* no exit handler of a sanitizer may run: the leader is gone */
}

static int body_leader_first(void *argument)
{
	struct work *w = argument;
	pthread_t thread;

	begin(w);
	read_block(w->fd, w->buffer, 0);
	if (pthread_create(&thread, NULL, read_slowly, w))
		return 1;
	syscall(SYS_exit, 0); /* only the leader ends */
	return 1;
}

static void test_leader_first(void **state)
{
	struct work w = {.count = 300};

	check_case(*state, "leader ends first", body_leader_first, &w, 301.0 * BLOCK);
}

static void *read_and_exec(void *argument)
{
	struct work *w = argument;
	char *buffer = body_buffer(BLOCK);

	if (!buffer)
		_exit(4);
	for (unsigned i = 0; i < w->count; i++)
		read_block(w->fd, buffer, i);
	execl(w->self, w->self, "--read", w->file, (char *)NULL);
	_exit(5);
}

static int body_exec(void *argument)
{
	struct work *w = argument;
	pthread_t thread;

	begin(w);
	read_block(w->fd, w->buffer, 0);
	if (pthread_create(&thread, NULL, read_and_exec, w))
		return 1;
	pause();
	return 1;
}

/* The exec'd program: reads 100 blocks slowly, as did the process before exec. */
static int read_after_exec(const char *file)
{
	struct work w = {.count = 100};

	w.fd = open(file, O_RDONLY | O_DIRECT);
	if (w.fd < 0)
		return 1;
	read_slowly(&w);
	return 1;
}

static void test_exec(void **state)
{
	struct work w = {.count = 10};

	check_case(*state, "exec by another thread", body_exec, &w, 111.0 * BLOCK);
}

/* Closing a file that was truncated and written again flushes it, after the exit hook. */
static int body_close_at_exit(void *argument)
{
	struct work *w = argument;
	char *buffer = body_buffer(MIB);
	int fd;

	begin(w);
	fd = open(w->file, O_WRONLY | O_TRUNC);
	if (fd < 0 || !buffer)
		return 1;
	for (int i = 0; i < 4; i++)
		if (write(fd, buffer, MIB) != (ssize_t)MIB)
			return 1;
	return 0;
}

static void test_close_at_exit(void **state)
{
	struct world *world = *state;
	char path[200];
	struct body fill = {.path = path, .bytes = MIB, .block = MIB};
	struct work w = {.file = path};
	const struct iocom_task *task;
	struct job job;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/closed", world->watch.rig.mount);
	assert_int_equal(body_write(&fill), 0);
	sync();
	job_make(world, "close", &job);
	w.cgroup = job.path;
	pid = rig_start(body_close_at_exit, &w);
	assert_int_equal(rig_wait(pid), 0);
	rig_shell("rmdir %s",
		  job.path); /* the cgroup is removed before all its bytes are written */
	sync();
	watch_sample(&world->watch);
	task = watch_task(&world->watch, pid);
	assert_non_null(task);
	assert_true(task->exited);
	watch_compare("closed at exit", "row's write bytes", 4 * MIB,
		      (double)task->load.explicit_write_bytes, 0);
	assert_non_null(watch_job(&world->watch, job.id));
	watch_compare("closed at exit", "job's write bytes", 4 * MIB,
		      (double)watch_job(&world->watch, job.id)->load.explicit_write_bytes, 0);
}

static int body_read_count(void *argument)
{
	struct work *w = argument;

	begin(w);
	for (unsigned i = 0; i < w->count; i++)
		read_block(w->fd, w->buffer, i);
	return 0;
}

/* Sets the next fork's pid. Returns false if the kernel does not let us. */
static bool next_pid(pid_t pid)
{
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "we");
	int rc;

	if (!file)
		return false;
	rc = fprintf(file, "%d", (int)pid - 1) < 0;
	return !fclose(file) && !rc;
}

/* Two processes with one pid: two rows, each with its own bytes. */
static void test_pid_reuse(void **state)
{
	struct world *world = *state;
	struct work w = {.file = world->file, .count = 3};
	uint64_t bytes[2] = {0};
	struct job job;
	pid_t first, second = 0;
	size_t rows = 0;

	job_make(world, "reuse", &job);
	w.cgroup = job.path;
	first = rig_start(body_read_count, &w);
	assert_int_equal(rig_wait(first), 0);
	w.count = 5;
	for (int i = 0; i < 50 && second != first; i++) {
		if (!next_pid(first))
			skip();
		second = rig_start(body_read_count, &w);
		assert_int_equal(rig_wait(second), 0);
	}
	if (second != first)
		skip();
	watch_sample(&world->watch);
	for (size_t i = 0; i < world->watch.sample.ntasks; i++) {
		const struct iocom_task *task = &world->watch.sample.tasks[i];

		if (task->pid != first || task->cgroup_id != job.id)
			continue;
		assert_true(rows < 2);
		bytes[rows++] = task->load.explicit_read_bytes;
	}
	watch_compare("pid used twice", "rows", 2, (double)rows, 0);
	watch_compare("pid used twice", "lesser row's bytes", 3 * BLOCK,
		      (double)(bytes[0] < bytes[1] ? bytes[0] : bytes[1]), 0);
	watch_compare("pid used twice", "other row's bytes", 5 * BLOCK,
		      (double)(bytes[0] < bytes[1] ? bytes[1] : bytes[0]), 0);
}

struct crowd {
	struct work work;
	int ready[2];
};

static void *read_and_stay(void *argument)
{
	struct crowd *crowd = argument;
	char *buffer = body_buffer(BLOCK);

	if (!buffer)
		_exit(4);
	read_block(crowd->work.fd, buffer, 0);
	if (write(crowd->ready[1], "", 1) != 1)
		_exit(5);
	return pause(), argument;
}

static int body_crowd(void *argument)
{
	struct crowd *crowd = argument;
	pthread_t thread;

	begin(&crowd->work);
	for (unsigned i = 1; i < crowd->work.count; i++)
		if (pthread_create(&thread, NULL, read_and_stay, crowd))
			return 1;
	read_and_stay(crowd);
	return 1;
}

/* The walk and the iterator agree on each process, all threads and the job. */
static void test_sweeps_agree(void **state)
{
	struct world *world = *state;
	struct crowd crowd = {.work = {.file = world->file}};
	double seen[2] = {0, 0}, missed = 0;
	unsigned threads = 0;
	pid_t pids[CROWD];
	struct job job;
	char byte;

	job_make(world, "crowd", &job);
	crowd.work.cgroup = job.path;
	assert_int_equal(pipe(crowd.ready), 0);
	for (int i = 0; i < CROWD; i++) {
		crowd.work.count = i % 50 ? 1 : 40;
		threads += crowd.work.count;
		pids[i] = rig_start(body_crowd, &crowd);
	}
	for (unsigned i = 0; i < threads; i++)
		assert_int_equal(read(crowd.ready[0], &byte, 1), 1);
	watch_sample(&world->watch);
	watch_sample(&world->limited);
	for (int i = 0; i < CROWD; i++) {
		const struct iocom_task *a = watch_task(&world->watch, pids[i]);
		const struct iocom_task *b = watch_task(&world->limited, pids[i]);

		assert_non_null(a);
		assert_non_null(b);
		seen[0] += (double)a->load.explicit_read_bytes;
		seen[1] += (double)b->load.explicit_read_bytes;
		missed = watch_missed(&world->watch) + watch_missed(&world->limited);
		if (missed == 0) {
			assert_int_equal(a->load.explicit_read_bytes, (i % 50 ? 1 : 40) * BLOCK);
			assert_int_equal(b->load.explicit_read_bytes, a->load.explicit_read_bytes);
		}
		assert_int_equal(b->start_ns, a->start_ns);
		assert_int_equal(b->cgroup_id, job.id);
		assert_string_equal(b->comm, a->comm);
	}
	watch_compare_lost("walk and iterator", "rows' bytes", (double)threads * BLOCK, seen[0],
			   missed * BLOCK);
	watch_compare_lost("walk and iterator", "the same, iterated", (double)threads * BLOCK,
			   seen[1], missed * BLOCK);
	watch_compare("walk and iterator", "live processes of the job", CROWD,
		      watch_job(&world->watch, job.id)->tasks, 0);
	watch_compare("walk and iterator", "the same, iterated", CROWD,
		      watch_job(&world->limited, job.id)->tasks, 0);
	for (int i = 0; i < CROWD; i++) {
		kill(pids[i], SIGKILL);
		rig_wait(pids[i]);
	}
	watch_sample(&world->watch);
	watch_sample(&world->limited);
	missed = watch_missed(&world->watch) + watch_missed(&world->limited);
	watch_compare_lost("walk and iterator", "job's bytes, killed", (double)threads * BLOCK,
			   (double)job_read_bytes(&world->watch, &job), missed * BLOCK);
	watch_compare_lost("walk and iterator", "the same, iterated", (double)threads * BLOCK,
			   (double)job_read_bytes(&world->limited, &job), missed * BLOCK);
	close(crowd.ready[0]);
	close(crowd.ready[1]);
}

static int world_down(void **state)
{
	struct world *world = *state;

	monitor_free(world->limited.monitor);
	watch_close(&world->watch);
	free(world);
	return 0;
}

static int world_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct monitor_config limited = {
		.limits = {.late = LIMITED_LATE, .exited = LIMITED_EXITS, .walk = 1}};
	struct body w = {.bytes = FILE_MIB * MIB, .block = MIB, .flags = O_SYNC};
	ssize_t n;

	*state = world;
	watch_rig(&world->watch, 128);
	snprintf(world->file, sizeof(world->file), "%s/file", world->watch.rig.mount);
	n = readlink("/proc/self/exe", world->self, sizeof(world->self) - 1);
	if (n <= 0)
		return -1;
	w.path = world->file;
	if (rig_wait(rig_start(body_write, &w)) != 0)
		return -1;
	watch_open(&world->watch, NULL);
	watch_open(&world->limited, &limited);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),	      cmocka_unit_test(test_threads_end),
		cmocka_unit_test(test_leader_first),  cmocka_unit_test(test_exec),
		cmocka_unit_test(test_close_at_exit), cmocka_unit_test(test_pid_reuse),
		cmocka_unit_test(test_sweeps_agree),
	};

	if (argc == 3 && !strcmp(argv[1], "--read"))
		return read_after_exec(argv[2]);
	return cmocka_run_group_tests_name("monitor: ends of tasks", tests, world_up, world_down);
}
