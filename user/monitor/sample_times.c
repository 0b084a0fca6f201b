/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The time that a job needed of each resource, and its part of their sum (job_times.h). */
#include "user/monitor/job_times.h"
#include "user/monitor/sample_build.h"

static json_t *parts(const struct job_times *t)
{
	struct behaviour run = {0};
	double share[BEHAVIOUR_RESOURCES];
	json_t *object = json_object();
	int rc = 0;

	behaviour_add(&run, t->ms, 0);
	behaviour_shares(&run, share);
	for (int r = 0; r < BEHAVIOUR_RESOURCES; r++)
		rc |= sample_put(object, behaviour_resource_name(r), sample_real(share[r]));
	return sample_finish(object, rc);
}

int sample_put_times(const struct build *b, json_t *object, const struct iocom_job_load *job)
{
	struct job_times_network network = {.mb_per_s = b->opt->network_mb_per_s};
	double per = b->seconds > 0 ? 1 / b->seconds : 0;
	struct job_times t;
	int rc;

	job_times(job, &network, &t);
	rc = sample_put(object, "com_ms_per_s", sample_real(t.ms[BEHAVIOUR_COM] * per));
	rc |= sample_put(object, "disk_ms_per_s", sample_real(t.ms[BEHAVIOUR_DISK] * per));
	rc |= sample_put(object, "disk_low_ms_per_s", sample_real(t.disk_low_ms * per));
	rc |= sample_put(object, "disk_high_ms_per_s", sample_real(t.disk_high_ms * per));
	rc |= sample_put(object, "fault_ms_per_s", sample_real(t.fault_ms * per));
	rc |= sample_put(object, "disk_wait_ms_per_s", sample_real(t.disk_wait_ms * per));
	return rc | sample_put(object, "parts", parts(&t));
}
