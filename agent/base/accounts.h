/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Looks up users and groups without waiting for a name service (LDAP and others) that does not
 * answer: a thread does the lookup (deadline_thread.h), and each answer is cached for some seconds.
 */
#ifndef IOCOM_ACCOUNTS_H
#define IOCOM_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "user/account.h"
#include "agent/base/counters.h"
#include "iocom/err.h"

#define ACCOUNTS_WAIT_MS 500
#define ACCOUNTS_MAX	 64 /* cached answers; a new one replaces the oldest */
/* How long a cached answer is used, and how long while the name service hangs. */
#define ACCOUNTS_FRESH_S 5
#define ACCOUNTS_STALE_S 60

struct accounts;

/* Borrows COUNTERS.  Returns 0, -ENOMEM, -EAGAIN. */
int accounts_new(struct accounts **accounts, struct counters *counters, struct iocom_err *err);
/* NULL is fine. */
void accounts_free(struct accounts *accounts);
size_t accounts_count(const struct accounts *accounts);
/*
 * Like account_find; -EHOSTDOWN: the name service does not answer.  While it does not, an older
 * answer (ACCOUNTS_STALE_S) is marked as stale.
 */
int accounts_find(struct accounts *accounts, uid_t uid, struct account *account);
/*
 * Returns 1 if USER is in the group NAME, else 0; negative errno: nobody knows, as account_group,
 * and -EHOSTDOWN.  STALE: the name service does not answer now, and did say so before.  ACCOUNTS: a
 * struct accounts (see users_policy).
 */
int accounts_member(void *accounts, const char *name, const struct account *user, bool *stale);
/* Returns 1 if there is a user of this name or uid, or a @group; else 0; negative errno: nobody
 * knows. */
int accounts_exist(struct accounts *accounts, const char *name);
/* Writes the user's name for people to read, or the uid where there is no name or no answer. */
void accounts_say(struct accounts *accounts, uid_t uid, char *out, size_t size);

#endif
