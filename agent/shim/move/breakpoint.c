/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See breakpoint.h. */
#include "agent/shim/move/breakpoint.h"

#ifdef __x86_64__

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENABLE_FIRST 1UL /* of the debug control register: break where the first one points */

static void breakpoint_here(void) __attribute__((noinline));
static void breakpoint_here(void)
{
	__asm__ volatile("nop");
}

static void breakpoint_child(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || raise(SIGSTOP))
		_exit(1);
	breakpoint_here();
	_exit(0);
}

static int breakpoint_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static bool breakpoint_set(pid_t pid)
{
	void *address = (void *)offsetof(struct user, u_debugreg[0]);
	void *control = (void *)offsetof(struct user, u_debugreg[7]);

	return !ptrace(PTRACE_POKEUSER, pid, address, (void *)(uintptr_t)breakpoint_here) &&
	       !ptrace(PTRACE_POKEUSER, pid, control, (void *)ENABLE_FIRST) &&
	       !ptrace(PTRACE_CONT, pid, NULL, NULL);
}

bool breakpoint_works(void)
{
	bool works = true;
	int status;
	pid_t pid = fork();

	if (!pid)
		breakpoint_child();
	if (pid < 0)
		return true;
	status = breakpoint_wait(pid);
	if (WIFSTOPPED(status) && breakpoint_set(pid)) {
		status = breakpoint_wait(pid);
		works = WIFSTOPPED(status);
	}
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		breakpoint_wait(pid);
	}
	return works;
}

#else

bool breakpoint_works(void)
{
	return true;
}

#endif
