/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "gather": what a client asks other nodes' agents, and "reach", which tells which nodes it
 * may ask.
 *
 *   client -- { asks: [ { node, ask, cred } ], wait_ms } --> here -- PEER_USER --> forwarded.c
 * there
 *          <-- { answers: [ { node, answer } or { node, error, silent } ] } --
 *
 * The client has packed and sealed each question for its node (user/user_ask.h): this agent only
 * passes it on.  No node is waited for longer than WAIT_MS.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/loop_share.h"
#include "agent/base/places.h"
#include "agent/front/front.h"
#include "user/clock.h"
#include "user/pack.h"
#include "user/user_ask.h"

#define GATHER_WAIT_MS	     1000
#define GATHER_WAIT_LEAST_MS 50
#define GATHER_WAIT_MOST_MS  2500 /* longer than control waits: its reason is told then */

/* One node of a gather. */
struct gather_call {
	struct gather *gather;
	bool done;
	char node[IOCOM_NAME_MAX];
};

struct gather {
	struct gather *next;
	struct front *front;
	struct client *client; /* NULL: it has left */
	uid_t uid;
	unsigned wait_ms;
	json_t *answers;
	struct loop_timer overdue;
	size_t ncalls, left;
	bool asking; /* not all nodes have been asked */
	struct gather_call calls[GATHER_NODES_MAX];
};

size_t gathers_count(const struct front *front)
{
	size_t n = 0;

	for (const struct gather *g = front->gathers; g; g = g->next)
		n++;
	return n;
}

static void gather_free(struct gather *g)
{
	for (struct gather **q = &g->front->gathers; *q; q = &(*q)->next)
		if (*q == g) {
			*q = g->next;
			break;
		}
	for (size_t i = 0; i < g->ncalls; i++)
		if (!g->calls[i].done)
			peers_forget(g->front->peers, &g->calls[i]);
	loop_cancel(g->front->base->loop, &g->overdue);
	json_decref(g->answers);
	free(g);
}

void gather_forget(struct front *front, const struct client *client)
{
	for (struct gather *g = front->gathers; g; g = g->next)
		if (g->client == client)
			g->client = NULL;
}

void gathers_stop(struct front *front)
{
	while (front->gathers)
		gather_free(front->gathers);
}

/* Ends G: its client gets what has been said. */
static void gather_end(struct gather *g)
{
	const struct front *front = g->front;
	uid_t before = loop_share_enter(front->base->shares, g->uid);
	struct client *client = g->client;
	json_t *answers = g->answers;

	g->answers = NULL;
	gather_free(g);
	if (client)
		client_json(client, json_pack("{s:s,s:o}", "node", front->base->set->name,
					      "answers", answers));
	else
		json_decref(answers);
	loop_share_leave(front->base->shares, before);
}

/* Takes ANSWER of CALL's node, or WHY there is none; SILENT: the node said nothing. */
static void gather_took(struct gather_call *call, json_t *answer, const char *why, bool silent)
{
	struct gather *g = call->gather;
	json_t *row = answer ? json_pack("{s:s,s:o}", "node", call->node, "answer", answer)
			     : json_pack("{s:s,s:o,s:b}", "node", call->node, "error",
					 json_string(why), "silent", silent);

	call->done = true;
	json_array_append_new(g->answers, row);
	g->left--;
	if (!g->left && !g->asking)
		gather_end(g);
}

static void gather_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct gather_call *call = arg;
	json_t *document;

	if (rc) {
		gather_took(call, NULL, why, true);
	} else if (!answer->ok) {
		gather_took(call, NULL, answer->text, false);
	} else {
		/* Another node's root wrote it: the library checks all of it. */
		document = json_loadb(answer->user.json, answer->user.length, 0, NULL);
		if (document)
			gather_took(call, document, NULL, false);
		else
			gather_took(call, NULL, "its answer is not valid JSON", false);
	}
}

static void gather_overdue(void *arg)
{
	struct gather *g = arg;
	char text[64];

	snprintf(text, sizeof(text), "did not answer in %.3g s", g->wait_ms / 1e3);
	g->asking = true; /* G stays until all have been told of */
	for (size_t i = 0; i < g->ncalls; i++) {
		if (g->calls[i].done)
			continue;
		g->front->base->counters->forwards_unanswered++;
		peers_forget(g->front->peers, &g->calls[i]);
		gather_took(&g->calls[i], NULL, text, true);
	}
	gather_end(g);
}

/* --- the request ------------------------------------------------------------------ */

static int gather_room(const struct front *front, uid_t uid, struct iocom_err *err)
{
	static const struct places places = {
		.what = "requests to other nodes under way",
		.limit = "forwards",
		.one = "forwards",
		.max = GATHERS_MAX,
		.of_root = GATHERS_OF_ROOT,
		.of_one = GATHERS_OF_ONE,
	};
	size_t own = 0;
	int rc;

	for (const struct gather *g = front->gathers; g; g = g->next)
		own += g->uid == uid;
	rc = places_ask(&places, uid, gathers_count(front), own, front->base->counters, err);
	front->base->counters->forwards_refused += rc != 0;
	return rc;
}

static struct gather *gather_new(struct front *front, struct client *c, unsigned wait_ms)
{
	struct gather *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->front = front;
	g->client = c;
	g->uid = client_who(c)->uid;
	g->wait_ms = wait_ms;
	g->asking = true;
	g->answers = json_array();
	g->overdue = (struct loop_timer){.fire = gather_overdue, .arg = g};
	g->next = front->gathers;
	front->gathers = g;
	if (g->answers)
		return g;
	gather_free(g);
	return NULL;
}

/* Asks the node of CALL what WHAT has. */
static void gather_ask(struct gather_call *call, const struct peer_request *what)
{
	struct peers *peers = call->gather->front->peers;
	const struct matrix_entry *e = matrix_find(&peers->matrix, call->node);
	struct iocom_err err = {0};

	if (!e)
		gather_took(call, NULL, "no node of that name is known here", false);
	else if (!e->alive)
		gather_took(call, NULL, "is silent", true);
	else if (peers_ask(peers, call->node, e->vector.address, e->vector.port, what,
			   gather_answered, call, &err))
		gather_took(call, NULL, err.text, true);
}

/* Reads one { node, ask, cred }.  CREDENTIAL has USER_ASK_CREDENTIAL_MAX + 1 bytes. */
static int gather_read(const msgpack_object *map, char node[IOCOM_NAME_MAX], char *credential,
		       struct peer_request *what)
{
	const msgpack_object *ask = unpack_get(map, "ask");

	*what = (struct peer_request){.type = PEER_USER};
	if (unpack_str(map, "node", node, IOCOM_NAME_MAX) || !node[0] ||
	    unpack_str(map, "cred", credential, USER_ASK_CREDENTIAL_MAX + 1) || !credential[0] ||
	    !ask || ask->type != MSGPACK_OBJECT_BIN || !ask->via.bin.size ||
	    ask->via.bin.size > USER_ASK_MAX)
		return -EBADMSG;
	what->user.credential = credential;
	what->user.ask = ask->via.bin.ptr;
	what->user.length = ask->via.bin.size;
	return 0;
}

/* Adds a call for what MAP has, and asks; returns -EBADMSG, and nothing is asked. */
static int gather_add(struct gather *g, const msgpack_object *map)
{
	static char credential[USER_ASK_CREDENTIAL_MAX + 1]; /* one loop, one thread */
	struct gather_call *call = &g->calls[g->ncalls];
	struct peer_request what;

	if (g->ncalls == GATHER_NODES_MAX || gather_read(map, call->node, credential, &what))
		return -EBADMSG;
	call->gather = g;
	g->ncalls++;
	g->left++;
	gather_ask(call, &what);
	return 0;
}

static void gather_begin(struct front *front, struct client *c, const msgpack_object *maps,
			 size_t n, unsigned wait_ms)
{
	struct iocom_err err = {0};
	struct gather *g;
	int rc = gather_room(front, client_who(c)->uid, &err);

	if (rc) {
		client_error(c, "%s", err.text);
		return;
	}
	g = gather_new(front, c, wait_ms);
	if (!g) {
		client_error(c, "out of memory");
		return;
	}
	for (size_t i = 0; i < n && !rc; i++)
		rc = gather_add(g, &maps[i]);
	g->asking = false;
	if (rc) {
		gather_free(g);
		client_error(c, "the request does not say which nodes (%d at most) it asks what",
			     GATHER_NODES_MAX);
	} else if (!g->left) {
		gather_end(g);
	} else {
		loop_start(front->base->loop, &g->overdue, wait_ms * CLOCK_NS_PER_MS);
	}
}

void gather_request(struct front *front, struct client *c, const msgpack_object *request)
{
	const msgpack_object *asks = unpack_get(request, "asks");
	uint64_t wait_ms = GATHER_WAIT_MS;

	unpack_u64(request, "wait_ms", &wait_ms);
	if (!asks || asks->type != MSGPACK_OBJECT_ARRAY || asks->via.array.size > GATHER_NODES_MAX)
		client_error(c, "the request names no \"asks\", or more than %d", GATHER_NODES_MAX);
	else if (wait_ms < GATHER_WAIT_LEAST_MS || wait_ms > GATHER_WAIT_MOST_MS)
		client_error(c, "wait_ms must be from %d to %d", GATHER_WAIT_LEAST_MS,
			     GATHER_WAIT_MOST_MS);
	else
		gather_begin(front, c, asks->via.array.ptr, asks->via.array.size,
			     (unsigned)wait_ms);
}

void reach_request(struct front *front, struct client *c, const msgpack_object *request)
{
	json_t *nodes = json_array();

	(void)request;
	for (size_t i = 0; i < front->peers->matrix.count; i++) {
		const struct matrix_entry *e = matrix_at(&front->peers->matrix, i);

		json_array_append_new(
			nodes, json_pack("{s:s,s:b}", "name", e->vector.name, "alive", e->alive));
	}
	client_json(c, json_pack("{s:i,s:s,s:s,s:o}", "version", 1, "node", front->base->set->name,
				 "munge_socket", front->base->set->munge_socket, "nodes", nodes));
}
