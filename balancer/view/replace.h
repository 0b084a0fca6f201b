/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The one habit of all commands that write files: a file that is there already is refused, and
 * --force replaces it.  A device or pipe is no file to lose.
 */
#ifndef IOCOM_REPLACE_H
#define IOCOM_REPLACE_H

#include <stdbool.h>

#include "iocom/err.h"

/*
 * Checks whether PATH may be written, before the work: -EEXIST with the sentence in ERR if it is a
 * file, without FORCE.  "-" is standard output.
 */
int replace_check(const char *path, bool force, struct iocom_err *err);
/* Renames FROM to PATH; without FORCE only if PATH does not exist.  Returns 0 or negative errno. */
int replace_rename(const char *from, const char *path, bool force, struct iocom_err *err);

#endif
