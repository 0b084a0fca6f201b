/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How a gang gets all its nodes or none.  All are asked at once; when all have answered, either all
 * leases are used, or those that were granted are given back, and the next decision leaves out who
 * refused.  The journal has the gang before anybody is asked, its parts when they have their nodes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/loop_share.h"
#include "agent/base/matrix.h"
#include "agent/base/places.h"
#include "agent/gang/gangs_own.h"
#include "agent/home/refusal.h"
#include "iocom/array.h"
#include "user/clock.h"
#include "user/pack.h"

#define GANGS_STOPPING	  "the agent is stopping"
#define GANGS_CLIENT_LEFT "its client left before the job had a place"
#define GANG_CHARGES	  64 /* of a part's tasks, so many count at once at its node */

bool gangs_asked(const msgpack_object *request)
{
	return request->type == MSGPACK_OBJECT_MAP && unpack_get(request, "tasks");
}

/* --- its life ---------------------------------------------------------------------------- */

static void gang_try_free(struct gang_try *t)
{
	struct place *p = &t->place;

	for (struct gang_try **q = &t->gangs->tries; *q; q = &(*q)->next) {
		if (*q != t)
			continue;
		*q = t->next;
		t->gangs->ntries--;
		break;
	}
	loop_cancel(t->gangs->base->loop, &t->late);
	journal_forget(p->home->journal, &p->wait);
	json_decref(p->answer);
	placement_fini(&p->placement);
	profile_talk_fini(&t->talk);
	for (uint32_t i = 0; i < t->nasks; i++)
		job_order_forget(&t->asks[i].order);
	free(t->asks);
	free(t->pairs);
	free(t->refused);
	free(t);
}

/* Answers the client if it is still there; takes ANSWER. */
static void gang_try_tell(struct gang_try *t, json_t *answer, const char *why)
{
	home_placed placed = t->place.placed;

	t->place.placed = NULL;
	if (!placed)
		json_decref(answer);
	else
		placed(t->place.placed_arg, answer, answer ? NULL : why);
}

/* Keeps what was decided and who refused, for `iocom explain`. */
static void gang_try_keep(struct gang_try *t)
{
	struct placement *a = &t->place.placement;
	struct iocom_err err = {0};

	if (!a->plan.document)
		return;
	a->job = t->place.order.job;
	a->failed = true;
	a->placed = false;
	if (place_keep(&t->place, "", &err))
		base_journal_failed(t->gangs->base, &err);
}

/* Ends a gang that got no place. */
static void gang_try_give_up(struct gang_try *t, const char *why)
{
	struct place *p = &t->place;
	struct home *home = p->home;
	struct iocom_err err = {0};
	struct journal_job row = {
		.job = p->order.job,
		.state = "failed",
		.end_ns = loop_real_ns(home->base->loop),
		.exit_kind = 3,
		.exit_value = 125,
		.text = why,
	};
	struct job_report report = {.kind = 3};

	if (t->rounds && journal_home_end(home->journal, &row, &err))
		base_journal_failed(home->base, &err);
	else if (t->rounds)
		gang_try_keep(t);
	if (t->rounds) {
		memcpy(report.job, p->order.job, sizeof(report.job));
		home_tell_finished(home, home->base->set->name, &report);
		home_tell_ended(home, p->order.job);
	}
	gang_try_tell(t, NULL, why);
	gang_try_free(t);
}

void gangs_place_stop(struct gangs *gangs)
{
	while (gangs->tries)
		gang_try_give_up(gangs->tries,
				 gangs->tries->place.placed ? GANGS_STOPPING : GANGS_CLIENT_LEFT);
}

/* How many of UID's are under way. */
static size_t gangs_of(const struct gangs *gangs, uid_t uid)
{
	size_t n = 0;

	for (const struct gang *g = gangs->first; g; g = g->next)
		n += g->uid == uid;
	for (const struct gang_try *t = gangs->tries; t; t = t->next)
		n += t->place.order.uid == uid;
	return n;
}

void gangs_forget(struct gangs *gangs, const void *arg)
{
	for (struct gang_try *t = gangs->tries; t; t = t->next)
		if (t->place.placed_arg == arg)
			t->place.placed = NULL;
}

/* --- all have granted ---------------------------------------------------------------------- */

/* Writes the parts to the journal: from here on home hears of them as of any job. */
static int gang_try_write_parts(struct gang_try *t, struct iocom_err *err)
{
	const struct place *p = &t->place;
	const struct gang_answer *g = p->placement.gang;
	int rc = 0;

	for (uint32_t i = 0; i < g->nparts && !rc; i++) {
		const struct journal_job row = {
			.job = g->parts[i].job,
			.uid = p->order.uid,
			.class_name = p->order.class_name,
			.command = p->order.command,
			.policy = p->order.policy,
			.node = g->parts[i].node,
			.submit_ns = p->order.submit_ns,
			.worker = true, /* no part is its user's last job */
			.tasks = g->parts[i].tasks,
			.gang = g->job,
		};

		rc = journal_submit(p->home->journal, &row, err);
	}
	return rc ? rc : place_keep(&t->place, "", err);
}

/* All of it, or nothing. */
static int gang_try_write(struct gang_try *t, struct iocom_err *err)
{
	struct journal *journal = t->place.home->journal;
	bool outer = journal_is_open(journal);
	int rc = outer ? 0 : journal_begin(journal, err);

	if (rc)
		return rc;
	rc = gang_try_write_parts(t, err);
	if (outer)
		return rc;
	if (!rc)
		return journal_commit(journal, err);
	journal_cancel(journal);
	return rc;
}

/* Gives the client the secrets of its leases, and the streams' keys. */
static void gang_try_secrets(struct gang_try *t)
{
	const struct gang_answer *g = t->place.placement.gang;

	for (uint32_t i = 0; i < g->nparts; i++) {
		const struct job_order *order = &t->asks[i].order;
		struct gang_part *part = &g->parts[i];
		uint8_t key[SECRET_KEY];

		_Static_assert(GANG_ANSWER_NONCE_MAX >= SPEC_NONCE_MAX &&
				       GANG_ANSWER_KEY_MAX == 2 * SECRET_KEY + 1,
			       "an answer has room for a lease's secrets");
		snprintf(part->nonce, sizeof(part->nonce), "%s", t->asks[i].grant.nonce);
		if (!order->keyed)
			continue;
		secret_derive(key, order->secret, SECRET_STREAM, order->job, "");
		secret_text(part->key, key);
		explicit_bzero(key, sizeof(key));
	}
}

static void gang_try_charge(struct gang_try *t, const struct gang_ask *ask, uint32_t tasks)
{
	struct view_charge c = {
		.boot_id = ask->grant.boot_id,
		.sequence = ask->grant.sequence,
		.since_ns = loop_boot_ns(t->gangs->base->loop),
		.request = t->place.request,
	};

	if (!*ask->address)
		return; /* this node's own vector counts it already */
	c.request.tasks = 1;
	c.request.pairs = NULL;
	c.request.npairs = 0;
	snprintf(c.node, sizeof(c.node), "%s", ask->node);
	for (uint32_t i = 0; i < tasks && i < GANG_CHARGES; i++)
		(void)cluster_view_charge(t->place.home->view, &c);
}

static void gang_try_release(const struct gang_try *t)
{
	for (uint32_t i = 0; i < t->nasks; i++) {
		const struct gang_ask *ask = &t->asks[i];

		if (ask->granted || ask->silent)
			gang_release(t->gangs, ask->order.job, ask->node, ask->grant.nonce);
	}
}

static void gang_try_durable(void *arg, int rc)
{
	struct gang_try *t = arg;
	struct place *p = &t->place;
	json_t *answer = p->answer;
	char why[256];

	struct gang *g = gang_add(t->gangs, p->order.job, p->order.uid, p->order.class_name,
				  p->order.submit_ns);

	p->answer = NULL;
	snprintf(why, sizeof(why), "node %s cannot write to its disk that it placed the job: %s",
		 t->gangs->base->set->name, strerror(-rc));
	if (g)
		g->keep_going = p->placement.ask.keep_going;
	if (!rc && g && p->placed) {
		gang_try_tell(t, answer, "out of memory");
		gang_try_free(t);
		return;
	}
	json_decref(answer);
	gang_try_release(t);
	if (!g) {
		gang_try_give_up(t, "out of memory");
		return;
	}
	/* The journal has its parts: it ends as a gang does that has begun. */
	gang_fail(t->gangs, g, REASON_OWN, 3, 125, rc ? why : GANGS_CLIENT_LEFT);
	gang_try_tell(t, NULL, why);
	gang_try_free(t);
}

static void gang_try_placed(struct gang_try *t)
{
	struct place *p = &t->place;
	struct placement *a = &p->placement;
	struct iocom_err err = {0};

	a->placed = true;
	a->job = a->first = p->order.job;
	a->node = a->gang->parts[0].node;
	a->munge_socket = t->gangs->base->set->munge_socket;
	if (gang_try_write(t, &err)) {
		t->gangs->base->counters->journal_failures++;
		gang_try_release(t);
		gang_try_give_up(t, err.text[0] ? err.text : "out of memory");
		return;
	}
	for (uint32_t i = 0; i < t->nasks; i++)
		gang_try_charge(t, &t->asks[i], a->gang->parts[i].tasks);
	gang_try_secrets(t);
	p->answer = placement_json(a, PLACEMENT_ANSWER);
	p->wait = (struct journal_wait){.done = gang_try_durable, .arg = t};
	if (!(a->ask.named || p->order.durable) ||
	    !journal_when_durable(p->home->journal, &p->wait))
		gang_try_durable(t, 0);
}

/* --- asking -------------------------------------------------------------------------------- */

static void gang_try_next(struct gang_try *t);

/* Leaves NODE out of the next decision.  Returns 0 or -ENOMEM. */
static int gang_try_refuse(struct gang_try *t, const char *node, const char *reason,
			   const char *text)
{
	if (!*t->why)
		refusal_sentence(node, reason, text, t->why, sizeof(t->why));
	if (refusal_keep(&t->place.placement, node, reason, text) ||
	    array_reserve(t->refused, t->refused_room, t->nrefused + 1, 4))
		return -ENOMEM;
	t->refused[t->nrefused] = (struct gang_refusal){.slots = !strcmp(reason, "slots")};
	snprintf(t->refused[t->nrefused++].node, IOCOM_NAME_MAX, "%s", node);
	return 0;
}

static void gang_ask_note(struct gang_ask *ask, int rc, const struct peer_answer *answer,
			  const char *why)
{
	const struct home *home = ask->try->place.home;
	const struct matrix_entry *e = matrix_find(home->matrix, ask->node);
	struct peer_grant *g = &ask->grant;

	if (!rc) {
		*g = answer->grant;
		ask->granted = g->granted;
		return;
	}
	*g = (struct peer_grant){0};
	ask->silent = true; /* it may have granted all the same */
	snprintf(g->reason, sizeof(g->reason), "%s", REFUSAL_NO_ANSWER);
	if (rc == -ETIMEDOUT && e)
		refusal_unanswered(matrix_age_ns(e, loop_boot_ns(home->base->loop)), g->text,
				   sizeof(g->text));
	else if (rc == -EBADMSG)
		snprintf(g->text, sizeof(g->text), "gave an incomplete answer");
	else
		snprintf(g->text, sizeof(g->text), "could not be asked: %.200s", why);
}

/* All nodes have answered. */
static void gang_try_answered(struct gang_try *t)
{
	bool refused = false;
	int rc = 0;

	for (uint32_t i = 0; i < t->nasks && !rc; i++) {
		const struct gang_ask *ask = &t->asks[i];

		if (ask->granted)
			continue;
		refused = true;
		rc = gang_try_refuse(t, ask->node, ask->grant.reason, ask->grant.text);
	}
	if (!refused && t->place.placed && !t->stopping) {
		gang_try_placed(t);
		return;
	}
	gang_try_release(t);
	if (t->stopping)
		gang_try_give_up(t, GANGS_STOPPING);
	else if (rc)
		gang_try_give_up(t, "out of memory");
	else if (!t->place.placed)
		gang_try_give_up(t, GANGS_CLIENT_LEFT);
	else
		gang_try_next(t);
}

static void gang_ask_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct gang_ask *ask = arg;
	struct gang_try *t = ask->try;
	const struct base *base = t->gangs->base;
	uid_t before = loop_share_enter(base->shares, t->place.order.uid);

	t->stopping |= rc == -ECANCELED;
	gang_ask_note(ask, rc, answer, why);
	if (--t->open == 0)
		gang_try_answered(t); /* this may free T */
	loop_share_leave(base->shares, before);
}

/* What a part with TASKS tasks needs. */
static void gang_ask_need(struct need *need, double tasks)
{
	static const enum need_field whole[] = {NEED_IO_PER_S,	     NEED_REQUESTS,
						NEED_MEMORY_MB,	     NEED_CPU_S,
						NEED_SHARED_READ_MB, NEED_SHARED_WRITTEN_MB};

	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		need->value[whole[i]] *= tasks;
}

/* Makes what the node of part ASK->part is asked. */
static void gang_ask_fill(struct gang_ask *ask)
{
	const struct gang_try *t = ask->try;
	const struct place *p = &t->place;
	const struct gang_part *part = &p->placement.gang->parts[ask->part];
	struct job_order *o = &ask->order;
	const struct matrix_entry *e;

	*o = p->order;
	snprintf(o->job, sizeof(o->job), "%s", part->job);
	o->gang_tasks = part->tasks;
	o->oversubscribe = p->placement.ask.oversubscribe;
	gang_ask_need(&o->need, part->tasks);
	snprintf(ask->node, sizeof(ask->node), "%s", part->node);
	if (!*part->address)
		return;
	e = matrix_find(p->home->matrix, part->node);
	snprintf(ask->address, sizeof(ask->address), "%s", part->address);
	ask->port = e ? e->vector.port : (uint16_t)(part->port - 2);
	secret_new(o->secret); /* of this part alone: no node knows that of another */
	o->keyed = true;
	o->hops++;
}

static void gang_ask_send(struct gang_ask *ask)
{
	struct peer_request request = {.type = PEER_ADMIT, .order = &ask->order};
	const struct home_ports *ports = ask->try->place.home->ports;
	struct iocom_err err = {0};
	int rc;

	memcpy(request.job, ask->order.job, sizeof(request.job));
	rc = ports->ask(ports->ask_arg, ask->node, ask->address, ask->port, &request,
			gang_ask_answered, ask, &err);
	if (rc)
		gang_ask_answered(ask, rc, NULL, err.text);
}

/* Asks all nodes of the decision. */
static void gang_try_ask(struct gang_try *t)
{
	const struct gang_answer *g = t->place.placement.gang;
	uint32_t n = g->nparts;

	for (uint32_t i = 0; i < t->nasks; i++)
		job_order_forget(&t->asks[i].order);
	free(t->asks);
	t->nasks = 0;
	t->asks = calloc(n, sizeof(*t->asks));
	if (!t->asks) {
		gang_try_give_up(t, "out of memory");
		return;
	}
	t->nasks = n;
	t->open = n + 1; /* one for this loop: an answer may come within it */
	for (uint32_t i = 0; i < n; i++) {
		t->asks[i].try = t;
		t->asks[i].part = i;
		gang_ask_fill(&t->asks[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		gang_ask_send(&t->asks[i]);
	if (--t->open == 0)
		gang_try_answered(t);
}

static int gang_try_submit(struct gang_try *t, struct iocom_err *err)
{
	const struct place *p = &t->place;
	const struct journal_job row = {
		.job = p->order.job,
		.uid = p->order.uid,
		.class_name = p->order.class_name,
		.command = p->order.command,
		.policy = p->order.policy,
		.node = "",
		.submit_ns = p->order.submit_ns,
		.worker = p->placement.ask.worker,
		.tasks = (uint32_t)p->placement.ask.tasks,
	};
	int rc = journal_submit(p->home->journal, &row, err);

	t->gangs->base->counters->journal_failures += rc && rc != -EAGAIN;
	return rc;
}

/* Who only lacked slots is asked again. */
static void gang_try_forgive(struct gang_try *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->nrefused; i++)
		if (!t->refused[i].slots)
			t->refused[kept++] = t->refused[i];
	t->nrefused = kept;
	if (!kept)
		*t->why = 0;
}

/* Looks again: the view may have changed.  It holds nothing meanwhile. */
static void gang_try_late(void *arg)
{
	struct gang_try *t = arg;
	const struct base *base = t->gangs->base;
	uid_t before = loop_share_enter(base->shares, t->place.order.uid);

	gang_try_forgive(t);

	if (t->place.placed)
		gang_try_next(t);
	else
		gang_try_give_up(t, GANGS_CLIENT_LEFT);
	loop_share_leave(base->shares, before);
}

/*
 * Two gangs whose claims crossed do not look again at the same moment, or they would cross again.
 */
static uint64_t gang_try_late_ms(const struct gang_try *t)
{
	uint64_t mixed = t->place.seed * 0x9e3779b97f4a7c15u;

	return GANGS_LATE_MS / 2 + (mixed >> 32) % GANGS_LATE_MS;
}

static void gang_try_next(struct gang_try *t)
{
	struct place *p = &t->place;
	struct iocom_err err = {0};
	char why[sizeof(err.text) + 128];
	int rc;

	if (t->rounds == GANGS_ROUNDS) {
		snprintf(why, sizeof(why),
			 "%u task%s do%s not fit: a node refused in each of %d rounds; %s",
			 p->request.tasks, p->request.tasks == 1 ? "" : "s",
			 p->request.tasks == 1 ? "es" : "", GANGS_ROUNDS, t->why);
		gang_try_give_up(t, why);
		return;
	}
	rc = gang_try_decide(t, &err);
	if (rc && t->crowded && p->placement.ask.run && t->looks < GANGS_LATE_LOOKS) {
		t->looks++;
		t->late = (struct loop_timer){.fire = gang_try_late, .arg = t};
		loop_start(t->gangs->base->loop, &t->late, gang_try_late_ms(t) * CLOCK_NS_PER_MS);
		return;
	}
	if (!rc && p->placement.ask.run && !t->rounds)
		rc = gang_try_submit(t, &err);
	if (rc) {
		gang_try_give_up(t, err.text);
		return;
	}
	if (p->placement.ask.run) {
		t->rounds++;
		gang_try_ask(t);
		return;
	}
	p->placement.node = p->placement.gang->parts[0].node;
	gang_try_tell(t, placement_json(&p->placement, PLACEMENT_ANSWER), "out of memory");
	gang_try_free(t);
}

/* --- a request ----------------------------------------------------------------------------- */

static int gang_try_check(const struct gang_try *t, struct iocom_err *err)
{
	static const struct places places = {.what = "parallel jobs under way",
					     .limit = "gangs",
					     .one = "gangs",
					     .max = GANGS_MAX,
					     .of_root = GANGS_OF_ROOT};
	const struct placement_ask *ask = &t->place.placement.ask;
	struct counters *counters = t->gangs->base->counters;
	uid_t uid = t->place.order.uid;
	size_t used = gangs_count(t->gangs); /* with this one, which does not count */

	if (ask->tasks < 1)
		return iocom_err_set(err, -EINVAL, "a parallel job has at least one task");
	if (*ask->node)
		return iocom_err_set(err, -EINVAL,
				     "a parallel job has no \"node\": \"only\" says which it may "
				     "have");
	if (ask->restarts >= 0 || *ask->again)
		return iocom_err_set(err, -EINVAL, "a parallel job is not restartable");
	if (ask->data)
		return iocom_err_set(err, -EINVAL, "a parallel job takes no data along");
	if (!places_ask(&places, uid, used - 1, gangs_of(t->gangs, uid) - 1, counters, err))
		return 0;
	counters->gangs_refused++;
	return -EDQUOT;
}

void gangs_place(struct gangs *gangs, uid_t uid, const msgpack_object *request, home_placed placed,
		 void *arg)
{
	struct gang_try *t = calloc(1, sizeof(*t));
	struct iocom_err err = {0};
	int rc;

	if (!t) {
		placed(arg, NULL, "out of memory");
		return;
	}
	place_init(&t->place, gangs->home, placed, arg);
	t->gangs = gangs;
	t->next = gangs->tries;
	gangs->tries = t;
	gangs->ntries++;
	rc = place_take_request(&t->place, request, uid, &err);
	t->place.placement.ask.spec = NULL; /* the message's; each part has a spec of its own */
	if (!rc)
		rc = gang_try_check(t, &err);
	if (!rc && gang_try_talk(t))
		rc = iocom_err_set(&err, -ENOMEM, "out of memory");
	if (rc)
		gang_try_give_up(t, err.text);
	else
		gang_try_next(t);
}
