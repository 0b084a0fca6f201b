/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * JSON documents in MessagePack; see json_msgpack.h.  We do not read with msgpack-c, because it
 * allocates as many entries as a container claims to have, and five bytes can claim 256 GB.
 */
#include "balancer/view/json_msgpack.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <msgpack.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool json_msgpack_named(const char *path)
{
	return !strncmp(json_msgpack_suffix(path), ".msgpack", 8);
}

const char *json_msgpack_suffix(const char *path)
{
	static const char *const known[] = {".msgpack.gz", ".msgpack", ".gz"};
	size_t n = strlen(path);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t k = strlen(known[i]);

		if (n > k && !strcmp(path + n - k, known[i]))
			return path + n - k;
	}
	return path + n;
}

bool json_msgpack_begins(const char *bytes, size_t length)
{
	uint8_t b = length ? (uint8_t)bytes[0] : 0;

	return (b & 0xf0) == 0x80 || b == 0xde || b == 0xdf;
}

/* --- writing -------------------------------------------------------------------- */

static void pack_text(msgpack_packer *pk, const char *text, size_t n)
{
	msgpack_pack_str(pk, n);
	msgpack_pack_str_body(pk, text, n);
}

/* Packs four bytes if they hold the value exactly. */
static void pack_real(msgpack_packer *pk, double value)
{
	float narrow = fabs(value) <= FLT_MAX ? (float)value : 0;

	if ((double)narrow == value)
		msgpack_pack_float(pk, narrow);
	else
		msgpack_pack_double(pk, value);
}

static void pack(msgpack_packer *pk, const json_t *value)
{
	const char *key;
	json_t *member;
	size_t i;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		msgpack_pack_map(pk, json_object_size(value));
		json_object_foreach ((json_t *)value, key, member) {
			pack_text(pk, key, strlen(key));
			pack(pk, member);
		}
		break;
	case JSON_ARRAY:
		msgpack_pack_array(pk, json_array_size(value));
		json_array_foreach (value, i, member)
			pack(pk, member);
		break;
	case JSON_STRING:
		pack_text(pk, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		msgpack_pack_int64(pk, json_integer_value(value));
		break;
	case JSON_REAL:
		pack_real(pk, json_real_value(value));
		break;
	case JSON_TRUE:
		msgpack_pack_true(pk);
		break;
	case JSON_FALSE:
		msgpack_pack_false(pk);
		break;
	case JSON_NULL:
		msgpack_pack_nil(pk);
		break;
	}
}

struct bytes {
	char *data;
	size_t used, room;
	bool failed;
};

static int add_bytes(void *to, const char *data, size_t n)
{
	struct bytes *b = to;

	if (!b->failed && b->used + n > b->room) {
		size_t room = 2 * (b->used + n) + 256;
		char *grown = realloc(b->data, room);

		if (grown) {
			b->data = grown;
			b->room = room;
		}
		b->failed = !grown;
	}
	if (b->failed)
		return -1;
	memcpy(b->data + b->used, data, n);
	b->used += n;
	return 0;
}

char *json_msgpack_dump(const json_t *document, size_t *length)
{
	struct bytes b = {0};
	msgpack_packer pk;

	if (!document)
		return NULL;
	msgpack_packer_init(&pk, &b, add_bytes);
	pack(&pk, document);
	if (b.failed) {
		free(b.data);
		return NULL;
	}
	*length = b.used;
	return b.data;
}

/* --- reading -------------------------------------------------------------------- */

struct unpacker {
	const uint8_t *start, *at, *end;
	const char *wrong;
	unsigned int depth;
	int code;
};

static void *json_msgpack_stop(struct unpacker *u, int code, const char *wrong)
{
	u->code = code;
	u->wrong = wrong;
	return NULL;
}

/* Reads a big-endian number of WIDTH bytes; false: the bytes are not there yet. */
static bool json_msgpack_number(struct unpacker *u, unsigned int width, uint64_t *value)
{
	if ((size_t)(u->end - u->at) < width)
		return json_msgpack_stop(u, -EAGAIN, NULL) != NULL;
	for (*value = 0; width; width--)
		*value = *value << 8 | *u->at++;
	return true;
}

static json_t *made(struct unpacker *u, json_t *value, const char *wrong)
{
	return value ? value : json_msgpack_stop(u, wrong ? -EINVAL : -ENOMEM, wrong);
}

static json_t *json_msgpack_unpack(struct unpacker *u);

static json_t *unpack_text(struct unpacker *u, uint64_t n)
{
	const char *text = (const char *)u->at;

	if (n > (size_t)(u->end - u->at))
		return json_msgpack_stop(u, -EAGAIN, NULL);
	u->at += n;
	return made(u, json_stringn(text, n), "expected text in UTF-8");
}

static json_t *unpack_list(struct unpacker *u, uint64_t n)
{
	json_t *list = made(u, json_array(), NULL);

	for (; list && n; n--) {
		json_t *value = json_msgpack_unpack(u);

		if (value && !json_array_append_new(list, value))
			continue;
		if (value)
			json_msgpack_stop(u, -ENOMEM, NULL);
		json_decref(list);
		return NULL;
	}
	return list;
}

/* Reads one entry of a map into OBJECT.  Returns false if reading stopped. */
static bool unpack_entry(struct unpacker *u, json_t *object)
{
	json_t *key = json_msgpack_unpack(u), *value = NULL;

	if (key && !json_is_string(key))
		json_msgpack_stop(u, -EINVAL, "expected a string as key");
	else if (key && strlen(json_string_value(key)) != json_string_length(key))
		json_msgpack_stop(u, -EINVAL, "expected a key without NUL");
	else if (key && json_object_get(object, json_string_value(key)))
		json_msgpack_stop(u, -EINVAL, "expected a key that is not there yet");
	else if (key)
		value = json_msgpack_unpack(u);
	if (value && json_object_set_new(object, json_string_value(key), value)) {
		json_msgpack_stop(u, -ENOMEM, NULL);
		value = NULL;
	}
	json_decref(key);
	return value != NULL;
}

static json_t *json_msgpack_unpack_map(struct unpacker *u, uint64_t n)
{
	json_t *object = made(u, json_object(), NULL);

	for (; object && n; n--) {
		if (!unpack_entry(u, object)) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *unpack_real(struct unpacker *u, bool wide, uint64_t bits)
{
	uint32_t narrow = (uint32_t)bits;
	float single;
	double value;

	if (wide) {
		memcpy(&value, &bits, sizeof(value));
	} else {
		memcpy(&single, &narrow, sizeof(single));
		value = (double)single;
	}
	return isfinite(value) ? made(u, json_real(value), NULL)
			       : json_msgpack_stop(u, -EINVAL, "expected a finite number");
}

static json_t *json_msgpack_unpack_whole(struct unpacker *u, uint8_t b, uint64_t bits)
{
	unsigned int width = 8u << (b & 3);

	if (b >= 0xd0) /* extend the sign */
		return made(u, json_integer((int64_t)(bits << (64 - width)) >> (64 - width)), NULL);
	return bits <= INT64_MAX
		       ? made(u, json_integer((int64_t)bits), NULL)
		       : json_msgpack_stop(u, -EINVAL, "expected a whole number up to 2^63 - 1");
}

/* Reads a value whose first byte is 0xc0 or more; widths are from the MessagePack specification. */
static json_t *unpack_wide(struct unpacker *u, uint8_t b)
{
	static const uint8_t width[0x20] = {
		[0x0a] = 4, [0x0b] = 8, [0x0c] = 1, [0x0d] = 2, [0x0e] = 4, [0x0f] = 8,
		[0x10] = 1, [0x11] = 2, [0x12] = 4, [0x13] = 8, [0x19] = 1, [0x1a] = 2,
		[0x1b] = 4, [0x1c] = 2, [0x1d] = 4, [0x1e] = 2, [0x1f] = 4,
	};
	uint64_t bits = 0;

	if (width[b - 0xc0] && !json_msgpack_number(u, width[b - 0xc0], &bits))
		return NULL;
	switch (b) {
	case 0xc0:
		return json_null();
	case 0xc2:
	case 0xc3:
		return json_boolean(b == 0xc3);
	case 0xca:
	case 0xcb:
		return unpack_real(u, b == 0xcb, bits);
	case 0xd9 ... 0xdb:
		return unpack_text(u, bits);
	case 0xdc:
	case 0xdd:
		return unpack_list(u, bits);
	case 0xde:
	case 0xdf:
		return json_msgpack_unpack_map(u, bits);
	default:
		if (!width[b - 0xc0])
			return json_msgpack_stop(u, -EINVAL, "expected a value that JSON has");
		return json_msgpack_unpack_whole(u, b, bits);
	}
}

static json_t *json_msgpack_unpack(struct unpacker *u)
{
	json_t *value;
	uint8_t b;

	if (u->at == u->end)
		return json_msgpack_stop(u, -EAGAIN, NULL);
	if (u->depth == JSON_MSGPACK_DEPTH)
		return json_msgpack_stop(u, -EINVAL, "expected fewer levels");
	u->depth++;
	b = *u->at++;
	if (b <= 0x7f || b >= 0xe0)
		value = made(u, json_integer((int8_t)b), NULL);
	else if (b <= 0x8f)
		value = json_msgpack_unpack_map(u, b & 0x0f);
	else if (b <= 0x9f)
		value = unpack_list(u, b & 0x0f);
	else if (b <= 0xbf)
		value = unpack_text(u, b & 0x1f);
	else
		value = unpack_wide(u, b);
	u->depth--;
	return value;
}

int json_msgpack_load(const char *bytes, size_t length, json_t **document, size_t *used,
		      const char **wrong)
{
	struct unpacker u = {.start = (const uint8_t *)bytes, .at = (const uint8_t *)bytes};

	u.end = u.start + length;
	*document = json_msgpack_unpack(&u);
	*used = (size_t)(u.at - u.start);
	*wrong = u.wrong;
	return *document ? 0 : u.code;
}
