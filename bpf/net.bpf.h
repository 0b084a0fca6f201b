/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP. Sent: the result of each send, where every path (send, write, sendfile, io_uring) ends.
 * Received: how far the reader's position in the stream moved since the last event, which is
 * exact for peeks, waits and splices. Socket storage holds the last position. It is set when the
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

/* Returns SOCKET_ROUTED if we can tell where the peer is, with SOCKET_LOCAL if it is on this host
 * and in this network namespace. */
static __always_inline u32 locality(struct sock *sk)
{
	__be32 to = sk->__sk_common.skc_daddr;
	struct dst_entry *route;
	struct sock *flow = sk;

	if (sk->__sk_common.skc_family == AF_INET6) {
		if (is_local6(sk))
			return SOCKET_ROUTED | SOCKET_LOCAL;
	} else if ((to & 0xff) == 127 || to == sk->__sk_common.skc_rcv_saddr) {
		return SOCKET_ROUTED | SOCKET_LOCAL;
	}
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

/* Returns the state to count in; NULL: this task is not counted. */
static __always_inline struct thread_state *talker(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if ((task->flags & PF_KTHREAD) || !current_in_scope())
		return 0;
	return thread_current(task);
}

static __always_inline void count_sent(struct sock *sk, u64 bytes)
{
	struct socket_state *socket;
	struct thread_state *state;
	struct remote_slot *slot;

	if (!is_tcp(sk))
		return;
	state = talker();
	if (!state)
		return;
	socket = socket_of(sk);
	if (socket && (socket->flags & SOCKET_KERNEL))
		return;
	if (socket && (socket->flags & SOCKET_LOCAL)) {
		state->counters.local_bytes += bytes;
		return;
	}
	state->counters.sent_bytes += bytes;
	state->counters.sent_messages++;
	slot = socket ? remote_of(sk, socket, state->cgid) : 0;
	if (slot) {
		__sync_fetch_and_add(&slot->sent_bytes, bytes);
		__sync_fetch_and_add(&slot->sent_messages, 1);
	}
}

/* Counts bytes, and notes in the thread's state which slot a message would count for. */
static __always_inline void count_received(struct sock *sk, struct socket_state *socket,
					   struct thread_state *state, u64 bytes)
{
	struct remote_slot *slot;

	if (socket->flags & (SOCKET_LOCAL | SOCKET_KERNEL)) {
		if (socket->flags & SOCKET_LOCAL)
			state->counters.local_bytes += bytes;
		state->arrived = 0;
		return;
	}
	state->counters.received_bytes += bytes;
	slot = remote_of(sk, socket, state->cgid);
	if (slot)
		__sync_fetch_and_add(&slot->received_bytes, bytes);
	state->arrived = slot ? (u32)socket->remote + 1 : ARRIVED_NOWHERE;
}

/* Counts a successful receive call. Call it after its bytes were counted. */
static __always_inline void count_message(struct thread_state *state)
{
	u32 index = state->arrived - 1;
	struct remote_slot *slot;

	if (!state->arrived)
		return;
	state->arrived = 0;
	state->counters.received_messages++;
	slot = bpf_map_lookup_elem(&remotes, &index);
	if (slot)
		__sync_fetch_and_add(&slot->received_messages, 1);
}

static __always_inline void received(struct sock *sk, u64 bytes, int flags)
{
	struct socket_state *socket;
	struct thread_state *state;

	if ((flags & (MSG_PEEK | MSG_ERRQUEUE)) || !is_tcp(sk))
		return;
	state = talker();
	if (!state)
		return;
	if (sk->sk_protocol == IPPROTO_MPTCP) {
		socket = socket_of(sk);
		if (socket)
			count_received(sk, socket, state, bytes);
	}
	count_message(state);
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
	KEEP_CPU(on_send_length(sk, result));
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
	KEEP_CPU(on_recv_length(sk, result, flags));
	return 0;
}

/* Since 6.2. The verifier turns it into no call at all, unlike a helper. */
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym __weak;

const volatile __u32 cfg_tcp_sock = 0; /* the kernel's number of that type; 0: not known */

/* Returns the tcp_sock of a socket in TCP's own receive path. */
static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	if (bpf_rdonly_cast && cfg_tcp_sock)
		return bpf_rdonly_cast(sk, cfg_tcp_sock);
	return bpf_skc_to_tcp_sock(sk);
}

static __always_inline int on_rcv_space(struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct socket_state *socket;
	struct thread_state *state;
	u32 position, moved;

	if (!tcp)
		return 0;
	socket = socket_of(sk);
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
	state = talker();
	if (state)
		count_received(sk, socket, state, moved);
	return 0;
}

SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(rcv_space, struct sock *sk)
{
	KEEP_CPU(on_rcv_space(sk));
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(sock_state, struct sock *sk, int from, int to)
{
	if (to == TCP_ESTABLISHED && sk->sk_protocol == IPPROTO_TCP)
		socket_meet(sk);
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
