/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the launcher share. */
#ifndef IOCOM_TASKS_OWN_H
#define IOCOM_TASKS_OWN_H

#include "agent/tasks/tasks.h"

/* Everything from READY to the end of the last task.  Returns the exit status. */
int tasks_life(struct tasks *tasks, int signals);

/* Serves the signalfd FD: hands signals on, and takes the ends of tasks. */
void tasks_signal(struct tasks *tasks, int fd, short events, void *arg);

/* Waits until a watched descriptor is ready, at most UNTIL_MS, and serves it. */
void tasks_turn(struct tasks *tasks, uint64_t until_ms);

#endif
