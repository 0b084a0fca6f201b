/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The same documents in MessagePack: maps with string keys, lists, strings, numbers of up
 * to 64 bits, booleans, nil; smaller than JSON text and without digits to parse.  Integers
 * stay integers and reals reals, bit for bit.  A file named *.msgpack (or *.msgpack.gz) is
 * written so; a reader knows it by its first byte, which no text begins with.
 */
#ifndef IOCOM_JSON_MSGPACK_H
#define IOCOM_JSON_MSGPACK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define JSON_MSGPACK_DEPTH 64

/* Whether a file of that name is to be written in MessagePack. */
bool json_msgpack_named(const char *path);
/* What of PATH's name tells the form: ".msgpack.gz", ".msgpack", ".gz" or "". */
const char *json_msgpack_suffix(const char *path);
/* Whether the bytes begin a MessagePack map. */
bool json_msgpack_begins(const char *bytes, size_t length);

/* malloc'ed; NULL: no memory. */
char *json_msgpack_dump(const json_t *document, size_t *length);
/*
 * Decodes the value that BYTES begin with.  0, *USED being its length; -EAGAIN: it goes on
 * beyond LENGTH; -EINVAL: *WRONG says what is wrong in byte *USED (a key that is no string
 * or is there twice, text that is no UTF-8, NaN, bytes of no type, too deep); -ENOMEM.
 */
int json_msgpack_load(const char *bytes, size_t length, json_t **document, size_t *used,
		      const char **wrong);

#endif
