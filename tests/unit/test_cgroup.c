/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/cgroup.h"

static void write_table(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void test_tables(void **state)
{
	const char *hybrid = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
			     "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
			     "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
			     "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
			     "cgroup /sys/fs/cgroup/devices cgroup rw,devices 0 0\n"
			     "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nsdelegate 0 0\n";
	/* Whoever leaves the devices of the second one would leave its limit of tasks, too. */
	const char *tasks = "cgroup /sys/fs/cgroup/pids cgroup rw,pids,devices 0 0\n"
			    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
	const char *pure = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
	char path[] = "/tmp/iocom-mounts-XXXXXX";
	struct cgroup_mounts mounts;
	struct iocom_err err;

	(void)state;
	write_table(path, hybrid);
	assert_int_equal(cgroup_mounts_read(path, &mounts, &err), 0);
	assert_string_equal(mounts.v2, "/sys/fs/cgroup/unified");
	assert_int_equal(mounts.nv1, 2);
	assert_string_equal(mounts.v1[0], "/sys/fs/cgroup/cpu,cpuacct");
	assert_string_equal(mounts.v1[1], "/sys/fs/cgroup/memory");
	assert_string_equal(mounts.devices, "/sys/fs/cgroup/devices");
	unlink(path);
	strcpy(path, "/tmp/iocom-mounts-XXXXXX");
	write_table(path, tasks);
	assert_int_equal(cgroup_mounts_read(path, &mounts, &err), 0);
	assert_int_equal(mounts.nv1, 1);
	assert_string_equal(mounts.v1[0], "/sys/fs/cgroup/pids");
	assert_string_equal(mounts.devices, "");
	unlink(path);
	strcpy(path, "/tmp/iocom-mounts-XXXXXX");
	write_table(path, pure);
	assert_int_equal(cgroup_mounts_read(path, &mounts, &err), 0);
	assert_string_equal(mounts.v2, "/sys/fs/cgroup");
	assert_int_equal(mounts.nv1, 0);
	unlink(path);
	strcpy(path, "/tmp/iocom-mounts-XXXXXX");
	write_table(path, "proc /proc proc rw 0 0\n");
	assert_int_equal(cgroup_mounts_read(path, &mounts, &err), -ENOENT);
	assert_non_null(strstr(err.text, "cgroup2"));
	unlink(path);
}

static void test_names(void **state)
{
	struct cgroup_mounts mounts = {.v2 = "/cg2"};
	struct cgroup group;

	(void)state;
	assert_int_equal(cgroup_name(&mounts, "a/b", "jobs/j", &group, NULL), 0);
	assert_string_equal(group.v2, "/cg2/a/b/jobs/j");
	assert_int_equal(cgroup_name(&mounts, "", "jobs/j", &group, NULL), 0);
	assert_string_equal(group.v2, "/cg2/iocom/jobs/j");
	assert_int_equal(cgroup_name(&mounts, "/abs", "jobs/j", &group, NULL), -EINVAL);
	assert_int_equal(cgroup_name(&mounts, "a/../..", "jobs/j", &group, NULL), -EINVAL);
}

/* A process in the group, with a child of its own. */
static pid_t occupant(const struct cgroup *group)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (cgroup_enter(group, true))
			_exit(9);
		if (fork() == 0)
			setsid();
		for (;;)
			pause();
	}
	return pid;
}

static void test_life(void **state)
{
	struct cgroup_mounts mounts;
	struct cgroup group;
	struct stat st;
	char scope[64], parent[CGROUP_PATH_MAX];
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0 || cgroup_mounts_read("/proc/self/mounts", &mounts, NULL)) {
		print_message("cgroup life: needs root and cgroup2\n");
		skip();
	}
	snprintf(scope, sizeof(scope), "iocom-unit-%d", getpid());
	assert_int_equal(cgroup_name(&mounts, scope, "jobs/j", &group, NULL), 0);
	assert_int_equal(group.nv1, 0); /* cgroup v1 has no such scope */
	assert_int_equal(cgroup_create(&group, NULL), 0);
	assert_int_equal(stat(group.v2, &st), 0);
	assert_true(group.id == st.st_ino);
	assert_int_equal(cgroup_populated(&group), 0);
	pid = occupant(&group);
	while (cgroup_populated(&group) == 0)
		usleep(1000);
	assert_int_equal(cgroup_create(&group, NULL), -EBUSY);
	assert_int_equal(cgroup_kill(&group), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	pid = occupant(&group);
	while (cgroup_populated(&group) == 0)
		usleep(1000);
	assert_int_equal(cgroup_remove(&group, 5000), 0);
	assert_int_equal(access(group.v2, F_OK), -1);
	waitpid(pid, &status, 0);
	snprintf(parent, sizeof(parent), "%s/%s/jobs", mounts.v2, scope);
	assert_int_equal(rmdir(parent), 0);
	snprintf(parent, sizeof(parent), "%s/%s", mounts.v2, scope);
	assert_int_equal(rmdir(parent), 0);
}

static bool is_there(const struct cgroup_mounts *mounts, const char *scope, const char *name)
{
	char path[CGROUP_PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", mounts->v2, scope, name);
	return !access(path, F_OK);
}

/* A shim that was killed left its user's group; one that begins a job has just made another. */
static void test_tidy(void **state)
{
	struct cgroup_mounts mounts;
	struct cgroup left, begins;
	char scope[64], path[CGROUP_PATH_MAX];

	(void)state;
	if (geteuid() != 0 || cgroup_mounts_read("/proc/self/mounts", &mounts, NULL)) {
		print_message("cgroup tidy: needs root and cgroup2\n");
		skip();
	}
	snprintf(scope, sizeof(scope), "iocom-unit-%d", getpid());
	assert_int_equal(cgroup_name(&mounts, scope, "jobs/user@8", &left, NULL), 0);
	assert_int_equal(cgroup_name(&mounts, scope, "jobs/user@9/j", &begins, NULL), 0);
	assert_int_equal(cgroup_create(&left, NULL), 0);
	assert_int_equal(cgroup_create(&begins, NULL), 0);
	cgroup_tidy(scope, 0);
	assert_false(is_there(&mounts, scope, "jobs/user@8"));
	assert_true(is_there(&mounts, scope, "jobs/user@9/j"));
	assert_int_equal(cgroup_remove(&begins, 5000), 0);
	cgroup_tidy(scope, 0);
	assert_false(is_there(&mounts, scope, "jobs"));
	snprintf(path, sizeof(path), "%s/%s", mounts.v2, scope);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_tidy),
	};

	return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
