/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The questions about moves of jobs, as bytes; a part of peer_message.c, which calls these. */
#ifndef IOCOM_PEER_MOVE_H
#define IOCOM_PEER_MOVE_H

#include "agent/cluster/peer_message.h"

/* These begin OUT, and the decoders return 0 or -EBADMSG. */
void peer_move_pack(const struct peer_move *move, msgpack_packer *pk, msgpack_sbuffer *out);
int peer_move_unpack(struct peer_move *move, const msgpack_object *body);
void peer_held_pack(const struct peer_held *held, msgpack_packer *pk, msgpack_sbuffer *out);
int peer_held_unpack(struct peer_held *held, const msgpack_object *body);
void peer_away_pack(const struct peer_away *away, msgpack_packer *pk, msgpack_sbuffer *out);
int peer_away_unpack(struct peer_away *away, const msgpack_object *body);

#endif
