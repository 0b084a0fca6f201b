/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Options, the request and printing that the listing subcommands share. */
#ifndef IOCOM_LISTING_H
#define IOCOM_LISTING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Prints DOCUMENT for --json (indented on a terminal, else on one line).  Returns 0 or 1. */
int listing_print_json(const json_t *document);

/* Flushes standard output.  Returns 0, or 1 after a message if not all could be written. */
int listing_end(void);

/* Says on standard error where the options of COMMAND are listed.  Returns 2, wrong usage. */
int listing_usage(const char *command);

/* A table whose columns are as wide as their widest cell. */
struct listing_column {
	const char *title;
	bool right; /* numbers */
};

struct listing;
struct listing *listing_new(const struct listing_column *columns, size_t ncolumns);
void listing_free(struct listing *l);
/* Adds the next cell, row by row.  listing_print reports a lack of memory. */
__attribute__((format(printf, 2, 3))) void listing_cell(struct listing *l, const char *fmt, ...);
/* Cuts the last column, which is text, at the terminal's width if there is a terminal. */
void listing_cut(struct listing *l);
/*
 * On a terminal too narrow for all columns, those of the COLUMNS, numbers of columns, are left out
 * until the others fit, the first of them first.  The caller keeps COLUMNS, and calls listing_cut.
 */
void listing_spare(struct listing *l, const unsigned char *columns, size_t ncolumns);
/*
 * Makes each row fit into WIDTH: names in the first column are cut in their middle for that, to
 * LISTING_NAME_MIN at least.
 */
void listing_limit(struct listing *l, unsigned width);
#define LISTING_NAME_MIN 9
/* Prints all rows; the last column is not padded.  Returns 0 or -ENOMEM. */
int listing_print(const struct listing *l, FILE *out);

/* Prints TEXT, which may hold any bytes: '?' stands for what is not printable. */
void listing_text(FILE *out, const char *text);

/* These read a field; a missing one is 0 or "". */
double listing_number(const json_t *object, const char *key);
const char *listing_string(const json_t *object, const char *key);

#define LISTING_WIDTH 80 /* what is for people fits into so many columns */
/*
 * Prints TEXT in lines of at most LISTING_WIDTH columns, the second and later ones after INDENT
 * blanks.  A word that is longer has a line of its own.
 */
void listing_wrap(FILE *out, const char *text, unsigned indent);
/* Prints a line, cut at LISTING_WIDTH: "...". */
void listing_line(FILE *out, const char *text);
/* Copies NAME, in WIDTH columns (9 at least): a longer one is cut in its middle. */
void listing_name(char *out, size_t size, const char *name, unsigned width);

/* Formats a quantity for people, without exponents: "0.0015", "3.24", "21190". */
void listing_quantity(char *out, size_t size, double value);
/* The columns of the terminal on standard output; a large number if it is no terminal. */
unsigned listing_width(void);

/* Formats a duration for people: "0.4 s", "3.2 min"; negative or absent: "-". */
void listing_span(char *out, size_t size, double ms);

#endif
