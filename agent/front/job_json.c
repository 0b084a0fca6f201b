/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See job_json.h. */
#include "agent/front/job_json.h"

#include <math.h>
#include <string.h>

#include "agent/base/accounts.h"
#include "agent/home/home_move.h"
#include "user/utf8.h"

const char *job_json_user(struct job_json *l, uid_t uid)
{
	if (l->last_user[0] && l->last_uid == uid)
		return l->last_user;
	l->last_uid = uid;
	accounts_say(l->front->accounts, uid, l->last_user, sizeof(l->last_user));
	return l->last_user;
}

json_t *job_json_text(const char *text)
{
	char clean[1024];

	utf8_copy(clean, sizeof(clean), text ? text : "", text ? strlen(text) : 0);
	return json_string(clean);
}

json_t *job_json_ms(double ms)
{
	return ms > 0 && isfinite(ms) ? json_real(ms) : json_null();
}

const char *job_json_basis(int basis)
{
	static const char *const names[] = {"nothing", "options", "profile", "both"};

	return names[basis & (JOURNAL_BASIS_TOLD | JOURNAL_BASIS_LEARNED)];
}

static const char *job_json_state(const struct job_json *l, const struct journal_job *j)
{
	/* The shim does not answer (launch.h): the job may be running or lost. */
	if (guest_is_late(l->front->guest, j->job))
		return "late";
	if (j->end_ns == 0 &&
	    (guest_is_stopped(l->front->guest, j->job) || home_is_stopped(l->front->home, j->job)))
		return "stopped";
	return j->end_ns == 0 && home_is_moving(l->front->home, j->job) ? "moving" : j->state;
}

/* --- gangs --------------------------------------------------------------------------- */

struct job_json_parts {
	const struct job_json *list;
	json_t *parts;
};

static void job_json_part(void *arg, const struct journal_job *j)
{
	const struct job_json_parts *p = arg;

	json_array_append_new(
		p->parts,
		json_pack("{s:s,s:s,s:s,s:i,s:I,s:I,s:i,s:i,s:i,s:o}", "job", j->job, "node",
			  j->node ? j->node : "", "state", job_json_state(p->list, j), "tasks",
			  (int)j->tasks, "start_ns", (json_int_t)j->start_ns, "end_ns",
			  (json_int_t)j->end_ns, "exit_kind", j->exit_kind, "exit_value",
			  j->exit_value, "pid", (int)j->pid, "text", job_json_text(j->text)));
}

/* Adds the tasks of a gang, and its parts, or the gang of a part. */
static void job_json_gang(const struct job_json *l, const struct journal_job *j, json_t *out)
{
	struct job_json_parts p = {.list = l};

	json_object_set_new(out, "tasks", json_integer(j->tasks));
	if (j->gang && *j->gang) {
		json_object_set_new(out, "gang", json_string(j->gang));
		return;
	}
	p.parts = json_array();
	if (p.parts)
		(void)journal_gang_parts(l->front->journal, j->job, job_json_part, &p);
	json_object_set_new(out, "nodes", json_integer((json_int_t)json_array_size(p.parts)));
	json_object_set_new(out, "parts", p.parts);
}

json_t *job_json(struct job_json *l, const struct journal_job *j)
{
	const char *home = j->at_home ? l->front->base->set->name : j->home;
	const char *state = job_json_state(l, j);
	json_t *out;

	out = json_pack("{s:s,s:s,s:o,s:o,s:s,s:i,s:s,s:s,s:s,s:I,s:I,s:I,s:i,s:i,s:i,s:o,s:o,s:o,"
			"s:o,s:s,s:b,s:o}",
			"job", j->job, "state", state, "class", job_json_text(j->class_name),
			"command", job_json_text(j->command), "user", job_json_user(l, j->uid),
			"uid", (int)j->uid, "home", home ? home : "", "node",
			j->node ? j->node : "", "policy", j->policy ? j->policy : "", "submit_ns",
			(json_int_t)j->submit_ns, "start_ns", (json_int_t)j->start_ns, "end_ns",
			(json_int_t)j->end_ns, "exit_kind", j->exit_kind, "exit_value",
			j->exit_value, "pid", (int)j->pid, "text", job_json_text(j->text),
			"expected_ms", job_json_ms(j->expectation.there_ms), "expected_home_ms",
			job_json_ms(j->expectation.home_ms), "took_ms", job_json_ms(j->wall_ms),
			"basis", job_json_basis(j->expectation.basis), "balanced",
			j->expectation.balanced, "slowdown", job_json_ms(j->slowdown));
	if (out && j->tasks)
		job_json_gang(l, j, out);
	return out;
}
