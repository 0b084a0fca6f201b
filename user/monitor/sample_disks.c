/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The disks of the document: totals, rates, and what is charged to no task. */
#include "user/monitor/sample_build.h"

/* Returns the disk's earlier values, or NULL if its rates are unknown. */
static const struct iocom_disk *disk_before(const struct build *b, const struct iocom_disk *disk)
{
	static const struct iocom_disk none;
	const struct sample_json_options *o = b->opt;
	uint64_t counting = b->sample->time_ns - b->sample->since_ns;

	for (size_t i = 0; i < o->ndisks_before; i++)
		if (o->disks_before[i].major == disk->major &&
		    o->disks_before[i].minor == disk->minor)
			return &o->disks_before[i];
	if (o->disks_before || (double)b->sample->elapsed_ns * 1.05 >= (double)counting)
		return &none;
	return NULL;
}

static double sample_disks_since(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0;
}

static int put_disk_rates(const struct build *b, json_t *object, const struct iocom_disk *d)
{
	const struct iocom_disk *was = b->seconds > 0 ? disk_before(b, d) : NULL;
	double requests, busy_ms;
	int rc = 0;

	if (!was) {
		rc |= sample_put(object, "requests_per_s", json_null());
		rc |= sample_put(object, "read_bytes_per_s", json_null());
		rc |= sample_put(object, "write_bytes_per_s", json_null());
		rc |= sample_put(object, "utilisation", json_null());
		return rc | sample_put(object, "service_ms", json_null());
	}
	requests = sample_disks_since(d->requests, was->requests);
	busy_ms = sample_disks_since(d->service_sum_ns, was->service_sum_ns) / 1e6;
	rc |= sample_put(object, "requests_per_s", sample_real(requests / b->seconds));
	rc |= sample_put(
		object, "read_bytes_per_s",
		sample_real(sample_disks_since(d->read_bytes, was->read_bytes) / b->seconds));
	rc |= sample_put(
		object, "write_bytes_per_s",
		sample_real(sample_disks_since(d->write_bytes, was->write_bytes) / b->seconds));
	/*
	 * A request counts when it ends, with all of its service: also with what of it was before
	 * the interval.  A disk is never busy for more than all of the time.
	 */
	rc |= sample_put(object, "utilisation",
			 sample_real(busy_ms / 1e3 < b->seconds ? busy_ms / 1e3 / b->seconds : 1));
	return rc | sample_put(object, "service_ms",
			       requests > 0 ? sample_real(busy_ms / requests) : json_null());
}

static json_t *disk_json(const struct build *b, const struct iocom_disk *d)
{
	json_t *object = json_object();
	int rc = sample_put(object, "name", sample_text(d->name));

	rc |= sample_put(object, "major", json_integer(d->major));
	rc |= sample_put(object, "minor", json_integer(d->minor));
	rc |= sample_put(object, "requests", sample_integer(d->requests));
	rc |= sample_put(object, "read_bytes", sample_integer(d->read_bytes));
	rc |= sample_put(object, "write_bytes", sample_integer(d->write_bytes));
	rc |= sample_put(object, "service_sum_ns", sample_integer(d->service_sum_ns));
	rc |= sample_put(object, "response_sum_ns", sample_integer(d->response_sum_ns));
	rc |= sample_put(object, "service_sum2_ms2", sample_real(d->service_sum2_ms2));
	rc |= sample_put(object, "task_bytes", sample_integer(d->task_bytes));
	rc |= sample_put(object, "stacked_bytes", sample_integer(d->stacked_bytes));
	rc |= sample_put(object, "unattributed_bytes", sample_integer(d->unattributed_bytes));
	rc |= sample_put(object, "foreign_bytes", sample_integer(d->foreign_bytes));
	rc |= sample_put(object, "kernel_bytes", sample_integer(d->kernel_bytes));
	rc |= sample_put(object, "residual_bytes", json_integer(d->residual_bytes));
	rc |= put_disk_rates(b, object, d);
	return sample_finish(object, rc);
}

json_t *sample_disks(const struct build *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->sample->ndisks; i++) {
		if (json_array_append_new(array, disk_json(b, &b->sample->disks[i]))) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

json_t *sample_unattributed(const struct monitor_sample *s)
{
	json_t *object = json_object();
	int rc = sample_put(object, "metadata_bytes",
			    sample_integer(s->unattributed.metadata_bytes));

	rc |= sample_put(object, "writeback_bytes",
			 sample_integer(s->unattributed.writeback_bytes));
	rc |= sample_put(object, "swap_out_bytes", sample_integer(s->unattributed.swap_out_bytes));
	rc |= sample_put(object, "other_bytes", sample_integer(s->unattributed.other_bytes));
	return sample_finish(object, rc);
}

json_t *sample_identity(const struct monitor_sample *s)
{
	json_t *object = json_object();
	int rc = sample_put(object, "kernel_bytes", sample_integer(s->identity.kernel_bytes));

	rc |= sample_put(object, "in_flight_bytes", sample_integer(s->identity.in_flight_bytes));
	rc |= sample_put(object, "residual_bytes", json_integer(s->identity.residual_bytes));
	rc |= sample_put(object, "residual_share", sample_real(s->identity.residual_share));
	return sample_finish(object, rc);
}
