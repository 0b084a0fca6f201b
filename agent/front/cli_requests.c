/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the CLI asks besides "place": nodes, jobs, explain, top, kill, record. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/accounts.h"
#include "agent/agent.h"
#include "agent/front/limits.h"
#include "agent/guest/guest_attach.h"
#include "agent/front/clients.h"
#include "user/clock.h"
#include "user/pack.h"
#include "agent/front/recorders.h"
#include "user/monitor/sample_json.h"
#include "agent/guest/signals.h"
#include "agent/front/status.h"
#include "agent/cluster/vector_codec.h"
#include "user/utf8.h"

#define JOBS_LISTED_MAX 2000
#define INTERVAL_MIN_MS 100
#define INTERVAL_MAX_MS 3600000

/* --- nodes --------------------------------------------------------------------- */

static json_t *cli_requests_node_json(const struct iocom_vector *v, uint64_t age_ns, bool self,
				      bool alive)
{
	json_t *o = json_object();

	if (!o || vector_json(v, o)) {
		json_decref(o);
		return NULL;
	}
	json_object_set_new(o, "self", json_boolean(self));
	json_object_set_new(o, "alive", json_boolean(alive));
	json_object_set_new(o, "age_ms", json_real((double)age_ns / 1e6));
	return o;
}

static void op_nodes(struct agent *a, struct client *c, const msgpack_object *request)
{
	json_t *nodes = json_array(), *dropped = json_array();
	uint64_t now = clock_boot_ns();
	char text[128];

	(void)request;
	json_array_append_new(nodes, cli_requests_node_json(&a->own, now - a->own_ns, true, true));
	for (size_t i = 0; i < a->matrix.count; i++) {
		const struct matrix_entry *e = matrix_at(&a->matrix, i);
		uint64_t age = matrix_age_ns(e, now);

		if (e->alive) {
			json_array_append_new(nodes,
					      cli_requests_node_json(&e->vector, age, false, true));
			continue;
		}
		snprintf(text, sizeof(text), "silent for %.1f s, longer than %d periods of %u ms",
			 (double)age / 1e9, MATRIX_SILENT_PERIODS, e->vector.period_ms);
		json_array_append_new(dropped,
				      json_pack("{s:s,s:s,s:f}", "name", e->vector.name, "reason",
						text, "age_ms", (double)age / 1e6));
	}
	client_json(c, json_pack("{s:i,s:s,s:I,s:I,s:o,s:o,s:o,s:o}", "version", 1, "node",
				 a->set.name, "time_ns", (json_int_t)clock_real_ns(), "period_ms",
				 (json_int_t)a->self.period_ms, "nodes", nodes, "dropped", dropped,
				 "counters", counters_json(a), "bounds", limits_json(a)));
}

/* --- jobs ---------------------------------------------------------------------- */

struct listing {
	struct agent *agent;
	bool any_late;
	json_t *jobs;
	uid_t last_uid;
	char last_user[64];
};

static const char *cli_requests_user_name(struct listing *l, uid_t uid)
{
	if (l->last_user[0] && l->last_uid == uid)
		return l->last_user;
	l->last_uid = uid;
	accounts_say(l->agent->accounts, uid, l->last_user, sizeof(l->last_user));
	return l->last_user;
}

/* Bytes a user typed need not be UTF-8; JSON must be. */
static json_t *printable(const char *text)
{
	char clean[1024];

	utf8_copy(clean, sizeof(clean), text ? text : "", text ? strlen(text) : 0);
	return json_string(clean);
}

/* A shim that does not answer (launch.h): neither running for sure nor lost. */
static const char *state_of(const struct listing *l, const struct agent *a,
			    const struct journal_job *j)
{
	const struct job *here = l->any_late ? jobs_find(&a->jobs, j->job) : NULL;

	return here && here->late && here->state != JOB_ENDED ? "late" : j->state;
}

static json_t *cli_requests_job_json(struct listing *l, const struct agent *a,
				     const struct journal_job *j)
{
	const char *home = j->at_home ? a->set.name : j->home;

	return json_pack(
		"{s:s,s:s,s:o,s:o,s:s,s:i,s:s,s:s,s:s,s:I,s:I,s:I,s:i,s:i,s:i,s:o}", "job", j->job,
		"state", state_of(l, a, j), "class", printable(j->class_name), "command",
		printable(j->command), "user", cli_requests_user_name(l, j->uid), "uid",
		(int)j->uid, "home", home ? home : "", "node", j->node ? j->node : "", "policy",
		j->policy ? j->policy : "", "submit_ns", (json_int_t)j->submit_ns, "start_ns",
		(json_int_t)j->start_ns, "end_ns", (json_int_t)j->end_ns, "exit_kind", j->exit_kind,
		"exit_value", j->exit_value, "pid", (int)j->pid, "text", printable(j->text));
}

json_t *ops_job_json(struct agent *a, const struct journal_job *job)
{
	struct listing one = {.agent = a, .any_late = true};

	return cli_requests_job_json(&one, a, job);
}

static void list_job(void *arg, const struct journal_job *j)
{
	struct listing *l = arg;

	json_array_append_new(l->jobs, cli_requests_job_json(l, l->agent, j));
}

static void op_jobs(struct agent *a, struct client *c, const msgpack_object *request)
{
	uid_t uid = client_who(c)->uid;
	struct listing l = {.agent = a, .jobs = json_array()};
	bool all = false;

	for (const struct job *job = a->jobs.first; job; job = job->next)
		l.any_late |= job->late;
	unpack_bool(request, "all", &all);
	/* What ended a moment ago is listed as ended. */
	if (a->settle.active)
		target_settle(a);
	if (journal_list(a->journal, uid == 0 ? (uid_t)-1 : uid, all, JOBS_LISTED_MAX, list_job,
			 &l)) {
		json_decref(l.jobs);
		client_error(c, "cannot read the job journal in %s", a->set.state_dir);
		return;
	}
	client_json(c, json_pack("{s:o}", "jobs", l.jobs));
}

void ops_log_foreign(struct agent *a, const struct client *c, const char *what, const char *job)
{
	log_provoked(&a->log, LOG_L_WARNING, "refused uid %u to %s job %s: it is another user's",
		     (unsigned)client_who(c)->uid, what, job);
}

/* --- top ----------------------------------------------------------------------- */

static const char *job_name(void *arg, uint64_t cgroup_id)
{
	const struct agent *a = arg;
	const char *name = NULL;

	jobs_whose(&a->jobs, cgroup_id, &name, NULL);
	return name;
}

static int job_uid(void *arg, uint64_t cgroup_id, uid_t *uid)
{
	const struct agent *a = arg;

	return jobs_whose(&a->jobs, cgroup_id, NULL, uid);
}

json_t *ops_top(struct agent *a, const struct monitor_sample *sample,
		const struct iocom_disk *before, size_t nbefore, uid_t uid)
{
	struct sample_json_options options = {
		.node = a->set.name,
		.job_name = job_name,
		.job_uid = job_uid,
		.job_name_arg = a,
		.cgroup_root = a->host.unified[0] ? a->host.unified : NULL,
		.names = a->names,
		.own_only = uid != 0,
		.uid = uid,
		.cores = a->own.cores,
		.disk_mb_per_s = a->own.disk_mb_per_s,
		.network_mb_per_s = a->own.network_mb_per_s,
		.disks_before = before,
		.ndisks_before = nbefore,
	};

	return sample_json(sample, &options);
}

static void op_record(struct agent *a, struct client *c, const msgpack_object *request)
{
	(void)request;
	recorders_begin(a, c);
}

static void op_top(struct agent *a, struct client *c, const msgpack_object *request)
{
	uint64_t interval = 1000;

	(void)a;
	unpack_u64(request, "interval_ms", &interval);
	if (interval < INTERVAL_MIN_MS || interval > INTERVAL_MAX_MS) {
		client_error(c, "the interval is from %d to %d ms", INTERVAL_MIN_MS,
			     INTERVAL_MAX_MS);
		return;
	}
	client_watch(c, (unsigned)interval);
}

/* --- kill ---------------------------------------------------------------------- */

static void killed(void *arg, int rc, const msgpack_object *body, const char *why)
{
	struct client *c = arg;
	char text[256] = "";
	bool ok = false;

	if (rc) {
		client_error(c, "%s", why);
		return;
	}
	unpack_bool(body, "ok", &ok);
	unpack_str(body, "text", text, sizeof(text));
	if (ok)
		client_json(c, json_pack("{s:b}", "signalled", 1));
	else
		client_error(c, "%s", text);
}

static int kill_remote(struct agent *a, struct client *c, const char *node, const char *job,
		       uint64_t signal, struct iocom_err *err)
{
	const struct matrix_entry *e = matrix_find(&a->matrix, node);
	msgpack_sbuffer body;
	msgpack_packer pk;
	int rc;

	if (!e || !e->alive || !a->control)
		return iocom_err_set(err, -EHOSTUNREACH, "node %s, where job %s runs, is silent",
				     node, job);
	pack_begin(&pk, &body, 2);
	pack_u64(&pk, "uid", client_who(c)->uid);
	pack_u64(&pk, "signal", signal);
	rc = control_ask(a->control, node, e->vector.address, e->vector.port, "kill", job, &body,
			 killed, c, err);
	msgpack_sbuffer_destroy(&body);
	return rc;
}

static void cli_requests_signalled(void *arg, int rc, const char *why)
{
	if (rc)
		client_error(arg, "%s", why);
	else
		client_json(arg, json_pack("{s:b}", "signalled", 1));
}

static void cli_requests_take_name(void *arg, const struct journal_job *job)
{
	snprintf(arg, SPEC_JOB_MAX, "%s", job->job);
}

struct ran {
	uid_t uid;
	bool ended;
};

static void take_ran(void *arg, const struct journal_job *job)
{
	*(struct ran *)arg = (struct ran){job->uid, job->end_ns != 0};
}

/* A job of UID's that was submitted elsewhere, and has ended. */
static bool ran_here(struct agent *a, const char *job, uid_t uid)
{
	struct ran ran = {0};

	return !journal_find(a->journal, job, uid, take_ran, &ran) && ran.ended &&
	       (uid == 0 || uid == ran.uid);
}

static void op_kill(struct agent *a, struct client *c, const msgpack_object *request)
{
	char job[SPEC_JOB_MAX], asked[SPEC_JOB_MAX], node[IOCOM_NAME_MAX] = "", class_name[64];
	uid_t uid = client_who(c)->uid, owner;
	struct iocom_err err = {0};
	uint64_t signal = 15;
	bool ended, unknown;
	int rc;

	unpack_u64(request, "signal", &signal);
	if (unpack_str(request, "job", job, sizeof(job)) || signal > 64) {
		client_error(c, "the request names no \"job\", or no signal from 0 to 64");
		return;
	}
	if (!strcmp(job, "last"))
		(void)journal_find(a->journal, job, uid, cli_requests_take_name, job);
	memcpy(asked, job, sizeof(asked));
	rc = journal_lease_last(a->journal, job, &err);
	if (rc >= 0)
		rc = journal_home_get(a->journal, job, node, &owner, class_name, &ended, &err);
	unknown = rc == -ENOENT;
	if (rc == 0 && uid != 0 && uid != owner)
		rc = -EPERM;
	else if (rc == 0 && ended)
		rc = iocom_err_set(&err, -ESRCH, "job %s has ended", job);
	else if (rc == 0 && strcmp(node, a->set.name)) {
		rc = kill_remote(a, c, node, job, signal, &err);
		if (rc == 0)
			return; /* answered later */
	} else if (rc == 0 || unknown) {
		rc = signals_send(a, job, uid, (int)signal, cli_requests_signalled, c, &err);
		if (!rc && !signal)
			cli_requests_signalled(c, 0, "");
	}
	if (unknown && rc == -ESRCH && ran_here(a, job, uid))
		unknown = !iocom_err_set(&err, rc, "job %s has ended", job);
	/* Whose jobs there are is nobody else's business: both sentences are one. */
	if (rc == -EPERM || (unknown && rc == -ESRCH))
		iocom_err_set(&err, rc,
			      "no job of yours named %s runs at node %s or was submitted there; "
			      "ask at its home node, `iocom jobs --all` lists them",
			      asked, a->set.name);
	if (rc == -EPERM)
		ops_log_foreign(a, c, "signal", job);
	if (rc)
		client_error(c, "%s", err.text);
}

void ops_forget(struct agent *a, const struct client *client)
{
	recorders_forget(a, client);
	wait_forget(a, client);
	signals_forget(a, client);
	if (a->control)
		control_forget(a->control, client);
}

void ops_request(struct agent *a, struct client *c, const msgpack_object *request)
{
	static const struct {
		const char *op;
		void (*handle)(struct agent *a, struct client *c, const msgpack_object *request);
	} ops[] = {
		{"status", status_request},
		{"nodes", op_nodes},
		{"jobs", op_jobs},
		{"explain", explain_request},
		{"top", op_top},
		{"kill", op_kill},
		{"record", op_record},
		{"profile", profiles_request},
		{"wait", wait_request},
		{"attach", attach_request},
	};
	char op[32] = "";

	unpack_str(request, "op", op, sizeof(op));
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		if (!strcmp(op, ops[i].op)) {
			ops[i].handle(a, c, request);
			return;
		}
	}
	client_error(c, "the agent does not know the request '%s'; is it an older version?", op);
}
