/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A user as this machine's database knows him (nsswitch: files, LDAP ...). */
#ifndef IOCOM_ACCOUNT_H
#define IOCOM_ACCOUNT_H

#include <stdbool.h>
#include <sys/types.h>

struct account {
	uid_t uid;
	gid_t gid; /* primary */
	char *name;
	gid_t *groups; /* all of them, the primary one too */
	int ngroups;
};

/* 0; -ENOENT: nobody has this uid; -ENOMEM, -E2BIG (65,536 groups), -EIO; then nothing to free. */
int account_find(uid_t uid, struct account *account);
/* Likewise, without his groups: one question less. */
int account_name(uid_t uid, struct account *account);
void account_free(struct account *account);
bool account_has_group(const struct account *account, gid_t gid);
/* 0; -ENOENT: no such group; -ENOMEM, -EIO. */
int account_group(const char *name, gid_t *gid);

#endif
