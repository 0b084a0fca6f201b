/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See tickets.h. */
#include "agent/guest/tickets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/places.h"

static void ticket_erase(struct ticket *t)
{
	explicit_bzero(t, sizeof(*t));
}

/* Returns true if T is good; erases it if its time is over. */
static bool ticket_lives(struct ticket *t, uint64_t now_ns)
{
	if (*t->name && now_ns >= t->until_ns)
		ticket_erase(t);
	return *t->name != 0;
}

struct ticket *tickets_new(struct tickets *tickets, const char *job, uid_t uid, uint64_t now_ns,
			   struct counters *counters, struct iocom_err *err)
{
	static const struct places places = {
		.what = "clients about to attach",
		.limit = "tickets",
		.one = "tickets",
		.max = TICKETS_MAX,
		.of_root = TICKETS_OF_ROOT,
	};
	struct ticket *found = NULL;
	size_t used = 0, own = 0;

	for (size_t i = 0; i < TICKETS_MAX; i++) {
		struct ticket *t = &tickets->all[i];

		if (ticket_lives(t, now_ns)) {
			own += t->uid == uid;
			used++;
		} else if (!found) {
			found = t;
		}
	}
	if (places_ask(&places, uid, used, own, counters, err) || !found) {
		counters->tickets_refused++;
		return NULL;
	}
	secret_ticket(found->name);
	snprintf(found->job, sizeof(found->job), "%s", job);
	found->uid = uid;
	found->until_ns = now_ns + TICKET_NS;
	return found;
}

static struct ticket *tickets_get(struct tickets *tickets, const char *name, const char *job,
				  uint64_t now_ns)
{
	for (size_t i = 0; *name && i < TICKETS_MAX; i++) {
		struct ticket *t = &tickets->all[i];

		if (ticket_lives(t, now_ns) && !strcmp(t->name, name) && !strcmp(t->job, job))
			return t;
	}
	return NULL;
}

const struct ticket *tickets_find(struct tickets *tickets, const char *name, const char *job,
				  uint64_t now_ns)
{
	return tickets_get(tickets, name, job, now_ns);
}

int tickets_use(struct tickets *tickets, const char *name, const char *job, uid_t uid,
		uint64_t now_ns, struct iocom_err *err)
{
	struct ticket *t = tickets_get(tickets, name, job, now_ns);

	if (!t || t->uid != uid)
		return iocom_err_set(err, -EACCES,
				     "the ticket to attach to job %s was used, is older than %d s, "
				     "or is another user's; try again",
				     job, (int)(TICKET_NS / 1000000000ull));
	ticket_erase(t);
	return 0;
}

size_t tickets_count(struct tickets *tickets, uint64_t now_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < TICKETS_MAX; i++)
		n += ticket_lives(&tickets->all[i], now_ns);
	return n;
}

void tickets_erase(struct tickets *tickets)
{
	explicit_bzero(tickets, sizeof(*tickets));
}
