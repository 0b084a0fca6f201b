/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See peer_message.h. */
#include "agent/cluster/peer_message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/peer_move.h"
#include "user/pack.h"
#include "user/user_ask.h"

#define PORT_LAST   65533 /* two more ports lie above the base port */
#define SIGNAL_LAST 64

static const char *const peer_type_names[PEER_TYPES] = {
	[PEER_ADMIT] = "admit",	      [PEER_STARTED] = "started", [PEER_DONE] = "done",
	[PEER_KILL] = "kill",	      [PEER_RENEW] = "renew",	  [PEER_HELLO] = "hello",
	[PEER_PROGRESS] = "progress", [PEER_KEY] = "key",	  [PEER_ATTACH] = "attach",
	[PEER_USER] = "user",	      [PEER_RELEASE] = "release", [PEER_MOVABLE] = "movable",
	[PEER_MOVE] = "move",	      [PEER_HELD] = "held",	  [PEER_AWAY] = "away",
};

const char *peer_type_name(enum peer_type type)
{
	return peer_type_names[type];
}

int peer_type_parse(const char *name, enum peer_type *type)
{
	for (int i = 0; i < PEER_TYPES; i++)
		if (!strcmp(peer_type_names[i], name)) {
			*type = (enum peer_type)i;
			return 0;
		}
	return -ENOSYS;
}

/* --- questions -------------------------------------------------------------- */

static void pack_reports(const struct peer_request *r, msgpack_sbuffer *out)
{
	msgpack_sbuffer_init(out);
	job_report_pack_first(&r->done.reports[0], r->done.count - 1, out);
	for (size_t i = 1; i < r->done.count; i++)
		job_report_pack(&r->done.reports[i], out);
}

void peer_request_pack(const struct peer_request *r, msgpack_sbuffer *out)
{
	msgpack_packer pk;

	switch (r->type) {
	case PEER_ADMIT:
		msgpack_sbuffer_init(out);
		job_order_pack(r->order, out);
		break;
	case PEER_STARTED:
		pack_begin(&pk, out, 2);
		pack_u64(&pk, "start_ns", r->started.start_ns);
		pack_u64(&pk, "pid", (uint64_t)r->started.pid);
		break;
	case PEER_DONE:
	case PEER_PROGRESS:
		pack_reports(r, out);
		break;
	case PEER_KILL:
		pack_begin(&pk, out, 2);
		pack_u64(&pk, "uid", r->kill.uid);
		pack_u64(&pk, "signal", (uint64_t)r->kill.signal);
		break;
	case PEER_RENEW:
		pack_begin(&pk, out, 1);
		pack_u64(&pk, "lease_ms", r->renew.lease_ms);
		break;
	case PEER_ATTACH:
		pack_begin(&pk, out, 2);
		pack_u64(&pk, "uid", r->attach.uid);
		pack_u64(&pk, "hops", r->attach.hops);
		break;
	case PEER_KEY:
		pack_begin(&pk, out, 0);
		break;
	case PEER_RELEASE:
		pack_begin(&pk, out, 1);
		pack_str(&pk, "nonce", r->release.nonce);
		break;
	case PEER_MOVABLE:
		pack_begin(&pk, out, 0);
		break;
	case PEER_MOVE:
		peer_move_pack(&r->move, &pk, out);
		break;
	case PEER_HELD:
		peer_held_pack(&r->held, &pk, out);
		break;
	case PEER_AWAY:
		peer_away_pack(&r->away, &pk, out);
		break;
	case PEER_USER:
		pack_begin(&pk, out, 2);
		pack_str(&pk, "cred", r->user.credential);
		pack_bin(&pk, "ask", r->user.ask, r->user.length);
		break;
	default:
		pack_begin(&pk, out, 2);
		pack_str(&pk, "address", r->hello.address);
		pack_u64(&pk, "port", r->hello.port);
		break;
	}
}

static int unpack_order(struct peer_request *r, const msgpack_object *body)
{
	struct job_order *order = malloc(sizeof(*order));

	if (!order)
		return -ENOMEM;
	if (job_order_unpack(order, body) || strcmp(order->job, r->job) ||
	    strcmp(order->home, r->from)) {
		free(order);
		return -EBADMSG;
	}
	r->order = order;
	return 0;
}

/* Returns whether all are of jobs that run, or, in any other message, that have ended. */
static bool reports_fit(const struct job_report *reports, size_t n, enum peer_type type)
{
	for (size_t i = 0; i < n; i++)
		if (job_report_running(&reports[i]) != (type == PEER_PROGRESS))
			return false;
	return true;
}

static int unpack_reports(struct peer_request *r, const msgpack_object *body)
{
	const msgpack_object_array *others;
	struct job_report *reports;
	size_t n;

	if (job_report_others(body, &others))
		return -EBADMSG;
	n = others ? others->size : 0;
	reports = calloc(n + 1, sizeof(*reports));
	if (!reports)
		return -ENOMEM;
	if (job_report_unpack(&reports[0], body) || strcmp(reports[0].job, r->job)) {
		free(reports);
		return -EBADMSG;
	}
	for (size_t i = 0; i < n; i++) /* job_report_others has checked each */
		(void)job_report_unpack(&reports[i + 1], &others->ptr[i]);
	if (!reports_fit(reports, n + 1, r->type)) {
		free(reports);
		return -EBADMSG;
	}
	r->done.reports = reports;
	r->done.count = n + 1;
	return 0;
}

static int unpack_started(struct peer_request *r, const msgpack_object *body)
{
	uint64_t pid;

	if (unpack_u64(body, "start_ns", &r->started.start_ns) || unpack_u64(body, "pid", &pid))
		return -EBADMSG;
	r->started.pid = (pid_t)pid;
	return 0;
}

static int unpack_kill(struct peer_request *r, const msgpack_object *body)
{
	uint64_t uid, signal;

	if (unpack_u64(body, "uid", &uid) || unpack_u64(body, "signal", &signal) ||
	    signal > SIGNAL_LAST)
		return -EBADMSG;
	r->kill.uid = (uid_t)uid;
	r->kill.signal = (int)signal;
	return 0;
}

static int unpack_attach(struct peer_request *r, const msgpack_object *body)
{
	uint64_t uid, hops;

	if (unpack_u64(body, "uid", &uid) || uid >= UINT32_MAX || unpack_u64(body, "hops", &hops) ||
	    hops > 1)
		return -EBADMSG;
	r->attach.uid = (uid_t)uid;
	r->attach.hops = (unsigned)hops;
	return 0;
}

/* The two are copied into one piece, which begins with the credential. */
static int unpack_user(struct peer_request *r, const msgpack_object *body)
{
	const msgpack_object *cred = unpack_get(body, "cred"), *ask = unpack_get(body, "ask");
	size_t n;
	char *kept;

	if (!cred || cred->type != MSGPACK_OBJECT_STR || !cred->via.str.size ||
	    cred->via.str.size > USER_ASK_CREDENTIAL_MAX ||
	    memchr(cred->via.str.ptr, 0, cred->via.str.size) || !ask ||
	    ask->type != MSGPACK_OBJECT_BIN || !ask->via.bin.size ||
	    ask->via.bin.size > USER_ASK_MAX)
		return -EBADMSG;
	n = cred->via.str.size;
	kept = malloc(n + 1 + ask->via.bin.size);
	if (!kept)
		return -ENOMEM;
	memcpy(kept, cred->via.str.ptr, n);
	kept[n] = 0;
	memcpy(kept + n + 1, ask->via.bin.ptr, ask->via.bin.size);
	r->user.credential = kept;
	r->user.ask = kept + n + 1;
	r->user.length = ask->via.bin.size;
	return 0;
}

static int unpack_hello(struct peer_request *r, const msgpack_object *body)
{
	uint64_t port;

	if (unpack_str(body, "address", r->hello.address, sizeof(r->hello.address)) ||
	    !r->hello.address[0] || unpack_u64(body, "port", &port) || port < 1 || port > PORT_LAST)
		return -EBADMSG;
	r->hello.port = (uint16_t)port;
	return 0;
}

int peer_request_unpack(struct peer_request *r, enum peer_type type, const char *from,
			const char *job, const msgpack_object *body)
{
	*r = (struct peer_request){.type = type};
	snprintf(r->from, sizeof(r->from), "%s", from);
	snprintf(r->job, sizeof(r->job), "%s", job);
	switch (type) {
	case PEER_ADMIT:
		return unpack_order(r, body);
	case PEER_STARTED:
		return unpack_started(r, body);
	case PEER_DONE:
	case PEER_PROGRESS:
		return unpack_reports(r, body);
	case PEER_KILL:
		return unpack_kill(r, body);
	case PEER_RENEW: /* home knows the lease's length itself */
	case PEER_KEY:
	case PEER_MOVABLE:
		return 0;
	case PEER_MOVE:
		return peer_move_unpack(&r->move, body);
	case PEER_HELD:
		return peer_held_unpack(&r->held, body);
	case PEER_AWAY:
		return peer_away_unpack(&r->away, body);
	case PEER_ATTACH:
		return unpack_attach(r, body);
	case PEER_RELEASE:
		return unpack_str(body, "nonce", r->release.nonce, sizeof(r->release.nonce))
			       ? -EBADMSG
			       : 0;
	case PEER_USER:
		return unpack_user(r, body);
	default:
		return unpack_hello(r, body);
	}
}

void peer_request_free(struct peer_request *r)
{
	if (r->type == PEER_ADMIT)
		free((void *)r->order);
	else if (r->type == PEER_DONE || r->type == PEER_PROGRESS)
		free((void *)r->done.reports);
	else if (r->type == PEER_USER)
		free((void *)r->user.credential);
	*r = (struct peer_request){.type = PEER_HELLO};
}

/* --- answers ---------------------------------------------------------------- */

static void pack_grant(const struct peer_grant *g, msgpack_packer *pk)
{
	msgpack_pack_map(pk, 7);
	pack_bool(pk, "grant", g->granted);
	pack_u64(pk, "lease_ms", g->lease_ms);
	pack_str(pk, "nonce", g->nonce);
	pack_u64(pk, "boot_id", g->boot_id);
	pack_u64(pk, "sequence", g->sequence);
	pack_str(pk, "reason", g->reason);
	pack_str(pk, "text", g->text);
}

static void pack_ticket(const struct peer_answer *answer, msgpack_packer *pk)
{
	const struct peer_attach *a = &answer->attach;

	msgpack_pack_map(pk, answer->ok ? 9 : 2);
	pack_bool(pk, "ok", answer->ok);
	pack_str(pk, "text", answer->text);
	if (!answer->ok)
		return;
	pack_str(pk, "job", a->job);
	pack_u64(pk, "later", a->later);
	pack_str(pk, "node", a->node);
	pack_str(pk, "address", a->address);
	pack_u64(pk, "port", a->port);
	pack_str(pk, "ticket", a->ticket);
	pack_bin(pk, "key", a->key, sizeof(a->key));
}

static void pack_bulletin_key(const struct bulletin_key *key, msgpack_packer *pk)
{
	pack_u64(pk, "epoch", key->epoch);
	pack_bin(pk, "key", key->key, sizeof(key->key));
	pack_u64(pk, "next", key->next);
}

static int unpack_bulletin_key(struct bulletin_key *key, const msgpack_object *body)
{
	const msgpack_object *bytes = unpack_get(body, "key");

	if (unpack_u64(body, "epoch", &key->epoch) || !key->epoch ||
	    unpack_u64(body, "next", &key->next) || !bytes || bytes->type != MSGPACK_OBJECT_BIN ||
	    bytes->via.bin.size != sizeof(key->key))
		return -EBADMSG;
	memcpy(key->key, bytes->via.bin.ptr, sizeof(key->key));
	return 0;
}

static const char *const peer_decision_names[PEER_DECISIONS] = {
	[PEER_WAIT] = "wait", [PEER_STAY] = "stay",   [PEER_LEAVE] = "leave",
	[PEER_GO] = "go",     [PEER_ABORT] = "abort",
};

/* Returns 0 or -EBADMSG. */
static int unpack_decision(enum peer_decision *decision, const msgpack_object *body)
{
	char name[16];

	if (unpack_str(body, "decision", name, sizeof(name)))
		return -EBADMSG;
	for (int i = 0; i < PEER_DECISIONS; i++)
		if (!strcmp(name, peer_decision_names[i])) {
			*decision = (enum peer_decision)i;
			return 0;
		}
	return -EBADMSG;
}

void peer_answer_pack(enum peer_type type, const struct peer_answer *answer, msgpack_sbuffer *out)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	if (type == PEER_ADMIT) {
		pack_grant(&answer->grant, &pk);
		return;
	}
	if (type == PEER_ATTACH) {
		pack_ticket(answer, &pk);
		return;
	}
	msgpack_pack_map(&pk,
			 type == PEER_KEY ? 5
			 : type == PEER_DONE || type == PEER_HELD ||
					 (answer->ok && (type == PEER_USER || type == PEER_MOVABLE))
				 ? 3
				 : 2);
	pack_bool(&pk, "ok", answer->ok);
	pack_str(&pk, "text", answer->text);
	if (type == PEER_KEY)
		pack_bulletin_key(&answer->key, &pk);
	if (type == PEER_DONE)
		pack_u64(&pk, "taken", answer->taken);
	if (type == PEER_HELD)
		pack_str(&pk, "decision", peer_decision_names[answer->decision]);
	if (type == PEER_MOVABLE && answer->ok)
		pack_bin(&pk, "order", answer->order.packed, answer->order.length);
	if (type == PEER_USER && answer->ok)
		pack_bin(&pk, "json", answer->user.json, answer->user.length);
}

/* An agent without leases sends no lease_ms: 0 then. */
static int unpack_grant(struct peer_grant *g, const msgpack_object *body)
{
	uint64_t lease_ms = 0;

	if (unpack_bool(body, "grant", &g->granted))
		return -EBADMSG;
	(void)unpack_u64(body, "lease_ms", &lease_ms);
	g->lease_ms = lease_ms > UINT32_MAX ? 0 : (uint32_t)lease_ms;
	if (unpack_str(body, "reason", g->reason, sizeof(g->reason)))
		strcpy(g->reason, "refused");
	if (unpack_str(body, "text", g->text, sizeof(g->text)))
		g->text[0] = 0;
	if (g->granted && (unpack_str(body, "nonce", g->nonce, sizeof(g->nonce)) ||
			   unpack_u64(body, "boot_id", &g->boot_id) ||
			   unpack_u64(body, "sequence", &g->sequence)))
		return -EBADMSG;
	return 0;
}

/* Returns 0 or -EBADMSG. */
static int unpack_ticket(struct peer_attach *a, const msgpack_object *body)
{
	const msgpack_object *key = unpack_get(body, "key");
	uint64_t port, later;

	if (unpack_str(body, "job", a->job, sizeof(a->job)) || !spec_job_valid(a->job) ||
	    unpack_u64(body, "later", &later) || later > INT16_MAX ||
	    unpack_str(body, "node", a->node, sizeof(a->node)) || !a->node[0] ||
	    unpack_str(body, "address", a->address, sizeof(a->address)) ||
	    unpack_u64(body, "port", &port) || port < 1 || port > UINT16_MAX ||
	    unpack_str(body, "ticket", a->ticket, sizeof(a->ticket)) ||
	    strlen(a->ticket) != SECRET_TICKET_MAX - 1 || !key || key->type != MSGPACK_OBJECT_BIN ||
	    key->via.bin.size != sizeof(a->key))
		return -EBADMSG;
	a->later = (unsigned)later;
	a->port = (uint16_t)port;
	memcpy(a->key, key->via.bin.ptr, sizeof(a->key));
	return 0;
}

/* Borrows the bytes NAME from BODY, 1 to MAX.  Returns 0 or -EBADMSG. */
static int unpack_borrowed(const msgpack_object *body, const char *name, size_t max,
			   const char **bytes, size_t *length)
{
	const msgpack_object *bin = unpack_get(body, name);

	if (!bin || bin->type != MSGPACK_OBJECT_BIN || !bin->via.bin.size ||
	    bin->via.bin.size > max)
		return -EBADMSG;
	*bytes = bin->via.bin.ptr;
	*length = bin->via.bin.size;
	return 0;
}

int peer_answer_unpack(struct peer_answer *answer, enum peer_type type, const msgpack_object *body)
{
	uint64_t taken;

	*answer = (struct peer_answer){0};
	if (type == PEER_ADMIT)
		return unpack_grant(&answer->grant, body);
	if (unpack_bool(body, "ok", &answer->ok))
		return -EBADMSG;
	if (unpack_str(body, "text", answer->text, sizeof(answer->text)))
		answer->text[0] = 0;
	if (type == PEER_ATTACH)
		return answer->ok ? unpack_ticket(&answer->attach, body) : 0;
	if (type == PEER_USER)
		return answer->ok ? unpack_borrowed(body, "json", PEER_DOCUMENT_MAX,
						    &answer->user.json, &answer->user.length)
				  : 0;
	if (type == PEER_MOVABLE)
		return answer->ok ? unpack_borrowed(body, "order", PEER_ORDER_MAX,
						    &answer->order.packed, &answer->order.length)
				  : 0;
	if (type == PEER_HELD && unpack_decision(&answer->decision, body))
		return -EBADMSG;
	if (type == PEER_KEY && answer->ok && unpack_bulletin_key(&answer->key, body))
		return -EBADMSG;
	/* An older home takes only the first report and sends no count. */
	answer->taken = unpack_u64(body, "taken", &taken) || taken < 1 ? 1 : (size_t)taken;
	return 0;
}

void peer_answer_refuse(struct peer_answer *answer, const char *fmt, ...)
{
	va_list ap;

	answer->ok = false;
	va_start(ap, fmt);
	vsnprintf(answer->text, sizeof(answer->text), fmt, ap);
	va_end(ap);
}
