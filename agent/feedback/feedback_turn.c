/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Turns of the hand, in a thread: reclaiming may take longer than the loop may wait. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/feedback/feedback_own.h"

#define RECENTLY 0.9 /* what jobs read in the last ten turns or so, the newest most */

struct turn_task {
	struct question_task task;
	struct feedback *feedback; /* the loop's; the thread leaves it alone */
	struct hand *hand;
	struct hand_turn turn;
};

static void turn_free(struct question_task *task)
{
	struct turn_task *t = (struct turn_task *)task;

	hand_put(t->hand);
	free(t->turn.jobs);
	free(t);
}

static void turn_run(struct question_task *task)
{
	struct turn_task *t = (struct turn_task *)task;

	hand_turn(t->hand, &t->turn);
}

void feedback_account(struct feedback *f, const struct hand_done *done)
{
	struct counters *c = f->base->counters;

	c->feedback_writes += done->writes;
	c->feedback_restored += done->restored;
	c->feedback_foreign += done->foreign;
	c->feedback_refused += done->refused;
	if (done->foreign)
		log_write(f->base->log, LOG_L_WARNING,
			  "feedback: somebody else changed the bound of %u group%s of jobs, which "
			  "%s left alone from now on",
			  done->foreign, done->foreign == 1 ? "" : "s",
			  done->foreign == 1 ? "is" : "are");
	if (!*done->why || !strcmp(done->why, f->failure))
		return;
	log_write(f->base->log, LOG_L_WARNING, "feedback: %s", done->why);
	memcpy(f->failure, done->why, sizeof(f->failure));
}

static void turn_done(struct question_task *task, int rc)
{
	struct turn_task *t = (struct turn_task *)task;
	struct feedback *f = t->feedback;

	f->turning = false;
	if (rc) {
		log_write(
			f->base->log, LOG_L_WARNING,
			"feedback: the kernel takes long to reclaim memory; the controller waits");
		return; /* the thread frees it */
	}
	feedback_account(f, &t->turn.done);
	if (f->mode != FEEDBACK_OFF) {
		free(f->jobs);
		f->jobs = t->turn.jobs;
		f->njobs = t->turn.njobs;
		t->turn.jobs = NULL;
	}
	turn_free(task);
}

/* --- what jobs read -------------------------------------------------------------------- */

/* The jobs come in nearly the same order each time: the search goes on where the last one ended. */
static const struct feedback_read *turn_find(const struct feedback *f, const char *job, size_t *at)
{
	for (size_t i = 0; i < f->nreads; i++, *at = *at + 1 < f->nreads ? *at + 1 : 0)
		if (!strcmp(f->reads[*at].job, job))
			return &f->reads[*at];
	return NULL;
}

static void turn_fill(struct feedback *f, const struct guest_running *running, size_t n,
		      struct hand_job *jobs)
{
	struct feedback_read *reads = calloc(n + 1, sizeof(*reads));
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const struct guest_running *r = &running[i];
		const struct feedback_read *before = turn_find(f, r->job, &at);
		double new_mb = before ? r->read_mb - before->read_mb : r->read_mb;
		double recent_mb =
			(before ? RECENTLY * before->recent_mb : 0) + (new_mb > 0 ? new_mb : 0);

		jobs[i] = (struct hand_job){.uid = r->uid,
					    .missed_bytes = (uint64_t)(recent_mb * 1e6)};
		memcpy(jobs[i].job, r->job, sizeof(jobs[i].job));
		memcpy(jobs[i].name, r->group, sizeof(jobs[i].name));
		if (!reads)
			continue;
		memcpy(reads[i].job, r->job, sizeof(reads[i].job));
		reads[i].read_mb = r->read_mb;
		reads[i].recent_mb = recent_mb;
	}
	free(f->reads);
	f->reads = reads;
	f->nreads = reads ? n : 0;
}

/* The jobs that run now; N is their number.  NULL: no memory. */
static struct hand_job *turn_jobs(struct feedback *f, size_t *n)
{
	struct guest_running *running = calloc(FEEDBACK_JOBS_MAX, sizeof(*running));
	struct hand_job *jobs = NULL;

	*n = running ? f->config.ports.running(f->config.ports.arg, running, FEEDBACK_JOBS_MAX) : 0;
	f->base->counters->feedback_left_out += *n == FEEDBACK_JOBS_MAX;
	if (running)
		jobs = calloc(*n + 1, sizeof(*jobs));
	if (jobs)
		turn_fill(f, running, *n, jobs);
	free(running);
	return jobs;
}

void feedback_turn(struct feedback *f)
{
	struct turn_task *t;

	if (f->turning || !f->hand || !(f->buffer.memory_mb > 0) ||
	    (!f->thread && !f->config.direct))
		return;
	t = calloc(1, sizeof(*t));
	if (!t)
		return;
	t->task = (struct question_task){.run = turn_run, .done = turn_done, .free = turn_free};
	t->feedback = f;
	t->hand = hand_get(f->hand);
	t->turn.buffer_bytes = (uint64_t)(f->buffer.applied_mb * 1e6);
	t->turn.dry = f->mode != FEEDBACK_ON;
	t->turn.jobs = turn_jobs(f, &t->turn.njobs);
	if (!t->turn.jobs) {
		turn_free(&t->task);
		return;
	}
	f->turning = true;
	if (f->config.direct) {
		turn_run(&t->task);
		turn_done(&t->task, 0);
	} else if (question_thread_ask(f->thread, &t->task)) {
		f->turning = false; /* an earlier one still reclaims */
	}
}
