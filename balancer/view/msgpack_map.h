/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* MessagePack maps with string keys, for the codecs of this room (user/pack.h is above it). */
#ifndef IOCOM_MSGPACK_MAP_H
#define IOCOM_MSGPACK_MAP_H

#include <msgpack.h>
#include <stdbool.h>
#include <string.h>

static inline void map_key(msgpack_packer *pk, const char *key)
{
	size_t n = strlen(key);

	msgpack_pack_str(pk, n);
	msgpack_pack_str_body(pk, key, n);
}

/* Returns whether OBJECT is the string TEXT. */
static inline bool map_is(const msgpack_object *object, const char *text)
{
	size_t n = strlen(text);

	return object->type == MSGPACK_OBJECT_STR && object->via.str.size == n &&
	       !memcmp(object->via.str.ptr, text, n);
}

/* Returns the value of KEY; NULL: it is missing or nil. */
static inline const msgpack_object *map_find(const msgpack_object *map, const char *key)
{
	if (map->type != MSGPACK_OBJECT_MAP)
		return NULL;
	for (uint32_t i = 0; i < map->via.map.size; i++)
		if (map_is(&map->via.map.ptr[i].key, key))
			return map->via.map.ptr[i].val.type == MSGPACK_OBJECT_NIL
				       ? NULL
				       : &map->via.map.ptr[i].val;
	return NULL;
}

#endif
