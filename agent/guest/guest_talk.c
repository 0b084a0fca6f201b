/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Who of a gang talks to whom: what of it is measured here, and told home with the reports. */
#include <stdlib.h>

#include "agent/guest/guest_own.h"
#include "user/gang_name.h"

void guest_talk_begin(struct guest *guest, struct job *job)
{
	bool wanted = gang_part_of(job->order.job, NULL, NULL) || guest->base->set->all_connections;

	if (!wanted || job->talk || !job->cgroup_id || !guest->ports->gang)
		return;
	job->talk = part_talk_new(job->found);
	if (job->talk)
		guest->ports->gang(guest->ports->arg, job->cgroup_id, true);
}

void guest_talk_report(struct job *job, struct job_report *report)
{
	double needed_ms[BEHAVIOUR_RESOURCES];
	void *packed;
	size_t length;

	behaviour_sum(&job->behaviour, needed_ms);
	if (!job->talk || part_talk_pack(job->talk, needed_ms[BEHAVIOUR_DISK], &packed, &length))
		return;
	free(job->told_talk);
	job->told_talk = packed;
	report->talk = packed;
	report->talk_length = length;
}

void guest_talk_end(const struct guest *guest, const struct job *job)
{
	if (job->talk && guest->ports->gang)
		guest->ports->gang(guest->ports->arg, job->cgroup_id, false);
}
