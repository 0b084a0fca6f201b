/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Whether a process is stopped (SIGSTOP, ^Z) and waits to be continued. */
#ifndef IOCOM_STOPPED_H
#define IOCOM_STOPPED_H

#include <stdbool.h>
#include <sys/types.h>

/* Reads /proc.  False also for a process that is not there. */
bool stopped_is(pid_t pid);

#endif
