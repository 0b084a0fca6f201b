/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Kernels before 6.3 have no sock_send_length and sock_recv_length. If such a kernel lets
 * programs attach to functions, the exits of these functions replace them: each send and receive
 * of TCP and MPTCP, by any system call, goes through one of them. An MPTCP socket has no
 * sendpage of its own and ends in sendmsg.
 */
#ifndef IOCOM_STANDIN_BPF_H
#define IOCOM_STANDIN_BPF_H

static __always_inline int standin_sent(struct socket *socket, int result)
{
	if (result > 0)
		count_sent(socket->sk, result);
	return 0;
}

static __always_inline int standin_received(struct socket *socket, int flags, int result)
{
	if (result > 0)
		received(socket->sk, result, flags);
	return 0;
}

SEC("fexit/inet_sendmsg")
int BPF_PROG(standin_sendmsg, struct socket *socket, struct msghdr *message, size_t size,
	     int result)
{
	return standin_sent(socket, result);
}

SEC("fexit/inet6_sendmsg")
int BPF_PROG(standin_sendmsg6, struct socket *socket, struct msghdr *message, size_t size,
	     int result)
{
	return standin_sent(socket, result);
}

SEC("fexit/inet_sendpage")
int BPF_PROG(standin_sendpage, struct socket *socket, struct page *page, int offset, size_t size,
	     int flags, ssize_t result)
{
	if (socket->sk->sk_protocol != IPPROTO_TCP)
		return 0;
	return standin_sent(socket, result);
}

SEC("fexit/inet_recvmsg")
int BPF_PROG(standin_recvmsg, struct socket *socket, struct msghdr *message, size_t size, int flags,
	     int result)
{
	return standin_received(socket, flags, result);
}

SEC("fexit/inet6_recvmsg")
int BPF_PROG(standin_recvmsg6, struct socket *socket, struct msghdr *message, size_t size,
	     int flags, int result)
{
	return standin_received(socket, flags, result);
}

#endif
