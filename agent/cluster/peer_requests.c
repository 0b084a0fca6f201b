/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What other agents ask and tell, and what becomes of jobs submitted here.
 *
 *   admit    { order }                  -> { grant, lease_ms, nonce, boot_id, sequence,
 *                                            reason, text }
 *   started  { start_ns, pid }          -> { ok }      the target to the home
 *   done     { report, more: [ reports ] } -> { ok, text, taken }
 *   kill     { uid, signal }            -> { ok, text } the home to the target
 *   renew    { lease_ms }               -> { ok, text } not ok: fenced (leases.h)
 *   hello    { address, port }          -> { ok }      subscribe to me
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/guest/guest_attach.h"
#include "user/clock.h"
#include "agent/jobs/leases.h"
#include "user/pack.h"
#include "agent/front/recorders.h"
#include "agent/guest/signals.h"

/* --- jobs submitted here ------------------------------------------------------ */

int home_started(struct agent *a, const char *from, const char *job, uint64_t start_ns, pid_t pid)
{
	char node[IOCOM_NAME_MAX], class_name[64];
	struct iocom_err err = {0};
	bool ended;
	uid_t uid;
	int rc = journal_home_get(a->journal, job, node, &uid, class_name, &ended, &err);

	if (rc == -ENOENT)
		return 0; /* pruned */
	if (!rc && strcmp(node, from))
		return -EACCES;
	if (!rc)
		rc = journal_home_state(a->journal, job, "running", start_ns, pid, &err);
	if (rc)
		agent_journal_failed(a, &err);
	return rc;
}

/* A job that ran to its end by itself teaches; one that was killed half-way does not. */
static void learn(struct agent *a, uid_t uid, const char *class_name, const struct job_report *r)
{
	struct iocom_err err = {0};
	struct profile run;

	if (strcmp(r->state, "exited") || r->value != 0 || !class_name[0])
		return;
	job_report_profile(r, &run);
	if (profile_learn(a->profiles, uid, class_name, &run, &err))
		agent_journal_failed(a, &err);
}

int home_ended(struct agent *a, const char *from, const struct job_report *r)
{
	struct journal_job row = {
		.job = r->job,
		.state = r->state,
		.start_ns = r->start_ns,
		.end_ns = r->end_ns ? r->end_ns : clock_real_ns(),
		.exit_kind = (int)r->kind,
		.exit_value = (int)r->value,
		.text = r->text,
	};
	char node[IOCOM_NAME_MAX], class_name[64];
	struct iocom_err err = {0};
	bool ended;
	uid_t uid;
	int rc = journal_home_get(a->journal, r->job, node, &uid, class_name, &ended, &err);

	if (rc == -ENOENT)
		return 0; /* pruned: nobody waits for it */
	if (!rc && strcmp(node, from)) {
		/* Where it was let in, and its client went elsewhere; or somebody lies. */
		a->counters.controls_refused++;
		log_provoked(&a->log, LOG_L_INFO,
			     "node %s tells of an end of job %s, which is not placed there: not "
			     "believed",
			     from, r->job);
		return -EACCES;
	}
	if (!rc && ended)
		return 0; /* told twice */
	if (!rc)
		rc = journal_home_end(a->journal, &row, &err);
	if (rc) {
		agent_journal_failed(a, &err);
		return rc;
	}
	lease_ended(a, r->job);
	recorders_finished(a, from, r);
	wait_ended(a, r->job);
	learn(a, uid, class_name, r);
	return 0;
}

/* --- questions of others -------------------------------------------------------- */

static void answer_ok(msgpack_sbuffer *out, bool ok, const char *text)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 2);
	pack_bool(&pk, "ok", ok);
	pack_str(&pk, "text", text);
}

/* A question that is answered later. */
struct asked {
	struct agent *agent;
	uint64_t ticket;
};

static struct asked *asked_new(struct agent *a)
{
	struct asked *w = calloc(1, sizeof(*w));

	if (w)
		w->agent = a;
	return w;
}

static void pack_grant(const struct target_grant *g, uint32_t lease_ms, msgpack_sbuffer *out)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 7);
	pack_bool(&pk, "grant", g->granted);
	pack_u64(&pk, "lease_ms", lease_ms);
	pack_str(&pk, "nonce", g->nonce);
	pack_u64(&pk, "boot_id", g->boot_id);
	pack_u64(&pk, "sequence", g->sequence);
	pack_str(&pk, "reason", g->reason);
	pack_str(&pk, "text", g->text);
}

static void admitted(void *arg, const struct job_order *order, const struct target_grant *g)
{
	struct asked *w = arg;
	msgpack_sbuffer out;

	msgpack_sbuffer_init(&out);
	pack_grant(g, order->lease_ms, &out);
	control_answer_later(w->agent->control, w->ticket, 0, &out);
	msgpack_sbuffer_destroy(&out);
	free(w);
}

static int on_admit(struct agent *a, const struct control_head *head, const msgpack_object *body,
		    msgpack_sbuffer *out)
{
	struct job_order order;
	struct asked *w;

	(void)out;
	if (job_order_unpack(&order, body) || strcmp(order.job, head->job) ||
	    strcmp(order.home, head->from))
		return -EBADMSG;
	w = asked_new(a);
	if (!w)
		return -ENOMEM;
	w->ticket = control_defer(a->control);
	target_admit_guest(a, &order, admitted, w);
	return 0;
}

static int peer_requests_on_started(struct agent *a, const struct control_head *head,
				    const msgpack_object *body, msgpack_sbuffer *out)
{
	uint64_t start_ns, pid;

	if (unpack_u64(body, "start_ns", &start_ns) || unpack_u64(body, "pid", &pid))
		return -EBADMSG;
	answer_ok(out, home_started(a, head->from, head->job, start_ns, (pid_t)pid) == 0, "");
	return 0;
}

static int on_done(struct agent *a, const struct control_head *head, const msgpack_object *body,
		   msgpack_sbuffer *out)
{
	const msgpack_object_array *others;
	msgpack_packer pk;
	struct job_report r;
	size_t taken = 1;
	int rc, next;

	if (job_report_unpack(&r, body) || strcmp(r.job, head->job) ||
	    job_report_others(body, &others))
		return -EBADMSG;
	/* No answer where the journal failed: the target tells again. */
	rc = next = home_ended(a, head->from, &r);
	for (; others && taken <= others->size && (!next || next == -EACCES); taken++) {
		(void)job_report_unpack(&r, &others->ptr[taken - 1]);
		next = home_ended(a, head->from, &r);
		if (!rc)
			rc = next;
	}
	if (next && next != -EACCES)
		return -EIO;
	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 3);
	pack_bool(&pk, "ok", rc == 0);
	pack_str(&pk, "text", rc ? "the job was not placed there" : "");
	pack_u64(&pk, "taken", taken);
	return 0;
}

static void peer_requests_signalled(void *arg, int rc, const char *why)
{
	struct asked *w = arg;
	msgpack_sbuffer out;

	msgpack_sbuffer_init(&out);
	answer_ok(&out, rc == 0, why);
	control_answer_later(w->agent->control, w->ticket, 0, &out);
	msgpack_sbuffer_destroy(&out);
	free(w);
}

static int on_kill(struct agent *a, const struct control_head *head, const msgpack_object *body,
		   msgpack_sbuffer *out)
{
	struct iocom_err err = {0};
	uint64_t uid, signal;
	struct asked *w;

	if (unpack_u64(body, "uid", &uid) || unpack_u64(body, "signal", &signal) || signal > 64)
		return -EBADMSG;
	w = asked_new(a);
	if (!w)
		return -ENOMEM;
	if (signals_send(a, head->job, (uid_t)uid, (int)signal, peer_requests_signalled, w, &err)) {
		free(w);
		answer_ok(out, false, err.text);
	} else if (!signal) {
		free(w);
		answer_ok(out, true, "");
	} else {
		w->ticket = control_defer(a->control);
	}
	return 0;
}

static int on_renew(struct agent *a, const struct control_head *head, const msgpack_object *body,
		    msgpack_sbuffer *out)
{
	struct iocom_err err = {0};
	int rc = lease_renew(a, head->from, head->job, &err);

	(void)body;
	if (rc && rc != -ESTALE)
		return rc; /* no answer: it is asked again */
	if (rc)
		log_write(&a->log, LOG_L_WARNING, "renewal refused: %s", err.text);
	answer_ok(out, rc == 0, err.text);
	return 0;
}

static int on_hello(struct agent *a, const struct control_head *head, const msgpack_object *body,
		    msgpack_sbuffer *out)
{
	char address[IOCOM_ADDRESS_MAX];
	uint64_t port;

	(void)head;
	if (unpack_str(body, "address", address, sizeof(address)) || !address[0] ||
	    unpack_u64(body, "port", &port) || port < 1 || port > 65533)
		return -EBADMSG;
	bulletin_dial(a->bulletin, address, (uint16_t)port);
	answer_ok(out, true, "");
	return 0;
}

/*
 * 0 when the message comes for the first time.  A journal that cannot be written obeys
 * nobody: what it forgets could be shown again.
 */
static int peer_requests_first_time(struct agent *a, const struct control_head *head,
				    struct iocom_err *err)
{
	int rc = journal_nonce(a->journal, head->from, head->id, clock_real_ns() / CLOCK_NS_PER_S,
			       2 * SEAL_TTL_S, err);

	if (rc < 0)
		agent_journal_failed(a, err);
	return rc > 0 ? -EALREADY : rc;
}

/*
 * The journal did not take an `admit`, which is not obeyed then; but its home shall know why
 * rather than wait.  A refusal gives nothing, who ever shows the message again.
 */
static int refuse_admit(struct agent *a, const struct iocom_err *why, msgpack_sbuffer *out)
{
	struct target_grant g = {
		.boot_id = a->self.boot_id, .sequence = a->sequence + 1, .reason = "journal"};

	snprintf(g.text, sizeof(g.text), "%.*s", (int)sizeof(g.text) - 1, why->text);
	a->counters.admissions_refused++;
	control_undefer(a->control);
	msgpack_sbuffer_clear(out);
	pack_grant(&g, 0, out);
	return 0;
}

static int peer_requests_obey(struct agent *a, const struct control_head *head,
			      const msgpack_object *body, msgpack_sbuffer *out,
			      struct iocom_err *err)
{
	static const struct {
		const char *type;
		int (*handle)(struct agent *a, const struct control_head *head,
			      const msgpack_object *body, msgpack_sbuffer *out);
	} types[] = {
		{"admit", on_admit}, {"started", peer_requests_on_started},
		{"done", on_done},   {"kill", on_kill},
		{"renew", on_renew}, {"hello", on_hello},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(head->type, types[i].type)) {
			int rc = types[i].handle(a, head, body, out);

			return rc ? iocom_err_set(err, rc, "%s", strerror(-rc)) : 0;
		}
	return iocom_err_set(err, -ENOSYS, "unknown type; another version of iocom?");
}

int home_handle(void *arg, const struct control_head *head, const msgpack_object *body,
		msgpack_sbuffer *out)
{
	struct agent *a = arg;
	struct iocom_err err = {0};
	int rc = journal_begin(a->journal, &err), end;
	bool unwritten = rc != 0;

	if (!rc) {
		rc = peer_requests_first_time(a, head, &err);
		unwritten = rc && rc != -EALREADY;
		if (!rc)
			rc = peer_requests_obey(a, head, body, out, &err);
		/* That it was obeyed and what it changed: both, before the answer leaves. */
		end = journal_commit(a->journal, rc ? NULL : &err);
		if (end && !rc)
			rc = end;
		if (end)
			a->counters.journal_failures++;
		unwritten |= end != 0;
	} else {
		agent_journal_failed(a, &err);
	}
	if (rc) {
		a->counters.controls_refused++;
		log_write(&a->log, LOG_L_WARNING, "refused a '%s' message of node %s: %s",
			  head->type, head->from, err.text);
	}
	if (rc && unwritten && !strcmp(head->type, "admit"))
		rc = refuse_admit(a, &err, out);
	return rc;
}

static void hello_answered(void *arg, int rc, const msgpack_object *body, const char *why)
{
	(void)arg;
	(void)rc;
	(void)body;
	(void)why;
}

/*
 * A subscription runs one way: whom we hear does not hear us by that.  So peers
 * of our configuration are asked to subscribe to us; the rest learns of us from
 * the vectors that those relay.  A peer's name is not known before it is heard,
 * and a question must name its target: only peers in the matrix can be asked.
 */
void home_hello(struct agent *a)
{
	msgpack_sbuffer body;
	msgpack_packer pk;

	if (!a->control)
		return;
	pack_begin(&pk, &body, 2);
	pack_str(&pk, "address", a->set.address);
	pack_u64(&pk, "port", a->set.port);
	for (size_t i = 0; i < a->matrix.count; i++) {
		const struct matrix_entry *e = matrix_at(&a->matrix, i);
		bool peer = false;

		for (size_t p = 0; p < a->set.npeers && !peer; p++)
			peer = a->set.peers[p].port == e->vector.port &&
			       !strcmp(a->set.peers[p].address, e->vector.address);
		if (e->alive && peer)
			control_ask(a->control, e->vector.name, e->vector.address, e->vector.port,
				    "hello", "", &body, hello_answered, NULL, NULL);
	}
	msgpack_sbuffer_destroy(&body);
}
