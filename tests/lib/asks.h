/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What programs ask a whole agent (whole.h) and are answered, and what other agents tell it;
 * the jobs that they speak of.  An answer that is not as expected fails the test.
 */
#ifndef TESTS_ASKS_H
#define TESTS_ASKS_H

#include <jansson.h>

#include "tests/lib/whole.h"

struct question {
	const char *op, *job; /* NULL: not in the request */
	bool now, all;
	int signal; /* 0: not in the request */
};

/* Sends a request as a program of UID on a connection of its own. Returns the connection. */
int asks(struct whole *whole, uid_t uid, struct question question);
/* Does the same on a connection that there is. */
void asks_on(struct whole *whole, int fd, struct question question);
#define ASKS(whole, uid, ...) asks(whole, uid, (struct question){__VA_ARGS__})

/* Checks that one answer has come, with this sentence.  Closes the connection. */
void reads_error(int fd, const char *sentence);
/* Checks that one answer has come and returns its document.  Closes the connection. */
json_t *reads_json(int fd);
/*
 * Does the same for the answer of `wait`: the job's name, its state and the value with which it
 * ended.
 */
void reads_job(int fd, const char *job, const char *state, int value);
/* Checks that nothing has come. */
void reads_nothing(int fd);

/* A job of UID is submitted here, later than those before, and runs at NODE. */
void submitted(struct whole *whole, const char *job, uid_t uid, const char *node);
/* The first attempt of a restartable one, which may be run again twice. */
void submitted_restartable(struct whole *whole, const char *job, uid_t uid, const char *node);
/* A job of UID that was submitted at the node "there" runs here. */
void accepted(struct whole *whole, const char *job, uid_t uid);

/*
 * Shows message ID of node FROM to PEERS, as control_answer.c does when it has opened the seal.
 * ANSWER (initialised, or NULL) gets the answer's body.  Returns the handler's result.
 */
int shows(struct peers *peers, const char *from, uint64_t id, const struct peer_request *request,
	  msgpack_sbuffer *answer);
/* Reports as NODE, for the first time, how JOB ended. Returns the handler's result. */
int tells_end(struct whole *whole, const char *node, const char *job, const char *state, int kind,
	      int value);

#endif
