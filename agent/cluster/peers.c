/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The nodes of the cluster; see peers.h.  Questions and answers are in peer_requests.c.  What is
 * heard comes from the network part, which may lie: so what a vector may bring about is what any
 * node of the cluster may bring about.
 */
#include "agent/cluster/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/complaints.h"
#include "agent/cluster/peer_requests.h"

#define HELLO_EVERY 15 /* seconds, as calls of peers_chores */

/* --- what is heard ------------------------------------------------------------- */

static void peers_joined(struct peers *p, const struct iocom_vector *v)
{
	log_write(p->base->log, LOG_L_INFO, "node %s at %s:%u is here", v->name, v->address,
		  v->port);
	hearing_joined(&p->hearing);
	if (peer_requests_greets(p->base->set, v))
		p->chores = 0; /* the next peers_chores greets it */
}

/* Whom a complaint about the peer AT is about. */
static const char *peers_place(const struct gate_place *at, char out[IOCOM_ADDRESS_MAX + 8])
{
	snprintf(out, IOCOM_ADDRESS_MAX + 8, "%s:%u", at->address, at->port);
	return out;
}

/* A vector came from the peer AT itself. */
static void peers_heard_at(struct peers *p, const struct gate_place *at,
			   const struct iocom_vector *v)
{
	struct peer_state *state = peer_states_at(&p->states, at);
	uint64_t now = loop_boot_ns(p->base->loop);
	char place[IOCOM_ADDRESS_MAX + 8];
	const struct peer_state *twin;

	if (!state)
		return;
	base_settle(p->base, peers_place(at, place));
	twin = peer_states_heard(&p->states, state, v, now);
	if (twin)
		base_complain(p->base, v->name,
			      "two nodes call themselves %s (the peers at %s:%u and %s:%u); give "
			      "each its own --name",
			      v->name, twin->at.address, twin->at.port, at->address, at->port);
}

/* Another node uses this one's name. */
static void peers_namesake(struct peers *p, const struct iocom_vector *v,
			   const struct gate_place *at)
{
	const struct peer_trouble trouble = {.cause = PEER_C_SAME_NAME,
					     .sure = true,
					     .why = "it calls itself as this node does"};
	struct peer_state *state = peer_states_at(&p->states, at);

	p->base->counters->vectors_refused_name++;
	if (state)
		(void)peer_state_trouble(state, &trouble, loop_boot_ns(p->base->loop));
	base_complain(p->base, v->address,
		      "another node also calls itself %s (at %s:%u); give each its own --name",
		      v->name, v->address, v->port);
}

static void peers_heard(struct peers *p, const struct gate_vector *heard)
{
	const struct iocom_vector *v = &heard->vector;
	bool direct = heard->direct;
	struct counters *counters = p->base->counters;
	const struct matrix_entry *e = matrix_find(&p->matrix, v->name);
	bool joins = !e || !e->alive, doubted = e && e->doubted;
	int rc;

	if (direct)
		skews_forget(&p->skews, v->name);
	if (direct && strcmp(v->name, p->base->set->name) != 0)
		peers_heard_at(p, &heard->at, v);
	rc = matrix_hear(&p->matrix, v, heard->age_ns, direct, loop_boot_ns(p->base->loop));
	if (direct)
		hearing_heard(&p->hearing, v->name);
	switch (rc) {
	case 0:
		counters->vectors_accepted++;
		if (joins)
			peers_joined(p, v);
		else if (doubted)
			hearing_joined(&p->hearing);
		break;
	case MATRIX_E_LEFT:
		counters->vectors_accepted++;
		counters->nodes_left++;
		log_write(p->base->log, LOG_L_INFO,
			  "the agent of node %s stops: no jobs go there until heard again",
			  v->name);
		break;
	case MATRIX_E_OWN:
		if (direct && v->boot_id != p->base->boot_id)
			peers_namesake(p, v, &heard->at);
		break;
	case MATRIX_E_OLD:
		counters->vectors_refused_old += direct;
		break;
	case MATRIX_E_FULL:
		counters->vectors_refused_full++;
		break;
	default:
		break;
	}
}

static void peers_heard_of(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			   const int *fds)
{
	struct gate_vector more;

	(void)fds;
	peers_heard(arg, &m->vector);
	for (size_t at = 0; at < n; at += sizeof(more)) {
		memcpy(&more, tail + at, sizeof(more));
		peers_heard(arg, &more);
	}
}

static void peers_skewed(void *arg, const char *node, int64_t ahead_s)
{
	struct peers *p = arg;

	uint64_t now = loop_boot_ns(p->base->loop);
	struct peer_trouble trouble = {.cause = PEER_C_CLOCK, .sure = true, .ahead_s = ahead_s};
	char why[PEER_STATE_WHY];

	skews_note(&p->skews, node, ahead_s, now);
	(void)skews_say(&p->skews, node, now, why, sizeof(why));
	trouble.why = why;
	for (size_t i = 0; i < p->states.count; i++)
		if (!strcmp(p->states.all[i].node, node))
			(void)peer_state_trouble(&p->states.all[i], &trouble, now);
}

/* The peer AT, or if that is where a connection came from (port 0), the one with the address. */
static struct peer_state *peers_state(struct peers *p, const struct gate_place *at)
{
	return at->port ? peer_states_at(&p->states, at)
			: peer_states_from(&p->states, at->address);
}

/* What became of a greeting; that of a session that is there says which node is at the address. */
static void peers_greeted(void *arg, const struct control_greeted *g)
{
	const struct peer_trouble trouble = {
		.cause = g->cause, .sure = g->sure, .ahead_s = g->ahead_s, .why = g->why};
	struct peers *p = arg;
	struct peer_state *state = peers_state(p, &g->at);

	if (state && g->cause)
		(void)peer_state_trouble(state, &trouble, loop_boot_ns(p->base->loop));
	else if (state)
		peer_state_session(state, g->node);
}

/* Why a peer is not heard, as the network part has found out. */
static void peers_in_trouble(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			     const int *fds)
{
	struct peers *p = arg;
	struct peer_state *state = peers_state(p, &m->trouble.at);
	char why[GATE_SENTENCE_MAX + 1], place[IOCOM_ADDRESS_MAX + 8];
	const struct peer_trouble trouble = {
		.cause = (enum peer_cause)m->trouble.cause, .sure = true, .why = why};

	(void)fds;
	memcpy(why, tail, n);
	why[n] = 0;
	if (!state)
		return;
	(void)peer_state_trouble(state, &trouble, loop_boot_ns(p->base->loop));
	/* Of the others the network part's own log speaks. */
	if (trouble.cause == PEER_C_REFUSED || trouble.cause == PEER_C_TIMED_OUT ||
	    trouble.cause == PEER_C_UNREACHABLE)
		base_complain(p->base, peers_place(&m->trouble.at, place),
			      "the peer at %s port %u is not heard: %s", state->at.address,
			      state->at.port, why);
}

static void peers_heard_skewed(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			       const int *fds)
{
	(void)tail;
	(void)n;
	(void)fds;
	peers_skewed(arg, m->skewed.node, m->skewed.ahead_s);
}

static int peers_on_hello(void *arg, const struct peer_request *r, uint64_t ticket,
			  struct peer_answer *answer)
{
	struct gate_place at = {.port = r->hello.port};
	struct peers *p = arg;

	(void)ticket;
	snprintf(at.address, sizeof(at.address), "%s", r->hello.address);
	if (p->bulletin)
		hearing_ask(&p->hearing, r->from, &at);
	answer->ok = true;
	return 0;
}

/* --- keys of bulletins --------------------------------------------------------- */

static int peers_on_key(void *arg, const struct peer_request *r, uint64_t ticket,
			struct peer_answer *answer)
{
	struct peers *p = arg;

	(void)r;
	(void)ticket;
	answer->ok = p->bulletin != NULL;
	if (p->bulletin)
		bulletin_own_key(p->bulletin, &answer->key);
	return 0;
}

/* A question to a publisher whose name may not be known yet. */
struct key_question {
	struct peers *peers;
	struct gate_place at;
};

static void peers_key_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct key_question *q = arg;
	struct bulletin *bulletin = q->peers->bulletin; /* NULL: the agent is stopping */

	(void)why; /* control has logged it */
	if (bulletin && !rc && answer->ok)
		bulletin_key(bulletin, &q->at, answer->from, &answer->key);
	else if (bulletin)
		bulletin_key(bulletin, &q->at, "", NULL);
	free(q);
}

static void peers_ask_key(void *arg, const struct gate_place *at)
{
	const struct peer_request request = {.type = PEER_KEY};
	struct key_question *q = calloc(1, sizeof(*q));
	struct peers *p = arg;

	if (q) {
		q->peers = p;
		q->at = *at;
	}
	if (!q || peers_ask(p, "", at->address, at->port, &request, peers_key_answered, q, NULL)) {
		bulletin_key(p->bulletin, at, "", NULL);
		free(q);
	}
}

static void peers_expire(void *arg);

/* --- set-up -------------------------------------------------------------------- */

/* A network part has begun, perhaps anew. */
static void peers_up(void *arg)
{
	struct peers *p = arg;
	const struct settings *set = p->base->set;
	struct gate_message m = {.type = GATE_PEER};

	for (size_t i = 0; p->hearing.dials && i < set->npeers; i++) {
		if (settings_is_self(set, &set->peers[i]))
			continue;
		m.place = (struct gate_place){.port = set->peers[i].port};
		snprintf(m.place.address, sizeof(m.place.address), "%s", set->peers[i].address);
		(void)net_part_send(p->net, &m, NULL, 0, NULL);
	}
	hearing_plan(&p->hearing);
}

/* What the last network part said of nodes may have been lies, which must not outlive it. */
static void peers_down(void *arg)
{
	struct peers *p = arg;

	hearing_lost(&p->hearing);
	matrix_doubt(&p->matrix);
}

static int peers_listen(struct peers *p, struct iocom_err *err)
{
	const struct settings *set = p->base->set;
	const struct bulletin_config b = {.loop = p->base->loop,
					  .net = p->net,
					  .counters = p->base->counters,
					  .ask_key = peers_ask_key,
					  .arg = p};
	struct control_config c = {
		.loop = p->base->loop,
		.seal = p->seal,
		.log = p->base->log,
		.counters = p->base->counters,
		.net = p->net,
		.self = {.boot_id = p->base->boot_id},
		.handler = peer_requests_handle,
		.arg = p,
		.complaints = p->base->complaints,
		.skewed = peers_skewed,
		.greeted = peers_greeted,
	};
	int rc;

	snprintf(c.self.name, sizeof(c.self.name), "%s", set->name);
	snprintf(c.self.cluster, sizeof(c.self.cluster), "%s", set->cluster);
	rc = bulletin_new(&p->bulletin, &b, err);
	p->hearing.bulletin = p->bulletin;
	if (!rc)
		rc = control_new(&p->control, &c, err);
	if (rc)
		return rc;
	net_part_serve(p->net, GATE_VECTOR, peers_heard_of, p);
	net_part_serve(p->net, GATE_SKEWED, peers_heard_skewed, p);
	net_part_serve(p->net, GATE_TROUBLE, peers_in_trouble, p);
	p->watch = (struct net_watch){.up = peers_up, .down = peers_down, .arg = p};
	net_part_watch(p->net, &p->watch);
	return 0;
}

int peers_start(struct peers *p, const struct base *base, struct journal *journal,
		struct seal *seal, struct net_part *net, struct iocom_err *err)
{
	p->base = base;
	p->journal = journal;
	p->seal = seal;
	p->net = net;
	matrix_init(&p->matrix, base->set->name);
	peer_states_init(&p->states, base->set);
	p->expire = (struct loop_timer){.fire = peers_expire, .arg = p};
	p->hearing = (struct hearing){.base = base, .matrix = &p->matrix, .states = &p->states};
	peers_serve(p, PEER_HELLO, peers_on_hello, p);
	peers_serve(p, PEER_KEY, peers_on_key, p);
	return seal ? peers_listen(p, err) : 0;
}

void peers_stop(struct peers *p)
{
	if (p->base)
		loop_cancel(p->base->loop, &p->expire);
	if (p->watch.up) {
		net_part_unwatch(p->net, &p->watch);
		net_part_serve(p->net, GATE_VECTOR, NULL, NULL);
		net_part_serve(p->net, GATE_SKEWED, NULL, NULL);
		net_part_serve(p->net, GATE_TROUBLE, NULL, NULL);
		p->watch.up = NULL;
	}
	bulletin_free(p->bulletin);
	p->bulletin = p->hearing.bulletin = NULL;
	control_free(p->control);
	p->control = NULL;
	peer_requests_stop(p);
}

void peers_free(struct peers *p)
{
	matrix_fini(&p->matrix);
	seal_free(p->seal);
	*p = (struct peers){0};
}

void peers_dial(struct peers *p)
{
	p->hearing.dials = true;
	if (net_part_is_up(p->net))
		peers_up(p);
}

/* --- as time goes by ------------------------------------------------------------- */

static void peers_expire(void *arg)
{
	struct peers *p = arg;
	uint64_t now = loop_boot_ns(p->base->loop), due;
	size_t n = matrix_expire(&p->matrix, now);

	p->base->counters->nodes_dropped += n;
	if (n)
		log_write(p->base->log, LOG_L_WARNING,
			  "%zu node%s silent for %d periods: no jobs go there until heard again", n,
			  n == 1 ? "" : "s", MATRIX_SILENT_PERIODS);
	/* Most are heard before the next period ends, and then nothing is due. */
	due = matrix_due_ns(&p->matrix);
	if (due < now + (uint64_t)(p->base->set->period_s * 1e9))
		loop_start(p->base->loop, &p->expire, due > now ? due - now : 0);
}

void peers_period(void *arg)
{
	struct peers *p = arg;

	peers_expire(p);
	if (p->control)
		control_expire(p->control);
	hearing_plan(&p->hearing);
}

void peers_publish(void *arg, const struct iocom_vector *own, uint64_t now_ns)
{
	struct peers *p = arg;

	(void)now_ns;
	if (p->bulletin)
		bulletin_publish(p->bulletin, own);
}

void peers_chores(struct peers *p)
{
	if (p->chores++ % HELLO_EVERY == 0)
		peer_requests_hello(p);
}

bool peers_mute(const struct peers *p)
{
	return p->seal && seal_down(p->seal);
}
