/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See greeting_head.h. */
#include "agent/gate/greeting_head.h"

#include <errno.h>
#include <msgpack.h>

#include "user/channel/version.h"
#include "user/pack.h"

int greeting_parts(const void *message, size_t length, const uint8_t **head, size_t *head_length,
		   const uint8_t **noise)
{
	const uint8_t *at = message;
	size_t n;

	if (length < 3 + NOISE_HANDSHAKE || length > GREETING_HELLO_MAX || at[0] != SESSION_HELLO)
		return -EBADMSG;
	n = (size_t)at[1] << 8 | at[2];
	if (n > GREETING_HEAD_MAX || length != 3 + n + NOISE_HANDSHAKE)
		return -EBADMSG;
	*head = at + 3;
	*head_length = n;
	*noise = at + 3 + n;
	return 0;
}

static int greeting_head_take(struct greeting_head *head, const uint8_t *at, size_t length)
{
	const msgpack_object *cred;
	msgpack_unpacked map;
	int rc = 0;

	if (unpack_map(&map, at, length))
		return -EBADMSG;
	cred = unpack_get(&map.data, "cred");
	if (unpack_u64(&map.data, "min", &head->least) ||
	    unpack_u64(&map.data, "max", &head->most) || !cred || cred->type != MSGPACK_OBJECT_STR)
		rc = -EBADMSG;
	if (!rc) { /* msgpack does not copy what it unpacks */
		head->credential = cred->via.str.ptr;
		head->length = cred->via.str.size;
	}
	msgpack_unpacked_destroy(&map);
	return rc;
}

int greeting_heard(struct greeting_head *out, const void *message, size_t length,
		   struct iocom_err *err)
{
	const uint8_t *at, *noise;
	size_t head_length;

	if (greeting_parts(message, length, &at, &head_length, &noise) ||
	    greeting_head_take(out, at, head_length))
		return iocom_err_set(err, -EBADMSG, "it is not a message of iocom");
	if (!channel_version_choose(out->least, out->most))
		return iocom_err_set(err, -EPROTO,
				     "the peer speaks versions %llu to %llu of the protocol "
				     "between nodes, this node %u to %u; install neighbouring "
				     "versions of iocom on all nodes",
				     (unsigned long long)out->least, (unsigned long long)out->most,
				     CHANNEL_VERSION_MIN, CHANNEL_VERSION_MAX);
	return 0;
}
