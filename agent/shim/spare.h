/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A spare shim: started before there is a job for it, so that its own start (loading,
 * the mount table) is over when one comes.  It waits on the leash
 * for one message with three descriptors, the order, the stream and the locked record
 * (not of an older agent), and then is a shim like all others.  When its agent is gone it has
 * nothing to wait for, and goes too.
 */
#ifndef IOCOM_SHIM_SPARE_H
#define IOCOM_SHIM_SPARE_H

#include <stdbool.h>

#include "user/cgroup.h"

struct spare {
	struct cgroup_mounts mounts;
	int table; /* the open mount table tells whether they still are so */
	bool read;
};

/*
 * Waits on SHIM_FD_LEASH; the descriptors become SHIM_FD_ORDER and SHIM_FD_STREAM, RECORD is
 * where it is, or -1.  NAME, argv[0], is the spare's until then.  0; -EPIPE the agent is
 * gone; negative errno.
 */
int spare_wait(struct spare *spare, char *name, int *record);
/* As cgroup_mounts_read of this process's table; what was read ahead is taken while it is true. */
int spare_mounts(const struct spare *spare, struct cgroup_mounts *mounts, struct iocom_err *err);

#endif
