/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See look_aside.h.  OUT is in memory that we share with the child; the pipe tells its end. */
#include "balancer/look_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/clock.h"
#include "user/shared_fs.h"

/* So long a killed child may take before it counts as held in the kernel. */
#define KILLED_MS 1000

/* The child's part: whoever reads our outputs must not wait for it, so it has none of them. */
__attribute__((noreturn)) static void look_aside_child(look_aside_fn look, const void *arg,
						       void *out, int told)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(told, 0) < 0 || close_range(1, ~0U, 0))
		_exit(1);
	look(arg, out);
	(void)!write(0, "", 1);
	_exit(0);
}

/* Returns 0 if the child has said that it is done, -ETIMEDOUT, or -EIO. */
static int look_aside_wait(int told, int ms)
{
	uint64_t until_ms = clock_boot_ms() + (uint64_t)ms, now;
	struct pollfd p = {.fd = told, .events = POLLIN};
	char done;

	while ((now = clock_boot_ms()) < until_ms)
		if (poll(&p, 1, (int)(until_ms - now)) > 0)
			return read(told, &done, 1) == 1 ? 0 : -EIO;
	return -ETIMEDOUT;
}

/* A wait for a server can mostly be killed; a child that is held nevertheless stays. */
static void look_aside_give_up(pid_t pid)
{
	kill(pid, SIGKILL);
	for (int i = 0; i < KILLED_MS && waitpid(pid, NULL, WNOHANG) == 0; i++)
		usleep(1000);
}

int look_aside_for(look_aside_fn look, const void *arg, void *out, size_t size, int ms)
{
	int told[2], rc;
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = -1;

	if (shared != MAP_FAILED && !pipe2(told, O_CLOEXEC)) {
		memcpy(shared, out, size);
		pid = fork();
		if (pid == 0)
			look_aside_child(look, arg, shared, told[1]);
		close(told[1]);
		if (pid < 0)
			close(told[0]);
	}
	if (pid < 0) {
		if (shared != MAP_FAILED)
			munmap(shared, size);
		look(arg, out);
		return 0;
	}
	rc = look_aside_wait(told[0], ms);
	close(told[0]);
	if (rc == -ETIMEDOUT)
		look_aside_give_up(pid);
	else
		waitpid(pid, NULL, 0);
	memcpy(out, shared, size);
	munmap(shared, size);
	return rc;
}

int look_aside(look_aside_fn look, const void *arg, void *out, size_t size)
{
	if (shared_fs_may_hang(SHARED_FS_TABLE))
		return look_aside_for(look, arg, out, size, LOOK_ASIDE_MS);
	look(arg, out);
	return 0;
}
