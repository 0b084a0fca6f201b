/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "jobs": the journal's jobs. */
#include <string.h>

#include "agent/front/front.h"
#include "agent/front/job_json.h"
#include "user/pack.h"

#define JOBS_LISTED_MAX 2000
#define JOBS_NAMED_MAX	20
#define JOBS_REMOTE_MAX (PEER_DOCUMENT_MAX - 4096) /* bytes for another node */

struct jobs_list {
	struct job_json json;
	json_t *jobs;
	uint64_t limit; /* of ended jobs; 0: none */
	uint64_t ended;
	size_t room, left_out; /* bytes left for another node; jobs that found none */
	bool remote;
};

static void list_job(void *arg, const struct journal_job *j)
{
	struct jobs_list *l = arg;
	json_t *job;
	size_t size;

	if (j->end_ns && l->limit && ++l->ended > l->limit) {
		l->left_out++;
		return;
	}
	job = job_json(&l->json, j);
	size = l->remote ? json_dumpb(job, NULL, 0, JSON_COMPACT) + 1 : 0;
	if (size > l->room) {
		l->room = 0; /* what is older is left out, too */
		l->left_out++;
		json_decref(job);
		return;
	}
	l->room -= size;
	json_array_append_new(l->jobs, job);
}

/* A name with '*' in place of what the user did not say. */
static bool jobs_pattern(const char *text)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-*";

	return *text && strspn(text, good) == strlen(text);
}

void jobs_request(struct front *front, struct client *c, const msgpack_object *request)
{
	struct jobs_list l = {.json = {.front = front},
			      .jobs = json_array(),
			      .remote = client_is_remote(c),
			      .room = JOBS_REMOTE_MAX};
	uid_t uid = client_who(c)->uid;
	char named[SPEC_JOB_MAX] = "";
	bool all = false;
	int rc;

	unpack_bool(request, "all", &all);
	unpack_u64(request, "limit", &l.limit);
	(void)unpack_str(request, "named", named, sizeof(named));
	/* Jobs that ended a moment ago are listed as ended. */
	guest_settle(front->guest);
	if (uid == 0)
		uid = (uid_t)-1;
	if (jobs_pattern(named))
		rc = journal_named(front->journal, uid, named, JOBS_NAMED_MAX, list_job, &l);
	else
		rc = journal_list(front->journal, uid, all, JOBS_LISTED_MAX, list_job, &l);
	if (rc) {
		json_decref(l.jobs);
		client_error(c, "cannot read the job journal in %s", front->base->set->state_dir);
		return;
	}
	told_answer(front, c,
		    json_pack("{s:o,s:I}", "jobs", l.jobs, "left_out", (json_int_t)l.left_out));
}
