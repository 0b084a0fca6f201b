/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See users.h. */
#include "agent/guest/users.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BLANKS	  ", \t"
#define ENTRY_MAX 256

static int find_member(const struct users_policy *policy, const char *name,
		       const struct account *user, bool *stale)
{
	struct account_group group;
	int rc;

	*stale = false;
	if (policy->member)
		return policy->member(policy->arg, name, user, stale);
	rc = account_group(name, &group);
	if (!rc)
		rc = account_in_group(user, &group);
	account_group_free(&group);
	return rc;
}

static const char *why_in_doubt(int rc)
{
	if (rc == -ENOENT)
		return "this node knows no group of that name";
	if (rc == -EHOSTDOWN)
		return "the name service does not answer who is in it";
	return rc < 0 ? "the name service fails to say who is in it"
		      : "the name service does not answer, and who is in it may have changed";
}

/* Returns true if USER is in the group.  DOUBT gets the reason if that is not certain. */
static bool in_group(const struct users_policy *policy, const struct account *user,
		     const char *name, char *doubt, size_t size)
{
	bool stale;
	int rc = find_member(policy, name, user, &stale);

	if (!*doubt && (rc < 0 || (!rc && (stale || user->stale))))
		snprintf(doubt, size, "the group %.64s: %s", name, why_in_doubt(rc));
	return rc > 0;
}

static bool is_named(const struct users_policy *policy, const struct account *user,
		     const char *entry, char *doubt, size_t size)
{
	char uid[16];

	if (entry[0] == '@')
		return in_group(policy, user, entry + 1, doubt, size);
	snprintf(uid, sizeof(uid), "%u", (unsigned)user->uid);
	return !strcmp(entry, user->name) || !strcmp(entry, uid);
}

bool users_listed(const struct users_policy *policy, const struct account *user, const char *list,
		  char *doubt, size_t size)
{
	char entry[ENTRY_MAX];

	*doubt = 0;
	for (list += strspn(list, BLANKS); *list; list += strspn(list, BLANKS)) {
		size_t n = strcspn(list, BLANKS);

		if (n < sizeof(entry)) {
			memcpy(entry, list, n);
			entry[n] = 0;
			if (is_named(policy, user, entry, doubt, size))
				return true;
		} else if (!*doubt) {
			snprintf(doubt, size, "a name longer than %d bytes", ENTRY_MAX - 1);
		}
		list += n;
	}
	return false;
}

bool users_may(const struct users_policy *policy, const struct account *user, char *why,
	       size_t size)
{
	char doubt[192];

	*why = 0;
	if (user->uid == 0) {
		if (!policy->allow_root)
			snprintf(why, size,
				 "jobs of other nodes' root are not let in (allow_root)");
	} else if (users_listed(policy, user, policy->deny, doubt, sizeof(doubt))) {
		snprintf(why, size, "user %.64s is not let in (deny_users)", user->name);
	} else if (*doubt) {
		snprintf(why, size, "nobody is let in while deny_users has %s", doubt);
	} else if (policy->allow[strspn(policy->allow, BLANKS)]) {
		if (!users_listed(policy, user, policy->allow, doubt, sizeof(doubt)))
			snprintf(why, size, "user %.64s is not among those let in (allow_users)",
				 user->name);
	} else if (user->uid < policy->min_uid) {
		snprintf(why, size, "uid %u is below %u (min_uid)", (unsigned)user->uid,
			 (unsigned)policy->min_uid);
	}
	return !*why;
}
