/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See init.h. */
#include "agent/init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/clock.h"
#include "user/execute.h"

#define INIT_FAILED 126
#define INIT_ARGV   5

static volatile sig_atomic_t init_command; /* its pid while it runs, else 0 */

/*
 * Hands on to the command what would reach it without an init: the kernel tells the leader of the
 * session of a terminal's hang-up, and other signals come to its process group, which the command
 * may have left (timeout(1) does; a session's leader could not).
 */
static void init_hand_on(int signal, siginfo_t *info, void *context)
{
	pid_t command = (pid_t)init_command;

	(void)context;
	if (command > 0 && (info->si_code == SI_KERNEL || getpgid(command) != getpgrp()))
		kill(command, signal);
}

static const int init_signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
				   SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

static void init_write(int fd, const void *data, size_t length)
{
	ssize_t n;

	do
		n = write(fd, data, length);
	while (n < 0 && errno == EINTR);
}

/* Becomes the command. */
static void init_become(int report, const char *executable, char **argv)
{
	struct sigaction normal = {.sa_handler = SIG_DFL};
	sigset_t none;
	int error;

	for (size_t i = 0; i < sizeof(init_signals) / sizeof(init_signals[0]); i++)
		sigaction(init_signals[i], &normal, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	error = -execute_command(executable, argv, environ);
	init_write(report, &error, sizeof(error));
	_exit(INIT_FAILED);
}

/* Leaves the job's streams, its directory and REPORT to the command. */
static bool init_let_go(int report)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	close(report);
	for (int i = 0; null >= 0 && i < 3; i++)
		if (dup2(null, i) < 0)
			return false;
	return null >= 0 && !close(null) && !chdir("/");
}

/* Reaps until no process is left; says on STATUS how COMMAND ended. */
static void init_reap(int status, pid_t command)
{
	struct rusage usage, own;
	int how;
	pid_t pid;

	while ((pid = wait4(-1, &how, 0, &usage)) > 0 || errno == EINTR) {
		struct init_end end = {.status = how};

		if (pid != command)
			continue;
		init_command = 0;
		getrusage(RUSAGE_SELF, &own);
		end.cpu_us = clock_usage_us(&usage) + clock_usage_us(&own);
		end.max_rss_kb = (uint64_t)usage.ru_maxrss;
		init_write(status, &end, sizeof(end));
	}
}

int init_main(int argc, char **argv)
{
	struct sigaction hand_on = {.sa_sigaction = init_hand_on,
				    .sa_flags = SA_RESTART | SA_SIGINFO};
	int status, report;
	sigset_t all, before;
	pid_t pid;

	if (argc <= INIT_ARGV || strcmp(argv[INIT_ARGV - 1], "--") != 0)
		return INIT_FAILED;
	/* The job's user must not write what only we say, by /proc/1/fd or as a debugger. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return INIT_FAILED;
	status = (int)strtol(argv[1], NULL, 10);
	report = (int)strtol(argv[2], NULL, 10);
	if (fcntl(status, F_SETFD, FD_CLOEXEC) || fcntl(report, F_SETFD, FD_CLOEXEC))
		return INIT_FAILED;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	for (size_t i = 0; i < sizeof(init_signals) / sizeof(init_signals[0]); i++)
		sigaction(init_signals[i], &hand_on, NULL);
	pid = fork();
	if (!pid)
		init_become(report, argv[3], argv + INIT_ARGV);
	if (pid < 0) {
		int error = errno;

		init_write(report, &error, sizeof(error));
		return INIT_FAILED;
	}
	init_command = (sig_atomic_t)pid;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (!init_let_go(report))
		return INIT_FAILED;
	init_reap(status, pid);
	return 0;
}
