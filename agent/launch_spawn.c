/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A shim's process, made in the cgroup of the shims.
 *
 * Writing a pid to cgroup.procs waits for an RCU grace period (10 ms and more on a quiet
 * machine) and holds up all others who change cgroups meanwhile; clone3 into the cgroup
 * does neither.  Where it cannot (old kernel, no such cgroup) helper.c serves, and the
 * shim moves itself.
 *
 * The agent has nng's threads.  The child of clone3 has a copy of this one only, so until
 * exec it makes system calls and nothing else; nobody runs here meanwhile (CLONE_VFORK).
 */
#include "launch_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "helper.h"
#include "shim/order.h"

static char *const environment[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};

/* The cgroup of the shims below SCOPE, or negative errno. */
static int open_shims(const char *scope)
{
	struct cgroup_mounts mounts;
	struct cgroup shims;
	int rc = cgroup_mounts_read("/proc/self/mounts", &mounts, NULL);

	if (!rc)
		rc = cgroup_name(&mounts, scope, "shims", &shims, NULL);
	if (rc)
		return rc;
	/* Others' shims are in it: -EBUSY is no error here. */
	(void)cgroup_create(&shims, NULL);
	return cgroup_open(&shims);
}

/* System calls only.  Returns where one failed. */
static int become_shim(const char *program, char *const argv[], const int fds[3])
{
	/* struct sigaction as the kernel has it; all zero is SIG_DFL */
	static const struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} standard;
	static const uint64_t none;
	int null;

	for (int i = 1; i < _NSIG; i++)
		syscall(SYS_rt_sigaction, i, &standard, NULL, sizeof(standard.mask));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || setsid() < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		return errno;
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], SHIM_FD_LEASH + i) < 0)
			return errno;
	execve(program, argv, environment);
	return errno;
}

static int spawn_into(int cgroup, const char *program, char *const argv[], const int fds[3],
		      pid_t *pid)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP | CLONE_VFORK,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup,
	};
	sigset_t all, before;
	int report[2], e = 0;

	if (pipe2(report, O_CLOEXEC))
		return -errno;
	e = fcntl(report[1], F_DUPFD_CLOEXEC, HELPER_LIFTED);
	close(report[1]);
	report[1] = e;
	/* No handler of the agent may run in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	*pid = report[1] < 0 ? -1 : (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (*pid == 0) {
		e = become_shim(program, argv, fds);
		_exit(write(report[1], &e, sizeof(e)) == sizeof(e) ? 127 : 126);
	}
	e = *pid < 0 ? errno : 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (report[1] >= 0)
		close(report[1]);
	if (*pid > 0 && read(report[0], &e, sizeof(e)) == sizeof(e))
		waitpid(*pid, NULL, 0);
	close(report[0]);
	return -e;
}

static int spawn_moved(const char *program, char *const argv[], const char *scope, const int fds[3],
		       pid_t *pid)
{
	int cgroup = open_shims(scope), high[3];
	int rc = cgroup < 0 ? cgroup : helper_lift(fds, 3, high);

	if (!rc) {
		rc = spawn_into(cgroup, program, argv, high, pid);
		for (int i = 0; i < 3; i++)
			close(high[i]);
	}
	if (cgroup >= 0)
		close(cgroup);
	return rc;
}

int launch_spawn(const char *program, const char *scope, const int fds[3], pid_t *pid)
{
	char *const moved[] = {(char *)"iocom-shim", (char *)SHIM_MOVED, NULL};
	char *const argv[] = {(char *)"iocom-shim", NULL};

	return spawn_moved(program, moved, scope, fds, pid)
		       ? helper_spawn(program, argv, fds, 3, pid)
		       : 0;
}

int launch_spawn_spare(const char *program, const char *scope, int leash, pid_t *pid)
{
	char *const argv[] = {(char *)SHIM_SPARE_NAME, (char *)SHIM_MOVED, (char *)SHIM_SPARE,
			      NULL};
	const int fds[3] = {leash, leash, leash};

	return spawn_moved(program, argv, scope, fds, pid);
}
