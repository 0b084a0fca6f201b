/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The load vector on the wire and in listings; see vector_codec.h. */
#include "balancer/view/vector_codec.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { TEXT, NOTE, ID, U16, U32, U64, REAL, BOOL };

struct field {
	const char *name;
	enum kind kind;
	size_t offset;
	double min, max; /* for numbers; 0, 0: any */
	bool later;	 /* the listings of older agents do not have it */
};

#define F(name, kind)                                                                              \
	{                                                                                          \
#name, kind, offsetof(struct iocom_vector, name), 0, 0, false                      \
	}
#define R(name, kind, min, max)                                                                    \
	{                                                                                          \
#name, kind, offsetof(struct iocom_vector, name), min, max, false                  \
	}
#define LATER(name, min, max)                                                                      \
	{                                                                                          \
#name, REAL, offsetof(struct iocom_vector, name), min, max, true                   \
	}

/* No machine reaches these rates and sizes: above them a vector is garbage. */
#define RATE 1e7
#define SIZE 1e12

static const struct field fields[] = {
	F(name, TEXT),
	F(address, TEXT),
	R(port, U16, 1, 65533),
	F(boot_id, ID),
	F(sequence, U64),
	F(time_ns, U64),
	R(period_ms, U32, 10, 3600000),
	R(cores, U32, 1, 65536),
	R(cpu_speed, REAL, 1e-6, 1e6),
	LATER(cpu_burst, 1e-6, 1e6),
	R(run_queue, REAL, 0, RATE),
	F(tasks, U32),
	F(jobs, U32),
	R(memory_mb, REAL, 0, SIZE),
	R(memory_available_mb, REAL, 0, SIZE),
	R(memory_requested_mb, REAL, 0, SIZE),
	R(explicit_per_ms, REAL, 0, RATE),
	R(implicit_per_ms, REAL, 0, RATE),
	R(explicit_mb_per_s, REAL, 0, RATE),
	R(implicit_mb_per_s, REAL, 0, RATE),
	F(io_tasks, U32),
	F(disks, U32),
	R(disk_arrivals_per_ms, REAL, 0, RATE),
	R(disk_service_ms, REAL, 0, RATE),
	R(disk_service_ms2, REAL, 0, SIZE),
	R(disk_utilisation, REAL, 0, 1),
	R(disk_mb_per_s, REAL, 0, RATE),
	R(disk_fixed_ms, REAL, 0, RATE),
	LATER(disk_parallel, 0, 1e6),
	LATER(cpu_sharers, 0, RATE),
	LATER(disk_sharers, 0, RATE),
	LATER(cpu_left_ms, 0, SIZE),
	LATER(disk_left_ms, 0, SIZE),
	R(sent_mb_per_s, REAL, 0, RATE),
	R(received_mb_per_s, REAL, 0, RATE),
	R(messages_per_s, REAL, 0, 1e9),
	R(network_mb_per_s, REAL, 0, RATE),
	F(bits, U32),
	F(accepts_jobs, BOOL),
	{"owner", NOTE, offsetof(struct iocom_vector, owner), 0, 0, false},
	F(cache_jobs, U32),
	F(cache_refused, U32),
	R(cache_mb, REAL, 0, SIZE),
	F(cache_files, U32),
	F(cache_hits, U32),
	F(cache_misses, U32),
	F(cache_evicted, U32),
	F(slots, U32),
	F(slots_free, U32),
};

#define NFIELDS (sizeof(fields) / sizeof(*fields))
/* What a node does not have, of the last ones, it does not send: bulletins are small. */
#define NFIELDS_SLOTS	  2
#define NFIELDS_CACHE	  7
#define NFIELDS_UNSLOTTED (NFIELDS - NFIELDS_SLOTS)
#define NFIELDS_UNCACHED  (NFIELDS_UNSLOTTED - NFIELDS_CACHE)
/* An agent without rules of owners sends these only. */
#define NFIELDS_LEAST (NFIELDS_UNCACHED - 1)

/* IOCOM_NAME_MAX and IOCOM_ADDRESS_MAX are the same; one bound serves both. */
_Static_assert(IOCOM_NAME_MAX == IOCOM_ADDRESS_MAX, "one bound for the texts");

static bool vector_has_cache(const struct iocom_vector *v)
{
	return v->cache_jobs || v->cache_refused;
}

static size_t vector_fields(const struct iocom_vector *v)
{
	return v->slots ? NFIELDS : vector_has_cache(v) ? NFIELDS_UNSLOTTED : NFIELDS_UNCACHED;
}

/* Returns whether a listing has field I, one of vector_fields. */
static bool vector_listed(const struct iocom_vector *v, size_t i)
{
	if (i >= NFIELDS_UNCACHED && i < NFIELDS_UNSLOTTED)
		return vector_has_cache(v);
	return !fields[i].later || v->cpu_burst > 0;
}

void vector_pack(msgpack_packer *pk, const struct iocom_vector *v)
{
	size_t nfields = vector_fields(v);

	msgpack_pack_array(pk, nfields);
	for (size_t i = 0; i < nfields; i++) {
		const void *p = (const char *)v + fields[i].offset;
		size_t n;

		switch (fields[i].kind) {
		case TEXT:
		case NOTE:
			n = strnlen(p, IOCOM_NAME_MAX - 1);
			msgpack_pack_str(pk, n);
			msgpack_pack_str_body(pk, p, n);
			break;
		case U16:
			msgpack_pack_uint16(pk, *(const uint16_t *)p);
			break;
		case U32:
			msgpack_pack_uint32(pk, *(const uint32_t *)p);
			break;
		case ID:
		case U64:
			msgpack_pack_uint64(pk, *(const uint64_t *)p);
			break;
		case REAL:
			msgpack_pack_float(pk, (float)*(const double *)p);
			break;
		case BOOL:
			*(const bool *)p ? msgpack_pack_true(pk) : msgpack_pack_false(pk);
			break;
		}
	}
}

static bool vector_codec_in_range(const struct field *f, double value)
{
	/* The wire rounds to float, so the bounds allow for rounding. */
	return (f->min == 0 && f->max == 0) ||
	       (value >= f->min * 0.999999 && value <= f->max * 1.000001);
}

void vector_bound(struct iocom_vector *v)
{
	for (size_t i = 0; i < NFIELDS; i++) {
		double *p = (double *)(void *)((char *)v + fields[i].offset);

		if (fields[i].kind == REAL)
			*p = fmin(fmax(*p, fields[i].min), fields[i].max);
	}
}

/* Returns true if these N bytes may be in a name or an address. */
static bool vector_text_good(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c <= ' ' || c >= 0x7f || c == '/' || c == '"')
			return false;
	}
	return n < IOCOM_NAME_MAX;
}

/* Returns true if these N bytes may be a note: a line of printable ASCII. */
static bool vector_note_good(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] >= 0x7f)
			return false;
	return n < IOCOM_NAME_MAX;
}

static int text(const msgpack_object *o, enum kind kind, char *out)
{
	uint32_t n = o->via.str.size;

	if (o->type != MSGPACK_OBJECT_STR || !(kind == NOTE ? vector_note_good(o->via.str.ptr, n)
							    : vector_text_good(o->via.str.ptr, n)))
		return -EBADMSG;
	memcpy(out, o->via.str.ptr, n);
	out[n] = 0;
	return 0;
}

static int vector_codec_whole(const struct field *f, const msgpack_object *o, void *p)
{
	uint64_t value = o->via.u64;
	uint64_t most = f->kind == U16 ? UINT16_MAX : f->kind == U32 ? UINT32_MAX : UINT64_MAX;

	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER || value > most ||
	    !vector_codec_in_range(f, (double)value))
		return -EBADMSG;
	if (f->kind == U16)
		*(uint16_t *)p = (uint16_t)value;
	else if (f->kind == U32)
		*(uint32_t *)p = (uint32_t)value;
	else
		*(uint64_t *)p = value;
	return 0;
}

static int field_unpack(const struct field *f, const msgpack_object *o, void *p)
{
	switch (f->kind) {
	case TEXT:
	case NOTE:
		return text(o, f->kind, p);
	case REAL:
		if ((o->type != MSGPACK_OBJECT_FLOAT32 && o->type != MSGPACK_OBJECT_FLOAT64) ||
		    !isfinite(o->via.f64) || !vector_codec_in_range(f, o->via.f64))
			return -EBADMSG;
		*(double *)p = o->via.f64;
		return 0;
	case BOOL:
		if (o->type != MSGPACK_OBJECT_BOOLEAN)
			return -EBADMSG;
		*(bool *)p = o->via.boolean;
		return 0;
	default:
		return vector_codec_whole(f, o, p);
	}
}

int vector_unpack(const msgpack_object *o, struct iocom_vector *v)
{
	*v = (struct iocom_vector){0};
	if (o->type != MSGPACK_OBJECT_ARRAY ||
	    o->via.array.size < NFIELDS_LEAST) /* a later version adds to the end */
		return -EBADMSG;
	for (size_t i = 0; i < NFIELDS && i < o->via.array.size; i++)
		if (field_unpack(&fields[i], &o->via.array.ptr[i], (char *)v + fields[i].offset))
			return -EBADMSG;
	if (v->disk_utilisation > 1)
		v->disk_utilisation = 1;
	return v->name[0] ? 0 : -EBADMSG;
}

static bool field_is_good(const struct field *f, const char *p)
{
	double value;

	switch (f->kind) {
	case TEXT:
		return vector_text_good(p, strnlen(p, IOCOM_NAME_MAX));
	case NOTE:
		return vector_note_good(p, strnlen(p, IOCOM_NAME_MAX));
	case REAL:
		memcpy(&value, p, sizeof(value));
		return isfinite(value) && vector_codec_in_range(f, value);
	case BOOL:
		return *(const unsigned char *)p <= 1;
	case U16:
		return vector_codec_in_range(f, *(const uint16_t *)(const void *)p);
	case U32:
		return vector_codec_in_range(f, *(const uint32_t *)(const void *)p);
	default:
		return vector_codec_in_range(f, (double)*(const uint64_t *)(const void *)p);
	}
}

bool vector_is_good(const void *v)
{
	struct iocom_vector copy; /* V may not be aligned */

	memcpy(&copy, v, sizeof(copy));
	for (size_t i = 0; i < NFIELDS; i++)
		if (!field_is_good(&fields[i], (const char *)&copy + fields[i].offset))
			return false;
	return copy.name[0] != 0;
}

int vector_json(const struct iocom_vector *v, json_t *object)
{
	size_t nfields = vector_fields(v);
	int bad = 0;

	for (size_t i = 0; i < nfields; i++) {
		const void *p = (const char *)v + fields[i].offset;
		json_t *value = NULL;
		char id[17];

		if (!vector_listed(v, i) || (fields[i].kind == NOTE && !*(const char *)p))
			continue;
		switch (fields[i].kind) {
		case TEXT:
		case NOTE:
			value = json_string(p);
			break;
		case ID:
			snprintf(id, sizeof(id), "%016llx",
				 (unsigned long long)*(const uint64_t *)p);
			value = json_string(id);
			break;
		case U16:
			value = json_integer(*(const uint16_t *)p);
			break;
		case U32:
			value = json_integer(*(const uint32_t *)p);
			break;
		case U64:
			value = json_integer((json_int_t) * (const uint64_t *)p);
			break;
		case REAL:
			value = json_real(*(const double *)p);
			break;
		case BOOL:
			value = json_boolean(*(const bool *)p);
			break;
		}
		bad |= json_object_set_new(object, fields[i].name, value);
	}
	return bad ? -ENOMEM : 0;
}

static int vector_json_text(const json_t *value, char *out)
{
	size_t n = json_string_length(value);

	if (!json_is_string(value) || n >= IOCOM_NAME_MAX || strlen(json_string_value(value)) != n)
		return -EPROTO;
	memcpy(out, json_string_value(value), n + 1);
	return 0;
}

/* Reads 16 hex digits. */
static int vector_json_id(const json_t *value, uint64_t *out)
{
	const char *text = json_string_value(value);

	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return -EPROTO;
	*out = strtoull(text, NULL, 16);
	return 0;
}

static int vector_json_whole(enum kind kind, const json_t *value, void *p)
{
	uint64_t most = kind == U16 ? UINT16_MAX : kind == U32 ? UINT32_MAX : UINT64_MAX;
	uint64_t number = (uint64_t)json_integer_value(value);

	if (!json_is_integer(value) || number > most)
		return -EPROTO;
	if (kind == U16)
		*(uint16_t *)p = (uint16_t)number;
	else if (kind == U32)
		*(uint32_t *)p = (uint32_t)number;
	else
		*(uint64_t *)p = number;
	return 0;
}

static int vector_json_field(enum kind kind, const json_t *value, void *p)
{
	switch (kind) {
	case TEXT:
	case NOTE:
		return vector_json_text(value, p);
	case ID:
		return vector_json_id(value, p);
	case REAL:
		*(double *)p = json_number_value(value);
		return json_is_number(value) ? 0 : -EPROTO;
	case BOOL:
		*(bool *)p = json_is_true(value);
		return json_is_boolean(value) ? 0 : -EPROTO;
	default:
		return vector_json_whole(kind, value, p);
	}
}

int vector_json_read(const json_t *object, struct iocom_vector *v)
{
	*v = (struct iocom_vector){0};
	if (!json_is_object(object))
		return -EPROTO;
	for (size_t i = 0; i < NFIELDS; i++) {
		const json_t *value = json_object_get(object, fields[i].name);

		if (value && vector_json_field(fields[i].kind, value, (char *)v + fields[i].offset))
			return -EPROTO;
	}
	return 0;
}
