/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A bounded set of lock files, one per long-lived process that may outlive its starter. The
 * process locks its file, which holds its pid and the uid it works for. The kernel drops the
 * lock when the process ends, however it ends.
 */
#ifndef IOCOM_PROCESS_SLOT_H
#define IOCOM_PROCESS_SLOT_H

#include <sys/types.h>

/* Takes the slot PATH for this process, which works for UID. Returns a descriptor that holds the
 * slot and belongs to the caller; -EWOULDBLOCK: another process has it; negative errno. */
int process_slot_take(const char *path, uid_t uid);
/* Finds the slot's holder. Returns 1 and sets PID and UID (0 and -1 if the file does not say);
 * 0: no holder; negative errno. */
int process_slot_holder(const char *path, pid_t *pid, uid_t *uid);
/* Kills the slot's holder. Returns 0; -ESRCH: no holder; negative errno. */
int process_slot_kill(const char *path);

#endif
