/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See privilege.h. */
#include "user/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int privilege_by_number(const void *a, const void *b)
{
	gid_t x = *(const gid_t *)a, y = *(const gid_t *)b;

	return (x > y) - (x < y);
}

/*
 * Returns true if the process has exactly these groups. The kernel sorts them, so we sort both
 * lists.
 */
static bool privilege_has_groups(const gid_t *groups, int ngroups)
{
	size_t n = (size_t)ngroups, bytes = n * sizeof(gid_t);
	gid_t *have = calloc(n + 1, sizeof(gid_t)), *want = calloc(n + 1, sizeof(gid_t));
	bool same = have && want && getgroups(ngroups + 1, have) == ngroups;

	if (same && n) {
		memcpy(want, groups, bytes);
		qsort(want, n, sizeof(gid_t), privilege_by_number);
		qsort(have, n, sizeof(gid_t), privilege_by_number);
		same = !memcmp(have, want, bytes);
	}
	free(have);
	free(want);
	return same;
}

int privilege_drop(uid_t uid, gid_t gid, const gid_t *groups, int ngroups)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	if (setgroups((size_t)ngroups, groups) || setresgid(gid, gid, gid))
		return -errno;
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) || setresuid(uid, uid, uid))
		return -errno;
	if (!uid)
		return 0;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* This clears the inheritable ones, too. */
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

int privilege_prove_dropped(uid_t uid, gid_t gid, const gid_t *groups, int ngroups)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct have[2] = {{0}};
	uid_t r, e, s;
	gid_t rg, eg, sg;

	if (getresuid(&r, &e, &s) || getresgid(&rg, &eg, &sg))
		return -EPERM;
	if (r != uid || e != uid || s != uid || rg != gid || eg != gid || sg != gid ||
	    !privilege_has_groups(groups, ngroups))
		return -EPERM;
	if (uid == 0)
		return 0;
	if (setuid(0) == 0 || seteuid(0) == 0 || setresuid((uid_t)-1, (uid_t)-1, 0) == 0)
		return -EPERM;
	if (setgroups((size_t)ngroups, groups) == 0)
		return -EPERM;
	if (gid != 0 && setgid(0) == 0)
		return -EPERM;
	if (syscall(SYS_capget, &header, have))
		return -EPERM;
	for (int i = 0; i < 2; i++)
		if (have[i].effective || have[i].permitted || have[i].inheritable)
			return -EPERM;
	return 0;
}
