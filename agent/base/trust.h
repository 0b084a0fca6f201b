/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whether what lies on disk is root's alone.  The agent keeps jobs' records and its journal
 * in directories that it is told of: who can write in one of them, or in one above, could
 * put something else there.
 */
#ifndef IOCOM_TRUST_H
#define IOCOM_TRUST_H

#include "iocom/err.h"

/*
 * The directory PATH (absolute), all above it, and where its symbolic links lead: each
 * belongs to root and nobody else can write in it; a sticky one like /tmp may be above.
 * 0; -EPERM with the sentence: which one, and what to do; other negative errno.
 */
int trust_directory(const char *path, struct iocom_err *err);
/*
 * The file PATH, where it is there: a regular file of root that no other name leads to and
 * nobody else can read or write.  0, -EPERM with the sentence, other negative errno.
 */
int trust_file(const char *path, struct iocom_err *err);

#endif
