/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which rows are wanted, and in what order; internal to the model of `iocom top`. */
#ifndef IOCOM_TOP_ROWS_H
#define IOCOM_TOP_ROWS_H

#include "balancer/top/top_model.h"

/* Filters by user, activity and text.  TASKS are the document's; they tell whose a job is. */
bool top_row_wanted(const struct top_row *row, const json_t *tasks,
		    const struct top_model_options *options);
/*
 * Folds ended tasks of one name, user and job into one row with their sum.  Returns how many
 * rows are left; their order is lost.
 */
size_t top_rows_fold(struct top_row *rows, size_t n, const struct top_model_options *options);
/* A comparison for qsort_r; ARG is a struct top_model_options. */
int top_row_order(const void *a, const void *b, void *arg);
/*
 * Orders N rows as a tree: siblings are sorted by the sum of themselves and all rows below.
 * Drops rows that are only context (`context`) and have no wanted row below them.  Returns 0 or
 * -ENOMEM.
 */
int top_tree_arrange(struct top_row *rows, size_t *n, const struct top_model_options *options);

#endif
