/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where a submitted job runs: what it needs, the view, the rules' plan, then
 * admission.
 *
 *   decide -> candidate 1 -> 2 -> 3 -> home          (refused, or no answer: next)
 *   --node N: N alone, and its refusal is the answer
 *
 * Nothing is half-done: the journal has the job before anybody is asked, and the
 * answer reaches the client only after the journal has the decision; an answer
 * that others learn of, only after the disk has it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/loop_share.h"
#include "user/clock.h"
#include "agent/home/place.h"
#include "balancer/view/plan_json.h"
#include "agent/home/refusal.h"

#define STOPPING    "the agent is stopping"
#define CLIENT_LEFT "its client left before the job had a place"

/* The node that was asked has answered, or the job goes nowhere. */
static void place_uncharge(struct place *p)
{
	if (p->charge)
		cluster_view_uncharge(p->home->view, p->charge);
	p->charge = 0;
}

static void place_free(struct place *p)
{
	struct home *home = p->home;

	for (struct place **q = &home->places; *q; q = &(*q)->next) {
		if (*q == p) {
			*q = p->next;
			break;
		}
	}
	place_uncharge(p);
	journal_forget(home->journal, &p->wait);
	json_decref(p->answer);
	placement_fini(&p->placement);
	job_order_forget(&p->order);
	explicit_bzero(p->key, sizeof(p->key));
	free(p);
}

void home_forget(struct home *home, const void *arg)
{
	for (struct place *p = home->places; p; p = p->next)
		if (p->placed_arg == arg)
			p->placed = NULL;
}

/* Answers the client if it is still there; takes ANSWER. */
static void place_tell(struct place *p, json_t *answer, const char *why)
{
	home_placed placed = p->placed;

	p->placed = NULL;
	if (!placed)
		json_decref(answer);
	else
		placed(p->placed_arg, answer, answer ? NULL : why);
}

/* What NEED is made of: bits of journal_expectation's basis. */
static int place_basis(const struct need *need)
{
	int basis = 0;

	for (enum need_field f = 0; f < NEED_FIELDS; f++) {
		if (need->source[f] == NEED_OPTION || need->source[f] == NEED_SET)
			basis |= JOURNAL_BASIS_TOLD;
		if (need->source[f] == NEED_PROFILE)
			basis |= JOURNAL_BASIS_LEARNED;
	}
	return basis;
}

/* What the decision expects, as the journal keeps it, also that nothing was known. */
static struct journal_expectation place_expectation(const struct place *p)
{
	const struct rules_expectation *e = &p->placement.expectation;
	const struct placement_ask *ask = &p->placement.ask;
	struct journal_expectation row = {
		.balanced = !*ask->node && !ask->worker && !ask->home_dir,
	};

	if (e->known) {
		row.there_ms = e->there_ms;
		row.home_ms = e->home_ms;
		row.there_factor = e->there_factor;
		row.home_factor = e->home_factor;
		row.basis = place_basis(&p->order.need);
	}
	return row;
}

int place_keep(struct place *p, const char *node, struct iocom_err *err)
{
	json_t *row = placement_json(&p->placement, PLACEMENT_ROW);
	char *text = row ? json_dumps(row, JSON_COMPACT) : NULL;
	struct journal_expectation expected = place_expectation(p);
	int rc = text ? journal_placed(p->home->journal, p->order.job, node, text, &expected, err)
		      : iocom_err_set(err, -ENOMEM, "out of memory");

	free(text);
	json_decref(row);
	return rc;
}

/* Keeps the decision and the refusals of a job that no node took, for `iocom explain`. */
static void keep_decision(struct place *p)
{
	struct placement *placement = &p->placement;
	struct iocom_err err = {0};

	if (!placement->plan.document)
		return;
	placement->job = p->order.job;
	placement->node = placement->ask.node;
	placement->failed = true;
	placement->placed = false;
	if (place_keep(p, placement->node, &err))
		base_journal_failed(p->home->base, &err);
}

/* Ends a submission that got no place; home's journal says why. */
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

static bool compares_io(enum rules_criterion c)
{
	return c == RULES_C_IO_DISCREPANCY || c == RULES_C_EXPLICIT_DISCREPANCY ||
	       c == RULES_C_REMOTE_IO || c == RULES_C_DELTA_IO;
}

static bool compares_cpu(enum rules_criterion c)
{
	return c == RULES_C_CPU_DISCREPANCY || c == RULES_C_REMOTE_CPU || c == RULES_C_DELTA_CPU ||
	       c == RULES_C_QUEUE_SHORTER || c == RULES_C_QUEUE_BELOW;
}

/* The load that the target compares with: home's own load with the job, if that load decided. */
static void left_sides(struct place *p, const struct rules_plan *plan)
{
	const struct iocom_vector *own = cluster_view_vector(p->home->view, 0);

	for (uint32_t i = 0; i < plan->nreasons; i++) {
		const struct rules_reason *r = &plan->reasons[i];

		if (r->node != plan->node || !r->holds)
			continue;
		if (compares_io(r->criterion))
			p->order.home_io =
				own->explicit_per_ms + own->implicit_per_ms + p->request.io_per_ms;
		if (compares_cpu(r->criterion))
			p->order.home_cpu = own->run_queue + 1;
	}
}

static bool is_own(const struct place *p, const char *node)
{
	return !strcmp(node, p->home->base->set->name);
}

/* The place in the view of a node that the user named; UINT32_MAX: it has none. */
static uint32_t named_index(const struct place *p, const char *node)
{
	const struct matrix_entry *e = matrix_find(p->home->matrix, node);

	if (is_own(p, node))
		return 0;
	return e && e->view_index ? e->view_index : UINT32_MAX;
}

/* Lists whom to ask, in this order; AT gets their indices in the view. */
static void place_choose(struct place *p, const struct rules_plan *plan,
			 const struct rules_view *view, uint32_t *at)
{
	uint32_t n = plan->ncandidates;
	unsigned hops = p->home->hop_max < PLACE_HOPS ? p->home->hop_max : PLACE_HOPS;

	if (*p->placement.ask.node) {
		strcpy(p->candidates[0], p->placement.ask.node);
		at[0] = named_index(p, p->candidates[0]);
		p->ncandidates = 1;
		return;
	}
	if (plan->stayed || !p->home->hop_max)
		return;
	at[p->ncandidates++] = plan->node;
	for (uint32_t i = 0; i < n && p->ncandidates < hops; i++)
		if (plan->candidates[i] != plan->node && plan->candidates[i] != 0)
			at[p->ncandidates++] = plan->candidates[i];
	for (unsigned i = 0; i < p->ncandidates; i++)
		snprintf(p->candidates[i], IOCOM_NAME_MAX, "%s", rules_view_name(view, at[i]));
}

/* Notes what the job would take wherever it may end up: refusals come later. */
static int place_expect(struct place *p, uint32_t *at, struct iocom_err *err)
{
	int rc = 0;

	at[p->ncandidates] = 0; /* home */
	if (need_is_known(&p->order.need))
		rc = cluster_view_expect(p->home->view, p->policy.policy, &p->request, at,
					 p->ncandidates + 1, p->expected);
	return rc ? iocom_err_set(err, rc, "cannot say what the job would take: %s", strerror(-rc))
		  : 0;
}

/* What the decision expects at NODE, a candidate or home. */
static const struct rules_expectation *place_expected(const struct place *p, const char *node)
{
	unsigned i = 0;

	while (i < p->ncandidates && strcmp(p->candidates[i], node) != 0)
		i++;
	return &p->expected[i];
}

/* Returns 0 or negative errno. */
static int place_take_plan(struct place *p, const struct view_decision *decision)
{
	json_t *plan = plan_json(decision, true);

	return plan ? plan_record_take(&p->placement.plan, plan) : -ENOMEM;
}

/* Returns everything that the decision looked at, as a document; NULL: there is no memory. */
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

int place_answer(struct place *p, const struct view_decision *decision, uint64_t now,
		 struct iocom_err *err)
{
	struct placement *a = &p->placement;
	int rc = place_take_plan(p, decision);

	a->policy = p->policy.name;
	a->home = p->home->base->set->name;
	a->forced = *a->ask.node != 0;
	a->need = p->order.need;
	a->need_given = NEED_ALL;
	a->learned = p->learned;
	a->light = p->light;
	a->seed = p->seed;
	placement_unmet_begin(a);
	for (uint32_t i = 0; a->nunmet && i < cluster_view_count(p->home->view); i++)
		placement_unmet_node(a, cluster_view_vector(p->home->view, i), i == 0);
	placement_unmet_end(a);
	if (!rc)
		rc = place_take_nodes(p, decision, now);
	if (!rc && a->ask.view) {
		a->view = place_view_json(p, now);
		rc = a->view ? 0 : -ENOMEM;
	}
	return rc ? iocom_err_set(err, rc, "out of memory") : 0;
}

int place_look(struct place *p, uint64_t now, struct iocom_err *err)
{
	struct home *home = p->home;
	int rc = home_look(home, p->policy.feedback, now, err);

	if (!rc)
		p->seed = (home->base->boot_id ^ ++home->job_sequence) & VIEW_SEED_MAX;
	return rc;
}

/* Decides.  The caller frees DECISION in any case. */
static int place_decide(struct place *p, struct view_decision *decision, struct iocom_err *err)
{
	struct home *home = p->home;
	uint64_t now = loop_boot_ns(home->base->loop);
	uint32_t at[PLACE_HOPS + 1];
	int rc = place_look(p, now, err);

	if (!rc)
		rc = cluster_view_decide(home->view, &p->policy, &p->request, p->seed, decision,
					 err);
	if (rc)
		return rc;
	left_sides(p, &decision->plan);
	place_choose(p, &decision->plan, decision->view, at);
	rc = place_expect(p, at, err);
	return rc ? rc : place_answer(p, decision, now, err);
}

/* --- running it ------------------------------------------------------------------ */

void place_name(struct place *p)
{
	const struct home *home = p->home;

	snprintf(p->order.job, sizeof(p->order.job), "%s-%08x-%llu", home->base->set->name,
		 (unsigned)(home->base->boot_id & 0xffffffff),
		 (unsigned long long)home->job_sequence);
}

static int submit(struct place *p, struct iocom_err *err)
{
	const struct placement_ask *ask = &p->placement.ask;
	struct home *home = p->home;
	struct journal_job row;
	int rc = 0;

	place_name(p);
	row = (struct journal_job){
		.job = p->order.job,
		.uid = p->order.uid,
		.class_name = p->order.class_name,
		.command = p->order.command,
		.policy = p->order.policy,
		.node = "",
		.submit_ns = p->order.submit_ns,
		.worker = ask->worker,
	};
	if (ask->restarts >= 0)
		rc = lease_begin(home, &p->order, p->first[0] ? p->first : row.job,
				 (uint32_t)p->placement.attempt, (uint32_t)p->placement.restarts,
				 ask->again, err);
	if (!rc)
		rc = journal_submit(home->journal, &row, err);
	if (rc) {
		home->base->counters->journal_failures += rc != -EAGAIN;
		p->order.job[0] = 0;
	}
	return rc;
}

/* Fills the placement with where the job runs and where its client connects. */
static void place_fill(struct place *p, const char *node, const char *address, uint16_t port)
{
	const struct base *base = p->home->base;
	struct placement *a = &p->placement;

	a->placed = true;
	a->job = p->order.job;
	a->node = node;
	a->expectation = *place_expected(p, node);
	a->address = address;
	a->port = port;
	if (a->ask.home_dir)
		a->directory = p->order.cwd;
	a->first = p->first[0] ? p->first : p->order.job;
	a->lease_ms = p->order.lease_ms;
	a->munge_socket = base->set->munge_socket;
}

/*
 * Returns true if the answer must survive a power cut here.  The name of an attached job is its
 * client's alone, and if this node dies, so does that client.  A job that goes on without it has
 * its row on the disk before it begins: at this node the guest sees to that, for the whole journal
 * (guest_start.c).  So it is with a further attempt, for whose start the fence of the lost one must
 * not be undone, or home would renew the lease of that one, too.
 */
static bool place_must_last(const struct place *p, const char *node)
{
	return p->placement.ask.named || (p->order.durable && !is_own(p, node));
}

static void place_durable(void *arg, int rc)
{
	struct place *p = arg;
	json_t *answer = p->answer;
	char why[256];

	p->answer = NULL;
	if (!rc && p->placed) {
		place_tell(p, answer, "out of memory");
		place_free(p);
		return;
	}
	json_decref(answer);
	snprintf(why, sizeof(why), "node %s cannot write to its disk that it placed the job: %s",
		 p->home->base->set->name, strerror(-rc));
	place_give_up(p, rc ? why : CLIENT_LEFT);
}

/* Gives the client the key of its streams to another node. */
static void place_fill_key(struct place *p)
{
	uint8_t key[SECRET_KEY];

	if (!p->order.keyed)
		return;
	secret_derive(key, p->order.secret, SECRET_STREAM, p->order.job, "");
	secret_text(p->key, key);
	explicit_bzero(key, sizeof(key));
	p->placement.key = p->key;
}

/* Completes a decision: writes the journal, then answers the client. */
static void placed(struct place *p, const char *node, const char *address, uint16_t port,
		   const char *nonce)
{
	const char *again = p->placement.ask.again;
	struct home *home = p->home;
	struct iocom_err err = {0};
	int rc;

	place_fill(p, node, address, port);
	rc = *again ? lease_fence(home, again, p->order.job, &err) : 0;
	if (!rc)
		rc = place_keep(p, node, &err);
	if (rc) {
		home->base->counters->journal_failures += rc != -ESTALE && rc != -ENOMEM;
		place_give_up(p, err.text[0] ? err.text : "out of memory");
		return;
	}
	p->placement.nonce = nonce;
	place_fill_key(p);
	p->answer = placement_json(&p->placement, p->begins && is_own(p, node) ? PLACEMENT_BEGUN
									       : PLACEMENT_ANSWER);
	p->wait = (struct journal_wait){.done = place_durable, .arg = p};
	if (!place_must_last(p, node) || !journal_when_durable(home->journal, &p->wait))
		place_durable(p, 0);
}

/*
 * Begins the transaction of a job that stays at home and begins with its answer: one has the job,
 * the decision and the start, and ends before the client hears of them (guest_start.c).  An answer
 * that waits for the disk comes after this transaction: then the job is in the journal by itself,
 * so that a journal that does not take it refuses it.
 */
static int place_join(const struct place *p, struct iocom_err *err)
{
	if (!p->begins || (p->ncandidates && !is_own(p, p->candidates[0])) ||
	    place_must_last(p, p->home->base->set->name))
		return 0;
	return journal_begin(p->home->journal, err);
}

/* Makes the decision. If the job is to run, writes it to the journal and records the decision. */
static int take_decision(struct place *p, struct iocom_err *err)
{
	struct view_decision decision = {0};
	int rc = place_decide(p, &decision, err);

	if (!rc && p->placement.ask.run)
		rc = place_join(p, err);
	if (!rc && p->placement.ask.run)
		rc = submit(p, err);
	if (!rc)
		home_tell_decided(p->home, &(struct home_decision){
						   .order = &p->order,
						   .request = &p->request,
						   .view = p->home->view,
						   .seed = p->seed,
						   .decision = &decision,
						   .run = p->placement.ask.run,
					   });
	view_decision_fini(&decision);
	return rc;
}

static void try_next(struct place *p);

static void refused_by(struct place *p, const char *node, const char *reason, const char *text)
{
	char why[600];

	/* A login whose directory does not exist begins in another directory, as with sshd. */
	if (p->placement.ask.home_dir && !strcmp(reason, REFUSAL_PATH) &&
	    strcmp(p->order.cwd, "/") != 0) {
		strcpy(p->order.cwd, "/");
		p->at--;
		try_next(p);
		return;
	}
	if (refusal_keep(&p->placement, node, reason, text)) {
		place_give_up(p, "out of memory");
		return;
	}
	if (is_own(p, node)) { /* the last resort */
		snprintf(why, sizeof(why), "node %s cannot take the job: %s", node, text);
		place_give_up(p, why);
		return;
	}
	if (!*p->placement.ask.node) {
		try_next(p);
		return;
	}
	refusal_sentence(node, reason, text, why, sizeof(why));
	/* A node that is cut off now may be heard again, so its client asks again. */
	if (*p->placement.ask.again && p->placed &&
	    (!strcmp(reason, REFUSAL_SILENT) || !strcmp(reason, REFUSAL_NO_ANSWER)))
		place_tell(p, lease_silent_json(p->home, p->placement.ask.node), why);
	place_give_up(p, why);
}

static uint64_t charge_target(const struct place *p, const char *node, uint64_t boot_id,
			      uint64_t sequence)
{
	struct view_charge c = {
		.boot_id = boot_id,
		.sequence = sequence,
		.since_ns = loop_boot_ns(p->home->base->loop),
		.request = p->request,
	};

	snprintf(c.node, sizeof(c.node), "%s", node);
	return cluster_view_charge(p->home->view, &c);
}

static void granted_by_other(struct place *p, const char *node, const struct peer_grant *g)
{
	const struct matrix_entry *e = matrix_find(p->home->matrix, node);

	if (!e) { /* the node was forgotten while it answered */
		refused_by(p, node, REFUSAL_NO_ANSWER, "has left the cluster");
		return;
	}
	if (p->order.lease_ms && lease_placed(p->home, &p->order)) {
		refused_by(p, node, "no-lease", "out of memory for its lease");
		return;
	}
	(void)charge_target(p, node, g->boot_id, g->sequence);
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

	/*
	 * This node does not answer an agent that it does not believe, and we would not believe its
	 * answer.
	 */
	if (skews_say(p->home->skews, node, loop_boot_ns(p->home->base->loop), skew, sizeof(skew)))
		snprintf(text, sizeof(text), "is not believed: %s", skew);
	else if (rc == -ETIMEDOUT && e)
		refusal_unanswered(matrix_age_ns(e, loop_boot_ns(p->home->base->loop)), text,
				   sizeof(text));
	else
		snprintf(text, sizeof(text), "could not be asked: %s", why);
	refused_by(p, node, REFUSAL_NO_ANSWER, text);
}

static void place_go_on(struct place *p, int rc, const struct peer_answer *answer, const char *why)
{
	char node[IOCOM_NAME_MAX];

	memcpy(node, p->asked, sizeof(node));
	place_uncharge(p);
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

static void place_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct place *p = arg;
	const struct base *base = p->home->base;
	uid_t before = loop_share_enter(base->shares, p->order.uid);

	place_go_on(p, rc, answer, why); /* this may free P */
	loop_share_leave(base->shares, before);
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
		p->order.lease_ms = 0; /* the job runs here, so we shall know how it ends */
		job_order_forget(&p->order);
		ask_guest(p, p->asked, "", 0);
		return;
	}
	e = matrix_find(p->home->matrix, p->asked);
	if (!e || !e->alive) {
		refused_by(p, p->asked, REFUSAL_SILENT, "is not heard any more");
		return;
	}
	/*
	 * Each node that is asked gets a secret of its own: one that refused must not know that of
	 * the next.  A restartable job's is in the journal already.
	 */
	if (!p->order.renews)
		secret_new(p->order.secret);
	p->order.keyed = true;
	p->order.hops++;
	p->order.lease_ms = p->placement.ask.restarts >= 0 ? set->lease_s * 1000 : 0;
	/*
	 * Until it answers, the job counts as one of its: of a herd that is submitted at once, all
	 * would else be sent to the node that looks best to the first.
	 */
	p->charge = charge_target(p, p->asked, e->vector.boot_id, e->vector.sequence + 1);
	ask_guest(p, p->asked, e->vector.address, e->vector.port);
}

/* The one node that is wanted is not heard. */
static bool is_silent(const struct place *p)
{
	const char *node = p->placement.ask.node;
	const struct matrix_entry *e = matrix_find(p->home->matrix, node);

	return *node && !is_own(p, node) && !(e && e->alive);
}

/* Returns true if the client has its answer, because the job is not run again, or not yet. */
static bool not_again(struct place *p)
{
	struct lease_answer answer = {0};
	struct iocom_err err = {0};
	int rc = lease_again(p->home, p->order.uid, p->placement.ask.again, &answer, &err);

	if (!rc && answer.what == LEASE_AGAIN && is_silent(p)) {
		place_tell(p, lease_silent_json(p->home, p->placement.ask.node), "out of memory");
		return true;
	}
	if (!rc && answer.what == LEASE_AGAIN) {
		p->placement.attempt = answer.attempt;
		p->placement.restarts = answer.lost.restarts;
		snprintf(p->first, sizeof(p->first), "%s", answer.lost.first);
		return false;
	}
	place_tell(p, rc ? NULL : lease_answer_json(&answer), rc ? err.text : "out of memory");
	return true;
}

static int place_begin(struct place *p, uid_t uid, const msgpack_object *request,
		       struct iocom_err *err)
{
	const struct placement_ask *ask = &p->placement.ask;
	int rc = place_take_request(p, request, uid, err);

	if (!rc && ask->restarts >= 0) {
		p->placement.attempt = 1;
		p->placement.restarts = (uint64_t)ask->restarts;
	}
	p->begins = ask->run && ask->spec;
	p->placement.ask.spec = NULL; /* the message's, which the caller keeps for its client */
	if (!rc && *ask->again && not_again(p))
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
	place_init(p, home, placed, arg);
	p->next = home->places;
	home->places = p;
	rc = place_begin(p, uid, request, &err);
	if (rc) {
		place_tell(p, NULL, err.text);
		place_free(p);
		/*
		 * the client has its answer (the job is not run again, or not yet), or it has left
		 */
	} else if (!p->placed) {
		place_give_up(p, CLIENT_LEFT);
	} else if (p->placement.ask.run) {
		try_next(p);
	} else {
		p->placement.node = p->ncandidates ? p->candidates[0] : home->base->set->name;
		p->placement.expectation = *place_expected(p, p->placement.node);
		place_tell(p, placement_json(&p->placement, PLACEMENT_ANSWER), "out of memory");
		place_free(p);
	}
	/* What place_join began and no start has ended: the job was refused. */
	if (journal_settle(home->journal, &err))
		base_journal_failed(home->base, &err);
}
