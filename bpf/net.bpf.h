/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP.  Sent: the result of each send, where every path (send, write, sendfile,
 * io_uring) ends.  Received: how far the reader's position in the stream moved since the
 * last look: exact for peeks, waits and splices.  Socket storage holds the last
 * position; it is set when the connection is established, and for a socket older
 * than the monitor at first sight.
 *
 * What never leaves the host counts apart, at both ends.
 */
#ifndef IOCOM_NET_BPF_H
#define IOCOM_NET_BPF_H

#define AF_INET		2
#define AF_INET6	10
#define IPPROTO_TCP	6
#define TCP_ESTABLISHED 1
#define IFF_LOOPBACK	8
#define MSG_PEEK	2

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} sockets SEC(".maps");

static __always_inline bool is_tcp(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	return sk->sk_protocol == IPPROTO_TCP && (family == AF_INET || family == AF_INET6);
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

/* The peer is this host: another socket of the same network namespace. */
static __always_inline bool is_local(struct sock *sk)
{
	__be32 to = sk->__sk_common.skc_daddr;
	struct dst_entry *route;

	if (sk->__sk_common.skc_family == AF_INET6) {
		if (is_local6(sk))
			return true;
	} else if ((to & 0xff) == 127 || to == sk->__sk_common.skc_rcv_saddr) {
		return true;
	}
	/* Between two addresses of this host the route is the loopback device. */
	route = sk->sk_dst_cache;
	return route && (route->dev->flags & IFF_LOOPBACK);
}

/* The state to count in; NULL where nothing is counted. */
static __always_inline struct thread_state *talker(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if ((task->flags & PF_KTHREAD) || !current_in_scope())
		return 0;
	return thread_current(task);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(send_length, struct sock *sk, int result)
{
	struct thread_state *state;

	if (result <= 0 || !is_tcp(sk))
		return 0;
	state = talker();
	if (!state)
		return 0;
	if (is_local(sk)) {
		state->counters.local_bytes += result;
	} else {
		state->counters.sent_bytes += result;
		state->counters.sent_messages++;
	}
	return 0;
}

/* Calls, not bytes: a peek's bytes come again, a splice's never. */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(recv_length, struct sock *sk, int result, int flags)
{
	struct thread_state *state;

	if (result <= 0 || (flags & MSG_PEEK) || !is_tcp(sk) || is_local(sk))
		return 0;
	state = talker();
	if (state)
		state->counters.received_messages++;
	return 0;
}

SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(rcv_space, struct sock *sk)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct thread_state *state;
	u32 position, moved, *last;

	if (!tcp)
		return 0;
	position = tcp->copied_seq;
	last = bpf_sk_storage_get(&sockets, sk, 0, 0);
	if (!last) {
		if (!bpf_sk_storage_get(&sockets, sk, &position, BPF_SK_STORAGE_GET_F_CREATE))
			count_drop(DROP_SOCKETS);
		return 0;
	}
	moved = position - *last;
	if (!moved)
		return 0;
	*last = position;
	state = talker();
	if (!state)
		return 0;
	if (is_local(sk))
		state->counters.local_bytes += moved;
	else
		state->counters.received_bytes += moved;
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(sock_state, struct sock *sk, int from, int to)
{
	struct tcp_sock *tcp;
	u32 position;

	if (to != TCP_ESTABLISHED || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 0;
	position = tcp->copied_seq;
	if (!bpf_sk_storage_get(&sockets, sk, &position, BPF_SK_STORAGE_GET_F_CREATE))
		count_drop(DROP_SOCKETS);
	return 0;
}

#endif
