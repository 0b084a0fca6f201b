/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See users.h. */
#include "users.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS	   ", \t"
#define ENTRY_MAX  256
#define GROUP_ROOM 65536

/* A group that this machine does not know has no members. */
static bool in_group(const struct users_one *one, const char *name)
{
	struct group entry, *found = NULL;
	char *room = malloc(GROUP_ROOM);
	bool in = false;

	if (room && !getgrnam_r(name, &entry, room, GROUP_ROOM, &found) && found)
		for (int i = 0; i < one->ngroups && !in; i++)
			in = one->groups[i] == found->gr_gid;
	free(room);
	return in;
}

static bool is_named(const struct users_one *one, const char *entry)
{
	char uid[16];

	if (entry[0] == '@')
		return in_group(one, entry + 1);
	snprintf(uid, sizeof(uid), "%u", (unsigned)one->uid);
	return !strcmp(entry, one->name) || !strcmp(entry, uid);
}

static bool in_list(const struct users_one *one, const char *list)
{
	char entry[ENTRY_MAX];

	for (list += strspn(list, BLANKS); *list; list += strspn(list, BLANKS)) {
		size_t n = strcspn(list, BLANKS);

		if (n < sizeof(entry)) {
			memcpy(entry, list, n);
			entry[n] = 0;
			if (is_named(one, entry))
				return true;
		}
		list += n;
	}
	return false;
}

bool users_may(const struct users_policy *policy, const struct users_one *one, char *why,
	       size_t size)
{
	*why = 0;
	if (one->uid == 0) {
		if (!policy->allow_root)
			snprintf(why, size,
				 "jobs of root of other nodes are not let in "
				 "(allow_root)");
	} else if (in_list(one, policy->deny)) {
		snprintf(why, size, "user %.64s is not let in (deny_users)", one->name);
	} else if (policy->allow[strspn(policy->allow, BLANKS)]) {
		if (!in_list(one, policy->allow))
			snprintf(why, size, "user %.64s is not among those let in (allow_users)",
				 one->name);
	} else if (one->uid < policy->min_uid) {
		snprintf(why, size, "uid %u is below %u (min_uid)", (unsigned)one->uid,
			 (unsigned)policy->min_uid);
	}
	return !*why;
}
