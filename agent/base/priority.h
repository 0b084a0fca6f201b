/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Threads of libraries serve whoever connects, as fast as bytes come.  They run ten levels (nice)
 * below the loop, so that it gets its turn on a busy machine.  The loop keeps its level: its
 * children, which are users' jobs, inherit it.
 */
#ifndef IOCOM_PRIORITY_H
#define IOCOM_PRIORITY_H

#include <stddef.h>
#include <sys/types.h>

#define PRIORITY_LEVELS 10

/* The threads of this process at one time; at most these many are remembered. */
#define PRIORITY_THREADS 32
struct priority_mark {
	pid_t threads[PRIORITY_THREADS];
	size_t count;
};

/* Remembers the threads that exist. */
void priority_mark(struct priority_mark *mark);
/*
 * Lowers the threads that were started since MARK to ten levels below the calling one.  Returns how
 * many there are.  If the kernel does not permit it, they stay as they are.
 */
size_t priority_lower(const struct priority_mark *mark);

#endif
