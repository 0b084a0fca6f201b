/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Decides which users' jobs of other nodes may run here, in this order:
 *
 *   root                         as allow_root says
 *   in deny_users                no
 *   allow_users is not empty     only users in it
 *   uid below min_uid            no: service accounts
 *
 * A list holds names, uids and @groups, separated by commas or blanks.  A user is in a group if the
 * user's groups or the group's members say so.  If that is in doubt (no such group, the name
 * service fails or does not answer, its answer may be out of date), a group in deny_users denies
 * everybody; one in allow_users admits only those that an answer, perhaps an older one, calls
 * members.
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
	/* Looks up members like accounts_member; NULL: account_group knows them. */
	int (*member)(void *arg, const char *group, const struct account *user, bool *stale);
	void *arg;
};

/* Returns true if USER's jobs may run; otherwise WHY names the setting that denies it. */
bool users_may(const struct users_policy *policy, const struct account *user, char *why,
	       size_t size);

/*
 * Returns true if USER is in LIST; of the policy only `member` counts.  DOUBT gets the first reason
 * why the result may be wrong, or "".
 */
bool users_listed(const struct users_policy *policy, const struct account *user, const char *list,
		  char *doubt, size_t size);

#endif
