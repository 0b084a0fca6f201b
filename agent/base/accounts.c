/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See accounts.h.
 *
 * The cache holds the lookups themselves with their answers.  A lookup that finished too late is
 * cached, too: the next caller finds its answer, however slow the service is.
 */
#include "agent/base/accounts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>

#include "user/clock.h"
#include "agent/base/deadline_thread.h"

#define GROUP_BYTES 256

enum kind { NAME, WHOLE, GROUP, NAMED };

struct lookup {
	struct deadline_task task;
	enum kind kind;
	uid_t uid;
	char group[GROUP_BYTES];      /* or NAMED's name */
	struct account account;	      /* NAME's account, without groups */
	struct account_group members; /* GROUP's */
	int rc;
	uint64_t at_ns; /* CLOCK_BOOTTIME */
};

struct accounts {
	struct deadline_thread *worker;
	struct counters *counters;
	struct lookup *kept[ACCOUNTS_MAX];
	size_t count;
};

static void lookup_free(struct deadline_task *task)
{
	struct lookup *l = (struct lookup *)task;

	account_free(&l->account);
	account_group_free(&l->members);
	free(l);
}

static void look_up(struct deadline_task *task)
{
	struct lookup *l = (struct lookup *)task;

	if (l->kind == GROUP)
		l->rc = account_group(l->group, &l->members);
	else if (l->kind == NAMED)
		l->rc = account_named(l->group, &l->account);
	else if (l->kind == WHOLE)
		l->rc = account_find(l->uid, &l->account);
	else
		l->rc = account_name(l->uid, &l->account);
}

/* Returns true if KNOWN, which may hold more than ASKED wants, answers it. */
static bool answers(const struct lookup *known, const struct lookup *asked)
{
	if (asked->kind >= GROUP || known->kind >= GROUP)
		return known->kind == asked->kind && !strcmp(known->group, asked->group);
	return known->uid == asked->uid && known->kind >= asked->kind;
}

static struct lookup *accounts_find_kept(const struct accounts *s, const struct lookup *asked)
{
	for (size_t i = 0; i < s->count; i++)
		if (answers(s->kept[i], asked))
			return s->kept[i];
	return NULL;
}

static struct lookup *accounts_keep(struct accounts *s, struct deadline_task *task)
{
	struct lookup *l = (struct lookup *)task;
	size_t at = s->count, oldest = 0;

	l->at_ns = clock_boot_ns();
	for (size_t i = 0; i < s->count; i++) {
		if (answers(l, s->kept[i])) /* it holds as much, and is newer */
			at = i;
		if (s->kept[i]->at_ns < s->kept[oldest]->at_ns)
			oldest = i;
	}
	if (at == ACCOUNTS_MAX)
		at = oldest;
	if (at < s->count)
		lookup_free(&s->kept[at]->task);
	else
		s->count++;
	s->kept[at] = l;
	return l;
}

static bool is_younger(const struct lookup *l, unsigned seconds)
{
	return clock_boot_ns() - l->at_ns < seconds * CLOCK_NS_PER_S;
}

/* "No such user" is not cached: the account may be created and send a job at once. */
static bool is_fresh(const struct lookup *l, const struct lookup *asked)
{
	return is_younger(l, ACCOUNTS_FRESH_S) && (!l->rc || asked->kind == NAME);
}

/*
 * Returns the answer to ASKED; NULL: there is none, and the name service hangs.  STALE: it hangs,
 * and the answer is an older one.
 */
static const struct lookup *accounts_ask(struct accounts *s, const struct lookup *asked,
					 bool *stale)
{
	struct deadline_task *late = deadline_late(s->worker);
	struct lookup *known, *l;

	*stale = false;

	if (late)
		accounts_keep(s, late);
	known = accounts_find_kept(s, asked);
	if (known && is_fresh(known, asked))
		return known;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	*l = *asked;
	l->task = (struct deadline_task){.run = look_up, .free = lookup_free};
	if (deadline_run(s->worker, &l->task, ACCOUNTS_WAIT_MS) == 0)
		return accounts_keep(s, &l->task);
	s->counters->names_failures++;
	*stale = true;
	return known && !known->rc && is_younger(known, ACCOUNTS_STALE_S) ? known : NULL;
}

static int accounts_copy(const struct account *from, struct account *to)
{
	size_t bytes = (size_t)from->ngroups * sizeof(gid_t);

	*to = *from;
	to->name = strdup(from->name);
	to->groups = malloc(bytes ? bytes : 1);
	if (!to->name || !to->groups) {
		account_free(to);
		return -ENOMEM;
	}
	if (bytes)
		memcpy(to->groups, from->groups, bytes);
	return 0;
}

int accounts_find(struct accounts *s, uid_t uid, struct account *account)
{
	const struct lookup asked = {.kind = WHOLE, .uid = uid}, *l;
	bool stale;
	int rc;

	l = accounts_ask(s, &asked, &stale);
	*account = (struct account){0};
	if (!l)
		return -EHOSTDOWN;
	rc = l->rc ? l->rc : accounts_copy(&l->account, account);
	if (!rc)
		account->stale = stale;
	return rc;
}

int accounts_member(void *arg, const char *name, const struct account *user, bool *stale)
{
	struct lookup asked = {.kind = GROUP};
	const struct lookup *l;

	*stale = false;
	if (strlen(name) >= sizeof(asked.group))
		return -ENOENT;
	strcpy(asked.group, name);
	l = accounts_ask(arg, &asked, stale);
	if (!l)
		return -EHOSTDOWN;
	return l->rc ? l->rc : account_in_group(user, &l->members);
}

int accounts_exist(struct accounts *s, const char *name)
{
	struct lookup asked = {.kind = *name == '@' ? GROUP : NAMED};
	const struct lookup *l;
	char *end;
	unsigned long uid = strtoul(name, &end, 10);
	bool stale;

	name += *name == '@';
	if (strlen(name) >= sizeof(asked.group))
		return 0;
	strcpy(asked.group, name);
	if (asked.kind == NAMED && isdigit((unsigned char)*name) && !*end) {
		asked.kind = NAME;
		asked.uid = (uid_t)uid;
		if (uid > UINT32_MAX)
			return 0;
	}
	l = accounts_ask(s, &asked, &stale);
	if (!l)
		return -EHOSTDOWN;
	return l->rc == -ENOENT ? 0 : l->rc ? l->rc : 1;
}

void accounts_say(struct accounts *s, uid_t uid, char *out, size_t size)
{
	const struct lookup asked = {.kind = NAME, .uid = uid}, *l;
	bool stale;

	l = accounts_ask(s, &asked, &stale);
	if (l && !l->rc)
		snprintf(out, size, "%s", l->account.name);
	else
		snprintf(out, size, "%u", (unsigned)uid);
}

size_t accounts_count(const struct accounts *s)
{
	return s ? s->count : 0;
}

int accounts_new(struct accounts **out, struct counters *counters, struct iocom_err *err)
{
	struct accounts *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	s->counters = counters;
	rc = deadline_new(&s->worker, err);
	if (rc) {
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void accounts_free(struct accounts *s)
{
	if (!s)
		return;
	deadline_free(s->worker);
	for (size_t i = 0; i < s->count; i++)
		lookup_free(&s->kept[i]->task);
	free(s);
}
