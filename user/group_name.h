/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The names that people use for control groups: `slurm:123`, `docker:0123456789ab`,
 * `nginx.service`. Pure: a name comes from the path alone.
 *
 * What people started is the outermost job, pod or container of the path: a container inside a
 * Slurm job belongs to that job, the steps of the job and the containers of a pod belong to it,
 * and a Kubernetes node inside a container is that container. Only a path without one belongs to
 * its user's session or, if it has none, to its systemd unit.
 */
#ifndef IOCOM_GROUP_NAME_H
#define IOCOM_GROUP_NAME_H

#include <stddef.h>
#include <stdint.h>

#define GROUP_NAME_MAX 288 /* the longest name of a directory, what comes before it, and NUL */

enum group_kind {
	GROUP_SLURM,	  /* slurm:123 */
	GROUP_HTCONDOR,	  /* htcondor:slot1_2 */
	GROUP_POD,	  /* pod:UID */
	GROUP_DOCKER,	  /* docker:0123456789ab */
	GROUP_PODMAN,	  /* podman:0123456789ab */
	GROUP_CONTAINERD, /* containerd:0123456789ab */
	GROUP_CRIO,	  /* crio:0123456789ab */
	GROUP_LXC,	  /* lxc:NAME */
	GROUP_SESSION,	  /* session:1000 */
	GROUP_UNIT,	  /* nginx.service */
	GROUP_KINDS
};

struct group_name {
	enum group_kind kind;
	size_t length; /* so many bytes of the path name the group; all groups below belong to it */
	uint32_t uid;  /* GROUP_SESSION: the user, if 32 bits hold it; else UINT32_MAX */
	char text[GROUP_NAME_MAX]; /* printable */
};

/*
 * Finds the name of PATH, as /proc/PID/cgroup has it: absolute, of v2 or of a v1 controller.
 * Returns 0, or -ENOENT if the path has no name but itself.
 */
int group_name_find(const char *path, struct group_name *out);

#endif
