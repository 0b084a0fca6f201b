/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the controller's hand share. */
#ifndef IOCOM_FEEDBACK_HAND_OWN_H
#define IOCOM_FEEDBACK_HAND_OWN_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/feedback/hand.h"
#include "balancer/settings/settings.h"

/* A group whose bound was changed, or is about to be. */
struct hand_group {
	struct hand_group *next;
	char name[HAND_NAME];
	char original[CGROUP_HIGH_TEXT];
	uint64_t before, written; /* the bound is one of these if nobody else changed it */
	bool v2;
	enum hand_state state; /* HAND_HELD, HAND_FOREIGN or HAND_REFUSED */
	bool seen;	       /* in this turn */
};

struct hand {
	atomic_uint holders;
	pthread_mutex_t lock; /* of all that follows; the thread has it while it writes */
	bool closed;
	struct cgroup_mounts mounts;
	char scope[SETTINGS_PATH_MAX];
	char path[SETTINGS_PATH_MAX + 32];
	struct hand_group *groups;
};

/* --- hand_store.c: STATE_DIR/feedback.originals --- */

/*
 * Writes the groups that are held; removes the file if there are none.  With DURABLE the disk has
 * it before this returns.  Returns 0 or negative errno.
 */
int hand_store_write(const struct hand *hand, bool durable);
/* Reads the file into HAND, its scope too.  Returns 0; -ENOENT; -EBADMSG and others, with ERR. */
int hand_store_read(struct hand *hand, struct iocom_err *err);
/* Adds a group.  NULL: no memory. */
struct hand_group *hand_add(struct hand *hand, const char *name);

#endif
