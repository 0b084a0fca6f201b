/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See job_json.h. */
#include "agent/front/job_json.h"

#include <string.h>

#include "agent/base/accounts.h"
#include "user/utf8.h"

static const char *user_name(struct job_json *l, uid_t uid)
{
	if (l->last_user[0] && l->last_uid == uid)
		return l->last_user;
	l->last_uid = uid;
	accounts_say(l->front->accounts, uid, l->last_user, sizeof(l->last_user));
	return l->last_user;
}

/* A user's bytes need not be UTF-8, but JSON must be. */
static json_t *printable(const char *text)
{
	char clean[1024];

	utf8_copy(clean, sizeof(clean), text ? text : "", text ? strlen(text) : 0);
	return json_string(clean);
}

json_t *job_json(struct job_json *l, const struct journal_job *j)
{
	const char *home = j->at_home ? l->front->base->set->name : j->home;
	/* The shim does not answer (launch.h): the job may be running or lost. */
	const char *state = guest_is_late(l->front->guest, j->job) ? "late" : j->state;

	return json_pack("{s:s,s:s,s:o,s:o,s:s,s:i,s:s,s:s,s:s,s:I,s:I,s:I,s:i,s:i,s:i,s:o}", "job",
			 j->job, "state", state, "class", printable(j->class_name), "command",
			 printable(j->command), "user", user_name(l, j->uid), "uid", (int)j->uid,
			 "home", home ? home : "", "node", j->node ? j->node : "", "policy",
			 j->policy ? j->policy : "", "submit_ns", (json_int_t)j->submit_ns,
			 "start_ns", (json_int_t)j->start_ns, "end_ns", (json_int_t)j->end_ns,
			 "exit_kind", j->exit_kind, "exit_value", j->exit_value, "pid", (int)j->pid,
			 "text", printable(j->text));
}
