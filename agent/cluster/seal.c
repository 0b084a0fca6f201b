/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Seals between agents, by MUNGE; see seal.h.
 *
 * libmunge waits for munged for most of a minute, so threads call it (question_thread.h).  Such a
 * thread may outlive both the question and the seal: each question owns all its data.
 */
#include "agent/cluster/seal.h"

#include <errno.h>
#include <munge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "agent/base/deadline_thread.h"
#include "agent/base/question_thread.h"

/*
 * The text of a credential: "MUNGE:", base64, ":".  The shortest that munged makes has about 100
 * bytes; a job's, which binds a job's name and a hash, has less than 1000.
 */
#define TEXT_LEAST	32
#define CREDENTIAL_MOST 16384

struct seal {
	struct question_thread *lanes[SEAL_LANES];
	struct counters *counters;
	char *socket; /* NULL: the default */
	bool down;
};

/* A message to seal or open, or a job's credential to check. */
struct seal_question {
	struct question_task task;
	struct seal *seal;
	enum seal_lane lane;
	seal_answered answered;
	void *arg;
	/* The thread has these while it runs. */
	char *socket, *text; /* the credential, as input or result */
	void *data;	     /* the message, as input or result */
	size_t length;
	uid_t uid;
	time_t made, opened;
	munge_err_t e;
	char why[160];
	struct credential credential;
	struct iocom_err err;
	int rc;
};

static void seal_question_free(struct question_task *task)
{
	struct seal_question *q = (struct seal_question *)task;

	credential_free(&q->credential);
	free(q->socket);
	free(q->text);
	if (q->data)
		explicit_bzero(q->data, q->length);
	free(q->data);
	free(q);
}

/* --- in the threads ------------------------------------------------------------ */

static munge_ctx_t context(struct seal_question *q)
{
	munge_ctx_t ctx = munge_ctx_create();

	q->e = ctx ? EMUNGE_SUCCESS : EMUNGE_NO_MEMORY;
	if (ctx && q->socket)
		q->e = munge_ctx_set(ctx, MUNGE_OPT_SOCKET, q->socket);
	return ctx;
}

static void context_done(struct seal_question *q, munge_ctx_t ctx)
{
	const char *why = ctx ? munge_ctx_strerror(ctx) : NULL;

	snprintf(q->why, sizeof(q->why), "%s", why ? why : munge_strerror(q->e));
	if (ctx)
		munge_ctx_destroy(ctx);
}

static void seal_encode(struct question_task *task)
{
	struct seal_question *q = (struct seal_question *)task;
	munge_ctx_t ctx = context(q);

	if (q->e == EMUNGE_SUCCESS) {
		munge_ctx_set(ctx, MUNGE_OPT_TTL, SEAL_TTL_S);
		munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, (uid_t)0);
		/* What is sealed may be secret: munged's own defaults may be weaker. */
		munge_ctx_set(ctx, MUNGE_OPT_CIPHER_TYPE, MUNGE_CIPHER_AES256);
		munge_ctx_set(ctx, MUNGE_OPT_MAC_TYPE, MUNGE_MAC_SHA256);
		q->e = munge_encode(&q->text, ctx, q->data, (int)q->length);
	}
	context_done(q, ctx);
}

static void seal_decode(struct question_task *task)
{
	struct seal_question *q = (struct seal_question *)task;
	munge_ctx_t ctx = context(q);
	int n = 0;

	if (q->e == EMUNGE_SUCCESS) {
		q->e = munge_decode(q->text, ctx, &q->data, &n, &q->uid, NULL);
		q->length = (size_t)n;
		munge_ctx_get(ctx, MUNGE_OPT_ENCODE_TIME, &q->made);
		munge_ctx_get(ctx, MUNGE_OPT_DECODE_TIME, &q->opened);
	}
	context_done(q, ctx);
}

static void open_credential(struct question_task *task)
{
	struct seal_question *q = (struct seal_question *)task;

	q->rc = credential_open(&q->credential, q->text, q->socket, &q->err);
}

/* --- judging --------------------------------------------------------------------- */

static int seal_hangs(const struct seal *seal, unsigned limit_ms, struct iocom_err *err)
{
	return iocom_err_set(
		err, -EHOSTDOWN,
		"munged does not answer%s%s: it hangs or is stopped, because its socket is open "
		"but it was silent for %u ms; see `systemctl status munge`",
		seal->socket ? " at " : "", seal->socket ? seal->socket : "", limit_ms);
}

/* The one place that turns munge's errors into ours. */
static int foreign(const struct seal_question *q, struct iocom_err *err)
{
	switch (q->e) {
	case EMUNGE_SUCCESS:
		return 0;
	case EMUNGE_NO_MEMORY:
		return iocom_err_set(err, -ENOMEM, "out of memory");
	case EMUNGE_BAD_LENGTH:
		return iocom_err_set(err, -EMSGSIZE, "message too long for MUNGE");
	case EMUNGE_SNAFU:
	case EMUNGE_SOCKET:
	case EMUNGE_TIMEOUT:
	case EMUNGE_OVERFLOW:
		return iocom_err_set(err, -EHOSTDOWN,
				     "no answer from munged (%s); start it (systemctl start munge) "
				     "or name its socket with --munge-socket",
				     q->why);
	case EMUNGE_BAD_CRED:
	case EMUNGE_BAD_ARG:
	case EMUNGE_BAD_VERSION:
		return iocom_err_set(err, SEAL_E_GARBAGE, "not a MUNGE credential");
	case EMUNGE_CRED_EXPIRED:
	case EMUNGE_CRED_REWOUND:
		return iocom_err_set(err, SEAL_E_SKEW, "%s", q->why);
	case EMUNGE_CRED_REPLAYED:
		return iocom_err_set(err, SEAL_E_REPLAYED, "credential replayed");
	default:
		return iocom_err_set(err, SEAL_E_FORGED, "%s", q->why);
	}
}

/* Says by how much the clocks differ. */
static int skew(const struct seal_question *q, struct iocom_err *err)
{
	long long ahead_s = (long long)q->made - q->opened;
	bool later = ahead_s > 0;

	return iocom_err_set(err, SEAL_E_SKEW,
			     "made %lld s %s this machine's time (at most %d s are accepted): it "
			     "was delayed, or the clocks differ; synchronise them",
			     later ? ahead_s : -ahead_s, later ? "after" : "before", SEAL_TTL_S);
}

/* Judges munged's answer to a message. */
static int seal_judge(const struct seal_question *q, struct iocom_err *err)
{
	int rc;

	if (q->e == EMUNGE_CRED_EXPIRED || q->e == EMUNGE_CRED_REWOUND)
		rc = skew(q, err);
	else
		rc = foreign(q, err);
	if ((!rc || rc == SEAL_E_SKEW) && q->uid != 0)
		return iocom_err_set(err, SEAL_E_FORGED, "made by uid %u, not by root",
				     (unsigned)q->uid);
	if (!rc && !q->data)
		return iocom_err_set(err, SEAL_E_GARBAGE, "empty credential");
	return rc;
}

/* Counts whether munged answered. */
static void seal_noted(struct seal *seal, enum seal_lane lane, int rc)
{
	seal->counters->seal_failures += rc == -EHOSTDOWN;
	if (lane == SEAL_OWN)
		seal->down = rc == -EHOSTDOWN;
}

/* Gives A to the asker, then frees what the asker left. */
static void seal_tell(struct seal_question *q, struct seal_answer *a)
{
	seal_noted(q->seal, q->lane, a->rc);
	q->answered(q->arg, a);
	free(a->text);
	if (a->data)
		explicit_bzero(a->data, a->length);
	free(a->data);
	credential_free(&a->credential);
}

/* The question thread gave Q up: the thread may have its data. */
static void seal_given_up(struct seal_question *q)
{
	struct seal_answer a = {0};

	a.rc = seal_hangs(q->seal, SEAL_WAIT_MS, &a.err);
	seal_tell(q, &a);
}

static void sealed(struct question_task *task, int rc)
{
	struct seal_question *q = (struct seal_question *)task;
	struct seal_answer a = {0};

	if (rc) {
		seal_given_up(q);
		return;
	}
	a.rc = foreign(q, &a.err);
	if (!a.rc) {
		a.text = q->text;
		q->text = NULL;
	}
	seal_tell(q, &a);
	seal_question_free(task);
}

static void seal_opened(struct question_task *task, int rc)
{
	struct seal_question *q = (struct seal_question *)task;
	struct seal_answer a = {0};

	if (rc) {
		seal_given_up(q);
		return;
	}
	a.rc = seal_judge(q, &a.err);
	if (!a.rc || a.rc == SEAL_E_SKEW) {
		a.data = q->data;
		a.length = q->length;
		a.ahead_s = (long long)q->made - q->opened;
		q->data = NULL;
	}
	seal_tell(q, &a);
	seal_question_free(task);
}

static void credential_opened(struct question_task *task, int rc)
{
	struct seal_question *q = (struct seal_question *)task;
	struct seal_answer a = {0};

	if (rc) {
		seal_given_up(q);
		return;
	}
	a.rc = q->rc;
	a.err = q->err;
	if (!a.rc) {
		a.credential = q->credential;
		q->credential.bound = NULL;
	}
	seal_tell(q, &a);
	seal_question_free(task);
}

/* --- asking ---------------------------------------------------------------------- */

bool seal_may_be(const void *text, size_t length)
{
	static const char begin[] = "MUNGE:";
	const size_t n = sizeof(begin) - 1;
	const uint8_t *at = text;
	size_t end = length - 1; /* of the base64 */

	if (length < TEXT_LEAST || memcmp(at, begin, n) != 0 || at[end] != ':')
		return false;
	for (int pad = 0; pad < 2 && at[end - 1] == '='; pad++)
		end--;
	for (size_t i = n; i < end; i++)
		if (!((at[i] >= 'A' && at[i] <= 'Z') || (at[i] >= 'a' && at[i] <= 'z') ||
		      (at[i] >= '0' && at[i] <= '9') || at[i] == '+' || at[i] == '/'))
			return false;
	return true;
}

static struct seal_question *question_new(struct seal *seal,
					  void (*run)(struct question_task *task),
					  void (*done)(struct question_task *task, int rc),
					  seal_answered answered, void *arg)
{
	struct seal_question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->task = (struct question_task){.run = run, .done = done, .free = seal_question_free};
	q->seal = seal;
	q->answered = answered;
	q->arg = arg;
	q->uid = (uid_t)-1;
	q->socket = seal->socket ? strdup(seal->socket) : NULL;
	if (seal->socket && !q->socket) {
		free(q);
		return NULL;
	}
	return q;
}

/* Gives Q to the thread of LANE, or frees it. */
static int seal_ask(struct seal *seal, enum seal_lane lane, struct seal_question *q,
		    struct seal_question **out, struct iocom_err *err)
{
	int rc;

	q->lane = lane;
	rc = question_thread_ask(seal->lanes[lane], &q->task);
	if (!rc) {
		*out = q;
		return 0;
	}
	if (rc == -ENOBUFS) {
		seal->counters->seal_questions_refused++;
		return iocom_err_set(err, -EAGAIN,
				     "munged has %d questions of this kind to answer; try again",
				     SEAL_QUESTIONS_MAX);
	}
	seal_noted(seal, lane, -EHOSTDOWN);
	return seal_hangs(seal, SEAL_WAIT_MS, err);
}

int seal_message(struct seal *seal, const void *data, size_t length, seal_answered answered,
		 void *arg, struct seal_question **question, struct iocom_err *err)
{
	struct seal_question *q;

	if (length > SEAL_MESSAGE_MAX)
		return iocom_err_set(err, -EMSGSIZE, "message of %zu bytes is too long", length);
	q = question_new(seal, seal_encode, sealed, answered, arg);
	if (q)
		q->data = malloc(length + 1);
	if (!q || !q->data) {
		free(q ? q->socket : NULL);
		free(q);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	q->length = length;
	memcpy(q->data, data, length);
	return seal_ask(seal, SEAL_OWN, q, question, err);
}

/* Asks what RUN does about TEXT, which is a credential perhaps. */
static int seal_ask_about(struct seal *seal, enum seal_lane lane, const void *text, size_t length,
			  struct seal_question *q, struct seal_question **question,
			  struct iocom_err *err)
{
	if (q)
		q->text = strndup(text, length);
	if (!q || !q->text) {
		if (q)
			seal_question_free(&q->task);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	return seal_ask(seal, lane, q, question, err);
}

int seal_open_message(struct seal *seal, enum seal_lane lane, const void *credential, size_t length,
		      seal_answered answered, void *arg, struct seal_question **question,
		      struct iocom_err *err)
{
	struct seal_question *q;

	if (!seal_may_be(credential, length)) {
		seal->counters->credentials_refused_form++;
		return iocom_err_set(err, SEAL_E_GARBAGE, "not a MUNGE credential");
	}
	q = question_new(seal, seal_decode, seal_opened, answered, arg);
	return seal_ask_about(seal, lane, credential, length, q, question, err);
}

int seal_open_credential(struct seal *seal, enum seal_lane lane, const char *text,
			 seal_answered answered, void *arg, struct seal_question **question,
			 struct iocom_err *err)
{
	size_t length = strlen(text);

	if (length > CREDENTIAL_MOST || !seal_may_be(text, length)) {
		seal->counters->credentials_refused_form++;
		return iocom_err_set(err, -EACCES, "MUNGE refuses the credential: it is none");
	}
	return seal_ask_about(seal, lane, text, length,
			      question_new(seal, open_credential, credential_opened, answered, arg),
			      question, err);
}

void seal_forget(struct seal *seal, struct seal_question *question)
{
	if (question)
		question_thread_forget(seal->lanes[question->lane], &question->task);
}

/* --- up and down ----------------------------------------------------------------- */

bool seal_down(const struct seal *seal)
{
	return seal->down;
}

size_t seal_waiting(const struct seal *seal)
{
	size_t most = 0;

	for (int i = 0; seal && i < SEAL_LANES; i++)
		if (question_thread_count(seal->lanes[i]) > most)
			most = question_thread_count(seal->lanes[i]);
	return most;
}

/* The first question, for which the agent's start waits. */
struct seal_probe {
	struct deadline_task task;
	struct seal_question *question;
};

static void seal_probe_run(struct deadline_task *task)
{
	struct seal_probe *p = (struct seal_probe *)task;

	seal_encode(&p->question->task);
}

static void seal_probe_free(struct deadline_task *task)
{
	struct seal_probe *p = (struct seal_probe *)task;

	if (p->question)
		seal_question_free(&p->question->task);
	free(p);
}

static int seal_probe(struct seal *seal, struct iocom_err *err)
{
	struct deadline_thread *thread;
	struct seal_probe *p = calloc(1, sizeof(*p));
	int rc = p ? deadline_new(&thread, err) : iocom_err_set(err, -ENOMEM, "out of memory");

	if (rc) {
		free(p);
		return rc;
	}
	p->task = (struct deadline_task){.run = seal_probe_run, .free = seal_probe_free};
	p->question = question_new(seal, seal_encode, sealed, NULL, NULL);
	if (!p->question) {
		rc = iocom_err_set(err, -ENOMEM, "out of memory");
		seal_probe_free(&p->task);
	} else if (deadline_run(thread, &p->task, SEAL_FIRST_WAIT_MS)) {
		rc = seal_hangs(seal, SEAL_FIRST_WAIT_MS, err);
	} else {
		rc = foreign(p->question, err);
		seal_probe_free(&p->task);
	}
	deadline_free(thread);
	return rc;
}

int seal_new(struct seal **out, struct loop *loop, struct counters *counters, const char *socket,
	     struct iocom_err *err)
{
	struct seal *seal = calloc(1, sizeof(*seal));
	int rc = 0;

	if (!seal)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	seal->counters = counters;
	if (*socket) {
		seal->socket = strdup(socket);
		if (!seal->socket)
			rc = iocom_err_set(err, -ENOMEM, "out of memory");
	}
	if (!rc)
		rc = seal_probe(seal, err);
	for (int i = 0; i < SEAL_LANES && !rc; i++)
		rc = question_thread_new(&seal->lanes[i], loop, SEAL_WAIT_MS, SEAL_QUESTIONS_MAX,
					 err);
	if (rc) {
		seal_free(seal);
		return rc;
	}
	*out = seal;
	return 0;
}

void seal_free(struct seal *seal)
{
	if (!seal)
		return;
	for (int i = 0; i < SEAL_LANES; i++)
		question_thread_free(seal->lanes[i]);
	free(seal->socket);
	free(seal);
}
