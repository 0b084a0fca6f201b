/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The spec on the wire: one MessagePack map. Paths, arguments and variables are bytes (bin),
 * because a Unix name need not be UTF-8. All input from the wire is bounded here, so that the
 * shim need not check it again.
 */
#include "user/spec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "user/pack.h"

void spec_free(struct spec *spec)
{
	for (char **at = spec->argv; at && *at; at++)
		free(*at);
	for (char **at = spec->env; at && *at; at++)
		free(*at);
	free(spec->argv);
	free(spec->env);
	free(spec->executable);
	free(spec->cwd);
	if (spec->gang)
		explicit_bzero(spec->gang, spec->gang_length);
	free(spec->gang);
	*spec = (struct spec){0};
}

bool spec_job_valid(const char *job)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t n = strlen(job);

	return n > 0 && n < SPEC_JOB_MAX && job[0] != '.' && strspn(job, allowed) == n;
}

static size_t vector_length(char *const *vector)
{
	size_t n = 0;

	while (vector && vector[n])
		n++;
	return n;
}

static void spec_pack_vector(msgpack_packer *pk, const char *key, char *const *vector)
{
	size_t n = vector_length(vector);

	pack_key(pk, key);
	msgpack_pack_array(pk, n);
	for (size_t i = 0; i < n; i++) {
		size_t bytes = strlen(vector[i]);

		msgpack_pack_bin(pk, bytes);
		msgpack_pack_bin_body(pk, vector[i], bytes);
	}
}

static void pack_limit(msgpack_packer *pk, rlim_t limit)
{
	if (limit == RLIM_INFINITY)
		msgpack_pack_nil(pk);
	else
		msgpack_pack_uint64(pk, limit);
}

/* The hard limits have a key of their own, in the same order, which older agents skip. */
static void pack_limits(msgpack_packer *pk, const struct spec *spec)
{
	pack_key(pk, "limits");
	msgpack_pack_array(pk, spec->nlimits);
	for (size_t i = 0; i < spec->nlimits; i++) {
		msgpack_pack_array(pk, 2);
		msgpack_pack_uint64(pk, (uint64_t)spec->limits[i].resource);
		pack_limit(pk, spec->limits[i].soft);
	}
	pack_key(pk, "hard_limits");
	msgpack_pack_array(pk, spec->nlimits);
	for (size_t i = 0; i < spec->nlimits; i++)
		pack_limit(pk, spec->limits[i].hard);
}

static void pack_executable(msgpack_packer *pk, const struct spec *spec)
{
	if (spec->gang) {
		pack_bin(pk, "executable", SPEC_EXECUTABLE_GANG, strlen(SPEC_EXECUTABLE_GANG));
		pack_bin(pk, "gang_executable", spec->executable, strlen(spec->executable));
		pack_bin(pk, "gang", spec->gang, spec->gang_length);
	} else {
		pack_bin(pk, "executable", spec->executable, strlen(spec->executable));
	}
}

int spec_pack(const struct spec *spec, void **data, size_t *length, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer,
		   16 + (spec->tty.wanted ? 1 : 0) + spec->worker + spec->migratable +
			   (spec->data ? 1 : 0) + (spec->gang ? 2 : 0));
	pack_u64(&pk, "v", SPEC_VERSION);
	pack_str(&pk, "job", spec->job);
	pack_str(&pk, "node", spec->node);
	pack_str(&pk, "nonce", spec->nonce);
	pack_bin(&pk, "class", spec->class_name, strlen(spec->class_name));
	pack_executable(&pk, spec);
	pack_bin(&pk, "cwd", spec->cwd, strlen(spec->cwd));
	spec_pack_vector(&pk, "argv", spec->argv);
	spec_pack_vector(&pk, "env", spec->env);
	pack_u64(&pk, "umask", spec->umask);
	pack_limits(&pk, spec);
	pack_u64(&pk, "closed", spec->closed);
	pack_u64(&pk, "grace_ms", spec->grace_ms);
	if (spec->tty.wanted) {
		pack_key(&pk, "tty");
		terminal_pack(&pk, &spec->tty);
	}
	pack_bool(&pk, "detach", spec->detach);
	if (spec->worker)
		pack_bool(&pk, "worker", true);
	if (spec->migratable)
		pack_bool(&pk, "migratable", true);
	pack_u64(&pk, "spool_bytes", spec->spool_bytes);
	if (spec->data)
		pack_u64(&pk, "data", spec->data);
	if (buffer.size > SPEC_PACKED_MAX) {
		msgpack_sbuffer_destroy(&buffer);
		return iocom_err_set(
			err, -E2BIG,
			"arguments and environment are too long: %zu bytes, at most %u",
			buffer.size, SPEC_PACKED_MAX);
	}
	*length = buffer.size;
	*data = msgpack_sbuffer_release(&buffer);
	return *data ? 0 : iocom_err_set(err, -ENOMEM, "out of memory for the job's spec");
}

static int spec_bad(struct iocom_err *err, const char *field)
{
	return iocom_err_set(err, -EBADMSG, "the job's spec is malformed: field '%s'", field);
}

/* Takes a byte string of at most MAX bytes without NUL as a C string. */
static int take_bytes(const msgpack_object *o, size_t max, char **out)
{
	const char *from;
	size_t n;

	if (!o || (o->type != MSGPACK_OBJECT_BIN && o->type != MSGPACK_OBJECT_STR))
		return -EBADMSG;
	n = o->type == MSGPACK_OBJECT_BIN ? o->via.bin.size : o->via.str.size;
	from = o->type == MSGPACK_OBJECT_BIN ? o->via.bin.ptr : o->via.str.ptr;
	if (n > max || (n && memchr(from, 0, n)))
		return -EBADMSG;
	*out = malloc(n + 1);
	if (!*out)
		return -ENOMEM;
	if (n)
		memcpy(*out, from, n);
	(*out)[n] = 0;
	return 0;
}

static int take_vector(const msgpack_object *map, const char *key, char ***out,
		       struct iocom_err *err)
{
	const msgpack_object *o = unpack_get(map, key);
	char **vector;

	if (!o || o->type != MSGPACK_OBJECT_ARRAY)
		return spec_bad(err, key);
	if (o->via.array.size > SPEC_ARGS_MAX)
		return iocom_err_set(err, -E2BIG, "the job's spec has too many entries in '%s'",
				     key);
	vector = calloc((size_t)o->via.array.size + 1, sizeof(*vector));
	if (!vector)
		return iocom_err_set(err, -ENOMEM, "out of memory for '%s'", key);
	*out = vector;
	for (uint32_t i = 0; i < o->via.array.size; i++) {
		int rc = take_bytes(&o->via.array.ptr[i], SPEC_PACKED_MAX, &vector[i]);

		if (rc == -ENOMEM)
			return iocom_err_set(err, rc, "out of memory for '%s'", key);
		if (rc)
			return spec_bad(err, key);
	}
	return 0;
}

/* Takes a limit; nil is RLIM_INFINITY. */
static int spec_take_limit(const msgpack_object *o, rlim_t *limit)
{
	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER && o->type != MSGPACK_OBJECT_NIL)
		return -EBADMSG;
	*limit = o->type == MSGPACK_OBJECT_NIL ? RLIM_INFINITY : o->via.u64;
	return 0;
}

static int take_hard_limits(const msgpack_object *map, struct spec *spec, struct iocom_err *err)
{
	const msgpack_object *o = unpack_get(map, "hard_limits");

	for (size_t i = 0; i < spec->nlimits; i++)
		spec->limits[i].hard = RLIM_INFINITY;
	if (!o)
		return 0;
	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != spec->nlimits)
		return spec_bad(err, "hard_limits");
	for (size_t i = 0; i < spec->nlimits; i++)
		if (spec_take_limit(&o->via.array.ptr[i], &spec->limits[i].hard) ||
		    spec->limits[i].soft > spec->limits[i].hard)
			return spec_bad(err, "hard_limits");
	return 0;
}

static int spec_take_limits(const msgpack_object *map, struct spec *spec, struct iocom_err *err)
{
	const msgpack_object *o = unpack_get(map, "limits");

	if (!o || o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > RLIM_NLIMITS)
		return spec_bad(err, "limits");
	for (uint32_t i = 0; i < o->via.array.size; i++) {
		const msgpack_object *pair = &o->via.array.ptr[i];
		const msgpack_object *at;

		if (pair->type != MSGPACK_OBJECT_ARRAY || pair->via.array.size != 2)
			return spec_bad(err, "limits");
		at = pair->via.array.ptr;
		if (at[0].type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
		    at[0].via.u64 >= RLIM_NLIMITS || spec_take_limit(&at[1], &spec->limits[i].soft))
			return spec_bad(err, "limits");
		spec->limits[i].resource = (int)at[0].via.u64;
	}
	spec->nlimits = o->via.array.size;
	return take_hard_limits(map, spec, err);
}

static int take_names(const msgpack_object *map, struct spec *spec, struct iocom_err *err)
{
	uint64_t umask_bits, closed, grace;

	if (unpack_str(map, "job", spec->job, sizeof(spec->job)) || !spec_job_valid(spec->job))
		return spec_bad(err, "job");
	if (unpack_str(map, "node", spec->node, sizeof(spec->node)) || !spec->node[0])
		return spec_bad(err, "node");
	if (unpack_str(map, "nonce", spec->nonce, sizeof(spec->nonce)))
		return spec_bad(err, "nonce");
	if (unpack_str(map, "class", spec->class_name, sizeof(spec->class_name)))
		return spec_bad(err, "class");
	if (unpack_u64(map, "umask", &umask_bits) || umask_bits > 0777)
		return spec_bad(err, "umask");
	if (unpack_u64(map, "closed", &closed) || closed > 7)
		return spec_bad(err, "closed");
	if (unpack_u64(map, "grace_ms", &grace) || grace > UINT32_MAX)
		return spec_bad(err, "grace_ms");
	if (terminal_unpack(&spec->tty, unpack_get(map, "tty")))
		return spec_bad(err, "tty");
	spec->umask = (mode_t)umask_bits;
	spec->closed = (uint32_t)closed;
	spec->grace_ms = (uint32_t)grace;
	return 0;
}

/* Reads keys that an older client does not send; absent means off. */
static int take_later(const msgpack_object *map, struct spec *spec, struct iocom_err *err)
{
	uint64_t data = 0;

	if (unpack_get(map, "detach") && unpack_bool(map, "detach", &spec->detach))
		return spec_bad(err, "detach");
	if (unpack_get(map, "worker") && unpack_bool(map, "worker", &spec->worker))
		return spec_bad(err, "worker");
	if (unpack_get(map, "migratable") && unpack_bool(map, "migratable", &spec->migratable))
		return spec_bad(err, "migratable");
	if (unpack_get(map, "spool_bytes") && unpack_u64(map, "spool_bytes", &spec->spool_bytes))
		return spec_bad(err, "spool_bytes");
	if (unpack_get(map, "data") && (unpack_u64(map, "data", &data) || data > DATA_FLAGS))
		return spec_bad(err, "data");
	spec->data = (uint32_t)data;
	return 0;
}

/* Takes the plan of a gang's part.  Returns 0 or negative errno. */
static int take_gang(const msgpack_object *map, struct spec *spec, struct iocom_err *err)
{
	const msgpack_object *plan = unpack_get(map, "gang");

	if (!plan)
		return 0;
	if (plan->type != MSGPACK_OBJECT_BIN || !plan->via.bin.size ||
	    plan->via.bin.size > SPEC_GANG_MAX || spec->tty.wanted || spec->migratable)
		return spec_bad(err, "gang");
	spec->gang = malloc(plan->via.bin.size);
	if (!spec->gang)
		return iocom_err_set(err, -ENOMEM, "out of memory for the plan of a gang");
	memcpy(spec->gang, plan->via.bin.ptr, plan->via.bin.size);
	spec->gang_length = plan->via.bin.size;
	return 0;
}

static int spec_take_all(const msgpack_object *map, struct spec *spec, struct iocom_err *err)
{
	uint64_t version;
	int rc;

	if (unpack_u64(map, "v", &version))
		return spec_bad(err, "v");
	if (version != SPEC_VERSION)
		return iocom_err_set(
			err, -EPROTO,
			"the job's spec has version %llu, this program knows %d; install "
			"the same iocom version on both sides",
			(unsigned long long)version, SPEC_VERSION);
	rc = take_names(map, spec, err);
	if (!rc)
		rc = take_later(map, spec, err);
	if (!rc)
		rc = take_gang(map, spec, err);
	if (rc)
		return rc;
	rc = take_bytes(unpack_get(map, spec->gang ? "gang_executable" : "executable"),
			PATH_MAX - 1, &spec->executable);
	if (rc || !spec->executable[0])
		return spec_bad(err, "executable");
	rc = take_bytes(unpack_get(map, "cwd"), PATH_MAX - 1, &spec->cwd);
	if (rc || spec->cwd[0] != '/')
		return spec_bad(err, "cwd");
	rc = take_vector(map, "argv", &spec->argv, err);
	if (rc)
		return rc;
	if (!spec->argv[0])
		return spec_bad(err, "argv");
	rc = take_vector(map, "env", &spec->env, err);
	return rc ? rc : spec_take_limits(map, spec, err);
}

static int spec_length(size_t length, struct iocom_err *err)
{
	return length <= SPEC_PACKED_MAX
		       ? 0
		       : iocom_err_set(err, -E2BIG,
				       "the job's spec is too long: %zu bytes, at most %u", length,
				       SPEC_PACKED_MAX);
}

static int spec_no_map(int rc, struct iocom_err *err)
{
	return rc == -E2BIG
		       ? iocom_err_set(err, rc,
				       "the job's spec has too many values: at most %u arguments "
				       "and as many variables",
				       SPEC_ARGS_MAX)
		       : iocom_err_set(err, rc, "the job's spec is no MessagePack map");
}

int spec_peek(struct spec *spec, const void *data, size_t length, struct iocom_err *err)
{
	const struct {
		const char *key;
		char *out;
		size_t size;
	} names[] = {{"job", spec->job, sizeof(spec->job)},
		     {"node", spec->node, sizeof(spec->node)},
		     {"nonce", spec->nonce, sizeof(spec->nonce)}};
	int rc = spec_length(length, err);

	*spec = (struct spec){0};
	if (!rc && (rc = unpack_scan(data, length, SPEC_VALUES_MAX)))
		return spec_no_map(rc, err);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !rc; i++)
		if (unpack_peek(data, length, SPEC_VALUES_MAX, names[i].key, names[i].out,
				names[i].size))
			rc = spec_bad(err, names[i].key);
	return rc || spec_job_valid(spec->job) ? rc : spec_bad(err, "job");
}

int spec_unpack(struct spec *spec, const void *data, size_t length, struct iocom_err *err)
{
	msgpack_unpacked message;
	int rc = spec_length(length, err);

	*spec = (struct spec){0};
	if (rc)
		return rc;
	rc = unpack_map_of(&message, data, length, SPEC_VALUES_MAX);
	if (rc)
		return spec_no_map(rc, err);
	rc = spec_take_all(&message.data, spec, err);
	msgpack_unpacked_destroy(&message);
	if (rc)
		spec_free(spec);
	return rc;
}
