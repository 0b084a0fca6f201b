/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where a submitted job runs: what it needs, the view, the rules' plan, then
 * admission.
 *
 *   decide -> candidate 1 -> 2 -> 3 -> home          (refused, or no answer: next)
 *   --node N: N alone, and its refusal is the answer
 *
 * Nothing is half-done: the journal has the job before anybody is asked, and the
 * answer reaches the client only after the journal has the decision.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/clock.h"
#include "user/pack.h"
#include "agent/home/place_own.h"
#include "balancer/view/plan_json.h"
#include "agent/front/recorders.h"
#include "agent/home/refusal.h"
#include "agent/cluster/vector_codec.h"

static void place_free(struct place *p)
{
	struct agent *a = p->agent;

	for (struct place **q = &a->places; *q; q = &(*q)->next) {
		if (*q == p) {
			*q = p->next;
			break;
		}
	}
	json_decref(p->answer);
	json_decref(p->refused);
	free(p);
}

void place_forget(struct agent *a, const struct client *client)
{
	for (struct place *p = a->places; p; p = p->next)
		if (p->client == client)
			p->client = NULL;
}

/* What was decided, and who refused, is kept for `iocom explain`. */
static void keep_decision(struct place *p)
{
	struct iocom_err err = {0};
	char *text;

	if (!p->answer)
		return;
	json_object_set_new(p->answer, "job", json_string(p->order.job));
	json_object_set_new(p->answer, "node", json_string(p->node));
	json_object_set_new(p->answer, "failed", json_true());
	text = json_dumps(p->answer, JSON_COMPACT);
	if (text && journal_placed(p->agent->journal, p->order.job, p->node, text, &err))
		agent_journal_failed(p->agent, &err);
	free(text);
}

/* The submission came to nothing: home's journal says why. */
static void place_give_up(struct place *p, const char *why)
{
	struct agent *a = p->agent;
	struct iocom_err err = {0};
	struct journal_job row = {
		.job = p->order.job,
		.state = "failed",
		.end_ns = clock_real_ns(),
		.exit_kind = 3,
		.text = why,
	};

	struct job_report report = {.kind = 3};

	lease_ended(a, p->order.job);
	if (p->order.job[0] && journal_home_end(a->journal, &row, &err))
		agent_journal_failed(a, &err);
	else if (p->order.job[0])
		keep_decision(p);
	if (p->order.job[0]) {
		memcpy(report.job, p->order.job, sizeof(report.job));
		recorders_finished(a, a->set.name, &report);
	}
	if (p->client)
		client_error(p->client, "%s", why);
	place_free(p);
}

/* --- the decision -------------------------------------------------------------- */

static json_t *place_node_json(const struct iocom_vector *v, double age_ms, bool self)
{
	json_t *o = json_object();

	if (!o || vector_json(v, o)) {
		json_decref(o);
		return NULL;
	}
	json_object_set_new(o, "self", json_boolean(self));
	json_object_set_new(o, "age_ms", json_real(age_ms));
	return o;
}

/* The vectors that the decision looks at, in the view's order. */
static json_t *place_nodes_json(const struct place *p, uint64_t now)
{
	const struct matrix *m = &p->agent->matrix;
	json_t *list = json_array();

	json_array_append_new(list, place_node_json(&p->own, 0, true));
	for (size_t i = 0; i < m->count; i++)
		if (matrix_at(m, i)->alive)
			json_array_append_new(
				list,
				place_node_json(&matrix_at(m, i)->vector,
						(double)matrix_age_ns(matrix_at(m, i), now) / 1e6,
						false));
	return list;
}

/* What the target compares with: home's own load with the job, as far as it decided. */
static void left_sides(struct place *p, const struct rules_plan *plan)
{
	for (uint32_t i = 0; i < plan->nreasons; i++) {
		const struct rules_reason *r = &plan->reasons[i];

		if (r->node != plan->node || !r->holds)
			continue;
		if (r->criterion == RULES_C_IO_DISCREPANCY)
			p->order.home_io = p->own.explicit_per_ms + p->own.implicit_per_ms +
					   p->request.io_per_ms;
		if (r->criterion == RULES_C_CPU_DISCREPANCY)
			p->order.home_cpu = p->own.run_queue + 1;
	}
}

static void place_choose(struct place *p, const struct rules_plan *plan,
			 const struct rules_view *view)
{
	uint32_t n = plan->ncandidates;

	if (p->node[0]) {
		strcpy(p->candidates[0], p->node);
		p->ncandidates = 1;
		return;
	}
	if (plan->stayed)
		return;
	snprintf(p->candidates[0], IOCOM_NAME_MAX, "%s", rules_view_name(view, plan->node));
	p->ncandidates = 1;
	for (uint32_t i = 0; i < n && p->ncandidates < PLACE_HOPS; i++)
		if (plan->candidates[i] != plan->node && plan->candidates[i] != 0)
			snprintf(p->candidates[p->ncandidates++], IOCOM_NAME_MAX, "%s",
				 rules_view_name(view, plan->candidates[i]));
}

static int run_rules(struct place *p, const struct view_file *view, struct view_decision *decision,
		     json_t **plan, struct iocom_err *err)
{
	int rc = view_decide(view, &p->policy, decision, err);

	if (rc)
		return rc;
	left_sides(p, &decision->plan);
	place_choose(p, &decision->plan, decision->view);
	*plan = plan_json(decision, true);
	return *plan ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");
}

/* What the decision says and looked at. */
static int place_answer(struct place *p, const struct view_file *view, json_t *plan, uint64_t now,
			struct iocom_err *err)
{
	p->refused = json_array();
	p->answer = json_pack("{s:s,s:s,s:b,s:o,s:o,s:O,s:o,s:I}", "policy", p->policy.name, "home",
			      p->agent->set.name, "forced", p->node[0] != 0, "need",
			      need_json(&p->order.need), "plan", plan, "refused", p->refused,
			      "nodes", place_nodes_json(p, now), "seed", (json_int_t)view->seed);
	if (p->answer && p->picked)
		json_object_set_new(p->answer, "picked", json_true());
	if (p->answer && p->show_view &&
	    json_object_set_new(p->answer, "view", view_file_json(view))) {
		json_decref(p->answer);
		p->answer = NULL;
	}
	return p->answer ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");
}

/* VIEW and DECISION are to be freed in any case. */
static int place_decide(struct place *p, struct view_file *view, struct view_decision *decision,
			struct iocom_err *err)
{
	struct agent *a = p->agent;
	uint64_t now = clock_boot_ns();
	json_t *plan = NULL;
	int rc;

	tick_own_vector(a, &p->own);
	view_charges_settle(&a->charges, &a->matrix, now);
	rc = view_build(&p->own, &a->matrix, &a->charges, now, view);
	if (rc)
		return iocom_err_set(err, rc, "cannot build the view of the cluster: %s",
				     strerror(-rc));
	view->seed = (a->self.boot_id ^ ++a->job_sequence) & VIEW_SEED_MAX;
	view->job = p->request;
	rc = run_rules(p, view, decision, &plan, err);
	if (!rc)
		rc = place_answer(p, view, plan, now, err);
	return rc;
}

/* --- running it ------------------------------------------------------------------ */

static int submit(struct place *p, struct iocom_err *err)
{
	struct agent *a = p->agent;
	struct journal_job row;
	int rc = 0;

	snprintf(p->order.job, sizeof(p->order.job), "%s-%08x-%llu", a->set.name,
		 (unsigned)(a->self.boot_id & 0xffffffff), (unsigned long long)a->job_sequence);
	row = (struct journal_job){
		.job = p->order.job,
		.uid = p->order.uid,
		.class_name = p->order.class_name,
		.command = p->order.command,
		.policy = p->order.policy,
		.node = "",
		.submit_ns = p->order.submit_ns,
		.worker = p->worker,
	};
	if (p->restartable)
		rc = lease_begin(a, &p->order, p->first[0] ? p->first : row.job, p->attempt,
				 (uint32_t)p->restarts, p->again, err);
	if (!rc)
		rc = journal_submit(a->journal, &row, err);
	if (rc) {
		a->counters.journal_failures++;
		p->order.job[0] = 0;
	}
	return rc;
}

static void tell_attempt(const struct place *p)
{
	const struct job_order *o = &p->order;

	json_object_set_new(p->answer, "attempt", json_integer(p->attempt));
	json_object_set_new(p->answer, "restarts", json_integer((json_int_t)p->restarts));
	json_object_set_new(p->answer, "first", json_string(p->first[0] ? p->first : o->job));
	json_object_set_new(p->answer, "lease_ms", json_integer(o->lease_ms));
}

/* The decision stands: journal, then client. */
static void placed(struct place *p, const char *node, const char *address, uint16_t port,
		   const char *nonce)
{
	struct agent *a = p->agent;
	struct iocom_err err = {0};
	char *text;
	int rc;

	json_object_set_new(p->answer, "job", json_string(p->order.job));
	json_object_set_new(p->answer, "node", json_string(node));
	json_object_set_new(p->answer, "address", json_string(address));
	json_object_set_new(p->answer, "port", json_integer(port));
	json_object_set_new(p->answer, "tls", json_boolean(a->tls && address[0]));
	if (p->home_dir)
		json_object_set_new(p->answer, "cwd", json_string(p->order.cwd));
	if (p->restartable)
		tell_attempt(p);
	text = json_dumps(p->answer, JSON_COMPACT);
	rc = p->again[0] ? lease_fence(a, p->again, p->order.job, &err) : 0;
	if (!rc)
		rc = text ? journal_placed(a->journal, p->order.job, node, text, &err) : -ENOMEM;
	free(text);
	if (rc) {
		a->counters.journal_failures++;
		place_give_up(p, err.text[0] ? err.text : "out of memory");
		return;
	}
	/* The nonce is the client's alone: not in the journal. */
	json_object_set_new(p->answer, "nonce", json_string(nonce));
	json_object_set_new(p->answer, "munge_socket", json_string(a->set.munge_socket));
	if (p->client)
		client_json(p->client, json_incref(p->answer));
	place_free(p);
}

/* Decides, and, where it is to run, the journal has the job and its decision is recorded. */
static int take_decision(struct place *p, struct iocom_err *err)
{
	struct view_file view = {0};
	struct view_decision decision = {0};
	int rc = place_decide(p, &view, &decision, err);

	if (!rc && p->run)
		rc = submit(p, err);
	if (!rc)
		recorders_decided(p->agent, &(struct recorders_decision){
						    .order = &p->order,
						    .request = &p->request,
						    .view = &view,
						    .decision = &decision,
						    .run = p->run,
					    });
	view_decision_fini(&decision);
	view_file_fini(&view);
	return rc;
}

static void try_next(struct place *p);

static void try_home(struct place *p)
{
	struct agent *a = p->agent;
	struct target_grant g;
	char why[400];

	p->order.lease_ms = 0; /* here we shall know how it ends */
	p->order.renews = false;
	target_admit(a, &p->order, &g);
	if (g.granted) {
		placed(p, a->set.name, "", 0, g.nonce);
		return;
	}
	json_array_append_new(p->refused, refusal_json(a->set.name, g.reason, g.text));
	snprintf(why, sizeof(why), "node %s cannot take the job: %s", a->set.name, g.text);
	place_give_up(p, why);
}

static void refused_by(struct place *p, const char *node, const char *reason, const char *text)
{
	char why[600];

	/* A login whose directory is not there begins in another, as sshd has it. */
	if (p->home_dir && !strcmp(reason, REFUSAL_PATH) && strcmp(p->order.cwd, "/") != 0) {
		strcpy(p->order.cwd, "/");
		p->at--;
		try_next(p);
		return;
	}
	json_array_append_new(p->refused, refusal_json(node, reason, text));
	if (!p->node[0]) {
		try_next(p);
		return;
	}
	refusal_sentence(node, reason, text, why, sizeof(why));
	/* One that is cut off now may be heard again: its client asks again. */
	if (p->again[0] && p->client &&
	    (!strcmp(reason, "silent") || !strcmp(reason, "no-answer"))) {
		client_json(p->client, lease_silent_json(p->agent, p->node));
		p->client = NULL;
	}
	place_give_up(p, why);
}

static void charge_target(struct place *p, const char *node, uint64_t boot_id, uint64_t sequence)
{
	struct view_charge c = {
		.boot_id = boot_id,
		.sequence = sequence,
		.since_ns = clock_boot_ns(),
		.request = p->request,
	};

	/* Points into P, which goes first; and vectors tell no communication either. */
	c.request.com_ms = NULL;
	snprintf(c.node, sizeof(c.node), "%s", node);
	view_charge_add(&p->agent->charges, &c);
}

static void granted_by(struct place *p, const char *node, const msgpack_object *body)
{
	const struct matrix_entry *e = matrix_find(&p->agent->matrix, node);
	char nonce[SPEC_NONCE_MAX];
	uint64_t boot_id, sequence, lease_ms = 0;

	(void)unpack_u64(body, "lease_ms", &lease_ms);
	if (lease_ms != p->order.lease_ms) {
		refused_by(p, node, "no-lease",
			   "it knows nothing of restartable jobs; install the same iocom version "
			   "on all nodes");
		return;
	}
	if (unpack_str(body, "nonce", nonce, sizeof(nonce)) ||
	    unpack_u64(body, "boot_id", &boot_id) || unpack_u64(body, "sequence", &sequence)) {
		refused_by(p, node, REFUSAL_NO_ANSWER, "gave an incomplete answer");
		return;
	}
	if (!e) { /* forgotten while it answered */
		refused_by(p, node, REFUSAL_NO_ANSWER, "has left the cluster");
		return;
	}
	if (p->order.lease_ms && lease_placed(p->agent, &p->order)) {
		refused_by(p, node, "no-lease", "out of memory for its lease");
		return;
	}
	charge_target(p, node, boot_id, sequence);
	placed(p, node, e->vector.address, (uint16_t)(e->vector.port + 2), nonce);
}

static void unanswered(struct place *p, const char *node, int rc, const char *why)
{
	const struct matrix_entry *e = matrix_find(&p->agent->matrix, node);
	char text[512], skew[TARGET_TEXT_MAX];

	/* It does not answer whom it does not believe, and we would not believe it. */
	if (skews_say(&p->agent->skews, node, clock_boot_ns(), skew, sizeof(skew)))
		snprintf(text, sizeof(text), "is not believed: %s", skew);
	else if (rc == -ETIMEDOUT && e)
		refusal_unanswered(matrix_age_ns(e, clock_boot_ns()), text, sizeof(text));
	else
		snprintf(text, sizeof(text), "could not be asked: %s", why);
	refused_by(p, node, REFUSAL_NO_ANSWER, text);
}

static void place_answered(void *arg, int rc, const msgpack_object *body, const char *why)
{
	struct place *p = arg;
	char node[IOCOM_NAME_MAX], reason[24], text[TARGET_TEXT_MAX];
	bool grant;

	memcpy(node, p->candidates[p->at - 1], sizeof(node));
	if (rc == -ECANCELED || !p->client) {
		place_give_up(p, "the agent is stopping");
		return;
	}
	if (rc) {
		unanswered(p, node, rc, why);
	} else if (unpack_bool(body, "grant", &grant)) {
		refused_by(p, node, REFUSAL_NO_ANSWER, "gave an incomplete answer");
	} else if (grant) {
		granted_by(p, node, body);
	} else {
		if (unpack_str(body, "reason", reason, sizeof(reason)))
			strcpy(reason, "refused");
		if (unpack_str(body, "text", text, sizeof(text)))
			text[0] = 0;
		refused_by(p, node, reason, text);
	}
}

static void try_next(struct place *p)
{
	struct agent *a = p->agent;
	const struct matrix_entry *e;
	struct iocom_err err = {0};
	msgpack_sbuffer body;
	const char *node;
	int rc;

	if (p->at == p->ncandidates) {
		try_home(p);
		return;
	}
	node = p->candidates[p->at++];
	if (!strcmp(node, a->set.name)) {
		try_home(p);
		return;
	}
	e = matrix_find(&a->matrix, node);
	if (!e || !e->alive || !a->control) {
		refused_by(p, node, REFUSAL_SILENT, "is not heard any more");
		return;
	}
	p->order.hops++;
	p->order.lease_ms = p->restartable ? p->agent->set.lease_s * 1000 : 0;
	msgpack_sbuffer_init(&body);
	job_order_pack(&p->order, &body);
	rc = control_ask(a->control, node, e->vector.address, e->vector.port, "admit", p->order.job,
			 &body, place_answered, p, &err);
	msgpack_sbuffer_destroy(&body);
	if (rc)
		unanswered(p, node, rc, err.text);
}

/* The one node that is wanted is not heard. */
static bool is_silent(const struct place *p)
{
	const struct matrix_entry *e = matrix_find(&p->agent->matrix, p->node);

	return p->node[0] && strcmp(p->node, p->agent->set.name) && !(e && e->alive);
}

/* True: the client has its answer, the job is not run again, or not yet. */
static bool not_again(struct place *p)
{
	struct lease_answer answer = {0};
	struct iocom_err err = {0};
	int rc = lease_again(p->agent, p->order.uid, p->again, &answer, &err);

	if (!rc && answer.what == LEASE_AGAIN && is_silent(p)) {
		client_json(p->client, lease_silent_json(p->agent, p->node));
		return true;
	}
	if (!rc && answer.what == LEASE_AGAIN) {
		p->attempt = answer.attempt;
		p->restarts = answer.lost.restarts;
		snprintf(p->first, sizeof(p->first), "%s", answer.lost.first);
		return false;
	}
	if (rc)
		client_error(p->client, "%s", err.text);
	else
		client_json(p->client, lease_answer_json(&answer));
	return true;
}

void place_request(struct agent *a, struct client *client, const msgpack_object *request)
{
	struct place *p = calloc(1, sizeof(*p));
	struct iocom_err err = {0};
	int rc;

	if (!p) {
		client_error(client, "out of memory");
		return;
	}
	p->agent = a;
	p->client = client;
	p->next = a->places;
	a->places = p;
	rc = place_take_request(p, request, client_who(client)->uid, &err);
	if (!rc && p->again[0] && not_again(p)) {
		p->client = NULL;
		place_free(p);
		return;
	}
	if (!rc)
		rc = take_decision(p, &err);
	if (rc) {
		client_error(client, "%s", err.text);
		p->client = NULL;
		place_free(p);
		return;
	}
	if (p->run) {
		try_next(p);
		return;
	}
	json_object_set_new(p->answer, "node",
			    json_string(p->ncandidates ? p->candidates[0] : a->set.name));
	client_json(client, json_incref(p->answer));
	place_free(p);
}
