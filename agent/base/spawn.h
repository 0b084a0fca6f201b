/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Starts the agent's helper programs.  The agent has nng's threads, so nothing here forks;
 * posix_spawn is used.  The program gets its own session, an empty signal mask, 0 and 1 at
 * /dev/null, and an environment of one variable, so that it inherits no LD_* variables.
 */
#ifndef IOCOM_SPAWN_H
#define IOCOM_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

#define SPAWN_FIRST_FD 3
#define SPAWN_FDS_MAX  4
#define SPAWN_LIFTED   16 /* copies get numbers from here on */

/*
 * Copies FDS (N) to close-on-exec descriptors above the numbers that a program gets, so that no
 * dup2 overwrites a source.  Returns 0: the caller closes HIGH; negative errno: no copy is left.
 */
int spawn_lift(const int *fds, size_t n, int *high);
/*
 * Starts PROGRAM; FDS (N) become its 3, 4, ... and stay the caller's.  Returns 0 or negative errno.
 */
int spawn_spawn(const char *program, char *const argv[], const int *fds, size_t n, pid_t *pid);
/*
 * Starts PROGRAM; what it writes to its 1 can be read from *OUTPUT, which does not block; its 2 is
 * at /dev/null.  Returns 0 or negative errno.
 */
int spawn_output(const char *program, char *const argv[], int *output, pid_t *pid);

#endif
