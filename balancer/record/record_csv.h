/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom record --csv KIND` writes readings as rows, one table a run. */
#ifndef IOCOM_RECORD_CSV_H
#define IOCOM_RECORD_CSV_H

#include <signal.h>
#include <stdbool.h>

#include "balancer/record/csv_rows.h"
#include "balancer/top/top_source.h"

struct record_csv_options {
	const struct csv_kind *kind;
	const char *out; /* NULL: iocom-KIND.csv */
	bool force;
	double seconds; /* 0: until stopped */
	struct top_source_options source;
	const volatile sig_atomic_t *stopped;
};

/*
 * Records and prints what went wrong.  Returns the exit code: 0, or 1 (the rows so far are
 * kept).
 */
int record_csv(const struct record_csv_options *options);

#endif
