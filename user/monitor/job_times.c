/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Computes the time of each resource in a reading; see job_times.h. */
#include "user/monitor/job_times.h"

static double communication_ms(const struct iocom_load *l, const struct job_times_network *network)
{
	double mb_per_s = job_times_mb_per_s(network->mb_per_s);
	double bytes = (double)l->sent_bytes + (double)l->received_bytes;
	double messages = (double)l->sent_messages + (double)l->received_messages;

	return bytes / (mb_per_s * 1e3) + messages * network->message_ms;
}

void job_times(const struct iocom_job_load *job, const struct job_times_network *network,
	       struct job_times *out)
{
	const struct iocom_load *l = &job->delta;
	double low = (double)job->disk_delta.low_ns / 1e6;
	double high = (double)job->disk_delta.high_ns / 1e6;
	double bytes = (double)l->explicit_read_bytes + (double)l->explicit_write_bytes +
		       (double)l->implicit_bytes;

	*out = (struct job_times){
		.ms = {[BEHAVIOUR_CPU] = (double)l->cpu_ns / 1e6,
		       [BEHAVIOUR_COM] = communication_ms(l, network),
		       [BEHAVIOUR_DISK] = (low + high) / 2},
		.fault_requests = (double)l->implicit_ops,
		.fault_kb = (double)l->implicit_bytes / 1e3,
		.disk_low_ms = low,
		.disk_high_ms = high,
		.disk_wait_ms = (double)job->disk_delta.wait_ns / 1e6,
		.run_wait_ms = (double)l->run_wait_ns / 1e6,
	};
	if (bytes > 0)
		out->fault_ms = out->ms[BEHAVIOUR_DISK] * (double)l->implicit_bytes / bytes;
}

void job_times_learn(struct behaviour *b, const struct job_times *times, double elapsed_ms)
{
	behaviour_add(b, times->ms, elapsed_ms);
	b->disk_low_ms += times->disk_low_ms;
	b->disk_high_ms += times->disk_high_ms;
	b->fault_ms += times->fault_ms;
	b->fault_requests += times->fault_requests;
	b->fault_kb += times->fault_kb;
	b->disk_wait_ms += times->disk_wait_ms;
	b->run_wait_ms += times->run_wait_ms;
}
