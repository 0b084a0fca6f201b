/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "jobs": the journal's jobs. */
#include "agent/front/front.h"
#include "agent/front/job_json.h"
#include "user/pack.h"

#define JOBS_LISTED_MAX 2000

struct jobs_list {
	struct job_json json;
	json_t *jobs;
};

static void list_job(void *arg, const struct journal_job *j)
{
	struct jobs_list *l = arg;

	json_array_append_new(l->jobs, job_json(&l->json, j));
}

void jobs_request(struct front *front, struct client *c, const msgpack_object *request)
{
	struct jobs_list l = {.json = {.front = front}, .jobs = json_array()};
	uid_t uid = client_who(c)->uid;
	bool all = false;

	unpack_bool(request, "all", &all);
	/* Jobs that ended a moment ago are listed as ended. */
	guest_settle(front->guest);
	if (journal_list(front->journal, uid == 0 ? (uid_t)-1 : uid, all, JOBS_LISTED_MAX, list_job,
			 &l)) {
		json_decref(l.jobs);
		client_error(c, "cannot read the job journal in %s", front->base->set->state_dir);
		return;
	}
	told_answer(front, c, json_pack("{s:o}", "jobs", l.jobs));
}
