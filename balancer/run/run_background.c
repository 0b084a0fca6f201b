/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Restarts a detached job.  A process of the user must start each attempt, because no agent can
 * sign for a user or keeps an environment; so this program goes to the background and asks home
 * until the job has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "balancer/run/run.h"

/* Releases what we got from our parent: the terminal, and pipes whose end a reader awaits. */
static void run_background_leave(void)
{
	int null = open("/dev/null", O_RDWR);

	for (int i = 0; i < 3; i++)
		if (null < 0 || dup2(null, i) < 0)
			_exit(RUN_FAILED);
	close_range(3, ~0u, 0);
	setsid();
	signal(SIGHUP, SIG_IGN);
}

int run_background(const char *name, const char *job)
{
	pid_t pid = fork();

	if (pid == 0)
		run_background_leave();
	else if (pid < 0)
		fprintf(stderr,
			"%s: cannot stay in the background (%s): job %s runs, but will not be run "
			"again\n",
			name, strerror(errno), job);
	return pid ? 1 : 0;
}
