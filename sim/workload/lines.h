/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Lines and fields of a trace with their place, numbers read strictly, and the one
 * form of every complaint: FILE:LINE:COLUMN: expected WHAT, found "...".
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
	struct hash *hash;     /* borrowed; takes every byte read, or NULL */
	char *buffer;
	size_t begin, end; /* unread bytes of the buffer */
	bool ended;
	uint64_t number; /* of the line at hand */
	char *text;	 /* of it, NUL at its end, no line end */
	size_t length;
};

struct token {
	const char *text; /* not NUL-terminated */
	size_t length;
	size_t column;
};

int lines_init(struct lines *l, struct source *source); /* 0 or -ENOMEM */
void lines_deinit(struct lines *l);
/* To the start of the source.  0 or -EIO. */
int lines_rewind(struct lines *l, struct iocom_err *err);
/* 1: the next line is at hand; 0: the end; -EINVAL (too long, a NUL byte, bad gzip), -EIO. */
int lines_next(struct lines *l, struct iocom_err *err);

/* Fields between blanks: how many the line has; the first MAX are in F. */
size_t tokens_blank(const struct lines *l, struct token *f, size_t max);
/* Fields between single separators, blanks around them dropped. */
size_t tokens_separated(const struct lines *l, char separator, struct token *f, size_t max);
bool token_is(const struct token *f, const char *text);
/* A decimal number, nothing else before or behind it, finite. */
bool token_parse(const struct token *f, double *value);

/* What a column must hold. */
struct wanted {
	const char *name; /* "the arrival time in s" */
	double low, high;
	bool whole;
};
/* 0; -EINVAL with ERR set. */
int token_number(const struct lines *l, const struct token *f, const struct wanted *wanted,
		 double *value, struct iocom_err *err);

/* Complains; returns -EINVAL.  The first takes FOUND as it is, the others show it clipped. */
int lines_fail(const struct lines *l, size_t column, const char *found, size_t length,
	       struct iocom_err *err, const char *expected, ...)
	__attribute__((format(printf, 6, 7)));
int token_fail(const struct lines *l, const struct token *f, struct iocom_err *err,
	       const char *expected, ...) __attribute__((format(printf, 4, 5)));
/* The line ends after COUNT fields F where more are wanted, or goes on behind WANTED. */
int tokens_fail_count(const struct lines *l, const struct token *f, size_t count, size_t wanted,
		      const char *unit, struct iocom_err *err);

#endif
