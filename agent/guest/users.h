/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whose jobs of other nodes may run here, asked in this order:
 *
 *   root                         as allow_root says
 *   in deny_users                no
 *   allow_users names somebody   only who is in it
 *   uid below min_uid            no: accounts of services
 *
 * A list holds names, uids and @groups, commas or blanks between them.  Where a group
 * cannot be looked up, nobody is let in by it, and nobody past it.
 */
#ifndef IOCOM_USERS_H
#define IOCOM_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "user/account.h"

struct users_policy {
	bool allow_root;
	uid_t min_uid;
	const char *allow, *deny; /* lists; borrowed */
	/* Who knows groups, as account_group does; NULL: that. */
	int (*group)(void *arg, const char *name, gid_t *gid);
	void *arg;
};

/* False: WHY says which setting says no. */
bool users_may(const struct users_policy *policy, const struct account *user, char *why,
	       size_t size);

#endif
