/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A file system in memory that is mounted nowhere. */
#ifndef IOCOM_MEMORY_MOUNT_H
#define IOCOM_MEMORY_MOUNT_H

/*
 * Makes one of SIZE bytes (NULL: the kernel's usual size), whose directory has MODE, both as text.
 * Returns its descriptor, which is all that keeps it; -ENOTSUP: the kernel is too old; negative
 * errno.
 */
int memory_mount(const char *size, const char *mode);

#endif
