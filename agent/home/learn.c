/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See learn.h. */
#include "agent/home/learn.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/home/home_own.h"

#define AT_ONCE 32 /* so many of those that wait are learned in one second */

/* A list in the order of the ends. */
struct learn_later {
	struct learn_later *next;
	struct learned_run run;
};

static int learn_write(const struct home *home, const struct learned_run *r, struct iocom_err *err)
{
	const struct profile_origin origin = {
		.input_id = r->input_id,
		.input_mb = r->input_mb,
		.node = r->node,
		.end_s = r->end_s,
	};

	return profile_learn_run(home->profiles, r->uid, r->class_name, &r->run, &origin, err);
}

/* Begins the profiles anew if they are damaged.  Returns 0 or negative errno. */
static int learn_renew(const struct home *home, struct iocom_err *err)
{
	const char *why, *aside;
	int rc = profile_renew_open(home->profiles, err);

	if (rc)
		return rc;
	aside = profile_aside(home->profiles, &why);
	home->base->counters->profiles_renewed += *aside != 0;
	if (*aside)
		log_write(home->base->log, LOG_L_WARNING,
			  "%s; they are kept as %s, and learning begins anew", why, aside);
	return 0;
}

/* Returns 0; -EBUSY: later; another negative errno: it is counted. */
static int learn_try(const struct home *home, const struct learned_run *r)
{
	struct iocom_err err = {0};
	int rc = learn_write(home, r, &err);

	if (rc == -EUCLEAN && !learn_renew(home, &err))
		rc = learn_write(home, r, &err);
	if (!rc || rc == -EBUSY)
		return rc;
	home->base->counters->runs_not_learned++;
	base_journal_failed(home->base, &err);
	return rc;
}

static void learn_put_off(struct home *home, const struct learned_run *r)
{
	struct learn_later **last = &home->later;
	struct learn_later *one = home->nlater < LEARN_LATER_MAX ? calloc(1, sizeof(*one)) : NULL;

	if (!one) {
		home->base->counters->runs_not_learned++;
		return;
	}
	if (!home->nlater)
		log_write(home->base->log, LOG_L_WARNING,
			  "another program keeps the class profiles locked: runs that end now are "
			  "learned later");
	one->run = *r;
	while (*last)
		last = &(*last)->next;
	*last = one;
	home->nlater++;
	home->base->counters->runs_learned_late++;
}

void learn_run(struct home *home, const struct learned_run *r)
{
	if (home->nlater || learn_try(home, r) == -EBUSY)
		learn_put_off(home, r);
}

static void learn_drop_first(struct home *home)
{
	struct learn_later *first = home->later;

	home->later = first->next;
	home->nlater--;
	free(first);
}

void learn_chores(struct home *home)
{
	for (int i = 0; i < AT_ONCE && home->later; i++) {
		if (learn_try(home, &home->later->run) == -EBUSY)
			return;
		learn_drop_first(home);
	}
}

void learn_stop(struct home *home)
{
	while (home->later && learn_try(home, &home->later->run) != -EBUSY)
		learn_drop_first(home);
	home->base->counters->runs_not_learned += home->nlater;
	while (home->later)
		learn_drop_first(home);
}
