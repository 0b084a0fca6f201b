/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A file of lines that is valid at any time: it grows under a temporary name beside
 * its own, by whole lines, packed ones by whole gzip members; it gets its name when
 * it is kept.  What a full disk cut off is taken away again.
 */
#ifndef IOCOM_RECORD_FILE_H
#define IOCOM_RECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"

struct record_file;

/*
 * PATH "-": standard output; a name that ends in ".gz" is packed; a device or pipe
 * is written directly.  Readable by its owner alone.  0; -EEXIST (it is there, and not
 * FORCE), negative errno, with the sentence.
 */
int record_file_open(const char *path, bool force, struct record_file **out, struct iocom_err *err);
/* Adds whole lines.  0 or negative errno; then nothing more can be added. */
int record_file_add(struct record_file *f, const char *text, size_t length, struct iocom_err *err);
/* What was added reaches the file. */
int record_file_flush(struct record_file *f, struct iocom_err *err);
uint64_t record_file_bytes(const struct record_file *f);
/* Gives it its name, also after a failure, and frees F.  0 or negative errno. */
int record_file_keep(struct record_file *f, struct iocom_err *err);
/* Removes it and frees F; NULL is fine. */
void record_file_drop(struct record_file *f);

/* "DIRECTORY/.NAME.XXXXXX" with the last suffix of PATH behind it, malloc'ed; NULL: no memory. */
char *record_file_temporary(const char *path);
/* Whether PATH may be written: -EEXIST with the sentence where it is a file, and not FORCE. */
int record_file_check(const char *path, bool force, struct iocom_err *err);
/* FROM is called PATH from now on; without FORCE only where PATH is not there. */
int record_file_rename(const char *from, const char *path, bool force, struct iocom_err *err);

#endif
