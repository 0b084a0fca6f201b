/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Replaces agent/base/accounts.c in a guest test, so that no name service is asked.  For one uid
 * the lookup fails.
 */
#ifndef TEST_GUEST_ACCOUNTS_H
#define TEST_GUEST_ACCOUNTS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/accounts.h"

#define ACCOUNTS_SILENT 4000 /* for this uid the name service does not answer */

static const struct {
	uid_t uid;
	const char *name;
} accounts_known[] = {{0, "root"}, {2, "daemon"}, {1000, "anna"}, {1001, "bert"}};

int accounts_new(struct accounts **accounts, struct counters *counters, struct iocom_err *err)
{
	(void)counters;
	(void)err;
	*accounts = NULL;
	return 0;
}

void accounts_free(struct accounts *accounts)
{
	(void)accounts;
}

size_t accounts_count(const struct accounts *accounts)
{
	(void)accounts;
	return 0;
}

int accounts_find(struct accounts *accounts, uid_t uid, struct account *account)
{
	(void)accounts;
	*account = (struct account){.uid = uid, .gid = 100, .ngroups = 1};
	if (uid == ACCOUNTS_SILENT)
		return -EHOSTDOWN;
	for (size_t i = 0; i < sizeof(accounts_known) / sizeof(*accounts_known); i++) {
		if (accounts_known[i].uid != uid)
			continue;
		account->name = strdup(accounts_known[i].name);
		account->groups = calloc(1, sizeof(gid_t));
		if (!account->name || !account->groups)
			abort();
		account->groups[0] = 100;
		return 0;
	}
	return -ENOENT;
}

int accounts_member(void *accounts, const char *name, const struct account *user, bool *stale)
{
	(void)accounts;
	*stale = false;
	if (!strcmp(name, "silent"))
		return -EHOSTDOWN;
	return strcmp(name, "users") ? -ENOENT : account_has_group(user, 100);
}

int accounts_exist(struct accounts *accounts, const char *name)
{
	(void)accounts;
	if (!strcmp(name, "silent") || !strcmp(name, "@silent"))
		return -EHOSTDOWN;
	for (size_t i = 0; i < sizeof(accounts_known) / sizeof(*accounts_known); i++)
		if (!strcmp(name, accounts_known[i].name))
			return 1;
	return !strcmp(name, "@users");
}

void accounts_say(struct accounts *accounts, uid_t uid, char *out, size_t size)
{
	(void)accounts;
	snprintf(out, size, "%u", (unsigned)uid);
}

#endif
