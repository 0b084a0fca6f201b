/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Starts the process that runs one node's job; see multi.h. */
#include "balancer/run/multi.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REPORT_FD = 3, PIPES = MULTI_CHANNEL_FD + 1 };

/*
 * Reading and writing ends of its input, its two outputs and its report; and the parent's and the
 * child's end of its channel.
 */
struct pipes {
	int end[PIPES][2];
	int count; /* PIPES, or one less: there is no channel */
};

static void close_all(struct pipes *pipes)
{
	for (int i = 0; i < PIPES; i++)
		for (int k = 0; k < 2; k++)
			if (pipes->end[i][k] >= 0)
				close(pipes->end[i][k]);
}

static int open_pipes(struct pipes *pipes, bool input, bool channel)
{
	int rc = 0;

	pipes->count = channel ? PIPES : PIPES - 1;
	for (int i = 0; i < PIPES; i++)
		pipes->end[i][0] = pipes->end[i][1] = -1;
	if (!input)
		pipes->end[0][0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	rc = !input && pipes->end[0][0] < 0;
	for (int i = input ? 0 : 1; i < MULTI_CHANNEL_FD && !rc; i++)
		rc = pipe2(pipes->end[i], O_CLOEXEC);
	if (!rc && channel)
		rc = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				pipes->end[MULTI_CHANNEL_FD]);
	/* Only our end: the other end's flags belong to the child's standard input. */
	if (!rc && input)
		rc = fcntl(pipes->end[0][1], F_SETFL, O_NONBLOCK);
	if (!rc)
		return 0;
	rc = -errno;
	close_all(pipes);
	return rc;
}

/*
 * Runs in the child: moves its pipe ends above all numbers to be replaced, then to their places,
 * and closes everything else.  Otherwise other nodes' outputs would never end.
 */
static bool take_places(const struct pipes *pipes)
{
	int mine[PIPES];

	for (int i = 0; i < pipes->count; i++) {
		mine[i] = fcntl(pipes->end[i][i ? 1 : 0], F_DUPFD, PIPES);
		if (mine[i] < 0)
			return false;
	}
	for (int i = 0; i < pipes->count; i++)
		if (dup2(mine[i], i) < 0)
			return false;
	return close_range((unsigned)pipes->count, UINT_MAX, 0) == 0;
}

static _Noreturn void be_child(const char *name, const struct multi_job *job, pid_t parent,
			       const struct pipes *pipes, const sigset_t *before)
{
	int status = RUN_FAILED;

	/* The terminal's signals come through the parent, and only once. */
	setpgid(0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(status);
	if (!take_places(pipes)) {
		dprintf(pipes->end[2][1], "%s: cannot set up its descriptors: %s\n", job->name,
			strerror(errno));
		_exit(status);
	}
	sigprocmask(SIG_SETMASK, before, NULL);
	status = job->run(job->arg, name, REPORT_FD);
	fflush(NULL);
	_exit(status);
}

int multi_start(struct multi_node *node, const struct multi_job *job, const sigset_t *before,
		bool input)
{
	pid_t parent = getpid(), pid;
	struct pipes pipes;
	int rc = open_pipes(&pipes, input, job->watch != NULL);

	if (rc)
		return rc;
	fflush(NULL); /* or the child prints it again */
	pid = fork();
	if (pid == 0)
		be_child(node->name, job, parent, &pipes, before);
	if (pid < 0) {
		rc = -errno;
		close_all(&pipes);
		return rc;
	}
	setpgid(pid, pid); /* also here: it must be done before we send a signal */
	close(pipes.end[0][0]);
	for (int i = 1; i < pipes.count; i++)
		close(pipes.end[i][1]);
	node->pid = pid;
	node->in = pipes.end[0][1];
	node->fd[0] = pipes.end[1][0];
	node->fd[1] = pipes.end[2][0];
	node->report = pipes.end[3][0];
	node->channel = pipes.end[MULTI_CHANNEL_FD][0];
	node->begun = true;
	node->state = MULTI_RUNNING;
	return 0;
}
