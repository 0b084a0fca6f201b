/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who the job runs as (functions in child.h).  The credential proves uid and
 * gid; the groups are those of this machine's database.
 */
#include "child.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The user's name (malloc'ed) and primary group.  0, -ENOENT, -ENOMEM, -EIO. */
static int find_user(uid_t uid, char **name, gid_t *primary)
{
	size_t size = 4096;
	struct passwd entry, *found = NULL;
	char *room = NULL;
	int rc;

	do {
		char *bigger = realloc(room, size *= 2);

		if (!bigger) {
			free(room);
			return -ENOMEM;
		}
		room = bigger;
		rc = getpwuid_r(uid, &entry, room, size, &found);
	} while (rc == ERANGE && size < (1u << 20));
	if (found) {
		*primary = entry.pw_gid;
		*name = strdup(entry.pw_name);
	}
	free(room);
	if (!found)
		return rc && rc != ENOENT ? -EIO : -ENOENT;
	return *name ? 0 : -ENOMEM;
}

static int find_groups(struct identity *identity, const char *name, gid_t primary)
{
	int room = 32;

	for (;;) {
		gid_t *bigger = realloc(identity->groups, (size_t)room * sizeof(gid_t));
		int count = room;

		if (!bigger)
			return -ENOMEM;
		identity->groups = bigger;
		if (getgrouplist(name, primary, identity->groups, &count) >= 0) {
			identity->ngroups = count;
			return 0;
		}
		if (count <= room || count > 65536)
			return -E2BIG;
		room = count;
	}
}

static int member(const struct identity *identity)
{
	for (int i = 0; i < identity->ngroups; i++)
		if (identity->groups[i] == identity->gid)
			return 1;
	return 0;
}

int identity_lookup(struct identity *identity, const struct order *order, struct iocom_err *err)
{
	const char *node = order->spec.node;
	char *name = NULL;
	gid_t primary = 0;
	int rc;

	*identity = (struct identity){.uid = order->uid, .gid = order->gid};
	if (order->uid == 0 && !order->allow_root)
		return iocom_err_set(
			err, -EACCES,
			"node %s runs no jobs of root; submit as an ordinary user, or set "
			"allow_root = yes in its configuration",
			node);
	rc = find_user(order->uid, &name, &primary);
	if (rc == -ENOENT)
		return iocom_err_set(
			err, -EACCES,
			"node %s knows no user with uid %u; give all nodes the same users", node,
			order->uid);
	if (!rc)
		rc = find_groups(identity, name, primary);
	if (rc)
		iocom_err_set(err, rc, "node %s cannot look up the groups of uid %u: %s", node,
			      order->uid, strerror(-rc));
	else if (order->uid != 0 && !member(identity))
		rc = iocom_err_set(err, -EACCES,
				   "user %s is not a member of group %u on node %s; give all nodes "
				   "the same groups",
				   name, order->gid, node);
	free(name);
	return rc;
}

void identity_deinit(struct identity *identity)
{
	free(identity->groups);
	*identity = (struct identity){0};
}
