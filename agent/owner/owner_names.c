/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Names in an owner's lists that nobody has: perhaps a slip, perhaps a user who comes later, so
 * they are told, not refused.
 */
#include "agent/owner/owner_own.h"

#include <stdio.h>
#include <string.h>

#include "agent/base/accounts.h"
#include "user/clock.h"

#define NAMES_WAIT_NS (500 * CLOCK_NS_PER_MS) /* for all names of a list */

void owner_names_unknown(const struct owner_part *part, const char *what, const char *list,
			 void (*warn)(void *arg, const char *text), void *arg)
{
	uint64_t end_ns = clock_boot_ns() + NAMES_WAIT_NS;
	bool denies = strstr(what, "deny") != NULL;
	char name[OWNER_LIST_MAX], text[600];
	int known = 0;

	while (known >= 0 && clock_boot_ns() < end_ns && (list = owner_next(list, name))) {
		bool group = *name == '@';

		known = accounts_exist(part->config.accounts, name);
		if (known)
			continue;
		snprintf(text, sizeof(text), "`%s %s`: node %s knows no %s %s; %s", what, name,
			 part->base->set->name, group ? "group" : "user", name + group,
			 group && denies ? "everybody is denied until there is one"
					 : "the entry is without effect until there is one");
		warn(arg, text);
	}
}
