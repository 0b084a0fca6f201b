/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the network part writes to its standard error: a pipe, of which root makes lines of its own
 * log.  They are named as the network part's, bounded in length and number, and plain text,
 * whatever is written; and root reads no faster than NET_LOG_BYTES each NET_LOG_REST_NS.
 */
#ifndef IOCOM_NET_LOG_H
#define IOCOM_NET_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/loop.h"
#include "iocom/err.h"
#include "user/log.h"

#define NET_LOG_LINE	1024 /* longer ones are cut */
#define NET_LOG_BYTES	4096
#define NET_LOG_REST_NS 20000000

struct net_log {
	struct loop *loop; /* both are borrowed */
	struct logger *log;
	int writer; /* for the network part; it does not block.  -1: not opened */
	struct loop_fd entry;
	struct loop_timer rest;
	char line[NET_LOG_LINE];
	size_t n;
	bool cut; /* what follows of this line is left out */
};

/* Opens the pipe.  Returns 0 or negative errno with the reason in ERR. */
int net_log_open(struct net_log *net_log, struct loop *loop, struct logger *log,
		 struct iocom_err *err);
/* Logs what has come, also a line without an end: whoever wrote it has ended. */
void net_log_flush(struct net_log *net_log);
void net_log_close(struct net_log *net_log); /* one that was never opened is fine */

#endif
