/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The messages between agents, as structures and as bytes.  This is the one place where messages of
 * other agents are decoded: home and guest see only what has passed here.
 *
 *   type     from the home or the guest       asks                          answer
 *   admit    home to guest     { order }                     { grant, lease_ms, nonce, boot_id,
 *                                                              sequence, reason, text }
 *   started  guest to home     { start_ns, pid }             { ok, text }
 *   done     guest to home     { report, more: [ reports ] } { ok, text, taken }
 *   progress guest to home     the same, of jobs that run    { ok, text }
 *   kill     home to guest     { uid, signal }               { ok, text }
 *   renew    guest to home     { lease_ms }                  { ok, text }; not ok: fenced
 *   hello    any to any        { address, port }: subscribe to me    { ok, text }
 *   key      any to any        { }: the key of your bulletins        { ok, epoch, key, next }
 *   attach   any to home       { uid, hops: 0 }              { ok, text, job, later, node,
 *            any to guest      { uid, hops: 1 }                address, port, ticket, key }
 *   release  home to guest     { nonce }: a gang's part does not begin { ok, text }
 *   movable  home to guest     { }: may it move?             { ok, text, order }
 *   move     home to guest     { number, node, address, port,
 *                                nonce, key }: to there     { ok, text }
 *   held     guest to home     { number, there, failed, frozen_ms,
 *                                dump_ms, bytes, text }     { ok, text, decision }
 *   away     guest to home     { node, cause, here_ms, there_ms,
 *                                cost_ms }: let it go, to there   { ok, text }; ok: it moves
 *   user     any to any        { cred, ask }: a user's request        { ok, text, json }
 *                              (user/user_ask.h); CRED says whose
 */
#ifndef IOCOM_PEER_MESSAGE_H
#define IOCOM_PEER_MESSAGE_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/channel/bulletin_seal.h"
#include "agent/jobs/job_order.h"
#include "agent/jobs/job_report.h"
#include "iocom/vector.h"
#include "user/channel/secret.h"
#include "user/spec.h"

enum peer_type {
	PEER_ADMIT,
	PEER_STARTED,
	PEER_DONE,
	PEER_KILL,
	PEER_RENEW,
	PEER_HELLO,
	PEER_PROGRESS,
	PEER_KEY,
	PEER_ATTACH,
	PEER_USER,
	PEER_RELEASE,
	PEER_MOVABLE,
	PEER_MOVE,
	PEER_HELD,
	PEER_AWAY,
	PEER_TYPES
};

#define PEER_TEXT_MAX  256
#define PEER_ORDER_MAX (16u << 10)
/* The document of an answer to a user; with its seal it fits into one message. */
#define PEER_DOCUMENT_MAX (200u << 10)
/*
 * Values in a body: JOB_REPORTS_MAX reports; one of a job with all phases of its behaviour has
 * about 150.
 */
#define PEER_VALUES_MAX 8192

/* Where a job that runs is to go on. */
struct peer_move {
	uint64_t number; /* of the move at its home, from 1 */
	char node[IOCOM_NAME_MAX], address[IOCOM_ADDRESS_MAX];
	uint16_t port;		    /* of job streams */
	char nonce[SPEC_NONCE_MAX]; /* of its lease there */
	uint8_t key[SECRET_KEY];    /* of the stream */
};

/* A job that moves is held, and its home decides. */
struct peer_held {
	uint64_t number; /* 0: the guest does not know it any more */
	bool there;	 /* at the node where it comes, else where it was */
	/* Where it was: whether it could not move, and how long it has been frozen. */
	bool failed;
	uint64_t frozen_ms, dump_ms, bytes;
	char text[PEER_TEXT_MAX]; /* why it failed */
};

/* Why a job is to leave the node where it runs. */
struct peer_away {
	char node[IOCOM_NAME_MAX]; /* where to; "": home chooses */
	char cause[32];		   /* a policy's name, or "owner" */
	/* What a policy expects from now on: here, there, and of the move (MODEL 2.2, 2.4); or 0.
	 */
	double here_ms, there_ms, cost_ms;
};

/* What home decides of a job that is held. */
enum peer_decision { PEER_WAIT, PEER_STAY, PEER_LEAVE, PEER_GO, PEER_ABORT, PEER_DECISIONS };

/* A question.  It borrows what it points to, except after peer_request_unpack. */
struct peer_request {
	enum peer_type type;
	char from[IOCOM_NAME_MAX]; /* the asking node; set by the receiver */
	char job[SPEC_JOB_MAX];
	union {
		const struct job_order *order; /* PEER_ADMIT */
		struct {
			uint64_t start_ns; /* CLOCK_REALTIME */
			pid_t pid;
		} started;
		struct {
			const struct job_report *reports; /* the first is about `job` */
			size_t count;			  /* 1 to JOB_REPORTS_MAX */
		} done;					  /* PEER_DONE, PEER_PROGRESS */
		struct {
			uid_t uid;
			int signal; /* 0 to 64 */
		} kill;
		struct {
			uint32_t lease_ms;
		} renew;
		struct {
			char nonce[SPEC_NONCE_MAX]; /* of the lease; "": whichever there is */
		} release;
		struct peer_move move; /* PEER_MOVE */
		struct peer_held held; /* PEER_HELD */
		struct peer_away away; /* PEER_AWAY */
		struct {
			char address[IOCOM_ADDRESS_MAX];
			uint16_t port;
		} hello;
		struct {
			uid_t uid;
			unsigned hops; /* 0: to the job's home; 1: to where it runs */
		} attach;
		struct {
			const char *credential; /* a string that may be one */
			const void *ask;	/* what it binds, USER_ASK_MAX bytes at most */
			size_t length;
		} user;
	};
};

/* What the guest answers to PEER_ADMIT. */
struct peer_grant {
	bool granted;
	uint32_t lease_ms; /* the ordered lease of a restartable job */
	char nonce[SPEC_NONCE_MAX];
	uint64_t boot_id, sequence; /* the first vector of the guest that counts the job */
	char reason[24];	    /* path-missing, memory, owner, overloaded, ... */
	char text[PEER_TEXT_MAX];
};

/* What the guest answers to PEER_ATTACH, if OK, and its home passes on. */
struct peer_attach {
	char job[SPEC_JOB_MAX]; /* the last attempt's name */
	unsigned later;		/* how many attempts it is later than the one asked about */
	char node[IOCOM_NAME_MAX], address[IOCOM_ADDRESS_MAX];
	uint16_t port; /* of job streams */
	char ticket[SECRET_TICKET_MAX];
	uint8_t key[SECRET_KEY];
};

struct peer_answer {
	bool ok; /* for all types but PEER_ADMIT */
	char text[PEER_TEXT_MAX];
	int error;    /* if not OK: the negative errno; set in this node's own answers only */
	size_t taken; /* PEER_DONE: how many reports, from the first, home has written */
	union {
		struct peer_grant grant;
		struct peer_attach attach;
		struct {
			const char *packed; /* PEER_MOVABLE: borrowed; job_order_unpack reads it */
			size_t length;	    /* 1 to PEER_ORDER_MAX, if OK */
		} order;
		enum peer_decision decision; /* PEER_HELD */
		struct {
			const char *json; /* borrowed; checked by whoever reads it */
			size_t length;	  /* 1 to PEER_DOCUMENT_MAX, if OK */
		} user;
	};
	struct bulletin_key key; /* PEER_KEY */
	/* Who answered, as its session proves; set by the receiver, "" in this node's own answers.
	 */
	char from[IOCOM_NAME_MAX];
};

/* The type's name on the wire, such as "admit". */
const char *peer_type_name(enum peer_type type);
/* Returns 0, or -ENOSYS: unknown here; another version of iocom may know it. */
int peer_type_parse(const char *name, enum peer_type *type);

/* Packs the question's body.  Initialises OUT, which the caller destroys. */
void peer_request_pack(const struct peer_request *request, msgpack_sbuffer *out);
/*
 * Decodes BODY of a question about JOB from node FROM.  Returns 0: REQUEST owns memory
 * (peer_request_free); -EBADMSG: a value is missing, out of range, or differs from the message's
 * head (job, home); -ENOMEM.
 */
int peer_request_unpack(struct peer_request *request, enum peer_type type, const char *from,
			const char *job, const msgpack_object *body);
void peer_request_free(struct peer_request *request);

/* Packs the answer's body and adds it to OUT. */
void peer_answer_pack(enum peer_type type, const struct peer_answer *answer, msgpack_sbuffer *out);
/* Returns 0 or -EBADMSG: the answer is incomplete. */
int peer_answer_unpack(struct peer_answer *answer, enum peer_type type, const msgpack_object *body);

/* Makes ANSWER a refusal with a sentence that says why. */
__attribute__((format(printf, 2, 3))) void peer_answer_refuse(struct peer_answer *answer,
							      const char *fmt, ...);

#endif
