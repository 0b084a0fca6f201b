/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The content of a sealed control message (control.h): a head, and a body packed separately. */
#ifndef IOCOM_MESSAGE_H
#define IOCOM_MESSAGE_H

#include "agent/cluster/control.h"

struct message {
	struct control_head head;
	msgpack_unpacked map, body; /* both maps; they point into the unpacked data */
};

void message_pack(const struct control_head *head, const msgpack_sbuffer *body,
		  msgpack_sbuffer *out);
/*
 * Reads DATA, which must stay until message_free.  Returns 0; -EBADMSG with the reason in
 * ERR, and nothing to free.
 */
int message_unpack(struct message *message, const void *data, size_t length, struct iocom_err *err);
void message_free(struct message *message);

#endif
