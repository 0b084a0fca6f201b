/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See peer_move.h. */
#include "agent/cluster/peer_move.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "user/pack.h"

void peer_move_pack(const struct peer_move *m, msgpack_packer *pk, msgpack_sbuffer *out)
{
	pack_begin(pk, out, 6);
	pack_u64(pk, "number", m->number);
	pack_str(pk, "node", m->node);
	pack_str(pk, "address", m->address);
	pack_u64(pk, "port", m->port);
	pack_str(pk, "nonce", m->nonce);
	pack_bin(pk, "key", m->key, sizeof(m->key));
}

void peer_held_pack(const struct peer_held *h, msgpack_packer *pk, msgpack_sbuffer *out)
{
	pack_begin(pk, out, 7);
	pack_u64(pk, "number", h->number);
	pack_bool(pk, "there", h->there);
	pack_bool(pk, "failed", h->failed);
	pack_u64(pk, "frozen_ms", h->frozen_ms);
	pack_u64(pk, "dump_ms", h->dump_ms);
	pack_u64(pk, "bytes", h->bytes);
	pack_str(pk, "text", h->text);
}

int peer_move_unpack(struct peer_move *m, const msgpack_object *body)
{
	const msgpack_object *key = unpack_get(body, "key");
	uint64_t port;

	if (unpack_u64(body, "number", &m->number) || !m->number ||
	    unpack_str(body, "node", m->node, sizeof(m->node)) || !m->node[0] ||
	    unpack_str(body, "address", m->address, sizeof(m->address)) || !m->address[0] ||
	    unpack_u64(body, "port", &port) || port < 1 || port > UINT16_MAX ||
	    unpack_str(body, "nonce", m->nonce, sizeof(m->nonce)) || !key ||
	    key->type != MSGPACK_OBJECT_BIN || key->via.bin.size != sizeof(m->key))
		return -EBADMSG;
	m->port = (uint16_t)port;
	memcpy(m->key, key->via.bin.ptr, sizeof(m->key));
	return 0;
}

int peer_held_unpack(struct peer_held *h, const msgpack_object *body)
{
	return unpack_u64(body, "number", &h->number) || unpack_bool(body, "there", &h->there) ||
			       unpack_bool(body, "failed", &h->failed) ||
			       unpack_u64(body, "frozen_ms", &h->frozen_ms) ||
			       unpack_u64(body, "dump_ms", &h->dump_ms) ||
			       unpack_u64(body, "bytes", &h->bytes) ||
			       unpack_str(body, "text", h->text, sizeof(h->text))
		       ? -EBADMSG
		       : 0;
}

void peer_away_pack(const struct peer_away *a, msgpack_packer *pk, msgpack_sbuffer *out)
{
	pack_begin(pk, out, 5);
	pack_str(pk, "node", a->node);
	pack_str(pk, "cause", a->cause);
	pack_f64(pk, "here_ms", a->here_ms);
	pack_f64(pk, "there_ms", a->there_ms);
	pack_f64(pk, "cost_ms", a->cost_ms);
}

static bool away_is_time(double ms)
{
	return isfinite(ms) && ms >= 0;
}

int peer_away_unpack(struct peer_away *a, const msgpack_object *body)
{
	return unpack_str(body, "node", a->node, sizeof(a->node)) ||
			       unpack_str(body, "cause", a->cause, sizeof(a->cause)) ||
			       !a->cause[0] || unpack_f64(body, "here_ms", &a->here_ms) ||
			       unpack_f64(body, "there_ms", &a->there_ms) ||
			       unpack_f64(body, "cost_ms", &a->cost_ms) ||
			       !away_is_time(a->here_ms) || !away_is_time(a->there_ms) ||
			       !away_is_time(a->cost_ms)
		       ? -EBADMSG
		       : 0;
}
