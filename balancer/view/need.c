/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a job needs; see need.h. */
#include "balancer/view/need.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "balancer/view/msgpack_map.h"

#define VALUE_MAX 1e12
#define GUESSED	  "guessed" /* in an order: the defaults are guesses */

static const struct {
	const char *name;
	double fallback;
	double most; /* the largest value; 0: VALUE_MAX */
} fields[NEED_FIELDS] = {
	[NEED_IO_PER_S] = {"io_per_s", 0, 0},
	[NEED_IO_SIZE_KB] = {"io_size_kb", 128, 0},
	[NEED_REQUESTS] = {"requests", 0, 0},
	[NEED_MEMORY_MB] = {"memory_mb", 50, 0},
	[NEED_CPU_S] = {"cpu_s", 1, 0},
	[NEED_DATA_MB] = {"data_mb", 0, 0},
	[NEED_FAULTS_PER_MS] = {"faults_per_ms", 1, 0},
	[NEED_COM_MS] = {"com_ms", 0, 0},
	[NEED_IMPLICIT_SHARE] = {"implicit_share", 0, 1},
	[NEED_SHARED_READ_MB] = {"shared_read_mb", 0, 0},
	[NEED_SHARED_WRITTEN_MB] = {"shared_written_mb", 0, 0},
};

static const char *const sources[] = {
	[NEED_DEFAULT] = "default", [NEED_PROFILE] = "profile", [NEED_OPTION] = "option",
	[NEED_GUESS] = "guess",	    [NEED_SET] = "set",
};

const char *need_name(enum need_field field)
{
	return fields[field].name;
}

static double need_most(enum need_field f)
{
	return fields[f].most > 0 ? fields[f].most : VALUE_MAX;
}

bool need_value_valid(enum need_field f, double value)
{
	return value >= 0 && value <= need_most(f);
}

const char *need_source_name(enum need_source source)
{
	return sources[source];
}

void need_set(struct need *n, enum need_field f, double value, enum need_source source)
{
	n->value[f] = value;
	n->source[f] = source;
}

void need_init(struct need *n)
{
	for (enum need_field f = 0; f < NEED_FIELDS; f++)
		need_set(n, f, fields[f].fallback, NEED_DEFAULT);
}

void need_request(const struct need *n, struct rules_request *r)
{
	*r = (struct rules_request){
		.cpu_ms = n->value[NEED_CPU_S] * 1e3,
		.io_per_ms = n->value[NEED_IO_PER_S] / 1e3,
		.request_kb = n->value[NEED_IO_SIZE_KB],
		.memory_mb = n->value[NEED_MEMORY_MB],
		.faults_per_ms = n->value[NEED_FAULTS_PER_MS],
		.initial_mb = n->value[NEED_DATA_MB],
		.requests = n->value[NEED_REQUESTS],
		.implicit_share = n->value[NEED_IMPLICIT_SHARE],
		.tasks = 1,
		.com_ms = n->value[NEED_COM_MS] > 0 ? &n->value[NEED_COM_MS] : NULL,
		.shared = {.read_mb = n->value[NEED_SHARED_READ_MB],
			   .written_mb = n->value[NEED_SHARED_WRITTEN_MB]},
	};
	if (r->cpu_ms <= 0 && r->requests <= 0 && need_is_known(n))
		r->cpu_ms = NEED_LEAST_MS;
}

static bool need_is_told(const struct need *n, enum need_field f)
{
	return n->source[f] == NEED_OPTION || n->source[f] == NEED_PROFILE ||
	       n->source[f] == NEED_SET;
}

double need_declared_per_ms(const struct need *n)
{
	return need_is_told(n, NEED_IO_PER_S) || need_is_told(n, NEED_REQUESTS)
		       ? n->value[NEED_IO_PER_S] / 1e3 * (1 - n->value[NEED_IMPLICIT_SHARE])
		       : 0;
}

bool need_is_known(const struct need *n)
{
	return need_is_told(n, NEED_CPU_S) || need_is_told(n, NEED_REQUESTS) ||
	       need_is_told(n, NEED_IO_PER_S);
}

bool need_is_guess(const struct need *n)
{
	return n->source[NEED_CPU_S] == NEED_GUESS || n->source[NEED_REQUESTS] == NEED_GUESS;
}

double need_declared_mb(const struct need *n)
{
	return need_is_told(n, NEED_MEMORY_MB) ? n->value[NEED_MEMORY_MB] : 0;
}

double need_cpu_share(const struct need *n)
{
	double rate = n->value[NEED_IO_PER_S], cpu_s = n->value[NEED_CPU_S];
	double wall_s = rate > 0 ? n->value[NEED_REQUESTS] / rate : 0;

	if (cpu_s <= 0)
		return 0;
	return wall_s > cpu_s ? cpu_s / wall_s : 1;
}

/* --- in a request ------------------------------------------------------------------ */

void need_options_init(struct need_options *o)
{
	for (enum need_field f = 0; f < NEED_FIELDS; f++)
		o->value[f] = -1;
}

void need_options_pack(const struct need_options *o, msgpack_packer *pk)
{
	size_t given = 0;

	for (enum need_field f = 0; f < NEED_FIELDS; f++)
		given += o->value[f] >= 0;
	msgpack_pack_map(pk, given);
	for (enum need_field f = 0; f < NEED_FIELDS; f++) {
		if (o->value[f] < 0)
			continue;
		map_key(pk, fields[f].name);
		msgpack_pack_double(pk, o->value[f]);
	}
}

/* Returns the number O; NaN: O is no number, or a negative integer. */
static double need_number(const msgpack_object *o)
{
	if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
		return (double)o->via.u64;
	return o->type == MSGPACK_OBJECT_FLOAT32 || o->type == MSGPACK_OBJECT_FLOAT64 ? o->via.f64
										      : NAN;
}

static int need_option_unpack(struct need_options *o, const msgpack_object_kv *kv,
			      struct iocom_err *err)
{
	const msgpack_object_str *key = &kv->key.via.str;
	bool named = kv->key.type == MSGPACK_OBJECT_STR && key->size < 32;
	enum need_field f = 0;
	double value;

	while (f < NEED_FIELDS && !map_is(&kv->key, fields[f].name))
		f++;
	if (f == NEED_FIELDS)
		return iocom_err_set(err, -EINVAL, "unknown requirement '%.*s'",
				     named ? (int)key->size : 0, named ? key->ptr : "");
	if (kv->val.type == MSGPACK_OBJECT_NIL)
		return 0;
	value = need_number(&kv->val);
	if (!need_value_valid(f, value))
		return iocom_err_set(err, -EINVAL, "requirement '%s' is not a number from 0 to %g",
				     fields[f].name, need_most(f));
	o->value[f] = value;
	return 0;
}

int need_options_unpack(struct need_options *o, const msgpack_object *map, struct iocom_err *err)
{
	int rc = 0;

	need_options_init(o);
	if (map->type == MSGPACK_OBJECT_NIL)
		return 0;
	if (map->type != MSGPACK_OBJECT_MAP)
		return iocom_err_set(err, -EINVAL, "\"need\" is not a map");
	for (uint32_t i = 0; i < map->via.map.size && !rc; i++)
		rc = need_option_unpack(o, &map->via.map.ptr[i], err);
	return rc;
}

/* --- in an order ------------------------------------------------------------------- */

void need_pack(const struct need *n, msgpack_packer *pk)
{
	map_key(pk, "need");
	msgpack_pack_map(pk, NEED_FIELDS + 1);
	/* A build that knows no guesses takes them for defaults. */
	map_key(pk, GUESSED);
	if (need_is_guess(n))
		msgpack_pack_true(pk);
	else
		msgpack_pack_false(pk);
	for (enum need_field f = 0; f < NEED_FIELDS; f++) {
		enum need_source source = n->source[f];

		/* An order knows the first three: whether its user said it now or before is all
		 * the same there. */
		if (source == NEED_GUESS)
			source = NEED_DEFAULT;
		else if (source == NEED_SET)
			source = NEED_OPTION;
		map_key(pk, fields[f].name);
		msgpack_pack_array(pk, 2);
		msgpack_pack_double(pk, n->value[f]);
		msgpack_pack_uint8(pk, (uint8_t)source);
	}
}

/* The fields that a guess may fill in. */
static bool need_may_be_guessed(enum need_field f)
{
	return f == NEED_IO_PER_S || f == NEED_IO_SIZE_KB || f == NEED_REQUESTS || f == NEED_CPU_S;
}

int need_unpack(struct need *n, const msgpack_object *message)
{
	const msgpack_object *map = map_find(message, "need"), *guess;
	bool guessed;

	need_init(n); /* an older build does not send all fields */
	if (!map || map->type != MSGPACK_OBJECT_MAP)
		return -EBADMSG;
	guess = map_find(map, GUESSED); /* an older build does not send it */
	guessed = guess && guess->type == MSGPACK_OBJECT_BOOLEAN && guess->via.boolean;
	for (enum need_field f = 0; f < NEED_FIELDS; f++) {
		const msgpack_object *o = map_find(map, fields[f].name), *pair;
		enum need_source source;

		if (!o)
			continue;
		if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != 2)
			return -EBADMSG;
		pair = o->via.array.ptr;
		if (pair[0].type != MSGPACK_OBJECT_FLOAT64 || !isfinite(pair[0].via.f64) ||
		    pair[0].via.f64 < 0 || pair[1].type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
		    pair[1].via.u64 > NEED_OPTION ||
		    (fields[f].most > 0 && pair[0].via.f64 > fields[f].most))
			return -EBADMSG;
		source = (enum need_source)pair[1].via.u64;
		if (guessed && source == NEED_DEFAULT && need_may_be_guessed(f))
			source = NEED_GUESS;
		need_set(n, f, pair[0].via.f64, source);
	}
	return 0;
}

/* --- in an answer ------------------------------------------------------------------ */

json_t *need_json(const struct need *n, uint32_t given)
{
	json_t *out = json_object();

	for (enum need_field f = 0; out && f < NEED_FIELDS; f++) {
		if (!(given & 1u << f))
			continue;
		if (json_object_set_new(out, fields[f].name,
					json_pack("{s:f,s:s}", "value", n->value[f], "source",
						  sources[n->source[f]]))) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

static int need_json_source(const json_t *value, enum need_source *out)
{
	const char *name = json_string_value(value);

	for (enum need_source s = NEED_DEFAULT; name && s <= NEED_SET; s++) {
		if (!strcmp(name, sources[s])) {
			*out = s;
			return 0;
		}
	}
	return -EPROTO;
}

int need_json_read(struct need *n, uint32_t *given, const json_t *object)
{
	need_init(n);
	*given = 0;
	if (!object)
		return 0;
	if (!json_is_object(object))
		return -EPROTO;
	for (enum need_field f = 0; f < NEED_FIELDS; f++) {
		const json_t *field = json_object_get(object, fields[f].name);
		const json_t *value = json_object_get(field, "value");

		if (!field)
			continue;
		if (!json_is_number(value) ||
		    need_json_source(json_object_get(field, "source"), &n->source[f]))
			return -EPROTO;
		n->value[f] = json_number_value(value);
		*given |= 1u << f;
	}
	return 0;
}
