/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a job needs; see need.h. */
#include "agent/home/need.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "user/pack.h"

#define VALUE_MAX 1e12

static const struct {
	const char *name;
	double fallback;
} fields[NEED_FIELDS] = {
	[NEED_IO_PER_S] = {"io_per_s", 0},
	[NEED_IO_SIZE_KB] = {"io_size_kb", 128},
	[NEED_REQUESTS] = {"requests", 0},
	[NEED_MEMORY_MB] = {"memory_mb", 50},
	[NEED_CPU_S] = {"cpu_s", 1},
	[NEED_DATA_MB] = {"data_mb", 0},
	[NEED_FAULTS_PER_MS] = {"faults_per_ms", 1},
	[NEED_COM_MS] = {"com_ms", 0},
};

static const char *const sources[] = {"default", "profile", "option"};

const char *need_name(enum need_field field)
{
	return fields[field].name;
}

static void need_set(struct need *n, enum need_field f, double value, enum need_source source)
{
	n->value[f] = value;
	n->source[f] = source;
}

static void from_profile(struct need *n, const struct profile *p)
{
	need_set(n, NEED_IO_PER_S, p->io_per_ms * 1e3, NEED_PROFILE);
	need_set(n, NEED_REQUESTS, p->requests, NEED_PROFILE);
	need_set(n, NEED_MEMORY_MB, p->memory_mb, NEED_PROFILE);
	need_set(n, NEED_CPU_S, p->cpu_ms / 1e3, NEED_PROFILE);
	need_set(n, NEED_COM_MS, p->com_ms, NEED_PROFILE);
	if (p->request_kb > 0)
		need_set(n, NEED_IO_SIZE_KB, p->request_kb, NEED_PROFILE);
	/* A class that never paged says nothing of what it would do where memory is short. */
	if (p->faults_per_ms > 0)
		need_set(n, NEED_FAULTS_PER_MS, p->faults_per_ms, NEED_PROFILE);
}

static int from_options(struct need *n, const msgpack_object *map, struct iocom_err *err)
{
	if (map->type != MSGPACK_OBJECT_MAP)
		return iocom_err_set(err, -EINVAL, "\"need\" is not a map");
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object *k = &map->via.map.ptr[i].key;
		enum need_field f = 0;
		char name[32] = "";
		double value;

		if (k->type == MSGPACK_OBJECT_STR && k->via.str.size < sizeof(name))
			memcpy(name, k->via.str.ptr, k->via.str.size);
		while (f < NEED_FIELDS && strcmp(name, fields[f].name))
			f++;
		if (f == NEED_FIELDS)
			return iocom_err_set(err, -EINVAL, "unknown requirement '%s'", name);
		if (map->via.map.ptr[i].val.type == MSGPACK_OBJECT_NIL)
			continue;
		if (unpack_f64(map, name, &value) || value < 0 || value > VALUE_MAX)
			return iocom_err_set(err, -EINVAL,
					     "requirement '%s' is not a number from 0 to %g", name,
					     VALUE_MAX);
		need_set(n, f, value, NEED_OPTION);
	}
	return 0;
}

int need_resolve(struct need *n, const msgpack_object *options, const struct profile *profile,
		 struct iocom_err *err)
{
	double cpu_s;

	for (enum need_field f = 0; f < NEED_FIELDS; f++)
		need_set(n, f, fields[f].fallback, NEED_DEFAULT);
	if (profile)
		from_profile(n, profile);
	if (options && options->type != MSGPACK_OBJECT_NIL) {
		int rc = from_options(n, options, err);

		if (rc)
			return rc;
	}
	/* Rate and number follow from each other where an option gives only one. */
	cpu_s = n->value[NEED_CPU_S];
	if (n->source[NEED_IO_PER_S] > n->source[NEED_REQUESTS] &&
	    n->source[NEED_REQUESTS] == NEED_DEFAULT)
		n->value[NEED_REQUESTS] = n->value[NEED_IO_PER_S] * cpu_s;
	if (n->source[NEED_REQUESTS] > n->source[NEED_IO_PER_S] &&
	    n->source[NEED_IO_PER_S] == NEED_DEFAULT && cpu_s > 0)
		n->value[NEED_IO_PER_S] = n->value[NEED_REQUESTS] / cpu_s;
	return 0;
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
		.tasks = 1,
		.com_ms = n->value[NEED_COM_MS] > 0 ? &n->value[NEED_COM_MS] : NULL,
	};
}

double need_declared_per_ms(const struct need *n)
{
	return n->source[NEED_IO_PER_S] == NEED_DEFAULT && n->source[NEED_REQUESTS] == NEED_DEFAULT
		       ? 0
		       : n->value[NEED_IO_PER_S] / 1e3;
}

double need_declared_mb(const struct need *n)
{
	return n->source[NEED_MEMORY_MB] == NEED_DEFAULT ? 0 : n->value[NEED_MEMORY_MB];
}

double need_cpu_share(const struct need *n)
{
	double rate = n->value[NEED_IO_PER_S], cpu_s = n->value[NEED_CPU_S];
	double wall_s = rate > 0 ? n->value[NEED_REQUESTS] / rate : 0;

	if (cpu_s <= 0)
		return 0;
	return wall_s > cpu_s ? cpu_s / wall_s : 1;
}

json_t *need_json(const struct need *n)
{
	json_t *out = json_object();

	for (enum need_field f = 0; out && f < NEED_FIELDS; f++)
		json_object_set_new(out, fields[f].name,
				    json_pack("{s:f,s:s}", "value", n->value[f], "source",
					      sources[n->source[f]]));
	return out;
}

void need_pack(const struct need *n, msgpack_packer *pk)
{
	pack_key(pk, "need");
	msgpack_pack_map(pk, NEED_FIELDS);
	for (enum need_field f = 0; f < NEED_FIELDS; f++) {
		pack_key(pk, fields[f].name);
		msgpack_pack_array(pk, 2);
		msgpack_pack_double(pk, n->value[f]);
		msgpack_pack_uint8(pk, (uint8_t)n->source[f]);
	}
}

int need_unpack(struct need *n, const msgpack_object *message)
{
	const msgpack_object *map = unpack_get(message, "need");

	*n = (struct need){0};
	if (!map || map->type != MSGPACK_OBJECT_MAP)
		return -EBADMSG;
	for (enum need_field f = 0; f < NEED_FIELDS; f++) {
		const msgpack_object *o = unpack_get(map, fields[f].name), *pair;

		if (!o) { /* of a build that did not know it */
			need_set(n, f, fields[f].fallback, NEED_DEFAULT);
			continue;
		}
		if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != 2)
			return -EBADMSG;
		pair = o->via.array.ptr;
		if (pair[0].type != MSGPACK_OBJECT_FLOAT64 || !isfinite(pair[0].via.f64) ||
		    pair[0].via.f64 < 0 || pair[1].type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
		    pair[1].via.u64 > NEED_OPTION)
			return -EBADMSG;
		need_set(n, f, pair[0].via.f64, (enum need_source)pair[1].via.u64);
	}
	return 0;
}
