/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The guard ends a restartable job when the shim cannot; see guard.h. */
#include "agent/shim/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/clock.h"

#define GUARD_LOOK_MS 500

/* Returns when the shim is gone or the lease is over. UNTIL_MS then says which action is due. */
static void guard_watch(int fd, const volatile uint64_t *until_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (;;) {
		uint64_t end = *until_ms + GUARD_LATE_MS, now = clock_boot_ms(), left;

		if (now >= end)
			return;
		left = end - now;
		if (*until_ms == GUARD_NO_END_MS)
			left = GUARD_LOOK_MS; /* its end will come, and nobody wakes us then */
		if (poll(&p, 1, left < INT_MAX ? (int)left : INT_MAX) > 0)
			return;
	}
}

__attribute__((noreturn)) static void stand_by(int fd, const struct cgroup *group,
					       const volatile uint64_t *until_ms)
{
	/* Own session, so signals to the shim's group miss us. */
	setsid();
	prctl(PR_SET_NAME, "iocom-guard");
	/* Only the shim may hold the client's stream, the leash and the record's lock. */
	if (dup2(fd, 0) < 0 || close_range(1, ~0U, 0))
		_exit(1);
	guard_watch(0, until_ms);
	if (*until_ms)
		(void)cgroup_kill(group);
	_exit(0);
}

int guard_begin(struct guard *guard, const struct cgroup *group, uint64_t until_ms,
		void (*forget)(void *arg), void *arg, struct iocom_err *err)
{
	void *shared = mmap(NULL, sizeof(*guard->until_ms), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ends[2] = {-1, -1}, rc = 0;
	pid_t pid = -1;

	*guard = (struct guard){.fd = -1};
	if (shared != MAP_FAILED) {
		*(volatile uint64_t *)shared = until_ms;
		if (!pipe2(ends, O_CLOEXEC))
			pid = fork();
	}
	if (pid < 0)
		rc = -errno;
	if (pid == 0) {
		forget(arg);
		stand_by(ends[0], group, shared);
	}
	if (ends[0] >= 0)
		close(ends[0]);
	if (!rc) {
		*guard = (struct guard){pid, ends[1], shared};
		return 0;
	}
	if (ends[1] >= 0)
		close(ends[1]);
	if (shared != MAP_FAILED)
		munmap(shared, sizeof(*guard->until_ms));
	return iocom_err_set(err, rc, "cannot start the guard of the job's lease: %s",
			     strerror(-rc));
}

void guard_tell(struct guard *guard, uint64_t until_ms)
{
	if (guard->pid)
		*guard->until_ms = until_ms;
}

void guard_end(struct guard *guard)
{
	if (!guard->pid)
		return;
	*guard->until_ms = 0;
	close(guard->fd);
	/* The kill also works if another process holds the pipe's other end. The pid is still
	 * our child's: we have not waited for it. */
	kill(guard->pid, SIGKILL);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	munmap((void *)(uintptr_t)guard->until_ms, sizeof(*guard->until_ms));
	*guard = (struct guard){.fd = -1};
}
