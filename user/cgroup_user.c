/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Limits of a user's jobs together; see cgroup_user.h. */
#include "user/cgroup_user.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* v1 says LONG_MAX rounded to pages if there is no limit; no machine has 2^60 bytes. */
#define UNLIMITED (UINT64_C(1) << 60)

int cgroup_user_job(char *name, size_t size, uid_t uid, const char *job)
{
	int n = snprintf(name, size, "jobs/" CGROUP_USER_PREFIX "%u/%s", (unsigned)uid, job);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int cgroup_user_path(char path[CGROUP_PATH_MAX + 64], const char *directory,
			    const char *file)
{
	int n = snprintf(path, CGROUP_PATH_MAX + 64, "%s/%s", directory, file);

	return n < 0 || n >= CGROUP_PATH_MAX + 64 ? -ENAMETOOLONG : 0;
}

/* Reads a small file. Returns 0 or negative errno. */
static int cgroup_user_read(const char *directory, const char *file, char *out, size_t size)
{
	char path[CGROUP_PATH_MAX + 64];
	int fd, rc = cgroup_user_path(path, directory, file);
	ssize_t n;

	if (rc)
		return rc;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, out, size - 1);
	rc = n < 0 ? -errno : 0;
	close(fd);
	out[n > 0 ? n : 0] = 0;
	return rc;
}

/* Writes VALUE, or NONE if it is 0. Returns 0 or negative errno. */
static int cgroup_user_write(const char *directory, const char *file, uint64_t value,
			     const char *none)
{
	char path[CGROUP_PATH_MAX + 64], text[32];
	int fd, rc = cgroup_user_path(path, directory, file);
	size_t n;

	if (rc)
		return rc;
	if (value)
		snprintf(text, sizeof(text), "%" PRIu64, value);
	else
		snprintf(text, sizeof(text), "%s", none);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = strlen(text);
	if (write(fd, text, n) != (ssize_t)n)
		rc = errno ? -errno : -EIO;
	close(fd);
	return rc;
}

static bool cgroup_user_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = 0;
	return slash != NULL;
}

/* The swap that LIMITS add to the memory's limit, as v1 counts it; 0: no limit. */
static uint64_t both_bytes(const struct cgroup_limits *limits)
{
	return limits->memory_bytes ? limits->memory_bytes + limits->swap_bytes : 0;
}

/*
 * v1 never lets the limit of memory be above that of both, so the order depends on whether the
 * limits grow. Without accounting of swap (no memsw) the first write does all.
 */
static int limit_memory_v1(const char *directory, const struct cgroup_limits *limits)
{
	static const char memory[] = "memory.limit_in_bytes",
			  both[] = "memory.memsw.limit_in_bytes";
	int rc;

	/* Before Linux 5.11 a group ignores its children's memory without this. */
	(void)cgroup_user_write(directory, "memory.use_hierarchy", 1, "");
	rc = cgroup_user_write(directory, memory, limits->memory_bytes, "-1");
	if (rc == -EINVAL && !cgroup_user_write(directory, both, both_bytes(limits), "-1"))
		rc = cgroup_user_write(directory, memory, limits->memory_bytes, "-1");
	(void)cgroup_user_write(directory, both, both_bytes(limits), "-1");
	/* More is in use now than the new limit: it holds when the user's jobs have ended. */
	return rc == -EBUSY ? 0 : rc;
}

static int limit_memory(const char *directory, const struct cgroup_limits *limits)
{
	int rc = cgroup_user_write(directory, "memory.max", limits->memory_bytes, "max");

	if (rc == -ENOENT)
		return limit_memory_v1(directory, limits);
	/* Without swap this stays open for swap that is added later. */
	(void)cgroup_user_write(directory, "memory.swap.max",
				limits->memory_bytes ? limits->swap_bytes : 0, "max");
	return rc;
}

unsigned cgroup_user_limit(const struct cgroup *group, const struct cgroup_limits *limits)
{
	bool tasks = !limits->tasks, memory = !limits->memory_bytes;
	char directory[CGROUP_PATH_MAX];

	for (size_t i = 0; i <= group->nv1; i++) {
		strcpy(directory, i < group->nv1 ? group->v1[i] : group->v2);
		if (!cgroup_user_up(directory))
			continue;
		tasks |= !cgroup_user_write(directory, "pids.max", limits->tasks, "max");
		memory |= !limit_memory(directory, limits);
	}
	return (tasks ? 0 : CGROUP_TASKS) | (memory ? 0 : CGROUP_MEMORY);
}

void cgroup_user_leave(const struct cgroup *group)
{
	char directory[CGROUP_PATH_MAX];

	for (size_t i = 0; i <= group->nv1; i++) {
		strcpy(directory, i < group->nv1 ? group->v1[i] : group->v2);
		if (cgroup_user_up(directory))
			(void)rmdir(directory);
	}
}

/* --- what the kernel did ------------------------------------------------------ */

int cgroup_user_event(const char *text, const char *key, uint64_t *value)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		char *end;

		line += *line == '\n';
		if (strncmp(line, key, n) != 0 || line[n] != ' ')
			continue;
		if (!isdigit((unsigned char)line[n + 1]))
			return -EBADMSG;
		errno = 0;
		*value = strtoull(line + n + 1, &end, 10);
		return errno || (*end && *end != '\n') ? -EBADMSG : 0;
	}
	return -ENOENT;
}

static uint64_t event_count(const char *directory, const char *file, const char *key)
{
	char text[1024];
	uint64_t count;

	if (cgroup_user_read(directory, file, text, sizeof(text)) ||
	    cgroup_user_event(text, key, &count))
		return 0;
	return count;
}

void cgroup_user_troubles(const struct cgroup *group, struct cgroup_troubles *out)
{
	char directory[CGROUP_PATH_MAX];

	*out = (struct cgroup_troubles){0};
	for (size_t i = 0; i <= group->nv1; i++) {
		const char *own = i < group->nv1 ? group->v1[i] : group->v2;

		out->oom_kills += event_count(own, "memory.events", "oom_kill") +
				  event_count(own, "memory.oom_control", "oom_kill");
		out->forks_refused += event_count(own, "pids.events", "max");
		strcpy(directory, own);
		if (cgroup_user_up(directory))
			out->user_forks_refused +=
				event_count(directory, "pids.events.local", "max");
	}
}

/* --- what the machine offers -------------------------------------------------- */

/* Lowers BOUND to the number in the file; a file with "max" or none is no bound. */
static void cgroup_user_lower(uint64_t *bound, const char *directory, const char *file)
{
	char text[64];
	uint64_t value;

	if (cgroup_user_read(directory, file, text, sizeof(text)) ||
	    sscanf(text, "%" SCNu64, &value) != 1 || value >= UNLIMITED)
		return;
	if (!*bound || value < *bound)
		*bound = value;
}

/* Returns the bytes that a line "KEY:  N kB" of TEXT says, 0: no such line. */
static uint64_t meminfo_bytes(const char *text, const char *key)
{
	const char *line = strstr(text, key);
	uint64_t kb;

	return line && sscanf(line + strlen(key), " %" SCNu64 " kB", &kb) == 1 ? kb * 1024 : 0;
}

/* Lowers OUT by the limits of the group PATH and of all above it, as far as they are mounted. */
static void enclosing_bounds(const char *path, struct cgroup_bounds *out)
{
	char directory[CGROUP_PATH_MAX], procs[CGROUP_PATH_MAX + 64];
	bool mounted = false;

	strcpy(directory, path);
	do {
		bool group =
			!cgroup_user_path(procs, directory, "cgroup.procs") && !access(procs, F_OK);

		if (mounted && !group)
			return;
		mounted |= group;
		if (!group)
			continue; /* not made yet */
		cgroup_user_lower(&out->tasks, directory, "pids.max");
		cgroup_user_lower(&out->memory_bytes, directory, "memory.max");
		cgroup_user_lower(&out->memory_bytes, directory, "memory.limit_in_bytes");
		if (out->swap_bytes)
			cgroup_user_lower(&out->swap_bytes, directory, "memory.swap.max");
	} while (cgroup_user_up(directory));
}

void cgroup_user_bounds(const char *proc, const struct cgroup *jobs, struct cgroup_bounds *out)
{
	char text[8192];

	*out = (struct cgroup_bounds){0};
	if (!cgroup_user_read(proc, "meminfo", text, sizeof(text))) {
		out->memory_bytes = meminfo_bytes(text, "MemTotal:");
		out->swap_bytes = meminfo_bytes(text, "SwapTotal:");
	}
	cgroup_user_lower(&out->tasks, proc, "sys/kernel/pid_max");
	cgroup_user_lower(&out->tasks, proc, "sys/kernel/threads-max");
	for (size_t i = 0; i <= jobs->nv1; i++)
		enclosing_bounds(i < jobs->nv1 ? jobs->v1[i] : jobs->v2, out);
}
