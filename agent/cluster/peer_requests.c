/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Questions between agents; see peers.h.
 *
 *   another node -> control_answer.c -> decoded (peer_message.c) -> journal has its number
 *                -> the party's handler -> commit -> encoded -> on the disk -> control_answer.c
 *   this node    -> the party's handler, in a transaction -> the asker
 *
 * Only answers that tell what the journal has wait for the disk.  The number alone is not worth it:
 * if a power cut undoes it, a replay finds nothing to repeat.  The jobs that `kill` could reach are
 * dead, a place given to an `admit` lapses, because only home can read its secret, and `renew`
 * makes home wait longer, never shorter.  Nor do this node's own questions wait: what the asker
 * does next is a later commit in the same journal.
 *
 * If a handler calls peers_answer before it returns, the answer is held until the transaction is
 * committed.
 */
#include "agent/cluster/peer_requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/complaints.h"
#include "agent/jobs/journal.h"
#include "user/clock.h"

#define OWN_TICKET (1ull << 63) /* marks this node's own questions; no ticket of control has it */

/* A question that this node asks; TICKET is set when it asks itself. */
struct peers_call {
	struct peers_call *next;
	struct peers *peers;
	enum peer_type type;
	uint64_t ticket;
	bool handling; /* the handler is running: answers are held */
	bool early;    /* an answer was given meanwhile */
	struct peer_answer answer;
	peers_answered answered; /* NULL: forgotten */
	void *arg;
};

/* An answer to another node that waits until the disk has what it says. */
struct peers_held {
	struct peers_held *next;
	struct peers *peers;
	struct journal_wait wait;
	struct loop_timer overdue; /* by then the other node has given up */
	uint64_t ticket;
	msgpack_sbuffer body;
};

void peers_serve(struct peers *p, enum peer_type type, peers_handler handler, void *arg)
{
	p->handlers[type].handle = handler;
	p->handlers[type].arg = arg;
}

static int peers_handle_request(struct peers *p, const struct peer_request *r, uint64_t ticket,
				struct peer_answer *answer)
{
	if (!p->handlers[r->type].handle)
		return -ENOSYS;
	*answer = (struct peer_answer){0};
	return p->handlers[r->type].handle(p->handlers[r->type].arg, r, ticket, answer);
}

/* --- calls ---------------------------------------------------------------------- */

static struct peers_call *call_new(struct peers *p, enum peer_type type, peers_answered answered,
				   void *arg)
{
	struct peers_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->peers = p;
	call->type = type;
	call->answered = answered;
	call->arg = arg;
	call->next = p->calls;
	p->calls = call;
	return call;
}

/* Ends CALL.  It is freed first because its callback may ask again. */
static void call_end(struct peers_call *call, int rc, const struct peer_answer *answer,
		     const char *why)
{
	struct peer_answer kept = answer ? *answer : (struct peer_answer){0};
	peers_answered answered = call->answered;
	void *arg = call->arg;

	for (struct peers_call **q = &call->peers->calls; *q; q = &(*q)->next)
		if (*q == call) {
			*q = call->next;
			break;
		}
	free(call);
	if (answered)
		answered(arg, rc, rc ? NULL : &kept, why);
}

void peers_forget(struct peers *p, const void *arg)
{
	for (struct peers_call *call = p->calls; call; call = call->next)
		if (call->arg == arg)
			call->answered = NULL;
}

static void held_free(struct peers_held *held)
{
	for (struct peers_held **q = &held->peers->held; *q; q = &(*q)->next) {
		if (*q != held)
			continue;
		*q = held->next;
		break;
	}
	journal_forget(held->peers->journal, &held->wait);
	loop_cancel(held->peers->base->loop, &held->overdue);
	msgpack_sbuffer_destroy(&held->body);
	free(held);
}

void peer_requests_stop(struct peers *p)
{
	while (p->calls)
		call_end(p->calls, -ECANCELED, NULL, "the agent is stopping");
	while (p->held)
		held_free(p->held);
}

/* --- asking --------------------------------------------------------------------- */

static void asked_answered(void *arg, int rc, const char *from, const msgpack_object *body,
			   const char *why)
{
	struct peers_call *call = arg;
	struct peer_answer answer;

	if (!rc && peer_answer_unpack(&answer, call->type, body)) {
		rc = -EBADMSG;
		why = "the answer is incomplete";
	}
	if (!rc)
		snprintf(answer.from, sizeof(answer.from), "%s", from);
	call_end(call, rc, &answer, why);
}

static int ask_other(struct peers_call *call, const char *node, const char *address, uint16_t port,
		     const struct peer_request *r, struct iocom_err *err)
{
	struct peers *p = call->peers;
	msgpack_sbuffer body;
	int rc;

	if (!p->control || !address[0])
		return iocom_err_set(err, -EHOSTUNREACH,
				     "this agent serves its own machine only, and node %s is "
				     "another",
				     node);
	peer_request_pack(r, &body);
	rc = control_ask(p->control, node, address, port, peer_type_name(r->type), r->job, &body,
			 asked_answered, call, err);
	msgpack_sbuffer_destroy(&body);
	return rc;
}

static int ask_self(struct peers_call *call, const struct peer_request *r, struct iocom_err *err)
{
	struct peers *p = call->peers;
	bool outer = journal_is_open(p->journal); /* the caller's transaction has it all */
	struct peer_answer answer;
	int rc = outer ? 0 : journal_begin(p->journal, err), end;

	if (rc) {
		p->base->counters->journal_failures++;
		return rc;
	}
	call->ticket = ++p->tickets | OWN_TICKET;
	call->handling = true;
	rc = peers_handle_request(p, r, call->ticket, &answer);
	call->handling = false;
	end = outer ? 0 : journal_commit(p->journal, rc < 0 ? NULL : err);
	if (end) {
		p->base->counters->journal_failures++;
		return end;
	}
	if (rc < 0)
		return iocom_err_set(err, rc, "%s", strerror(-rc));
	if (rc == 0)
		call_end(call, 0, &answer, "");
	else if (call->early)
		call_end(call, 0, &call->answer, "");
	return 0;
}

int peers_ask(void *arg, const char *node, const char *address, uint16_t port,
	      const struct peer_request *request, peers_answered answered, void *answered_arg,
	      struct iocom_err *err)
{
	struct peers *p = arg;
	struct peers_call *call = call_new(p, request->type, answered, answered_arg);
	struct peer_request own;
	int rc;

	if (!call)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	if (strcmp(node, p->base->set->name) != 0) {
		rc = ask_other(call, node, address, port, request, err);
	} else {
		own = *request;
		memcpy(own.from, p->base->set->name, sizeof(own.from));
		rc = ask_self(call, &own, err);
	}
	if (rc) {
		call->answered = NULL;
		call_end(call, rc, NULL, "");
	}
	return rc;
}

/* --- answering ------------------------------------------------------------------ */

static void answer_own(struct peers *p, uint64_t ticket, const struct peer_answer *answer)
{
	for (struct peers_call *call = p->calls; call; call = call->next) {
		if (call->ticket != ticket)
			continue;
		call->early = call->handling;
		if (call->early)
			call->answer = *answer;
		else
			call_end(call, 0, answer, "");
		return;
	}
}

void peers_answer(void *arg, uint64_t ticket, enum peer_type type, const struct peer_answer *answer)
{
	struct peers *p = arg;
	msgpack_sbuffer out;

	if (ticket & OWN_TICKET) {
		answer_own(p, ticket, answer);
		return;
	}
	msgpack_sbuffer_init(&out);
	peer_answer_pack(type, answer, &out);
	control_answer_later(p->control, ticket, 0, &out);
	msgpack_sbuffer_destroy(&out);
}

/*
 * Returns 0: the message comes for the first time.  An agent that cannot write its journal obeys no
 * message: a message that it forgets could be replayed.
 */
static int peers_first_time(struct peers *p, const struct control_head *head, struct iocom_err *err)
{
	int rc = journal_nonce(p->journal, head->from, head->id,
			       loop_real_ns(p->base->loop) / CLOCK_NS_PER_S, 2 * SEAL_TTL_S, err);

	if (rc < 0)
		base_journal_failed(p->base, err);
	return rc > 0 ? -EALREADY : rc;
}

/*
 * The journal did not take a question of TYPE for which somebody waits, so it is not obeyed; the
 * asker learns why instead of waiting.  A replayed refusal gives nothing away.
 */
static int refuse_unwritten(struct peers *p, enum peer_type type, const struct iocom_err *why,
			    msgpack_sbuffer *out)
{
	struct peer_answer answer = {.grant = {.boot_id = p->base->boot_id, .reason = "journal"}};

	snprintf(answer.grant.text, sizeof(answer.grant.text), "%.*s", PEER_TEXT_MAX - 1,
		 why->text);
	peer_answer_refuse(&answer, "%.*s", PEER_TEXT_MAX - 1, why->text);
	p->base->counters->admissions_refused += type == PEER_ADMIT;
	control_undefer(p->control);
	msgpack_sbuffer_clear(out);
	peer_answer_pack(type, &answer, out);
	return 0;
}

/* If the sync failed there is no answer, as if the journal had failed: the other node asks again.
 */
static void peers_durable(void *arg, int rc)
{
	struct peers_held *held = arg;

	control_answer_later(held->peers->control, held->ticket, rc, &held->body);
	held_free(held);
}

/* A disk that hangs must not keep all servers of control (control_answer.c). */
static void peers_overdue(void *arg)
{
	peers_durable(arg, -ETIMEDOUT);
}

/*
 * Returns true if an answer of TYPE tells what the journal has.  Ends and starts do even if their
 * handler wrote nothing: it may have written the same before, for an answer that came too late.
 */
static bool peers_tells(enum peer_type type, bool written)
{
	return written || type == PEER_STARTED || type == PEER_DONE;
}

/* Holds the answer BODY back until the disk has all that is committed. */
static int peers_hold(struct peers *p, const msgpack_sbuffer *body)
{
	struct peers_held *held;

	if (!p->control || journal_is_durable(p->journal, journal_position(p->journal)))
		return 0;
	held = calloc(1, sizeof(*held));
	if (!held)
		return -ENOMEM;
	held->peers = p;
	held->wait = (struct journal_wait){.done = peers_durable, .arg = held};
	held->overdue = (struct loop_timer){.fire = peers_overdue, .arg = held};
	held->next = p->held;
	p->held = held;
	if (msgpack_sbuffer_write(&held->body, body->data, body->size)) {
		held_free(held);
		return -ENOMEM;
	}
	held->ticket = control_defer(p->control);
	(void)journal_when_durable(p->journal, &held->wait);
	loop_start(p->base->loop, &held->overdue, CONTROL_TIMEOUT_MS * CLOCK_NS_PER_MS);
	return 0;
}

/* Sets TELLS if the answer in OUT must wait for the disk. */
static int serve_other(struct peers *p, const struct control_head *head, const msgpack_object *body,
		       msgpack_sbuffer *out, bool *tells, struct iocom_err *err)
{
	uint64_t changes = journal_changes(p->journal);
	struct peer_answer answer;
	struct peer_request r;
	enum peer_type type;
	int rc = peer_type_parse(head->type, &type);

	if (rc)
		return iocom_err_set(err, rc, "unknown type; another version of iocom?");
	rc = peer_request_unpack(&r, type, head->from, head->job, body);
	if (!rc) {
		rc = peers_handle_request(p, &r, p->control ? control_defer(p->control) : 0,
					  &answer);
		peer_request_free(&r);
	}
	if (rc < 0)
		return iocom_err_set(err, rc, "%s", strerror(-rc));
	if (rc == 0) {
		control_undefer(p->control);
		peer_answer_pack(type, &answer, out);
		*tells = peers_tells(type, journal_changes(p->journal) != changes);
	}
	return 0;
}

int peer_requests_handle(void *arg, const struct control_head *head, const msgpack_object *body,
			 msgpack_sbuffer *out)
{
	struct peers *p = arg;
	enum peer_type type;
	struct iocom_err err = {0};
	int rc = journal_begin(p->journal, &err), end;
	bool unwritten = rc != 0, tells = false;

	if (!rc) {
		rc = peers_first_time(p, head, &err);
		unwritten = rc && rc != -EALREADY;
		if (!rc)
			rc = serve_other(p, head, body, out, &tells, &err);
		/*
		 * Both the message's number and its effects are written before the answer leaves.
		 */
		end = journal_commit(p->journal, rc ? NULL : &err);
		if (end && !rc)
			rc = end;
		p->base->counters->journal_failures += end != 0;
		unwritten |= end != 0;
	} else {
		base_journal_failed(p->base, &err);
	}
	if (rc) {
		p->base->counters->controls_refused++;
		base_complain(p->base, head->from, "refused a '%s' message of node %s: %s",
			      head->type, head->from, err.text);
	}
	if (rc && unwritten && !peer_type_parse(head->type, &type) &&
	    (type == PEER_ADMIT || type == PEER_ATTACH))
		return refuse_unwritten(p, type, &err, out);
	return rc || !tells ? rc : peers_hold(p, out);
}

/* --- hello ---------------------------------------------------------------------- */

bool peer_requests_greets(const struct settings *set, const struct iocom_vector *v)
{
	for (size_t i = 0; i < set->npeers; i++)
		if (set->peers[i].port == v->port && !strcmp(set->peers[i].address, v->address))
			return true;
	return false;
}

/*
 * A subscription works one way: that we hear a node does not mean that it hears us.  So we ask the
 * configured peers to subscribe to us; the other nodes learn of us from the vectors that those
 * peers relay.  A question must name its target, and a peer's name is unknown before we hear it:
 * only peers in the matrix can be asked.
 */
void peer_requests_hello(struct peers *p)
{
	const struct settings *set = p->base->set;
	struct peer_request hello = {.type = PEER_HELLO, .hello.port = (uint16_t)set->port};

	if (!p->control)
		return;
	snprintf(hello.hello.address, sizeof(hello.hello.address), "%s", set->address);
	for (size_t i = 0; i < p->matrix.count; i++) {
		const struct iocom_vector *v = &matrix_at(&p->matrix, i)->vector;

		if (matrix_at(&p->matrix, i)->alive && peer_requests_greets(set, v))
			(void)peers_ask(p, v->name, v->address, v->port, &hello, NULL, NULL, NULL);
	}
}
