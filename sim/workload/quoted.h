/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Fields of a CSV line.  Lines without a quote are split at the commas.  In other lines libcsv
 * (strict) removes the quotes, one byte at a time, so that we know the column of each field.
 * A quoted field ends on its line.
 */
#ifndef SIM_WORKLOAD_QUOTED_H
#define SIM_WORKLOAD_QUOTED_H

#include <csv.h>

#include "sim/workload/lines.h"

struct quoted {
	struct csv_parser parser;
	bool started;	/* the parser is initialised */
	char *unquoted; /* text of quoted fields, LINE_MAX_BYTES + 1 bytes */
	size_t used;
	/* used while a line is parsed */
	struct token *fields;
	size_t max, n, column;
};

void quoted_init(struct quoted *q);
void quoted_deinit(struct quoted *q);
/*
 * Splits the line into *N fields, the first MAX in F (valid until the next line).  Returns 0;
 * -EINVAL; -ENOMEM.
 */
int quoted_split(struct quoted *q, const struct lines *l, struct token *f, size_t max, size_t *n,
		 struct iocom_err *err);

#endif
