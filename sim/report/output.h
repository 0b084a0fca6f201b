/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Files that appear all together or not at all: they are written into a hidden directory beside
 * their place and renamed at the end.  Dropped outputs leave nothing behind, not even a directory
 * that was made for them.
 */
#ifndef SIM_REPORT_OUTPUT_H
#define SIM_REPORT_OUTPUT_H

#include <iocom/err.h>
#include <stdbool.h>
#include <stdio.h>

struct output;

/*
 * Opens outputs in DIRECTORY, which it makes if necessary; FORCE: they replace files that are there
 * already, which else are refused.  NULL with ERR set.
 */
struct output *output_open(const char *directory, bool force, struct iocom_err *err);
/*
 * Makes a new file NAME (no slash) for the caller to close with output_close.  NULL with
 * ERR set.
 */
FILE *output_file(struct output *o, const char *name, struct iocom_err *err);
/* Closes F.  Returns 0, or negative errno with ERR set (such as a full disk). */
int output_close(struct output *o, FILE *f, struct iocom_err *err);
/*
 * For programs that write by path: returns where to write NAME (valid until the next call). NAME
 * then counts as a file of O.  Returns NULL if there is no memory.
 */
const char *output_path(struct output *o, const char *name);
/*
 * Renames all files into place and frees O.  If a file announced by output_path was not written, an
 * older one in its place is removed.  Two programs that commit at the same time do so one after the
 * other.  Returns 0, or negative errno with ERR set (O is dropped).
 */
int output_commit(struct output *o, struct iocom_err *err);
/*
 * Tests whether files can be made in DIRECTORY: 0, or negative errno with ERR set.
 * Leaves nothing behind.
 */
int output_try(const char *directory, struct iocom_err *err);
/* Tests whether NAME may be written in DIRECTORY: 0, or -EEXIST with ERR set. */
int output_may_write(const char *directory, const char *name, bool force, struct iocom_err *err);
/* Removes all files written so far and frees O, which may be NULL. */
void output_drop(struct output *o);

#endif
