/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A client at a third node wants to attach to a job that was submitted here: this node knows where
 * the job is, and passes the question on to that node, which gives a ticket for one stream.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/home/home_own.h"

struct forward {
	struct home *home;
	uint64_t ticket; /* of the question to us */
	unsigned later;
	char job[SPEC_JOB_MAX], node[IOCOM_NAME_MAX];
};

static void home_attach_answered(void *arg, int rc, const struct peer_answer *from_node,
				 const char *why)
{
	struct forward *f = arg;
	struct home *home = f->home;
	struct peer_answer answer = {0};

	if (!rc) {
		answer = *from_node;
		answer.attach.later = f->later;
	} else {
		peer_answer_refuse(&answer,
				   "node %s, where job %s was placed, gives no ticket: %.80s",
				   f->node, f->job, why);
	}
	if (rc != -ECANCELED)
		home->ports->answer(home->ports->ask_arg, f->ticket, PEER_ATTACH, &answer);
	explicit_bzero(&answer, sizeof(answer));
	free(f);
}

/* Asks the node where F's job is.  Returns 0: home_attach_answered is called. */
static int home_attach_forward(struct forward *f, uid_t uid, struct iocom_err *err)
{
	struct home *home = f->home;
	struct peer_request request = {.type = PEER_ATTACH, .attach = {.uid = uid, .hops = 1}};
	const struct home_ports *ports = home->ports;
	bool own = !strcmp(f->node, home->base->set->name);
	const struct matrix_entry *e = matrix_find(home->matrix, f->node);

	memcpy(request.job, f->job, sizeof(request.job));
	if (!own && (!e || !e->alive))
		return iocom_err_set(err, -EHOSTUNREACH,
				     "node %s, where job %s was placed, is silent", f->node,
				     f->job);
	return ports->ask(ports->ask_arg, f->node, own ? "" : e->vector.address,
			  own ? 0 : e->vector.port, &request, home_attach_answered, f, err);
}

/* Finds where the job is.  Returns 0, or negative errno with the reason in ERR. */
static int home_attach_find(struct forward *f, uid_t uid, struct iocom_err *err)
{
	const struct home *home = f->home;
	char class_name[64];
	bool ended;
	uid_t owner = 0;
	int rc = journal_lease_last(home->journal, f->job, err);

	if (rc >= 0) {
		f->later = (unsigned)rc;
		rc = journal_home_get(home->journal, f->job, f->node, &owner, class_name, &ended,
				      err);
	}
	/* Which jobs exist is secret from other users: all cases get the same sentence. */
	if (rc == -ENOENT || (!rc && (!f->node[0] || (uid != 0 && uid != owner))))
		return iocom_err_set(err, -ENOENT,
				     "no job of yours named %s was submitted at node %s", f->job,
				     home->base->set->name);
	return rc;
}

int home_on_attach(void *arg, const struct peer_request *request, uint64_t ticket,
		   struct peer_answer *answer)
{
	struct home *home = arg;
	struct forward *f = calloc(1, sizeof(*f));
	struct iocom_err err = {0};
	int rc;

	if (!f) {
		peer_answer_refuse(answer, "out of memory");
		return 0;
	}
	f->home = home;
	f->ticket = ticket;
	memcpy(f->job, request->job, sizeof(f->job));
	rc = home_attach_find(f, request->attach.uid, &err);
	if (!rc)
		rc = home_attach_forward(f, request->attach.uid, &err);
	if (!rc)
		return PEERS_LATER;
	free(f);
	peer_answer_refuse(answer, "%s", err.text);
	return 0;
}
