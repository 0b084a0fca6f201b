/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The process of a shim; launch.c gives it its work. */
#ifndef IOCOM_LAUNCH_SPAWN_H
#define IOCOM_LAUNCH_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The cgroup of the shims of one SCOPE, kept open from one to the next.  Zeroed: not yet. */
struct launch_shims {
	bool open;
	int fd;
};
void launch_shims_close(struct launch_shims *shims);

/*
 * Spawns PROGRAM in the cgroup of the shims below SCOPE, or here and it moves itself.
 * SHIMS may be NULL: the cgroup is looked for then.
 * FDS (N) become its 3, 4, 5, 6 and stay the caller's; signals are as a new process has them,
 * the environment is one PATH, so that no LD_* of whoever started the agent meets it.  Blocks
 * until it is executed.  0 or negative errno.
 */
#define LAUNCH_FDS 4
int launch_spawn(const char *program, const char *scope, struct launch_shims *shims, const int *fds,
		 size_t n, pid_t *pid);

/* The same for one that waits on LEASH for its order (shim/spare.h); only in that cgroup. */
int launch_spawn_spare(const char *program, const char *scope, struct launch_shims *shims,
		       int leash, pid_t *pid);

#endif
