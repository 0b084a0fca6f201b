/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Asks homes to let jobs that run here go to other nodes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/guest/guest_own.h"

struct away_question {
	guest_away_told told;
	void *arg;
	char job[SPEC_JOB_MAX];
};

static void away_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct away_question *q = arg;

	q->told(q->arg, q->job, !rc && answer->ok, rc ? why : answer->text);
	free(q);
}

int guest_away(struct guest *guest, const char *name, const struct peer_away *why,
	       guest_away_told told, void *arg, struct iocom_err *err)
{
	const struct job *job = jobs_find(&guest->jobs, name);
	struct peer_request request = {.type = PEER_AWAY, .away = *why};
	const struct job_order *o;
	struct away_question *q;
	const char *hindrance;
	int rc;

	if (!job)
		return iocom_err_set(err, -ENOENT, "no job %s runs here", name);
	hindrance = guest_move_hindrance(job);
	if (hindrance)
		return iocom_err_set(err, -ENOTSUP, "%s", hindrance);
	q = malloc(sizeof(*q));
	if (!q)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	o = &job->order;
	*q = (struct away_question){.told = told, .arg = arg};
	memcpy(q->job, o->job, sizeof(q->job));
	memcpy(request.job, o->job, sizeof(request.job));
	rc = guest->ports->ask(guest->ports->ask_arg, o->home, o->home_address, o->home_port,
			       &request, away_answered, q, err);
	if (rc)
		free(q);
	return rc;
}
