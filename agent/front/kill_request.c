/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "kill": the guest party of the job's node sends it a signal.  A gang gets it at each of
 * its parts that have not ended; it has it if one of them has.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/loop_share.h"
#include "agent/front/front.h"
#include "user/ending_signal.h"
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
	/* Of a gang: answers that are awaited, parts that have the signal, and why the first has
	 * not. */
	unsigned open, signalled;
	int signal;
	bool ends; /* the client of a gang gives it up: parts that begin only now end, too */
	char given_up[300]; /* why, if not for the signal; "": for that */
	int value;	    /* the exit status then */
	int rc;
	char why[PEER_TEXT_MAX];
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

/* --- one job --- */

/* Asks the guest party of NODE about JOB. */
static void kill_ask_about(struct kill *k, const char *job, const char *node, int signal,
			   peers_answered answered)
{
	struct peer_request request = {.type = PEER_KILL,
				       .kill = {.uid = k->uid, .signal = signal}};
	struct peers *peers = k->front->peers;
	const struct matrix_entry *e = matrix_find(&peers->matrix, node);
	bool own = !strcmp(node, k->front->base->set->name);
	struct iocom_err err = {0};
	int rc;

	snprintf(request.job, sizeof(request.job), "%s", job);
	if (own)
		rc = peers_ask(peers, node, "", 0, &request, answered, k, &err);
	else if (!e || !e->alive)
		rc = iocom_err_set(&err, -EHOSTUNREACH, "node %s, where job %s runs, is silent",
				   node, job);
	else
		rc = peers_ask(peers, node, e->vector.address, e->vector.port, &request, answered,
			       k, &err);
	if (rc)
		answered(k, rc, NULL, err.text);
}

static void kill_ask(struct kill *k, const char *node, int signal)
{
	kill_ask_about(k, k->job, node, signal, kill_answered);
}

/* --- a gang --- */

/* One answer less is awaited; this may free K. */
static void kill_part_done(struct kill *k)
{
	if (--k->open)
		return;
	if (k->signalled ||
	    (signal_ends(k->signal) && gangs_end(k->front->gangs, k->job, k->signal)))
		kill_tell(k, 0, "");
	else
		kill_tell(k, k->rc ? k->rc : -ESRCH, k->rc ? k->why : "it runs at no node yet");
}

static void kill_part_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct kill *k = arg;

	if (!rc && !answer->ok) {
		rc = answer->error ? answer->error : -EREMOTE;
		why = answer->text;
	}
	k->signalled += !rc;
	if (rc && !k->rc) {
		k->rc = rc;
		snprintf(k->why, sizeof(k->why), "%s", why);
	}
	kill_part_done(k);
}

struct kill_parts {
	struct kill *kill;
	int signal;
};

static void kill_part(void *arg, const struct journal_job *job)
{
	const struct kill_parts *p = arg;

	if (strcmp(job->state, "starting") != 0 && strcmp(job->state, "running") != 0)
		return;
	p->kill->open++;
	kill_ask_about(p->kill, job->job, job->node, p->signal, kill_part_answered);
}

static void kill_gang(struct kill *k, int signal)
{
	struct kill_parts p = {k, signal};

	if (k->ends &&
	    (*k->given_up ? gangs_give_up(k->front->gangs, k->job, k->value, k->given_up)
			  : signal_ends(signal) && gangs_end(k->front->gangs, k->job, signal))) {
		kill_tell(k, 0, "");
		return;
	}
	k->signal = signal;
	k->open = 1; /* for this loop: an answer may come within it */
	if (journal_gang_parts(k->front->journal, k->job, kill_part, &p) && !k->rc) {
		k->rc = -EIO;
		snprintf(k->why, sizeof(k->why), "the job journal cannot be read");
	}
	kill_part_done(k);
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
	else if (!k->unknown && !*node)
		kill_gang(k, signal);
	else /* it may have been submitted elsewhere and run here */
		kill_ask(k, k->unknown ? front->base->set->name : node, signal);
}

void kill_request(struct front *front, struct client *c, const msgpack_object *request)
{
	struct kill *k = calloc(1, sizeof(*k));
	uint64_t signal = 15, value = 0;

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
	(void)unpack_bool(request, "ends", &k->ends);
	(void)unpack_str(request, "why", k->given_up, sizeof(k->given_up));
	(void)unpack_u64(request, "value", &value);
	k->value = value > 0 && value < 256 ? (int)value : 125;
	if (unpack_str(request, "job", k->job, sizeof(k->job)) || signal > SIGNAL_LAST) {
		client_error(c, "the request names no \"job\", or no signal from 0 to 64");
		kill_free(k);
		return;
	}
	(void)journal_last(front->journal, k->uid, k->job);
	memcpy(k->asked, k->job, sizeof(k->asked));
	kill_job(k, (int)signal);
}
