/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Decides which users' jobs of other nodes may run here, in this order:
 *
 *   root                         as allow_root says
 *   in deny_users                no
 *   allow_users is not empty     only users in it
 *   uid below min_uid            no: service accounts
 *
 * A list holds names, uids and @groups, separated by commas or blanks.  A group that cannot be
 * looked up in allow_users admits nobody; one in deny_users denies everybody.
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
	/* Looks up groups like account_group; NULL: account_group itself. */
	int (*group)(void *arg, const char *name, gid_t *gid);
	void *arg;
};

/* Returns true if USER's jobs may run; otherwise WHY names the setting that denies it. */
bool users_may(const struct users_policy *policy, const struct account *user, char *why,
	       size_t size);

#endif
