/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * JSON documents in MessagePack: maps with string keys, lists, strings, numbers of up to 64
 * bits, booleans, nil; smaller than JSON text and without digits to parse.  Integers stay
 * integers and reals stay reals, bit for bit.  Files named *.msgpack (or *.msgpack.gz) are
 * written in this form; a reader knows it by its first byte, with which no text begins.
 */
#ifndef IOCOM_JSON_MSGPACK_H
#define IOCOM_JSON_MSGPACK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define JSON_MSGPACK_DEPTH 64

/* Returns whether a file of that name must be written in MessagePack. */
bool json_msgpack_named(const char *path);
/* The suffix of PATH that tells its form: ".msgpack.gz", ".msgpack", ".gz" or "". */
const char *json_msgpack_suffix(const char *path);
/* Returns whether the bytes begin a MessagePack map. */
bool json_msgpack_begins(const char *bytes, size_t length);

/* Returns malloc'ed bytes; NULL: out of memory. */
char *json_msgpack_dump(const json_t *document, size_t *length);
/*
 * Decodes the value at the start of BYTES.  Returns 0 with its length in *USED; -EAGAIN: the
 * value continues beyond LENGTH; -EINVAL: *WRONG says what is wrong at byte *USED (a key that
 * is no string or a duplicate, invalid UTF-8, NaN, an unknown type, too deep); -ENOMEM.
 */
int json_msgpack_load(const char *bytes, size_t length, json_t **document, size_t *used,
		      const char **wrong);

#endif
