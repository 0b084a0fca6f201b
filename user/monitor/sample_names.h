/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Paths of cgroups by cgroup2 id, found by walking the cgroup2 mount and remembered: a removed
 * cgroup keeps its name. An id that is not found is never looked for again, because ids do not
 * recur. From the path comes the group that the cgroup belongs to, and its name (group_name.h).
 */
#ifndef IOCOM_SAMPLE_NAMES_H
#define IOCOM_SAMPLE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "user/group_name.h"

struct sample_names;

/* ROOT is the cgroup2 mount; it is copied. Returns NULL if there is no memory. */
struct sample_names *sample_names_new(const char *root);
void sample_names_free(struct sample_names *names);
/* Call it before each reading: it allows one more walk for an unknown id. */
void sample_names_begin(struct sample_names *names);
/*
 * Returns the path below the root as in /proc/PID/cgroup ("/" for the root), or NULL if no
 * cgroup has this id. Valid until the next call that may walk. PARENT (may be NULL) gets the id
 * of the cgroup above, 0 for the root.
 */
const char *sample_names_path(struct sample_names *names, uint64_t id, uint64_t *parent);
/*
 * Returns the id of the cgroup that people name: ID itself, or one above it, such as the Slurm job
 * of a step. GROUP (may be NULL) gets its name, which lives as long as NAMES, or NULL if its path
 * is its name. Of a user's session the text has the login name, if /etc/passwd has it. May walk.
 */
uint64_t sample_names_owner(struct sample_names *names, uint64_t id,
			    const struct group_name **group);
/*
 * Finds the cgroup2 mount in a table of mounts (normally "/proc/self/mounts"). Returns 0;
 * -ENOENT: not mounted; -ENAMETOOLONG; negative errno.
 */
int sample_names_mount(const char *mounts, char *out, size_t size);

#endif
