/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Tables and paragraphs for a terminal: columns as wide as what is in them; a table
 * too wide for a screen goes on below, its first column again.
 */
#ifndef SIM_REPORT_TABLE_H
#define SIM_REPORT_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_WIDTH 80 /* of the screen, columns */
#define TABLE_CELL  48 /* longest text in a cell, its end included */

struct table {
	size_t rows, columns;
	char (*cell)[TABLE_CELL]; /* row by row */
};

/* 0, -ENOMEM.  All cells are empty. */
int table_init(struct table *t, size_t rows, size_t columns);
void table_free(struct table *t);
/* A longer text is cut. */
__attribute__((format(printf, 4, 5))) void table_set(struct table *t, size_t row, size_t column,
						     const char *fmt, ...);
/* The first column to the left, the others to the right. */
void table_print(const struct table *t, FILE *f);
/* TEXT in lines that fit, all but the first behind INDENT blanks; AT: where the first begins. */
void table_paragraph(FILE *f, size_t at, size_t indent, const char *text);

#endif
