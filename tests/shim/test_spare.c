/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A shim that waits for its order: it is used, is missing, refuses, and ends with its agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/cgroup.h"
#include "agent/shim/spare.h"
#include "tests/lib/stage.h"
#include "user/record.h"

/* Returns the first line of /proc/PID/NAME. */
static const char *word_of(pid_t pid, const char *name)
{
	char path[64];
	static char text[256];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

static bool is_spare(pid_t pid)
{
	return !strcmp(word_of(pid, "comm"), "iocom-spare\n");
}

static struct launch_spare made(const struct stage *stage)
{
	struct launch_spare spare = {0};

	launch_spare_make(&spare, stage->shim, stage->scope);
	assert_true(spare.waits);
	for (int i = 0; i < 3000 && !is_spare(spare.pid); i++)
		usleep(10000);
	assert_true(is_spare(spare.pid));
	return spare;
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_used(void **state)
{
	struct stage *stage = *state;
	struct launch_spare spare = made(stage);
	const pid_t pid = spare.pid;
	struct want want = {.argv = {"cat"}, .spare = &spare};
	struct launch_event e;
	struct job job;

	assert_string_equal(word_of(pid, "cmdline"), "iocom-spare");
	launch_spare_make(&spare, stage->shim, stage->scope); /* one spare is enough */
	assert_int_equal(spare.pid, pid);
	job = stage_start(stage, &want);
	assert_int_equal(job.rc, 0);
	assert_int_equal(job.shim, pid);
	assert_false(spare.waits);
	assert_int_equal(stage_event(job.leash, &e), 0);
	assert_int_equal(e.type, LAUNCH_STARTED);
	assert_string_equal(e.job, job.name);
	assert_string_equal(word_of(pid, "comm"), "iocom-shim\n");
	assert_string_equal(word_of(pid, "cmdline"), "iocom-shim");
	assert_true(stage_group_exists(stage, job.name));
	assert_int_equal(stage_signal(stage, job.name, SIGKILL), 0);
	assert_int_equal(stage_event(job.leash, &e), 0);
	assert_int_equal(e.type, LAUNCH_EXITED);
	close(job.client);
	close(job.leash);
	assert_int_equal(stage_reap(&job), 0);
	assert_false(stage_group_exists(stage, job.name));
}

/* Returns whether the spare record of PID is in DIRECTORY. */
static bool has_spare_record(const char *directory, pid_t pid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/.spare-%d", directory, (int)pid);
	return access(path, F_OK) == 0;
}

static void until_spare_record(const char *directory, pid_t pid, bool there)
{
	for (int i = 0; i < 3000 && has_spare_record(directory, pid) != there; i++)
		usleep(10000);
	assert_int_equal(has_spare_record(directory, pid), there);
}

static struct launch_spare made_with_record(struct stage *stage)
{
	struct launch_spare spare = {.jobs_dir = stage->jobs};

	launch_spare_make(&spare, stage->shim, stage->scope);
	assert_true(spare.waits);
	until_spare_record(stage->jobs, spare.pid, true);
	return spare;
}

/* The record that the spare made is the job's: the same directory, with its files. */
static void test_record_in_advance(void **state)
{
	struct stage *stage = *state;
	struct launch_spare spare = made_with_record(stage);
	struct want want = {.argv = {"cat"}, .spare = &spare};
	char path[PATH_MAX];
	struct stat before, after;
	struct launch_event e;
	struct job job;

	snprintf(path, sizeof(path), "%s/.spare-%d", stage->jobs, (int)spare.pid);
	assert_int_equal(stat(path, &before), 0);
	job = stage_start(stage, &want);
	assert_int_equal(job.rc, 0);
	assert_false(has_spare_record(stage->jobs, spare.pid));
	snprintf(path, sizeof(path), "%s/%s", stage->jobs, job.name);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(stage_event(job.leash, &e), 0);
	assert_int_equal(e.type, LAUNCH_STARTED);
	assert_int_equal(stage_signal(stage, job.name, SIGKILL), 0);
	assert_int_equal(stage_event(job.leash, &e), 0);
	assert_int_equal(e.type, LAUNCH_EXITED);
	close(job.client);
	close(job.leash);
	assert_int_equal(stage_reap(&job), 0);
	record_remove(stage->jobs, job.name);
	assert_int_equal(access(path, F_OK), -1);
}

static int found_any(void *arg, const struct launch_found *f)
{
	(void)arg;
	if (f->leash >= 0)
		close(f->leash);
	return 0;
}

/* A spare whose agent leaves removes its record; that of a killed one the next agent removes. */
static void test_record_without_a_job(void **state)
{
	struct stage *stage = *state;
	struct launch_spare spare = made_with_record(stage);
	pid_t pid = spare.pid;

	launch_spare_drop(&spare);
	until_spare_record(stage->jobs, pid, false);
	status_of(pid);
	spare = made_with_record(stage);
	pid = spare.pid;
	assert_int_equal(kill(pid, SIGKILL), 0);
	status_of(pid);
	launch_spare_drop(&spare);
	assert_true(has_spare_record(stage->jobs, pid));
	assert_int_equal(launch_recover(stage->jobs, stage->run, found_any, NULL, NULL), 0);
	assert_false(has_spare_record(stage->jobs, pid));
}

/* A job that was started here before is refused, and what it left is not touched. */
static void test_record_is_not_taken_twice(void **state)
{
	struct stage *stage = *state;
	struct launch_spare spare = made_with_record(stage);

	assert_int_equal(record_take_spare(stage->jobs, spare.pid, "../n1-1-1"), -EINVAL);
	assert_int_equal(record_take_spare(stage->jobs, 1, "n1-1-1"), -ENOENT);
	assert_int_equal(record_take_spare(stage->jobs, spare.pid, "n1-1-1"), 0);
	assert_true(record_make_spare(stage->jobs, 1) >= 0);
	assert_int_equal(record_take_spare(stage->jobs, 1, "n1-1-1"), -EEXIST);
	record_remove_spare(stage->jobs, ".spare-1");
	assert_false(has_spare_record(stage->jobs, 1));
	record_remove_spare(stage->jobs, "n1-1-1"); /* it is a job's */
	assert_int_equal(record_make_spare("/nowhere", 1), -ENOENT);
	launch_spare_drop(&spare);
	status_of(spare.pid);
	record_remove(stage->jobs, "n1-1-1");
}

static void test_runs_a_job(void **state)
{
	struct stage *stage = *state;
	struct launch_spare spare = made(stage);
	struct want want = {.argv = {"sh", "-c", "id -u; exit 7"}, .spare = &spare};
	struct run_result result;

	assert_int_equal(stage_run(stage, &want, &result), 7);
	assert_string_equal(stage_read(stage->out), "65534\n");
	assert_false(spare.waits);
}

/* A spare reports a wrong order like any shim. */
static void test_refuses(void **state)
{
	struct stage *stage = *state;
	struct launch_spare spare = made(stage);
	struct want want = {.argv = {"true"}, .uid = 3999999, .gid = 3999999, .spare = &spare};
	struct run_result result;

	assert_int_equal(stage_run(stage, &want, &result), 125);
	assert_non_null(strstr(result.text, "knows no user with uid 3999999"));
}

static void test_dead(void **state)
{
	struct stage *stage = *state;
	struct launch_spare spare = made(stage);
	const pid_t pid = spare.pid;
	struct want want = {.argv = {"true"}, .spare = &spare};
	struct job job;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(status_of(pid), 128 + SIGKILL);
	job = stage_start(stage, &want);
	assert_int_equal(job.rc, 0);
	assert_int_not_equal(job.shim, pid);
	assert_false(spare.waits);
	close(job.client);
	assert_int_equal(stage_reap(&job), 0);
	close(job.leash);
}

static void test_none(void **state)
{
	struct stage *stage = *state;
	struct launch_spare spare = {0};
	struct want want = {.argv = {"true"}, .spare = &spare};
	struct run_result result;

	launch_spare_make(&spare, "/tmp/iocom-no-such-shim", stage->scope);
	assert_false(spare.waits);
	launch_spare_make(&spare, stage->shim, "../up");
	assert_false(spare.waits);
	launch_spare_drop(&spare);
	assert_int_equal(stage_run(stage, &want, &result), 0);
}

static void test_leaves_with_its_agent(void **state)
{
	struct launch_spare spare = made(*state);

	launch_spare_drop(&spare);
	assert_false(spare.waits);
	assert_int_equal(status_of(spare.pid), 1);
}

/* A message without descriptors, or with other descriptors than an order and a stream. */
static void test_no_order(void **state)
{
	struct stage *stage = *state;
	struct launch_spare spare = made(stage);
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(2 * sizeof(int))}};
	struct iovec piece = {(char *)"x", 1};
	struct msghdr message = {.msg_iov = &piece,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int fds[2] = {0, 1};

	assert_int_equal(write(spare.leash, "x", 1), 1);
	assert_int_equal(status_of(spare.pid), 1);
	launch_spare_drop(&spare);
	spare = made(stage);
	memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	assert_int_equal(sendmsg(spare.leash, &message, 0), 1);
	assert_int_equal(status_of(spare.pid), 1);
	launch_spare_drop(&spare);
}

static void test_by_hand(void **state)
{
	struct stage *stage = *state;
	pid_t pid = fork();

	if (!pid) {
		close_range(3, ~0U, 0);
		execl(stage->shim, "iocom-shim", "--moved", "--spare", NULL);
		_exit(99);
	}
	assert_int_equal(status_of(pid), 2);
}

/* Runs in a mount namespace of its own. */
static int mounts_that_change(void)
{
	struct spare spare = {.mounts = {.v2 = "/read/ahead"}, .read = true};
	struct cgroup_mounts mounts;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 10;
	spare.table = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	if (spare_mounts(&spare, &mounts, NULL) || strcmp(mounts.v2, "/read/ahead") != 0)
		return 11;
	if (mount("none", "/tmp", "tmpfs", 0, NULL))
		return 12;
	if (spare_mounts(&spare, &mounts, NULL) || !strcmp(mounts.v2, "/read/ahead"))
		return 13;
	spare = (struct spare){.mounts = {.v2 = "/read/ahead"}, .table = -1};
	return spare_mounts(&spare, &mounts, NULL) || !strcmp(mounts.v2, "/read/ahead") ? 14 : 0;
}

static void test_mounts(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(mounts_that_change());
	assert_int_equal(status_of(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_used),
		cmocka_unit_test(test_runs_a_job),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_leaves_with_its_agent),
		cmocka_unit_test(test_no_order),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_record_in_advance),
		cmocka_unit_test(test_record_without_a_job),
		cmocka_unit_test(test_record_is_not_taken_twice),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP needs root (other users' processes, cgroups)\n");
		return 0;
	}
	return cmocka_run_group_tests_name("spare", tests, stage_setup, stage_teardown);
}
