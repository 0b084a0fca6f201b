/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Makes a shim's process directly in the cgroup of the shims.
 *
 * Writing a pid to cgroup.procs waits for an RCU grace period (10 ms and more on a quiet machine)
 * and holds up all others who change cgroups meanwhile; clone3 into the cgroup does neither.  If
 * that fails (old kernel, no such cgroup), spawn.c starts the shim, which moves itself.
 *
 * The agent has nng's threads, and clone3's child is a copy of the calling thread only.  So until
 * exec the child only makes system calls, and the calling thread waits (CLONE_VFORK).  The child
 * shares the agent's memory: copying the page tables, only for exec to drop them, would cost more
 * than all the rest.
 */
#include "agent/guest/launch_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/cgroup.h"
#include "agent/base/spawn.h"
#include "agent/shim/order.h"

static char *const environment[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};

/* Opens the shims' cgroup below SCOPE: a descriptor or negative errno. */
static int open_shims(const char *scope)
{
	struct cgroup_mounts mounts;
	struct cgroup shims;
	int rc = cgroup_mounts_read("/proc/self/mounts", &mounts, NULL);

	if (!rc)
		rc = cgroup_name(&mounts, scope, "shims", &shims, NULL);
	if (rc)
		return rc;
	/* Other jobs' shims are in it: -EBUSY is no error here. */
	(void)cgroup_create(&shims, NULL);
	return cgroup_open(&shims);
}

/* What parent and child share, whether or not they share all their memory. */
struct birth {
	const char *program;
	char *const *argv;
	const int *fds;
	size_t n;
	int error; /* the child's errno; 0: the program is executed */
};

#define BIRTH_ROOM 32768 /* struct birth, and above it the child's stack */

/* Makes raw system calls only: a sanitizer's wrappers write to this shared memory. */
static int become_shim(void *arg)
{
	/* struct sigaction as the kernel has it; all zero is SIG_DFL */
	static const struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} standard;
	static const uint64_t none;
	struct birth *birth = arg;
	bool done;
	long null;

	for (int i = 1; i < _NSIG; i++)
		syscall(SYS_rt_sigaction, i, &standard, NULL, sizeof(standard.mask));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
	done = null >= 0 && syscall(SYS_setsid) >= 0 && syscall(SYS_dup3, null, 0, 0) == 0 &&
	       syscall(SYS_dup3, null, 1, 0) == 1;
	for (size_t i = 0; i < birth->n && done; i++)
		done = syscall(SYS_dup3, birth->fds[i], SHIM_FD_LEASH + (int)i, 0) >= 0;
	if (done)
		syscall(SYS_execve, birth->program, birth->argv, environment);
	birth->error = errno;
	return 127;
}

/* Calls clone3; its child runs become_shim(BIRTH).  Returns the pid, or negative errno. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static pid_t clone_shim(struct clone_args *args, struct birth *birth)
{
	long pid = SYS_clone3;

	args->flags |= CLONE_VM;
	args->stack = (uint64_t)(uintptr_t)birth;
	args->stack_size = BIRTH_ROOM;
	/*
	 * The child has its own stack and never returns to this function.  Its inputs are in named
	 * registers: the compiler might pick rbp otherwise, which the child clears.
	 */
	__asm__ volatile("syscall\n\t"
			 "testq %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xorl %%ebp, %%ebp\n\t"
			 "movq %[birth], %%rdi\n\t"
			 "call *%[run]\n\t"
			 "movl %%eax, %%edi\n\t"
			 "movl %[leave], %%eax\n\t"
			 "syscall\n\t"
			 "hlt\n"
			 "1:"
			 : "+a"(pid)
			 : "D"(args), "S"(sizeof(*args)), [run] "b"(become_shim),
			   [birth] "d"(birth), [leave] "i"(SYS_exit)
			 : "rcx", "r11", "cc", "memory");
	return (pid_t)pid;
}
#else
static pid_t clone_shim(struct clone_args *args, struct birth *birth)
{
	long pid = syscall(SYS_clone3, args, sizeof(*args));

	if (pid == 0)
		_exit(become_shim(birth));
	return pid < 0 ? -errno : (pid_t)pid;
}
#endif

static int spawn_into(int cgroup, const char *program, char *const argv[], const int *fds, size_t n,
		      pid_t *pid)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP | CLONE_VFORK,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup,
	};
	struct birth *birth =
		mmap(NULL, BIRTH_ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigset_t all, before;
	int rc;

	*pid = -1;
	if (birth == MAP_FAILED)
		return -errno;
	*birth = (struct birth){.program = program, .argv = argv, .fds = fds, .n = n};
	/* No handler of the agent may run in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	*pid = clone_shim(&args, birth);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	rc = *pid < 0 ? *pid : -birth->error;
	if (*pid > 0 && rc)
		waitpid(*pid, NULL, 0);
	munmap(birth, BIRTH_ROOM);
	return rc;
}

/* Does the same in the cgroup that SHIMS keeps open, which may have been removed meanwhile. */
static int spawn_known(struct launch_shims *shims, const char *program, char *const argv[],
		       const char *scope, const int *fds, size_t n, pid_t *pid)
{
	int rc;

	if (shims->open) {
		rc = spawn_into(shims->fd, program, argv, fds, n, pid);
		if (*pid > 0)
			return rc;
		launch_shims_close(shims);
	}
	rc = open_shims(scope);
	if (rc < 0)
		return rc;
	*shims = (struct launch_shims){.open = true, .fd = rc};
	return spawn_into(rc, program, argv, fds, n, pid);
}

static int spawn_moved(struct launch_shims *shims, const char *program, char *const argv[],
		       const char *scope, const int *fds, size_t n, pid_t *pid)
{
	struct launch_shims once = {0};
	int high[LAUNCH_FDS];
	int rc = n > LAUNCH_FDS ? -EINVAL : spawn_lift(fds, n, high);

	if (rc)
		return rc;
	rc = spawn_known(shims ? shims : &once, program, argv, scope, high, n, pid);
	launch_shims_close(&once);
	for (size_t i = 0; i < n; i++)
		close(high[i]);
	return rc;
}

void launch_shims_close(struct launch_shims *shims)
{
	if (shims->open)
		close(shims->fd);
	shims->open = false;
}

int launch_spawn(const char *program, const char *scope, struct launch_shims *shims, const int *fds,
		 size_t n, pid_t *pid)
{
	char *const moved[] = {(char *)"iocom-shim", (char *)SHIM_MOVED, NULL};
	char *const argv[] = {(char *)"iocom-shim", NULL};

	return spawn_moved(shims, program, moved, scope, fds, n, pid)
		       ? spawn_spawn(program, argv, fds, n, pid)
		       : 0;
}

int launch_spawn_spare(const char *program, const char *scope, const char *jobs_dir,
		       struct launch_shims *shims, int leash, pid_t *pid)
{
	char *const argv[] = {(char *)SHIM_SPARE_NAME, (char *)SHIM_MOVED, (char *)SHIM_SPARE,
			      (char *)jobs_dir, NULL};
	const int fds[3] = {leash, leash, leash};

	return spawn_moved(shims, program, argv, scope, fds, 3, pid);
}
