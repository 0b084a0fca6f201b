/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "migrate": home moves a job that was submitted here to another node.  The client hears
 * that this has begun, and asks "explain" what becomes of it.
 */
#include <errno.h>

#include "agent/front/front.h"
#include "agent/home/home_move.h"
#include "user/pack.h"

json_t *migrate_json(const struct journal_move *move)
{
	json_t *out = json_pack("{s:I,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:s}", "number",
				(json_int_t)move->number, "from", move->source, "to", move->target,
				"state", move->state, "asked_ns", (json_int_t)move->asked_ns,
				"decided_ns", (json_int_t)move->decided_ns, "frozen_ms",
				(json_int_t)move->frozen_ms, "dump_ms", (json_int_t)move->dump_ms,
				"bytes", (json_int_t)move->bytes, "why", move->text);

	if (out && *move->cause) /* nobody asked for it */
		json_object_set_new(out, "cause", json_string(move->cause));
	if (out && move->here_ms > 0)
		json_object_update_new(out, json_pack("{s:f,s:f,s:f}", "here_ms", move->here_ms,
						      "there_ms", move->there_ms, "cost_ms",
						      move->cost_ms));
	return out;
}

static void migrate_moved(void *arg, const struct journal_move *move, const char *why)
{
	struct client *c = arg;

	if (!move)
		client_error(c, "it does not move: %s", why);
	else
		client_json(c, migrate_json(move));
}

void migrate_forget(struct front *front, const struct client *client)
{
	home_move_forget(front->home, client);
}

void migrate_request(struct front *front, struct client *c, const msgpack_object *request)
{
	char job[SPEC_JOB_MAX], node[IOCOM_NAME_MAX] = "";
	uid_t uid = client_who(c)->uid;
	struct iocom_err err = {0};
	int rc;

	if (unpack_str(request, "job", job, sizeof(job)) ||
	    (unpack_get(request, "node") && unpack_str(request, "node", node, sizeof(node)))) {
		client_error(c, "the request names no \"job\", or its \"node\" is no name");
		return;
	}
	(void)journal_last(front->journal, uid, job);
	rc = home_move(front->home, uid, job, node, migrate_moved, c, &err);
	if (rc == -EPERM)
		client_log_foreign(c, "migrate", job);
	if (rc)
		client_error(c, "%s", err.text);
}
