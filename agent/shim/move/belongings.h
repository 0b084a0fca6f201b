/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the processes of a frozen job are and have: criu, which is root, opens for them what they
 * had open, by its path.  At another node that path may lead to a file that is not their user's.
 * So a process that has become the job's user looks whether that user may have all of it, both
 * where the job leaves and, before it may run, where it came.
 */
#ifndef IOCOM_SHIM_MOVE_BELONGINGS_H
#define IOCOM_SHIM_MOVE_BELONGINGS_H

#include <sys/types.h>

#include "iocom/err.h"
#include "user/cgroup.h"

/* Whose the job is. */
struct belongings_owner {
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	int ngroups;
};

/* The job's terminal. */
struct belongings_tty {
	dev_t dev, rdev; /* of the job's end */
	int flags;	 /* set: of its descriptor, as of open(2); -1: the job has none */
};
/* Fills TTY with what FD, the job's end, is.  Returns 0 or negative errno. */
int belongings_tty_of(struct belongings_tty *tty, int fd);

/*
 * Fills OWNER with what process PID is, which changes none of it.  Returns 0 with GROUPS to free(),
 * or negative errno.
 */
int belongings_owner_of(struct belongings_owner *owner, gid_t **groups, pid_t pid);

/*
 * Checks all processes of GROUP but those that are in this process's pid namespace, which are
 * criu's; the job's first process is INIT, its terminal TTY (NULL: it has none).  None of them may
 * run.
 *
 *   who    all ids of all threads are OWNER's; no group but OWNER's; with a uid other than 0 no
 *          capability; all namespaces are the node's or INIT's
 *   what   descriptors, mappings, programs, directories: the path leads OWNER to the same file,
 *          and OWNER may use it as the process does
 *   kinds  no io_uring, no named pipe, no device but /dev/null and its like, no terminal but TTY,
 * no deleted file and no socket with a name in a file system: criu would make or fill them as root.
 * TTY is open once, as /dev/tty any number of times: criu would make one of two
 *
 * Returns 0; -EPERM, -EACCES or -ENOTSUP with a sentence about the job in ERR ("it has ..."); other
 * negative errno if it could not be checked.
 */
int belongings_check(const struct cgroup *group, pid_t init, const struct belongings_owner *owner,
		     struct belongings_tty *tty, struct iocom_err *err);

#endif
