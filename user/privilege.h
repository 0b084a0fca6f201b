/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Giving up root's privilege, and whether a process that did has really lost it. */
#ifndef IOCOM_PRIVILEGE_H
#define IOCOM_PRIVILEGE_H

#include <sys/types.h>

/*
 * Gives this process the user's ids and GROUPS, and with a UID other than 0 no capability.  Returns
 * 0 or negative errno.
 */
int privilege_drop(uid_t uid, gid_t gid, const gid_t *groups, int ngroups);
/*
 * Checks that all ids of this process are the wanted ones, that it has exactly these groups, and
 * that no way back to root exists: it tries the ways.  With uid 0 only the ids are checked.
 * Returns 0 or -EPERM.
 */
int privilege_prove_dropped(uid_t uid, gid_t gid, const gid_t *groups, int ngroups);

#endif
