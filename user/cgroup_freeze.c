/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See cgroup_freeze.h. */
#include "user/cgroup_freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "user/clock.h"
#include "user/process_stat.h"

#define FREEZE_MOMENT_NS_MAX 16000000

/* Returns 1 when cgroup.events at FD says so, else 0. */
static int freeze_is_done(int fd)
{
	char text[256];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return 0;
	text[n] = 0;
	return strstr(text, "frozen 1") != NULL;
}

bool cgroup_frozen(const struct cgroup *group)
{
	char path[CGROUP_PATH_MAX + 32];
	bool frozen;
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.events", group->v2);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	frozen = fd >= 0 && freeze_is_done(fd);
	if (fd >= 0)
		close(fd);
	return frozen;
}

unsigned cgroup_processes(const struct cgroup *group)
{
	char path[CGROUP_PATH_MAX + 32];
	unsigned count = 0;
	FILE *pids;
	int pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", group->v2);
	pids = fopen(path, "re");
	while (pids && fscanf(pids, "%d", &pid) == 1)
		count++;
	if (pids)
		fclose(pids);
	return count;
}

int cgroup_thaw(const struct cgroup *group)
{
	return cgroup_write(group->v2, "cgroup.freeze", "0");
}

/* Waits until the kernel says that all have stopped. */
static int freeze_wait(const struct cgroup *group, uint64_t until_ms)
{
	char path[CGROUP_PATH_MAX + 32];
	struct pollfd p = {.events = POLLPRI};
	int rc = 0;

	snprintf(path, sizeof(path), "%s/cgroup.events", group->v2);
	p.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (p.fd < 0)
		return -errno;
	while (!rc && !freeze_is_done(p.fd)) {
		uint64_t now_ms = clock_boot_ms();

		if (now_ms >= until_ms)
			rc = -ETIMEDOUT;
		else
			(void)poll(&p, 1, (int)(until_ms - now_ms));
	}
	close(p.fd);
	return rc;
}

/* Returns the state letter of thread TID; 0: it is gone. */
static char freeze_state(int tid)
{
	char stat[256];

	return process_stat(tid, stat, sizeof(stat)) ? 0 : *stat;
}

/*
 * Returns whether a thread waits in the kernel for another one, which is frozen ('D').  The kernel
 * counts it as frozen a moment before it waits ('R').
 */
static bool freeze_is_stuck(const struct cgroup *group, uint64_t until_ms)
{
	const struct timespec moment = {.tv_nsec = 100000};
	char path[CGROUP_PATH_MAX + 32], state = 0;
	FILE *file;
	int tid;

	snprintf(path, sizeof(path), "%s/cgroup.threads", group->v2);
	file = fopen(path, "re");
	while (file && state != 'D' && state != 'R' && fscanf(file, "%d", &tid) == 1)
		while ((state = freeze_state(tid)) == 'R' && clock_boot_ms() < until_ms)
			nanosleep(&moment, NULL);
	if (file)
		fclose(file);
	return state == 'D' || state == 'R';
}

int cgroup_freeze(const struct cgroup *group, unsigned limit_ms)
{
	uint64_t until_ms = clock_boot_ms() + limit_ms;
	struct timespec moment = {.tv_nsec = 500000};
	int rc = cgroup_write(group->v2, "cgroup.freeze", "1");

	while (!rc) {
		rc = freeze_wait(group, until_ms);
		if (rc || !freeze_is_stuck(group, until_ms))
			break;
		rc = clock_boot_ms() >= until_ms ? -ETIMEDOUT : cgroup_thaw(group);
		if (rc)
			break;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
		if (moment.tv_nsec < FREEZE_MOMENT_NS_MAX)
			moment.tv_nsec *= 2;
		rc = cgroup_write(group->v2, "cgroup.freeze", "1");
	}
	if (rc)
		(void)cgroup_thaw(group);
	return rc;
}
