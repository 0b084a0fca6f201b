/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See account.h. */
#include "user/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"

#define ROOM_FIRST  4096
#define ROOM_MAX    (1u << 20)
#define GROUPS_MOST 65536

/* Doubles *ROOM. Returns false if it is large enough for any entry or memory is out. */
static bool more_room(char **room, size_t *size)
{
	return *size < ROOM_MAX && !array_reserve(*room, *size, *size + 1, ROOM_FIRST);
}

/* By NAME; NULL: by the uid of ACCOUNT. */
static int find_user(const char *name, struct account *account)
{
	struct passwd entry, *found = NULL;
	char *room = NULL;
	size_t size = 0;
	int rc = ERANGE;

	while (rc == ERANGE && more_room(&room, &size))
		rc = name ? getpwnam_r(name, &entry, room, size, &found)
			  : getpwuid_r(account->uid, &entry, room, size, &found);
	if (found) {
		account->uid = entry.pw_uid;
		account->gid = entry.pw_gid;
		account->name = strdup(entry.pw_name);
	}
	free(room);
	if (!found)
		return rc && rc != ENOENT ? -EIO : -ENOENT;
	return account->name ? 0 : -ENOMEM;
}

static int find_groups(struct account *account)
{
	int room = 32;

	for (;;) {
		gid_t *bigger = realloc(account->groups, (size_t)room * sizeof(gid_t));
		int count = room;

		if (!bigger)
			return -ENOMEM;
		account->groups = bigger;
		if (getgrouplist(account->name, account->gid, account->groups, &count) >= 0) {
			account->ngroups = count;
			return 0;
		}
		if (count <= room || count > GROUPS_MOST)
			return -E2BIG;
		room = count;
	}
}

int account_name(uid_t uid, struct account *account)
{
	int rc;

	*account = (struct account){.uid = uid};
	rc = find_user(NULL, account);
	if (rc)
		account_free(account);
	return rc;
}

int account_named(const char *name, struct account *account)
{
	int rc;

	*account = (struct account){0};
	rc = find_user(name, account);
	if (rc)
		account_free(account);
	return rc;
}

int account_find(uid_t uid, struct account *account)
{
	int rc = account_name(uid, account);

	if (!rc)
		rc = find_groups(account);
	if (rc)
		account_free(account);
	return rc;
}

void account_free(struct account *account)
{
	free(account->name);
	free(account->groups);
	*account = (struct account){0};
}

bool account_has_group(const struct account *account, gid_t gid)
{
	for (int i = 0; i < account->ngroups; i++)
		if (account->groups[i] == gid)
			return true;
	return false;
}

static int take_members(const struct group *entry, struct account_group *group)
{
	char *at;

	for (char **name = entry->gr_mem; name && *name; name++)
		group->bytes += strlen(*name) + 1;
	group->members = malloc(group->bytes ? group->bytes : 1);
	if (!group->members)
		return -ENOMEM;
	at = group->members;
	for (char **name = entry->gr_mem; name && *name; name++)
		at = stpcpy(at, *name) + 1;
	return 0;
}

int account_group(const char *name, struct account_group *group)
{
	struct group entry, *found = NULL;
	char *room = NULL;
	size_t size = 0;
	int rc = ERANGE;

	*group = (struct account_group){0};
	while (rc == ERANGE && more_room(&room, &size))
		rc = getgrnam_r(name, &entry, room, size, &found);
	if (found) {
		group->gid = entry.gr_gid;
		rc = take_members(&entry, group);
	} else {
		rc = rc && rc != ENOENT ? -EIO : -ENOENT;
	}
	free(room);
	if (rc)
		account_group_free(group);
	return rc;
}

void account_group_free(struct account_group *group)
{
	free(group->members);
	*group = (struct account_group){0};
}

bool account_in_group(const struct account *account, const struct account_group *group)
{
	const char *name = group->members;

	if (account_has_group(account, group->gid))
		return true;
	for (; name < group->members + group->bytes; name += strlen(name) + 1)
		if (!strcmp(name, account->name))
			return true;
	return false;
}
