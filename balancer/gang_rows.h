/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Lists of jobs in which each gang is one row.  Its parts are jobs of their own for the nodes where
 * they run; a list has them in the row of their gang:
 *
 *   { "job", ..., "tasks": N, "parts": [ { "job", "node", "state", "tasks", ... }, ... ] }
 */
#ifndef IOCOM_GANG_ROWS_H
#define IOCOM_GANG_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Returns the rows of JOBS as a new array, in their order, without those of parts whose gang is
 * there: they go to the gang's "parts", which are in the order of their numbers.  What a gang's own
 * row says of a part comes first.  NULL: no memory.
 */
json_t *gang_rows_fold(const json_t *jobs);
/* True if JOB, a row, is a gang's. */
bool gang_rows_is(const json_t *job);
/* Writes the nodes of JOB, of a gang in short form: "n[1-4]". */
void gang_rows_nodes(const json_t *job, char *out, size_t size);

#endif
