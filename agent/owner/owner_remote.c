/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Requests to the owner's part from other nodes.  The other node is no witness of who asks: the
 * credential is, which munged of this node opens.  It binds the whole request, and the request
 *
 *   names this node and this start of its agent     no other node or later agent obeys it
 *   is not older than a credential may be           nor one that munged has forgotten
 *   has a nonce that was not seen                   nor munged that was restarted
 */
#include "agent/owner/owner_own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/seal.h"
#include "user/clock.h"

struct owner_question {
	struct owner_question *next;
	struct owner_part *part;
	struct seal_question *seal;
	uint64_t ticket;
	char from[IOCOM_NAME_MAX];
	struct peer_owner asked;
	struct owner_ask ask;
};

static void question_free(struct owner_question *q)
{
	for (struct owner_question **p = &q->part->questions; *p; p = &(*p)->next)
		if (*p == q) {
			*p = q->next;
			q->part->nquestions--;
			break;
		}
	free(q);
}

static void remote_fill(struct peer_answer *answer, int rc, json_t *shown,
			const struct iocom_err *err)
{
	char *text = rc ? NULL : json_dumps(shown, JSON_COMPACT);

	answer->ok = text && strlen(text) < sizeof(answer->json);
	if (answer->ok)
		strcpy(answer->json, text);
	else
		peer_answer_refuse(answer, "%.250s", rc ? err->text : "out of memory");
	free(text);
	json_decref(shown);
}

static bool remote_is_replay(struct owner_part *part, const char *nonce)
{
	for (size_t i = 0; i < OWNER_NONCES && i < part->nnonces; i++)
		if (!strcmp(part->nonces[i], nonce))
			return true;
	snprintf(part->nonces[part->nnonces++ % OWNER_NONCES], SPEC_NONCE_MAX, "%s", nonce);
	return false;
}

/* Checks that ASK is for this node, this agent and now.  Returns 0 or -EACCES. */
static int remote_is_fresh(const struct owner_part *part, const struct owner_ask *ask,
			   struct iocom_err *err)
{
	uint64_t now_s = loop_real_ns(part->base->loop) / CLOCK_NS_PER_S;
	const char *name = part->base->set->name;

	if (strcmp(ask->node, name) != 0)
		return iocom_err_set(err, -EACCES, "the request is for node %s, this is %s",
				     ask->node, name);
	if (ask->boot_id != part->base->boot_id)
		return iocom_err_set(err, -EACCES,
				     "the request is for an earlier start of the agent of node %s; "
				     "ask again",
				     name);
	if (ask->at_s + OWNER_ASK_TTL_S < now_s || ask->at_s > now_s + OWNER_ASK_TTL_S)
		return iocom_err_set(
			err, -EACCES,
			"the request was made %lld s from now by the clock of node %s; "
			"synchronise the clocks",
			(long long)(ask->at_s - now_s), name);
	return 0;
}

static int remote_prove(struct owner_question *q, const struct seal_answer *opened,
			struct iocom_err *err)
{
	const struct credential_purpose purpose = {"owner", q->ask.node, q->ask.nonce,
						   q->asked.packed, q->asked.length};
	int rc;

	if (opened->rc)
		return iocom_err_set(err, -EACCES, "%.250s", opened->err.text);
	rc = credential_binds(&purpose, &opened->credential, q->part->base->set->name, err);
	if (!rc)
		rc = remote_is_fresh(q->part, &q->ask, err);
	if (!rc && remote_is_replay(q->part, q->ask.nonce))
		rc = iocom_err_set(err, -EACCES,
				   "the request was obeyed before (a replay): refused");
	return rc;
}

static void remote_opened(void *arg, struct seal_answer *opened)
{
	struct owner_question *q = arg;
	struct owner_part *part = q->part;
	struct peer_answer answer = {0};
	struct iocom_err err = {0};
	json_t *shown = NULL;
	int rc = remote_prove(q, opened, &err);

	if (rc) {
		part->base->counters->owner_refused++;
		log_provoked(part->base->log, LOG_L_WARNING,
			     "owner: refused a request from node %s: %s", q->from, err.text);
	} else {
		rc = owner_part_obey(part, &q->ask, opened->credential.uid, q->from, &shown, &err);
	}
	remote_fill(&answer, rc, shown, &err);
	peers_answer(part->config.peers, q->ticket, PEER_OWNER, &answer);
	question_free(q);
}

size_t owner_part_asking(const struct owner_part *part)
{
	return part->nquestions;
}

static int remote_ask_munged(struct owner_part *part, const struct peer_request *request,
			     const struct owner_ask *ask, uint64_t ticket, struct iocom_err *err)
{
	struct owner_question *q;
	int rc;

	if (!part->config.peers->seal)
		return iocom_err_set(err, -EHOSTDOWN, "this node has no munged");
	part->base->counters->owner_refused += part->nquestions == OWNER_QUESTIONS_MAX;
	if (part->nquestions == OWNER_QUESTIONS_MAX)
		return iocom_err_set(err, -EAGAIN, "too many requests to the owner's part wait");
	q = calloc(1, sizeof(*q));
	if (!q)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	q->part = part;
	q->ticket = ticket;
	q->asked = *request->owner;
	q->ask = *ask;
	memcpy(q->from, request->from, sizeof(q->from));
	rc = seal_open_credential(part->config.peers->seal, SEAL_ATTACHES, q->asked.credential,
				  remote_opened, q, &q->seal, err);
	if (rc) {
		free(q);
		return rc;
	}
	q->next = part->questions;
	part->questions = q;
	part->nquestions++;
	return PEERS_LATER;
}

int owner_part_asked(void *arg, const struct peer_request *request, uint64_t ticket,
		     struct peer_answer *answer)
{
	struct owner_part *part = arg;
	struct iocom_err err = {0};
	struct owner_ask ask;
	json_t *shown = NULL;
	int rc = owner_ask_unpack(&ask, request->owner->packed, request->owner->length);

	if (rc) {
		peer_answer_refuse(answer, "the request is garbage");
		return 0;
	}
	if (request->owner->credential[0]) {
		rc = remote_ask_munged(part, request, &ask, ticket, &err);
		if (rc == PEERS_LATER)
			return rc;
	} else if (ask.nwords != 1 || strcmp(ask.words[0], "show") != 0) {
		rc = iocom_err_set(&err, -EACCES,
				   "changing rules of another node needs a "
				   "credential");
	} else {
		rc = owner_part_obey(part, &ask, (uid_t)-1, request->from, &shown, &err);
	}
	remote_fill(answer, rc, shown, &err);
	return 0;
}

void owner_remote_stop(struct owner_part *part)
{
	while (part->questions) {
		struct owner_question *q = part->questions;

		seal_forget(part->config.peers->seal, q->seal);
		question_free(q);
	}
}
