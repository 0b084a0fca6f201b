/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "attach": where a job is, so that its client can connect there.  For another node the
 * client needs a ticket of that node and its key:
 *
 *   the job was submitted here   the node where it is gives the ticket
 *   it was submitted elsewhere   its home knows where it is, and asks there
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/loop_share.h"
#include "agent/front/front.h"
#include "user/pack.h"

struct attach {
	struct attach *next;
	struct front *front;
	struct client *client; /* NULL: it has left */
	uid_t uid;
	char job[SPEC_JOB_MAX];
	unsigned later; /* attempts after the one that the user named */
	char node[IOCOM_NAME_MAX];
	bool found;
	bool gang; /* it is one: its parts are where */
	uid_t owner;
};

static void attach_free(struct attach *a)
{
	for (struct attach **q = &a->front->attaches; *q; q = &(*q)->next)
		if (*q == a) {
			*q = a->next;
			break;
		}
	free(a);
}

void attach_forget(struct front *front, const struct client *client)
{
	for (struct attach *a = front->attaches; a; a = a->next)
		if (a->client == client)
			a->client = NULL;
}

/* Ends A: takes ANSWER, or tells WHY there is none. */
static void attach_tell(struct attach *a, json_t *answer, const char *why)
{
	const struct front *front = a->front;
	uid_t before = loop_share_enter(front->base->shares, a->uid);

	if (!a->client)
		json_decref(answer);
	else if (answer)
		client_json(a->client, answer);
	else
		client_error(a->client, "%s", why);
	attach_free(a);
	loop_share_leave(front->base->shares, before);
}

/* The job is at this node: the client's connection to this agent becomes the stream. */
static json_t *attach_here(const struct attach *a)
{
	return json_pack("{s:s,s:i,s:s,s:s,s:i,s:s}", "job", a->job, "later", (int)a->later, "node",
			 a->node, "address", "", "port", 0, "munge_socket",
			 a->front->base->set->munge_socket);
}

static json_t *attach_there(const struct attach *a, const struct peer_attach *t)
{
	const struct matrix_entry *e = matrix_find(&a->front->peers->matrix, t->node);
	char key[2 * SECRET_KEY + 1];
	json_t *answer;

	secret_text(key, t->key);
	answer = json_pack("{s:s,s:i,s:s,s:s,s:i,s:s,s:s,s:s}", "job", t->job, "later",
			   (int)(a->later + t->later), "node", t->node, "address",
			   e && e->alive ? e->vector.address : t->address, "port",
			   e && e->alive ? e->vector.port + 2 : t->port, "munge_socket",
			   a->front->base->set->munge_socket, "ticket", t->ticket, "key", key);
	explicit_bzero(key, sizeof(key));
	return answer;
}

static void attach_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct attach *a = arg;
	char text[512];

	if (!rc && !answer->ok) {
		attach_tell(a, NULL, answer->text);
	} else if (!rc) {
		attach_tell(a, attach_there(a, &answer->attach), "out of memory");
	} else {
		snprintf(text, sizeof(text), "node %s, which was asked about job %s: %.300s",
			 a->node, a->job, why);
		attach_tell(a, NULL, text);
	}
}

/* Asks A's node; HOPS as in struct peer_request. */
static void attach_ask(struct attach *a, unsigned hops)
{
	struct peer_request request = {.type = PEER_ATTACH,
				       .attach = {.uid = a->uid, .hops = hops}};
	struct peers *peers = a->front->peers;
	const struct matrix_entry *e = matrix_find(&peers->matrix, a->node);
	struct iocom_err err = {0};
	int rc;

	memcpy(request.job, a->job, sizeof(request.job));
	if (!e || !e->alive)
		rc = iocom_err_set(&err, -EHOSTUNREACH, "node %s, where job %s was %s, is silent",
				   a->node, a->job, hops ? "placed" : "submitted");
	else
		rc = peers_ask(peers, a->node, e->vector.address, e->vector.port, &request,
			       attach_answered, a, &err);
	if (rc)
		attach_tell(a, NULL, err.text);
}

/* A job's name is HOME-BOOT-SEQUENCE, and only HOME may have a '-'.  Fills A's node with HOME. */
static bool attach_home(struct attach *a)
{
	char home[SPEC_JOB_MAX];
	const struct matrix_entry *e;

	snprintf(home, sizeof(home), "%s", a->job);
	for (int i = 0; i < 2; i++) {
		char *cut = strrchr(home, '-');

		if (!cut || cut == home)
			return false;
		*cut = 0;
	}
	e = matrix_find(&a->front->peers->matrix, home);
	if (!e || !strcmp(home, a->front->base->set->name))
		return false;
	snprintf(a->node, sizeof(a->node), "%s", e->vector.name);
	return true;
}

static void take_where(void *arg, const struct journal_job *job)
{
	struct attach *a = arg;

	a->found = true;
	a->owner = job->uid;
	a->gang = job->tasks && !(job->gang && *job->gang);
	snprintf(a->job, sizeof(a->job), "%s", job->job);
	snprintf(a->node, sizeof(a->node), "%s", job->node ? job->node : "");
}

static void attach_job(struct attach *a)
{
	const struct front *front = a->front;
	int later = 0;
	char text[256];

	/* Finds the last attempt of a restarted job, which belongs to the same user. */
	if (strcmp(a->job, "last") != 0)
		later = journal_lease_last(front->journal, a->job, NULL);
	if (later < 0 || journal_find(front->journal, a->job, a->uid, take_where, a)) {
		snprintf(text, sizeof(text), "cannot read the job journal in %.200s",
			 front->base->set->state_dir);
		attach_tell(a, NULL, text);
		return;
	}
	a->later = (unsigned)later;
	if (!a->found && attach_home(a)) {
		attach_ask(a, 0);
	} else if (a->found && a->gang && (a->uid == 0 || a->uid == a->owner)) {
		snprintf(
			text, sizeof(text),
			"job %.100s is a parallel job: attach to one of its parts, %.100s.0 and on",
			a->job, a->job);
		attach_tell(a, NULL, text);
	} else if (!a->found || !a->node[0] || (a->uid != 0 && a->uid != a->owner)) {
		snprintf(text, sizeof(text),
			 !strcmp(a->job, "last")
				 ? "no job of yours was submitted at node %s"
				 : "no job of yours named %2$.100s was submitted or ran at node "
				   "%1$s; `iocom jobs --all` lists them",
			 front->base->set->name, a->job);
		attach_tell(a, NULL, text);
	} else if (!strcmp(a->node, front->base->set->name)) {
		attach_tell(a, attach_here(a), "out of memory");
	} else {
		attach_ask(a, 1);
	}
}

void attach_request(struct front *front, struct client *c, const msgpack_object *request)
{
	struct attach *a = calloc(1, sizeof(*a));

	if (!a) {
		client_error(c, "out of memory");
		return;
	}
	a->front = front;
	a->client = c;
	a->uid = client_who(c)->uid;
	a->next = front->attaches;
	front->attaches = a;
	if (unpack_str(request, "job", a->job, sizeof(a->job))) {
		attach_tell(a, NULL, "the request names no \"job\"");
		return;
	}
	attach_job(a);
}
