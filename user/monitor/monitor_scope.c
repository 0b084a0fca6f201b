/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The scope's cgroup: its id is the inode number of its directory, its level the number of
 * directories below the cgroup2 mount. A cgroup namespace or a bind mount hides levels, so we
 * count up to the true root, whose parent is on another file system.
 */
#include "user/monitor/monitor_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LEVELS_MAX 64

int monitor_scope_find(const char *path, __u64 *id, __u32 *level, struct iocom_err *err)
{
	struct stat here, above;
	struct statfs fs;
	int fd, up, rc = 0;

	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return iocom_err_set(err, -ENOENT, "cannot open the scope's cgroup %s: %s", path,
				     strerror(errno));
	if (fstatfs(fd, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC || fstat(fd, &here)) {
		close(fd);
		return iocom_err_set(err, -ENOENT,
				     "%s cannot be the monitor's scope: it is not a directory of a "
				     "cgroup2 mount",
				     path);
	}
	*id = here.st_ino;
	for (*level = 0; *level < LEVELS_MAX; ++*level) {
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
		if (up < 0 || fstat(up, &above)) {
			rc = -errno;
			break;
		}
		if (above.st_dev != here.st_dev)
			break;
	}
	if (fd >= 0)
		close(fd);
	return rc ? iocom_err_set(err, rc, "cannot open the parent of %s: %s", path, strerror(-rc))
		  : 0;
}
