/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job's terminal: a pty. Its slave is the job's standard input, output and error; two
 * descriptors of the shim are its master, one for each direction. When the shim closes both, the
 * kernel hangs the terminal up, and the job gets SIGHUP.
 */
#ifndef IOCOM_SHIM_TTY_H
#define IOCOM_SHIM_TTY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/terminal.h"

struct tty {
	int in, out; /* the master, non-blocking: we write to `in` and read from `out` */
	int slave;
};

/*
 * Opens a pty as WANTED. Like a login's it belongs to UID and group "tty" with mode 0620 (GID
 * and 0600 on a machine without that group). Returns 0, or negative errno with nothing open.
 */
int tty_open(struct tty *tty, const struct terminal *wanted, uid_t uid, gid_t gid);
void tty_close(struct tty *tty);
/*
 * Makes SLAVE the terminal of the calling child, which must be a new session leader. Returns 0
 * or negative errno.
 */
int tty_take(int slave);
/* Sets TERM to NAME in ENV, whose strings are malloc'ed. Returns 0 or -ENOMEM. */
int tty_set_term(char ***env, const char *name);
/*
 * Obeys FRAME_WINSIZE; the job's foreground group gets SIGWINCH. MASTER -1: the terminal is
 * gone, and nothing happens. Returns 0, or -EPROTO for a malformed frame.
 */
int tty_resize(int master, const uint8_t *payload, uint32_t length);
/*
 * Returns the process group that a user's signals go to: the terminal's foreground group if it
 * is in SESSION (whose leader is not yet reaped), else SESSION.
 */
pid_t tty_foreground(int master, pid_t session);
/*
 * Puts the characters that end a terminal's input into OUT and returns their number: none if the
 * job switched that off, two if a line has begun (LAST does not end it).
 */
unsigned tty_end_of_input(int master, char last, char out[2]);
/*
 * Returns true if the job reads whole lines, so that ^D ends its input (the terminal is not raw).
 */
bool tty_lines(int master);
/*
 * Opens the job's end of the terminal whose master is MASTER, non-blocking and as nobody's
 * terminal.  Returns it or negative errno.
 */
int tty_peer(int master);
/* Returns true if the job has not read all its input, or if we cannot tell. */
bool tty_unread(int master);

#endif
