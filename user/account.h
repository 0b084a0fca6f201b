/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A user as this machine's user database knows it (nsswitch: files, LDAP and others). */
#ifndef IOCOM_ACCOUNT_H
#define IOCOM_ACCOUNT_H

#include <stdbool.h>
#include <sys/types.h>

struct account {
	uid_t uid;
	gid_t gid; /* primary group */
	char *name;
	gid_t *groups; /* all groups, with the primary one */
	int ngroups;
	bool stale; /* the user database does not answer now, and the answer may be out of date */
};

struct account_group {
	gid_t gid;
	char *members; /* the names of the group's own list, each with its NUL */
	size_t bytes;  /* of MEMBERS */
};

/* Looks up the user and all groups. Returns 0; -ENOENT: no user has this uid; -ENOMEM; -E2BIG:
 * more than 65,536 groups; -EIO. After an error there is nothing to free. */
int account_find(uid_t uid, struct account *account);
/* Does the same without the groups, which saves a query. */
int account_name(uid_t uid, struct account *account);
/* Does the same for a user's name. */
int account_named(const char *name, struct account *account);
void account_free(struct account *account);
bool account_has_group(const struct account *account, gid_t gid);
/* Looks up a group. Returns 0; -ENOENT: no such group; -ENOMEM; -EIO. After an error there is
 * nothing to free. */
int account_group(const char *name, struct account_group *group);
void account_group_free(struct account_group *group);
/* Returns true if the user's list of groups has the group, or the group's list has the user. */
bool account_in_group(const struct account *account, const struct account_group *group);

#endif
