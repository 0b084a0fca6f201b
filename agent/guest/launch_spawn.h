/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Spawns shim processes; launch.c gives them their orders. */
#ifndef IOCOM_LAUNCH_SPAWN_H
#define IOCOM_LAUNCH_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The cgroup of a SCOPE's shims, kept open between spawns.  Zeroed: not open. */
struct launch_shims {
	bool open;
	int fd;
};
void launch_shims_close(struct launch_shims *shims);

/*
 * Spawns PROGRAM in the shims' cgroup below SCOPE, or here, and then the program moves itself.
 * SHIMS may be NULL: then the cgroup is looked up.  FDS (N) become its 3, 4, 5, 6 and stay the
 * caller's; signals are reset to defaults, and the environment is one PATH, so that the program
 * inherits no LD_* variables.  Blocks until the program is executed.  Returns 0 or negative errno.
 */
#define LAUNCH_FDS 4
int launch_spawn(const char *program, const char *scope, struct launch_shims *shims, const int *fds,
		 size_t n, pid_t *pid);

/*
 * Does the same for a spare that waits on LEASH for its order (shim/spare.h); only in the shims'
 * cgroup.  It makes a record in JOBS_DIR in advance; NULL: none.
 */
int launch_spawn_spare(const char *program, const char *scope, const char *jobs_dir,
		       struct launch_shims *shims, int leash, pid_t *pid);

#endif
