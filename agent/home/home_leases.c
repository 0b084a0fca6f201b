/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Leases at the home node; see leases.h. */
#include "agent/home/home_leases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/places.h"
#include "agent/home/home_move.h"
#include "user/clock.h"

#define ASK_AGAIN_MS 1000
#define FOLLOW_MS    10000 /* the process that keeps a detached job asks every 3 s */

struct lease_held *lease_find(const struct home *home, const char *job)
{
	struct lease_held *l = home->leases;

	while (l && strcmp(l->job, job))
		l = l->next;
	return l;
}

/* SECRET is the secret of the job's shim, or NULL. */
static int hold(struct home *home, const char *job, uid_t uid, uint32_t lease_ms,
		const uint8_t *secret)
{
	struct lease_held *l = lease_find(home, job);

	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			return -ENOMEM;
		snprintf(l->job, sizeof(l->job), "%s", job);
		l->next = home->leases;
		home->leases = l;
		home->nleases++;
	}
	l->uid = uid;
	l->lease_ms = lease_ms;
	l->renews = secret != NULL;
	if (secret)
		memcpy(l->secret, secret, sizeof(l->secret));
	l->until_ns = loop_boot_ns(home->base->loop) + lease_ms * CLOCK_NS_PER_MS;
	return 0;
}

void lease_ended(struct home *home, const char *job)
{
	for (struct lease_held **p = &home->leases; *p; p = &(*p)->next) {
		struct lease_held *l = *p;

		if (strcmp(l->job, job))
			continue;
		*p = l->next;
		home->nleases--;
		explicit_bzero(l->secret, sizeof(l->secret));
		free(l);
		return;
	}
}

void lease_unload(struct home *home)
{
	while (home->leases)
		lease_ended(home, home->leases->job);
}

static uint64_t free_ns(const struct lease_held *l)
{
	return l->until_ns + LEASE_MARGIN_MS(l->lease_ms) * CLOCK_NS_PER_MS;
}

void lease_expire(struct home *home)
{
	uint64_t now = loop_boot_ns(home->base->loop);
	char job[SPEC_JOB_MAX];

	for (struct lease_held *l = home->leases, *next; l; l = next) {
		next = l->next;
		if (now < free_ns(l))
			continue;
		memcpy(job, l->job, sizeof(job));
		/* Its source is lost; if its target has it whole, it goes on there with a new one.
		 */
		if (home_move_saves(home, job, true))
			continue;
		home->base->counters->leases_lost++;
		log_write(home->base->log, LOG_L_WARNING,
			  "the lease of job %s is over: not renewed for %u s", l->job,
			  l->lease_ms / 1000);
		lease_ended(home, job);
		home_move_lost(home, job);
	}
}

struct loading {
	struct home *home;
	int rc;
};

static void load_one(void *arg, const char *job, uid_t uid, uint32_t lease_ms,
		     const uint8_t *secret)
{
	struct loading *loading = arg;

	if (hold(loading->home, job, uid, lease_ms, secret))
		loading->rc = -ENOMEM;
}

int lease_load(struct home *home, struct iocom_err *err)
{
	struct loading loading = {.home = home};
	int rc = journal_leases(home->journal, home->base->set->name, load_one, &loading, err);

	/* A lease that is not in memory counts as over, so none may be missing. */
	return !rc && loading.rc ? iocom_err_set(err, loading.rc, "out of memory") : rc;
}

/* The next attempt takes the place of LOST. */
static int lease_room(const struct home *home, uid_t uid, const char *lost, struct iocom_err *err)
{
	static const struct places places = {
		.what = "restartable jobs at other nodes",
		.limit = "restartable_jobs",
		.one = "restartable_jobs",
		.max = LEASES_MAX,
		.of_root = LEASES_OF_ROOT,
	};
	size_t used = 0, own = 0;

	for (const struct lease_held *l = home->leases; l; l = l->next) {
		if (!strcmp(l->job, lost))
			continue;
		used++;
		own += l->uid == uid;
	}
	return places_ask(&places, uid, used, own, home->base->counters, err);
}

int lease_begin(struct home *home, struct job_order *order, const char *first, uint32_t number,
		uint32_t restarts, const char *lost, struct iocom_err *err)
{
	const char *job = order->job;
	uint32_t lease_ms = (uint32_t)(home->base->set->lease_s * 1000);

	if (lease_room(home, order->uid, lost, err)) {
		home->base->counters->restartable_refused_full++;
		return -EAGAIN;
	}
	/* From here on LOST is never renewed, whatever becomes of the next attempt. */
	if (lost[0]) {
		lease_ended(home, lost);
		home_move_lost(home, lost);
	}
	secret_new(order->secret);
	order->keyed = order->renews = true;
	return journal_lease_begin(home->journal, job, first, number, restarts, lease_ms,
				   order->secret, err);
}

int lease_fence(struct home *home, const char *lost, const char *job, struct iocom_err *err)
{
	int rc = journal_lease_fence(home->journal, lost, job, loop_real_ns(home->base->loop), err);

	if (rc)
		return rc;
	lease_ended(home, lost);
	home->base->counters->jobs_restarted++;
	log_write(home->base->log, LOG_L_WARNING, "gave up job %s; it runs again as %s", lost, job);
	home_tell_ended(home, lost);
	return 0;
}

int lease_placed(struct home *home, const struct job_order *order)
{
	return hold(home, order->job, order->uid, order->lease_ms,
		    order->renews ? order->secret : NULL);
}

int lease_may_move(struct home *home, struct job_order *order, const char *node,
		   struct iocom_err *err)
{
	bool own = !strcmp(node, home->base->set->name);
	struct journal_lease lease;
	int rc = journal_lease_get(home->journal, order->job, &lease, err);

	order->renews = !rc && !own; /* whatever its source says */
	order->lease_ms = order->renews ? lease.lease_ms : 0;
	if (rc == -ENOENT) {
		err->text[0] = 0;
		return 0;
	}
	if (!rc && !own && !lease_find(home, order->job))
		rc = lease_room(home, lease.uid, "", err);
	return rc;
}

int lease_hand_on(struct home *home, const char *job, const char *node,
		  const uint8_t secret[RENEWAL_SECRET], struct iocom_err *err)
{
	uint8_t nobodys[SECRET_BYTES];
	struct journal_lease lease;
	int rc = journal_lease_get(home->journal, job, &lease, err);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	secret_new(nobodys);
	rc = journal_lease_hand_on(home->journal, job, secret ? secret : nobodys, err);
	if (rc)
		return rc;
	lease_ended(home, job);
	if (!strcmp(node, home->base->set->name))
		return 0; /* it needs none here */
	rc = hold(home, job, lease.uid, lease.lease_ms, secret);
	return rc ? iocom_err_set(err, rc, "out of memory") : 0;
}

bool lease_is_lost(struct home *home, const char *job, const char *node)
{
	struct journal_lease lease;

	int rc = journal_lease_get(home->journal, job, &lease, NULL);

	if (rc)
		return rc != -ENOENT;
	return lease.ended || lease.next[0] ||
	       (strcmp(node, home->base->set->name) != 0 && !lease_find(home, job));
}

int lease_renew(struct home *home, const char *from, const char *job, struct iocom_err *err)
{
	struct lease_held *l = lease_find(home, job);
	char node[IOCOM_NAME_MAX], class_name[64];
	bool ended;
	uid_t uid;
	int rc;

	/* What it holds may still be needed: it hears of that, not of the lease. */
	if (home_move_leaves(home, job, from))
		return iocom_err_set(err, -EAGAIN, "job %s is to leave node %s", job, from);
	if (l) {
		rc = journal_home_get(home->journal, job, node, &uid, class_name, &ended, err);
		if (rc && rc != -ENOENT)
			return rc;
		if (!rc && !ended && !strcmp(node, from)) {
			l->until_ns =
				loop_boot_ns(home->base->loop) + l->lease_ms * CLOCK_NS_PER_MS;
			home->base->counters->leases_renewed++;
			return 0;
		}
	}
	home->base->counters->leases_refused++;
	return iocom_err_set(err, -ESTALE,
			     "job %s has no lease at node %s: it is over, or was given to another",
			     job, from);
}

/* A job that exited, died of a signal or could not be executed has ended for good. */
static bool may_restart(const struct journal_lease *lost)
{
	return lost->exit_kind == 3;
}

bool home_may_follow(const struct home *home, const char *job)
{
	struct journal_lease lost;
	uint64_t now = loop_real_ns(home->base->loop);

	return !journal_lease_get(home->journal, job, &lost, NULL) && lost.ended && !lost.next[0] &&
	       may_restart(&lost) && lost.attempt <= lost.restarts && lost.end_ns <= now &&
	       now - lost.end_ns < FOLLOW_MS * CLOCK_NS_PER_MS;
}

int lease_again(struct home *home, uid_t uid, const char *job, struct lease_answer *out,
		struct iocom_err *err)
{
	struct journal_lease *lost = &out->lost;
	const struct lease_held *l = lease_find(home, job);
	int rc = journal_lease_get(home->journal, job, lost, err);
	uint64_t now = loop_boot_ns(home->base->loop);

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
	} else if (!strcmp(lost->node, home->base->set->name) || !lost->node[0]) {
		out->what = LEASE_WAIT; /* it runs here: we shall learn how it ends */
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
	struct placement_lost out = {.silent = "", .state = ""};

	if (answer->what == LEASE_WAIT) {
		out.wait_ms = answer->wait_ms;
	} else {
		out.state = lost->state;
		out.kind = (uint64_t)lost->exit_kind;
		out.value = (uint64_t)lost->exit_value;
	}
	return placement_lost_json(&out);
}

json_t *lease_silent_json(const struct home *home, const char *node)
{
	const struct placement_lost out = {
		.wait_ms = ASK_AGAIN_MS,
		.silent = node,
		.lease_ms = home->base->set->lease_s * 1000ull,
		.state = "",
	};

	return placement_lost_json(&out);
}
