/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job's terminal: a pty whose slave is the job's standard input, output and
 * error, and whose master is two of the shim's descriptors, one a direction.
 * When both are closed the kernel hangs the terminal up: SIGHUP to the job.
 */
#ifndef IOCOM_SHIM_TTY_H
#define IOCOM_SHIM_TTY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/terminal.h"

struct tty {
	int in, out; /* the master, non-blocking: written to, read */
	int slave;
};

/*
 * Opens a pty as WANTED: it belongs to UID and group "tty", mode 0620, as a login's does
 * (GID and 0600 on a machine without that group).  0 or negative errno, nothing open.
 */
int tty_open(struct tty *tty, const struct terminal *wanted, uid_t uid, gid_t gid);
void tty_close(struct tty *tty);
/* In the child, a fresh session leader: makes SLAVE its terminal.  0 or negative errno. */
int tty_take(int slave);
/* TERM of ENV (malloc'ed, as a spec's) is NAME from now on.  0 or -ENOMEM. */
int tty_set_term(char ***env, const char *name);
/*
 * Obeys FRAME_WINSIZE; the job's foreground gets SIGWINCH.  MASTER -1: the terminal is
 * gone, nothing happens.  0; -EPROTO when it is malformed.
 */
int tty_resize(int master, const uint8_t *payload, uint32_t length);
/*
 * The process group that signals of a user go to: the terminal's foreground, if it is
 * one of SESSION (its leader has not been waited for), else SESSION.
 */
pid_t tty_foreground(int master, pid_t session);
/*
 * The characters that end the input of a terminal: none where the job switched that off,
 * two where a line is under way (LAST is not its end).  How many are in OUT.
 */
unsigned tty_end_of_input(int master, char last, char out[2]);
/* Whether the job reads lines and their end (the terminal is not raw). */
bool tty_lines(int master);
/* Whether something waits there that the job has not read; true when nobody can tell. */
bool tty_unread(int master);

#endif
