/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The caps of guests; see cgroup_guests.h. */
#include "user/cgroup_guests.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "user/cgroup_user.h"

#define PERIOD_US    100000
#define QUOTA_MIN_US 1000					       /* the kernel's */
#define TRIAL	     CGROUP_GUESTS "/" CGROUP_USER_PREFIX "none/trial" /* no user has this name */

int cgroup_guests_job(char *name, size_t size, uid_t uid, const char *job)
{
	int n = snprintf(name, size, CGROUP_GUESTS "/" CGROUP_USER_PREFIX "%u/%s", (unsigned)uid,
			 job);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* A file that is missing in one hierarchy may be in the next one. */
static void guests_note(struct cgroup_held *held, const char *file, int rc)
{
	if (rc == -ENOENT || held->file)
		return;
	held->rc = rc;
	if (!rc)
		held->file = file;
}

static void guests_cpu(const char *directory, double cores, struct cgroup_held *held)
{
	char text[64];
	int64_t quota = (int64_t)(cores * PERIOD_US);
	int rc;

	if (quota < QUOTA_MIN_US)
		quota = QUOTA_MIN_US;
	if (cores > 0)
		snprintf(text, sizeof(text), "%" PRId64 " %d", quota, PERIOD_US);
	else
		snprintf(text, sizeof(text), "max %d", PERIOD_US);
	guests_note(held, "cpu.max", cgroup_write(directory, "cpu.max", text));
	snprintf(text, sizeof(text), "%" PRId64, cores > 0 ? quota : (int64_t)-1);
	rc = cgroup_write(directory, "cpu.cfs_quota_us", "-1");
	if (rc != -ENOENT)
		(void)cgroup_write(directory, "cpu.cfs_period_us", "100000");
	if (!rc && cores > 0)
		rc = cgroup_write(directory, "cpu.cfs_quota_us", text);
	guests_note(held, "cpu.cfs_quota_us", rc);
}

static void guests_memory(const char *directory, uint64_t bytes, struct cgroup_held *held)
{
	char text[32];
	int rc;

	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	guests_note(held, "memory.max",
		    cgroup_write(directory, "memory.max", bytes ? text : "max"));
	rc = cgroup_write(directory, "memory.limit_in_bytes", bytes ? text : "-1");
	/* More is in use now: the admission lets nobody in until guests have ended. */
	guests_note(held, "memory.limit_in_bytes", rc);
}

static void guests_disk(const char *directory, const struct cgroup_caps *caps,
			struct cgroup_held *held)
{
	uint64_t rate = caps->disk_bytes_per_s;
	char text[128];
	int rc = -ENOENT;

	for (size_t i = 0; i < caps->ndisks; i++) {
		if (rate)
			snprintf(text, sizeof(text), "%s rbps=%" PRIu64 " wbps=%" PRIu64,
				 caps->disks[i], rate, rate);
		else
			snprintf(text, sizeof(text), "%s rbps=max wbps=max", caps->disks[i]);
		rc = cgroup_write(directory, "io.max", text);
		if (rc)
			break;
	}
	guests_note(held, "io.max", rc);
}

void cgroup_guests_write(const char *directory, const struct cgroup_caps *caps,
			 struct cgroup_caps_held *held)
{
	guests_cpu(directory, caps->cores, &held->cpu);
	guests_memory(directory, caps->memory_bytes, &held->memory);
	guests_disk(directory, caps, &held->disk);
}

/*
 * Above the scope "iocom" is the machine's root, which offers a controller only if somebody asked
 * for it: a cap does. Best effort.
 */
static void guests_ask_root(const struct cgroup_mounts *mounts, const struct cgroup_caps *caps)
{
	if (caps->cores > 0)
		(void)cgroup_write(mounts->v2, "cgroup.subtree_control", "+cpu");
	if (caps->disk_bytes_per_s)
		(void)cgroup_write(mounts->v2, "cgroup.subtree_control", "+io");
}

int cgroup_guests_cap(const struct cgroup_mounts *mounts, const char *scope,
		      const struct cgroup_caps *caps, struct cgroup_caps_held *held,
		      struct iocom_err *err)
{
	const struct cgroup_held none = {NULL, -ENOENT};
	struct cgroup trial, group;
	int rc = cgroup_name(mounts, scope, TRIAL, &trial, err);

	*held = (struct cgroup_caps_held){none, none, none};
	if (!rc && !*scope)
		guests_ask_root(mounts, caps);
	if (!rc)
		rc = cgroup_create(&trial, err);
	if (!rc)
		rc = cgroup_name(mounts, scope, CGROUP_GUESTS, &group, err);
	if (rc)
		return rc;
	/* First: while the trial is there, its parents stay. */
	for (size_t i = 0; i <= group.nv1; i++)
		cgroup_guests_write(i < group.nv1 ? group.v1[i] : group.v2, caps, held);
	cgroup_remove(&trial, 0);
	cgroup_user_leave(&trial);
	return 0;
}
