/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Converts between JSON objects and structures by tables of fields; every error names
 * the file and the path of the field:
 *
 *   view.json:9:31: nodes[2].tasks[0].io_per_ms: expected a number that is not
 *   negative, found -1
 */
#ifndef IOCOM_JSON_FIELD_H
#define IOCOM_JSON_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"

enum field_kind {
	FIELD_NUMBER,	/* double, finite, not negative */
	FIELD_POSITIVE, /* double, above 0 */
	FIELD_OPTIONAL, /* double; null means unknown, stored as a negative number */
	FIELD_SIGNED,	/* int32_t */
	FIELD_COUNT,	/* uint32_t */
	FIELD_LARGE,	/* uint64_t up to 2^63 - 1 */
	FIELD_BOOL,
	FIELD_TEXT,	/* char[size], valid UTF-8 without control characters */
	FIELD_ELSEWHERE /* known to the table, but its own function reads it */
};

struct field {
	const char *name;
	enum field_kind kind;
	size_t offset, size;
};

#define FIELD_OF(kind, type, member)                                                               \
	{                                                                                          \
#member, kind, offsetof(struct type, member), sizeof(((struct type *)0)->member)   \
	}
#define FIELD_COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

/* The position of a reader: the file, its text and the path so far. */
struct field_reader {
	const char *file;
	struct iocom_err *err;
	const char *text; /* the text of the document, to find line and column; NULL: unknown */
	size_t text_length;
	uint64_t line; /* number of the text's first line; if packed, of the document */
	bool packed;   /* MessagePack, which has no lines or columns; set by field_parse */
	char path[400];
	size_t length;
};

/* Enters member KEY, or element INDEX if KEY is NULL; pass the result to field_leave. */
size_t field_enter(struct field_reader *r, const char *key, size_t index);
void field_leave(struct field_reader *r, size_t mark);

/*
 * Sets "FILE:LINE:COLUMN: PATH: expected WANTED, found VALUE"; VALUE NULL: nothing.  Returns
 * -EINVAL.
 */
int field_expected(struct field_reader *r, const char *wanted, const json_t *value);
/* Sets "FILE:LINE:COLUMN: PATH: " and what is wrong.  Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int field_fail(struct field_reader *r, const char *fmt, ...);

/*
 * Reads every field of TABLE that OBJECT has into BASE, and refuses members that are not in
 * TABLE.  Missing fields keep their value.  Returns 0 or -EINVAL.
 */
int field_read(struct field_reader *r, const json_t *object, const struct field *table, size_t n,
	       void *base);
/* Reads one number that is not negative. */
int field_number(struct field_reader *r, const json_t *value, double *out);
int field_large(struct field_reader *r, const json_t *value, uint64_t most, uint64_t *out);
/* Adds every field of TABLE to OBJECT.  Returns 0 or -ENOMEM. */
int field_write(json_t *object, const struct field *table, size_t n, const void *base);
/* Returns whether all fields of TABLE are equal in A and B. */
bool field_same(const struct field *table, size_t n, const void *a, const void *b);

/* Sets KEY to VALUE, which it takes.  Returns 0, or -ENOMEM (also if VALUE is NULL). */
int field_set(json_t *object, const char *key, json_t *value);

/*
 * Parses the reader's text, JSON or MessagePack, into a document.  Returns 0; -EINVAL with
 * "FILE:LINE:COLUMN: PATH: what is wrong" (syntax, duplicate keys, too deep); -ENOMEM.
 */
int field_parse(struct field_reader *r, json_t **document);

#endif
