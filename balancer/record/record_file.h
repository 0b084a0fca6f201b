/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A file of lines that is valid at any time.  It grows under a temporary name beside its final
 * name, by whole lines or, if compressed, by whole gzip members, and gets its final name when
 * it is kept.  What a full disk cuts off is removed.
 */
#ifndef IOCOM_RECORD_FILE_H
#define IOCOM_RECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"

struct record_file;

/*
 * Opens PATH.  "-" is standard output; a name that ends in ".gz" is compressed; a device or pipe is
 * written directly.  Only the owner can read the file.  Returns 0; -EEXIST if it exists without
 * FORCE; negative errno with the reason in ERR.
 */
int record_file_open(const char *path, bool force, struct record_file **out, struct iocom_err *err);
/* Adds whole lines.  Returns 0 or negative errno; after an error nothing more can be added. */
int record_file_add(struct record_file *f, const char *text, size_t length, struct iocom_err *err);
/* Writes the added lines to the file. */
int record_file_flush(struct record_file *f, struct iocom_err *err);
uint64_t record_file_bytes(const struct record_file *f);
/* Gives the file its name, even after a failure, and frees F.  Returns 0 or negative errno. */
int record_file_keep(struct record_file *f, struct iocom_err *err);
/* Removes the file and frees F; NULL is fine. */
void record_file_drop(struct record_file *f);

/*
 * Returns "DIRECTORY/.NAME.XXXXXX" followed by the last suffix of PATH, malloc'ed; NULL: no
 * memory.
 */
char *record_file_temporary(const char *path);

#endif
