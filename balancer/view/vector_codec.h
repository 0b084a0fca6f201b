/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The load vector on the wire and in listings, from one table of its fields.  On the wire it is an
 * array in the table's order (the bulletin's version covers the order) with 32-bit floats, about
 * 225 bytes in all.
 */
#ifndef IOCOM_VECTOR_CODEC_H
#define IOCOM_VECTOR_CODEC_H

#include <jansson.h>
#include <msgpack.h>

#include "iocom/vector.h"

/*
 * Clamps our own vector's rates and sizes to the range that other nodes accept: a job with absurd
 * declared needs must not make them refuse it.
 */
void vector_bound(struct iocom_vector *v);
void vector_pack(msgpack_packer *pk, const struct iocom_vector *v);
/* Returns 0; -EBADMSG: not a vector's array, a value out of range, a bad name. */
int vector_unpack(const msgpack_object *o, struct iocom_vector *v);
/*
 * Returns true if the bytes at V, of a whole structure, are a vector such as vector_unpack fills:
 * for one that another process has left in memory.  Call it before anything reads V as one.
 */
bool vector_is_good(const void *v);
/*
 * Adds every field under its own name (boot_id as 16 hex digits), but what is left only if V knows
 * it: see cpu_burst, and nothing of caches that were never used.  Returns 0 or -ENOMEM.
 */
int vector_json(const struct iocom_vector *v, json_t *object);
/* Reads what vector_json wrote; missing fields become 0.  Returns 0 or -EPROTO. */
int vector_json_read(const json_t *object, struct iocom_vector *v);

#endif
