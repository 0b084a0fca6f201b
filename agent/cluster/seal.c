/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Seals between agents, by MUNGE; see seal.h.
 *
 * libmunge waits for munged for most of a minute, so a thread calls it (deadline_thread.h).  That
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

struct seal {
	struct deadline_thread *worker;
	char *socket; /* NULL: the default */
	long long ahead_s;
	bool down;
};

/* A message to seal or open, or a job's credential to check. */
struct question {
	struct deadline_task task;
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

static void seal_question_free(struct deadline_task *task)
{
	struct question *q = (struct question *)task;

	credential_free(&q->credential);
	free(q->socket);
	free(q->text);
	free(q->data);
	free(q);
}

static struct question *question_new(const struct seal *seal,
				     void (*run)(struct deadline_task *task), struct iocom_err *err)
{
	struct question *q = calloc(1, sizeof(*q));

	if (q) {
		q->task = (struct deadline_task){.run = run, .free = seal_question_free};
		q->uid = (uid_t)-1;
		q->socket = seal->socket ? strdup(seal->socket) : NULL;
	}
	if (!q || (seal->socket && !q->socket)) {
		free(q);
		iocom_err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	return q;
}

static munge_ctx_t context(struct question *q)
{
	munge_ctx_t ctx = munge_ctx_create();

	q->e = ctx ? EMUNGE_SUCCESS : EMUNGE_NO_MEMORY;
	if (ctx && q->socket)
		q->e = munge_ctx_set(ctx, MUNGE_OPT_SOCKET, q->socket);
	return ctx;
}

static void context_done(struct question *q, munge_ctx_t ctx)
{
	const char *why = ctx ? munge_ctx_strerror(ctx) : NULL;

	snprintf(q->why, sizeof(q->why), "%s", why ? why : munge_strerror(q->e));
	if (ctx)
		munge_ctx_destroy(ctx);
}

static void seal_encode(struct deadline_task *task)
{
	struct question *q = (struct question *)task;
	munge_ctx_t ctx = context(q);

	if (q->e == EMUNGE_SUCCESS) {
		munge_ctx_set(ctx, MUNGE_OPT_TTL, SEAL_TTL_S);
		munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, (uid_t)0);
		q->e = munge_encode(&q->text, ctx, q->data, (int)q->length);
	}
	context_done(q, ctx);
}

static void seal_decode(struct deadline_task *task)
{
	struct question *q = (struct question *)task;
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

static void open_credential(struct deadline_task *task)
{
	struct question *q = (struct question *)task;

	q->rc = credential_open(&q->credential, q->text, q->socket, &q->err);
}

/* Returns 0: Q was answered.  Otherwise the worker owns Q. */
static int seal_ask(struct seal *seal, struct question *q, unsigned limit_ms, struct iocom_err *err)
{
	int rc = deadline_run(seal->worker, &q->task, limit_ms);

	seal->down = rc != 0;
	if (!rc)
		return 0;
	return iocom_err_set(
		err, -EHOSTDOWN,
		"munged does not answer%s%s: it hangs or is stopped, because its socket is open "
		"but it was silent for %u ms; see `systemctl status munge`",
		seal->socket ? " at " : "", seal->socket ? seal->socket : "", limit_ms);
}

/* The one place that turns munge's errors into ours. */
static int foreign(const struct question *q, struct iocom_err *err)
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

static int seal_within(struct seal *seal, const void *data, size_t length, unsigned limit_ms,
		       char **credential, struct iocom_err *err)
{
	struct question *q;
	int rc;

	*credential = NULL;
	if (length > SEAL_MESSAGE_MAX)
		return iocom_err_set(err, -EMSGSIZE, "message of %zu bytes is too long", length);
	q = question_new(seal, seal_encode, err);
	if (!q)
		return -ENOMEM;
	q->length = length;
	q->data = malloc(length + 1);
	if (!q->data) {
		seal_question_free(&q->task);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	memcpy(q->data, data, length);
	rc = seal_ask(seal, q, limit_ms, err);
	if (rc)
		return rc;
	rc = foreign(q, err);
	if (!rc) {
		*credential = q->text;
		q->text = NULL;
	}
	seal_question_free(&q->task);
	seal->down = rc == -EHOSTDOWN;
	return rc;
}

int seal_message(struct seal *seal, const void *data, size_t length, char **credential,
		 struct iocom_err *err)
{
	return seal_within(seal, data, length, SEAL_WAIT_MS, credential, err);
}

bool seal_down(const struct seal *seal)
{
	return seal->down;
}

int seal_new(struct seal **out, const char *socket, struct iocom_err *err)
{
	struct seal *seal = calloc(1, sizeof(*seal));
	char *probe = NULL;
	int rc;

	if (!seal)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	rc = deadline_new(&seal->worker, err);
	if (!rc && *socket) {
		seal->socket = strdup(socket);
		if (!seal->socket)
			rc = iocom_err_set(err, -ENOMEM, "out of memory");
	}
	if (!rc)
		rc = seal_within(seal, "", 0, SEAL_FIRST_WAIT_MS, &probe, err);
	free(probe);
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
	deadline_free(seal->worker);
	free(seal->socket);
	free(seal);
}

long long seal_ahead_s(const struct seal *seal)
{
	return seal->ahead_s;
}

/* Says by how much the clocks differ. */
static int skew(struct seal *seal, const struct question *q, struct iocom_err *err)
{
	bool later = q->made > q->opened;

	seal->ahead_s = (long long)q->made - q->opened;
	return iocom_err_set(err, SEAL_E_SKEW,
			     "made %lld s %s this machine's time (at most %d s are accepted): it "
			     "was delayed, or the clocks differ; synchronise them",
			     later ? seal->ahead_s : -seal->ahead_s, later ? "after" : "before",
			     SEAL_TTL_S);
}

/* Judges munged's answer to a message. */
static int seal_judge(struct seal *seal, const struct question *q, int replayed_ok,
		      struct iocom_err *err)
{
	int rc;

	if (q->e == EMUNGE_CRED_EXPIRED || q->e == EMUNGE_CRED_REWOUND)
		rc = skew(seal, q, err);
	else if (q->e == EMUNGE_CRED_REPLAYED && replayed_ok)
		rc = 0;
	else
		rc = foreign(q, err);
	seal->down = rc == -EHOSTDOWN;
	if ((!rc || rc == SEAL_E_SKEW) && q->uid != 0)
		return iocom_err_set(err, SEAL_E_FORGED, "made by uid %u, not by root",
				     (unsigned)q->uid);
	if (!rc && !q->data)
		return iocom_err_set(err, SEAL_E_GARBAGE, "empty credential");
	return rc;
}

int seal_open_message(struct seal *seal, const void *credential, size_t length, int replayed_ok,
		      void **data, size_t *data_length, struct iocom_err *err)
{
	struct question *q = question_new(seal, seal_decode, err);
	int rc;

	*data = NULL;
	if (!q)
		return -ENOMEM;
	q->text = strndup(credential, length);
	if (!q->text) {
		seal_question_free(&q->task);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	rc = seal_ask(seal, q, SEAL_WAIT_MS, err);
	if (rc)
		return rc;
	rc = seal_judge(seal, q, replayed_ok, err);
	if (!rc || rc == SEAL_E_SKEW) {
		*data = q->data;
		*data_length = q->length;
		q->data = NULL;
	}
	seal_question_free(&q->task);
	return rc;
}

int seal_open_credential(struct seal *seal, struct credential *credential, const char *text,
			 struct iocom_err *err)
{
	struct question *q = question_new(seal, open_credential, err);
	int rc;

	*credential = (struct credential){.uid = (uid_t)-1, .gid = (gid_t)-1};
	if (!q)
		return -ENOMEM;
	q->text = strdup(text);
	if (!q->text) {
		seal_question_free(&q->task);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	rc = seal_ask(seal, q, SEAL_WAIT_MS, err);
	if (rc)
		return rc;
	rc = q->rc;
	seal->down = rc == -EHOSTDOWN;
	if (rc) {
		iocom_err_set(err, rc, "%s", q->err.text);
	} else {
		*credential = q->credential;
		q->credential.bound = NULL;
	}
	seal_question_free(&q->task);
	return rc;
}
