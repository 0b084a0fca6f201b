/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "report": the ended jobs that were submitted here, with what was expected of them,
 * newest first, a page at a time so that no answer takes long.  The client asks for the next page
 * with the last job of the one before, and does the statistics.
 *
 *   since_ns, before_ns and before (the last job's submit_ns and name), all, uid
 *
 * A user gets own jobs; root everybody's, or those of `uid`.
 */
#include "agent/front/front.h"
#include "agent/front/job_json.h"
#include "user/pack.h"

#define REPORT_PAGE_MAX 500

struct report_page {
	struct job_json names;
	json_t *jobs;
};

static void report_job(void *arg, const struct journal_outcome *o)
{
	struct report_page *page = arg;

	json_array_append_new(
		page->jobs,
		json_pack("{s:s,s:o,s:s,s:I,s:s,s:s,s:s,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:s,s:b,s:b,"
			  "s:i,s:i,s:o}",
			  "job", o->job, "class", job_json_text(o->class_name), "user",
			  job_json_user(&page->names, o->uid), "uid", (json_int_t)o->uid, "policy",
			  o->policy, "home", o->home, "node", o->node, "submit_ns",
			  (json_int_t)o->submit_ns, "end_ns", (json_int_t)o->end_ns, "took_ms",
			  job_json_ms(o->wall_ms), "expected_ms", job_json_ms(o->expected_ms),
			  "expected_home_ms", job_json_ms(o->expected_home_ms), "there_factor",
			  job_json_ms(o->there_factor), "home_factor", job_json_ms(o->home_factor),
			  "basis", job_json_basis(o->basis), "balanced", o->balanced, "moved",
			  o->moved, "exit_kind", o->exit_kind, "exit_value", o->exit_value,
			  "slowdown", job_json_ms(o->slowdown)));
}

/* Whose jobs: *UID is -1 for everybody's.  Returns false if WHO may not see them. */
static bool report_may(uid_t who, const msgpack_object *request, uid_t *uid)
{
	uint64_t wanted = who;
	bool named = !unpack_u64(request, "uid", &wanted), all = false;

	unpack_bool(request, "all", &all);
	*uid = (uid_t)wanted;
	if (who != 0)
		return wanted == who && !all;
	if (!named || all)
		*uid = (uid_t)-1;
	return wanted < (uid_t)-1;
}

void report_request(struct front *front, struct client *c, const msgpack_object *request)
{
	struct report_page page = {.names = {.front = front}};
	char before[SPEC_JOB_MAX] = "";
	struct journal_mark from = {.job = before};
	uint64_t since_ns = 0;
	uid_t uid;

	unpack_u64(request, "since_ns", &since_ns);
	unpack_u64(request, "before_ns", &from.submit_ns);
	(void)unpack_str(request, "before", before, sizeof(before));
	if (!report_may(client_who(c)->uid, request, &uid)) {
		client_error(c, "only root may ask for the jobs of others");
		return;
	}
	/* Jobs that ended a moment ago count. */
	guest_settle(front->guest);
	page.jobs = json_array();
	if (journal_outcomes_from(front->journal, since_ns, uid, &from, REPORT_PAGE_MAX, report_job,
				  &page)) {
		json_decref(page.jobs);
		client_error(c, "cannot read the job journal in %s", front->base->set->state_dir);
		return;
	}
	told_answer(front, c,
		    json_pack("{s:i,s:s,s:I,s:b,s:o}", "version", 1, "node", front->base->set->name,
			      "time_ns", (json_int_t)loop_real_ns(front->base->loop), "more",
			      json_array_size(page.jobs) == REPORT_PAGE_MAX, "jobs", page.jobs));
}
