/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What parties ask each other in memory; see parties.h. */
#include "tests/lib/parties_own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/peer_message.h"
#include "user/clock.h"
#include "user/pack.h"
#include "user/gang_name.h"

/* the mark of a node's questions to itself, as in peer_requests.c */
#define OWN_TICKET (1ull << 63)
#define NONCE_S	   120

/* A question that waits for its answer. */
struct bus_call {
	struct bus_call *next;
	uint64_t number, until_ns;
	struct party *from;
	enum peer_type type;
	peers_answered answered;
	void *arg;
};

struct bus_message {
	struct bus_message *next;
	uint64_t due_ns, number; /* the number tells a message that is shown again from a new one */
	bool is_answer;
	struct party *from, *to;
	uint64_t call, ticket;
	enum peer_type type;
	char job[SPEC_JOB_MAX];
	msgpack_sbuffer body;
	bool waits; /* the handler will answer later */
};

/* --- rules ------------------------------------------------------------------------ */

static bool rule_is_for(const struct bus_rule *r, const struct bus_message *m)
{
	return r->what && r->type == m->type && r->answers == m->is_answer &&
	       (!r->from || !strcmp(r->from, m->from->set.name)) &&
	       (!r->to || !strcmp(r->to, m->to->set.name));
}

/* Returns the rule for M; a rule that was used as often as it may be is removed. */
static struct bus_rule bus_rule_take(struct parties *all, const struct bus_message *m)
{
	for (unsigned i = 0; i < PARTIES_RULES_MAX; i++) {
		struct bus_rule *r = &all->rules[i], taken = *r;

		if (!rule_is_for(r, m))
			continue;
		if (r->times && !--r->times)
			*r = (struct bus_rule){0};
		return taken;
	}
	return (struct bus_rule){0};
}

void parties_rule(struct parties *all, const struct bus_rule *rule)
{
	for (unsigned i = 0; i < PARTIES_RULES_MAX; i++)
		if (!all->rules[i].what) {
			all->rules[i] = *rule;
			return;
		}
	abort();
}

void parties_no_rules(struct parties *all)
{
	memset(all->rules, 0, sizeof(all->rules));
}

/* --- messages --------------------------------------------------------------------- */

static void message_free(struct bus_message *m)
{
	msgpack_sbuffer_destroy(&m->body);
	free(m);
}

static struct bus_message *message_new(struct party *from, struct party *to, enum peer_type type,
				       const char *job)
{
	struct bus_message *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->from = from;
	m->to = to;
	m->type = type;
	m->number = ++from->all->numbers;
	msgpack_sbuffer_init(&m->body);
	snprintf(m->job, sizeof(m->job), "%s", job);
	return m;
}

static struct bus_message *message_copy(const struct bus_message *m, bool same)
{
	struct bus_message *copy = message_new(m->from, m->to, m->type, m->job);

	copy->number = same ? m->number : copy->number;
	copy->is_answer = m->is_answer;
	copy->call = m->call;
	msgpack_sbuffer_write(&copy->body, m->body.data, m->body.size);
	return copy;
}

/* Queues M by its due time; messages of the same time stay in order. */
static void message_post(struct bus_message *m, unsigned delay_ms)
{
	struct parties *all = m->from->all;
	struct bus_message **p = &all->messages;

	m->due_ns = parties_now_ns(all) + (PARTIES_LATENCY_MS + delay_ms) * CLOCK_NS_PER_MS;
	while (*p && (*p)->due_ns <= m->due_ns)
		p = &(*p)->next;
	m->next = *p;
	*p = m;
	loop_stop(all->loop); /* M may be due before the time that the loop was to wait for */
}

static void note_message(const struct bus_message *m, const char *what)
{
	parties_note(m->from->all, m->from->set.name, "-> %s %s%s %s%s", m->to->set.name,
		     m->is_answer ? "answer to " : "", peer_type_name(m->type), m->job, what);
}

/* An answer of another build, or of one that fell over. */
static void spoil(struct bus_message *m, bool whole)
{
	struct peer_answer answer;
	msgpack_unpacked map;
	msgpack_packer pk;

	if (!whole) {
		msgpack_sbuffer_destroy(&m->body);
		pack_begin(&pk, &m->body, 0);
		return;
	}
	if (unpack_map_of(&map, m->body.data, m->body.size, PEER_VALUES_MAX) ||
	    peer_answer_unpack(&answer, m->type, &map.data))
		abort();
	msgpack_unpacked_destroy(&map);
	answer.grant.lease_ms = 0;
	msgpack_sbuffer_clear(&m->body);
	peer_answer_pack(m->type, &answer, &m->body);
}

/* M is taken. */
static void bus_send(struct bus_message *m)
{
	static const char *const said[] = {
		[0] = "",
		[BUS_LOSE] = " (lost)",
		[BUS_DELAY] = " (slow)",
		[BUS_TWICE] = " (shown twice)",
		[BUS_AGAIN] = " (said again)",
		[BUS_SPOIL] = " (incomplete)",
		[BUS_OLD] = " (of an older build)",
		[BUS_UNREACHABLE] = "",
	};
	struct bus_rule rule = bus_rule_take(m->from->all, m);

	if (m->from->cut || m->to->cut)
		rule.what = BUS_LOSE;
	note_message(m, said[rule.what]);
	if (rule.what == BUS_LOSE) {
		message_free(m);
		return;
	}
	if (rule.what == BUS_TWICE || rule.what == BUS_AGAIN)
		message_post(message_copy(m, rule.what == BUS_TWICE), rule.delay_ms);
	if (rule.what == BUS_SPOIL || rule.what == BUS_OLD)
		spoil(m, rule.what == BUS_OLD);
	message_post(m, rule.what == BUS_DELAY ? rule.delay_ms : 0);
}

/* --- asking ------------------------------------------------------------------------ */

static int bus_unreachable(struct party *from, struct party *to, const char *node,
			   const struct peer_request *r, struct iocom_err *err)
{
	struct bus_message probe = {.from = from, .to = to, .type = r->type};
	struct parties *all = from->all;

	if (to)
		for (unsigned i = 0; i < PARTIES_RULES_MAX; i++)
			if (all->rules[i].what == BUS_UNREACHABLE &&
			    rule_is_for(&all->rules[i], &probe)) {
				(void)bus_rule_take(all, &probe);
				return iocom_err_set(err, -EHOSTUNREACH, "no way leads to node %s",
						     node);
			}
	return to ? 0 : iocom_err_set(err, -EHOSTUNREACH, "there is no node %s", node);
}

/* A job that anybody is asked for is in its home's journal; of a part its gang is. */
static void must_be_known(struct party *from, const struct peer_request *r)
{
	char job[SPEC_JOB_MAX];

	if (!gang_part_of(r->job, job, NULL))
		memcpy(job, r->job, sizeof(job));
	if (r->type == PEER_ADMIT)
		parties_must(from->all, party_journal(from, job)[0],
			     "a guest is asked for job %s, which the journal has not", r->job);
}

int bus_ask(void *arg, const char *node, const char *address, uint16_t port,
	    const struct peer_request *r, peers_answered answered, void *answered_arg,
	    struct iocom_err *err)
{
	struct party *from = arg, *to = party_of(from->all, node);
	struct bus_message *m;
	struct bus_call *call;
	int rc;

	must_be_known(from, r);
	if (to == from) {
		parties_note(from->all, node, "-> itself %s %s", peer_type_name(r->type), r->job);
		return peers_ask(&from->peers, node, address, port, r, answered, answered_arg, err);
	}
	rc = bus_unreachable(from, to, node, r, err);
	if (rc)
		return rc;
	call = calloc(1, sizeof(*call));
	if (!call)
		abort();
	*call = (struct bus_call){.next = from->all->calls,
				  .number = ++from->all->numbers,
				  .until_ns = parties_now_ns(from->all) +
					      CONTROL_TIMEOUT_MS * CLOCK_NS_PER_MS,
				  .from = from,
				  .type = r->type,
				  .answered = answered,
				  .arg = answered_arg};
	from->all->calls = call;
	m = message_new(from, to, r->type, r->job);
	m->call = call->number;
	msgpack_sbuffer_destroy(&m->body);
	peer_request_pack(r, &m->body);
	bus_send(m);
	return 0;
}

/* --- answering --------------------------------------------------------------------- */

static void send_answer(const struct bus_message *question, const struct peer_answer *answer)
{
	struct bus_message *m =
		message_new(question->to, question->from, question->type, question->job);
	const struct peer_grant *g = &answer->grant;

	m->is_answer = true;
	m->call = question->call;
	peer_answer_pack(question->type, answer, &m->body);
	if (question->type == PEER_ADMIT)
		parties_note(m->from->all, m->from->set.name, "%s %s: %s%s%s",
			     g->granted ? "grants" : "refuses", question->job,
			     g->granted ? "a place" : g->reason, g->granted ? "" : ", ", g->text);
	else
		parties_note(m->from->all, m->from->set.name, "says %s to %s %s%s%s",
			     answer->ok ? "yes" : "no", peer_type_name(question->type),
			     question->job, answer->text[0] ? ": " : "", answer->text);
	bus_send(m);
}

void bus_answer(void *arg, uint64_t ticket, enum peer_type type, const struct peer_answer *answer)
{
	struct party *party = arg;

	if (ticket & OWN_TICKET) {
		peers_answer(&party->peers, ticket, type, answer);
		return;
	}
	if (ticket == party->handling) {
		party->early = true;
		party->held = *answer;
		return;
	}
	for (struct bus_message **p = &party->all->messages; *p; p = &(*p)->next) {
		struct bus_message *m = *p;

		if (!m->waits || m->ticket != ticket)
			continue;
		*p = m->next;
		send_answer(m, answer);
		message_free(m);
		return;
	}
}

static int bus_handle(struct bus_message *m, struct peer_answer *answer, struct iocom_err *err)
{
	struct party *to = m->to;
	struct peer_request r;
	msgpack_unpacked map;
	int rc = unpack_map_of(&map, m->body.data, m->body.size, PEER_VALUES_MAX);

	if (rc)
		return iocom_err_set(err, rc, "it is no map");
	rc = peer_request_unpack(&r, m->type, m->from->set.name, m->job, &map.data);
	msgpack_unpacked_destroy(&map);
	if (rc)
		return iocom_err_set(err, rc, "%s", strerror(-rc));
	*answer = (struct peer_answer){0};
	m->ticket = to->handling = ++to->all->numbers;
	to->early = false;
	rc = to->peers.handlers[m->type].handle(to->peers.handlers[m->type].arg, &r, m->ticket,
						answer);
	to->handling = 0;
	if (rc == PEERS_LATER && to->early) {
		*answer = to->held;
		rc = 0;
	}
	peer_request_free(&r);
	return rc < 0 ? iocom_err_set(err, rc, "%s", strerror(-rc)) : rc;
}

/* As in peer_requests.c, a message is obeyed once and written before its answer leaves. */
static int bus_obey(struct bus_message *m, struct peer_answer *answer, struct iocom_err *err)
{
	struct party *to = m->to;
	int rc = journal_begin(to->journal, err), end;
	bool unwritten = rc != 0;

	if (!rc) {
		rc = journal_nonce(to->journal, m->from->set.name, m->number,
				   loop_real_ns(to->base.loop) / CLOCK_NS_PER_S, NONCE_S, err);
		unwritten = rc < 0;
		rc = rc > 0 ? -EALREADY : rc ? rc : bus_handle(m, answer, err);
		end = journal_commit(to->journal, rc < 0 ? NULL : err);
		unwritten |= end != 0;
		rc = end && rc >= 0 ? end : rc;
	}
	if (rc >= 0 || !unwritten || m->type != PEER_ADMIT)
		return rc;
	*answer = (struct peer_answer){.grant = {.reason = "journal"}};
	snprintf(answer->grant.text, sizeof(answer->grant.text), "%.*s", PEER_TEXT_MAX - 1,
		 err->text);
	return 0;
}

static void bus_unlink(struct bus_message *m)
{
	for (struct bus_message **p = &m->from->all->messages; *p; p = &(*p)->next)
		if (*p == m) {
			*p = m->next;
			return;
		}
}

/* M stays on the bus until its answer comes. */
static void deliver_question(struct bus_message *m)
{
	struct peer_answer answer;
	struct iocom_err err = {0};
	int rc;

	if (!m->to->runs) {
		note_message(m, " (nobody is there)");
		bus_unlink(m);
		message_free(m);
		return;
	}
	m->waits = true;
	rc = bus_obey(m, &answer, &err);
	if (rc == PEERS_LATER) {
		parties_settle(m->from->all);
		return;
	}
	if (rc < 0)
		parties_note(m->from->all, m->to->set.name, "does not obey %s %s of %s: %s",
			     peer_type_name(m->type), m->job, m->from->set.name,
			     rc == -EALREADY ? "it was here before" : err.text);
	else
		send_answer(m, &answer);
	bus_unlink(m);
	message_free(m);
}

static struct bus_call *call_take(struct parties *all, uint64_t number)
{
	for (struct bus_call **p = &all->calls; *p; p = &(*p)->next) {
		struct bus_call *call = *p;

		if (call->number != number)
			continue;
		*p = call->next;
		return call;
	}
	return NULL;
}

static void call_tell(struct bus_call *call, int rc, const struct peer_answer *answer,
		      const char *why)
{
	struct bus_call told = *call;

	free(call);
	if (told.answered)
		told.answered(told.arg, rc, rc ? NULL : answer, why);
}

static void deliver_answer(struct bus_message *m)
{
	struct bus_call *call = call_take(m->from->all, m->call);
	struct peer_answer answer;
	msgpack_unpacked map;
	int rc;

	bus_unlink(m);
	if (!call) {
		note_message(m, " (nobody waits for it)");
	} else {
		rc = unpack_map_of(&map, m->body.data, m->body.size, PEER_VALUES_MAX);
		if (!rc) {
			rc = peer_answer_unpack(&answer, m->type, &map.data);
			msgpack_unpacked_destroy(&map);
		}
		call_tell(call, rc, &answer, rc ? "the answer is incomplete" : "");
	}
	message_free(m);
}

/* --- time -------------------------------------------------------------------------- */

static struct bus_message *next_message(const struct parties *all)
{
	struct bus_message *m = all->messages;

	while (m && m->waits)
		m = m->next;
	return m;
}

static struct bus_call *next_call(const struct parties *all)
{
	struct bus_call *next = NULL;

	for (struct bus_call *call = all->calls; call; call = call->next)
		if (!next || call->until_ns <= next->until_ns)
			next = call;
	return next;
}

uint64_t bus_due_ns(const struct parties *all)
{
	const struct bus_message *m = next_message(all);
	const struct bus_call *call = next_call(all);
	uint64_t due = m ? m->due_ns : UINT64_MAX;

	return call && call->until_ns < due ? call->until_ns : due;
}

void bus_run(struct parties *all)
{
	uint64_t now = parties_now_ns(all);
	struct bus_message *m;
	struct bus_call *call;

	while ((m = next_message(all)) && m->due_ns <= now) {
		if (m->is_answer)
			deliver_answer(m);
		else
			deliver_question(m);
	}
	while ((call = next_call(all)) && call->until_ns <= now) {
		parties_note(all, call->from->set.name, "waits no more for the answer to %s",
			     peer_type_name(call->type));
		call_tell(call_take(all, call->number), -ETIMEDOUT, NULL,
			  "the node did not answer within 2 s");
	}
}

/* The questions that PARTY was handling have no answer any more. */
static void forget_tickets(struct party *party)
{
	for (struct bus_message **p = &party->all->messages; *p;) {
		struct bus_message *m = *p;

		if (!m->waits || m->to != party) {
			p = &m->next;
			continue;
		}
		*p = m->next;
		message_free(m);
	}
}

void bus_cancel(struct party *party)
{
	struct bus_call *call;

	forget_tickets(party);
	do {
		call = party->all->calls;
		while (call && call->from != party)
			call = call->next;
		if (call)
			call_tell(call_take(party->all, call->number), -ECANCELED, NULL,
				  "the agent is stopping");
	} while (call);
}

void bus_free(struct parties *all)
{
	while (all->messages) {
		struct bus_message *m = all->messages;

		all->messages = m->next;
		message_free(m);
	}
	while (all->calls)
		free(call_take(all, all->calls->number));
}
