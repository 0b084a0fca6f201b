/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom rsh -f` goes into the background once its command runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "balancer/listing.h"
#include "balancer/run/rsh.h"

/* Returns whether the command started; otherwise the report ends without saying so. */
static bool started(int fd)
{
	FILE *in = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (in && !found && getline(&line, &room, in) > 0) {
		json_t *report = json_loads(line, 0, NULL);

		found = !strcmp(listing_string(report, "state"), "started");
		json_decref(report);
	}
	free(line);
	if (in)
		fclose(in);
	else
		close(fd);
	return found;
}

int rsh_background(int (*go)(void *arg, int report_fd), void *arg)
{
	int report[2], status = 0;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC))
		return rsh_usage("cannot go into the background: ", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		close(report[0]);
		close(report[1]);
		return rsh_usage("cannot go into the background: ", strerror(errno));
	}
	if (pid == 0) {
		close(report[0]);
		setsid();
		return go(arg, report[1]);
	}
	close(report[1]);
	if (started(report[0]))
		return 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : RSH_FAILED;
}
