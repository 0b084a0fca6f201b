/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See trust.h. */
#include "agent/base/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Group write is fine for root's group: root chooses its members. */
static bool others_write(const struct stat *st)
{
	return st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != 0);
}

static int look_at(const char *part, bool last, struct iocom_err *err)
{
	struct stat st;

	if (lstat(part, &st))
		return iocom_err_set(err, -errno, "cannot check %s: %s", part, strerror(errno));
	if (st.st_uid != 0)
		return iocom_err_set(err, -EPERM,
				     "%s belongs to uid %u, which could replace its content:  "
				     "chown it to root, or choose another directory",
				     part, (unsigned)st.st_uid);
	if (S_ISLNK(st.st_mode)) /* root's link; its target is checked too */
		return 0;
	if (others_write(&st) && (last || !(st.st_mode & S_ISVTX)))
		return iocom_err_set(err, -EPERM,
				     "users other than root can write in %s (mode %04o): chmod "
				     "go-w, or choose another directory",
				     part, (unsigned)st.st_mode & 07777);
	return 0;
}

static int whole_way(const char *path, struct iocom_err *err)
{
	char part[PATH_MAX];
	size_t n = strlen(path);
	int rc = look_at("/", n == 1, err);

	if (!rc && n >= sizeof(part))
		return iocom_err_set(err, -ENAMETOOLONG, "path too long: %s", path);
	for (size_t i = 1; i <= n && !rc; i++) {
		if ((path[i] != '/' && path[i]) || path[i - 1] == '/')
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		rc = look_at(part, i == n, err);
	}
	return rc;
}

int trust_directory(const char *path, struct iocom_err *err)
{
	char real[PATH_MAX];
	int rc = whole_way(path, err);

	if (rc)
		return rc;
	if (!realpath(path, real))
		return iocom_err_set(err, -errno, "cannot check %s: %s", path, strerror(errno));
	return whole_way(real, err);
}

int trust_file(const char *path, struct iocom_err *err)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0
				       : iocom_err_set(err, -errno, "cannot check %s: %s", path,
						       strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return iocom_err_set(err, -EPERM,
				     "%s is not a plain file with a single name: another user may "
				     "have put it there; move it away",
				     path);
	if (st.st_uid != 0 || st.st_mode & 077)
		return iocom_err_set(err, -EPERM,
				     "%s is not root's alone (uid %u, mode %04o): check that its "
				     "content can be trusted, then chown root and chmod 600",
				     path, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
	return 0;
}
