/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Finds the program of a job, and says in time if the file system of it or of the directory hangs.
 */
#ifndef IOCOM_COMMAND_LOOK_H
#define IOCOM_COMMAND_LOOK_H

#include <stdbool.h>

#include "iocom/err.h"

/*
 * Finds NAME from the directory CWD (absolute), by PATH.  HERE: the job may run at this machine, so
 * that directory and program must be here.  Returns 0, and EXECUTABLE is malloc'ed (as
 * placement_request_resolve has it, made absolute); else an exit code of `iocom run` with its
 * sentence in ERR: 125, 126 or 127.
 */
int command_look(const char *name, const char *cwd, bool here, char **executable,
		 struct iocom_err *err);

#endif
