/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A shard's results as a file, for a batch system's job array: JSON lines.
 *
 *   {"iocom_sim_part": 1, "version": "0.1.0", "shard": 2, "shards": 8, "page": false,
 *    "sweeps": [{...}]}              every sweep whole: points, series, settings
 *   {"sweep": 0, "unit": 17, "input": "sha256:...", "values": [...], "samples": [...]}
 *   ...                              one a run; numbers round-trip exactly
 *   {"end": 42}                      so many runs: a part that was cut off lacks it
 *
 * Parts of one sweep that together hold every run give the results that one
 * unsharded run gives, to the byte.
 */
#ifndef SIM_REPORT_PART_H
#define SIM_REPORT_PART_H

#include "sim/report/report.h"

struct parts {
	struct report *reports; /* owned, with their sweeps */
	size_t n;
	bool page; /* `figures`: the page of claims is wanted too */
};

/* 0, -ENOMEM; errors of F are found when it is closed. */
int part_write(FILE *f, const struct report *reports, size_t n, bool page, unsigned int shard,
	       unsigned int shards);
/*
 * Reads and joins.  0; negative errno with ERR set: unreadable, cut off, of another
 * sweep or version, a shard missing or given twice.
 */
int parts_read(struct parts *parts, char *const *paths, size_t npaths, struct iocom_err *err);
void parts_free(struct parts *parts);

#endif
