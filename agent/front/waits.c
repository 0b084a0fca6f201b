/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Clients that wait until a job has ended: `iocom wait`.  Each waits for one job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/front/job_json.h"
#include "user/pack.h"

struct wait {
	struct wait *next;
	struct client *client;
	char job[SPEC_JOB_MAX];
	bool lost;  /* may still be run again: checked once a second */
	bool ended; /* the journal may have its end: checked when the transaction is over */
};

struct answer {
	struct front *front;
	json_t *job;
	char name[SPEC_JOB_MAX]; /* the job's name, also for "last" */
	uid_t uid;
	bool ended;
};

static void waits_take(void *arg, const struct journal_job *job)
{
	struct answer *answer = arg;

	answer->uid = job->uid;
	snprintf(answer->name, sizeof(answer->name), "%s", job->job);
	answer->ended = strcmp(job->state, "starting") != 0 && strcmp(job->state, "running") != 0;
	answer->job = job_json(&(struct job_json){.front = answer->front}, job);
}

/*
 * Returns true if C got its answer.  Otherwise JOB gets the full name of the job it waits for, and
 * LOST tells whether that was lost and may be run again.  NOW: the client asks for the state and
 * does not wait.
 */
static bool waits_answered(struct front *front, struct client *c, char job[SPEC_JOB_MAX],
			   bool *lost, bool now)
{
	struct answer answer = {.front = front};
	uid_t uid = client_who(c)->uid;

	if ((strcmp(job, "last") && journal_lease_last(front->journal, job, NULL) < 0) ||
	    journal_find(front->journal, job, uid, waits_take, &answer)) {
		client_error(c, "cannot read the job journal in %s", front->base->set->state_dir);
		return true;
	}
	if (!answer.job || (uid != 0 && uid != answer.uid)) {
		json_decref(answer.job);
		client_error(c,
			     !strcmp(job, "last")
				     ? "no job of yours was submitted at node %s"
				     : "no job of yours named %2$s was submitted or ran at node "
				       "%1$s; `iocom jobs --all` lists them",
			     front->base->set->name, job);
		return true;
	}
	*lost = answer.ended && home_may_follow(front->home, answer.name);
	if (!now && (!answer.ended || *lost)) {
		json_decref(answer.job);
		memcpy(job, answer.name, sizeof(answer.name));
		return false;
	}
	/* "over": nothing more will come of it. */
	told_answer(front, c,
		    json_pack("{s:o,s:b}", "job", answer.job, "over", answer.ended && !*lost));
	return true;
}

void wait_request(struct front *front, struct client *c, const msgpack_object *request)
{
	char job[SPEC_JOB_MAX];
	struct wait *w;
	bool lost = false, now = false;

	if (unpack_str(request, "job", job, sizeof(job))) {
		client_error(c, "the request names no \"job\"");
		return;
	}
	(void)unpack_bool(request, "now", &now);
	guest_settle(front->guest);
	if (waits_answered(front, c, job, &lost, now))
		return;
	w = calloc(1, sizeof(*w));
	if (!w) {
		client_error(c, "out of memory");
		return;
	}
	w->client = c;
	w->lost = lost;
	strcpy(w->job, job);
	w->next = front->waits;
	front->waits = w;
}

enum waits_which { WAITS_LOST, WAITS_ENDED };

/* Answers the clients whose jobs are marked as WHICH. */
static void answer_waiting(struct front *front, enum waits_which which)
{
	struct wait *todo = front->waits, *w;

	/* The list is empty meanwhile, because an answer may drop a client. */
	front->waits = NULL;
	while ((w = todo)) {
		uid_t before = client_enter(w->client);
		bool answered;

		todo = w->next;
		answered = (which == WAITS_LOST ? w->lost : w->ended) &&
			   waits_answered(front, w->client, w->job, &w->lost, false);
		client_leave(front->base, before);
		if (answered) {
			free(w);
			continue;
		}
		w->ended &= which == WAITS_LOST;
		w->next = front->waits;
		front->waits = w;
	}
}

void waits_committed(void *front, int rc)
{
	(void)rc; /* the answers wait for the disk once more, and say what is wrong with it */
	answer_waiting(front, WAITS_ENDED);
}

/* Home tells an end while its transaction is open: if that fails, the journal lacks the end. */
void waits_ended(struct front *front, const char *job)
{
	bool any = false;

	for (struct wait *w = front->waits; w; w = w->next) {
		w->ended |= !job || !strcmp(w->job, job);
		any |= w->ended;
	}
	if (any && !front->ended.waiting && !journal_when_durable(front->journal, &front->ended))
		waits_committed(front, 0);
}

void waits_chores(struct front *front)
{
	answer_waiting(front, WAITS_LOST);
}

void waits_forget(struct front *front, const struct client *c)
{
	for (struct wait **p = &front->waits; *p;) {
		struct wait *w = *p;

		if (w->client != c) {
			p = &w->next;
			continue;
		}
		*p = w->next;
		free(w);
	}
}
