/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Starting a program as a shell does: by its path or by its name on PATH, scripts included. */
#ifndef IOCOM_EXECUTE_H
#define IOCOM_EXECUTE_H

/*
 * Becomes EXECUTABLE: a path if it has a '/', else a name that is looked up on the PATH of ENV.
 * /bin/sh runs a text file without "#!".  Returns negative errno only if that fails: -ENOENT if
 * there is no such program.
 */
int execute_command(const char *executable, char *const *argv, char *const *env);
/*
 * Finds what execute_command would run and checks that it may, by mode and file system.  Returns 0,
 * or negative errno as that would.
 */
int execute_check(const char *executable, char *const *env);
/* What a shell returns where ERROR (negative errno) kept a program from running: 127 or 126. */
int execute_status(int error);

#endif
