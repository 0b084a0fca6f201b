/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the network part has lost for good after confine_early, and when that fails.  What is
 * refused later is in test_confine_filter.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/confined.h"
#include "user/keyring.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* --- after confine_early ------------------------------------------------------------------- */

static void early_and_wait(void *arg)
{
	(void)arg;
	confined_early();
	confined_waits();
}

static void test_user(void **state)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
	pid_t pid = confined_start(early_and_wait, NULL);
	char task[16], path[64];
	struct stat st;

	(void)state;
	confined_await();
	snprintf(task, sizeof(task), "%d", pid);
	assert_string_equal(confined_status(pid, task, "Uid"), "64990\t64990\t64990\t64990");
	assert_string_equal(confined_status(pid, task, "Gid"), "64991\t64991\t64991\t64991");
	assert_string_equal(confined_status(pid, task, "Groups"), "");
	for (size_t i = 0; i < LENGTH(sets); i++)
		assert_string_equal(confined_status(pid, task, sets[i]), "0000000000000000");
	assert_string_equal(confined_status(pid, task, "NoNewPrivs"), "1");
	snprintf(path, sizeof(path), "/proc/%d/status", pid); /* root's, as it is not dumpable */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	confined_let_go();
	confined_ends_well(pid);
}

static bool is_same_namespace(pid_t pid, const char *name)
{
	char path[64], own[64], a[64] = "", b[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	snprintf(own, sizeof(own), "/proc/self/ns/%s", name);
	assert_true(readlink(path, a, sizeof(a) - 1) > 0);
	assert_true(readlink(own, b, sizeof(b) - 1) > 0);
	return !strcmp(a, b);
}

static void test_namespaces(void **state)
{
	pid_t pid = confined_start(early_and_wait, NULL);

	(void)state;
	confined_await();
	assert_int_equal(confined->got.own_root, !is_same_namespace(pid, "mnt"));
	assert_int_equal(confined->got.own_ipc, !is_same_namespace(pid, "ipc"));
	assert_int_equal(confined->got.own_uts, !is_same_namespace(pid, "uts"));
	assert_int_equal(confined->got.own_cgroup, !is_same_namespace(pid, "cgroup"));
	assert_int_equal(confined->got.own_root && confined->got.own_ipc && confined->got.own_uts &&
				 confined->got.own_cgroup,
			 !confined->got.said[0]);
	assert_true(is_same_namespace(pid, "net"));
	confined_let_go();
	confined_ends_well(pid);
}

static unsigned entries_of(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void sees_nothing(void *arg)
{
	char path[64];

	(void)arg;
	confined_early();
	CHECK(open("/etc/passwd", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(open("/proc/self/status", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(open("../../../../etc/passwd", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(entries_of("/") == 0 && entries_of("..") == 0);
	CHECK(getcwd(path, sizeof(path)) && !strcmp(path, "/"));
	CHECK(open("/x", O_WRONLY | O_CREAT, 0600) < 0 && errno != ENOENT);
	CHECK(open("/", O_TMPFILE | O_RDWR, 0600) < 0);
	CHECK(mkdir("/x", 0700) < 0);
	CHECK(getenv("TZ"));
}

static void test_sees_nothing(void **state)
{
	(void)state;
	confined_run(sees_nothing, NULL);
	assert_int_equal(rmdir(confined_directory), 0); /* no mount is left behind on it */
	assert_int_equal(mkdir(confined_directory, 0555), 0);
}

static void cannot_return(void *arg)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
	pid_t parent = getppid();
	int32_t ring = keyring_check(NULL) ? 0 : keyring_session();

	(void)arg;
	confined_early();
	CHECK(setuid(0) && seteuid(0) && setreuid(0, 0) && setresuid(0, 0, 0));
	CHECK(setgid(0) && setegid(0) && setgroups(1, &(gid_t){0}));
	CHECK(syscall(SYS_capset, &header, all));
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
	CHECK(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	CHECK(chroot("/") && unshare(CLONE_NEWNS) && mount("x", "/", "tmpfs", 0, NULL));
	CHECK(kill(parent, 0) && errno == EPERM);
	CHECK(ptrace(PTRACE_SEIZE, parent, 0, 0) && errno == EPERM);
	CHECK(!ring || keyring_session() != ring);
}

static void test_cannot_return(void **state)
{
	(void)state;
	confined_run(cannot_return, NULL);
}

/* Another process of the same user. */
static void traces(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	CHECK(!setgroups(0, NULL) && !setresgid(CONFINED_GID, CONFINED_GID, CONFINED_GID) &&
	      !setresuid(CONFINED_UID, CONFINED_UID, CONFINED_UID));
	CHECK(ptrace(PTRACE_SEIZE, pid, 0, 0) && errno == EPERM);
}

static void test_not_traced(void **state)
{
	pid_t pid = confined_start(early_and_wait, NULL), other;

	(void)state;
	confined_await();
	other = fork();
	if (other == 0) {
		traces(&pid);
		_exit(0);
	}
	confined_ends_well(other);
	confined_let_go();
	confined_ends_well(pid);
}

static void limits_of_pipe(void *arg)
{
	struct rlimit limit;
	int ends[2];

	(void)arg;
	CHECK(!pipe(ends) && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
	confined_early();
	CHECK(!getrlimit(RLIMIT_CORE, &limit) && !limit.rlim_cur && !limit.rlim_max);
	CHECK(!getrlimit(RLIMIT_FSIZE, &limit) && !limit.rlim_cur && !limit.rlim_max);
	CHECK(write(STDERR_FILENO, "x", 1) == 1);
}

/* The log is a file: it grows. */
static void limits_of_file(void *arg)
{
	struct rlimit limit;
	char path[] = "/tmp/iocom-confine-log-XXXXXX";
	int fd = mkstemp(path);

	(void)arg;
	CHECK(fd >= 0 && !unlink(path) && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
	confined_early();
	CHECK(!getrlimit(RLIMIT_CORE, &limit) && !limit.rlim_max);
	CHECK(!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur);
	CHECK(write(STDERR_FILENO, "x", 1) == 1);
}

static void test_limits(void **state)
{
	(void)state;
	confined_run(limits_of_pipe, NULL);
	confined_run(limits_of_file, NULL);
}

/* Its parent, which the test kills. */
static void has_child(void *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		early_and_wait(arg);
		_exit(0);
	}
	confined->number = pid;
	pause();
}

static void test_dies_with_parent(void **state)
{
	pid_t parent = confined_start(has_child, NULL);

	(void)state;
	confined_await();
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_true(confined_is_killed(confined->number));
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

/* --- errors of confine_early -------------------------------------------------------------- */

struct refusal {
	uid_t uid;
	gid_t gid;
	void (*prepare)(void);
	const char *path; /* instead of the directory */
	int rc;
	const char *says;
};

static void prepare_open_directory(void)
{
	CHECK(open("/etc", O_PATH | O_DIRECTORY) >= 0);
}

static void prepare_group_writable(void)
{
	CHECK(!chmod(confined_directory, 0575));
}

static void prepare_owned(void)
{
	CHECK(!chown(confined_directory, CONFINED_UID, CONFINED_GID));
}

#ifndef CONFINE_SANITIZED
static void *sleeps(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

static void prepare_thread(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, sleeps, NULL));
}
#endif

static void be_refused(void *arg)
{
	const struct refusal *r = arg;

	if (r->prepare)
		r->prepare();
	confined->rc = confine_early(r->uid, r->gid, r->path ? r->path : confined_directory,
				     &confined->got, &confined->err);
}

static void test_refusals(void **state)
{
	static const struct refusal cases[] = {
		{0, CONFINED_GID, NULL, NULL, -EINVAL, "user and a group of its own"},
		{CONFINED_UID, 0, NULL, NULL, -EINVAL, "user and a group of its own"},
		{(uid_t)-1, CONFINED_GID, NULL, NULL, -EINVAL, "user and a group of its own"},
		{CONFINED_UID, (gid_t)-1, NULL, NULL, -EINVAL, "user and a group of its own"},
		{CONFINED_UID, CONFINED_GID, NULL, "/nosuchdirectory", -ENOENT, "/nosuchdirectory"},
		{CONFINED_UID, CONFINED_GID, NULL, "/etc/passwd", -EINVAL, "is no directory"},
		{CONFINED_UID, CONFINED_GID, NULL, "/proc/self/cwd", -EINVAL, "is no directory"},
		{CONFINED_UID, CONFINED_GID, NULL, "/etc", -EINVAL, "is not empty"},
		{CONFINED_UID, CONFINED_GID, prepare_group_writable, NULL, -EINVAL,
		 "others than root"},
		{CONFINED_UID, CONFINED_GID, prepare_owned, NULL, -EINVAL, "others than root"},
		{CONFINED_UID, CONFINED_GID, prepare_open_directory, NULL, -EBUSY,
		 "is a directory"},
#ifndef CONFINE_SANITIZED
		{CONFINED_UID, CONFINED_GID, prepare_thread, NULL, -EBUSY, "more threads"},
#endif
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		confined_run(be_refused, (void *)(uintptr_t)&cases[i]);
		assert_int_equal(chmod(confined_directory, 0555) | chown(confined_directory, 0, 0),
				 0);
		assert_int_equal(confined->rc, cases[i].rc);
		assert_non_null(strstr(confined->err.text, cases[i].says));
	}
}

/* From now on the system call CALL does nothing and returns -ERROR. */
static void filter_call(long call, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};

	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

struct failure {
	long call;
	int error; /* 0: it seems to succeed */
	const char *says;
};

static void step_fails(void *arg)
{
	const struct failure *f = arg;

	filter_call(f->call, f->error);
	confined->rc = confine_early(CONFINED_UID, CONFINED_GID, confined_directory, &confined->got,
				     &confined->err);
}

/* Steps that fail, and steps that only seem to be done. */
static void test_failed_steps(void **state)
{
	static const struct failure cases[] = {
		{SYS_setgroups, EPERM, "give up root's privilege"},
		{SYS_setresgid, EPERM, "give up root's privilege"},
		{SYS_setresuid, EAGAIN, "give up root's privilege"},
		{SYS_capset, EPERM, "give up root's privilege"},
		{SYS_prctl, EPERM, "give up root's privilege"},
		{SYS_umount2, EBUSY, "make an empty root"},
		{SYS_prlimit64, EPERM, "set its limits"},
		{SYS_setresuid, 0, "privilege for good"},
		{SYS_setresgid, 0, "privilege for good"},
		{SYS_capset, 0, "privilege for good"},
		{SYS_capget, EPERM, "privilege for good"},
		{SYS_prctl, 0, "privilege for good"},
		{SYS_umount2, 0, "its root is not empty"},
		{SYS_pivot_root, 0, "its root is not empty"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		confined_run(step_fails, (void *)(uintptr_t)&cases[i]);
		assert_true(confined->rc < 0);
		assert_non_null(strstr(confined->err.text, cases[i].says));
	}
}

static void without_mounts(void *arg)
{
	(void)arg;
	filter_call(SYS_mount, EPERM);
	confined_early();
	CHECK(!confined->got.own_root && strstr(confined->got.said, "chroot"));
	CHECK(open("/etc/passwd", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(open("../../../../etc/passwd", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(entries_of("/") == 0 && open("/x", O_WRONLY | O_CREAT, 0600) < 0);
}

static void test_without_mounts(void **state)
{
	(void)state;
	confined_run(without_mounts, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_sees_nothing),
		cmocka_unit_test(test_cannot_return),
		cmocka_unit_test(test_not_traced),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_dies_with_parent),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_failed_steps),
		cmocka_unit_test(test_without_mounts),
	};

	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root");
		return 0;
	}
	return cmocka_run_group_tests(tests, confined_set_up, confined_tear_down);
}
