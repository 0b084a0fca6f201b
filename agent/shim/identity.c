/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The user that the job runs as (functions in child.h). The credential proves uid and gid; the
 * groups come from this machine's database.
 */
#include "agent/shim/child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/account.h"

int identity_lookup(struct identity *identity, struct order *order, struct iocom_err *err)
{
	const char *node = order->spec.node;
	struct account account = order->account;
	int rc = 0;

	*identity = (struct identity){.uid = order->uid, .gid = order->gid};
	if (order->uid == 0 && !order->allow_root)
		return iocom_err_set(
			err, -EACCES,
			"node %s runs no jobs of root; submit as an ordinary user, or set "
			"allow_root = yes in its configuration",
			node);
	if (!account.name)
		rc = account_find(order->uid, &account);
	if (rc == -ENOENT)
		return iocom_err_set(
			err, -EACCES,
			"node %s knows no user with uid %u; give all nodes the same users", node,
			order->uid);
	if (rc)
		return iocom_err_set(err, rc, "node %s cannot look up the groups of uid %u: %s",
				     node, order->uid, strerror(-rc));
	if (order->uid != 0 && !account_has_group(&account, order->gid))
		rc = iocom_err_set(err, -EACCES,
				   "user %s is not a member of group %u on node %s; give all nodes "
				   "the same groups",
				   account.name, order->gid, node);
	identity->groups = account.groups;
	identity->ngroups = account.ngroups;
	identity->name = account.name;
	order->account = (struct account){0};
	return rc;
}

void identity_deinit(struct identity *identity)
{
	free(identity->groups);
	free(identity->name);
	*identity = (struct identity){0};
}
