/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See users.h. */
#include "agent/guest/users.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BLANKS	  ", \t"
#define ENTRY_MAX 256

/*
 * Returns true if USER is in the group.  An unknown group has no members.  DOUBT: the result if the
 * lookup fails.
 */
static bool in_group(const struct users_policy *policy, const struct account *user,
		     const char *name, bool doubt)
{
	gid_t gid;
	int rc = policy->group ? policy->group(policy->arg, name, &gid) : account_group(name, &gid);

	if (rc)
		return rc != -ENOENT && doubt;
	return account_has_group(user, gid);
}

static bool is_named(const struct users_policy *policy, const struct account *user,
		     const char *entry, bool doubt)
{
	char uid[16];

	if (entry[0] == '@')
		return in_group(policy, user, entry + 1, doubt);
	snprintf(uid, sizeof(uid), "%u", (unsigned)user->uid);
	return !strcmp(entry, user->name) || !strcmp(entry, uid);
}

static bool in_list(const struct users_policy *policy, const struct account *user, const char *list,
		    bool doubt)
{
	char entry[ENTRY_MAX];

	for (list += strspn(list, BLANKS); *list; list += strspn(list, BLANKS)) {
		size_t n = strcspn(list, BLANKS);

		if (n < sizeof(entry)) {
			memcpy(entry, list, n);
			entry[n] = 0;
			if (is_named(policy, user, entry, doubt))
				return true;
		}
		list += n;
	}
	return false;
}

bool users_may(const struct users_policy *policy, const struct account *user, char *why,
	       size_t size)
{
	*why = 0;
	if (user->uid == 0) {
		if (!policy->allow_root)
			snprintf(why, size,
				 "jobs of other nodes' root are not let in (allow_root)");
	} else if (in_list(policy, user, policy->deny, true)) {
		snprintf(why, size, "user %.64s is not let in (deny_users)", user->name);
	} else if (policy->allow[strspn(policy->allow, BLANKS)]) {
		if (!in_list(policy, user, policy->allow, false))
			snprintf(why, size, "user %.64s is not among those let in (allow_users)",
				 user->name);
	} else if (user->uid < policy->min_uid) {
		snprintf(why, size, "uid %u is below %u (min_uid)", (unsigned)user->uid,
			 (unsigned)policy->min_uid);
	}
	return !*why;
}
