/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See user_ask.h. */
#include "user/user_ask.h"

#include <errno.h>
#include <string.h>

#include "user/pack.h"

#define USER_ASK_VERSION 2

int user_ask_pack(const struct user_ask *ask, void **data, size_t *length)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	if (ask->length > USER_ASK_REQUEST_MAX)
		return -E2BIG;
	pack_begin(&pk, &buffer, 6);
	pack_u64(&pk, "v", USER_ASK_VERSION);
	pack_str(&pk, "node", ask->node);
	pack_str(&pk, "nonce", ask->nonce);
	pack_u64(&pk, "boot_id", ask->boot_id);
	pack_u64(&pk, "at_s", ask->at_s);
	pack_bin(&pk, "request", ask->request, ask->length);
	*length = buffer.size;
	*data = msgpack_sbuffer_release(&buffer);
	return *data ? 0 : -ENOMEM;
}

static int user_ask_take(struct user_ask *ask, const msgpack_object *map, struct iocom_err *err)
{
	const msgpack_object *request = unpack_get(map, "request");
	uint64_t version;

	if (unpack_u64(map, "v", &version) || version != USER_ASK_VERSION)
		return iocom_err_set(err, -EPROTO,
				     "the request comes from another version of iocom; install "
				     "the same one on all nodes");
	if (unpack_str(map, "node", ask->node, sizeof(ask->node)) || !ask->node[0] ||
	    unpack_str(map, "nonce", ask->nonce, sizeof(ask->nonce)) || strlen(ask->nonce) != 32 ||
	    strspn(ask->nonce, "0123456789abcdef") != 32 ||
	    unpack_u64(map, "boot_id", &ask->boot_id) || unpack_u64(map, "at_s", &ask->at_s) ||
	    !request || request->type != MSGPACK_OBJECT_BIN || !request->via.bin.size ||
	    request->via.bin.size > USER_ASK_REQUEST_MAX)
		return iocom_err_set(err, -EBADMSG, "the user's request is malformed");
	ask->request = request->via.bin.ptr;
	ask->length = request->via.bin.size;
	return 0;
}

int user_ask_unpack(struct user_ask *ask, const void *data, size_t length, struct iocom_err *err)
{
	const char *first = data;
	msgpack_unpacked message;
	int rc;

	*ask = (struct user_ask){0};
	if (length > USER_ASK_MAX || unpack_map(&message, data, length))
		return iocom_err_set(err, -EBADMSG, "the user's request is malformed");
	rc = user_ask_take(ask, &message.data, err);
	/* The library does not copy bytes: they are still there when MESSAGE is not. */
	if (!rc && ((const char *)ask->request < first ||
		    (const char *)ask->request + ask->length > first + length))
		rc = iocom_err_set(err, -EBADMSG, "the user's request is malformed");
	msgpack_unpacked_destroy(&message);
	return rc;
}
