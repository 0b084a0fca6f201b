/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* /proc/PID/stat, in which a program's name may hold anything, also what looks like fields. */
#ifndef IOCOM_PROCESS_STAT_H
#define IOCOM_PROCESS_STAT_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Writes to OUT what follows the name of the process or thread PID: "STATE PPID ...", cut to SIZE -
 * 1 bytes.  Returns 0; -EBADMSG; negative errno (-ENOENT: there is none).
 */
int process_stat(pid_t pid, char *out, size_t size);

#endif
