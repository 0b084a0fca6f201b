/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* TCP in user space: the zero point of old sockets, and the rows by remote address. */
#ifndef IOCOM_MONITOR_NET_H
#define IOCOM_MONITOR_NET_H

#include "bpf/iocom.skel.h"
#include "user/monitor/monitor.h"
#include "user/monitor/monitor_pairs.h"
#include "user/monitor/monitor_remotes.h"

/* State of the user-space side of TCP. */
struct monitor_net {
	struct remote_slot *slots; /* mapped */
	size_t mapped;
	int index_fd, free_fd, free_other_fd;
	struct remotes *remotes;
	int pairs_fd, tasks_fd;
	__u32 cursor, tasks_cursor; /* of the reading of their tables */
	struct pairs *pairs;
};

/* Sets the number of addresses (0: REMOTES_MAX). Call it before loading. */
void monitor_net_size(struct iocom_bpf *skel, unsigned remotes_max);
/* Prepares the slots of remotes; one that is idle for IDLE_MS (0: REMOTES_IDLE_MS) may be
 * reused. Call it after loading. */
int monitor_net_init(struct monitor_net *net, struct iocom_bpf *skel, unsigned idle_ms,
		     struct iocom_err *err);
/* Sets the zero point of sockets older than the monitor. Call it after attaching. */
int monitor_net_baseline(struct iocom_bpf *skel, struct iocom_err *err);
int monitor_net_read(struct monitor_net *net, uint64_t now_ns, struct monitor_sample *sample,
		     struct iocom_err *err);
/* monitor_gang */
int monitor_net_gang(struct monitor_net *net, struct iocom_bpf *skel, uint64_t cgroup_id, bool is,
		     struct iocom_err *err);
/* A NET that was never initialised is fine. */
void monitor_net_deinit(struct monitor_net *net);

#endif
