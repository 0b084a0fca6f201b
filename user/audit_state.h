/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Whether the kernel keeps audit records, asked over its netlink socket (root). */
#ifndef IOCOM_AUDIT_STATE_H
#define IOCOM_AUDIT_STATE_H

#include <stdbool.h>
#include <sys/types.h>

struct audit_state {
	bool enabled; /* else the kernel drops the records that programs send */
	pid_t daemon; /* who reads the records; 0: they go to the kernel's log */
};

/* Returns whether this kernel has audit. Takes microseconds. */
bool audit_possible(void);
/*
 * Returns 0; -EPROTONOSUPPORT or the like: this kernel has no audit; -EPERM or -ECONNREFUSED: not
 * for this process (a container); -EIO; -ETIMEDOUT after 2 s. While the daemon lags behind, the
 * kernel may make the caller sleep for as long as a minute.
 */
int audit_state_read(struct audit_state *state);

#endif
