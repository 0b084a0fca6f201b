/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a job needs (r.vector, MODEL 4.5): the value of each field, and its source: an option,
 * the profile of the job's class, a guess (what jobs of other classes need, or what those of its
 * class that still run have done), or a default.  It has three forms:
 *
 *   in a request   the given options only: { "io_per_s": value, ... }
 *   in an order    { "io_per_s": [value, source], ... }        (home to guest, MessagePack)
 *   in an answer   { "io_per_s": { "value", "source" }, ... }  (JSON)
 */
#ifndef IOCOM_NEED_H
#define IOCOM_NEED_H

#include <jansson.h>
#include <msgpack.h>
#include <stdbool.h>

#include "iocom/err.h"
#include "iocom/rules.h"

/* NEED_SET: its user set it for all jobs of the class (iocom profile set) */
enum need_source { NEED_DEFAULT, NEED_PROFILE, NEED_OPTION, NEED_GUESS, NEED_SET };

enum need_field {
	NEED_IO_PER_S, /* disk requests per wall-clock second when the job runs alone */
	NEED_IO_SIZE_KB,
	NEED_REQUESTS,
	NEED_MEMORY_MB,
	NEED_CPU_S, /* at reference speed 1 */
	NEED_DATA_MB,
	NEED_FAULTS_PER_MS,  /* page faults per ms of computation, where memory is short */
	NEED_COM_MS,	     /* communication over all phases (MODEL 5.10) */
	NEED_IMPLICIT_SHARE, /* the part of the requests that page faults make, 0 to 1 */
	NEED_SHARED_READ_MB, /* on a shared file system: no node's own disk has it (MODEL 2.11) */
	NEED_SHARED_WRITTEN_MB,
	NEED_FIELDS
};

struct need {
	double value[NEED_FIELDS];
	enum need_source source[NEED_FIELDS];
};

/* The values of the user's options; below 0: not given. */
struct need_options {
	double value[NEED_FIELDS];
};

/* The name requests and answers use: "io_per_s". */
const char *need_name(enum need_field field);
/* Returns whether VALUE can be that of FIELD: it is finite, not negative and not too large. */
bool need_value_valid(enum need_field field, double value);
/* "default", "profile", "option", "guess", "set". */
const char *need_source_name(enum need_source source);
/* Sets every field to its default. */
void need_init(struct need *need);
void need_set(struct need *need, enum need_field field, double value, enum need_source source);
/*
 * Converts NEED to the form of the rules, which points into NEED.  To the rules a job without any
 * work is one of which nothing is known (MODEL 3.17); so one that is known to have none has
 * NEED_LEAST_MS of computation.
 */
#define NEED_LEAST_MS 1.0
void need_request(const struct need *need, struct rules_request *request);
/*
 * Returns the explicit part of the declared alone-rate (disk requests per ms); 0 if the rate is
 * only a default or a guess.
 */
double need_declared_per_ms(const struct need *need);
/* Returns whether any of the computation and the I/O is more than a default or a guess. */
bool need_is_known(const struct need *need);
/* Returns whether the computation or the I/O is a guess. */
bool need_is_guess(const struct need *need);
/* Returns the declared memory; 0 if it is only a default. */
double need_declared_mb(const struct need *need);
/* Returns the share of one core that the job keeps busy when it runs alone, 0 to 1. */
double need_cpu_share(const struct need *need);

void need_options_init(struct need_options *options); /* no option is given */
/* Packs the map without its key. */
void need_options_pack(const struct need_options *options, msgpack_packer *pk);
/* Returns 0, or -EINVAL with the reason in ERR (unknown field, negative, not a number). */
int need_options_unpack(struct need_options *options, const msgpack_object *map,
			struct iocom_err *err);

/* Packs the key "need" and the map of an order. */
void need_pack(const struct need *need, msgpack_packer *pk);
/* Reads the key "need" of the order MESSAGE.  Returns 0 or -EBADMSG. */
int need_unpack(struct need *need, const msgpack_object *message);

/* Returns an object of the fields in GIVEN (bits by enum need_field); NULL: no memory. */
json_t *need_json(const struct need *need, uint32_t given);
#define NEED_ALL ((1u << NEED_FIELDS) - 1)
/*
 * Sets GIVEN to the fields that OBJECT has; the others get their defaults.  Returns 0 or -EPROTO.
 */
int need_json_read(struct need *need, uint32_t *given, const json_t *object);

#endif
