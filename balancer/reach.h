/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Asks agents of other nodes, through the own one: each request is sealed here, as this user, for
 * the one node that it is for (user/user_ask.h).
 */
#ifndef IOCOM_REACH_H
#define IOCOM_REACH_H

#include <jansson.h>
#include <msgpack.h>
#include <stdbool.h>

#include "iocom/err.h"
#include "user/spec.h"

struct reach {
	const char *run_dir;
	int fd;
	json_t *known;	  /* what the agent knows; NULL: an older one, which cannot ask others */
	const char *self; /* this node's name, "" if unknown */
	const char *munge_socket; /* NULL: the default */
	unsigned wait_ms;	  /* how long reach_all waits for 64 nodes */
	uint64_t boot_id;	  /* the start of the agent that is asked; 0: any */
};

/* Returns 0 or negative errno with the reason in ERR; reach_close in any case. */
int reach_open(struct reach *reach, const char *run_dir, struct iocom_err *err);
void reach_close(struct reach *reach);
/* Whether NODE is another node that this one knows; ALIVE (may be NULL): and hears. */
bool reach_knows(const struct reach *reach, const char *node, bool *alive);

/*
 * Gets what NODE said: ANSWER, borrowed, or NULL and WHY, a clause ("did not answer in 1 s");
 * SILENT: it said nothing, so that what it knows is missing.
 */
typedef void reach_each(void *arg, const char *node, json_t *answer, const char *why, bool silent);
/*
 * Asks all other nodes that are known for REQUEST (a packed map), and calls EACH for each, also for
 * those that are not alive.  Returns 0 or negative errno: this agent, or munged here, does not
 * answer.
 */
int reach_all(struct reach *reach, const msgpack_sbuffer *request, reach_each *each, void *arg,
	      struct iocom_err *err);
/*
 * Asks NODE.  Returns 0 and ANSWER, which the caller owns; -EHOSTUNREACH: it is silent; -EIO: it
 * refused, with its sentence; or as reach_all.
 */
int reach_ask(struct reach *reach, const char *node, const msgpack_sbuffer *request,
	      json_t **answer, struct iocom_err *err);

/*
 * Turns what a person wrote into a job's whole name, for which it may ask all nodes (job_name.h).
 * Among several jobs of one number the only one that has not ended is meant.  Returns 0; -ENOENT;
 * -ENOTUNIQ with the candidates in ERR; or as reach_all.
 */
int reach_job(struct reach *reach, const char *text, char job[SPEC_JOB_MAX], struct iocom_err *err);
/*
 * Asks for REQUEST about JOB, a whole name or "last", where it was submitted: there, or this
 * agent, which may know it, too, if it ran here.  Returns as reach_ask, and as client_ask.
 */
int reach_home(struct reach *reach, const char *job, const msgpack_sbuffer *request,
	       json_t **answer, struct iocom_err *err);
/* Returns the other node that is asked about JOB, within REACH; NULL: this one. */
const char *reach_where(const struct reach *reach, const char *job, char home[64]);

#endif
