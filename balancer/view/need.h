/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a job needs (r.vector, MODEL 4.5): each field, and whether an option gave it, its
 * class's profile, or nothing but a default.  Its three forms:
 *
 *   of a request   the options given only: { "io_per_s": value, ... }
 *   of an order    { "io_per_s": [value, source], ... }      (home to target, MessagePack)
 *   of an answer   { "io_per_s": { "value", "source" }, ... }  (JSON)
 */
#ifndef IOCOM_NEED_H
#define IOCOM_NEED_H

#include <jansson.h>
#include <msgpack.h>

#include "iocom/err.h"
#include "iocom/rules.h"

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

/* What the user's options say; below 0: not given. */
struct need_options {
	double value[NEED_FIELDS];
};

/* The name requests and answers use: "io_per_s". */
const char *need_name(enum need_field field);
/* "default", "profile", "option". */
const char *need_source_name(enum need_source source);
/* Every field its default. */
void need_init(struct need *need);
void need_set(struct need *need, enum need_field field, double value, enum need_source source);
/* The rules' form; it points into NEED. */
void need_request(const struct need *need, struct rules_request *request);
/* Declared alone-rate (disk requests per ms), 0 where it is only a default. */
double need_declared_per_ms(const struct need *need);
/* Declared memory, 0 where it is only a default. */
double need_declared_mb(const struct need *need);
/* The part of one core that the job keeps busy when alone, 0..1. */
double need_cpu_share(const struct need *need);

void need_options_init(struct need_options *options); /* none is given */
/* The map alone. */
void need_options_pack(const struct need_options *options, msgpack_packer *pk);
/* 0, or -EINVAL with the sentence (unknown field, negative, not a number). */
int need_options_unpack(struct need_options *options, const msgpack_object *map,
			struct iocom_err *err);

/* Key "need" and the map of an order. */
void need_pack(const struct need *need, msgpack_packer *pk);
/* From the order MESSAGE.  0 or -EBADMSG. */
int need_unpack(struct need *need, const msgpack_object *message);

/* The fields of GIVEN (bits by enum need_field).  NULL: no memory. */
json_t *need_json(const struct need *need, uint32_t given);
#define NEED_ALL ((1u << NEED_FIELDS) - 1)
/* GIVEN: the fields that OBJECT has; others keep their defaults.  0 or -EPROTO. */
int need_json_read(struct need *need, uint32_t *given, const json_t *object);

#endif
