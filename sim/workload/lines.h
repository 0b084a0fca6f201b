/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Lines and fields of a trace with their position, strict parsing of numbers, and the common form
 * of all error messages: FILE:LINE:COLUMN: expected WHAT, found "...".
 * Lines and columns (bytes) count from 1.
 */
#ifndef SIM_WORKLOAD_LINES_H
#define SIM_WORKLOAD_LINES_H

#include <iocom/err.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/workload/hash.h"
#include "sim/workload/source.h"

#define LINE_MAX_BYTES 65536

struct lines {
	struct source *source; /* borrowed */
	struct hash *hash;     /* borrowed; hashes every byte read, or NULL */
	char *buffer;
	size_t begin, end; /* unread bytes of the buffer */
	bool ended;
	uint64_t number; /* number of the current line */
	char *text;	 /* the current line, ending with NUL, without its line end */
	size_t length;
};

struct token {
	const char *text; /* not NUL-terminated */
	size_t length;
	size_t column;
};

int lines_init(struct lines *l, struct source *source); /* Returns 0 or -ENOMEM */
void lines_deinit(struct lines *l);
/* Goes back to the start of the source.  Returns 0 or -EIO. */
int lines_rewind(struct lines *l, struct iocom_err *err);
/*
 * Returns 1: the next line is current; 0: the end; -EINVAL (too long, a NUL byte, bad gzip), -EIO.
 */
int lines_next(struct lines *l, struct iocom_err *err);

/* Splits the line at blanks.  Returns the number of fields; F gets the first MAX. */
size_t tokens_blank(const struct lines *l, struct token *f, size_t max);
/* Splits the line at each SEPARATOR and drops blanks around the fields. */
size_t tokens_separated(const struct lines *l, char separator, struct token *f, size_t max);
bool token_is(const struct token *f, const char *text);
/* Parses a finite decimal number that fills the whole field. */
bool token_parse(const struct token *f, double *value);

/* What a column must hold. */
struct wanted {
	const char *name; /* "the arrival time in s" */
	double low, high;
	bool whole;
};
/* Returns 0; -EINVAL with ERR set. */
int token_number(const struct lines *l, const struct token *f, const struct wanted *wanted,
		 double *value, struct iocom_err *err);

/* Report an error and return -EINVAL.  The first takes FOUND as it is, the others shorten it. */
int lines_fail(const struct lines *l, size_t column, const char *found, size_t length,
	       struct iocom_err *err, const char *expected, ...)
	__attribute__((format(printf, 6, 7)));
int token_fail(const struct lines *l, const struct token *f, struct iocom_err *err,
	       const char *expected, ...) __attribute__((format(printf, 4, 5)));
/* Reports that the line has COUNT fields F, which is fewer or more than WANTED. */
int tokens_fail_count(const struct lines *l, const struct token *f, size_t count, size_t wanted,
		      const char *unit, struct iocom_err *err);

#endif
