/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See start_message.h. */
#include "agent/guest/start_message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/pack.h"

static int start_message_take(struct start_message *m, const msgpack_object *map,
			      struct iocom_err *err)
{
	const msgpack_object *cred = unpack_get(map, "cred");
	const msgpack_object *bin = unpack_get(map, "spec");

	if (!bin || bin->type != MSGPACK_OBJECT_BIN || bin->via.bin.size > SPEC_PACKED_MAX)
		return iocom_err_set(err, -EBADMSG, "the start message holds no job");
	m->length = bin->via.bin.size;
	m->packed = malloc(m->length + 1);
	if (cred && cred->type == MSGPACK_OBJECT_STR) {
		m->credential = strndup(cred->via.str.ptr, cred->via.str.size);
		if (!m->credential)
			return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	if (!m->packed)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	if (m->length)
		memcpy(m->packed, bin->via.bin.ptr, m->length);
	return spec_peek(&m->spec, m->packed, m->length, err);
}

int start_message_unpack(struct start_message *m, const void *payload, uint32_t length,
			 struct iocom_err *err)
{
	msgpack_unpacked map;
	int rc = unpack_map(&map, payload, length);

	*m = (struct start_message){0};
	if (rc)
		return iocom_err_set(err, rc,
				     rc == -E2BIG ? "the start message has too many values"
						  : "the start message is not a MessagePack map");
	rc = start_message_take(m, &map.data, err);
	msgpack_unpacked_destroy(&map);
	if (rc)
		start_message_free(m);
	return rc;
}

int start_message_name(struct start_message *m, const void *spec, uint32_t length, const char *job,
		       const char *node, const char *nonce, struct iocom_err *err)
{
	size_t packed = 0;
	int rc;

	*m = (struct start_message){0};
	rc = spec_unpack(&m->spec, spec, length, err);
	if (rc)
		return rc;
	snprintf(m->spec.job, sizeof(m->spec.job), "%s", job);
	snprintf(m->spec.node, sizeof(m->spec.node), "%s", node);
	snprintf(m->spec.nonce, sizeof(m->spec.nonce), "%s", nonce);
	rc = spec_pack(&m->spec, &m->packed, &packed, err);
	m->length = (uint32_t)packed;
	if (rc)
		start_message_free(m);
	return rc;
}

int start_message_open(struct start_message *m, struct iocom_err *err)
{
	if (m->spec.argv)
		return 0; /* it was named here */
	return spec_unpack(&m->spec, m->packed, m->length, err);
}

void start_message_free(struct start_message *m)
{
	spec_free(&m->spec);
	free(m->packed);
	free(m->credential);
	*m = (struct start_message){0};
}
