/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See synthetic.h. */
#include "agent/measure/synthetic.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/clock.h"

struct synthetic_load {
	double seconds;
	double run_queue, cpu, memory_used_mb;
	double disk_requests_per_s, disk_service_ms, disk_mb_per_s;
	double sent_mb_per_s, received_mb_per_s, messages_per_s;
};

struct synthetic {
	double cores, memory_mb;
	bool disk;
	struct synthetic_load *loads;
	size_t nloads;
	double seconds; /* all of them */
	uint64_t began_ns, last_ns;
	/* The reading: everything is one job's. */
	struct iocom_job_load all;
	struct iocom_disk counts;
};

#define L(field, most)                                                                             \
	{                                                                                          \
#field, offsetof(struct synthetic_load, field), most                               \
	}
/* As far as a load vector goes (balancer/view/vector_codec.c), and no further. */
static const struct synthetic_field {
	const char *name;
	size_t offset;
	double most;
} synthetic_fields[] = {
	L(seconds, 1e9),	L(run_queue, 1e6),	     L(cpu, 65536),
	L(memory_used_mb, 1e9), L(disk_requests_per_s, 1e7), L(disk_service_ms, 1e6),
	L(disk_mb_per_s, 1e6),	L(sent_mb_per_s, 1e6),	     L(received_mb_per_s, 1e6),
	L(messages_per_s, 1e8),
};
#undef L

#define NFIELDS (sizeof(synthetic_fields) / sizeof(*synthetic_fields))

static int synthetic_number(const json_t *value, const char *name, double most, double *out,
			    struct iocom_err *err)
{
	*out = json_number_value(value);
	if (!json_is_number(value) || !(*out >= 0) || *out > most)
		return iocom_err_set(err, -EPROTO, "%s is no number from 0 to %g", name, most);
	return 0;
}

static const struct synthetic_field *synthetic_field(const char *name)
{
	for (size_t i = 0; i < NFIELDS; i++)
		if (!strcmp(synthetic_fields[i].name, name))
			return &synthetic_fields[i];
	return NULL;
}

static int synthetic_read_load(json_t *object, struct synthetic_load *load, struct iocom_err *err)
{
	const char *name;
	json_t *value;
	int rc = 0;

	if (!json_is_object(object))
		return iocom_err_set(err, -EPROTO, "it is no object");
	json_object_foreach (object, name, value) {
		const struct synthetic_field *f = synthetic_field(name);

		if (!f)
			return iocom_err_set(err, -EPROTO, "%s is no part of a load", name);
		rc = synthetic_number(value, name, f->most,
				      (double *)(void *)((char *)load + f->offset), err);
		if (rc)
			return rc;
	}
	if (!(load->seconds > 0))
		return iocom_err_set(err, -EPROTO, "its seconds are missing, or 0");
	return 0;
}

static int synthetic_read_loads(struct synthetic *s, const json_t *list, struct iocom_err *err)
{
	int rc = 0;

	s->nloads = json_array_size(list);
	if (!s->nloads || s->nloads > SYNTHETIC_LOADS_MAX)
		return iocom_err_set(err, -EPROTO, "loads is no list of 1 to %d loads",
				     SYNTHETIC_LOADS_MAX);
	s->loads = calloc(s->nloads, sizeof(*s->loads));
	if (!s->loads)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < s->nloads && !rc; i++) {
		rc = synthetic_read_load(json_array_get(list, i), &s->loads[i], err);
		if (rc)
			iocom_err_prefix(err, "load %zu", i + 1);
		s->seconds += s->loads[i].seconds;
	}
	return rc;
}

static int synthetic_read(struct synthetic *s, json_t *root, struct iocom_err *err)
{
	const char *name;
	json_t *value;
	int rc = 0;

	s->cores = 1;
	s->memory_mb = 1000;
	s->disk = true;
	if (!json_is_object(root))
		return iocom_err_set(err, -EPROTO, "it is no JSON object");
	json_object_foreach (root, name, value) {
		if (!strcmp(name, "cores"))
			rc = synthetic_number(value, name, 65536, &s->cores, err);
		else if (!strcmp(name, "memory_mb"))
			rc = synthetic_number(value, name, 1e9, &s->memory_mb, err);
		else if (!strcmp(name, "disk") && json_is_boolean(value))
			s->disk = json_is_true(value);
		else if (strcmp(name, "loads") != 0)
			rc = iocom_err_set(err, -EPROTO,
					   "%s is none of cores, memory_mb, disk (true or false) "
					   "and loads",
					   name);
		if (rc)
			return rc;
	}
	if (s->cores < 1 || s->cores != floor(s->cores))
		return iocom_err_set(err, -EPROTO, "cores is no whole number from 1 on");
	return synthetic_read_loads(s, json_object_get(root, "loads"), err);
}

/* Reads the text of PATH, which may be anything. */
static json_t *synthetic_parse(const char *path, struct iocom_err *err)
{
	FILE *file = fopen(path, "re");
	char *text = file ? malloc(SYNTHETIC_BYTES_MAX + 1) : NULL;
	json_t *root = NULL;
	json_error_t where;
	size_t n;

	if (!file)
		iocom_err_set(err, -errno, "%s", strerror(errno));
	else if (!text)
		iocom_err_set(err, -ENOMEM, "out of memory");
	if (text) {
		n = fread(text, 1, SYNTHETIC_BYTES_MAX + 1, file);
		if (n > SYNTHETIC_BYTES_MAX)
			iocom_err_set(err, -EFBIG, "it has more than %u bytes",
				      SYNTHETIC_BYTES_MAX);
		else
			root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
		if (!root && n <= SYNTHETIC_BYTES_MAX)
			iocom_err_set(err, -EPROTO, "line %d: %s", where.line, where.text);
	}
	free(text);
	if (file)
		fclose(file);
	return root;
}

int synthetic_open(struct synthetic **out, const char *path, struct iocom_err *err)
{
	struct synthetic *s = calloc(1, sizeof(*s));
	json_t *root = s ? synthetic_parse(path, err) : NULL;
	int rc = 0;

	*out = NULL;
	if (!s)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	rc = root ? synthetic_read(s, root, err) : -EPROTO;
	json_decref(root);
	if (rc) {
		iocom_err_prefix(err, "cannot use the synthetic load %s", path);
		synthetic_free(s);
		return rc;
	}
	s->began_ns = s->last_ns = clock_boot_ns();
	s->counts.major = 1; /* no disk of this machine */
	snprintf(s->counts.name, sizeof(s->counts.name), "synthetic");
	*out = s;
	return 0;
}

void synthetic_free(struct synthetic *s)
{
	if (!s)
		return;
	free(s->loads);
	free(s);
}

static const struct synthetic_load *synthetic_now(const struct synthetic *s, uint64_t now)
{
	double at = fmod((double)(now - s->began_ns) / 1e9, s->seconds);

	for (size_t i = 0; i + 1 < s->nloads; i++) {
		if (at < s->loads[i].seconds)
			return &s->loads[i];
		at -= s->loads[i].seconds;
	}
	return &s->loads[s->nloads - 1];
}

/* What LOAD makes of the disk in SECONDS. */
static void synthetic_count(struct iocom_disk *disk, const struct synthetic_load *load,
			    double seconds)
{
	double requests = load->disk_requests_per_s * seconds;

	disk->requests += (uint64_t)requests;
	disk->read_bytes += (uint64_t)(load->disk_mb_per_s * 1e6 * seconds);
	disk->service_sum_ns += (uint64_t)(requests * load->disk_service_ms * 1e6);
	/* Exponential service: E(s^2) = 2 E(s)^2. */
	disk->service_sum2_ms2 += requests * 2 * load->disk_service_ms * load->disk_service_ms;
}

void synthetic_sample(struct synthetic *s, uint64_t now_ns, uint64_t real_ns,
		      struct monitor_sample *sample)
{
	const struct synthetic_load *load = synthetic_now(s, now_ns);
	uint64_t elapsed = now_ns - s->last_ns;
	double seconds = (double)elapsed / 1e9;
	struct iocom_load *did = &s->all.delta;

	*did = (struct iocom_load){
		.cpu_ns = (uint64_t)(load->cpu * (double)elapsed),
		.run_wait_ns = (uint64_t)(fmax(0, load->run_queue - load->cpu) * (double)elapsed),
		.sent_bytes = (uint64_t)(load->sent_mb_per_s * 1e6 * seconds),
		.received_bytes = (uint64_t)(load->received_mb_per_s * 1e6 * seconds),
		.sent_messages = (uint64_t)(load->messages_per_s * seconds),
	};
	s->all.disk_delta = (struct iocom_disk_time){0};
	if (s->disk) {
		did->explicit_ops = (uint64_t)(load->disk_requests_per_s * seconds);
		did->explicit_read_bytes = (uint64_t)(load->disk_mb_per_s * 1e6 * seconds);
		s->all.disk_delta.low_ns = s->all.disk_delta.high_ns =
			(uint64_t)((double)did->explicit_ops * load->disk_service_ms * 1e6);
		synthetic_count(&s->counts, load, seconds);
	}
	iocom_load_add(&s->all.load, did);
	iocom_disk_time_add(&s->all.disk, &s->all.disk_delta);
	s->last_ns = now_ns;
	*sample = (struct monitor_sample){
		.time_ns = real_ns,
		.boot_ns = now_ns,
		.since_ns = real_ns - (now_ns - s->began_ns),
		.elapsed_ns = elapsed,
		.jobs = &s->all,
		.njobs = 1,
		.disks = &s->counts,
		.ndisks = s->disk,
		.run_queue = load->run_queue,
		.live_tasks = (uint32_t)ceil(load->run_queue),
		.io_tasks = s->disk && load->disk_requests_per_s > 0,
	};
}

void synthetic_host(const struct synthetic *s, uint64_t now_ns, struct host_reading *out)
{
	*out = (struct host_reading){
		.memory_mb = s->memory_mb,
		.used_mb = fmin(s->memory_mb, synthetic_now(s, now_ns)->memory_used_mb),
		.cores = (uint32_t)s->cores,
		.core_share = 1,
	};
}
