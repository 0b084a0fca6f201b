/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The results of a shard as a file of JSON lines, for a batch system's job array:
 *
 *   {"iocom_sim_part": 1, "version": "0.1.0", "shard": 2, "shards": 8, "page": false,
 *    "sweeps": [{...}]}              every sweep whole: points, series, settings
 *   {"sweep": 0, "unit": 17, "input": "sha256:...", "values": [...], "samples": [...]}
 *   ...                              one line per run; numbers round-trip exactly
 *   {"end": 42}                      the number of runs; a part that was cut off lacks this line
 *
 * Parts that together hold every run of a sweep give the same bytes as one run without shards.
 */
#ifndef SIM_REPORT_PART_H
#define SIM_REPORT_PART_H

#include "sim/report/report.h"

struct parts {
	struct report *reports; /* owned, with their sweeps */
	size_t n;
	bool page; /* `figures`: write the page of claims too */
};

/* Returns 0, -ENOMEM; closing F reports write errors. */
int part_write(FILE *f, const struct report *reports, size_t n, bool page, unsigned int shard,
	       unsigned int shards);
/*
 * Reads and joins parts.  Returns 0; negative errno with ERR set: a file is unreadable, cut off, or
 * of another sweep or version, or a shard is missing or given twice.
 */
int parts_read(struct parts *parts, char *const *paths, size_t npaths, struct iocom_err *err);
void parts_free(struct parts *parts);

#endif
