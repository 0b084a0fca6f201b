/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "kill": the guest party of the job's node sends it a signal. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/loop_share.h"
#include "agent/front/front.h"
#include "user/pack.h"

#define SIGNAL_LAST 64

struct kill {
	struct kill *next;
	struct front *front;
	struct client *client; /* NULL: it has left */
	uid_t uid;
	char job[SPEC_JOB_MAX];
	char asked[SPEC_JOB_MAX]; /* the name that the user gave */
	bool unknown;		  /* no job of that name was submitted here */
};

static void kill_free(struct kill *k)
{
	for (struct kill **q = &k->front->kills; *q; q = &(*q)->next)
		if (*q == k) {
			*q = k->next;
			break;
		}
	free(k);
}

void kill_forget(struct front *front, const struct client *client)
{
	for (struct kill *k = front->kills; k; k = k->next)
		if (k->client == client)
			k->client = NULL;
}

static void take_name(void *arg, const struct journal_job *job)
{
	snprintf(arg, SPEC_JOB_MAX, "%s", job->job);
}

struct ran {
	uid_t uid;
	bool ended;
};

static void take_ran(void *arg, const struct journal_job *job)
{
	*(struct ran *)arg = (struct ran){job->uid, job->end_ns != 0};
}

/* Returns true if UID's job was submitted elsewhere, ran here, and has ended. */
static bool ran_here(const struct front *front, const char *job, uid_t uid)
{
	struct ran ran = {0};

	return !journal_find(front->journal, job, uid, take_ran, &ran) && ran.ended &&
	       (uid == 0 || uid == ran.uid);
}

/* Ends K: tells the client that the signal was sent, or why not. */
static void kill_tell(struct kill *k, int rc, const char *why)
{
	const struct front *front = k->front;
	uid_t before = loop_share_enter(front->base->shares, k->uid);
	struct iocom_err err = {0};

	iocom_err_set(&err, rc, "%s", why);
	if (k->unknown && rc == -ESRCH && ran_here(front, k->job, k->uid))
		k->unknown = !iocom_err_set(&err, rc, "job %s has ended", k->job);
	/* Which jobs exist is secret from other users: both cases get the same sentence. */
	if (rc == -EPERM || (k->unknown && rc == -ESRCH))
		iocom_err_set(&err, rc,
			      !strcmp(k->asked, "last")
				      ? "no job of yours was submitted at node %s"
				      : "no job of yours named %2$s runs at node %1$s or was "
					"submitted there; `iocom jobs --all` lists them",
			      front->base->set->name, k->asked);
	if (k->client && rc == -EPERM)
		client_log_foreign(k->client, "signal", k->job);
	if (k->client && rc)
		client_error(k->client, "%s", err.text);
	else if (k->client)
		client_json(k->client, json_pack("{s:b}", "signalled", 1));
	kill_free(k);
	loop_share_leave(front->base->shares, before);
}

static void kill_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	if (!rc && !answer->ok) {
		rc = answer->error ? answer->error : -EREMOTE;
		why = answer->text;
	}
	kill_tell(arg, rc, why);
}

/* Asks the guest party of NODE. */
static void kill_ask(struct kill *k, const char *node, int signal)
{
	struct peer_request request = {.type = PEER_KILL,
				       .kill = {.uid = k->uid, .signal = signal}};
	struct peers *peers = k->front->peers;
	const struct matrix_entry *e = matrix_find(&peers->matrix, node);
	bool own = !strcmp(node, k->front->base->set->name);
	struct iocom_err err = {0};
	int rc;

	memcpy(request.job, k->job, sizeof(request.job));
	if (own)
		rc = peers_ask(peers, node, "", 0, &request, kill_answered, k, &err);
	else if (!e || !e->alive)
		rc = iocom_err_set(&err, -EHOSTUNREACH, "node %s, where job %s runs, is silent",
				   node, k->job);
	else
		rc = peers_ask(peers, node, e->vector.address, e->vector.port, &request,
			       kill_answered, k, &err);
	if (rc)
		kill_tell(k, rc, err.text);
}

static void kill_job(struct kill *k, int signal)
{
	const struct front *front = k->front;
	char node[IOCOM_NAME_MAX] = "", class_name[64];
	struct iocom_err err = {0};
	bool ended = false;
	uid_t owner;
	int rc = journal_lease_last(front->journal, k->job, &err);

	if (rc >= 0)
		rc = journal_home_get(front->journal, k->job, node, &owner, class_name, &ended,
				      &err);
	k->unknown = rc == -ENOENT;
	if (rc == 0 && k->uid != 0 && k->uid != owner)
		rc = -EPERM;
	else if (rc == 0 && ended)
		rc = iocom_err_set(&err, -ESRCH, "job %s has ended", k->job);
	if (rc && !k->unknown)
		kill_tell(k, rc, err.text);
	else /* it may have been submitted elsewhere and run here */
		kill_ask(k, k->unknown ? front->base->set->name : node, signal);
}

void kill_request(struct front *front, struct client *c, const msgpack_object *request)
{
	struct kill *k = calloc(1, sizeof(*k));
	uint64_t signal = 15;

	if (!k) {
		client_error(c, "out of memory");
		return;
	}
	k->front = front;
	k->client = c;
	k->uid = client_who(c)->uid;
	k->next = front->kills;
	front->kills = k;
	unpack_u64(request, "signal", &signal);
	if (unpack_str(request, "job", k->job, sizeof(k->job)) || signal > SIGNAL_LAST) {
		client_error(c, "the request names no \"job\", or no signal from 0 to 64");
		kill_free(k);
		return;
	}
	if (!strcmp(k->job, "last"))
		(void)journal_find(front->journal, k->job, k->uid, take_name, k->job);
	memcpy(k->asked, k->job, sizeof(k->asked));
	kill_job(k, (int)signal);
}
