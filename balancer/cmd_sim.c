/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom sim` and `iocom replay` start iocom-sim, which is a separate program because it links
 * a library under another licence.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/commands.h"

#define PROGRAM "iocom-sim"

#ifndef IOCOM_PREFIX
#define IOCOM_PREFIX "/usr/local"
#endif

/* Executes PATH. If that fails, returns true if there is no such program. */
static bool missing(const char *path, char **argv)
{
	execv(path, argv);
	return errno == ENOENT || errno == ENOTDIR;
}

/* Looks beside this program, in the installed place, then on PATH. */
static void become(char **argv)
{
	char self[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = 0;
		if (snprintf(path, sizeof(path), "%s/" PROGRAM, dirname(self)) <
			    (int)sizeof(path) &&
		    !missing(path, argv))
			return;
	}
	if (!missing(IOCOM_PREFIX "/bin/" PROGRAM, argv))
		return;
	execvp(PROGRAM, argv);
}

/* Puts FIRST, if any, before the arguments. */
static int cmd_sim_start(const char *command, char *first, int argc, char **argv)
{
	char **list = calloc((size_t)argc + 3, sizeof(*list));
	int n = 0;

	if (!list) {
		fprintf(stderr, "iocom %s: out of memory\n", command);
		return 1;
	}
	list[n++] = PROGRAM;
	if (first)
		list[n++] = first;
	for (int i = 1; i < argc; i++)
		list[n++] = argv[i];
	become(list);
	if (errno == ENOENT)
		fprintf(stderr,
			"iocom %s: the simulator is not installed: there is no " PROGRAM
			" beside iocom, in " IOCOM_PREFIX "/bin or on PATH. It is a package of "
			"its own (" PROGRAM "), under the GPL 3\n",
			command);
	else
		fprintf(stderr, "iocom %s: cannot start " PROGRAM ": %s\n", command,
			strerror(errno));
	free(list);
	return 1;
}

int cmd_sim(int argc, char **argv)
{
	return cmd_sim_start("sim", NULL, argc, argv);
}

int cmd_replay(int argc, char **argv)
{
	char replay[] = "replay";

	return cmd_sim_start("replay", replay, argc, argv);
}
