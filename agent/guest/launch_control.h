/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The control sockets of shims, for the files of launch.h. */
#ifndef IOCOM_LAUNCH_CONTROL_H
#define IOCOM_LAUNCH_CONTROL_H

#include <msgpack.h>

#include "agent/guest/launch.h"

/*
 * Connects to RUN_DIR/JOB.sock; a non-blocking descriptor or negative errno.  A shim that hangs
 * (its job's directory may be on a file system that does not answer) accepts no connection:
 * -EAGAIN, because a blocking connect would hang with it.
 */
int shim_control_connect(const char *run_dir, const char *job);
/* Sends the request OP with its SIGNAL and WHY (0 and NULL: none).  Returns 0 or negative errno. */
int shim_control_ask(int fd, const char *op, int signal, const char *why);
/* Adds the keys of a stream that goes to a shim to a request; NULL: none. */
void launch_pack_records(msgpack_packer *pk, const struct records *records);

#endif
