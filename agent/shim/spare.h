/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A spare shim starts before there is a job for it, so that its own start (loading, reading the
 * mount table) is over when a job comes. It waits on the leash for one message with three
 * descriptors: the order, the stream and the locked record (an older agent sends no record).
 * Then it is a shim like all others. When its agent ends it ends too.
 *
 * It also makes the job's record in advance (record_make_spare), which the agent renames: to make
 * its files can take longer than all else that a job needs before it begins.
 */
#ifndef IOCOM_SHIM_SPARE_H
#define IOCOM_SHIM_SPARE_H

#include <stdbool.h>

#include "user/cgroup.h"

struct spare {
	struct cgroup_mounts mounts;
	int table; /* the open mount table; it reports changes since the table was read */
	bool read;
	const char *jobs_dir; /* borrowed from argv; NULL: no record is made */
};

/*
 * Waits on SHIM_FD_LEASH. The received descriptors become SHIM_FD_ORDER and SHIM_FD_STREAM;
 * RECORD gets the third or -1. Until then NAME, argv[0], is the spare's name. Returns 0; -EPIPE:
 * the agent is gone; negative errno.
 */
int spare_wait(struct spare *spare, char *name, int *record);
/* Like cgroup_mounts_read of this process's table, but uses the table read ahead while it is
 * valid. */
int spare_mounts(const struct spare *spare, struct cgroup_mounts *mounts, struct iocom_err *err);

#endif
