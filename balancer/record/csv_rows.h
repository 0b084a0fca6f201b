/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Documents of `iocom top --json` as CSV (RFC 4180, lines end in LF): a header, then rows, each
 * with the time and the node.  iocom-csv(5) lists the columns; later versions add columns only
 * at the end of a row.
 */
#ifndef IOCOM_CSV_ROWS_H
#define IOCOM_CSV_ROWS_H

#include <jansson.h>
#include <stddef.h>

struct csv_kind;

#define CSV_KINDS "node, disks, jobs, tasks, programs or maps"

/* Finds one of CSV_KINDS; NULL: there is no such kind. */
const struct csv_kind *csv_kind_find(const char *name);
const char *csv_kind_name(const struct csv_kind *kind);

/* Text that grows; initialise it to zero; the caller frees it. */
struct csv_text {
	char *data;
	size_t used, room;
};

/* These append the header, or the rows of one document.  They return 0 or -ENOMEM. */
int csv_header(const struct csv_kind *kind, struct csv_text *out);
int csv_rows(const struct csv_kind *kind, const json_t *document, struct csv_text *out);

#endif
