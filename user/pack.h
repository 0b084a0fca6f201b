/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * MessagePack maps with string keys: the form of every request, credential payload and bulletin.
 * Readers are bounded and never trust a length.
 */
#ifndef IOCOM_PACK_H
#define IOCOM_PACK_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For writing. Starts a map of ENTRIES entries in BUFFER, which it initialises and the caller
 * destroys. */
void pack_begin(msgpack_packer *pk, msgpack_sbuffer *buffer, size_t entries);
void pack_str(msgpack_packer *pk, const char *key, const char *value); /* NULL: nil */
void pack_bin(msgpack_packer *pk, const char *key, const void *data, size_t length);
void pack_u64(msgpack_packer *pk, const char *key, uint64_t value);
void pack_f64(msgpack_packer *pk, const char *key, double value);
void pack_bool(msgpack_packer *pk, const char *key, bool value);
void pack_key(msgpack_packer *pk, const char *key);

/*
 * For reading: what a message may contain at most. Every value counts: the map itself, its keys,
 * and what is in inner containers. The values of a decoded message take 24 bytes each and some
 * 20 ns, so 4 MiB of small numbers would take 100 MB and 70 ms. UNPACK_VALUES_MAX suffices for
 * whatever is a list of named values (requests, orders, records, credentials); a kind of message
 * that holds longer lists has a bound of its own.
 */
#define UNPACK_VALUES_MAX 1024
#define UNPACK_DEPTH_MAX  8 /* containers in containers; our own messages have at most 5 */

/*
 * unpack_map_of decodes DATA into RESULT and accepts only one map that fills LENGTH. Returns 0;
 * -EBADMSG; -E2BIG: more than VALUES values, or nested too deeply. After an error there is
 * nothing to destroy. unpack_map is the same with UNPACK_VALUES_MAX.
 */
int unpack_map_of(msgpack_unpacked *result, const void *data, size_t length, size_t values);
int unpack_map(msgpack_unpacked *result, const void *data, size_t length);
/* Only judges DATA, without memory for it: returns as unpack_map_of. */
int unpack_scan(const void *data, size_t length, size_t values);
/*
 * Copies the string with this KEY in the outermost map and a NUL into OUT, without memory for the
 * rest. Returns 0; -ENOENT: absent; -EBADMSG: no map, no string, a NUL inside, or too long;
 * -E2BIG. It reads only up to the string, so the rest may still be garbage.
 */
int unpack_peek(const void *data, size_t length, size_t values, const char *key, char *out,
		size_t size);
const msgpack_object *unpack_get(const msgpack_object *map, const char *key); /* NULL: absent */
/* Copies a string and a NUL into OUT. Returns 0; -ENOENT: absent or nil; -EBADMSG: neither
 * string nor bytes, a NUL inside, or too long. */
int unpack_str(const msgpack_object *map, const char *key, char *out, size_t size);
int unpack_u64(const msgpack_object *map, const char *key, uint64_t *out);
/* Accepts integers too, but not NaN and infinities (-EBADMSG). */
int unpack_f64(const msgpack_object *map, const char *key, double *out);
int unpack_bool(const msgpack_object *map, const char *key, bool *out);

#endif
