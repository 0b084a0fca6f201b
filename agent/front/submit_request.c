/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "place": submits a job, or only asks where it would run.  A request that brings the job's
 * spec needs no second message if the job runs here: it begins with the answer.
 */
#include "agent/front/front.h"
#include "balancer/view/placement.h"
#include "user/pack.h"

/* Returns true if ANSWER gives the job a place at this node: there is no address to connect to. */
static bool submit_is_here(const json_t *answer)
{
	const char *address = json_string_value(json_object_get(answer, "address"));

	return json_object_get(answer, "nonce") && address && !*address;
}

static void submit_placed(void *client, json_t *answer, const char *why)
{
	if (answer && client_has_spec(client) && submit_is_here(answer))
		client_begin(client, answer);
	else if (answer)
		client_json(client, answer);
	else
		client_error(client, "%s", why);
}

/* What is no spec is refused with the rest of the request (placement_ask.c). */
static bool submit_keep_spec(struct client *client, const msgpack_object *request)
{
	const msgpack_object *spec = unpack_get(request, "spec");

	if (!spec || spec->type != MSGPACK_OBJECT_BIN || spec->via.bin.size > PLACEMENT_SPEC_MAX)
		return client_keep_spec(client, NULL, 0) == 0;
	return client_keep_spec(client, spec->via.bin.ptr, spec->via.bin.size) == 0;
}

void submit_request(struct front *front, struct client *client, const msgpack_object *request)
{
	if (gangs_asked(request))
		gangs_place(front->gangs, client_who(client)->uid, request, submit_placed, client);
	else if (submit_keep_spec(client, request))
		home_place(front->home, client_who(client)->uid, request, submit_placed, client);
	else
		client_error(client, "no memory for the job: your connections to the agent hold "
				     "too much, or there is none");
}
