/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See cover_proc.h. */
#include "agent/init/cover_proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/memory_mount.h"

/* Returns a copy of the mount at /proc, which is not mounted anywhere, or negative errno. */
static int proc_copy(void)
{
	int fd = open_tree(AT_FDCWD, "/proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int cover_open_dir(int at, const char *path, DIR **dir)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	*dir = fd < 0 ? NULL : fdopendir(fd);
	if (*dir)
		return 0;
	rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

static int cover_entry(int to, const char *proc, const char *name)
{
	char target[NAME_MAX + 16];

	snprintf(target, sizeof(target), "%s/%s", proc, name);
	return symlinkat(target, to, name) ? -errno : 0;
}

/*
 * Makes links in directory TO to the entries of FROM, which is a copy of a /proc called PROC: to
 * the numbers, or to all else.
 */
static int cover_entries(int to, int from, const char *proc, bool numbers)
{
	const struct dirent *entry;
	DIR *dir;
	int rc = cover_open_dir(from, ".", &dir);

	if (rc)
		return rc;
	while (!rc && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !!isdigit(entry->d_name[0]) == numbers &&
		    (numbers || strcmp(entry->d_name, "self") != 0))
			rc = cover_entry(to, proc, entry->d_name);
	closedir(dir);
	return rc;
}

static int cover_tree(int to, int node, pid_t pid);

/* Links the children of thread TID of process PID, and theirs. */
static int cover_children(int to, int node, pid_t pid, const char *tid)
{
	char path[96];
	int fd, child, rc = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%d/task/%.20s/children", pid, tid);
	fd = openat(node, path, O_RDONLY | O_CLOEXEC);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (!rc && fscanf(file, "%d", &child) == 1)
		rc = cover_tree(to, node, child);
	fclose(file);
	return rc;
}

/* Links process PID and all below it, by the node's pids. */
static int cover_tree(int to, int node, pid_t pid)
{
	const struct dirent *entry;
	char name[32];
	DIR *dir;
	int rc;

	snprintf(name, sizeof(name), "%d", pid);
	rc = cover_entry(to, "node", name);
	snprintf(name, sizeof(name), "%d/task", pid);
	if (!rc)
		rc = cover_open_dir(node, name, &dir);
	if (rc)
		return rc;
	while (!rc && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			rc = cover_children(to, node, pid, entry->d_name);
	closedir(dir);
	return rc;
}

static pid_t cover_parent(int node, pid_t pid)
{
	char path[32], line[128];
	int parent = 0, fd;
	FILE *file;

	snprintf(path, sizeof(path), "%d/status", pid);
	fd = openat(node, path, O_RDONLY | O_CLOEXEC);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file && fd >= 0)
		close(fd);
	while (file && !parent && fgets(line, sizeof(line), file))
		(void)sscanf(line, "PPid: %d", &parent);
	if (file)
		fclose(file);
	return parent;
}

/* Links criu, which looks for itself by its pid, too.  A shell may be between it and us. */
static int cover_criu(int to, int node)
{
	pid_t pid = getpid();
	char name[16];
	int rc = 0;

	for (int i = 0; !rc && i < 2; i++) {
		pid = cover_parent(node, pid);
		snprintf(name, sizeof(name), "%d", pid);
		rc = pid > 0 ? cover_entry(to, "node", name) : -ESRCH;
	}
	return rc;
}

static int cover_fill(int to, int node, int job, pid_t init)
{
	int rc;

	if (mkdirat(to, "node", 0755) || mkdirat(to, "job", 0755) || symlinkat("01", to, "self") ||
	    symlinkat("node/self", to, "01"))
		return -errno;
	rc = cover_criu(to, node);
	if (!rc)
		rc = cover_tree(to, node, init);
	if (!rc)
		rc = cover_entries(to, job, "job", true);
	return rc ? rc : cover_entries(to, node, "node", false);
}

/* Mounts the three. */
static int cover_lay(int cover, int node, int job)
{
	if (move_mount(cover, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) ||
	    move_mount(node, "", AT_FDCWD, "/proc/node", MOVE_MOUNT_F_EMPTY_PATH) ||
	    move_mount(job, "", AT_FDCWD, "/proc/job", MOVE_MOUNT_F_EMPTY_PATH))
		return -errno;
	return 0;
}

int cover_proc(pid_t init)
{
	int node = proc_copy(), job = -1, cover = -1, rc = node < 0 ? node : 0;

	if (!rc && umount2("/proc", MNT_DETACH))
		rc = -errno;
	if (!rc) {
		job = proc_copy();
		rc = job < 0 ? job : 0;
	}
	if (!rc) {
		cover = memory_mount(NULL, "0755");
		rc = cover < 0 ? cover : 0;
	}
	if (!rc)
		rc = cover_fill(cover, node, job, init);
	if (!rc)
		rc = cover_lay(cover, node, job);
	if (node >= 0)
		close(node);
	if (job >= 0)
		close(job);
	if (cover >= 0)
		close(cover);
	return rc;
}
