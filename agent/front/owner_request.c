/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "owner": shows or changes the rules of this node's owner, for its own users and, through
 * forwarded.c, for those of other nodes.
 */
#include <string.h>

#include "agent/front/front.h"
#include "agent/owner/owner_part.h"
#include "user/pack.h"

static bool owner_request_read(const msgpack_object *request, struct owner_ask *ask)
{
	const msgpack_object *packed = unpack_get(request, "packed");

	return packed && packed->type == MSGPACK_OBJECT_BIN &&
	       !owner_ask_unpack(ask, packed->via.bin.ptr, packed->via.bin.size);
}

void owner_request_from(struct front *front, struct client *c, const msgpack_object *request,
			const char *from, bool bound)
{
	uid_t uid = client_who(c)->uid;
	struct iocom_err err = {0};
	json_t *shown = NULL;
	struct owner_ask ask;
	int rc;

	if (!front->owner || !owner_request_read(request, &ask)) {
		client_error(c, "the request says nothing to an owner that this agent understands");
		return;
	}
	if (*from && !bound && !owner_ask_is_show(&ask))
		rc = owner_part_refuse(front->owner, uid, from,
				       "a change asked from another node must name the start of "
				       "the agent that it is for",
				       &err);
	else
		rc = owner_part_obey(front->owner, &ask, uid, from, &shown, &err);
	if (rc)
		client_error(c, "%s", err.text);
	else
		client_json(c, shown);
}

void owner_request(struct front *front, struct client *c, const msgpack_object *request)
{
	owner_request_from(front, c, request, "", true);
}
