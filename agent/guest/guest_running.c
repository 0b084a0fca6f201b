/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The jobs that run here, for the feedback controller and the policies that move jobs. */
#include <string.h>

#include "agent/guest/guest_own.h"
#include "user/cgroup_guests.h"
#include "user/cgroup_user.h"

static void running_fill(const struct guest *guest, const struct job *job,
			 struct guest_running *out)
{
	const struct iocom_load *l = &job->load;
	const struct need *need = &job->order.need;

	*out = (struct guest_running){
		.uid = job->order.uid,
		.cpu_ms = (double)l->cpu_ns / 1e6,
		.need_cpu_ms = need_is_known(need) ? need->value[NEED_CPU_S] * 1e3 : 0,
		.requests = (double)l->explicit_ops,
		.moved_mb = (double)(l->explicit_read_bytes + l->explicit_write_bytes) / 1e6,
		.read_mb = (double)l->explicit_read_bytes / 1e6,
		.faults = (double)l->implicit_ops,
		.memory_mb = (double)job->rss_bytes / 1e6,
		.need = need,
		.may_move = !guest_move_hindrance(job) && !job->expelled.why[0],
		.moves = job->move.number || job->move.held,
		.came = job->order.move != 0,
		.since_ns = job->running_ns ? job->running_ns : guest->began_ns,
		.before_cpu_ms = job->order.done_cpu_ms,
		.before_requests = job->order.done_requests,
	};
	memcpy(out->policy, job->order.policy, sizeof(out->policy));
	memcpy(out->job, job->order.job, sizeof(out->job));
	/* Both fit: a job's name is SPEC_JOB_MAX at most. */
	if (guest_is_home(guest, &job->order))
		(void)cgroup_user_job(out->group, sizeof(out->group), out->uid, out->job);
	else
		(void)cgroup_guests_job(out->group, sizeof(out->group), out->uid, out->job);
}

size_t guest_running(const struct guest *guest, struct guest_running *out, size_t max)
{
	size_t n = 0;

	for (const struct job *job = guest->jobs.first; job && n < max; job = job->next)
		if (job->state == JOB_RUNNING)
			running_fill(guest, job, &out[n++]);
	return n;
}

size_t guest_movable(const struct guest *guest, struct guest_running *out, size_t max)
{
	size_t n = 0;

	for (const struct job *job = guest->jobs.first; job && n < max; job = job->next)
		if (job->state == JOB_RUNNING &&
		    (job->move.number || job->move.held || !guest_move_hindrance(job)))
			running_fill(guest, job, &out[n++]);
	return n;
}
