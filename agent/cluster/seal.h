/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Seals: agents prove to each other that they are root of a cluster machine by MUNGE credentials
 * that carry a message, once in an hour (greeting.h).  Only credentials made by uid 0 are accepted,
 * and only uid 0 may open them.
 *
 * Threads ask munged (question_thread.h), and the answer comes back to the loop.  Each lane has a
 * thread and a bounded queue of its own, so that what others send cannot delay what this node sends
 * and needs. A question is given up after SEAL_WAIT_MS, and its lane asks nothing else until munged
 * has answered it.  What cannot be a credential is refused before munged is asked.
 */
#ifndef IOCOM_SEAL_H
#define IOCOM_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/counters.h"
#include "agent/base/loop.h"
#include "agent/base/seal_refusal.h"
#include "iocom/err.h"
#include "user/spec.h"

#define SEAL_MESSAGE_MAX (1u << 20) /* MUNGE's bound for a payload */

struct seal;
struct seal_question; /* it has no answer yet */

/*
 * How long munged may take (it needs a tenth of a millisecond), normally and at the agent's start.
 */
#define SEAL_WAIT_MS	   500
#define SEAL_FIRST_WAIT_MS 5000
#define SEAL_QUESTIONS_MAX 64 /* questions without an answer, in each lane */

enum seal_lane {
	SEAL_OWN,      /* what this node seals, and answers to its questions */
	SEAL_FOREIGN,  /* messages of other agents */
	SEAL_STARTS,   /* credentials of jobs that have a lease here */
	SEAL_ATTACHES, /* credentials of clients that attach */
	SEAL_USERS,    /* credentials of users of other nodes who ask something */
	SEAL_LANES
};

/* What came of a question.  All that it points to is freed afterwards: take it and set NULL. */
struct seal_answer {
	/* 0; enum seal_refusal; -EHOSTDOWN; -EMSGSIZE; -ENOMEM; -EACCES of a job's credential. */
	int rc;
	struct iocom_err err; /* the reason, if RC is not 0 */
	char *text;	      /* seal_message: the credential, a string */
	/*
	 * seal_open_message: the message.  With SEAL_E_SKEW it is set if root made it; it only
	 * tells which node's clock differs.
	 */
	void *data;
	size_t length;
	long long ahead_s; /* SEAL_E_SKEW: how far the sender's clock is ahead; negative: behind */
	struct credential credential; /* seal_open_credential */
};

/* Called once, from the loop. */
typedef void (*seal_answered)(void *arg, struct seal_answer *answer);

/*
 * SOCKET: munged's, "" = the default.  Waits for munged.  Borrows LOOP and COUNTERS.  Returns 0;
 * -EHOSTDOWN munged does not answer, with the reason in ERR.
 */
int seal_new(struct seal **seal, struct loop *loop, struct counters *counters, const char *socket,
	     struct iocom_err *err);
/* Open questions are dropped without an answer.  NULL is fine. */
void seal_free(struct seal *seal);
/* Returns true if munged did not answer the last question in lane SEAL_OWN. */
bool seal_down(const struct seal *seal);
/* Questions without an answer in the lane that has most; NULL: 0. */
size_t seal_waiting(const struct seal *seal);

/*
 * These copy what they need and return 0 with QUESTION, and ANSWERED will be called; or the reason
 * at once, in ERR too, and ANSWERED will not be called: as struct seal_answer has it, and -EAGAIN:
 * the lane is full.
 */
int seal_message(struct seal *seal, const void *data, size_t length, seal_answered answered,
		 void *arg, struct seal_question **question, struct iocom_err *err);
/* Opens CREDENTIAL, LENGTH bytes as received. */
int seal_open_message(struct seal *seal, enum seal_lane lane, const void *credential, size_t length,
		      seal_answered answered, void *arg, struct seal_question **question,
		      struct iocom_err *err);
/* Calls credential_open (spec.h) for a job's start or attach. */
int seal_open_credential(struct seal *seal, enum seal_lane lane, const char *text,
			 seal_answered answered, void *arg, struct seal_question **question,
			 struct iocom_err *err);
/* ANSWERED will not be called.  NULL is fine; a question that was answered must not be named. */
void seal_forget(struct seal *seal, struct seal_question *question);

/* Returns true if these LENGTH bytes may be a credential: "MUNGE:", base64, ":". */
bool seal_may_be(const void *text, size_t length);

#endif
