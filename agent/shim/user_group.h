/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The job's cgroup below its user's, whose limits hold for all jobs of the user together: the shim
 * makes both, sets the limits, and says at the end what they did to the job.
 */
#ifndef IOCOM_SHIM_USER_GROUP_H
#define IOCOM_SHIM_USER_GROUP_H

#include "agent/shim/order.h"
#include "user/cgroup_user.h"
#include "user/record.h"

struct user_group {
	bool used; /* false: an older agent's job is beside its user's group */
	struct cgroup_troubles before;
};

/*
 * Makes GROUP, the job's, and limits its user's. A limit that cannot be set is none: the agent has
 * told so. Returns as cgroup_create; GROUP is all 0 if it could not even be named.
 */
int user_group_make(struct user_group *user, const struct order *order,
		    const struct cgroup_mounts *mounts, struct cgroup *group,
		    struct iocom_err *err);
/*
 * The same for a group beside the job's, whose name is the job's with SUFFIX: of processes that do
 * something for the job and are not the job.  -ENAMETOOLONG: the name is too long.
 */
int user_group_beside(struct user_group *user, const struct order *order, const char *suffix,
		      const struct cgroup_mounts *mounts, struct cgroup *group,
		      struct iocom_err *err);
/* Writes into END what the kernel did to the job, and a sentence if END has none. */
void user_group_outcome(const struct user_group *user, const struct order *order,
			const struct cgroup *group, struct record_exit *end);
/* Removes the user's group if it is empty; the job's GROUP is removed already. */
void user_group_leave(const struct user_group *user, const struct cgroup *group);

#endif
