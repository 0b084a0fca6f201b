/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A move begins: may the job leave, is there a place for it, and off it goes; see home_move.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/cluster_view.h"
#include "agent/home/home_leases.h"
#include "agent/home/home_move_own.h"
#include "user/clock.h"
#include "user/pack.h"

#define MOVE_REST_NS (10 * CLOCK_NS_PER_S) /* between two moves of a job that nodes want */

/* --- asking the nodes ------------------------------------------------------------------------ */

int moving_ask(struct home_moving *m, const char *node, const struct peer_request *request,
	       peers_answered answered, struct iocom_err *err)
{
	const struct home *home = m->home;
	const struct matrix_entry *e = matrix_find(home->matrix, node);
	bool own = !strcmp(node, home->base->set->name);
	int rc;

	if (!own && (!e || !e->alive))
		return iocom_err_set(err, -EHOSTUNREACH, "node %s is not heard", node);
	m->asking = true;
	rc = home->ports->ask(home->ports->ask_arg, node, own ? "" : e->vector.address,
			      own ? 0 : e->vector.port, request, answered, m, err);
	if (rc) /* otherwise an answer may have come, and M may be gone */
		m->asking = false;
	return rc;
}

bool moving_heard(struct home_moving *m)
{
	bool goes_on = !m->decided && !m->over;

	m->asking = false;
	if (m->over)
		moving_free(m);
	return goes_on;
}

/*
 * Has the source begun?  If it did not answer it may have: then it asks for the decision, which is
 * open until it does.
 */
static void moving_begun(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct home_moving *m = arg;
	char text[PEER_TEXT_MAX + 80];

	if (!moving_heard(m) || (!rc && answer->ok))
		return;
	if (!rc) {
		moving_give_up(m, answer->text);
	} else {
		snprintf(text, sizeof(text), "node %s does not answer: %.150s", m->move.source,
			 why);
		moving_tell(m, NULL, text);
	}
}

static int moving_send(struct home_moving *m, const struct peer_grant *grant, struct iocom_err *err)
{
	const struct matrix_entry *e = matrix_find(m->home->matrix, m->move.target);
	const struct settings *set = m->home->base->set;
	struct peer_request request = {.type = PEER_MOVE, .move = {.number = m->move.number}};
	struct peer_move *to = &request.move;
	bool own = !strcmp(m->move.target, set->name);
	int rc;

	if (!own && !e)
		return iocom_err_set(err, -EHOSTUNREACH, "node %s is not heard", m->move.target);
	memcpy(request.job, m->job, sizeof(request.job));
	snprintf(to->node, sizeof(to->node), "%s", m->move.target);
	snprintf(to->address, sizeof(to->address), "%s", own ? set->address : e->vector.address);
	to->port = (uint16_t)((own ? set->port : e->vector.port) + 2);
	snprintf(to->nonce, sizeof(to->nonce), "%s", grant->nonce);
	secret_derive(to->key, m->order->secret, SECRET_STREAM, m->job, "");
	rc = moving_ask(m, m->move.source, &request, moving_begun, err);
	explicit_bzero(to->key, sizeof(to->key));
	return rc;
}

static int moving_try(struct home_moving *m, struct iocom_err *err);

/* The target counts it from GRANT's vector on; until then this node's decisions do. */
static void moving_charge(const struct home_moving *m, const struct peer_grant *grant)
{
	struct view_charge charge = {.boot_id = grant->boot_id,
				     .sequence = grant->sequence,
				     .since_ns = loop_boot_ns(m->home->base->loop)};

	snprintf(charge.node, sizeof(charge.node), "%s", m->move.target);
	need_request(&m->order->need, &charge.request);
	(void)cluster_view_charge(m->home->view, &charge);
}

static void moving_admitted(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct home_moving *m = arg;
	char text[PEER_TEXT_MAX + 80];
	struct iocom_err err = {0};

	if (!moving_heard(m))
		return;
	if (!rc && answer->grant.granted) {
		moving_charge(m, &answer->grant);
		moving_tell(m, &m->move, "");
		rc = moving_send(m, &answer->grant, &err);
		if (rc)
			moving_give_up(m, err.text);
		return;
	}
	snprintf(text, sizeof(text), "node %s cannot take it: %.200s", m->move.target,
		 rc ? why : answer->grant.text);
	if (m->choice >= m->nchoices || moving_try(m, &err))
		moving_give_up(m, text);
}

/* Asks the target, or the next one of those that were chosen. */
static int moving_try(struct home_moving *m, struct iocom_err *err)
{
	struct peer_request request = {.type = PEER_ADMIT};
	int rc;

	if (m->choice < m->nchoices) {
		memcpy(m->move.target, m->choices[m->choice++], sizeof(m->move.target));
		rc = journal_move_turn(m->home->journal, m->job, &m->move, err);
		if (rc)
			return rc;
	}
	/* One that refused must not know the secret of the next. */
	secret_new(m->order->secret);
	m->order->keyed = true;
	rc = lease_may_move(m->home, m->order, m->move.target, err);
	if (rc)
		return rc;
	memcpy(request.job, m->job, sizeof(request.job));
	request.order = m->order;
	return moving_ask(m, m->move.target, &request, moving_admitted, err);
}

/* The source lets it go, with ORDER. */
static int moving_admit(struct home_moving *m, const struct peer_answer *answer,
			struct iocom_err *err)
{
	struct home *home = m->home;
	msgpack_unpacked map;
	int rc;

	m->order = calloc(1, sizeof(*m->order));
	if (!m->order)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	rc = unpack_map(&map, answer->order.packed, answer->order.length);
	if (!rc) {
		rc = job_order_unpack(m->order, &map.data);
		msgpack_unpacked_destroy(&map);
	}
	if (rc || strcmp(m->order->job, m->job) != 0)
		return iocom_err_set(err, -EBADMSG, "node %s answers with another job",
				     m->move.source);
	rc = *m->move.target ? 0 : moving_choose(m, err);
	if (rc)
		return rc;
	m->move.asked_ns = loop_real_ns(home->base->loop);
	rc = journal_move_ask(home->journal, m->job, &m->move, err);
	if (rc)
		return rc;
	snprintf(m->move.state, sizeof(m->move.state), "asked");
	if (!*m->move.cause) /* a node that wants it to leave hears if there is a place */
		moving_tell(m, &m->move, "");
	snprintf(m->order->home, sizeof(m->order->home), "%s", home->base->set->name);
	snprintf(m->order->home_address, sizeof(m->order->home_address), "%s",
		 home->base->set->address);
	m->order->home_port = home->base->set->port;
	m->order->move = m->move.number;
	/* Who names a node wants it there; a policy's choice must have room. */
	m->order->forced = !m->nchoices && !*m->move.cause;
	m->order->home_io = m->order->home_cpu = 0; /* of its first placement */
	m->order->durable = true;
	m->order->hops++;
	return moving_try(m, err);
}

static void moving_movable(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct home_moving *m = arg;
	struct iocom_err err = {0};
	char text[PEER_TEXT_MAX + 80];

	if (!moving_heard(m))
		return;
	if (rc)
		snprintf(text, sizeof(text), "node %s, where it runs, does not answer: %.150s",
			 m->move.source, why);
	else if (!answer->ok)
		snprintf(text, sizeof(text), "%s", answer->text);
	else if (!moving_admit(m, answer, &err))
		return;
	else
		snprintf(text, sizeof(text), "%.300s", err.text);
	moving_give_up(m, text);
}

/* --- the request ------------------------------------------------------------------------------ */

size_t home_moves_count(const struct home *home)
{
	size_t n = 0;

	for (const struct home_moving *m = home->moves; m; m = m->next)
		n++;
	return n;
}

int home_move_clear(struct home *home, const char *job, struct iocom_err *err)
{
	struct journal_move last;
	int rc = journal_move_get(home->journal, job, 0, &last, err);

	if (rc == -ENOENT || (!rc && strcmp(last.state, "asked") != 0))
		return 0;
	if (rc)
		return rc;
	snprintf(last.state, sizeof(last.state), "aborted");
	snprintf(last.text, sizeof(last.text), "another move was asked for");
	last.decided_ns = loop_real_ns(home->base->loop);
	rc = journal_move_decide(home->journal, job, &last, err);
	return rc == -EALREADY ? 0 : rc;
}

/* What the journal knows of JOB; its user is OWNER.  Fills MOVE's source. */
static int home_move_look(struct home *home, const char *job, uid_t *owner,
			  struct journal_move *move, struct iocom_err *err)
{
	char class_name[64];
	bool ended;
	int rc = journal_home_get(home->journal, job, move->source, owner, class_name, &ended, err);

	if (rc == -ENOENT)
		return iocom_err_set(err, rc, "no job of yours named %s was submitted at node %s",
				     job, home->base->set->name);
	if (rc)
		return rc;
	if (ended)
		return iocom_err_set(err, -ESRCH, "job %s has ended", job);
	return 0;
}

static int home_move_check(struct home *home, const char *job, const struct journal_move *move,
			   struct iocom_err *err)
{
	if (!move->source[0])
		return iocom_err_set(err, -ENOTSUP,
				     "job %s runs at no node yet, or is a parallel job, which does "
				     "not move",
				     job);
	if (!strcmp(move->source, move->target))
		return iocom_err_set(err, -EEXIST, "job %s is at node %s already", job,
				     move->target);
	if (moving_find(home, job))
		return iocom_err_set(err, -EALREADY, "job %s is on its way already", job);
	if (home_moves_count(home) < HOME_MOVES_MAX)
		return home_move_clear(home, job, err);
	home->base->counters->moves_refused++;
	return iocom_err_set(err, -EAGAIN, "%d jobs are on their way; try again", HOME_MOVES_MAX);
}

static int home_move_begin(struct home *home, const char *job, const struct journal_move *move,
			   home_moved done, void *arg, struct iocom_err *err)
{
	struct peer_request request = {.type = PEER_MOVABLE};
	struct home_moving *m;
	int rc = home_move_check(home, job, move, err);

	if (rc)
		return rc;
	m = moving_new(home, job, move);
	if (!m)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	m->done = done;
	m->arg = arg;
	memcpy(request.job, m->job, sizeof(request.job));
	rc = moving_ask(m, m->move.source, &request, moving_movable, err);
	if (rc)
		moving_free(m);
	return rc;
}

/* Returns true if NODE is "", this node, or one that was heard of. */
static bool home_knows_node(const struct home *home, const char *node)
{
	return !*node || !strcmp(node, home->base->set->name) || matrix_find(home->matrix, node);
}

int home_move(struct home *home, uid_t uid, const char *job, const char *node, home_moved done,
	      void *arg, struct iocom_err *err)
{
	struct journal_move move = {0};
	uid_t owner = 0;
	int rc = home_move_look(home, job, &owner, &move, err);

	if (rc != -ENOENT && uid != 0 && uid != owner)
		rc = iocom_err_set(err, -EPERM, "no job of yours named %s was submitted at node %s",
				   job, home->base->set->name);
	if (!rc && !home_knows_node(home, node))
		rc = iocom_err_set(err, -EHOSTUNREACH,
				   "node %s is unknown here; `iocom nodes` lists the known ones",
				   node);
	if (rc)
		return rc;
	snprintf(move.target, sizeof(move.target), "%s", node);
	return home_move_begin(home, job, &move, done, arg, err);
}

void home_move_forget(struct home *home, const void *arg)
{
	for (struct home_moving *m = home->moves; m; m = m->next)
		if (m->arg == arg)
			m->done = NULL;
}

/* --- a node wants it to leave ------------------------------------------------------------------
 */

struct away {
	struct home *home;
	uint64_t ticket; /* 0: not deferred yet */
	struct peer_answer answer;
	bool told;
};

static void away_begun(void *arg, const struct journal_move *move, const char *why)
{
	struct away *a = arg;
	const struct home_ports *ports = a->home->ports;

	a->answer.ok = move && strcmp(move->state, "aborted") != 0;
	if (!a->answer.ok)
		peer_answer_refuse(&a->answer, "%s", move ? move->text : why);
	a->told = true;
	if (!a->ticket)
		return; /* within home_on_away */
	ports->answer(ports->ask_arg, a->ticket, PEER_AWAY, &a->answer);
	free(a);
}

static size_t away_count(const struct home *home)
{
	size_t n = 0;

	for (const struct home_moving *m = home->moves; m; m = m->next)
		n += *m->move.cause != 0;
	return n;
}

/* What a node may want: users' moves must find room beside these, and a job some rest. */
static int away_check(struct home *home, const struct peer_request *r, struct iocom_err *err)
{
	uint64_t now_ns = loop_real_ns(home->base->loop);
	const struct peer_away *away = &r->away;
	struct journal_move last;
	struct view_policy policy;

	if (strcmp(away->cause, "owner") != 0 && view_policy_parse(away->cause, &policy, NULL))
		return iocom_err_set(err, -EINVAL, "the cause is no policy, and not the owner");
	if (!home_knows_node(home, away->node))
		return iocom_err_set(err, -EHOSTUNREACH, "the node where it should go is unknown");
	if (away_count(home) >= HOME_MOVES_MAX / 2) {
		home->base->counters->moves_refused++;
		return iocom_err_set(err, -EAGAIN, "many jobs are on their way; try again");
	}
	if (!journal_move_get(home->journal, r->job, 0, &last, err) && last.decided_ns &&
	    now_ns < last.decided_ns + MOVE_REST_NS)
		return iocom_err_set(err, -EAGAIN, "it was moved, or was to move, a moment ago");
	err->text[0] = 0;
	return 0;
}

int home_on_away(void *arg, const struct peer_request *r, uint64_t ticket,
		 struct peer_answer *answer)
{
	struct home *home = arg;
	struct journal_move move = {.here_ms = r->away.here_ms,
				    .there_ms = r->away.there_ms,
				    .cost_ms = r->away.cost_ms};
	struct away *a = calloc(1, sizeof(*a));
	struct iocom_err err = {0};
	uid_t owner;
	int rc;

	if (!a)
		return -ENOMEM; /* no answer: the node asks again */
	a->home = home;
	snprintf(move.cause, sizeof(move.cause), "%s", r->away.cause);
	rc = home_move_look(home, r->job, &owner, &move, &err);
	if (!rc && strcmp(move.source, r->from) != 0) {
		home->base->counters->controls_refused++;
		rc = iocom_err_set(&err, -EACCES, "job %s does not run at node %s", r->job,
				   r->from);
	}
	snprintf(move.target, sizeof(move.target), "%s", r->away.node);
	if (!rc)
		rc = away_check(home, r, &err);
	if (!rc)
		rc = home_move_begin(home, r->job, &move, away_begun, a, &err);
	if (rc)
		away_begun(a, NULL, err.text);
	if (a->told) {
		*answer = a->answer;
		free(a);
		return 0;
	}
	a->ticket = ticket;
	return PEERS_LATER;
}
