/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See replace.h. */
#include "balancer/view/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int replace_check(const char *path, bool force, struct iocom_err *err)
{
	struct stat st;

	if (force || !strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	return iocom_err_set(err, -EEXIST, "%s is there already; --force replaces it", path);
}

int replace_rename(const char *from, const char *path, bool force, struct iocom_err *err)
{
	struct stat st;
	int rc;

	/* Whoever may do all must not lose /dev/null to a slip of the pen. */
	if (!lstat(path, &st) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return iocom_err_set(err, -EEXIST, "cannot write %s: it is no file", path);
	rc = renameat2(AT_FDCWD, from, AT_FDCWD, path, force ? 0 : RENAME_NOREPLACE);

	/* Some file systems do not support the flag. */
	if (rc && !force && errno == EINVAL && access(path, F_OK))
		rc = rename(from, path);
	if (!rc)
		return 0;
	rc = -errno;
	if (rc == -EEXIST && replace_check(path, force, err))
		return rc;
	return iocom_err_set(err, rc, "cannot name %s %s: %s", from, path, strerror(-rc));
}
