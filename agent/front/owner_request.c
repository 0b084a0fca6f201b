/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "owner": shows or changes the owner's rules of this node or of another one, which gets
 * the user's credential and judges by that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/loop_share.h"
#include "agent/front/front.h"
#include "agent/owner/owner_part.h"
#include "user/pack.h"

struct owner_asked {
	struct owner_asked *next;
	struct front *front;
	struct client *client; /* NULL: it has left */
	uid_t uid;
	char node[IOCOM_NAME_MAX];
};

static void owner_asked_free(struct owner_asked *o)
{
	for (struct owner_asked **q = &o->front->owners; *q; q = &(*q)->next)
		if (*q == o) {
			*q = o->next;
			break;
		}
	free(o);
}

void owner_forget(struct front *front, const struct client *client)
{
	for (struct owner_asked *o = front->owners; o; o = o->next)
		if (o->client == client)
			o->client = NULL;
}

/* The client needs munged's socket for a credential. */
static json_t *owner_with_socket(const struct front *front, json_t *shown)
{
	if (shown)
		json_object_set_new(shown, "munge_socket",
				    json_string(front->base->set->munge_socket));
	return shown;
}

static void owner_here(struct front *front, struct client *c, const struct owner_ask *ask)
{
	struct iocom_err err = {0};
	json_t *shown = NULL;

	if (owner_part_obey(front->owner, ask, client_who(c)->uid, "", &shown, &err))
		client_error(c, "%s", err.text);
	else
		client_json(c, owner_with_socket(front, shown));
}

static void owner_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct owner_asked *o = arg;
	uid_t before = loop_share_enter(o->front->base->shares, o->uid);

	if (!o->client)
		;
	else if (rc)
		client_error(o->client, "node %s, which was asked for its owner's rules: %.300s",
			     o->node, why);
	else if (!answer->ok)
		client_error(o->client, "node %s refuses: %.300s", o->node, answer->text);
	else
		client_json(o->client,
			    owner_with_socket(o->front, json_loads(answer->json, 0, NULL)));
	loop_share_leave(o->front->base->shares, before);
	owner_asked_free(o);
}

static void owner_there(struct front *front, struct client *c, const char *node,
			const struct peer_owner *asked)
{
	const struct matrix_entry *e = matrix_find(&front->peers->matrix, node);
	const struct peer_request request = {.type = PEER_OWNER, .owner = asked};
	struct owner_asked *o;
	struct iocom_err err = {0};
	int rc;

	if (!e || !e->alive) {
		client_error(c,
			     e ? "node %s is silent"
			       : "no node %s is known; `iocom nodes` "
				 "lists them",
			     node);
		return;
	}
	o = calloc(1, sizeof(*o));
	if (!o) {
		client_error(c, "out of memory");
		return;
	}
	*o = (struct owner_asked){
		.next = front->owners, .front = front, .client = c, .uid = client_who(c)->uid};
	snprintf(o->node, sizeof(o->node), "%s", node);
	front->owners = o;
	rc = peers_ask(front->peers, node, e->vector.address, e->vector.port, &request,
		       owner_answered, o, &err);
	if (rc) {
		client_error(c, "%s", err.text);
		owner_asked_free(o);
	}
}

void owner_request(struct front *front, struct client *c, const msgpack_object *request)
{
	const msgpack_object *packed = unpack_get(request, "packed");
	struct peer_owner asked = {0};
	struct owner_ask ask;

	if (!front->owner || !packed || packed->type != MSGPACK_OBJECT_BIN ||
	    packed->via.bin.size > sizeof(asked.packed) ||
	    owner_ask_unpack(&ask, packed->via.bin.ptr, packed->via.bin.size)) {
		client_error(c, "the request says nothing to an owner that this agent understands");
		return;
	}
	if (!*ask.node || !strcmp(ask.node, front->base->set->name)) {
		owner_here(front, c, &ask);
		return;
	}
	asked.length = packed->via.bin.size;
	memcpy(asked.packed, packed->via.bin.ptr, asked.length);
	(void)unpack_str(request, "cred", asked.credential, sizeof(asked.credential));
	owner_there(front, c, ask.node, &asked);
}
