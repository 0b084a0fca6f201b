/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Helper programs of the agent.  It has nng's threads, so nothing here forks:
 * posix_spawn.  The program gets a session of its own, an empty signal mask, 0 and 1 at
 * /dev/null, and an environment of one variable, so that no LD_* of whoever started the
 * agent meets it.
 */
#ifndef IOCOM_SPAWN_H
#define IOCOM_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

#define SPAWN_FIRST_FD 3
#define SPAWN_FDS_MAX  4
#define SPAWN_LIFTED   16 /* copies are from here on */

/*
 * Copies of FDS (N), closed by exec, above the numbers that a program gets, so that no dup2
 * overwrites a source.  0, and HIGH is the caller's to close; negative errno, none is left.
 */
int spawn_lift(const int *fds, size_t n, int *high);
/* FDS (N) become the program's 3, 4, ...; they stay the caller's.  0 or negative errno. */
int spawn_spawn(const char *program, char *const argv[], const int *fds, size_t n, pid_t *pid);

#endif
