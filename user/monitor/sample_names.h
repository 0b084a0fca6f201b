/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Paths of cgroups by cgroup2 id, found by walking the cgroup2 mount and
 * remembered: a removed cgroup keeps its name, an id that is nowhere is looked
 * for once and never again (ids do not recur).
 */
#ifndef IOCOM_SAMPLE_NAMES_H
#define IOCOM_SAMPLE_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct sample_names;

/* ROOT: the cgroup2 mount, copied.  NULL when memory is out. */
struct sample_names *sample_names_new(const char *root);
void sample_names_free(struct sample_names *names);
/* Call before each reading: the next unknown id may walk the tree once more. */
void sample_names_begin(struct sample_names *names);
/*
 * The path below the root, "/" for the root itself, as /proc/PID/cgroup has it;
 * NULL when no cgroup has this id.  Valid until the next call that may walk.
 * PARENT (may be NULL) takes the id of the cgroup above, 0 for the root.
 */
const char *sample_names_path(struct sample_names *names, uint64_t id, uint64_t *parent);
/*
 * Where cgroup2 is mounted, from the table of mounts (normally
 * "/proc/self/mounts").  0; -ENOENT not mounted; -ENAMETOOLONG; negative errno.
 */
int sample_names_mount(const char *mounts, char *out, size_t size);

#endif
