/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The directory of a launcher: sockets and shared files of libpmix, and what MPI libraries put
 * there. The launcher holds a lock in it; a directory of this user that nobody holds was left by
 * one that was killed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/pmix/pmix_own.h"

#define DIR_PREFIX "iocom-pmix."
#define DIR_LOCK   "lock"
#define DIR_MEMORY "/dev/shm"
#define DIR_FDS	   16 /* that the removal may use */
#define DIR_TRIES  8

static int dir_remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st;
	(void)at;
	(void)!(flag == FTW_DP || flag == FTW_D ? rmdir(path) : unlink(path));
	return 0;
}

static void dir_remove(const char *path)
{
	(void)nftw(path, dir_remove_one, DIR_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Opens the lock of the directory PATH and takes it.  Returns it, or negative errno. */
static int dir_take(const char *path, int flags)
{
	char name[PATH_MAX + 8];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), "%s/" DIR_LOCK, path);
	fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600);
	if (fd < 0)
		return -errno;
	/* It may have been removed since it was opened. */
	if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && st.st_nlink)
		return fd;
	close(fd);
	return -EBUSY;
}

/* Removes what killed launchers of this user have left in PARENT. */
static void dir_sweep(const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[PATH_MAX];
		struct stat st;
		int fd;

		if (strncmp(entry->d_name, DIR_PREFIX, strlen(DIR_PREFIX)) != 0 ||
		    snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) >=
			    (int)sizeof(path) ||
		    lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
			continue;
		fd = dir_take(path, 0);
		if (fd == -ENOENT)
			(void)rmdir(path); /* killed before it had a lock, or about to make one */
		if (fd < 0)
			continue;
		dir_remove(path);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

/* Memory, where this machine has such a file system: what is there is shared memory. */
static const char *dir_parent(void)
{
	const char *parent = getenv("TMPDIR");

	if (!access(DIR_MEMORY, W_OK | X_OK))
		return DIR_MEMORY;
	return parent && parent[0] == '/' ? parent : "/tmp";
}

static int dir_make(struct pmix_launch *p, const char *parent, struct iocom_err *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/" DIR_PREFIX "XXXXXX", parent) >= (int)sizeof(path) ||
	    !mkdtemp(path))
		return iocom_err_set(err, -errno, "cannot make a directory in %s on node %s: %s",
				     parent, tasks_node(p->tasks), strerror(errno));
	memcpy(p->dir, path, sizeof(p->dir));
	p->lock = dir_take(p->dir, O_CREAT);
	return p->lock < 0 ? iocom_err_set(err, p->lock, "cannot lock %s: %s", p->dir,
					   strerror(-p->lock))
			   : 0;
}

int pmix_dir_make(struct pmix_launch *p, struct iocom_err *err)
{
	const char *parent = dir_parent();
	int rc = -EBUSY;

	dir_sweep(parent);
	/* Another launcher that sweeps just now may take a new one for an old one. */
	for (int i = 0; (rc == -EBUSY || rc == -ENOENT) && i < DIR_TRIES; i++)
		rc = dir_make(p, parent, err);
	return rc;
}

void pmix_dir_remove(struct pmix_launch *p)
{
	if (!p->dir[0])
		return;
	dir_remove(p->dir);
	if (p->lock >= 0)
		close(p->lock);
	p->dir[0] = 0;
}
