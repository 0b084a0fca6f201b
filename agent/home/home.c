/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The home party: the fate of jobs that were submitted here; see home.h.
 *
 * The measured response of a job is what its user waited for: from the submission, as its start
 * waits for the node, too, to its end.  The submission and the arrival of the report are by home's
 * clock; the end's date and the duration of the run (wall_ms, on a clock that never steps) are the
 * node's words:
 *
 *   response = min( arrival - submission, max( 1 ms, node's duration, node's end - submission ) )
 *
 * So a report that comes late does not lengthen it, the node's clock is off by the job's wait at
 * most, and no node can make it longer than home saw.  If home's own clock stepped back behind the
 * submission, the response is unknown, and outcomes_refused counts it.
 */
#include "agent/home/home.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/loop_share.h"
#include "agent/home/home_leases.h"
#include "agent/home/home_move.h"
#include "agent/home/home_own.h"
#include "agent/home/learn.h"
#include "agent/home/outcomes.h"
#include "agent/home/progress.h"
#include "user/clock.h"
#include "user/gang_name.h"

#define NEVER_STARTED_S 120
#define HOME_NEVER_RAN	125 /* value of an end of kind 3: no process of the job ran */
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
	if (!rc)
		home_move_started(home, job, from);
	for (const struct home_watch *w = home->watches; w && !rc; w = w->next)
		if (w->started)
			w->started(w->arg, job);
	return rc;
}

/* Returns whether the job ended by itself and succeeded: it did all of its work. */
static bool is_finished(const struct job_report *r)
{
	return !strcmp(r->state, "exited") && r->value == 0;
}

/*
 * At the server of its directory's file system the job's requests reach the disk as those of other
 * nodes' jobs do there: to its class they are I/O on the shared file system, too.
 */
static void learn_at_server(struct profile *run)
{
	run->shared_read_mb += run->read_mb + run->fault_mb;
	run->shared_written_mb += run->written_mb;
	run->requests = run->request_mb = run->read_mb = run->written_mb = 0;
	run->fault_requests = run->fault_mb = run->disk_ms = 0;
	run->behaviour.fault_requests = run->behaviour.fault_kb = 0;
}

/* Learns from a job that ended by itself, not from one that was killed half-way. */
static void home_learn(struct home *home, const char *from, uid_t uid, const char *class_name,
		       const struct journal_expected *expected, const struct job_report *r)
{
	struct learned_run run = {
		.uid = uid,
		.input_id = expected->input_id < 0 ? 0 : (uint64_t)expected->input_id,
		.input_mb = expected->input_bytes < 0 ? -1 : (double)expected->input_bytes / 1e6,
		.end_s = loop_real_ns(home->base->loop) / CLOCK_NS_PER_S,
	};

	if (!is_finished(r) || !class_name[0])
		return;
	snprintf(run.class_name, sizeof(run.class_name), "%s", class_name);
	snprintf(run.node, sizeof(run.node), "%s", from);
	job_report_profile(r, &run.run);
	if (!strcmp(from, expected->shared_server))
		learn_at_server(&run.run);
	learn_run(home, &run);
}

/* The measured response in ms; 0: it is unknown. */
static double home_response_ms(struct home *home, uint64_t submit_ns, const struct job_report *r)
{
	uint64_t now = loop_real_ns(home->base->loop);
	double most, by_date;

	if (r->wall_ms == 0 && r->end_ns == 0)
		return 0; /* it never ran */
	if (now <= submit_ns) {
		home->base->counters->outcomes_refused++;
		return 0;
	}
	most = (double)(now - submit_ns) / CLOCK_NS_PER_MS;
	by_date = r->end_ns > submit_ns ? (double)(r->end_ns - submit_ns) / CLOCK_NS_PER_MS : 0;
	return fmin(most, fmax(1, fmax((double)r->wall_ms, by_date)));
}

/* Returns whether JOB followed a lost attempt: what it took need not be what such jobs take. */
static bool is_again(struct home *home, const char *job)
{
	struct journal_lease lease;
	int rc = journal_lease_get(home->journal, job, &lease, NULL);

	return rc ? rc != -ENOENT : lease.attempt > 1;
}

/* Of a job that moved only its last node's part was measured there. */
static bool home_has_moved(struct home *home, const char *job)
{
	struct journal_move move;

	return !journal_move_get(home->journal, job, 0, &move, NULL);
}

/* Holds what was expected of a job that exited with 0 against what it took. */
static void home_compare(struct home *home, const struct job_report *r, struct outcome *job)
{
	struct iocom_err err = {0};

	job->teaches = job->expected->basis == JOURNAL_BASIS_LEARNED && !is_again(home, r->job);
	job->idle = job_report_rests(r);
	job->slack_ms = fmax(home->base->set->rules.fixed_cost_ms, OUTCOMES_SLACK_MS);
	if (outcomes_take(home->outcomes, job, &err))
		base_journal_failed(home->base, &err);
}

/*
 * Keeps what the ranks of a job sent and received.  It is judged when it is read: whatever a node
 * says, it says of its own job only.
 */
static int home_keep_talk(struct home *home, const struct job_report *r, struct iocom_err *err)
{
	return r->talk ? journal_talk_put(home->journal, r->job, r->talk, r->talk_length, err) : 0;
}

static int home_ended(struct home *home, const char *from, const struct job_report *r)
{
	struct journal_expected expected = {0};
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
	bool ended, moved = home_has_moved(home, r->job);
	bool whole = !gang_part_of(r->job, NULL, NULL) && !moved;
	struct iocom_err err = {0};
	uid_t uid, before;
	int rc = journal_home_get(home->journal, r->job, node, &uid, class_name, &ended, &err);

	if (rc == -ENOENT)
		return 0; /* pruned: nobody waits for it */
	if (!rc && moved &&
	    home_move_failed_there(home, r->job, from, r->kind == 3 && r->value == HOME_NEVER_RAN,
				   r->text))
		return 0;
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
	if (!rc && moved && home_move_saves(home, r->job, !strcmp(r->state, "lost")))
		return 0;
	before = loop_share_enter(home->base->shares, rc ? LOOP_SHARE_NOBODY : uid);
	if (!rc)
		rc = journal_home_expected(home->journal, r->job, &expected, &err);
	if (!rc) {
		row.wall_ms = home_response_ms(home, expected.submit_ns, r);
		row.slowdown = moved ? 0 : job_report_slowdown(r, row.wall_ms);
		rc = journal_home_end(home->journal, &row, &err);
	}
	if (!rc)
		rc = home_keep_talk(home, r, &err);
	if (rc) {
		base_journal_failed(home->base, &err);
	} else {
		lease_ended(home, r->job);
		progress_forget(home->progress, r->job);
		if (moved)
			home_move_ended(home, r->job);
		home_tell_finished(home, from, r);
		home_tell_ended(home, r->job);
		if (row.slowdown > 0 && is_finished(r) && whole)
			home_tell_slowed(home, row.slowdown);
		if (whole) /* of a gang all parts together teach (agent/gang) */
			home_learn(home, from, uid, class_name, &expected, r);
		if (row.wall_ms > 0 && is_finished(r) && whole)
			home_compare(home, r,
				     &(struct outcome){.uid = uid,
						       .class_name = class_name,
						       .node = node,
						       .policy = expected.policy,
						       .wall_ms = row.wall_ms,
						       .expected = &expected.expectation});
	}
	loop_share_leave(home->base->shares, before);
	return rc;
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

/* Notes what a job has done so far.  Returns 0; -EACCES: it is not placed there; -EIO. */
static int home_progress(struct home *home, const char *from, const struct job_report *r)
{
	char node[IOCOM_NAME_MAX], class_name[64];
	struct iocom_err err = {0};
	bool ended;
	uid_t uid;
	int rc = journal_home_get(home->journal, r->job, node, &uid, class_name, &ended, &err);

	if (rc == -ENOENT)
		return 0; /* pruned */
	if (!rc && strcmp(node, from))
		return -EACCES;
	if (!rc && !ended)
		rc = home_keep_talk(home, r, &err);
	if (!rc && !ended && (*class_name || r->stopped))
		rc = progress_note(home->progress, uid, class_name, r,
				   loop_boot_ns(home->base->loop));
	else if (!rc)
		progress_forget(home->progress, r->job); /* it goes on, and says nothing else */
	if (rc && rc != -ENOMEM)
		base_journal_failed(home->base, &err);
	return rc;
}

/* What is lost here is told again when the job has done twice as much. */
int home_on_progress(void *arg, const struct peer_request *r, uint64_t ticket,
		     struct peer_answer *answer)
{
	struct home *home = arg;
	int rc = 0;

	(void)ticket;
	for (size_t i = 0; i < r->done.count && !rc; i++)
		rc = home_progress(home, r->from, &r->done.reports[i]);
	answer->ok = rc == 0;
	if (rc)
		peer_answer_refuse(answer, rc == -EACCES ? "the job was not placed there"
							 : "the report cannot be kept");
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

void home_tell_slowed(const struct home *home, double slowdown)
{
	for (const struct home_watch *w = home->watches; w; w = w->next)
		if (w->slowed)
			w->slowed(w->arg, slowdown);
}

void home_watch(struct home *home, struct home_watch *watch)
{
	watch->next = home->watches;
	home->watches = watch;
}

int home_new(struct home **out, const struct home_config *config, struct iocom_err *err)
{
	struct home *home = calloc(1, sizeof(*home));
	struct rules_params params;

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
	if (!home->view ||
	    outcomes_new(&home->outcomes, config->profiles, config->base->counters) ||
	    progress_new(&home->progress, config->base->counters)) {
		outcomes_free(home->outcomes);
		cluster_view_free(home->view);
		free(home);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	view_params(&params);
	settings_rules_apply(&config->base->set->rules, &params);
	cluster_view_use(home->view, &params);
	home->hop_max = (unsigned)params.hop_max;
	home->w_io = params.w_io;
	*out = home;
	return 0;
}

static void home_recall(void *arg, const struct journal_outcome *o)
{
	const struct home *home = arg;
	const struct journal_expectation expected = {.there_ms = o->expected_ms};
	const struct outcome job = {
		.node = o->node,
		.policy = o->policy,
		.wall_ms = o->wall_ms,
		.expected = &expected,
	};

	if (o->exit_kind == 0 && o->exit_value == 0)
		outcomes_recall(home->outcomes, &job);
}

/*
 * Ends what cannot begin any more, for nobody else would: the client of a restartable job at home
 * waits until home knows how it ended.
 */
static int home_end_unbegun(struct home *home, struct iocom_err *err)
{
	int n = journal_home_unbegun(home->journal, home->base->set->name,
				     loop_real_ns(home->base->loop), err);

	if (n > 0)
		log_write(home->base->log, LOG_L_WARNING,
			  "%d job%s never began: the earlier agent ended first", n,
			  n == 1 ? "" : "s");
	return n < 0 ? n : 0;
}

int home_load(struct home *home, struct iocom_err *err)
{
	int rc = home_end_unbegun(home, err);

	if (!rc)
		rc = lease_load(home, err);
	if (!rc && journal_outcomes(home->journal, 0, (uid_t)-1, home_recall, home))
		rc = iocom_err_set(err, -EIO, "cannot read from the job journal what jobs took");
	return rc;
}

void home_free(struct home *home)
{
	if (!home)
		return;
	place_stop(home);
	home_move_stop(home);
	lease_unload(home);
	learn_stop(home);
	outcomes_free(home->outcomes);
	progress_free(home->progress);
	cluster_view_free(home->view);
	free(home);
}

void home_chores(struct home *home)
{
	lease_expire(home);
	learn_chores(home);
	home_move_chores(home);
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

bool home_is_stopped(const struct home *home, const char *job)
{
	return progress_stopped(home->progress, job);
}

void home_count(const struct home *home, struct home_counts *counts)
{
	*counts = (struct home_counts){
		.leases = home->nleases,
		.moves = home_moves_count(home),
		.charges = cluster_view_charges(home->view),
		.predictions = outcomes_count(home->outcomes),
		.progress = progress_count(home->progress),
		.to_learn = home->nlater,
		.charges_lost = cluster_view_charges_lost(home->view),
		.vectors_left_out = cluster_view_left_out(home->view),
	};
}

size_t home_predictions(const struct home *home, struct prediction *out)
{
	return outcomes_list(home->outcomes, out);
}
