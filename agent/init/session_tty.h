/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * iocom-tty.so, a library for criu, which restores a job with a terminal: it gives the terminal to
 * the job's first process as soon as that leads its session.  criu would do so after it has made
 * the others, and only those have a session's terminal that are born later.
 */
#ifndef IOCOM_SESSION_TTY_H
#define IOCOM_SESSION_TTY_H

#define SESSION_TTY_ENV "IOCOM_TTY" /* the path of the terminal */

#endif
