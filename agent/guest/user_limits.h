/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What one user's jobs at this node may use together: the settings user_tasks_max and
 * user_memory_mb, or by default a part of what the machine (or the cgroup around the jobs) has.
 *
 *   tasks     a third: the agent and other users keep room for theirs
 *   memory    nine tenths
 *   swap      the same part as of memory
 *
 * The shim sets the limits when a job begins (user/cgroup_user.h).  Root's jobs have none.
 */
#ifndef IOCOM_USER_LIMITS_H
#define IOCOM_USER_LIMITS_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "balancer/settings/settings.h"
#include "user/cgroup_user.h"
#include "user/log.h"

struct user_limits {
	const struct settings *set; /* borrowed */
	struct cgroup jobs;	    /* the name of SCOPE/jobs */
	struct cgroup_limits limits;
	struct cgroup_limits none; /* root's */
	uint64_t read_ns;	   /* when the machine was read, CLOCK_BOOTTIME */
	unsigned missing;	   /* limits that could not be set: CGROUP_TASKS, CGROUP_MEMORY */
};

/* Chooses from the settings, and where they say auto from BOUNDS; an unknown bound is no limit. */
void user_limits_choose(const struct settings *set, const struct cgroup_bounds *bounds,
			struct cgroup_limits *out);
/*
 * Reads the machine, and tries the limits on a group of their own.  A limit that cannot be set is
 * logged here, once, and kept in `missing`: jobs run without it.  NOW_NS: CLOCK_BOOTTIME.
 */
void user_limits_init(struct user_limits *u, const struct settings *set, struct logger *log,
		      uint64_t now_ns);
/*
 * Returns what UID's jobs get; U NULL: NULL.  Reads the machine again now and then: swap may have
 * been added.  Borrowed until the next call.
 */
const struct cgroup_limits *user_limits_of(struct user_limits *u, uid_t uid, uint64_t now_ns);
/* Returns the limits as `iocom doctor` asks for them, or NULL if there is no memory. */
json_t *user_limits_json(const struct user_limits *u);

#endif
