/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See user_group.h. */
#include "agent/shim/user_group.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "user/cgroup_guests.h"

/* JOB is the order's, or another group's that is beside it. */
static int user_group_name(const struct order *order, const char *job, char *name, size_t size)
{
	if (order->by_user && order->guest)
		return cgroup_guests_job(name, size, order->uid, job);
	if (order->by_user)
		return cgroup_user_job(name, size, order->uid, job);
	snprintf(name, size, "jobs/%s", job);
	return 0;
}

int user_group_beside(struct user_group *user, const struct order *order, const char *suffix,
		      const struct cgroup_mounts *mounts, struct cgroup *group,
		      struct iocom_err *err)
{
	char job[SPEC_JOB_MAX], name[SPEC_JOB_MAX + 32];
	int rc = 0;

	*group = (struct cgroup){0};
	if (snprintf(job, sizeof(job), "%s%s", order->spec.job, suffix) >= (int)sizeof(job))
		return iocom_err_set(err, -ENAMETOOLONG, "the job's name is too long");
	rc = user_group_name(order, job, name, sizeof(name));

	user->used = order->by_user;
	if (!rc)
		rc = cgroup_name(mounts, order->scope, name, group, err);
	if (rc) {
		*group = (struct cgroup){0};
		return rc;
	}
	rc = cgroup_create(group, err);
	if (rc || !user->used)
		return rc;
	/*
	 * Only now: the job's group keeps its user's from being removed, and no process of the job
	 * runs yet.
	 */
	(void)cgroup_user_limit(group, &order->user_limits);
	cgroup_user_troubles(group, &user->before);
	return 0;
}

int user_group_make(struct user_group *user, const struct order *order,
		    const struct cgroup_mounts *mounts, struct cgroup *group, struct iocom_err *err)
{
	return user_group_beside(user, order, "", mounts, group, err);
}

static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* "; your jobs there may have 50 tasks together (user_tasks_max)" */
static void say_limit_of_user(char *out, size_t size, uint64_t limit, const char *may,
			      const char *unit)
{
	*out = 0;
	if (limit)
		snprintf(out, size, "; your jobs there may %s %" PRIu64 " %s", may, limit, unit);
}

void user_group_outcome(const struct user_group *user, const struct order *order,
			const struct cgroup *group, struct record_exit *end)
{
	const struct cgroup_limits *limits = &order->user_limits;
	struct cgroup_troubles now;
	char memory[80] = "", forks[80] = "", text[512];
	bool own;

	cgroup_user_troubles(group, &now);
	end->oom_kills = grown(now.oom_kills, user->before.oom_kills);
	end->forks_refused = grown(now.forks_refused, user->before.forks_refused);
	own = end->forks_refused != 0;
	if (!own && user->used)
		end->forks_refused = grown(now.user_forks_refused, user->before.user_forks_refused);
	if (*end->text || (!end->oom_kills && !end->forks_refused))
		return;
	say_limit_of_user(memory, sizeof(memory), limits->memory_bytes >> 20, "use",
			  "MiB together (user_memory_mb)");
	say_limit_of_user(forks, sizeof(forks), limits->tasks, "have",
			  "tasks together (user_tasks_max)");
	if (end->oom_kills)
		snprintf(text, sizeof(text),
			 "out of memory on node %.64s: the kernel killed %" PRIu64
			 " process%s of the job%s",
			 order->spec.node, end->oom_kills, end->oom_kills == 1 ? "" : "es", memory);
	else
		snprintf(text, sizeof(text), "node %.64s refused %" PRIu64 " fork%s of %s%s",
			 order->spec.node, end->forks_refused, end->forks_refused == 1 ? "" : "s",
			 own ? "the job" : "your jobs", forks);
	snprintf(end->text, sizeof(end->text), "%.*s", (int)sizeof(end->text) - 1, text);
}

void user_group_leave(const struct user_group *user, const struct cgroup *group)
{
	if (user->used)
		cgroup_user_leave(group);
}
