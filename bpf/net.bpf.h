/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP. Sent: the result of each send, where every path (send, write, sendfile, io_uring) ends.
 * Received: how far the reader's position in the stream moved since the last event, which is
 * exact for peeks, waits and splices. Socket storage holds the last position,
 * or a slot of `streams` (streams.bpf.h). It is set when the
 * connection is established; for older sockets, when counting begins.
 *
 * An MPTCP socket has no such position: its receive results count, without peeks.
 *
 * Traffic that never leaves the host is counted apart, at both ends. Sockets that the kernel
 * made for itself (network file systems) are not counted.
 */
#ifndef IOCOM_NET_BPF_H
#define IOCOM_NET_BPF_H

#define AF_INET		2
#define AF_INET6	10
#define IPPROTO_TCP	6
#define IPPROTO_MPTCP	262
#define TCP_ESTABLISHED 1
#define TCP_CLOSE	7
#define IFF_LOOPBACK	8
#define SOCK_DONE	(1 << 1) /* in skc_flags: the peer has closed its end */
#define MSG_PEEK	2
#define MSG_ERRQUEUE	0x2000

enum socket_flags {
	SOCKET_ROUTED = 1, /* we know whether the peer is local */
	SOCKET_LOCAL = 2,
	SOCKET_KERNEL = 4,
};

struct socket_state {
	u32 position;
	u32 flags;
	u64 remote; /* generation of the slot << 32 | slot */
	u32 tried;  /* `moves` + 1 when it last asked for a slot in `streams` */
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct socket_state);
} sockets SEC(".maps");

#include "remotes.bpf.h"

static __always_inline bool is_tcp(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family, protocol = sk->sk_protocol;

	return (family == AF_INET || family == AF_INET6) &&
	       (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP);
}

static __always_inline bool is_local6(struct sock *sk)
{
	const __be32 *to = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32;
	const __be32 *from = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32;

	if (!to[0] && !to[1]) {
		if (to[2] == __builtin_bswap32(0xffff) && (to[3] & 0xff) == 127)
			return true; /* 127/8 mapped */
		if (!to[2] && to[3] == __builtin_bswap32(1))
			return true; /* ::1 */
	}
	return to[0] == from[0] && to[1] == from[1] && to[2] == from[2] && to[3] == from[3];
}

/* Returns true if the two addresses alone show that the peer is on this host. */
static __always_inline bool is_local(struct sock *sk)
{
	__be32 to = sk->__sk_common.skc_daddr;

	if (sk->__sk_common.skc_family == AF_INET6)
		return is_local6(sk);
	return (to & 0xff) == 127 || to == sk->__sk_common.skc_rcv_saddr;
}

/* Returns SOCKET_ROUTED if we can tell where the peer is, with SOCKET_LOCAL if it is on this host
 * and in this network namespace. */
static __always_inline u32 locality(struct sock *sk)
{
	struct dst_entry *route;
	struct sock *flow = sk;

	if (is_local(sk))
		return SOCKET_ROUTED | SOCKET_LOCAL;
	/* Between two addresses of this host the route uses the loopback device. */
	if (sk->sk_protocol == IPPROTO_MPTCP && bpf_core_type_exists(struct mptcp_sock))
		flow = BPF_CORE_READ((struct mptcp_sock *)sk, first);
	route = BPF_CORE_READ(flow, sk_dst_cache);
	if (!route)
		return 0;
	if (BPF_CORE_READ(route, dev, flags) & IFF_LOOPBACK)
		return SOCKET_ROUTED | SOCKET_LOCAL;
	return SOCKET_ROUTED;
}

/* Returns the socket's state. A new one starts at the socket's present position. */
static __noinline struct socket_state *socket_meet(struct sock *sk)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct socket_state fresh = {}, *socket;

	if (tcp)
		fresh.position = tcp->copied_seq;
	if (BPF_CORE_READ_BITFIELD_PROBED(sk, sk_kern_sock))
		fresh.flags = SOCKET_KERNEL | SOCKET_ROUTED;
	socket = bpf_sk_storage_get(&sockets, sk, &fresh, BPF_SK_STORAGE_GET_F_CREATE);
	if (!socket)
		count_drop(DROP_SOCKETS);
	else if (!(socket->flags & SOCKET_ROUTED))
		socket->flags |= locality(sk);
	return socket;
}

static __always_inline struct socket_state *socket_of(struct sock *sk)
{
	struct socket_state *socket = bpf_sk_storage_get(&sockets, sk, 0, 0);

	if (socket && (socket->flags & SOCKET_ROUTED))
		return socket;
	return socket_meet(sk);
}

#include "streams.bpf.h"
#include "pairs.bpf.h"

/* Returns where to count; NULL: this task is not counted. */
static __always_inline struct talk *talker(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct talk_slot *slot = talk_slot_of(task->pid);

	if (slot && slot->pid == (u32)task->pid && slot->start == task->start_boottime &&
	    slot->talk.looked == moves + 1)
		return &slot->talk;
	if ((task->flags & PF_KTHREAD) || !current_in_scope())
		return 0;
	return talk_current(task);
}

/* Sent data for which the addresses tell all, so that it needs no socket storage. */
static __always_inline void count_local(struct sock *sk, u64 bytes)
{
	struct talk *talk;

	if (BPF_CORE_READ_BITFIELD(sk, sk_kern_sock))
		return;
	talk = talker();
	if (!talk)
		return;
	talk->local_bytes += bytes;
	if (talk->gang)
		pair_note(sk, talk->cgid, bytes, PAIR_SENT | PAIR_INSIDE);
}

static __always_inline void count_sent(struct sock *sk, u64 bytes)
{
	struct socket_state *socket;
	struct talk *talk;
	struct remote_slot *slot;

	if (!is_tcp(sk))
		return;
	if (is_local(sk)) {
		count_local(sk, bytes);
		return;
	}
	talk = talker();
	if (!talk)
		return;
	socket = socket_of(sk);
	if (socket && (socket->flags & SOCKET_KERNEL))
		return;
	if (talk->gang)
		pair_note(sk, talk->cgid, bytes,
			  socket && (socket->flags & SOCKET_LOCAL) ? PAIR_SENT | PAIR_INSIDE
								   : PAIR_SENT);
	if (socket && (socket->flags & SOCKET_LOCAL)) {
		talk->local_bytes += bytes;
		return;
	}
	talk->sent_bytes += bytes;
	talk->sent_messages++;
	slot = socket ? remote_of(sk, socket, talk->cgid) : 0;
	if (slot) {
		__sync_fetch_and_add(&slot->sent_bytes, bytes);
		__sync_fetch_and_add(&slot->sent_messages, 1);
	}
}

/* Counts bytes, and notes in TALK which slot a message would count for. */
static __always_inline void count_received(struct sock *sk, struct socket_state *socket,
					   struct talk *talk, u64 bytes)
{
	struct remote_slot *slot;

	if (talk->gang && !(socket->flags & SOCKET_KERNEL))
		pair_note(sk, talk->cgid, bytes, socket->flags & SOCKET_LOCAL ? PAIR_INSIDE : 0);
	if (socket->flags & (SOCKET_LOCAL | SOCKET_KERNEL)) {
		if (socket->flags & SOCKET_LOCAL)
			talk->local_bytes += bytes;
		talk->arrived = 0;
		return;
	}
	talk->received_bytes += bytes;
	slot = remote_of(sk, socket, talk->cgid);
	if (slot)
		__sync_fetch_and_add(&slot->received_bytes, bytes);
	talk->arrived = slot ? (u32)socket->remote + 1 : ARRIVED_NOWHERE;
}

/* Counts a successful receive call. Call it after its bytes were counted. */
static __always_inline void count_message(struct talk *talk)
{
	u32 index = talk->arrived - 1;
	struct remote_slot *slot;

	if (!talk->arrived)
		return;
	talk->arrived = 0;
	talk->received_messages++;
	slot = bpf_map_lookup_elem(&remotes, &index);
	if (slot)
		__sync_fetch_and_add(&slot->received_messages, 1);
}

static __always_inline void received(struct sock *sk, u64 bytes, int flags)
{
	struct socket_state *socket;
	struct talk *talk;

	if ((flags & (MSG_PEEK | MSG_ERRQUEUE)) || !is_tcp(sk))
		return;
	/* rcv_space counted all of it: messages inside the host are not counted. */
	if (sk->sk_protocol == IPPROTO_TCP && is_local(sk))
		return;
	talk = talker();
	if (!talk)
		return;
	if (sk->sk_protocol == IPPROTO_MPTCP) {
		socket = socket_of(sk);
		if (socket)
			count_received(sk, socket, talk, bytes);
	}
	if (talk->gang && talk->arrived)
		pair_note(sk, talk->cgid, 0, PAIR_MESSAGE);
	count_message(talk);
}

static __always_inline int on_send_length(struct sock *sk, int result)
{
	if (result > 0)
		count_sent(sk, result);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(send_length, struct sock *sk, int result)
{
	KEEP_CPU(INSIDE_SEND, on_send_length(sk, result));
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(send_length_again, struct sock *sk, int result)
{
	IF_SKIPPED(INSIDE_SEND, on_send_length(sk, result));
	return 0;
}

/* Counts calls, not bytes: a peek's bytes come again, and a splice's never come here. */
static __always_inline int on_recv_length(struct sock *sk, int result, int flags)
{
	if (result > 0)
		received(sk, result, flags);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(recv_length, struct sock *sk, int result, int flags)
{
	KEEP_CPU(INSIDE_RECEIVE, on_recv_length(sk, result, flags));
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(recv_length_again, struct sock *sk, int result, int flags)
{
	IF_SKIPPED(INSIDE_RECEIVE, on_recv_length(sk, result, flags));
	return 0;
}

/* Returns the tcp_sock of a socket in TCP's own receive path. */
static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	if (bpf_rdonly_cast && cfg_types[CAST_TCP_SOCK])
		return bpf_rdonly_cast(sk, cfg_types[CAST_TCP_SOCK]);
	return bpf_skc_to_tcp_sock(sk);
}

static __always_inline int on_rcv_space(struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct socket_state *socket;
	struct talk *talk;
	u32 position, moved;

	if (!tcp)
		return 0;
	socket = stream_of(sk);
	if (!socket)
		return 0;
	position = tcp->copied_seq;
	moved = position - socket->position;
	if (!moved)
		return 0;
	socket->position = position;
	/* A splice steps over the end of the stream, which is not a byte. */
	if (position == tcp->rcv_nxt && (sk->__sk_common.skc_flags & SOCK_DONE))
		moved--;
	talk = talker();
	if (talk)
		count_received(sk, socket, talk, moved);
	return 0;
}

SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(rcv_space, struct sock *sk)
{
	KEEP_CPU(INSIDE_SPACE, on_rcv_space(sk));
	return 0;
}

SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(rcv_space_again, struct sock *sk)
{
	IF_SKIPPED(INSIDE_SPACE, on_rcv_space(sk));
	return 0;
}

static __always_inline int on_sock_state(struct sock *sk, int to)
{
	if (sk->sk_protocol != IPPROTO_TCP || (to != TCP_CLOSE && to != TCP_ESTABLISHED))
		return 0;
	stream_leave(sk);
	if (to == TCP_CLOSE)
		return 0;
	/* The socket may have had another connection before (connect with AF_UNSPEC). */
	bpf_sk_storage_delete(&sockets, sk);
	socket_meet(sk);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(sock_state, struct sock *sk, int from, int to)
{
	KEEP_CPU(INSIDE_STATE, on_sock_state(sk, to));
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(sock_state_again, struct sock *sk, int from, int to)
{
	IF_SKIPPED(INSIDE_STATE, on_sock_state(sk, to));
	return 0;
}

/* Sets the position of sockets older than the monitor when counting begins. */
SEC("iter/task_file")
int old_sockets(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *socket;
	struct sock *sk;

	if (!file)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	if (sk && is_tcp(sk))
		socket_meet(sk);
	return 0;
}

#endif
