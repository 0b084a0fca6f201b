/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Programs that do nothing, at the hooks of the monitor's busiest programs.  Their time in the
 * kernel's run-time statistics is the cost of the statistics themselves, and the time that an
 * application loses is the cost of having programs at these hooks.  One program only calls a
 * helper, which shows the cost of returning from one.
 */
#define SEC(name) __attribute__((section(name), used))
#define EMPTY(name, tracepoint)                                                                    \
	SEC("tp_btf/" tracepoint) int empty_##name(void *ctx)                                      \
	{                                                                                          \
		(void)ctx;                                                                         \
		return 0;                                                                          \
	}

EMPTY(bio, "block_bio_queue")
EMPTY(done, "block_rq_complete")
EMPTY(send, "sock_send_length")
EMPTY(recv, "sock_recv_length")
EMPTY(tcp, "tcp_rcv_space_adjust")

static unsigned long long (*const current_task)(void) = (void *)35;

SEC("tp_btf/tcp_rcv_space_adjust") int calls_tcp(void *ctx)
{
	unsigned long long sum = 0;

	(void)ctx;
#pragma unroll
	for (int i = 0; i < 10; i++)
		sum ^= current_task() + i;
	return sum == 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
