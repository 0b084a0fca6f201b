/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Requests of users of other nodes: PEER_USER.
 *
 *   asked    the form, the node that it is for, a free place
 *   opened   munged said who made the credential, and it binds exactly this request
 *   served   as a request of that user on this machine, by the same handler (clients_remote)
 *   told     the handler's answer, or OVERDUE: nothing
 *
 * The asking node is believed nothing: what a user may see and do here depends on the credential
 * alone.  It binds the whole request, and the request
 *
 *   names this node                            no other one obeys it
 *   names this start of its agent, or any      what changes an owner's rules must name it
 *   was made SPEC_CREDENTIAL_TTL_S ago at most munged lets its user choose how long it lives
 *   has a nonce that the journal has not       where munged has forgotten it
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/places.h"
#include "agent/cluster/seal.h"
#include "agent/front/front.h"
#include "user/clock.h"
#include "user/pack.h"
#include "user/user_ask.h"

#define OVERDUE_NS (CONTROL_TIMEOUT_MS * CLOCK_NS_PER_MS) /* nobody waits for it any more */

struct forwarded_kind;

struct forwarded {
	struct forwarded *next;
	struct front *front;
	struct client *client; /* NULL: not served yet */
	uint64_t ticket;
	uid_t uid; /* -1: not known yet */
	char from[IOCOM_NAME_MAX];
	const struct forwarded_kind *kind;
	struct seal_question *opens;
	struct loop_timer overdue;
	struct user_ask ask; /* its request is in PACKED */
	size_t length;
	uint8_t packed[]; /* what the credential binds */
};

/* --- what may be asked -------------------------------------------------------------- */

/* Only asks for the state: somebody who waits asks again. */
static void forwarded_wait(struct front *front, struct client *client,
			   const msgpack_object *request)
{
	bool now = false;

	if (unpack_bool(request, "now", &now) || !now)
		client_error(client, "another node's agent does not wait: ask with \"now\"");
	else
		wait_request(front, client, request);
}

static void forwarded_owner(struct front *front, struct client *client,
			    const msgpack_object *request)
{
	const struct forwarded *f = front->forwarded;

	while (f->client != client)
		f = f->next;
	owner_request_from(front, client, request, f->from, f->ask.boot_id != 0);
}

static void forwarded_alien(struct front *front, struct client *client,
			    const msgpack_object *request)
{
	(void)front;
	(void)request;
	client_error(client, "this request is not for other nodes");
}

/* What may be asked from another node.  The rest would tell about this machine, or spend its jobs.
 */
static const struct forwarded_kind {
	const char *op;
	front_request *handle;
	/* Judges root of other nodes itself; answers at once, from places that jobs' users leave.
	 */
	bool owner;
} forwarded_table[] = {
	{"jobs", jobs_request, false},	     {"wait", forwarded_wait, false},
	{"kill", kill_request, false},	     {"migrate", migrate_request, false},
	{"explain", explain_request, false}, {"top", look_request, false},
	{"owner", forwarded_owner, true},    {"talks", talks_request, false},
	{"another", forwarded_alien, false}, /* the last one: none of them */
};

/* What ASK, which nobody has proven yet, wants. */
static const struct forwarded_kind *forwarded_kind(const struct user_ask *ask)
{
	const struct forwarded_kind *kind = forwarded_table;
	msgpack_unpacked request;
	char op[32] = "";

	if (!unpack_map(&request, ask->request, ask->length)) {
		(void)unpack_str(&request.data, "op", op, sizeof(op));
		msgpack_unpacked_destroy(&request);
	}
	while (kind->handle != forwarded_alien && strcmp(kind->op, op) != 0)
		kind++;
	return kind;
}

/* --- those under way ------------------------------------------------------------------ */

size_t forwarded_count(const struct front *front, bool owner)
{
	size_t n = 0;

	for (const struct forwarded *f = front->forwarded; f; f = f->next)
		n += f->kind->owner == owner;
	return n;
}

static void forwarded_free(struct forwarded *f)
{
	struct client *client = f->client;

	for (struct forwarded **q = &f->front->forwarded; *q; q = &(*q)->next)
		if (*q == f) {
			*q = f->next;
			break;
		}
	if (f->opens)
		seal_forget(f->front->peers->seal, f->opens);
	loop_cancel(f->front->base->loop, &f->overdue);
	free(f);
	if (client)
		client_drop(client);
}

void forwarded_stop(struct front *front)
{
	while (front->forwarded)
		forwarded_free(front->forwarded);
}

static void forwarded_answer(struct forwarded *f, const struct peer_answer *answer)
{
	peers_answer(f->front->peers, f->ticket, PEER_USER, answer);
	forwarded_free(f);
}

static void forwarded_refuse(struct forwarded *f, const char *why)
{
	struct peer_answer answer = {0};

	f->front->base->counters->forwarded_refused++;
	peer_answer_refuse(&answer, "%.*s", PEER_TEXT_MAX - 1, why);
	forwarded_answer(f, &answer);
}

/* The same, of somebody who has not proven who asks. */
static void forwarded_distrust(struct forwarded *f, const char *why)
{
	log_provoked(f->front->base->log, LOG_L_WARNING,
		     "refused a request of a user at node %s (%s): %s", f->from, f->kind->op, why);
	forwarded_refuse(f, why);
}

static void forwarded_overdue(void *arg)
{
	struct forwarded *f = arg;

	forwarded_refuse(f, "the answer took too long");
}

/* --- served ------------------------------------------------------------------------ */

static void forwarded_told(void *arg, bool ok, const char *text, size_t length)
{
	struct forwarded *f = arg;
	struct peer_answer answer = {.ok = ok};

	if (ok && length > PEER_DOCUMENT_MAX) {
		forwarded_refuse(f, "the answer is too long for another node; ask there");
		return;
	}
	answer.user.json = text;
	answer.user.length = length;
	if (!ok)
		snprintf(answer.text, sizeof(answer.text), "%.*s", PEER_TEXT_MAX - 1, text);
	forwarded_answer(f, &answer);
}

static void forwarded_serve(struct forwarded *f, gid_t gid)
{
	struct front *front = f->front;
	msgpack_unpacked request;
	uint64_t before_ns = clock_cpu_ns();
	struct client *client = clients_remote(front->clients, f->uid, gid, forwarded_told, f);
	uid_t before;

	f->client = client;
	if (!client) {
		forwarded_refuse(f, "out of memory");
		return;
	}
	if (!client_may_ask(client)) {
		front->base->counters->requests_refused_rate++;
		forwarded_refuse(f, "you ask more often than one user may "
				    "(user_requests_per_s); ask more slowly");
		return;
	}
	if (unpack_map(&request, f->ask.request, f->ask.length)) {
		forwarded_refuse(f, "the request is no MessagePack map");
		return;
	}
	before = client_enter(client);
	front->base->counters->forwarded_served++;
	f->kind->handle(front, client, &request.data); /* F may be gone now, CLIENT is not yet */
	client_charge(client, clock_cpu_ns() - before_ns);
	client_leave(front->base, before);
	msgpack_unpacked_destroy(&request);
}

/* --- opened ------------------------------------------------------------------------ */

/* Checks that F is for this start of the agent, and for now. */
static int forwarded_fresh(const struct forwarded *f, struct iocom_err *err)
{
	const struct base *base = f->front->base;
	uint64_t now_s = loop_real_ns(base->loop) / CLOCK_NS_PER_S, at_s = f->ask.at_s;

	if (f->ask.boot_id && f->ask.boot_id != base->boot_id)
		return iocom_err_set(err, -EACCES,
				     "the request is for an earlier start of the agent of node %s; "
				     "ask again",
				     base->set->name);
	if (at_s > now_s ? at_s - now_s > SPEC_CREDENTIAL_TTL_S
			 : now_s - at_s > SPEC_CREDENTIAL_TTL_S)
		return iocom_err_set(
			err, -EACCES,
			"the request was made %lld s from now by the clock of node %s; "
			"synchronise the clocks",
			(long long)(at_s - now_s), base->set->name);
	return 0;
}

static int forwarded_first_time(const struct forwarded *f, struct iocom_err *err)
{
	const struct front *front = f->front;
	char half[17] = "";
	int rc;

	memcpy(half, f->ask.nonce, 16);
	rc = journal_nonce(front->journal, f->ask.nonce + 16, strtoull(half, NULL, 16),
			   loop_real_ns(front->base->loop) / CLOCK_NS_PER_S,
			   2 * SPEC_CREDENTIAL_TTL_S, err);
	if (rc < 0)
		base_journal_failed(front->base, err);
	return rc > 0 ? iocom_err_set(err, -EACCES, "this request was here before") : rc;
}

static int forwarded_place(const struct forwarded *f, struct iocom_err *err)
{
	static const struct places places = {
		.what = "requests from other nodes under way",
		.limit = "forwarded",
		.one = "forwarded",
		.max = FORWARDED_MAX,
		.of_root = 1,
		.of_one = FORWARDED_OF_ONE,
	};
	static const struct places of_owners = {
		.what = "requests to this node's owner under way",
		.limit = "owner_requests",
		.one = "owner_requests",
		.max = OWNER_QUESTIONS_MAX,
	};
	size_t own = 0;

	for (const struct forwarded *o = f->front->forwarded; o; o = o->next)
		own += o != f && o->uid == f->uid && o->kind->owner == f->kind->owner;
	/* F itself has a place. */
	return places_ask(f->kind->owner ? &of_owners : &places, f->uid,
			  forwarded_count(f->front, f->kind->owner) - 1, own,
			  f->front->base->counters, err);
}

/* Munged has said who made F's credential. */
static void forwarded_opened(void *arg, struct seal_answer *a)
{
	struct forwarded *f = arg;
	const struct base *base = f->front->base;
	struct iocom_err err = a->err;
	gid_t gid = a->credential.gid;
	int rc = a->rc;

	f->opens = NULL;
	if (!rc)
		rc = user_ask_bound(&f->ask, f->packed, f->length, &a->credential, base->set->name,
				    &err);
	if (!rc)
		rc = forwarded_fresh(f, &err);
	if (!rc)
		rc = forwarded_first_time(f, &err);
	if (rc) {
		forwarded_distrust(f, err.text);
		return;
	}
	f->uid = a->credential.uid;
	if (f->uid == 0 && !base->set->allow_root && !f->kind->owner)
		forwarded_refuse(f, "other nodes' root may ask nothing there (allow_root)");
	else if (forwarded_place(f, &err))
		forwarded_refuse(f, err.text);
	else
		forwarded_serve(f, gid);
}

/* --- asked ------------------------------------------------------------------------- */

/* KIND: what is asked, as far as that is understood. */
static int forwarded_check(const struct front *front, const struct peer_request *r,
			   const struct forwarded_kind **kind, struct iocom_err *err)
{
	struct user_ask ask;
	size_t most;
	int rc = user_ask_unpack(&ask, r->user.ask, r->user.length, err);

	if (rc)
		return rc;
	*kind = forwarded_kind(&ask);
	if (strcmp(ask.node, front->base->set->name) != 0)
		return iocom_err_set(err, -EACCES, "the request is for node %s", ask.node);
	if (!front->peers->seal || !front->clients)
		return iocom_err_set(err, -EHOSTDOWN, "this agent serves its own machine only");
	most = (*kind)->owner ? OWNER_QUESTIONS_MAX : FORWARDED_MAX;
	if (forwarded_count(front, (*kind)->owner) >= most)
		return iocom_err_set(err, -EAGAIN,
				     "it has %zu requests%s from other nodes to answer", most,
				     (*kind)->owner ? " to its owner" : "");
	return 0;
}

static struct forwarded *forwarded_new(struct front *front, const struct peer_request *r,
				       const struct forwarded_kind *kind, uint64_t ticket)
{
	struct forwarded *f = calloc(1, sizeof(*f) + r->user.length);

	if (!f)
		return NULL;
	f->front = front;
	f->kind = kind;
	f->ticket = ticket;
	f->uid = (uid_t)-1;
	memcpy(f->from, r->from, sizeof(f->from));
	memcpy(f->packed, r->user.ask, r->user.length);
	f->length = r->user.length;
	(void)user_ask_unpack(&f->ask, f->packed, f->length, NULL); /* it was checked */
	f->overdue = (struct loop_timer){.fire = forwarded_overdue, .arg = f};
	f->next = front->forwarded;
	front->forwarded = f;
	return f;
}

int front_on_user(void *arg, const struct peer_request *request, uint64_t ticket,
		  struct peer_answer *answer)
{
	struct front *front = arg;
	struct iocom_err err = {0};
	const struct forwarded_kind *kind = NULL;
	struct forwarded *f = NULL;
	int rc = forwarded_check(front, request, &kind, &err);

	if (!rc) {
		f = forwarded_new(front, request, kind, ticket);
		rc = f ? 0 : iocom_err_set(&err, -ENOMEM, "out of memory");
	}
	if (!rc)
		rc = seal_open_credential(front->peers->seal, SEAL_USERS, request->user.credential,
					  forwarded_opened, f, &f->opens, &err);
	if (!rc) {
		loop_start(front->base->loop, &f->overdue, OVERDUE_NS);
		return PEERS_LATER;
	}
	if (f)
		forwarded_free(f);
	front->base->counters->forwarded_refused++;
	log_provoked(front->base->log, LOG_L_WARNING,
		     "refused a request of a user at node %s (%s): %s", request->from,
		     kind ? kind->op : "unknown", err.text);
	peer_answer_refuse(answer, "%.*s", PEER_TEXT_MAX - 1, err.text);
	return 0;
}
