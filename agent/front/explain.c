/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom explain`: the kept decision on a job, also on a job that no node took. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/front/front.h"
#include "agent/front/job_json.h"
#include "user/pack.h"

struct found {
	struct front *front;
	json_t *record;
	char name[SPEC_JOB_MAX], home[IOCOM_NAME_MAX];
	uid_t uid;
	bool at_home;
};

static void explain_take(void *arg, const struct journal_job *job)
{
	struct found *f = arg;

	snprintf(f->name, sizeof(f->name), "%s", job->job);
	snprintf(f->home, sizeof(f->home), "%s", job->home ? job->home : "");
	f->uid = job->uid;
	f->at_home = job->at_home;
	f->record = job_json(&(struct job_json){.front = f->front}, job);
}

static void explain_unknown(const struct front *front, struct client *c, const char *job)
{
	client_error(c,
		     !strcmp(job, "last")
			     ? "no job of yours was submitted at node %s"
			     : "no job of yours named %2$s was submitted at node %1$s; `iocom "
			       "jobs --all` lists them",
		     front->base->set->name, job);
}

/* Returns the kept decision as a new document; NULL: none is kept, or ERR is set. */
static json_t *decision(struct front *front, const struct found *f, struct iocom_err *err)
{
	char *text = NULL;
	json_t *place;
	uid_t owner;
	int rc = journal_place(front->journal, f->name, f->uid, &text, &owner, err);

	if (rc)
		return NULL;
	place = json_loads(text, 0, NULL);
	free(text);
	if (!place)
		iocom_err_set(err, -EIO, "the stored decision of job %s cannot be read", f->name);
	return place;
}

static void explain_move(void *arg, const struct journal_move *move)
{
	json_array_append_new(arg, migrate_json(move));
}

static void explain_answer(struct front *front, struct client *c, struct found *f)
{
	struct iocom_err err = {0};
	json_t *place = decision(front, f, &err), *moves, *out;

	if (*err.text) {
		client_error(c, "%s", err.text);
		return;
	}
	moves = json_array();
	out = json_pack("{s:s,s:O}", "job", f->name, "record", f->record);
	if (place)
		json_object_set_new(out, "place", place);
	if (moves && !journal_moves(front->journal, f->name, explain_move, moves) &&
	    json_array_size(moves))
		json_object_set(out, "moves", moves);
	json_decref(moves);
	told_answer(front, c, out);
}

void explain_request(struct front *front, struct client *c, const msgpack_object *request)
{
	struct found f = {.front = front};
	uid_t uid = client_who(c)->uid;
	char job[SPEC_JOB_MAX];

	if (unpack_str(request, "job", job, sizeof(job))) {
		client_error(c, "the request names no \"job\"");
		return;
	}
	guest_settle(front->guest);
	if (journal_find(front->journal, job, uid, explain_take, &f)) {
		client_error(c, "cannot read the job journal in %s", front->base->set->state_dir);
		return;
	}
	if (f.record && uid != 0 && uid != f.uid) {
		client_log_foreign(c, "explain", job);
		explain_unknown(front, c, job);
	} else if (!f.record) {
		explain_unknown(front, c, job);
	} else if (!f.at_home) {
		client_error(c, "job %s was submitted at node %s: its decision is kept there",
			     f.name, f.home);
	} else {
		explain_answer(front, c, &f);
	}
	json_decref(f.record);
}
