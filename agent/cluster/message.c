/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See message.h. */
#include "agent/cluster/message.h"

#include <errno.h>
#include <string.h>

#include "agent/cluster/peer_message.h"
#include "user/pack.h"

void message_pack(const struct control_head *head, const msgpack_sbuffer *body,
		  msgpack_sbuffer *out)
{
	msgpack_packer pk;

	pack_begin(&pk, out, 7);
	pack_str(&pk, "type", head->type);
	pack_str(&pk, "from", head->from);
	pack_str(&pk, "to", head->to);
	pack_str(&pk, "job", head->job);
	pack_u64(&pk, "id", head->id);
	pack_u64(&pk, "at", head->at_ms);
	pack_bin(&pk, "body", body->data, body->size);
}

static int take_head(const msgpack_object *map, struct control_head *head, struct iocom_err *err)
{
	if (unpack_str(map, "type", head->type, sizeof(head->type)) ||
	    unpack_str(map, "from", head->from, sizeof(head->from)) ||
	    unpack_str(map, "to", head->to, sizeof(head->to)) ||
	    unpack_str(map, "job", head->job, sizeof(head->job)) ||
	    unpack_u64(map, "id", &head->id) || unpack_u64(map, "at", &head->at_ms) ||
	    head->at_ms > INT64_MAX)
		return iocom_err_set(err, -EBADMSG, "incomplete message");
	return 0;
}

int message_unpack(struct message *m, const void *data, size_t length, struct iocom_err *err)
{
	const msgpack_object *body;
	int rc;

	*m = (struct message){0};
	if (unpack_map(&m->map, data, length))
		return iocom_err_set(err, -EBADMSG, "not a message of iocom");
	rc = take_head(&m->map.data, &m->head, err);
	body = unpack_get(&m->map.data, "body");
	if (!rc &&
	    (!body || body->type != MSGPACK_OBJECT_BIN ||
	     unpack_map_of(&m->body, body->via.bin.ptr, body->via.bin.size, PEER_VALUES_MAX)))
		rc = iocom_err_set(err, -EBADMSG, "message without a body");
	if (rc)
		msgpack_unpacked_destroy(&m->map);
	return rc;
}

void message_free(struct message *m)
{
	msgpack_unpacked_destroy(&m->body);
	msgpack_unpacked_destroy(&m->map);
}
