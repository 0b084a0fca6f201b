/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Counters with their rates, the share of a resource, and the small steps that
 * every part of the document takes.
 */
#include "sample_build.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "utf8.h"

#define DISK_MB_PER_S_UNKNOWN 100.0 /* nothing configured, and no disk has served anything */
#define NAME_BYTES	      4096

/* Every field of struct iocom_load but the CPU time, which changes its unit. */
#define LOAD_FIELDS(F)                                                                             \
	F(explicit_read_bytes)                                                                     \
	F(explicit_write_bytes)                                                                    \
	F(explicit_ops)                                                                            \
	F(implicit_bytes)                                                                          \
	F(implicit_ops)                                                                            \
	F(major_faults)                                                                            \
	F(minor_faults)                                                                            \
	F(sent_bytes)                                                                              \
	F(received_bytes)                                                                          \
	F(sent_messages)                                                                           \
	F(received_messages)                                                                       \
	F(local_bytes)

struct load_field {
	const char *name, *rate;
	size_t offset;
};

#define LOAD_FIELD(f) {#f, #f "_per_s", offsetof(struct iocom_load, f)},
static const struct load_field load_fields[] = {LOAD_FIELDS(LOAD_FIELD)};
#define NLOAD_FIELDS (sizeof(load_fields) / sizeof(load_fields[0]))
_Static_assert(NLOAD_FIELDS <= 64, "one bit each");

int sample_put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new_nocheck(object, key, value);
}

json_t *sample_integer(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *sample_real(double value)
{
	return json_real(isfinite(value) ? round(value * 1000.0) / 1000.0 : 0.0);
}

json_t *sample_text(const char *s)
{
	char clean[NAME_BYTES];

	utf8_copy(clean, sizeof(clean), s, NAME_BYTES);
	return json_string_nocheck(clean);
}

json_t *sample_finish(json_t *object, int rc)
{
	if (!rc)
		return object;
	json_decref(object);
	return NULL;
}

double sample_disk_speed(const struct monitor_sample *sample)
{
	const struct iocom_disk *busiest = NULL;

	for (size_t i = 0; i < sample->ndisks; i++) {
		const struct iocom_disk *d = &sample->disks[i];

		if (d->service_sum_ns && (!busiest || d->service_sum_ns > busiest->service_sum_ns))
			busiest = d;
	}
	if (!busiest || busiest->read_bytes + busiest->write_bytes == 0)
		return DISK_MB_PER_S_UNKNOWN * 1e6;
	return (double)(busiest->read_bytes + busiest->write_bytes) * 1e9 /
	       (double)busiest->service_sum_ns;
}

struct share sample_share(const struct build *b, const struct iocom_load *delta)
{
	double disk = (double)delta->explicit_read_bytes + (double)delta->explicit_write_bytes +
		      (double)delta->implicit_bytes;
	double network = (double)delta->sent_bytes + (double)delta->received_bytes;
	struct share share = {0, "cpu"};

	if (b->seconds <= 0)
		return share;
	share.value =
		(double)delta->cpu_ns / 1e9 / b->seconds / (b->opt->cores ? b->opt->cores : 1);
	disk /= b->seconds * b->disk_bytes_per_s;
	network /= b->seconds * b->network_bytes_per_s;
	if (disk > share.value)
		share = (struct share){disk, "disk"};
	if (network > share.value)
		share = (struct share){network, "network"};
	return share;
}

uint64_t sample_unknown(const struct monitor_sample *sample)
{
	uint64_t unknown = 0;

	for (size_t d = 0; d < sample->ndegraded; d++)
		for (size_t i = 0; sample->degraded[d].unknown && i < NLOAD_FIELDS; i++)
			if (!strcmp(load_fields[i].name, sample->degraded[d].column))
				unknown |= 1ULL << i;
	return unknown;
}

int sample_put_load(const struct build *b, json_t *object, const struct iocom_load *load,
		    const struct iocom_load *delta)
{
	double per = b->seconds > 0 ? 1 / b->seconds : 0;
	int rc = 0;

	for (size_t i = 0; load && i < NLOAD_FIELDS; i++) {
		const char *at = (const char *)load + load_fields[i].offset;
		uint64_t value;

		memcpy(&value, at, sizeof(value));
		rc |= sample_put(object, load_fields[i].name,
				 b->unknown >> i & 1 ? json_null() : sample_integer(value));
	}
	if (load)
		rc |= sample_put(object, "cpu_ms", sample_real((double)load->cpu_ns / 1e6));
	for (size_t i = 0; i < NLOAD_FIELDS; i++) {
		const char *at = (const char *)delta + load_fields[i].offset;
		uint64_t value;

		memcpy(&value, at, sizeof(value));
		rc |= sample_put(object, load_fields[i].rate,
				 b->unknown >> i & 1 ? json_null()
						     : sample_real((double)value * per));
	}
	rc |= sample_put(object, "cpu_ms_per_s", sample_real((double)delta->cpu_ns / 1e6 * per));
	return rc;
}

int sample_put_share(json_t *object, const struct share *share)
{
	return sample_put(object, "share", json_real(round(share->value * 1e6) / 1e6)) |
	       sample_put(object, "share_of", json_string(share->resource));
}
