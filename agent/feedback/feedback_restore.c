/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See feedback_restore.h. */
#include "agent/feedback/feedback_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/feedback/hand.h"
#include "user/trust.h"

/* The lock that an agent of this state directory holds.  Returns it, or negative errno. */
static int restore_lock(const struct settings *set, struct iocom_err *err)
{
	char path[SETTINGS_PATH_MAX + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/state.lock", set->state_dir);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return iocom_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	close(fd);
	return iocom_err_set(err, -EBUSY,
			     "an iocomd runs on %s: it gives back what its controller holds when "
			     "it stops, or when feedback is switched off by a reload",
			     set->state_dir);
}

static int restore_locked(const struct settings *set, struct hand_done *done, struct iocom_err *err)
{
	char path[SETTINGS_PATH_MAX + 32];
	struct cgroup_mounts mounts;
	struct hand *hand;
	int rc = trust_path(set->state_dir, 0, err);

	snprintf(path, sizeof(path), "%s/feedback.originals", set->state_dir);
	if (!rc)
		rc = cgroup_mounts_read("/proc/self/mounts", &mounts, err);
	if (rc)
		return rc;
	rc = hand_new(&hand, &mounts, set->scope_cgroup, path);
	if (rc)
		return iocom_err_set(err, rc, "out of memory");
	rc = hand_recover(hand, done, err);
	hand_put(hand);
	return rc;
}

int feedback_restore(const struct settings *set, char *said, size_t size, struct iocom_err *err)
{
	struct hand_done done = {0};
	int rc, lock = restore_lock(set, err);

	snprintf(said, size, "nothing to give back in %s", set->state_dir);
	if (lock == -ENOENT)
		return 0; /* no agent ever ran there */
	if (lock < 0)
		return lock;
	rc = restore_locked(set, &done, err);
	close(lock);
	if (!rc && done.refused)
		rc = iocom_err_set(err, -EIO, "%s", done.why);
	if (!rc && (done.restored || done.foreign || done.gone))
		snprintf(said, size,
			 "groups of jobs: %u got the original bound of memory back; %u had been "
			 "changed by somebody else, and stay so; %u are gone",
			 done.restored, done.foreign, done.gone);
	return rc;
}
