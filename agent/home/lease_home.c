/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Leases at the home node; see leases.h. */
#include "agent/jobs/leases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "user/clock.h"
#include "agent/guest/guest_attach.h"

#define ASK_AGAIN_MS 1000
#define FOLLOW_MS    10000 /* whoever keeps a detached job asks each 3 s */

struct lease_held *lease_find(const struct agent *a, const char *job)
{
	struct lease_held *l = a->leases;

	while (l && strcmp(l->job, job))
		l = l->next;
	return l;
}

/* SECRET: of its shim, or NULL. */
static int hold(struct agent *a, const char *job, uint32_t lease_ms, const uint8_t *secret)
{
	struct lease_held *l = lease_find(a, job);

	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			return -ENOMEM;
		snprintf(l->job, sizeof(l->job), "%s", job);
		l->next = a->leases;
		a->leases = l;
		a->nleases++;
	}
	l->lease_ms = lease_ms;
	l->renews = secret != NULL;
	if (secret)
		memcpy(l->secret, secret, sizeof(l->secret));
	l->until_ns = clock_boot_ns() + lease_ms * CLOCK_NS_PER_MS;
	return 0;
}

void lease_ended(struct agent *a, const char *job)
{
	for (struct lease_held **p = &a->leases; *p; p = &(*p)->next) {
		struct lease_held *l = *p;

		if (strcmp(l->job, job))
			continue;
		*p = l->next;
		a->nleases--;
		explicit_bzero(l->secret, sizeof(l->secret));
		free(l);
		return;
	}
}

void lease_unload(struct agent *a)
{
	while (a->leases)
		lease_ended(a, a->leases->job);
}

static uint64_t free_ns(const struct lease_held *l)
{
	return l->until_ns + LEASE_MARGIN_MS(l->lease_ms) * CLOCK_NS_PER_MS;
}

void lease_expire(struct agent *a)
{
	uint64_t now = clock_boot_ns();

	for (struct lease_held *l = a->leases, *next; l; l = next) {
		next = l->next;
		if (now < free_ns(l))
			continue;
		a->counters.leases_lost++;
		log_write(&a->log, LOG_L_WARNING,
			  "the lease of job %s is over: not renewed for %u s", l->job,
			  l->lease_ms / 1000);
		lease_ended(a, l->job);
	}
}

struct loading {
	struct agent *agent;
	int rc;
};

static void load_one(void *arg, const char *job, uint32_t lease_ms, const uint8_t *secret)
{
	struct loading *loading = arg;

	if (hold(loading->agent, job, lease_ms, secret))
		loading->rc = -ENOMEM;
}

int lease_load(struct agent *a, struct iocom_err *err)
{
	struct loading loading = {.agent = a};
	int rc = journal_leases(a->journal, a->set.name, load_one, &loading, err);

	/* One that is not in memory counts as over: none may be missing. */
	return !rc && loading.rc ? iocom_err_set(err, loading.rc, "out of memory") : rc;
}

int lease_begin(struct agent *a, struct job_order *order, const char *first, uint32_t number,
		uint32_t restarts, const char *lost, struct iocom_err *err)
{
	const char *job = order->job;
	uint32_t lease_ms = (uint32_t)(a->set.lease_s * 1000);

	a->counters.restartable_refused_full += a->nleases >= LEASES_MAX;
	if (a->nleases >= LEASES_MAX)
		return iocom_err_set(err, -EAGAIN, "too many restartable jobs at once (%d)",
				     LEASES_MAX);
	/* From here on nobody renews it, whatever becomes of the next. */
	if (lost[0])
		lease_ended(a, lost);
	if (getrandom(order->secret, sizeof(order->secret), 0) != sizeof(order->secret))
		abort(); /* the kernel has random bytes once it has booted */
	order->renews = true;
	return journal_lease_begin(a->journal, job, first, number, restarts, lease_ms,
				   order->secret, err);
}

int lease_fence(struct agent *a, const char *lost, const char *job, struct iocom_err *err)
{
	int rc = journal_lease_fence(a->journal, lost, job, clock_real_ns(), err);

	if (rc)
		return rc;
	a->counters.jobs_restarted++;
	log_write(&a->log, LOG_L_WARNING, "job %s is given up; it is run again as %s", lost, job);
	wait_ended(a, lost);
	return 0;
}

int lease_placed(struct agent *a, const struct job_order *order)
{
	return hold(a, order->job, order->lease_ms, order->renews ? order->secret : NULL);
}

int lease_renew(struct agent *a, const char *from, const char *job, struct iocom_err *err)
{
	struct lease_held *l = lease_find(a, job);
	char node[IOCOM_NAME_MAX], class_name[64];
	bool ended;
	uid_t uid;
	int rc;

	if (l) {
		rc = journal_home_get(a->journal, job, node, &uid, class_name, &ended, err);
		if (rc && rc != -ENOENT)
			return rc;
		if (!rc && !ended && !strcmp(node, from)) {
			l->until_ns = clock_boot_ns() + l->lease_ms * CLOCK_NS_PER_MS;
			a->counters.leases_renewed++;
			return 0;
		}
	}
	a->counters.leases_refused++;
	return iocom_err_set(err, -ESTALE,
			     "job %s has no lease at node %s: it is over, or was given to another",
			     job, from);
}

/* What ended by itself, by a signal, or could not be executed has its own end. */
static bool may_restart(const struct journal_lease *lost)
{
	return lost->exit_kind == 3;
}

bool lease_may_follow(struct agent *a, const char *job)
{
	struct journal_lease lost;
	uint64_t now = clock_real_ns();

	return !journal_lease_get(a->journal, job, &lost, NULL) && lost.ended && !lost.next[0] &&
	       may_restart(&lost) && lost.attempt <= lost.restarts && lost.end_ns <= now &&
	       now - lost.end_ns < FOLLOW_MS * CLOCK_NS_PER_MS;
}

int lease_again(struct agent *a, uid_t uid, const char *job, struct lease_answer *out,
		struct iocom_err *err)
{
	struct journal_lease *lost = &out->lost;
	const struct lease_held *l = lease_find(a, job);
	int rc = journal_lease_get(a->journal, job, lost, err);
	uint64_t now = clock_boot_ns();

	if (rc && rc != -ENOENT)
		return rc;
	if (rc || lost->uid != uid)
		return iocom_err_set(err, -ENOENT, "no restartable job of yours named %s", job);
	if (lost->next[0])
		return iocom_err_set(err, -ESTALE, "job %s was run again already, as %s", job,
				     lost->next);
	out->attempt = lost->attempt + 1;
	out->wait_ms = ASK_AGAIN_MS;
	if (lost->ended) {
		out->what = may_restart(lost) ? LEASE_AGAIN : LEASE_ENDED;
	} else if (!strcmp(lost->node, a->set.name) || !lost->node[0]) {
		out->what = LEASE_WAIT; /* here: we shall know how it ends */
	} else if (l && now < free_ns(l)) {
		out->what = LEASE_WAIT;
		if (free_ns(l) - now < ASK_AGAIN_MS * CLOCK_NS_PER_MS)
			out->wait_ms = (free_ns(l) - now) / CLOCK_NS_PER_MS + 1;
	} else {
		out->what = LEASE_AGAIN;
	}
	if (out->what == LEASE_AGAIN && lost->attempt > lost->restarts)
		return iocom_err_set(err, -EDQUOT,
				     "job %s was lost at node %s, and it was attempt %u: not run "
				     "again (--restarts %u)",
				     job, lost->node, lost->attempt, lost->restarts);
	return 0;
}

json_t *lease_answer_json(const struct lease_answer *answer)
{
	const struct journal_lease *lost = &answer->lost;

	if (answer->what == LEASE_WAIT)
		return json_pack("{s:I}", "wait_ms", (json_int_t)answer->wait_ms);
	return json_pack("{s:{s:s,s:i,s:i}}", "ended", "state", lost->state, "kind",
			 lost->exit_kind, "value", lost->exit_value);
}

json_t *lease_silent_json(const struct agent *a, const char *node)
{
	return json_pack("{s:i,s:s,s:I}", "wait_ms", ASK_AGAIN_MS, "silent", node, "lease_ms",
			 (json_int_t)a->set.lease_s * 1000);
}
