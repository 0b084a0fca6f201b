/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The request for a placement, packed and unpacked by its table; see placement.h. */
#include "balancer/view/placement_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/msgpack_map.h"

#define REQUEST_VERSION 1
#define OTHERS		3 /* entries outside the table: op, v, need */

#define ROW(kind, member, key, bound, answer)                                                      \
	{key, PLACEMENT_##kind, PLACEMENT_##answer, offsetof(struct placement_ask, member), bound},

const struct placement_field placement_ask_fields[] = {PLACEMENT_ASK(ROW)};

_Static_assert(sizeof(placement_ask_fields) / sizeof(*placement_ask_fields) == PLACEMENT_ASK_COUNT,
	       "one row for each field");

void placement_ask_init(struct placement_ask *ask)
{
	memset(ask, 0, sizeof(*ask));
	for (size_t i = 0; i < PLACEMENT_ASK_COUNT; i++)
		if (placement_ask_fields[i].kind == PLACEMENT_COUNT)
			*(int64_t *)placement_ask_at(ask, &placement_ask_fields[i]) = -1;
	need_options_init(&ask->need);
}

bool placement_given(const struct placement_ask *ask, const struct placement_field *f)
{
	const void *at = (const char *)ask + f->offset;

	if (f->kind == PLACEMENT_COUNT)
		return *(const int64_t *)at >= 0;
	return f->kind == PLACEMENT_FLAG ? *(const bool *)at : *(const char *)at != 0;
}

static void placement_pack_field(const struct placement_ask *ask, const struct placement_field *f,
				 msgpack_packer *pk)
{
	const void *at = (const char *)ask + f->offset;
	size_t n;

	map_key(pk, f->key);
	switch (f->kind) {
	case PLACEMENT_TEXT:
	case PLACEMENT_NAME:
	case PLACEMENT_LINE:
		map_key(pk, at);
		break;
	case PLACEMENT_BYTES:
		n = strlen(at);
		msgpack_pack_bin(pk, n);
		msgpack_pack_bin_body(pk, at, n);
		break;
	case PLACEMENT_COUNT:
		msgpack_pack_int64(pk, *(const int64_t *)at);
		break;
	case PLACEMENT_FLAG:
		*(const bool *)at ? msgpack_pack_true(pk) : msgpack_pack_false(pk);
		break;
	}
}

void placement_ask_pack(const struct placement_ask *ask, msgpack_sbuffer *out)
{
	size_t given = 0;
	msgpack_packer pk;

	for (size_t i = 0; i < PLACEMENT_ASK_COUNT; i++)
		given += placement_given(ask, &placement_ask_fields[i]);
	msgpack_sbuffer_init(out);
	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, given + OTHERS + (ask->spec ? 1 : 0));
	map_key(&pk, "op");
	map_key(&pk, "place");
	map_key(&pk, "v");
	msgpack_pack_uint8(&pk, REQUEST_VERSION);
	for (size_t i = 0; i < PLACEMENT_ASK_COUNT; i++)
		if (placement_given(ask, &placement_ask_fields[i]))
			placement_pack_field(ask, &placement_ask_fields[i], &pk);
	map_key(&pk, "need");
	need_options_pack(&ask->need, &pk);
	if (!ask->spec)
		return;
	map_key(&pk, "spec");
	msgpack_pack_bin(&pk, ask->spec_length);
	msgpack_pack_bin_body(&pk, ask->spec, ask->spec_length);
}

/* --- reading ------------------------------------------------------------------------ */

bool placement_line_valid(const char *text)
{
	json_t *copy = json_string(text); /* refuses text that is not UTF-8 */
	bool valid = copy != NULL;

	json_decref(copy);
	for (const unsigned char *c = (const unsigned char *)text; valid && *c; c++)
		valid = *c >= 0x20 && *c != 0x7f && !(c[0] == 0xc2 && c[1] < 0xa0); /* C1 */
	return valid;
}

static int placement_take_text(const struct placement_field *f, const msgpack_object *value,
			       char *out)
{
	bool bytes = value->type == MSGPACK_OBJECT_BIN;
	const char *text = bytes ? value->via.bin.ptr : value->via.str.ptr;
	size_t n = bytes ? value->via.bin.size : value->via.str.size;

	if ((!bytes && value->type != MSGPACK_OBJECT_STR) || n >= f->bound ||
	    (n && memchr(text, 0, n)) || (!n && f->kind == PLACEMENT_NAME))
		return -EINVAL;
	if (n)
		memcpy(out, text, n);
	out[n] = 0;
	return f->kind != PLACEMENT_LINE || placement_line_valid(out) ? 0 : -EINVAL;
}

static int placement_take_value(const struct placement_field *f, const msgpack_object *value,
				void *at)
{
	switch (f->kind) {
	case PLACEMENT_COUNT:
		if (value->type != MSGPACK_OBJECT_POSITIVE_INTEGER || value->via.u64 > f->bound)
			return -EINVAL;
		*(int64_t *)at = (int64_t)value->via.u64;
		return 0;
	case PLACEMENT_FLAG:
		*(bool *)at = value->type == MSGPACK_OBJECT_BOOLEAN && value->via.boolean;
		return value->type == MSGPACK_OBJECT_BOOLEAN ? 0 : -EINVAL;
	default:
		return placement_take_text(f, value, at);
	}
}

static int placement_no_value(const struct placement_field *f, struct iocom_err *err)
{
	switch (f->kind) {
	case PLACEMENT_COUNT:
		return iocom_err_set(err, -EINVAL, "\"%s\" is not a number from 0 to %zu", f->key,
				     f->bound);
	case PLACEMENT_FLAG:
		return iocom_err_set(err, -EINVAL, "\"%s\" is neither true nor false", f->key);
	case PLACEMENT_LINE:
		return iocom_err_set(err, -EINVAL, "\"%s\" is not a line of at most %zu bytes",
				     f->key, f->bound - 1);
	case PLACEMENT_NAME:
		return iocom_err_set(err, -EINVAL, "\"%s\" is not a name of 1 to %zu bytes", f->key,
				     f->bound - 1);
	default:
		return iocom_err_set(err, -EINVAL, "\"%s\" is not a text of at most %zu bytes",
				     f->key, f->bound - 1);
	}
}

static int placement_take_spec(struct placement_ask *ask, const msgpack_object *value,
			       struct iocom_err *err)
{
	if (value->type != MSGPACK_OBJECT_BIN || !value->via.bin.size ||
	    value->via.bin.size > PLACEMENT_SPEC_MAX)
		return iocom_err_set(err, -EINVAL, "\"spec\" is not a job's spec of 1 to %u bytes",
				     PLACEMENT_SPEC_MAX);
	/* The agent keeps the first for the start, so a second would not be what begins. */
	if (ask->spec)
		return iocom_err_set(err, -EINVAL, "\"spec\" is given twice");
	ask->spec = value->via.bin.ptr;
	ask->spec_length = value->via.bin.size;
	return 0;
}

static int placement_take_entry(struct placement_ask *ask, const msgpack_object_kv *kv,
				struct iocom_err *err)
{
	if (map_is(&kv->key, "need"))
		return need_options_unpack(&ask->need, &kv->val, err);
	if (map_is(&kv->key, "spec"))
		return placement_take_spec(ask, &kv->val, err);
	if (kv->val.type == MSGPACK_OBJECT_NIL)
		return 0;
	for (size_t i = 0; i < PLACEMENT_ASK_COUNT; i++) {
		const struct placement_field *f = &placement_ask_fields[i];

		if (map_is(&kv->key, f->key))
			return placement_take_value(f, &kv->val, placement_ask_at(ask, f))
				       ? placement_no_value(f, err)
				       : 0;
	}
	return 0;
}

int placement_ask_unpack(struct placement_ask *ask, const msgpack_object *map,
			 struct iocom_err *err)
{
	int rc = 0;

	placement_ask_init(ask);
	if (map->type != MSGPACK_OBJECT_MAP)
		return iocom_err_set(err, -EINVAL, "the request is not a map");
	for (uint32_t i = 0; i < map->via.map.size && !rc; i++)
		rc = placement_take_entry(ask, &map->via.map.ptr[i], err);
	return rc;
}

bool placement_held_next(const char **text, char node[IOCOM_NAME_MAX], double *mb)
{
	const char *at = *text, *equals = strchr(at, '=');
	unsigned long long bytes;
	char *end;

	if (!equals || equals == at || equals - at >= IOCOM_NAME_MAX || equals[1] < '0' ||
	    equals[1] > '9')
		return false;
	errno = 0;
	bytes = strtoull(equals + 1, &end, 10);
	if (errno || bytes > PLACEMENT_BYTES_MAX || (*end && *end != ','))
		return false;
	memcpy(node, at, (size_t)(equals - at));
	node[equals - at] = 0;
	*mb = (double)bytes / 1e6;
	*text = end + (*end == ',');
	return true;
}
