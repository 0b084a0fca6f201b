/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How a job gets a place at its target: it is judged (admission.c), its paths are looked
 * at (paths.c), and then it holds a place for the client to come, JOBS_LEASE_NS.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/base/accounts.h"
#include "agent/guest/admission.h"
#include "agent/agent.h"
#include "user/clock.h"
#include "agent/guest/paths.h"
#include "agent/guest/guest_attach.h"

static void make_nonce(char out[SPEC_NONCE_MAX])
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		abort(); /* the kernel has random bytes once it has booted */
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static void guest_admit_refuse(struct target_grant *g, const char *reason, const char *text)
{
	g->granted = false;
	snprintf(g->reason, sizeof(g->reason), "%s", reason);
	snprintf(g->text, sizeof(g->text), "%s", text);
}

static void lease(struct agent *a, const struct job_order *order, struct target_grant *g)
{
	struct job *job = jobs_add(&a->jobs, order);

	if (!job) {
		guest_admit_refuse(g, "full", "too many jobs are running");
		return;
	}
	job->agent = a;
	make_nonce(job->nonce);
	job->lease_until_ns = clock_boot_ns() + JOBS_LEASE_NS;
	job->lease.until_ns = clock_boot_ns() + order->lease_ms * CLOCK_NS_PER_MS;
	g->granted = true;
	strcpy(g->nonce, job->nonce);
}

/*
 * Over, but their shims still serve clients that do not read: each is a process of root's,
 * and no more of them may be than of running jobs.  Most have gone since they were seen.
 */
static bool leaves_too_many(struct agent *a, uid_t uid)
{
	if (target_leaving_of(a, uid) < a->set.user_jobs_max)
		return false;
	target_forget_left(a);
	return target_leaving_of(a, uid) >= a->set.user_jobs_max;
}

/* No user may take all places of a node; root keeps his. */
static bool has_place(struct agent *a, const struct job_order *order, struct target_grant *g)
{
	unsigned uid = (unsigned)order->uid, most = a->set.user_jobs_max;
	char text[sizeof(g->text)];

	if (!uid || !most)
		return true;
	if (jobs_of(&a->jobs, uid) >= most)
		snprintf(text, sizeof(text), "uid %u has %u jobs there, the limit (user_jobs_max)",
			 uid, most);
	else if (leaves_too_many(a, uid))
		snprintf(text, sizeof(text),
			 "uid %u has %u jobs there that are over and whose clients do not read, "
			 "the limit (user_jobs_max)",
			 uid, most);
	else
		return true;
	a->counters.jobs_refused_limit++;
	guest_admit_refuse(g, "user-limit", text);
	return false;
}

/* A job of this id is here already: G says what that means.  False: it is new. */
static bool guest_admit_is_known(const struct agent *a, const struct job_order *order,
				 struct target_grant *g)
{
	const struct job *job = jobs_find(&a->jobs, order->job);

	*g = (struct target_grant){.boot_id = a->self.boot_id, .sequence = a->sequence + 1};
	if (!job)
		return false;
	if (job->state != JOB_LEASED || job->order.uid != order->uid) {
		guest_admit_refuse(g, "duplicate", "a job of this id is already here");
		return true;
	}
	/* Asked again: the first answer was lost. */
	g->granted = true;
	strcpy(g->nonce, job->nonce);
	return true;
}

static void guest_admit_decided(struct agent *a, const struct job_order *order,
				const struct target_grant *g)
{
	if (g->granted) {
		a->counters.admissions_granted++;
		tick_changed(a);
	} else {
		a->counters.admissions_refused++;
		log_provoked(&a->log, LOG_L_INFO, "refused job %s of %s: %s", order->job,
			     order->home, g->text);
	}
}

void target_admit(struct agent *a, const struct job_order *order, struct target_grant *g)
{
	if (!guest_admit_is_known(a, order, g) && has_place(a, order, g))
		lease(a, order, g);
	guest_admit_decided(a, order, g);
}

struct admitting {
	struct agent *agent;
	target_admitted done;
	void *arg;
};

static void paths_seen(void *arg, const struct job_order *order,
		       const struct admission_verdict *seen)
{
	struct admitting *w = arg;
	struct agent *a = w->agent;
	struct admission_verdict v = *seen;
	struct iocom_vector own;
	struct target_grant g;

	if (!guest_admit_is_known(a, order, &g)) { /* it may have been asked twice */
		if (v.admitted) {
			tick_own_vector(a, &own);
			admission_loads(order, &own, &v);
		}
		if (!v.admitted)
			guest_admit_refuse(&g, v.reason, v.text);
		else if (has_place(a, order, &g))
			lease(a, order, &g);
	}
	guest_admit_decided(a, order, &g);
	w->done(w->arg, order, &g);
	free(w);
}

/* 0: PATHS_SEEN comes, or was here: a thread is only for what may have to be waited for. */
static int ask_paths(struct agent *a, const struct job_order *order, struct account *user,
		     target_admitted done, void *arg)
{
	struct admitting *w = calloc(1, sizeof(*w));
	int rc;

	if (!w) {
		account_free(user);
		return -ENOMEM;
	}
	*w = (struct admitting){a, done, arg};
	if (admission_paths_in_memory(order, user)) {
		account_free(user);
		paths_seen(w, order, &(struct admission_verdict){.admitted = true});
		return 0;
	}
	rc = paths_ask(a->paths, order, user, paths_seen, w);
	if (rc)
		free(w);
	return rc;
}

void target_admit_guest(struct agent *a, const struct job_order *order, target_admitted done,
			void *arg)
{
	const struct users_policy users = {
		.allow_root = a->set.allow_root,
		.min_uid = a->set.min_uid,
		.allow = a->set.allow_users,
		.deny = a->set.deny_users,
		.group = accounts_group,
		.arg = a->accounts,
	};
	struct admission_verdict v;
	struct target_grant g;
	struct account user;
	int rc;

	if (!guest_admit_is_known(a, order, &g)) {
		if (!admission_user(order, a->set.accept_jobs, a->accounts, &users, &user, &v)) {
			guest_admit_refuse(&g, v.reason, v.text);
		} else {
			rc = ask_paths(a, order, &user, done, arg);
			if (!rc)
				return;
			a->counters.paths_refused += rc == -EBUSY || rc == -EDQUOT;
			guest_admit_refuse(
				&g, "path-slow",
				rc == -EBUSY	? "file systems there do not answer: too many "
						  "looks for directories hang already"
				: rc == -EDQUOT ? "file systems there do not answer: too many "
						  "looks for this user's directories hang already"
						: strerror(-rc));
		}
	}
	guest_admit_decided(a, order, &g);
	done(arg, order, &g);
}
