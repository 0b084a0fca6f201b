/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job stream for a test that writes its frames by hand: the test's side is in clear, what goes
 * over the network is sealed.
 */
#ifndef TEST_SEALED_H
#define TEST_SEALED_H

#include "balancer/run/run.h"

/*
 * Connects to TARGET and does the handshake HELLO.  Returns the descriptor, or -EACCES and others
 * with the client's sentence in ERR.
 */
int sealed_connect(const struct run_target *target, const struct stream_hello *hello,
		   struct records *records, struct iocom_err *err);
/*
 * Moves frames from IN to the stream NET, and what comes from there to OUT, until NET ends.  The
 * end of IN ends only that direction.  Returns 0; -EBADMSG: NET sent what does not open.
 */
int sealed_move(int net, struct records *records, int in, int out);
/* Does the same in a process of its own; takes NET.  Returns the test's end. */
int sealed_serve(int net, const struct records *records);

#endif
