/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP beside the programs: the zero point of old sockets, the rows by remote
 * address.
 */
#ifndef IOCOM_MONITOR_NET_H
#define IOCOM_MONITOR_NET_H

#include "bpf/iocom.skel.h"
#include "user/monitor/monitor.h"
#include "user/monitor/monitor_remotes.h"

/* What TCP needs beside the programs. */
struct monitor_net {
	struct remote_slot *slots; /* mapped */
	size_t mapped;
	int index_fd, free_fd, free_other_fd;
	struct remotes *remotes;
};

/* Before loading: room for so many addresses (0: REMOTES_MAX). */
void monitor_net_size(struct iocom_bpf *skel, unsigned remotes_max);
/* After loading: the slots of remotes; one idle for IDLE_MS (0: REMOTES_IDLE_MS) may leave. */
int monitor_net_init(struct monitor_net *net, struct iocom_bpf *skel, unsigned idle_ms,
		     struct iocom_err *err);
/* After attaching: gives sockets that were there before us their zero point. */
int monitor_net_baseline(struct iocom_bpf *skel, struct iocom_err *err);
int monitor_net_read(struct monitor_net *net, uint64_t now_ns, struct monitor_sample *sample,
		     struct iocom_err *err);
/* What was not even initialised is fine. */
void monitor_net_deinit(struct monitor_net *net);

#endif
