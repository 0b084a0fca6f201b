/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the listing subcommands share: options, the request, printing. */
#ifndef IOCOM_LISTING_H
#define IOCOM_LISTING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Prints DOCUMENT for --json (indented on a terminal, one line elsewhere).  0 or 1. */
int listing_print_json(const json_t *document);

/* After the last line on standard output: 0, or 1 when it could not all be written, which it says.
 */
int listing_end(void);

/* A table whose columns are as wide as their widest cell. */
struct listing_column {
	const char *title;
	bool right; /* numbers */
};

struct listing;
struct listing *listing_new(const struct listing_column *columns, size_t ncolumns);
void listing_free(struct listing *l);
/* Adds the next cell, row by row.  Memory failure is remembered, told by listing_print. */
__attribute__((format(printf, 2, 3))) void listing_cell(struct listing *l, const char *fmt, ...);
/* The last column, of text, ends at the terminal's width where standard output is one. */
void listing_cut(struct listing *l);
/* Prints all rows; the last column is not padded.  0, or -ENOMEM. */
int listing_print(const struct listing *l, FILE *out);

/* Field access that forgives absence: 0, "" or false. */
double listing_number(const json_t *object, const char *key);
const char *listing_string(const json_t *object, const char *key);

/* A quantity for people, without exponents: "0.0015", "3.24", "21190". */
void listing_quantity(char *out, size_t size, double value);
/* Columns of the terminal on standard output; a large number where it is none. */
unsigned listing_width(void);

/* A span for people: "0.4 s", "3.2 min"; negative or absent: "-". */
void listing_span(char *out, size_t size, double ms);

#endif
