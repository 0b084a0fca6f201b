/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Places for processes of which there are to be a few only, and which outlive who began
 * them: a file each, locked by who has it, with its pid and for whom it works.  The lock goes
 * with its holder, however that ends.
 */
#ifndef IOCOM_PROCESS_SLOT_H
#define IOCOM_PROCESS_SLOT_H

#include <sys/types.h>

/* Takes the place PATH for this process, which works for UID.  A descriptor, the caller's, that
 * holds it; -EWOULDBLOCK another one has it; negative errno. */
int process_slot_take(const char *path, uid_t uid);
/* Who has it: 1, and PID and UID are set (0 and -1 where it says none); 0 nobody; negative errno.
 */
int process_slot_holder(const char *path, pid_t *pid, uid_t *uid);
/* Kills who has it.  0; -ESRCH nobody has; negative errno. */
int process_slot_kill(const char *path);

#endif
