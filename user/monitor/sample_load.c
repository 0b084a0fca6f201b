/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Counters with their rates, the share of a resource, and helpers for every part of the
 * document.
 */
#include "user/monitor/sample_build.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "user/utf8.h"

#define DISK_MB_PER_S_UNKNOWN 100.0 /* if nothing is configured or measured */
#define NAME_BYTES	      4096

/* All counts of struct iocom_load. Times are not here because they change their unit. */
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
#define TASK_IO_FIELDS(F)                                                                          \
	F(dirtied_bytes)                                                                           \
	F(cancelled_bytes)                                                                         \
	F(netfs_read_bytes)                                                                        \
	F(netfs_write_bytes)

/* Why a counter may be null: this kernel does not fill it. */
enum lack { LACK_NEVER, LACK_TASK_IO, LACK_RUN_WAIT, LACK_IO_WAIT };

struct load_field {
	const char *name, *rate;
	size_t offset;
	enum lack lack;
	bool time; /* ns in the struct, ms in the document */
};

#define LOAD_FIELD(f)	 {#f, #f "_per_s", offsetof(struct iocom_load, f), LACK_NEVER, false},
#define TASK_IO_FIELD(f) {#f, #f "_per_s", offsetof(struct iocom_load, f), LACK_TASK_IO, false},
#define TIME_FIELD(f, lack)                                                                        \
	{#f "_ms", #f "_ms_per_s", offsetof(struct iocom_load, f##_ns), lack, true},

/* clang-format off */
static const struct load_field load_fields[] = {
	LOAD_FIELDS(LOAD_FIELD)
	TASK_IO_FIELDS(TASK_IO_FIELD)
	TIME_FIELD(cpu, LACK_NEVER)
	TIME_FIELD(run_wait, LACK_RUN_WAIT)
	TIME_FIELD(io_wait, LACK_IO_WAIT)
};
/* clang-format on */
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

double sample_disk_bytes(const struct iocom_load *load)
{
	return (double)load->explicit_read_bytes + (double)load->explicit_write_bytes +
	       (double)load->implicit_bytes;
}

double sample_network_bytes(const struct iocom_load *load)
{
	return (double)load->sent_bytes + (double)load->received_bytes;
}

struct share sample_share(const struct build *b, const struct iocom_load *delta)
{
	double disk = sample_disk_bytes(delta), network = sample_network_bytes(delta);
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

static bool lacking(const struct monitor_sample *s, enum lack lack)
{
	return (lack == LACK_TASK_IO && s->no_task_io) ||
	       (lack == LACK_RUN_WAIT && s->no_run_wait) || (lack == LACK_IO_WAIT && s->no_io_wait);
}

uint64_t sample_unknown(const struct monitor_sample *sample)
{
	uint64_t unknown = 0;

	for (size_t i = 0; i < NLOAD_FIELDS; i++) {
		if (lacking(sample, load_fields[i].lack))
			unknown |= 1ULL << i;
		for (size_t d = 0; d < sample->ndegraded; d++)
			if (sample->degraded[d].unknown &&
			    !strcmp(load_fields[i].name, sample->degraded[d].column))
				unknown |= 1ULL << i;
	}
	return unknown;
}

static uint64_t sample_load_field_of(const struct iocom_load *load, const struct load_field *field)
{
	uint64_t value;

	memcpy(&value, (const char *)load + field->offset, sizeof(value));
	return value;
}

static json_t *count_json(const struct load_field *field, uint64_t value)
{
	return field->time ? sample_real((double)value / 1e6) : sample_integer(value);
}

int sample_put_load(const struct build *b, json_t *object, const struct iocom_load *load,
		    const struct iocom_load *delta)
{
	double per = b->seconds > 0 ? 1 / b->seconds : 0;
	int rc = 0;

	for (size_t i = 0; load && i < NLOAD_FIELDS; i++) {
		const struct load_field *f = &load_fields[i];

		rc |= sample_put(object, f->name,
				 b->unknown >> i & 1
					 ? json_null()
					 : count_json(f, sample_load_field_of(load, f)));
	}
	for (size_t i = 0; delta && i < NLOAD_FIELDS; i++) {
		const struct load_field *f = &load_fields[i];
		double rate = (double)sample_load_field_of(delta, f) * per / (f->time ? 1e6 : 1);

		rc |= sample_put(object, f->rate,
				 b->unknown >> i & 1 ? json_null() : sample_real(rate));
	}
	return rc;
}

json_t *sample_lost(const struct build *b)
{
	json_t *object = json_object();

	return sample_finish(object, sample_put_load(b, object, &b->sample->lost, NULL));
}

int sample_put_share(json_t *object, const struct share *share)
{
	return sample_put(object, "share", json_real(round(share->value * 1e6) / 1e6)) |
	       sample_put(object, "share_of", json_string(share->resource));
}
