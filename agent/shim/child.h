/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The job's first process: made in its cgroup, stripped of every privilege,
 * then exec.  The order of the steps is the security of the whole: child.c.
 */
#ifndef IOCOM_SHIM_CHILD_H
#define IOCOM_SHIM_CHILD_H

#include <sys/types.h>

#include "user/cgroup.h"
#include "agent/shim/order.h"
#include "agent/shim/pam.h"

struct child {
	pid_t pid;
	int pidfd;
	/* our ends: [0] written to, [1] and [2] read; non-blocking; -1 none.  Of a job with a
	 * terminal [0] and [1] are its master */
	int stdio[3];
};

/* Who the job runs as, looked up before the fork. */
struct identity {
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int ngroups;
	char *name;
	struct pam_settings session;
};

/*
 * 0; -EACCES: uid 0 without leave, a uid this machine does not know, a gid the
 * user is not a member of.  The sentence names NODE.  Takes the account of ORDER.
 */
int identity_lookup(struct identity *identity, struct order *order, struct iocom_err *err);
void identity_deinit(struct identity *identity);

/*
 * Starts the process and waits until exec succeeded.  0; 126 or 127: exec
 * failed, as a shell would report it; negative errno: anything else failed (the
 * directory is missing ...), or exec took longer than ORDER's begin_ms.  ERR has the
 * sentence; nothing is left running, but for a process that was killed and is held by the
 * kernel.
 */
int child_start(struct child *child, const struct order *order, const struct identity *identity,
		const struct cgroup *group, struct iocom_err *err);

#endif
