/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Stopping all of a job's processes at once, and letting them go on: cgroup.freeze of cgroup v2. */
#ifndef IOCOM_CGROUP_FREEZE_H
#define IOCOM_CGROUP_FREEZE_H

#include <stdbool.h>

#include "user/cgroup.h"

/*
 * Freezes GROUP, which has no groups below.  Returns 0: every thread has stopped where it can be
 * traced, and none can be born; -ETIMEDOUT: that was not so within LIMIT_MS, and all go on;
 * -ENOENT: the kernel cannot do it (before Linux 5.2).
 *
 * A process that waits for its vfork()ed child cannot be traced, and the child is frozen: so all go
 * on for a moment, and are frozen again.
 */
int cgroup_freeze(const struct cgroup *group, unsigned limit_ms);
/* Returns whether all of GROUP is frozen now. */
bool cgroup_frozen(const struct cgroup *group);
/* Returns how many processes GROUP has; those that have ended and nobody has waited for are none.
 */
unsigned cgroup_processes(const struct cgroup *group);
/* Returns 0 or negative errno. */
int cgroup_thaw(const struct cgroup *group);

#endif
