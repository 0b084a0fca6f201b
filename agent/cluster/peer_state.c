/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See peer_state.h. */
#include "agent/cluster/peer_state.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *state, *advice;
} peer_words[PEER_CAUSES] = {
	[PEER_C_NONE] = {"never tried", "wait some seconds"},
	[PEER_C_REFUSED] = {"refused", "start iocomd there, or correct its address or port here"},
	[PEER_C_TIMED_OUT] = {"timed out", NULL},
	[PEER_C_UNREACHABLE] = {"unreachable", "look for the way there: `ip route get` its "
					       "address"},
	[PEER_C_NAME] = {"name unknown", "correct its name here, or tell it to the name service: "
					 "`getent hosts` it"},
	[PEER_C_KEY] = {"key differs", "give both machines the same MUNGE key, and start munged "
				       "and iocomd again where it was another"},
	[PEER_C_CLOCK] = {"clock differs", "synchronise the clocks of the two"},
	[PEER_C_SAME_NAME] = {"same name", "give each node its own --name"},
	[PEER_C_CLUSTER] = {"other cluster",
			    "set cluster to the same name at both, or remove it from peers"},
	[PEER_C_VERSION] = {"other version", "install the same version of iocom on all nodes"},
	[PEER_C_MUTE] = {"no answer", "see the log of its agent: journalctl -u iocomd"},
	[PEER_C_SELF] = {"self", ""},
	[PEER_C_OWN] = {"own munged", "start munged on this machine: systemctl start munge"},
};

void peer_states_init(struct peer_states *states, const struct settings *set)
{
	states->count = 0;
	for (size_t i = 0; i < set->npeers; i++) {
		struct peer_state *p = &states->all[states->count];

		if (settings_is_self(set, &set->peers[i]))
			continue;
		*p = (struct peer_state){.at.port = set->peers[i].port};
		snprintf(p->at.address, sizeof(p->at.address), "%s", set->peers[i].address);
		states->count++;
	}
}

struct peer_state *peer_states_at(struct peer_states *states, const struct gate_place *at)
{
	for (size_t i = 0; i < states->count; i++)
		if (gate_place_is(&states->all[i].at, at->address, at->port))
			return &states->all[i];
	return NULL;
}

struct peer_state *peer_states_from(struct peer_states *states, const char *address)
{
	struct peer_state *found = NULL;
	size_t n = strlen(address);

	for (size_t i = 0; i < states->count && n; i++) {
		struct peer_state *p = &states->all[i];
		const char *at = p->at.address + (p->at.address[0] == '['); /* [IPv6] */

		if (strncmp(at, address, n) || (at[n] && at[n] != ']'))
			continue;
		if (found)
			return NULL;
		found = p;
	}
	return found;
}

/* What only says how far a connection got. */
static bool peer_cause_is_way(enum peer_cause cause)
{
	return cause == PEER_C_REFUSED || cause == PEER_C_TIMED_OUT ||
	       cause == PEER_C_UNREACHABLE || cause == PEER_C_NAME;
}

static void peer_note(struct peer_state *p, const struct peer_trouble *t, uint64_t now)
{
	if (p->cause != t->cause || p->heard_ns > p->told_ns)
		p->since_ns = now;
	p->cause = t->cause;
	p->sure = t->sure;
	p->told_ns = now;
	p->ahead_s = t->ahead_s;
	snprintf(p->why, sizeof(p->why), "%s", t->why);
}

bool peer_state_trouble(struct peer_state *p, const struct peer_trouble *t, uint64_t now)
{
	static const struct peer_trouble takes = {
		.cause = PEER_C_MUTE,
		.why = "it takes connections at its third port, but nothing comes from its first"};
	bool news = p->cause != t->cause;
	bool way = peer_cause_is_way(p->cause);

	if (!t->cause) { /* it takes connections */
		if (p->cause ? way && p->sure : !*p->node)
			peer_note(p, &takes, now);
		return false;
	}
	if (p->cause && p->sure && !t->sure && now - p->told_ns < PEER_STATE_SURE_NS)
		return false;
	peer_note(p, t, now);
	return news;
}

void peer_state_session(struct peer_state *p, const char *node)
{
	p->cause = PEER_C_NONE;
	p->why[0] = 0;
	p->ahead_s = 0;
	snprintf(p->node, sizeof(p->node), "%s", node);
}

static uint64_t peer_patience_ns(const struct peer_state *p)
{
	return (uint64_t)p->period_ms * 1000000u * MATRIX_SILENT_PERIODS;
}

static bool peer_is_heard(const struct peer_state *p, uint64_t now)
{
	return p->heard_ns && now - p->heard_ns <= peer_patience_ns(p);
}

/*
 * Another peer that was heard under the name of P after P had begun to be heard as it is now: not
 * one agent at two addresses, nor one that has started again.
 */
static struct peer_state *peer_twin(struct peer_states *states, const struct peer_state *p,
				    uint64_t now)
{
	for (size_t i = 0; i < states->count; i++) {
		struct peer_state *q = &states->all[i];

		if (q != p && !strcmp(q->node, p->node) && q->boot_id != p->boot_id &&
		    peer_is_heard(q, now) && q->heard_ns > p->boot_since_ns)
			return q;
	}
	return NULL;
}

const struct peer_state *peer_states_heard(struct peer_states *states, struct peer_state *p,
					   const struct iocom_vector *v, uint64_t now)
{
	struct peer_state *twin;

	if (!peer_is_heard(p, now))
		p->heard_since_ns = now;
	if (v->boot_id != p->boot_id || strcmp(v->name, p->node) != 0 || !p->boot_since_ns)
		p->boot_since_ns = now;
	peer_state_session(p, v->name);
	p->boot_id = v->boot_id;
	p->heard_ns = now;
	p->period_ms = v->period_ms;
	twin = peer_twin(states, p, now);
	if (twin) {
		p->twin_ns = twin->twin_ns = now;
		p->twin = (size_t)(twin - states->all);
		twin->twin = (size_t)(p - states->all);
	}
	return twin;
}

/* --- for people ----------------------------------------------------------------------- */

static void peer_advise_ports(const struct peer_state *p, struct peer_status *s)
{
	snprintf(s->advice, sizeof(s->advice),
		 "see that it is up and that TCP ports %u to %u are open to it, or correct its "
		 "address here",
		 p->at.port, p->at.port + 2u);
}

static void peer_say(const struct peer_state *p, struct peer_status *s, enum peer_cause cause,
		     uint64_t since_ns, const char *why)
{
	const char *advice = peer_words[cause].advice;

	s->state = peer_words[cause].state;
	s->since_ns = since_ns;
	snprintf(s->why, sizeof(s->why), "%s", why);
	if (advice)
		snprintf(s->advice, sizeof(s->advice), "%s", advice);
	else
		peer_advise_ports(p, s);
}

static void peer_say_heard(struct peer_status *s, uint64_t since_ns, const char *why)
{
	s->state = "heard";
	s->heard = true;
	s->since_ns = since_ns;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

/* It is not heard itself, and E is what the matrix has of it, or NULL. */
static void peer_say_missing(const struct peer_state *p, const struct matrix_entry *e,
			     struct peer_status *s)
{
	bool way = peer_cause_is_way(p->cause) || p->cause == PEER_C_MUTE;

	if (e && e->left && !e->alive && (!p->cause || way)) {
		s->state = "left";
		s->since_ns = e->heard_ns;
		snprintf(s->advice, sizeof(s->advice), "start iocomd there again");
		snprintf(s->why, sizeof(s->why), "its agent was stopped, and said so");
	} else if (p->cause) {
		peer_say(p, s, p->cause, p->since_ns, p->why);
	} else if (e && e->alive) {
		peer_say_heard(s, 0, "through other nodes");
	} else if (p->heard_ns || *p->node) {
		s->state = "silent";
		s->since_ns = p->heard_ns;
		peer_advise_ports(p, s);
		snprintf(s->why, sizeof(s->why), "%s",
			 p->heard_ns ? "it was heard, and sends nothing any more"
				     : "it answers, but nothing comes from its first port");
	} else {
		peer_say(p, s, PEER_C_NONE, 0, "");
	}
}

void peer_state_status(const struct peer_states *states, const struct peer_state *p,
		       const struct matrix *matrix, uint64_t now, struct peer_status *s)
{
	const struct matrix_entry *e = *p->node ? matrix_find(matrix, p->node) : NULL;
	char why[PEER_STATE_WHY];

	*s = (struct peer_status){0};
	if (p->cause == PEER_C_SELF) {
		peer_say(p, s, PEER_C_SELF, p->since_ns, "it is this node, by another address");
		s->heard = true;
	} else if (p->twin_ns && now - p->twin_ns <= 2 * peer_patience_ns(p)) {
		const struct peer_state *twin = &states->all[p->twin];
		const struct gate_place *at = &twin->at;
		uint64_t since_ns = p->boot_since_ns > twin->boot_since_ns ? p->boot_since_ns
									   : twin->boot_since_ns;

		snprintf(why, sizeof(why), "it calls itself %s, as the peer at %s port %u does",
			 p->node, at->address, at->port);
		peer_say(p, s, PEER_C_SAME_NAME, since_ns, why); /* the second came then */
	} else if (peer_is_heard(p, now) && !(e && e->left && !e->alive)) {
		peer_say_heard(s, p->heard_since_ns, "");
	} else {
		peer_say_missing(p, e, s);
	}
}
