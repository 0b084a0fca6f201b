/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* MessagePack maps with string keys; see pack.h. */
#include "user/pack.h"

#include <errno.h>
#include <math.h>
#include <string.h>

void pack_begin(msgpack_packer *pk, msgpack_sbuffer *buffer, size_t entries)
{
	msgpack_sbuffer_init(buffer);
	msgpack_packer_init(pk, buffer, msgpack_sbuffer_write);
	msgpack_pack_map(pk, entries);
}

void pack_key(msgpack_packer *pk, const char *key)
{
	size_t n = strlen(key);

	msgpack_pack_str(pk, n);
	msgpack_pack_str_body(pk, key, n);
}

void pack_str(msgpack_packer *pk, const char *key, const char *value)
{
	pack_key(pk, key);
	if (value)
		pack_key(pk, value);
	else
		msgpack_pack_nil(pk);
}

void pack_bin(msgpack_packer *pk, const char *key, const void *data, size_t length)
{
	pack_key(pk, key);
	msgpack_pack_bin(pk, length);
	msgpack_pack_bin_body(pk, data, length);
}

void pack_u64(msgpack_packer *pk, const char *key, uint64_t value)
{
	pack_key(pk, key);
	msgpack_pack_uint64(pk, value);
}

void pack_f64(msgpack_packer *pk, const char *key, double value)
{
	pack_key(pk, key);
	msgpack_pack_double(pk, value);
}

void pack_bool(msgpack_packer *pk, const char *key, bool value)
{
	pack_key(pk, key);
	if (value)
		msgpack_pack_true(pk);
	else
		msgpack_pack_false(pk);
}

/*
 * msgpack-c reserves memory for as many entries as a container claims before it reads one (five
 * bytes can ask for 256 GB), and a value of one byte takes 24 bytes of memory. So we walk over the
 * bytes first: a container may claim no more entries than there are bytes left, and all
 * containers together no more values than the reader has a use for.
 */
struct walk {
	const uint8_t *at, *end;
	uint64_t values;		 /* how many more may be claimed */
	uint64_t claimed;		 /* claimed, and still to come */
	uint64_t left[UNPACK_DEPTH_MAX]; /* values to come in each open container */
	unsigned depth;			 /* open containers */
};

/* Reads a big-endian number of WIDTH bytes. Returns UINT64_MAX if they are missing. */
static uint64_t walk_number(struct walk *w, unsigned width)
{
	uint64_t value = 0;

	if ((size_t)(w->end - w->at) < width)
		return UINT64_MAX;
	while (width--)
		value = value << 8 | *w->at++;
	return value;
}

static int walk_skip(struct walk *w, uint64_t bytes)
{
	if (bytes > (uint64_t)(w->end - w->at))
		return -EBADMSG;
	w->at += bytes;
	return 0;
}

/* Skips a body after its length of WIDTH bytes, and MORE bytes. */
static int walk_body(struct walk *w, unsigned width, unsigned more)
{
	uint64_t n = walk_number(w, width);

	return n == UINT64_MAX ? -EBADMSG : walk_skip(w, n + more);
}

/* Opens a container of N values. */
static int walk_open(struct walk *w, uint64_t n)
{
	/* Each value takes at least one byte, and so do the values claimed before. */
	if (n > (uint64_t)(w->end - w->at) || w->claimed > (uint64_t)(w->end - w->at) - n)
		return -EBADMSG;
	if (n > w->values || w->depth == UNPACK_DEPTH_MAX)
		return -E2BIG;
	w->values -= n;
	w->claimed += n;
	w->left[w->depth++] = n;
	return 0;
}

/*
 * Skips one value's head, and its body unless it is a container, which it opens. Byte values
 * follow the MessagePack specification.
 */
static int walk_value(struct walk *w)
{
	uint8_t b = *w->at++;
	uint64_t n;

	if (b <= 0x7f || b >= 0xe0 || b == 0xc0 || b == 0xc2 || b == 0xc3)
		return 0;
	if (b <= 0x8f)
		return walk_open(w, 2u * (b & 0x0f));
	if (b <= 0x9f)
		return walk_open(w, b & 0x0f);
	if (b <= 0xbf)
		return walk_skip(w, b & 0x1f);
	if (b == 0xc1)
		return -EBADMSG;
	if (b <= 0xc6) /* bin 8, 16, 32 */
		return walk_body(w, 1u << (b - 0xc4), 0);
	if (b <= 0xc9) /* ext 8, 16, 32: one more byte for the type */
		return walk_body(w, 1u << (b - 0xc7), 1);
	if (b <= 0xcb) /* float 32, 64 */
		return walk_skip(w, 4u << (b - 0xca));
	if (b <= 0xcf) /* uint 8 to 64 */
		return walk_skip(w, 1u << (b - 0xcc));
	if (b <= 0xd3) /* int 8 to 64 */
		return walk_skip(w, 1u << (b - 0xd0));
	if (b <= 0xd8) /* fixext 1 to 16 */
		return walk_skip(w, 1u + (1u << (b - 0xd4)));
	if (b <= 0xdb) /* str 8, 16, 32 */
		return walk_body(w, 1u << (b - 0xd9), 0);
	n = walk_number(w, b & 1 ? 4 : 2); /* array 16, 32; map 16, 32 */
	return n == UINT64_MAX ? -EBADMSG : walk_open(w, b >= 0xde ? 2 * n : n);
}

/* Skips values until no more than DEPTH containers are open. */
static int walk_down_to(struct walk *w, unsigned depth)
{
	int rc = 0;

	while (!rc && w->depth > depth) {
		if (!w->left[w->depth - 1]) {
			w->depth--;
			continue;
		}
		if (w->at == w->end)
			return -EBADMSG;
		w->left[w->depth - 1]--;
		w->claimed--;
		rc = walk_value(w);
	}
	return rc;
}

/* Skips one entry of the innermost container, which must have one, with all that is in it. */
static int walk_entry(struct walk *w)
{
	unsigned depth = w->depth;
	int rc;

	if (w->at == w->end)
		return -EBADMSG;
	w->left[depth - 1]--;
	w->claimed--;
	rc = walk_value(w);
	return rc ? rc : walk_down_to(w, depth);
}

/* Begins a walk over DATA, which must be a map; its entries are next. */
static int walk_begin(struct walk *w, const void *data, size_t length, size_t values)
{
	const uint8_t *bytes = data;

	*w = (struct walk){.at = bytes, .end = bytes + length, .values = values};
	if (!length || !((*bytes >= 0x80 && *bytes <= 0x8f) || *bytes >= 0xde) || *bytes >= 0xe0)
		return -EBADMSG;
	if (!values)
		return -E2BIG;
	w->values--; /* the map itself */
	return walk_value(w);
}

int unpack_scan(const void *data, size_t length, size_t values)
{
	struct walk w;
	int rc = walk_begin(&w, data, length, values);

	if (!rc)
		rc = walk_down_to(&w, 0);
	return rc ? rc : w.at == w.end ? 0 : -EBADMSG;
}

/* The text at AT, which a walk has passed over. Returns its length, or -1: it is no text. */
static ssize_t walk_text(const uint8_t *at, const uint8_t *end, const uint8_t **text)
{
	uint8_t b = *at;
	unsigned width = b >= 0xd9 && b <= 0xdb ? 1u << (b - 0xd9) : 0;

	if (!width && (b < 0xa0 || b > 0xbf))
		return -1;
	*text = at + 1 + width;
	return end - *text;
}

int unpack_peek(const void *data, size_t length, size_t values, const char *key, char *out,
		size_t size)
{
	struct walk w;
	int rc = walk_begin(&w, data, length, values);
	const uint8_t *text;

	while (!rc && w.left[0]) {
		const uint8_t *at = w.at, *value;
		bool found;
		ssize_t n;

		rc = walk_entry(&w);
		if (rc)
			break;
		n = walk_text(at, w.at, &text);
		found = n == (ssize_t)strlen(key) && !memcmp(text, key, (size_t)n);
		value = w.at;
		rc = walk_entry(&w);
		if (rc || !found)
			continue;
		n = walk_text(value, w.at, &text);
		if (n < 0 || (size_t)n >= size || memchr(text, 0, (size_t)n))
			return -EBADMSG;
		memcpy(out, text, (size_t)n);
		out[n] = 0;
		return 0;
	}
	return rc ? rc : -ENOENT;
}

int unpack_map_of(msgpack_unpacked *result, const void *data, size_t length, size_t values)
{
	size_t offset = 0;
	int rc = unpack_scan(data, length, values);

	msgpack_unpacked_init(result);
	if (rc)
		return rc;
	if (msgpack_unpack_next(result, data, length, &offset) == MSGPACK_UNPACK_SUCCESS &&
	    offset == length && result->data.type == MSGPACK_OBJECT_MAP)
		return 0;
	msgpack_unpacked_destroy(result);
	msgpack_unpacked_init(result);
	return -EBADMSG;
}

int unpack_map(msgpack_unpacked *result, const void *data, size_t length)
{
	return unpack_map_of(result, data, length, UNPACK_VALUES_MAX);
}

const msgpack_object *unpack_get(const msgpack_object *map, const char *key)
{
	size_t n = strlen(key);

	if (map->type != MSGPACK_OBJECT_MAP)
		return NULL;
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];

		if (kv->key.type == MSGPACK_OBJECT_STR && kv->key.via.str.size == n &&
		    !memcmp(kv->key.via.str.ptr, key, n))
			return &kv->val;
	}
	return NULL;
}

static const msgpack_object *present(const msgpack_object *map, const char *key)
{
	const msgpack_object *o = unpack_get(map, key);

	return o && o->type != MSGPACK_OBJECT_NIL ? o : NULL;
}

int unpack_str(const msgpack_object *map, const char *key, char *out, size_t size)
{
	const msgpack_object *o = present(map, key);
	const char *text;
	size_t n;

	if (!o)
		return -ENOENT;
	if (o->type == MSGPACK_OBJECT_STR) {
		text = o->via.str.ptr;
		n = o->via.str.size;
	} else if (o->type == MSGPACK_OBJECT_BIN) {
		text = o->via.bin.ptr;
		n = o->via.bin.size;
	} else {
		return -EBADMSG;
	}
	if (n >= size || (n && memchr(text, 0, n)))
		return -EBADMSG;
	if (n)
		memcpy(out, text, n);
	out[n] = 0;
	return 0;
}

int unpack_u64(const msgpack_object *map, const char *key, uint64_t *out)
{
	const msgpack_object *o = present(map, key);

	if (!o)
		return -ENOENT;
	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return -EBADMSG;
	*out = o->via.u64;
	return 0;
}

int unpack_f64(const msgpack_object *map, const char *key, double *out)
{
	const msgpack_object *o = present(map, key);
	double value;

	if (!o)
		return -ENOENT;
	switch (o->type) {
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		value = (double)o->via.u64;
		break;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		value = (double)o->via.i64;
		break;
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		value = o->via.f64;
		break;
	default:
		return -EBADMSG;
	}
	if (!isfinite(value))
		return -EBADMSG;
	*out = value;
	return 0;
}

int unpack_bool(const msgpack_object *map, const char *key, bool *out)
{
	const msgpack_object *o = present(map, key);

	if (!o)
		return -ENOENT;
	if (o->type != MSGPACK_OBJECT_BOOLEAN)
		return -EBADMSG;
	*out = o->via.boolean;
	return 0;
}
