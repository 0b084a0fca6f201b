/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Between JSON objects and structures, by tables of fields; every error names the
 * file and the path of the field:
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
	FIELD_OPTIONAL, /* double; null stands for a negative one */
	FIELD_SIGNED,	/* int32_t */
	FIELD_COUNT,	/* uint32_t */
	FIELD_LARGE,	/* uint64_t up to 2^63 - 1 */
	FIELD_BOOL,
	FIELD_TEXT,	/* char[size], valid UTF-8 without control characters */
	FIELD_ELSEWHERE /* known here, read by its own function */
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

/* Where a reader is: the file, its text and the path so far. */
struct field_reader {
	const char *file;
	struct iocom_err *err;
	const char *text; /* of the document, for line and column; NULL: not known */
	size_t text_length;
	uint64_t line; /* number of the text's first line; packed: of the document */
	bool packed;   /* MessagePack, which has no lines and columns; set by field_parse */
	char path[400];
	size_t length;
};

/* Goes into member KEY, or element INDEX where KEY is NULL; field_leave takes what this gave. */
size_t field_enter(struct field_reader *r, const char *key, size_t index);
void field_leave(struct field_reader *r, size_t mark);

/* "FILE:LINE:COLUMN: PATH: expected WANTED, found VALUE"; VALUE NULL: nothing.  -EINVAL. */
int field_expected(struct field_reader *r, const char *wanted, const json_t *value);
/* "FILE:LINE:COLUMN: PATH: " and what is wrong.  -EINVAL. */
__attribute__((format(printf, 2, 3))) int field_fail(struct field_reader *r, const char *fmt, ...);

/*
 * Reads every field of TABLE that OBJECT has into BASE, and refuses members that
 * are not in TABLE.  What is left out keeps its value.  0 or -EINVAL.
 */
int field_read(struct field_reader *r, const json_t *object, const struct field *table, size_t n,
	       void *base);
/* One number, not negative. */
int field_number(struct field_reader *r, const json_t *value, double *out);
int field_large(struct field_reader *r, const json_t *value, uint64_t most, uint64_t *out);
/* Adds every field of TABLE to OBJECT.  0 or -ENOMEM. */
int field_write(json_t *object, const struct field *table, size_t n, const void *base);
/* Whether all fields of TABLE are equal in A and B. */
bool field_same(const struct field *table, size_t n, const void *a, const void *b);

/* Sets KEY to VALUE, which is taken over.  0, or -ENOMEM (VALUE NULL too). */
int field_set(json_t *object, const char *key, json_t *value);

/*
 * The document in the reader's text, JSON or MessagePack.  0; -EINVAL with "FILE:LINE:COLUMN: PATH:
 * what is wrong" (syntax, duplicate keys, too deep); -ENOMEM.
 */
int field_parse(struct field_reader *r, json_t **document);

#endif
