/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See user_limits.h. */
#include "agent/guest/user_limits.h"

#include <string.h>

#include "user/clock.h"

#define READ_EVERY_NS (10 * CLOCK_NS_PER_S)
#define TASKS_PART    3
#define TRIAL	      "jobs/" CGROUP_USER_PREFIX "none/trial" /* no user has this name */

static uint64_t user_limits_one(int64_t setting, uint64_t automatic, uint64_t unit)
{
	return setting == SETTINGS_LIMIT_AUTO ? automatic : (uint64_t)setting * unit;
}

/* An unknown bound gives 0, no limit; a tiny one must not. */
static uint64_t automatic_tasks(uint64_t bound)
{
	return bound && bound < TASKS_PART ? 1 : bound / TASKS_PART;
}

void user_limits_choose(const struct settings *set, const struct cgroup_bounds *bounds,
			struct cgroup_limits *out)
{
	double part;

	*out = (struct cgroup_limits){
		.tasks = user_limits_one(set->user_tasks_max, automatic_tasks(bounds->tasks), 1),
		.memory_bytes = user_limits_one(set->user_memory_mb, bounds->memory_bytes / 10 * 9,
						1 << 20),
	};
	if (!out->memory_bytes || !bounds->memory_bytes)
		return;
	part = (double)out->memory_bytes / (double)bounds->memory_bytes;
	out->swap_bytes = (uint64_t)((double)bounds->swap_bytes * (part < 1 ? part : 1));
}

static void read_machine(struct user_limits *u, uint64_t now_ns)
{
	struct cgroup_bounds bounds;

	cgroup_user_bounds("/proc", &u->jobs, &bounds);
	user_limits_choose(u->set, &bounds, &u->limits);
	u->read_ns = now_ns;
}

/* Sets the limits on a group as a shim does.  Returns those that could not be set. */
static unsigned try_limits(const struct user_limits *u, const struct cgroup_mounts *mounts,
			   struct iocom_err *err)
{
	struct cgroup trial;
	unsigned missing = CGROUP_TASKS | CGROUP_MEMORY;
	int rc = cgroup_name(mounts, u->set->scope_cgroup, TRIAL, &trial, err);

	if (!rc)
		rc = cgroup_create(&trial, err);
	if (!rc) {
		missing = cgroup_user_limit(&trial, &u->limits);
		cgroup_remove(&trial, 0);
		cgroup_user_leave(&trial);
	}
	return missing;
}

void user_limits_init(struct user_limits *u, const struct settings *set, struct logger *log,
		      uint64_t now_ns)
{
	struct iocom_err err = {.text = "the controller is not available in the jobs' cgroup"};
	struct cgroup_mounts mounts;
	int rc;

	*u = (struct user_limits){.set = set, .missing = CGROUP_TASKS | CGROUP_MEMORY};
	rc = cgroup_mounts_read("/proc/self/mounts", &mounts, &err);
	if (!rc)
		rc = cgroup_name(&mounts, set->scope_cgroup, "jobs", &u->jobs, &err);
	read_machine(u, now_ns);
	if (!rc)
		u->missing = try_limits(u, &mounts, &err);
	if (u->missing & CGROUP_TASKS)
		log_write(log, LOG_L_WARNING,
			  "user_tasks_max does not hold: %.400s; a user's jobs may use all tasks",
			  err.text);
	if (u->missing & CGROUP_MEMORY)
		log_write(log, LOG_L_WARNING,
			  "user_memory_mb does not hold: %.400s; a user's jobs may use all memory",
			  err.text);
}

const struct cgroup_limits *user_limits_of(struct user_limits *u, uid_t uid, uint64_t now_ns)
{
	if (!u || uid == 0)
		return u ? &u->none : NULL;
	if (now_ns - u->read_ns >= READ_EVERY_NS)
		read_machine(u, now_ns);
	return &u->limits;
}

static json_t *number_or_null(uint64_t number)
{
	return number ? json_integer((json_int_t)number) : json_null();
}

json_t *user_limits_json(const struct user_limits *u)
{
	json_t *missing = json_array();

	if (u->missing & CGROUP_TASKS)
		json_array_append_new(missing, json_string("tasks"));
	if (u->missing & CGROUP_MEMORY)
		json_array_append_new(missing, json_string("memory"));
	return json_pack("{s:o,s:o,s:o,s:o}", "tasks", number_or_null(u->limits.tasks), "memory_mb",
			 number_or_null(u->limits.memory_bytes >> 20), "swap_mb",
			 number_or_null(u->limits.swap_bytes >> 20), "missing", missing);
}
