/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Programs that do nothing: what the kernel's run-time statistics show for them is
 * the cost of the statistics themselves, to be known beside every other number.
 */
#define SEC(name) __attribute__((section(name), used))

SEC("tp_btf/block_bio_queue") int empty_bio(void *ctx)
{
	(void)ctx;
	return 0;
}

SEC("tp_btf/tcp_rcv_space_adjust") int empty_tcp(void *ctx)
{
	(void)ctx;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
