/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Checks that files and directories belong to root alone. The agent keeps jobs' records and its
 * journal in configured directories, and runs as root by what its configuration says: a user who
 * can write to one of these files, or in a directory above, could replace their content.
 */
#ifndef IOCOM_TRUST_H
#define IOCOM_TRUST_H

#include <sys/types.h>

#include "iocom/err.h"

/*
 * Checks the file or directory PATH, each directory above it and each symbolic link on the way, as
 * the kernel would walk it: each belongs to root, and neither its mode nor its POSIX ACL lets
 * another user or group write. A sticky directory like /tmp may be above. PATH itself may also
 * belong to user ALSO (0: root only). Returns 0; -EPERM with the reason in ERR, which names the
 * part of the path and what to do; -ENOENT and other negative errno with the reason.
 */
int trust_path(const char *path, uid_t also, struct iocom_err *err);
/*
 * Checks the file PATH if it exists: a regular file of root with no other hard link, which nobody
 * else can read or write. Returns 0, -EPERM with the reason in ERR, other negative errno.
 */
int trust_file(const char *path, struct iocom_err *err);

#endif
