/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How a job gets a place at its target: admission.c judges it, paths.c checks its paths, and then
 * it holds a place until its client comes, at most JOBS_LEASE_NS.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/base/accounts.h"
#include "agent/base/loop_share.h"
#include "agent/base/places.h"
#include "agent/guest/admission.h"
#include "agent/guest/guest_own.h"
#include "user/clock.h"
#include "agent/guest/paths.h"

static void make_nonce(char out[SPEC_NONCE_MAX])
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		abort(); /* cannot fail: the kernel has random bytes once it has booted */
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

void guest_admit_refuse(struct peer_grant *g, const char *reason, const char *text)
{
	g->granted = false;
	snprintf(g->reason, sizeof(g->reason), "%s", reason);
	snprintf(g->text, sizeof(g->text), "%.250s", text);
}

static void lease(struct guest *guest, const struct job_order *order, struct peer_grant *g)
{
	struct job *job = jobs_add(&guest->jobs, order);

	if (!job) {
		guest_admit_refuse(g, "full", strerror(ENOMEM));
		return;
	}
	job->guest = guest;
	/* A client of another node may attach to a job of this node, too. */
	if (!job->order.keyed)
		secret_new(job->order.secret);
	job->order.keyed = true;
	make_nonce(job->nonce);
	job->lease_until_ns = loop_boot_ns(guest->base->loop) + JOBS_LEASE_NS;
	/* The lease of a job that moves here begins when it may run (guest_lease.c). */
	if (!order->move)
		job->lease.until_ns =
			loop_boot_ns(guest->base->loop) + order->lease_ms * CLOCK_NS_PER_MS;
	g->granted = true;
	strcpy(g->nonce, job->nonce);
}

/* Asks for a place among UID's OWN of USED jobs. */
static int ask_among(struct guest *guest, const char *what, uid_t uid, size_t used, size_t own,
		     struct iocom_err *err)
{
	const struct places places = {
		.what = what,
		.limit = "jobs",
		.one = "user_jobs_max",
		.max = JOBS_MAX,
		.of_root = JOBS_OF_ROOT,
		.of_one = guest->base->set->user_jobs_max,
	};

	return places_ask(&places, uid, used, own, guest->base->counters, err);
}

/*
 * Ended jobs whose shims still serve clients that do not read count like running ones: each is a
 * root process.  Most have gone since the last count.
 */
static int ask_leaving(struct guest *guest, uid_t uid, struct iocom_err *err)
{
	size_t all, own = guest_leaving_of(guest, uid, &all);

	if (own) {
		guest_forget_left(guest);
		own = guest_leaving_of(guest, uid, &all);
	}
	return ask_among(guest, "jobs there that are over and whose clients do not read", uid, all,
			 own, err);
}

/* Returns true if there is a place (places.h). */
static bool has_place(struct guest *guest, const struct job_order *order, struct peer_grant *g)
{
	struct iocom_err err = {0};
	int rc = ask_among(guest, "jobs there", order->uid, guest->jobs.count,
			   jobs_of(&guest->jobs, order->uid), &err);

	if (!rc)
		rc = ask_leaving(guest, order->uid, &err);
	if (!rc)
		return true;
	guest->base->counters->jobs_refused_limit += rc == -EDQUOT;
	guest_admit_refuse(g, rc == -EDQUOT ? "user-limit" : "full", err.text);
	return false;
}

/* Returns true if there are slots for the tasks of a gang's part, or it is none. */
static bool has_slots(const struct guest *guest, const struct job_order *order,
		      struct peer_grant *g)
{
	struct iocom_vector own;
	char text[PEER_TEXT_MAX];

	if (!order->gang_tasks)
		return true;
	guest->ports->own_vector(guest->ports->arg, &own);
	if (own.slots && (order->oversubscribe || order->gang_tasks <= own.slots_free))
		return true;
	if (!own.slots)
		snprintf(text, sizeof(text), "it takes no tasks of parallel jobs (slots)");
	else
		snprintf(text, sizeof(text), "%u of its %u slots are free, and %u are needed",
			 own.slots_free, own.slots, order->gang_tasks);
	guest_admit_refuse(g, "slots", text);
	return false;
}

/* Returns true if the processor can do what a job that moves here may have found at its last one.
 */
static bool has_processor(const struct guest *guest, const struct job_order *order,
			  struct peer_grant *g)
{
	char names[120], text[PEER_TEXT_MAX];
	unsigned n =
		processor_lacks(guest->config.processor, order->processor, names, sizeof(names));

	if (!n)
		return true;
	snprintf(text, sizeof(text), "its processor lacks what the job may use: %s", names);
	guest_admit_refuse(g, "processor", text);
	return false;
}

/* Returns true if a job of this id is here already, and G says what that means. */
static bool guest_admit_is_known(struct guest *guest, const struct job_order *order,
				 struct peer_grant *g)
{
	struct job *job = jobs_find(&guest->jobs, order->job);

	*g = (struct peer_grant){.lease_ms = order->lease_ms,
				 .boot_id = guest->base->boot_id,
				 .sequence = guest->ports->sequence(guest->ports->arg) + 1};
	if (!job)
		return false;
	/* A gang that asks again with other tasks has given up this lease. */
	if (order->gang_tasks && job->state == JOB_LEASED && job->order.uid == order->uid &&
	    job->order.gang_tasks != order->gang_tasks) {
		jobs_remove(&guest->jobs, job);
		return false;
	}
	if (job->state != JOB_LEASED || job->order.uid != order->uid) {
		guest_admit_refuse(g, "duplicate", "a job of this id is already here");
		return true;
	}
	/* Home asks again: the first answer was lost, and the secret may be another. */
	if (order->keyed)
		memcpy(job->order.secret, order->secret, sizeof(job->order.secret));
	g->granted = true;
	strcpy(g->nonce, job->nonce);
	return true;
}

static void guest_admit_decided(struct guest *guest, const struct job_order *order,
				const struct peer_grant *g)
{
	if (g->granted) {
		guest->base->counters->admissions_granted++;
		guest->ports->changed(guest->ports->arg);
	} else {
		guest->base->counters->admissions_refused++;
		log_provoked(guest->base->log, LOG_L_INFO, "refused job %s of %s: %s", order->job,
			     order->home, g->text);
	}
}

struct admitting {
	struct guest *guest;
	uint64_t ticket;
};

static void paths_seen(void *arg, const struct job_order *order,
		       const struct admission_verdict *seen)
{
	struct admitting *w = arg;
	struct guest *guest = w->guest;
	uid_t before = loop_share_enter(guest->base->shares, order->uid);
	struct admission_verdict v = *seen;
	struct peer_answer answer = {0};
	struct peer_grant *g = &answer.grant;
	struct iocom_vector own;

	if (!guest_admit_is_known(guest, order, g)) { /* home may have asked twice */
		if (v.admitted) {
			guest->ports->own_vector(guest->ports->arg, &own);
			admission_loads(order, &own, &v);
		}
		if (!v.admitted)
			guest_admit_refuse(g, v.reason, v.text);
		else if (guest_owner_admits(guest, order, NULL, g) && has_slots(guest, order, g) &&
			 has_place(guest, order, g))
			lease(guest, order, g);
	}
	guest_admit_decided(guest, order, g);
	guest->ports->answer(guest->ports->ask_arg, w->ticket, PEER_ADMIT, &answer);
	free(w);
	loop_share_leave(guest->base->shares, before);
}

/*
 * Returns 0: PATHS_SEEN was called or will be: a thread is used only if the check may have to wait.
 */
static int ask_paths(struct guest *guest, const struct job_order *order, struct account *user,
		     uint64_t ticket, struct iocom_err *err)
{
	struct admitting *w = calloc(1, sizeof(*w));
	int rc;

	if (!w) {
		account_free(user);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	*w = (struct admitting){guest, ticket};
	if (admission_paths_in_memory(order, user)) {
		account_free(user);
		paths_seen(w, order, &(struct admission_verdict){.admitted = true});
		return 0;
	}
	rc = paths_ask(guest->paths, order, user, paths_seen, w, err);
	if (rc)
		free(w);
	return rc;
}

/*
 * Judges a job of another node: 0 and G, or PEERS_LATER.  A job of this very node only gets its
 * place: home has judged it, and a job that no other node takes always runs at home.
 */
static int guest_admit_judge(struct guest *guest, const struct job_order *order, uint64_t ticket,
			     struct peer_grant *g)
{
	const struct settings *set = guest->base->set;
	const struct users_policy users = {
		.allow_root = set->allow_root,
		.min_uid = set->min_uid,
		.allow = set->allow_users,
		.deny = set->deny_users,
		.member = accounts_member,
		.arg = guest->accounts,
	};
	struct admission_verdict v;
	struct iocom_err err = {0};
	struct account user;
	int rc;

	if (!has_processor(guest, order, g))
		return 0;
	if (!strcmp(order->home, set->name)) {
		if (has_slots(guest, order, g) && has_place(guest, order, g))
			lease(guest, order, g);
		return 0;
	}
	if (!admission_user(order, set->accept_jobs, guest->accounts, &users, &user, &v)) {
		guest_admit_refuse(g, v.reason, v.text);
		return 0;
	}
	if (!guest_owner_admits(guest, order, &user, g)) {
		account_free(&user);
		return 0;
	}
	rc = ask_paths(guest, order, &user, ticket, &err);
	if (!rc)
		return PEERS_LATER;
	guest->base->counters->paths_refused += rc == -EAGAIN || rc == -EDQUOT;
	guest_admit_refuse(g, "path-slow", err.text);
	return 0;
}

int guest_on_admit(void *arg, const struct peer_request *request, uint64_t ticket,
		   struct peer_answer *answer)
{
	const struct job_order *order = request->order;
	struct peer_grant *g = &answer->grant;
	struct guest *guest = arg;
	uid_t before = loop_share_enter(guest->base->shares, order->uid);
	bool later = !guest_admit_is_known(guest, order, g) &&
		     guest_admit_judge(guest, order, ticket, g) == PEERS_LATER;

	if (!later)
		guest_admit_decided(guest, order, g);
	loop_share_leave(guest->base->shares, before);
	return later ? PEERS_LATER : 0;
}

/*
 * Of a part that is not here the lease is over, whatever it was.  One that has begun is not given
 * up: it is killed.
 */
int guest_on_release(void *arg, const struct peer_request *r, uint64_t ticket,
		     struct peer_answer *answer)
{
	struct guest *guest = arg;
	struct job *job = jobs_find(&guest->jobs, r->job);

	(void)ticket;
	answer->ok = true;
	if (!job || (*r->release.nonce && strcmp(r->release.nonce, job->nonce) != 0))
		return 0;
	if (strcmp(job->order.home, r->from) != 0 || !job->order.gang_tasks) {
		peer_answer_refuse(answer, "no part of a gang of yours has that name");
	} else if (job->state != JOB_LEASED) {
		peer_answer_refuse(answer,
				   job->state == JOB_ENDED ? "it has ended" : "it has begun");
	} else {
		guest->base->counters->leases_released++;
		jobs_remove(&guest->jobs, job);
		guest->ports->changed(guest->ports->arg);
	}
	return 0;
}
