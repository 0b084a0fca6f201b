/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Users and groups, asked without waiting for a name service (LDAP ...) that does not
 * answer: a thread asks (deadline_thread.h), and what was said is kept for some seconds.
 */
#ifndef IOCOM_ACCOUNTS_H
#define IOCOM_ACCOUNTS_H

#include <stddef.h>
#include <sys/types.h>

#include "user/account.h"
#include "agent/base/counters.h"
#include "iocom/err.h"

#define ACCOUNTS_WAIT_MS 500
#define ACCOUNTS_MAX	 64 /* kept; the oldest makes room */
/* What is kept is used so long; while the name service hangs, this long. */
#define ACCOUNTS_FRESH_S 5
#define ACCOUNTS_STALE_S 60

struct accounts;

/* COUNTERS: borrowed.  0, -ENOMEM, -EAGAIN. */
int accounts_new(struct accounts **accounts, struct counters *counters, struct iocom_err *err);
/* NULL is fine. */
void accounts_free(struct accounts *accounts);
size_t accounts_count(const struct accounts *accounts);
/* As account_find; -EHOSTDOWN: the name service does not answer. */
int accounts_find(struct accounts *accounts, uid_t uid, struct account *account);
/* As account_group; likewise.  ACCOUNTS: a struct accounts (see users_policy). */
int accounts_group(void *accounts, const char *name, gid_t *gid);
/* For people: the user's name, or where there is none or no answer his number. */
void accounts_say(struct accounts *accounts, uid_t uid, char *out, size_t size);

#endif
