/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How far the readers of a connection are, without a look-up in socket storage.
 *
 *   streams        slots; a connection's slot is its cookie modulo their number
 *   stream_owners  slot -> cookie of the connection that took it
 *
 * The kernel gives a cookie to one socket only, and never again. While a connection has a slot, its
 * position is there and not in its storage; when it ends the position goes back, because what
 * has arrived can still be read. All of that happens under the lock of the socket, as does
 * each read, so a connection's slot changes under nobody's feet. A connection that finds its slot
 * taken uses its storage and tries again once a reading; `streams_taken` counts such tries.
 */
#ifndef IOCOM_STREAMS_BPF_H
#define IOCOM_STREAMS_BPF_H

struct stream_slot {
	u64 cookie; /* 0: the slot is free */
	struct socket_state state;
};
_Static_assert(sizeof(struct stream_slot) == 32, "half a line of the cache");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STREAMS);
	__type(key, u32);
	__type(value, struct stream_slot);
} streams SEC(".maps");

FOLD_MAP(stream_owners, u32, u64, STREAMS);

const volatile __u32 cfg_streams = STREAMS; /* a power of 2 */
__u64 streams_taken;

/* Returns the slot of a connection that has one. */
static __always_inline struct stream_slot *stream_slot_of(struct sock *sk)
{
	u64 cookie = sk->__sk_common.skc_cookie.counter;
	u32 index = cookie & (cfg_streams - 1);
	struct stream_slot *slot = bpf_map_lookup_elem(&streams, &index);

	return slot && cookie && slot->cookie == cookie ? slot : 0;
}

/* Takes the slot of COOKIE if it is free. Not static: verified once. */
__noinline int stream_enter(u64 cookie, struct socket_state *socket)
{
	u32 index = cookie & (cfg_streams - 1);
	struct stream_slot *slot = bpf_map_lookup_elem(&streams, &index);

	if (!slot || !socket || !cookie)
		return 0;
	if (bpf_map_update_elem(&stream_owners, &index, &cookie, BPF_NOEXIST)) {
		__sync_fetch_and_add(&streams_taken, 1);
		return 0;
	}
	slot->state = *socket;
	slot->cookie = cookie;
	return 0;
}

/* Brings what a slot knows back to the connection's storage, and frees the slot. */
static __always_inline void stream_leave(struct sock *sk)
{
	struct stream_slot *slot = stream_slot_of(sk);
	struct socket_state *socket;
	u32 index;

	if (!slot)
		return;
	socket = bpf_sk_storage_get(&sockets, sk, 0, 0);
	if (socket)
		*socket = slot->state;
	index = slot->cookie & (cfg_streams - 1);
	slot->cookie = 0;
	bpf_map_delete_elem(&stream_owners, &index);
}

/* Returns the state of a connection whose lock is held. */
static __always_inline struct socket_state *stream_of(struct sock *sk)
{
	struct stream_slot *slot = stream_slot_of(sk);
	struct socket_state *socket;
	u32 now = moves + 1;

	if (slot)
		return &slot->state;
	socket = socket_of(sk);
	if (!socket || socket->tried == now || !(socket->flags & SOCKET_ROUTED) ||
	    sk->__sk_common.skc_state == TCP_CLOSE)
		return socket;
	socket->tried = now;
	stream_enter(bpf_get_socket_cookie(sk), socket);
	slot = stream_slot_of(sk);
	return slot ? &slot->state : socket;
}

#endif
