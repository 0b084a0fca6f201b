/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Files that appear all together or not at all: they are written into a hidden
 * directory beside their place and renamed at the end.  What is dropped leaves
 * nothing behind, not even a directory that was made for it.
 */
#ifndef SIM_REPORT_OUTPUT_H
#define SIM_REPORT_OUTPUT_H

#include <iocom/err.h>
#include <stdio.h>

struct output;

/* For files in DIRECTORY, which is made if need be.  NULL with ERR set. */
struct output *output_open(const char *directory, struct iocom_err *err);
/* A new file of that name (no slash), to be closed by output_close; NULL with ERR set. */
FILE *output_file(struct output *o, const char *name, struct iocom_err *err);
/* 0, or negative errno with ERR set (disk full ...). */
int output_close(struct output *o, FILE *f, struct iocom_err *err);
/* For programs that write by path: where NAME is being written (valid until the next call);
 * it counts as a file of O from then on.  NULL: no memory. */
const char *output_path(struct output *o, const char *name);
/*
 * Renames all into place and frees O; a file announced by output_path that is not there
 * is removed from its place, too.  Two programs that do so at once do it one after the
 * other.  0, or negative errno with ERR set (O is dropped).
 */
int output_commit(struct output *o, struct iocom_err *err);
/* Whether files can be made in DIRECTORY: 0, or negative errno with ERR set.  Leaves nothing. */
int output_try(const char *directory, struct iocom_err *err);
/* Removes all that was written; frees O.  NULL is fine. */
void output_drop(struct output *o);

#endif
