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
#include "agent/home/place.h"
#include "balancer/view/plan_json.h"
#include "agent/home/refusal.h"
#include "agent/cluster/vector_codec.h"

#define STOPPING    "the agent is stopping"
#define CLIENT_LEFT "its client left before the job had a place"

static void place_free(struct place *p)
{
	struct home *home = p->home;

	for (struct place **q = &home->places; *q; q = &(*q)->next) {
		if (*q == p) {
			*q = p->next;
			break;
		}
	}
	json_decref(p->answer);
	json_decref(p->refused);
	free(p);
}

void home_forget(struct home *home, const void *arg)
{
	for (struct place *p = home->places; p; p = p->next)
		if (p->placed_arg == arg)
			p->placed = NULL;
}

/* The client hears, if it is still there; ANSWER is taken. */
static void place_tell(struct place *p, json_t *answer, const char *why)
{
	home_placed placed = p->placed;

	p->placed = NULL;
	if (!placed)
		json_decref(answer);
	else
		placed(p->placed_arg, answer, answer ? NULL : why);
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
	if (text && journal_placed(p->home->journal, p->order.job, p->node, text, &err))
		base_journal_failed(p->home->base, &err);
	free(text);
}

/* The submission came to nothing: home's journal says why. */
static void place_give_up(struct place *p, const char *why)
{
	struct home *home = p->home;
	struct iocom_err err = {0};
	struct journal_job row = {
		.job = p->order.job,
		.state = "failed",
		.end_ns = loop_real_ns(home->base->loop),
		.exit_kind = 3,
		.text = why,
	};

	struct job_report report = {.kind = 3};

	lease_ended(home, p->order.job);
	if (p->order.job[0] && journal_home_end(home->journal, &row, &err))
		base_journal_failed(home->base, &err);
	else if (p->order.job[0])
		keep_decision(p);
	if (p->order.job[0]) {
		memcpy(report.job, p->order.job, sizeof(report.job));
		home_tell_finished(home, home->base->set->name, &report);
	}
	place_tell(p, NULL, why);
	place_free(p);
}

void place_stop(struct home *home)
{
	while (home->places)
		place_give_up(home->places, home->places->placed ? STOPPING : CLIENT_LEFT);
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
	const struct cluster_view *view = p->home->view;
	json_t *list = json_array();

	for (uint32_t i = 0; i < cluster_view_count(view); i++)
		json_array_append_new(list,
				      place_node_json(cluster_view_vector(view, i),
						      cluster_view_age_ms(view, i, now), i == 0));
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

/* Everything that the decision looked at, as a document; NULL: no memory. */
static json_t *place_view_json(const struct place *p, uint64_t now)
{
	struct view_file file;
	json_t *document;

	if (cluster_view_file(p->home->view, now, &file))
		return NULL;
	file.seed = p->seed;
	file.job = p->request;
	document = view_file_json(&file);
	view_file_fini(&file);
	return document;
}

/* What the decision says and looked at. */
static int place_answer(struct place *p, const struct view_decision *decision, uint64_t now,
			struct iocom_err *err)
{
	p->refused = json_array();
	p->answer = json_pack("{s:s,s:s,s:b,s:o,s:o,s:O,s:o,s:I}", "policy", p->policy.name, "home",
			      p->home->base->set->name, "forced", p->node[0] != 0, "need",
			      need_json(&p->order.need), "plan", plan_json(decision, true),
			      "refused", p->refused, "nodes", place_nodes_json(p, now), "seed",
			      (json_int_t)p->seed);
	if (p->answer && p->picked)
		json_object_set_new(p->answer, "picked", json_true());
	if (p->answer && p->show_view &&
	    json_object_set_new(p->answer, "view", place_view_json(p, now))) {
		json_decref(p->answer);
		p->answer = NULL;
	}
	return p->answer ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");
}

/* DECISION is to be freed in any case. */
static int place_decide(struct place *p, struct view_decision *decision, struct iocom_err *err)
{
	struct home *home = p->home;
	uint64_t now = loop_boot_ns(home->base->loop);
	int rc;

	home->ports->own_vector(home->ports->arg, &p->own);
	rc = cluster_view_refresh(home->view, &p->own, now);
	if (rc)
		return iocom_err_set(err, rc,
				     "cannot decide: this node's own load is out of the range of "
				     "the rules");
	p->seed = (home->base->boot_id ^ ++home->job_sequence) & VIEW_SEED_MAX;
	rc = cluster_view_decide(home->view, &p->policy, &p->request, p->seed, decision, err);
	if (rc)
		return rc;
	left_sides(p, &decision->plan);
	place_choose(p, &decision->plan, decision->view);
	return place_answer(p, decision, now, err);
}

/* --- running it ------------------------------------------------------------------ */

static int submit(struct place *p, struct iocom_err *err)
{
	struct home *home = p->home;
	struct journal_job row;
	int rc = 0;

	snprintf(p->order.job, sizeof(p->order.job), "%s-%08x-%llu", home->base->set->name,
		 (unsigned)(home->base->boot_id & 0xffffffff),
		 (unsigned long long)home->job_sequence);
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
		rc = lease_begin(home, &p->order, p->first[0] ? p->first : row.job, p->attempt,
				 (uint32_t)p->restarts, p->again, err);
	if (!rc)
		rc = journal_submit(home->journal, &row, err);
	if (rc) {
		home->base->counters->journal_failures += rc != -EAGAIN;
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
	struct home *home = p->home;
	struct iocom_err err = {0};
	char *text;
	int rc;

	json_object_set_new(p->answer, "job", json_string(p->order.job));
	json_object_set_new(p->answer, "node", json_string(node));
	json_object_set_new(p->answer, "address", json_string(address));
	json_object_set_new(p->answer, "port", json_integer(port));
	json_object_set_new(p->answer, "tls", json_boolean(home->config.tls && address[0]));
	if (p->home_dir)
		json_object_set_new(p->answer, "cwd", json_string(p->order.cwd));
	if (p->restartable)
		tell_attempt(p);
	text = json_dumps(p->answer, JSON_COMPACT);
	rc = p->again[0] ? lease_fence(home, p->again, p->order.job, &err) : 0;
	if (!rc)
		rc = text ? journal_placed(home->journal, p->order.job, node, text, &err) : -ENOMEM;
	free(text);
	if (rc) {
		home->base->counters->journal_failures += rc != -ESTALE && rc != -ENOMEM;
		place_give_up(p, err.text[0] ? err.text : "out of memory");
		return;
	}
	/* The nonce is the client's alone: not in the journal. */
	json_object_set_new(p->answer, "nonce", json_string(nonce));
	json_object_set_new(p->answer, "munge_socket", json_string(home->base->set->munge_socket));
	place_tell(p, json_incref(p->answer), NULL);
	place_free(p);
}

/* Decides, and, where it is to run, the journal has the job and its decision is recorded. */
static int take_decision(struct place *p, struct iocom_err *err)
{
	struct view_decision decision = {0};
	int rc = place_decide(p, &decision, err);

	if (!rc && p->run)
		rc = submit(p, err);
	if (!rc)
		home_tell_decided(p->home, &(struct home_decision){
						   .order = &p->order,
						   .request = &p->request,
						   .view = p->home->view,
						   .seed = p->seed,
						   .decision = &decision,
						   .run = p->run,
					   });
	view_decision_fini(&decision);
	return rc;
}

static bool is_own(const struct place *p, const char *node)
{
	return !strcmp(node, p->home->base->set->name);
}

static void try_next(struct place *p);

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
	if (is_own(p, node)) { /* the last resort */
		snprintf(why, sizeof(why), "node %s cannot take the job: %s", node, text);
		place_give_up(p, why);
		return;
	}
	if (!p->node[0]) {
		try_next(p);
		return;
	}
	refusal_sentence(node, reason, text, why, sizeof(why));
	/* One that is cut off now may be heard again: its client asks again. */
	if (p->again[0] && p->placed &&
	    (!strcmp(reason, REFUSAL_SILENT) || !strcmp(reason, REFUSAL_NO_ANSWER)))
		place_tell(p, lease_silent_json(p->home, p->node), why);
	place_give_up(p, why);
}

static void charge_target(struct place *p, const char *node, uint64_t boot_id, uint64_t sequence)
{
	struct view_charge c = {
		.boot_id = boot_id,
		.sequence = sequence,
		.since_ns = loop_boot_ns(p->home->base->loop),
		.request = p->request,
	};

	snprintf(c.node, sizeof(c.node), "%s", node);
	cluster_view_charge(p->home->view, &c);
}

static void granted_by_other(struct place *p, const char *node, const struct peer_grant *g)
{
	const struct matrix_entry *e = matrix_find(p->home->matrix, node);

	if (!e) { /* forgotten while it answered */
		refused_by(p, node, REFUSAL_NO_ANSWER, "has left the cluster");
		return;
	}
	if (p->order.lease_ms && lease_placed(p->home, &p->order)) {
		refused_by(p, node, "no-lease", "out of memory for its lease");
		return;
	}
	charge_target(p, node, g->boot_id, g->sequence);
	placed(p, node, e->vector.address, (uint16_t)(e->vector.port + 2), g->nonce);
}

static void granted_by(struct place *p, const char *node, const struct peer_grant *g)
{
	if (g->lease_ms != p->order.lease_ms)
		refused_by(p, node, "no-lease",
			   "it knows nothing of restartable jobs; install the same iocom version "
			   "on all nodes");
	else if (is_own(p, node)) /* the client's connection to this agent becomes the stream */
		placed(p, node, "", 0, g->nonce);
	else
		granted_by_other(p, node, g);
}

static void unanswered(struct place *p, const char *node, int rc, const char *why)
{
	const struct matrix_entry *e = matrix_find(p->home->matrix, node);
	char text[512], skew[PEER_TEXT_MAX];

	/* It does not answer whom it does not believe, and we would not believe it. */
	if (skews_say(p->home->skews, node, loop_boot_ns(p->home->base->loop), skew, sizeof(skew)))
		snprintf(text, sizeof(text), "is not believed: %s", skew);
	else if (rc == -ETIMEDOUT && e)
		refusal_unanswered(matrix_age_ns(e, loop_boot_ns(p->home->base->loop)), text,
				   sizeof(text));
	else
		snprintf(text, sizeof(text), "could not be asked: %s", why);
	refused_by(p, node, REFUSAL_NO_ANSWER, text);
}

static void place_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct place *p = arg;
	char node[IOCOM_NAME_MAX];

	memcpy(node, p->asked, sizeof(node));
	if (!p->placed)
		place_give_up(p, CLIENT_LEFT);
	else if (rc == -ECANCELED)
		place_give_up(p, STOPPING);
	else if (rc == -EBADMSG)
		refused_by(p, node, REFUSAL_NO_ANSWER, "gave an incomplete answer");
	else if (rc)
		unanswered(p, node, rc, why);
	else if (answer->grant.granted)
		granted_by(p, node, &answer->grant);
	else
		refused_by(p, node, answer->grant.reason, answer->grant.text);
}

/* Asks the guest of NODE at ADDRESS, which may be this node, for admission. */
static void ask_guest(struct place *p, const char *node, const char *address, uint16_t port)
{
	struct peer_request request = {.type = PEER_ADMIT, .order = &p->order};
	const struct home_ports *ports = p->home->ports;
	struct iocom_err err = {0};
	int rc;

	memcpy(request.job, p->order.job, sizeof(request.job));
	rc = ports->ask(ports->ask_arg, node, address, port, &request, place_answered, p, &err);
	if (rc)
		unanswered(p, node, rc, err.text);
}

static void try_next(struct place *p)
{
	const struct settings *set = p->home->base->set;
	const char *node = p->at < p->ncandidates ? p->candidates[p->at] : set->name;
	const struct matrix_entry *e;

	p->at++;
	snprintf(p->asked, sizeof(p->asked), "%s", node);
	if (is_own(p, p->asked)) {
		p->order.lease_ms = 0; /* here we shall know how it ends */
		p->order.renews = false;
		ask_guest(p, p->asked, "", 0);
		return;
	}
	e = matrix_find(p->home->matrix, p->asked);
	if (!e || !e->alive) {
		refused_by(p, p->asked, REFUSAL_SILENT, "is not heard any more");
		return;
	}
	p->order.hops++;
	p->order.lease_ms = p->restartable ? set->lease_s * 1000 : 0;
	ask_guest(p, p->asked, e->vector.address, e->vector.port);
}

/* The one node that is wanted is not heard. */
static bool is_silent(const struct place *p)
{
	const struct matrix_entry *e = matrix_find(p->home->matrix, p->node);

	return p->node[0] && strcmp(p->node, p->home->base->set->name) && !(e && e->alive);
}

/* True: the client has its answer, the job is not run again, or not yet. */
static bool not_again(struct place *p)
{
	struct lease_answer answer = {0};
	struct iocom_err err = {0};
	int rc = lease_again(p->home, p->order.uid, p->again, &answer, &err);

	if (!rc && answer.what == LEASE_AGAIN && is_silent(p)) {
		place_tell(p, lease_silent_json(p->home, p->node), "out of memory");
		return true;
	}
	if (!rc && answer.what == LEASE_AGAIN) {
		p->attempt = answer.attempt;
		p->restarts = answer.lost.restarts;
		snprintf(p->first, sizeof(p->first), "%s", answer.lost.first);
		return false;
	}
	place_tell(p, rc ? NULL : lease_answer_json(&answer), rc ? err.text : "out of memory");
	return true;
}

static int place_begin(struct place *p, uid_t uid, const msgpack_object *request,
		       struct iocom_err *err)
{
	int rc = place_take_request(p, request, uid, err);

	if (!rc && p->again[0] && not_again(p))
		return 0;
	return rc ? rc : take_decision(p, err);
}

void home_place(struct home *home, uid_t uid, const msgpack_object *request, home_placed placed,
		void *arg)
{
	struct place *p = calloc(1, sizeof(*p));
	struct iocom_err err = {0};
	int rc;

	if (!p) {
		placed(arg, NULL, "out of memory");
		return;
	}
	p->home = home;
	p->placed = placed;
	p->placed_arg = arg;
	p->next = home->places;
	home->places = p;
	rc = place_begin(p, uid, request, &err);
	if (rc) {
		place_tell(p, NULL, err.text);
		place_free(p);
	} else if (!p->placed) { /* it has its answer: not run again, or not yet; or it left */
		place_give_up(p, CLIENT_LEFT);
	} else if (p->run) {
		try_next(p);
	} else {
		json_object_set_new(
			p->answer, "node",
			json_string(p->ncandidates ? p->candidates[0] : home->base->set->name));
		place_tell(p, json_incref(p->answer), NULL);
		place_free(p);
	}
}
