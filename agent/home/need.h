/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a job needs (r.vector, MODEL 4.5): each field from the options given,
 * else from its class's profile, else a stated default, and which it was.
 */
#ifndef IOCOM_NEED_H
#define IOCOM_NEED_H

#include <jansson.h>
#include <msgpack.h>

#include "iocom/err.h"
#include "iocom/rules.h"
#include "balancer/settings/profile.h"

enum need_source { NEED_DEFAULT, NEED_PROFILE, NEED_OPTION };

enum need_field {
	NEED_IO_PER_S, /* disk requests per wall-clock second when alone */
	NEED_IO_SIZE_KB,
	NEED_REQUESTS,
	NEED_MEMORY_MB,
	NEED_CPU_S, /* at reference speed 1 */
	NEED_DATA_MB,
	NEED_FAULTS_PER_MS, /* per ms of computation, where memory does not fit */
	NEED_COM_MS,	    /* communication over all phases (MODEL 5.10) */
	NEED_FIELDS
};

struct need {
	double value[NEED_FIELDS];
	enum need_source source[NEED_FIELDS];
};

/* The name requests and answers use: "io_per_s". */
const char *need_name(enum need_field field);
/*
 * Fills NEED.  OPTIONS: the request's "need" map, or NULL; PROFILE: or NULL.
 * 0, or -EINVAL with the sentence (unknown field, negative, not a number).
 */
int need_resolve(struct need *need, const msgpack_object *options, const struct profile *profile,
		 struct iocom_err *err);
/* The rules' form; it points into NEED. */
void need_request(const struct need *need, struct rules_request *request);
/* Declared alone-rate (disk requests per ms), 0 where it is only a default. */
double need_declared_per_ms(const struct need *need);
/* Declared memory, 0 where it is only a default. */
double need_declared_mb(const struct need *need);
/* The part of one core that the job keeps busy when alone, 0..1. */
double need_cpu_share(const struct need *need);
/* { "io_per_s": { "value", "source" }, ... }; NULL when memory is out. */
json_t *need_json(const struct need *need);
/* For the admission request: key "need", a map of { name: [value, source] }. */
void need_pack(const struct need *need, msgpack_packer *pk);
/* 0 or -EBADMSG. */
int need_unpack(struct need *need, const msgpack_object *message);

#endif
