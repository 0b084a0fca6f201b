/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A /proc for criu while it saves a job.  criu works in the job's mount namespace and looks there,
 * by paths, for itself and for what the node has; but the code that it runs in the job's first
 * process looks for that process, with no other rights than the job's user.  Each procfs shows one
 * of them only.  So a small directory is laid over the job's /proc, which has something for each:
 *
 *   /proc/self       -> 01         to criu's code in the job, which reads it as a number, pid 1
 *   /proc/01         -> node/self  so /proc/self/... is criu's own
 *   /proc/PID        -> node/PID   the job's processes and criu, by the node's pids, for criu
 *   /proc/PID        -> job/PID    the same, by the pids that they know, for criu once it has what
 *                                  its code in the job has opened; it looks for zombies there
 *   /proc/NAME       -> node/NAME  all else, such as uptime
 *   /proc/node, job                the two
 *
 * A job is refused if two of its processes have the same number in this way, which needs thousands
 * of processes in its life, and is over when one of the two has ended.
 */
#ifndef IOCOM_COVER_PROC_H
#define IOCOM_COVER_PROC_H

#include <sys/types.h>

/*
 * Where the node's /proc lies over that of the frozen job with first process INIT: takes it away,
 * and lays that directory there instead.  Returns 0 or negative errno (-EEXIST: refused); the job's
 * /proc may be bare then.
 */
int cover_proc(pid_t init);

#endif
