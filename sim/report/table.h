/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Tables and paragraphs for a terminal.  Columns are as wide as their content.  A table that is
 * too wide for the screen continues below and repeats its first column.
 */
#ifndef SIM_REPORT_TABLE_H
#define SIM_REPORT_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_WIDTH 80 /* columns of the screen */
#define TABLE_CELL  48 /* bytes of the longest text in a cell, with its NUL */

struct table {
	size_t rows, columns;
	char (*cell)[TABLE_CELL]; /* row by row */
};

/* Returns 0, -ENOMEM.  All cells start empty. */
int table_init(struct table *t, size_t rows, size_t columns);
void table_free(struct table *t);
/* Sets a cell; cuts a longer text. */
__attribute__((format(printf, 4, 5))) void table_set(struct table *t, size_t row, size_t column,
						     const char *fmt, ...);
/* Prints the table; the first column is left-aligned, the others right-aligned. */
void table_print(const struct table *t, FILE *f);
/* Prints N bytes of TEXT at most; '?' stands for a control character, as names may hold them. */
void table_text(FILE *f, const char *text, size_t n);
/*
 * Prints TEXT, as table_text() does, in lines that fit.  The first line begins at column AT, the
 * others after INDENT blanks.
 */
void table_paragraph(FILE *f, size_t at, size_t indent, const char *text);

#endif
