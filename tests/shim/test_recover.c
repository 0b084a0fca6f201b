/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Jobs whose agent died, with supervisors that are stopped, busy, late or dead; and full disks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "user/record.h"
#include "tests/lib/stage.h"

#define SH(script)                                                                                 \
	{                                                                                          \
		.argv = { "/bin/sh", "-c", script, NULL }                                          \
	}
#define KNOCKS 16 /* more connections than the queue of a shim's socket holds */

/* Makes a separate directory of records, so that only this job is found. */
static const char *own_jobs(struct stage *stage, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", stage->dir, name);
	return path;
}

static void recover(struct stage *stage, const char *jobs, struct stage_recovered *r)
{
	*r = (struct stage_recovered){0};
	assert_int_equal(launch_recover(jobs, stage->run, stage_take_found, r, NULL), 0);
}

static void wait_stopped(pid_t pid)
{
	char path[64];

	kill(pid, SIGSTOP);
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (int i = 0; i < 500; i++) {
		const char *at = strrchr(stage_read(path), ')');

		if (at && at[2] == 'T')
			return;
		usleep(10000);
	}
	fail_msg("process %d never stopped", pid);
}

/* Starts a job whose agent dies while the job runs. */
static struct job abandoned(struct stage *stage, struct want *want, struct launch_event *started)
{
	struct job job = stage_start(stage, want);

	assert_int_equal(job.rc, 0);
	assert_int_equal(stage_event(job.leash, started), 0);
	assert_int_equal(started->type, LAUNCH_STARTED);
	close(job.leash);
	return job;
}

static void over(struct stage *stage, const char *jobs, struct job *job)
{
	close(job->client);
	launch_forget(jobs, stage->run, job->name);
	rmdir(jobs);
}

/* A stopped supervisor lives: it is not lost, and the new agent does not wait for its answer. */
static void test_stopped(void **state)
{
	struct want want = SH("sleep 0.3; exit 9");
	struct stage *stage = *state;
	struct launch_event event, started;
	struct stage_recovered r;
	struct job job;

	want.jobs = own_jobs(stage, "stopped");
	job = abandoned(stage, &want, &started);
	wait_stopped(job.shim);
	recover(stage, want.jobs, &r);
	assert_int_equal(r.count, 1);
	assert_true(r.found.leash >= 0);
	assert_false(r.found.busy);
	assert_int_equal(r.found.started.pid, 0);
	assert_true(r.found.started.cgroup_id == started.cgroup_id);
	assert_int_equal(launch_read(r.found.leash, &event), -EAGAIN);
	assert_true(stage_group_exists(stage, job.name));
	kill(job.shim, SIGCONT);
	assert_int_equal(stage_event(r.found.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_STARTED);
	assert_int_equal(event.pid, started.pid);
	assert_int_equal(stage_event(r.found.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_EXITED);
	assert_int_equal(event.value, 9);
	close(r.found.leash);
	over(stage, want.jobs, &job);
	stage_reap(&job);
}

/* A supervisor that is killed while it is stopped is lost, with all processes of its job. */
static void test_stopped_and_killed(void **state)
{
	struct want want = SH("sleep 984 & sleep 984");
	struct stage *stage = *state;
	struct launch_event event, started;
	struct launch_found f;
	struct stage_recovered r;
	struct job job;

	want.jobs = own_jobs(stage, "stopped-killed");
	job = abandoned(stage, &want, &started);
	wait_stopped(job.shim);
	recover(stage, want.jobs, &r);
	assert_true(r.found.leash >= 0);
	kill(job.shim, SIGKILL);
	stage_reap(&job);
	assert_int_equal(stage_event(r.found.leash, &event), -EPIPE);
	close(r.found.leash);
	assert_int_equal(launch_outcome(want.jobs, stage->run, job.name, &f), 0);
	assert_int_equal(f.leash, -1);
	assert_false(f.busy);
	assert_int_equal(f.last.kind, 3);
	assert_int_equal(f.last.value, 255);
	for (int i = 0; i < 2000 && stage_count("sleep", "984"); i++)
		usleep(10000); /* killed, but a busy machine takes its time */
	assert_int_equal(stage_count("sleep", "984"), 0);
	assert_false(stage_group_exists(stage, job.name));
	/* A later look gives the same result. */
	recover(stage, want.jobs, &r);
	assert_int_equal(r.found.leash, -1);
	assert_int_equal(r.found.last.kind, 3);
	assert_non_null(strstr(r.found.last.text, "supervisor was killed"));
	over(stage, want.jobs, &job);
}

static int knock(const struct stage *stage, const char *job)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%.80s/%.20s.sock", stage->run, job);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The queue of the supervisor's socket is full: it lives, and is asked again. */
static void test_busy(void **state)
{
	struct want want = SH("sleep 0.3; exit 4");
	struct stage *stage = *state;
	struct launch_event event, started;
	int knocks[KNOCKS], taken = 0;
	struct launch_found f = {0};
	struct stage_recovered r;
	struct job job;

	want.jobs = own_jobs(stage, "busy");
	job = abandoned(stage, &want, &started);
	wait_stopped(job.shim);
	for (int i = 0; i < KNOCKS; i++)
		taken += (knocks[i] = knock(stage, job.name)) >= 0;
	assert_in_range(taken, 1, KNOCKS - 1);
	recover(stage, want.jobs, &r);
	assert_true(r.found.busy);
	assert_int_equal(r.found.leash, -1);
	assert_true(stage_group_exists(stage, job.name));
	for (int i = 0; i < KNOCKS; i++)
		if (knocks[i] >= 0)
			close(knocks[i]);
	kill(job.shim, SIGCONT);
	/* Its queue empties. Or it has ended already, and its record says how. */
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(launch_outcome(want.jobs, stage->run, job.name, &f), 0);
		if (!f.busy)
			break;
		usleep(5000);
	}
	assert_false(f.busy);
	if (f.leash >= 0) {
		do
			assert_int_equal(stage_event(f.leash, &event), 0);
		while (event.type == LAUNCH_STARTED);
		f.last = event;
		close(f.leash);
	}
	assert_int_equal(f.last.kind, 0);
	assert_int_equal(f.last.value, 4);
	close(job.client);
	stage_reap(&job);
	launch_forget(want.jobs, stage->run, job.name);
	rmdir(want.jobs);
}

/*
 * Makes the next shims slow to begin: a program in its place reports that it is there, and
 * waits. RECORD: descriptor 6 stays open as the agent passed it; else an older agent is played.
 */
static void slow_shim(struct stage *stage, bool record, char before[sizeof(stage->shim)])
{
	char script[128], text[8600];
	int fd;

	strcpy(before, stage->shim);
	snprintf(script, sizeof(script), "%s/slow-shim", stage->dir);
	snprintf(text, sizeof(text),
		 "#!/bin/sh\n%s: >%s/here\nwhile [ ! -e %s/go ]; do sleep 0.01 6>&-; done\n"
		 "exec %s\n",
		 record ? "" : "exec 6>&-\n", stage->dir, stage->dir, stage->shim);
	fd = open(script, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	strcpy(stage->shim, script);
}

static void wait_here(const struct stage *stage)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/here", stage->dir);
	for (int i = 0; i < 1000 && access(path, F_OK); i++)
		usleep(10000);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
}

static void go(const struct stage *stage, bool now)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/go", stage->dir);
	if (now)
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	else
		unlink(path);
}

/* Starts a job whose agent dies before its shim begins. */
static struct job abandoned_early(struct stage *stage, struct want *want, bool record)
{
	char before[sizeof(stage->shim)];
	struct job job;

	slow_shim(stage, record, before);
	job = stage_start(stage, want);
	strcpy(stage->shim, before);
	assert_int_equal(job.rc, 0);
	wait_here(stage);
	close(job.leash);
	return job;
}

static void outcome(struct stage *stage, const char *jobs, const struct job *job,
		    struct launch_found *f)
{
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(launch_outcome(jobs, stage->run, job->name, f), 0);
		if (!f->busy)
			return;
		usleep(5000);
	}
}

/* A supervisor that is just beginning lives: it is not given up, and its job runs. */
static void test_beginning(void **state)
{
	struct want want = SH("exit 6");
	struct stage *stage = *state;
	struct launch_found f;
	struct stage_recovered r;
	struct job job;

	want.grace_ms = 10000;
	want.jobs = own_jobs(stage, "beginning");
	job = abandoned_early(stage, &want, true);
	recover(stage, want.jobs, &r);
	assert_int_equal(r.count, 1);
	assert_true(r.found.busy);
	assert_int_equal(launch_forget(want.jobs, stage->run, job.name), -EBUSY);
	go(stage, true);
	close(job.client);
	stage_reap(&job);
	go(stage, false);
	outcome(stage, want.jobs, &job, &f);
	assert_int_equal(f.leash, -1);
	assert_int_equal(f.last.kind, 0);
	assert_int_equal(f.last.value, 6);
	record_remove(want.jobs, job.name); /* its client was gone, so its output is kept */
	assert_int_equal(rmdir(want.jobs), 0);
}

/* A supervisor killed before it began: no agent says that its job ran. */
static void test_never_began(void **state)
{
	struct want want = SH("echo never");
	struct stage *stage = *state;
	struct launch_found f;
	struct job job;

	want.jobs = own_jobs(stage, "never");
	job = abandoned_early(stage, &want, true);
	kill(job.shim, SIGKILL);
	stage_reap(&job);
	for (int i = 0; i < 2; i++) {
		outcome(stage, want.jobs, &job, &f);
		assert_false(f.busy);
		assert_int_equal(f.leash, -1);
		assert_int_equal(f.last.kind, 3);
		assert_int_equal(f.last.value, LAUNCH_NEVER);
		assert_non_null(strstr(f.last.text, "never began"));
	}
	assert_false(stage_group_exists(stage, job.name));
	over(stage, want.jobs, &job);
	assert_int_equal(access(want.jobs, F_OK), -1);
}

/* An older agent's supervisor, which takes the lock itself, runs nothing after it was given up. */
static void test_beginning_unlocked(void **state)
{
	struct want want = SH("echo ran >&2");
	struct stage *stage = *state;
	struct launch_found f;
	struct stage_recovered r;
	struct job job;

	want.jobs = own_jobs(stage, "unlocked");
	job = abandoned_early(stage, &want, false);
	recover(stage, want.jobs, &r);
	assert_false(r.found.busy);
	assert_int_equal(r.found.last.value, LAUNCH_NEVER);
	go(stage, true);
	assert_int_equal(stage_reap(&job), 1);
	go(stage, false);
	outcome(stage, want.jobs, &job, &f);
	assert_int_equal(f.last.value, LAUNCH_NEVER);
	assert_non_null(strstr(f.last.text, "never began"));
	over(stage, want.jobs, &job);
}

/* A spare that has its order is stopped: it got the lock with the order. */
static void test_beginning_spare(void **state)
{
	struct want want = SH("exit 8");
	struct stage *stage = *state;
	struct launch_spare spare = {0};
	struct launch_found f;
	struct stage_recovered r;
	struct job job;

	launch_spare_make(&spare, stage->shim, stage->scope);
	assert_true(spare.waits);
	wait_stopped(spare.pid);
	want.grace_ms = 10000;
	want.jobs = own_jobs(stage, "spare");
	want.spare = &spare;
	job = stage_start(stage, &want);
	assert_int_equal(job.shim, spare.pid);
	close(job.leash);
	recover(stage, want.jobs, &r);
	assert_true(r.found.busy);
	kill(job.shim, SIGCONT);
	close(job.client);
	stage_reap(&job);
	outcome(stage, want.jobs, &job, &f);
	assert_int_equal(f.last.kind, 0);
	assert_int_equal(f.last.value, 8);
	record_remove(want.jobs, job.name); /* its client was gone, so its output is kept */
	assert_int_equal(rmdir(want.jobs), 0);
	launch_spare_drop(&spare);
}

/* The job was given up before it began: it must not run after that. */
static void test_given_up(void **state)
{
	struct want want = SH("echo ran");
	struct record_exit end = {.kind = 3, .value = 255, .text = "given up"};
	struct stage *stage = *state;
	char script[128], text[8400], shim[sizeof(stage->shim)], model[128];
	struct run_result result;
	int fd, dir, status;

	/* The program in the shim's place writes an exit into the record first. */
	want.jobs = own_jobs(stage, "given-up");
	snprintf(model, sizeof(model), "%s/model", stage->dir);
	mkdir(model, 0700);
	dir = open(model, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(record_write_exit(dir, &end, NULL), 0);
	close(dir);
	snprintf(script, sizeof(script), "%s/late-shim", stage->dir);
	snprintf(text, sizeof(text), "#!/bin/sh\ncp %s/exit %s/*/\nexec %s\n", model, want.jobs,
		 stage->shim);
	fd = open(script, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	strcpy(shim, stage->shim);
	strcpy(stage->shim, script);
	status = stage_run(stage, &want, &result);
	strcpy(stage->shim, shim);
	assert_int_equal(status, 125);
	assert_non_null(strstr(result.text, "given up"));
	assert_string_equal(stage_read(stage->out), "");
}

static void fill(const char *directory)
{
	static const char zeros[4096];
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/fill", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	close(fd);
}

/* A disk that fills while the job runs loses no outcome. */
static void test_exit_on_full_disk(void **state)
{
	struct want want = SH("sleep 0.3; exit 7");
	struct stage *stage = *state;
	struct launch_event started;
	struct stage_recovered r;
	struct job job;

	want.grace_ms = 10000;
	want.jobs = own_jobs(stage, "full");
	mkdir(want.jobs, 0700);
	if (mount("tmpfs", want.jobs, "tmpfs", 0, "size=64k"))
		skip();
	job = abandoned(stage, &want, &started);
	fill(want.jobs);
	close(job.client);
	stage_reap(&job);
	recover(stage, want.jobs, &r);
	launch_forget(want.jobs, stage->run, job.name);
	umount(want.jobs);
	rmdir(want.jobs);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.found.leash, -1);
	assert_int_equal(r.found.last.kind, 0);
	assert_int_equal(r.found.last.value, 7);
	assert_in_range(r.found.last.begin_us, 1, r.found.last.cpu_us - 1);
}

/* Killed before its record said where its cgroup is: the node's scope is used. */
static void test_bury(void **state)
{
	struct stage *stage = *state;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", stage->v2, stage->scope);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s/jobs", stage->v2, stage->scope);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s/jobs/a-1-1", stage->v2, stage->scope);
	assert_int_equal(mkdir(path, 0755), 0);
	launch_bury(stage->scope, 7, "a-1-2");
	assert_true(stage_group_exists(stage, "a-1-1"));
	launch_bury(stage->scope, 7, "../jobs/a-1-1"); /* this name is not a job's id */
	assert_true(stage_group_exists(stage, "a-1-1"));
	launch_bury(stage->scope, 7, "a-1-1");
	assert_false(stage_group_exists(stage, "a-1-1"));
	/* Below its user's group, which goes too, but not another user's. */
	snprintf(path, sizeof(path), "%s/%s/jobs/user@7", stage->v2, stage->scope);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/%s/jobs/user@7/a-1-1", stage->v2, stage->scope);
	assert_int_equal(mkdir(path, 0755), 0);
	launch_bury(stage->scope, 8, "a-1-1");
	assert_true(stage_group_exists(stage, "a-1-1"));
	launch_bury(stage->scope, 7, "a-1-1");
	assert_false(stage_group_exists(stage, "a-1-1"));
	snprintf(path, sizeof(path), "%s/%s/jobs/user@7", stage->v2, stage->scope);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_stopped_and_killed),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_beginning),
		cmocka_unit_test(test_never_began),
		cmocka_unit_test(test_beginning_unlocked),
		cmocka_unit_test(test_beginning_spare),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_exit_on_full_disk),
		cmocka_unit_test(test_bury),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("recover", tests, stage_setup, stage_teardown);
}
