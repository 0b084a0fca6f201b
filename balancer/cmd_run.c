/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom run` places a command and runs it there as if it ran here. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/command_look.h"
#include "balancer/commands.h"
#include "balancer/run/gang.h"
#include "balancer/run/run_job.h"

#define GRACE_DEFAULT_S	 30
#define GRACE_MAX_S	 86400
#define RESTARTS_DEFAULT 3
/* Options that srun has, under other names here, as its long ones (optopt 0). */
#define ELSEWHERE "wOlctJKmxD"

static const char help[] =
	"usage: iocom run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"       iocom run -N LIST [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"       iocom run -n TASKS [--mpi] [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"Places COMMAND on the best node and runs it there as you, with this directory,\n"
	"umask, limits, environment, standard input, output and error, and returns its\n"
	"exit status.\n\n"
	"  --env all|none|LIST  environment: everything [all], nothing, or\n"
	"                       NAME,NAME=VALUE,...\n"
	"  --bring PATH    where the job goes elsewhere: fetch this file or directory\n"
	"                  afterwards; inputs below it are the job's own to change,\n"
	"                  others are read-only\n"
	"  --pty           give COMMAND a terminal: editors, shells, top; ~? tells the\n"
	"                  escapes\n"
	"  --escape CHAR   the escape key at a line's start: a character, ^X, or none [~]\n"
	"  --grace S       seconds that the job goes on without contact to this program\n"
	"                  [30]\n"
	"  --restartable   the job may be run again from its start when its node is lost\n"
	"  --restarts N    at most N times [3]; means --restartable\n"
	"  --migratable    the job may move while it runs: iocom migrate\n"
	"  --detach        print the job's name and end once it runs; see iocom attach,\n"
	"                  wait; with --pty the job keeps a terminal to come back to\n"
	"  --status-fd N   write one JSON object a line to descriptor N: placed, started,\n"
	"                  end\n"
	"  --json          the same on standard error, where --status-fd is not given\n"
	"  -v              say on standard error where the job goes, and why\n"
	"  --run-dir DIR   the agent's directory [/run/iocom, or $IOCOM_RUN_DIR]\n";

static const char help_status[] =
	"Ctrl-C and other signals go to the command; before its start the second one\n"
	"gives up.\n"
	"exit status:\n"
	"  the command's own; 128 + N when signal N ended it; 127 not found, 126 not\n"
	"  executable; 125 iocom failed before the start, or usage; 255 contact was lost\n"
	"  and the outcome is unknown, or output could not be written; with -n that of\n"
	"  the first task that failed\n";

enum {
	OPTION_ENV = ASK_END,
	OPTION_GRACE,
	OPTION_STATUS_FD,
	OPTION_PTY,
	OPTION_ESCAPE,
	OPTION_RESTARTABLE,
	OPTION_RESTARTS,
	OPTION_MIGRATABLE,
	OPTION_DETACH,
	OPTION_BRING,
	OPTION_WORKER_OF
};

static int take_grace(struct run *run, const char *text, struct iocom_err *err)
{
	char *end;

	run->grace_s = strtod(text, &end);
	if (end == text || *end || !(run->grace_s >= 0 && run->grace_s <= GRACE_MAX_S))
		return iocom_err_set(err, -EINVAL, "--grace takes 0 to %d seconds, not '%s'",
				     GRACE_MAX_S, text);
	return 0;
}

static int take_status_fd(struct run *run, const char *text, struct iocom_err *err)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (end == text || *end || fd < 0 || fd > 1 << 20 || fcntl((int)fd, F_GETFD) < 0 ||
	    (fd < 3 && run->closed & 1u << fd))
		return iocom_err_set(err, -EINVAL,
				     "--status-fd takes the number of an open descriptor, not '%s'",
				     text);
	run->status_fd = (int)fd;
	return 0;
}

static int take_restarts(struct run *run, const char *text, struct iocom_err *err)
{
	char *end;

	errno = 0;
	run->request.ask.restarts = strtol(text, &end, 10);
	if (end == text || *end || errno || run->request.ask.restarts < 0 ||
	    run->request.ask.restarts > PLACEMENT_RESTARTS_MAX)
		return iocom_err_set(err, -EINVAL, "--restarts takes 0 to %d, not '%s'",
				     PLACEMENT_RESTARTS_MAX, text);
	return 0;
}

static int take_own(struct run *run, int option, const char *value, struct iocom_err *err)
{
	switch (option) {
	case OPTION_ENV:
		run->env_rule = value;
		/* A login's environment comes from this machine's record of the user. */
		return run->home ? 0 : run_env_check(value, err);
	case OPTION_GRACE:
		return take_grace(run, value, err);
	case OPTION_BRING:
		return data_names_bring(&run->request.names, value, err);
	case OPTION_MIGRATABLE:
		run->migratable = true;
		return 0;
	case OPTION_DETACH:
		run->detach = true;
		return 0;
	case OPTION_STATUS_FD:
		return take_status_fd(run, value, err);
	case OPTION_PTY:
		run->pty = true;
		return 0;
	case OPTION_ESCAPE:
		return run_tty_take_escape(&run->escape, value, err);
	case OPTION_RESTARTABLE:
		if (run->request.ask.restarts < 0)
			run->request.ask.restarts = RESTARTS_DEFAULT;
		return 0;
	case OPTION_RESTARTS:
		return take_restarts(run, value, err);
	case OPTION_WORKER_OF:
		run->name = "iocom batch";
		run->worker = true;
		run->request.shown = value;
		return 0;
	case 'j':
		run->json = true;
		return 0;
	case 'v':
		run->verbose = true;
		return 0;
	default: /* getopt_long has printed what is wrong */
		return iocom_err_set(err, -EINVAL, "see iocom run --help%s",
				     !optopt || strchr(ELSEWHERE, optopt)
					     ? "; for options of srun and mpirun see "
					       "iocom-run(1), PARALLEL JOBS"
					     : "");
	}
}

/* Returns an option that was given and needs a single job; NULL: there is none. */
static const char *for_one(const struct run *run)
{
	return *run->request.ask.node ? "--node"
	       : run->pty	      ? "--pty"
	       : run->detach	      ? "--detach"
				      : NULL;
}

/* Returns an option that was given and does not go with -n; NULL: there is none. */
static const char *for_no_gang(const struct run *run)
{
	const struct data_names *names = &run->request.names;

	return *run->request.ask.node		? "--node"
	       : run->pty			? "--pty"
	       : run->request.ask.restarts >= 0 ? "--restartable"
	       : names->ndata			? "--data PATH"
	       : run->migratable		? "--migratable"
	       : names->nbrings			? "--bring"
	       : run->worker			? "--worker-of"
						: NULL;
}

/* Checks --stdin for one job.  Returns 0 or -EINVAL. */
static int check_stdin(struct run *run, struct iocom_err *err)
{
	run->null |= run->multi.stdin_none && !run->multi.nodes;
	if (run->null && run->pty)
		return iocom_err_set(err, -EINVAL, "--pty needs an input: give no --stdin none");
	return 0;
}

static int check_many(struct run *run, char *const *command, struct iocom_err *err)
{
	bool tasks = run->gang.tasks >= 0;
	int rc = multi_check(&run->multi, for_one(run), tasks, err);

	if (!rc)
		rc = gang_options_check(&run->gang, &run->request.ask, for_no_gang(run), command,
					err);
	run->gang.label = run->multi.labels && run->multi.label;
	return rc ? rc : check_stdin(run, err);
}

/* Returns 0: go on; 1: help was printed; -EINVAL: usage, with the reason in ERR. */
static int cmd_run_parse(struct run *run, int argc, char **argv, struct iocom_err *err)
{
	static const struct option own[] = {
		MULTI_LONG_OPTIONS,
		GANG_LONG_OPTIONS,
		{"env", required_argument, NULL, OPTION_ENV},
		{"grace", required_argument, NULL, OPTION_GRACE},
		{"migratable", no_argument, NULL, OPTION_MIGRATABLE},
		{"detach", no_argument, NULL, OPTION_DETACH},
		{"bring", required_argument, NULL, OPTION_BRING},
		{"status-fd", required_argument, NULL, OPTION_STATUS_FD},
		{"pty", no_argument, NULL, OPTION_PTY},
		{"escape", required_argument, NULL, OPTION_ESCAPE},
		/* this option comes from cmd_batch.c */
		{"worker-of", required_argument, NULL, OPTION_WORKER_OF},
		{"restartable", no_argument, NULL, OPTION_RESTARTABLE},
		{"restarts", required_argument, NULL, OPTION_RESTARTS},
		{"json", no_argument, NULL, 'j'},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct option *options = placement_request_options(own);
	int option, rc;

	while ((option = getopt_long(argc, argv, "+hn:vN:", options, NULL)) != -1) {
		if (option == 'h') {
			printf("%s%s%s%s%s", help, ask_help, gang_help, multi_help, help_status);
			return 1;
		}
		rc = placement_request_take(&run->request, option, optarg, err);
		if (rc == 1)
			rc = multi_take(&run->multi, option == 'N' ? MULTI_NODES : option, optarg,
					err);
		if (rc == 1)
			rc = gang_options_take(&run->gang, &run->request.ask,
					       option == 'n' ? GANG_TASKS : option, optarg, err);
		if (rc == 1)
			rc = take_own(run, option, optarg, err);
		if (rc)
			return rc;
	}
	rc = check_many(run, argv + optind, err);
	if (rc)
		return rc;
	if (run->pty && run->request.ask.restarts >= 0)
		return iocom_err_set(err, -EINVAL, "--pty and --restartable do not go together");
	rc = data_names_check(&run->request.names,
			      run->multi.nodes ? "-N"
			      : run->detach    ? "--detach"
					       : NULL,
			      err);
	if (rc)
		return rc;
	if (optind >= argc)
		return iocom_err_set(err, -EINVAL, "name a command (iocom run --help)");
	run->command = argv + optind;
	run->request.ask.worker = run_is_worker(run->command);
	run->request.ask.detach = run->detach;
	run->request.ask.named = run->verbose || run->json || run->status_fd >= 0;
	return 0;
}

/* Finds the working directory and the executable.  Returns 0 or the exit code. */
static int cmd_run_resolve(struct run *run, struct iocom_err *err)
{
	/* A node that the user named may have the executable even if we do not. */
	bool here = !*run->request.ask.node && !run->multi.nodes;

	run->cwd = run->home ? strdup(*run->home == '/' ? run->home : "/") : getcwd(NULL, 0);
	run->request.ask.home_dir = run->home != NULL;
	if (!run->cwd || run->cwd[0] != '/')
		return iocom_err_set(err, RUN_FAILED, "cannot read the working directory: %s",
				     run->cwd ? "it is not reachable" : strerror(errno));
	return command_look(run->command[0], run->cwd, here, &run->executable, err);
}

/* Puts /dev/null on descriptor 0, so that whoever feeds our input sees that nobody reads it. */
static int null_input(struct iocom_err *err)
{
	int null = open("/dev/null", O_RDONLY);

	if (null >= 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO) {
		if (null != STDIN_FILENO)
			close(null);
		return 0;
	}
	return iocom_err_set(err, RUN_FAILED, "cannot open /dev/null: %s", strerror(errno));
}

/* Prints iocom's own error, if any.  Returns the exit code. */
static int cmd_run_conclude(struct run *run, int rc, const struct iocom_err *err)
{
	if (!*err->text)
		return rc;
	if (!run->worker || run->report.fd < 0)
		fprintf(stderr, "%s: %s\n", run->name, err->text);
	rc = rc < 0 ? RUN_FAILED : rc;
	run->failed = rc == RUN_FAILED;
	return rc;
}

/* Runs in the process that handles one of many nodes; see multi.h. */
static int run_at(void *arg, const char *node, int report_fd)
{
	struct run *run = arg;
	struct iocom_err err = {0};

	if (placement_request_node(&run->request, node, &err))
		return cmd_run_conclude(run, RUN_FAILED, &err);
	run->report = (struct run_report){.fd = report_fd, .job = "", .node = node, .brief = true};
	return cmd_run_conclude(run, run_job(run, &err), &err);
}

static int run_many(struct run *run, struct iocom_err *err)
{
	struct nodelist nodes = {0}, spares = {0};
	struct multi_job job = {
		.name = run->name,
		.run = run_at,
		.arg = run,
		.status_fd = run->report.fd,
		.spares = &spares,
	};
	int rc = multi_nodes(run->name, run->multi.nodes, &run->request, run->cwd, run->executable,
			     run->command, &nodes, &spares, err);

	run->request.ask.picked = multi_picks(run->multi.nodes);
	if (rc)
		run_report_end(&run->report, "failed", NULL, RUN_FAILED, err->text);
	else
		rc = multi_run(&run->multi, &job, &nodes);
	nodelist_fini(&nodes);
	nodelist_fini(&spares);
	return rc;
}

int run_main(int argc, char **argv, const char *home, bool *failed)
{
	struct run run = {
		.name = argv[0],
		.home = home,
		.env_rule = "all",
		.grace_s = GRACE_DEFAULT_S,
		.status_fd = -1,
		.stream = -1,
		.escape = RUN_TTY_ESCAPE,
		.closed = run_closed_descriptors(),
		.report = {.fd = -1, .job = "", .node = ""},
	};
	struct iocom_err err = {0};
	int rc;

	*failed = false;
	placement_request_init(&run.request);
	placement_data_init(&run.along);
	multi_init(&run.multi);
	gang_options_init(&run.gang);
	rc = cmd_run_parse(&run, argc, argv, &err);
	if (rc > 0)
		return fflush(stdout) ? RUN_FAILED : 0;
	run_tty_init(&run.tty, run.closed & 1 ? -1 : STDIN_FILENO);
	run.tty.escape = run.escape;
	run.report.fd = run.status_fd < 0 && run.json ? STDERR_FILENO : run.status_fd;
	rc = rc || (run.null && null_input(&err)) ? RUN_FAILED : cmd_run_resolve(&run, &err);
	if (rc)
		run_report_end(&run.report, "failed", NULL, rc, err.text);
	else
		rc = run.multi.nodes	  ? run_many(&run, &err)
		     : run.gang.tasks > 0 ? gang_run(&run, &err)
					  : run_job(&run, &err);
	rc = cmd_run_conclude(&run, rc, &err);
	*failed = run.failed;
	run_tty_deinit(&run.tty);
	spec_free(&run.spec);
	placement_data_free(&run.along);
	if (run.stream >= 0)
		close(run.stream);
	free(run.cwd);
	free(run.executable);
	return rc;
}

int cmd_run(int argc, char **argv)
{
	bool failed;

	return run_main(argc, argv, NULL, &failed);
}
