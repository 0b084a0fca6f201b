/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The home party: the fate of jobs that were submitted here; see home.h. */
#include "agent/home/home.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/home/home_leases.h"
#include "agent/home/home_own.h"
#include "user/clock.h"

#define NEVER_STARTED_S 120
#define DAY_S		86400

/* --- jobs submitted here ------------------------------------------------------ */

static int home_started(struct home *home, const char *from, const char *job, uint64_t start_ns,
			pid_t pid)
{
	char node[IOCOM_NAME_MAX], class_name[64];
	struct iocom_err err = {0};
	bool ended;
	uid_t uid;
	int rc = journal_home_get(home->journal, job, node, &uid, class_name, &ended, &err);

	if (rc == -ENOENT)
		return 0; /* pruned */
	if (!rc && strcmp(node, from))
		return -EACCES;
	if (!rc)
		rc = journal_home_state(home->journal, job, "running", start_ns, pid, &err);
	if (rc)
		base_journal_failed(home->base, &err);
	return rc;
}

/* Learns from a job that ended by itself, not from one that was killed half-way. */
static void learn(struct home *home, uid_t uid, const char *class_name, const struct job_report *r)
{
	struct iocom_err err = {0};
	struct profile run;

	if (strcmp(r->state, "exited") || r->value != 0 || !class_name[0])
		return;
	job_report_profile(r, &run);
	if (profile_learn(home->profiles, uid, class_name, &run, &err))
		base_journal_failed(home->base, &err);
}

static int home_ended(struct home *home, const char *from, const struct job_report *r)
{
	struct journal_job row = {
		.job = r->job,
		.state = r->state,
		.start_ns = r->start_ns,
		.end_ns = r->end_ns ? r->end_ns : loop_real_ns(home->base->loop),
		.exit_kind = (int)r->kind,
		.exit_value = (int)r->value,
		.text = r->text,
	};
	char node[IOCOM_NAME_MAX], class_name[64];
	struct iocom_err err = {0};
	bool ended;
	uid_t uid;
	int rc = journal_home_get(home->journal, r->job, node, &uid, class_name, &ended, &err);

	if (rc == -ENOENT)
		return 0; /* pruned: nobody waits for it */
	if (!rc && strcmp(node, from)) {
		/* Admitted there but run elsewhere, or a forged report. */
		home->base->counters->controls_refused++;
		log_provoked(home->base->log, LOG_L_INFO,
			     "node %s reports an end of job %s, which is not placed there: ignored",
			     from, r->job);
		return -EACCES;
	}
	if (!rc && ended)
		return 0; /* reported twice */
	if (!rc)
		rc = journal_home_end(home->journal, &row, &err);
	if (rc) {
		base_journal_failed(home->base, &err);
		return rc;
	}
	lease_ended(home, r->job);
	home_tell_finished(home, from, r);
	home_tell_ended(home, r->job);
	learn(home, uid, class_name, r);
	return 0;
}

/* --- questions of guests ---------------------------------------------------------- */

int home_on_started(void *arg, const struct peer_request *r, uint64_t ticket,
		    struct peer_answer *answer)
{
	(void)ticket;
	answer->ok = home_started(arg, r->from, r->job, r->started.start_ns, r->started.pid) == 0;
	return 0;
}

/*
 * If the journal failed there is no answer, and the guest reports again.  A report of a job that is
 * not placed there gets an answer, or the guest would repeat it for ever.
 */
int home_on_done(void *arg, const struct peer_request *r, uint64_t ticket,
		 struct peer_answer *answer)
{
	int rc = 0, one = 0;

	(void)ticket;
	for (size_t i = 0; i < r->done.count && (!one || one == -EACCES); i++) {
		one = home_ended(arg, r->from, &r->done.reports[i]);
		if (!rc)
			rc = one;
	}
	if (one && one != -EACCES)
		return -EIO;
	answer->ok = rc == 0;
	answer->taken = r->done.count;
	if (rc)
		peer_answer_refuse(answer, "the job was not placed there");
	return 0;
}

int home_on_renew(void *arg, const struct peer_request *r, uint64_t ticket,
		  struct peer_answer *answer)
{
	const struct home *home = arg;
	struct iocom_err err = {0};
	int rc = lease_renew(arg, r->from, r->job, &err);

	(void)ticket;
	if (rc && rc != -ESTALE)
		return rc; /* no answer: the guest asks again */
	if (rc)
		log_write(home->base->log, LOG_L_WARNING, "renewal refused: %s", err.text);
	answer->ok = rc == 0;
	if (rc)
		peer_answer_refuse(answer, "%s", err.text);
	return 0;
}

/* --- the party ---------------------------------------------------------------------- */

void home_tell_decided(const struct home *home, const struct home_decision *decision)
{
	for (const struct home_watch *w = home->watches; w; w = w->next)
		if (w->decided)
			w->decided(w->arg, decision);
}

void home_tell_finished(const struct home *home, const char *from, const struct job_report *report)
{
	for (const struct home_watch *w = home->watches; w; w = w->next)
		if (w->finished)
			w->finished(w->arg, from, report);
}

void home_tell_ended(const struct home *home, const char *job)
{
	for (const struct home_watch *w = home->watches; w; w = w->next)
		if (w->ended)
			w->ended(w->arg, job);
}

void home_watch(struct home *home, struct home_watch *watch)
{
	watch->next = home->watches;
	home->watches = watch;
}

int home_new(struct home **out, const struct home_config *config, struct iocom_err *err)
{
	struct home *home = calloc(1, sizeof(*home));

	if (!home)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	home->config = *config;
	home->base = config->base;
	home->ports = &home->config.ports;
	home->journal = config->journal;
	home->profiles = config->profiles;
	home->matrix = config->matrix;
	home->skews = config->skews;
	home->view = cluster_view_new(config->matrix);
	if (!home->view) {
		free(home);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	*out = home;
	return 0;
}

int home_load(struct home *home, struct iocom_err *err)
{
	return lease_load(home, err);
}

void home_free(struct home *home)
{
	if (!home)
		return;
	place_stop(home);
	lease_unload(home);
	cluster_view_free(home->view);
	free(home);
}

void home_chores(struct home *home)
{
	lease_expire(home);
}

static bool is_gone(void *arg, const char *node)
{
	const struct home *home = arg;
	const struct matrix_entry *e = matrix_find(home->matrix, node);

	return strcmp(node, home->base->set->name) != 0 && (!e || !e->alive);
}

void home_prune(struct home *home)
{
	const struct settings *set = home->base->set;
	uint64_t now = loop_real_ns(home->base->loop);
	uint64_t span = (uint64_t)set->keep_days * DAY_S * CLOCK_NS_PER_S;
	struct iocom_err err = {0};
	int n = journal_home_stale(home->journal, now - NEVER_STARTED_S * CLOCK_NS_PER_S);

	if (n > 0)
		log_write(home->base->log, LOG_L_WARNING, "%d job%s never started", n,
			  n == 1 ? "" : "s");
	n = journal_home_lost(home->journal, now > span ? now - span : 0, is_gone, home);
	if (n > 0)
		log_write(home->base->log, LOG_L_WARNING,
			  "%d job%s lost: their nodes have not been heard of for %u days", n,
			  n == 1 ? " is" : "s are", set->keep_days);
	if (journal_prune(home->journal, set->keep_jobs, now > span ? now - span : 0, &err))
		base_journal_failed(home->base, &err);
	home_tell_ended(home, NULL);
}

void home_count(const struct home *home, struct home_counts *counts)
{
	*counts = (struct home_counts){
		.leases = home->nleases,
		.charges = cluster_view_charges(home->view),
		.charges_lost = cluster_view_charges_lost(home->view),
		.vectors_left_out = cluster_view_left_out(home->view),
	};
}
