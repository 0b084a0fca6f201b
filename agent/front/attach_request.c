/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "attach": where a job is, so that its client can connect there. */
#include <stdio.h>
#include <string.h>

#include "agent/front/front.h"
#include "user/pack.h"

struct where {
	char job[SPEC_JOB_MAX], node[IOCOM_NAME_MAX];
	uid_t uid;
	bool found;
};

static void take_where(void *arg, const struct journal_job *job)
{
	struct where *w = arg;

	w->found = true;
	w->uid = job->uid;
	snprintf(w->job, sizeof(w->job), "%s", job->job);
	snprintf(w->node, sizeof(w->node), "%s", job->node ? job->node : "");
}

void attach_request(struct front *front, struct client *c, const msgpack_object *request)
{
	const struct matrix_entry *e = NULL;
	uid_t uid = client_who(c)->uid;
	char job[SPEC_JOB_MAX];
	struct where w = {0};
	int later = 0;
	bool local;

	if (unpack_str(request, "job", job, sizeof(job))) {
		client_error(c, "the request names no \"job\"");
		return;
	}
	/* Finds the last attempt of a restarted job, which belongs to the same user. */
	if (strcmp(job, "last"))
		later = journal_lease_last(front->journal, job, NULL);
	if (later < 0 || journal_find(front->journal, job, uid, take_where, &w)) {
		client_error(c, "cannot read the job journal in %s", front->base->set->state_dir);
		return;
	}
	if (!w.found || !w.node[0] || (uid != 0 && uid != w.uid)) {
		client_error(c,
			     "no job of yours named %s was submitted or ran at node %s; ask at its "
			     "home node, `iocom jobs --all` lists them",
			     job, front->base->set->name);
		return;
	}
	local = !strcmp(w.node, front->base->set->name);
	if (!local) {
		e = matrix_find(&front->peers->matrix, w.node);
		if (!e || !e->alive) {
			client_error(c, "node %s, where job %s was placed, is silent", w.node, job);
			return;
		}
	}
	client_json(c, json_pack("{s:s,s:i,s:s,s:s,s:i,s:b,s:s}", "job", w.job, "later", later,
				 "node", w.node, "address", local ? "" : e->vector.address, "port",
				 local ? 0 : e->vector.port + 2, "tls", front->peers->tls && !local,
				 "munge_socket", front->base->set->munge_socket));
}
