/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Checks that files and directories belong to root alone.  The agent keeps jobs' records and its
 * journal in configured directories: a user who can write in one of them, or in a directory above,
 * could replace their content.
 */
#ifndef IOCOM_TRUST_H
#define IOCOM_TRUST_H

#include "iocom/err.h"

/*
 * Checks the directory PATH (absolute), all directories above it, and the targets of its symbolic
 * links: each belongs to root and nobody else can write in it; a sticky one like /tmp may be above.
 * Returns 0; -EPERM with the reason in ERR, which names the directory and what to do; other
 * negative errno.
 */
int trust_directory(const char *path, struct iocom_err *err);
/*
 * Checks the file PATH if it exists: a regular file of root with no other hard link, which nobody
 * else can read or write.  Returns 0, -EPERM with the reason in ERR, other negative errno.
 */
int trust_file(const char *path, struct iocom_err *err);

#endif
