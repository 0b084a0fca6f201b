/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom rsh` runs a command on a named node with the interface of ssh, for programs that start
 * others by a remote shell (rsync, pdsh, GNU parallel, Open MPI).  Like sshd it joins the words
 * by blanks and gives them to the user's login shell, in the home directory, with a fresh
 * environment.  Without words it is a login with a terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/commands.h"
#include "balancer/job_class.h"
#include "balancer/run/rsh.h"
#include "balancer/run/run.h"

static char *cmd_rsh_join(char *const *words)
{
	size_t room = 1;
	char *out, *at;

	for (size_t i = 0; words[i]; i++)
		room += strlen(words[i]) + 1;
	out = at = malloc(room);
	for (size_t i = 0; out && words[i]; i++) {
		if (i)
			*at++ = ' ';
		at = stpcpy(at, words[i]);
	}
	if (out)
		*at = 0;
	return out;
}

/* Makes the environment that sshd would set, plus language, terminal type and MORE. */
static char *cmd_rsh_make_env(const struct passwd *me, const char *shell, const char *more)
{
	char *out = NULL;

	if (asprintf(&out,
		     "HOME=%s,USER=%s,LOGNAME=%s,SHELL=%s,"
		     "PATH=/usr/local/bin:/usr/bin:/bin%s,LANG,LC_ALL,LC_CTYPE,TERM,TZ%s",
		     me->pw_dir, me->pw_name, me->pw_name, shell,
		     me->pw_uid ? "" : ":/usr/local/sbin:/usr/sbin:/sbin", more ? more : "") < 0)
		return NULL;
	return out;
}

/* Like ssh, a login gets a terminal if we have one, a command if the user asks for it. */
static bool wants_terminal(const struct rsh *rsh)
{
	if (rsh->no_terminal)
		return false;
	return rsh->terminal || (!*rsh->words && isatty(STDIN_FILENO));
}

struct session {
	const struct rsh *rsh;
	const struct passwd *me;
	const char *shell;
	char *command, *env;
};

/* REPORT_FD is the descriptor for --status-fd, or -1. */
static int cmd_rsh_start(void *arg, int report_fd)
{
	const struct session *s = arg;
	const struct rsh *rsh = s->rsh;
	char *argv[24], class_name[64], report[16];
	bool failed = true;
	int argc = 0, rc;

	job_class_text(*rsh->words ? s->command : s->shell, class_name, sizeof(class_name));
	if (!*class_name)
		strcpy(class_name, "rsh");
	snprintf(report, sizeof(report), "%d", report_fd);
	argv[argc++] = (char *)"iocom rsh";
	argv[argc++] = (char *)"--node";
	argv[argc++] = (char *)rsh->node;
	argv[argc++] = (char *)"--class";
	argv[argc++] = class_name;
	argv[argc++] = (char *)"--env";
	argv[argc++] = s->env;
	if (wants_terminal(rsh))
		argv[argc++] = (char *)"--pty";
	if (report_fd >= 0) {
		argv[argc++] = (char *)"--status-fd";
		argv[argc++] = report;
	}
	if (rsh->escape) {
		argv[argc++] = (char *)"--escape";
		argv[argc++] = (char *)rsh->escape;
	}
	if (rsh->verbose)
		argv[argc++] = (char *)"-v";
	if (rsh->run_dir) {
		argv[argc++] = (char *)"--run-dir";
		argv[argc++] = (char *)rsh->run_dir;
	}
	argv[argc++] = (char *)"--";
	argv[argc++] = (char *)s->shell;
	argv[argc++] = (char *)(*rsh->words ? "-c" : "-l");
	if (*rsh->words)
		argv[argc++] = s->command;
	argv[argc] = NULL;
	optind = 0; /* getopt starts over */
	rc = run_main(argc, argv, s->me->pw_dir, &failed);
	return failed ? RSH_FAILED : rc;
}

static int cmd_rsh_run(const struct rsh *rsh, const struct passwd *me)
{
	struct session s = {
		.rsh = rsh,
		.me = me,
		.shell = *me->pw_shell ? me->pw_shell : "/bin/sh",
	};
	int rc = RSH_FAILED;

	s.command = cmd_rsh_join(rsh->words);
	s.env = cmd_rsh_make_env(me, s.shell, rsh->env);
	if (s.command && s.env)
		rc = rsh->background ? rsh_background(cmd_rsh_start, &s) : cmd_rsh_start(&s, -1);
	free(s.command);
	free(s.env);
	return rc;
}

static int cmd_rsh_prepare(struct rsh *rsh, const struct passwd *me)
{
	int null;

	if (!me)
		return rsh_usage("you have no entry among this machine's users", "");
	if (rsh->user && strcmp(rsh->user, me->pw_name) != 0)
		return rsh_usage("everybody stays the same user, and you are not ", rsh->user);
	if (rsh->tell) {
		printf("host %s\nuser %s\nhostname %s\n", rsh->node, me->pw_name, rsh->node);
		return fflush(stdout) ? RSH_FAILED : RSH_DONE;
	}
	null = rsh->null ? open("/dev/null", O_RDONLY) : -1;
	if (null >= 0 && null != STDIN_FILENO) {
		dup2(null, STDIN_FILENO);
		close(null);
	}
	return 0;
}

int cmd_rsh(int argc, char **argv)
{
	struct rsh rsh = {0};
	const struct passwd *me = getpwuid(geteuid());
	int rc = rsh_parse(&rsh, argc, argv);

	if (!rc)
		rc = cmd_rsh_prepare(&rsh, me);
	if (!rc)
		rc = cmd_rsh_run(&rsh, me);
	else if (rc == RSH_DONE)
		rc = 0;
	rsh_fini(&rsh);
	return rc;
}
