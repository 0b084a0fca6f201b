/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See memory_mount.h. */
#include "user/memory_mount.h"

#include <errno.h>
#include <sys/mount.h>
#include <unistd.h>

int memory_mount(const char *size, const char *mode)
{
	int fs = fsopen("tmpfs", FSOPEN_CLOEXEC), fd = -1, rc = 0;

	if (fs < 0)
		return errno == ENOSYS ? -ENOTSUP : -errno;
	if ((size && fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0)) ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "mode", mode, 0) ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		rc = -errno;
	if (!rc) {
		fd = fsmount(fs, FSMOUNT_CLOEXEC,
			     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
		rc = fd < 0 ? -errno : 0;
	}
	close(fs);
	return rc ? rc : fd;
}
