/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "place": submits a job, or only asks where it would run. */
#include "agent/front/front.h"

static void submit_placed(void *client, json_t *answer, const char *why)
{
	if (answer)
		client_json(client, answer);
	else
		client_error(client, "%s", why);
}

void submit_request(struct front *front, struct client *client, const msgpack_object *request)
{
	home_place(front->home, client_who(client)->uid, request, submit_placed, client);
}
