/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom run` places a command and runs it there as if it ran here. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/placement_data.h"
#include "balancer/placement_request.h"
#include "balancer/commands.h"
#include "balancer/run/multi.h"
#include "balancer/run/run.h"
#include "balancer/placement_text.h"

#define GRACE_DEFAULT_S	 30
#define GRACE_MAX_S	 86400
#define RESTARTS_DEFAULT 3
#define WAIT_MIN_MS	 10 /* shortest pause when home says when to ask again */

static const char help[] =
	"usage: iocom run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"       iocom run -N LIST [OPTION...] [--] COMMAND [ARGUMENT...]\n"
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
	"  --detach        print the job's name and end once it runs; see iocom attach,\n"
	"                  wait; with --pty the job keeps a terminal to come back to\n"
	"  -n              standard input is /dev/null, as with ssh and rsh: for\n"
	"                  `while read` loops\n"
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
	"  and the outcome is unknown, or output could not be written\n";

struct run {
	const char *name; /* "iocom run", or the command that uses it, for sentences */
	/* a login's directory ("/" if missing); NULL: start in our working directory */
	const char *home;
	struct placement_request request;
	struct multi_options multi;
	const char *env_rule;
	double grace_s;
	int status_fd;
	bool json, verbose, detach, null;
	bool worker; /* a worker of `iocom batch`, which prints the refusal itself */
	bool kept;   /* we stay in the background to start further attempts */
	bool pty;
	int escape;
	bool failed;	 /* iocom failed before the job began */
	uint32_t closed; /* which of 0, 1, 2 were closed, as a mask */
	char **command;
	char *cwd, *executable;
	struct spec spec; /* it went with the request, and has no names yet; all zero: none did */
	int stream;	  /* of the job that the agent has begun; -1: none */
	struct run_result result;
	struct noise_pair pair; /* for the first handshake */
	off_t input_at;		/* offset at which a file on standard input began; -1: no file */
	struct run_report report;
	struct run_tty tty;
	struct placement_data along; /* what goes along */
};

enum {
	OPTION_ENV = ASK_END,
	OPTION_GRACE,
	OPTION_STATUS_FD,
	OPTION_PTY,
	OPTION_ESCAPE,
	OPTION_RESTARTABLE,
	OPTION_RESTARTS,
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
	case 'n':
		run->null = true;
		return 0;
	case 'j':
		run->json = true;
		return 0;
	case 'v':
		run->verbose = true;
		return 0;
	default: /* getopt_long has printed what is wrong */
		return iocom_err_set(err, -EINVAL, "see iocom run --help");
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

/* Checks -n, and --stdin for one job.  Returns 0 or -EINVAL. */
static int check_stdin(struct run *run, struct iocom_err *err)
{
	if (run->null && run->multi.stdin_all)
		return iocom_err_set(err, -EINVAL, "-n and --stdin all do not go together");
	run->null |= run->multi.stdin_none && !run->multi.nodes;
	if (run->null && run->pty)
		return iocom_err_set(err, -EINVAL,
				     "--pty needs an input: give no -n, no --stdin none");
	return 0;
}

/* Returns 0: go on; 1: help was printed; -EINVAL: usage, with the reason in ERR. */
static int cmd_run_parse(struct run *run, int argc, char **argv, struct iocom_err *err)
{
	static const struct option own[] = {
		MULTI_LONG_OPTIONS,
		{"env", required_argument, NULL, OPTION_ENV},
		{"grace", required_argument, NULL, OPTION_GRACE},
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

	while ((option = getopt_long(argc, argv, "+hnvN:", options, NULL)) != -1) {
		if (option == 'h') {
			printf("%s%s%s%s", help, ask_help, multi_help, help_status);
			return 1;
		}
		rc = placement_request_take(&run->request, option, optarg, err);
		if (rc == 1)
			rc = multi_take(&run->multi, option == 'N' ? MULTI_NODES : option, optarg,
					err);
		if (rc == 1)
			rc = take_own(run, option, optarg, err);
		if (rc)
			return rc;
	}
	rc = multi_check(&run->multi, for_one(run), err);
	if (!rc)
		rc = check_stdin(run, err);
	if (rc)
		return rc;
	if (run->pty && run->request.ask.restarts >= 0)
		return iocom_err_set(err, -EINVAL, "--pty and --restartable do not go together");
	rc = data_names_check(&run->request.names,
			      run->request.ask.restarts >= 0 ? "--restartable"
			      : run->multi.nodes	     ? "-N"
			      : run->detach		     ? "--detach"
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
	char *absolute;

	run->cwd = run->home ? strdup(*run->home == '/' ? run->home : "/") : getcwd(NULL, 0);
	run->request.ask.home_dir = run->home != NULL;
	if (!run->cwd || run->cwd[0] != '/')
		return iocom_err_set(err, RUN_FAILED, "cannot read the working directory: %s",
				     run->cwd ? "it is not reachable" : strerror(errno));
	run->executable = placement_request_resolve(run->command[0], run->cwd, getenv("PATH"));
	if (run->executable && run->executable[0] != '/' && strchr(run->executable, '/')) {
		if (asprintf(&absolute, "%s/%s", run->cwd, run->executable) < 0)
			absolute = NULL;
		free(run->executable);
		run->executable = absolute;
	}
	if (!run->executable)
		return iocom_err_set(err, RUN_FAILED, "out of memory");
	/* A node that the user named may have the executable even if we do not. */
	return *run->request.ask.node || run->multi.nodes
		       ? 0
		       : run_executable_check(run->command[0], run->executable, err);
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

/* Fills SPEC, but for what its place is called: job, node and nonce. */
static int cmd_run_describe(const struct run *run, const char *cwd, struct spec *spec,
			    struct iocom_err *err)
{
	int rc = run_spec_fill(spec, run->command, cwd, run->executable, run->env_rule, err);

	if (rc)
		return rc;
	placement_request_class(&run->request, run->command, spec->class_name);
	spec->closed = run->closed;
	spec->grace_ms = (uint32_t)lround(run->grace_s * 1000);
	if (run->pty)
		run_tty_describe(&run->tty, &spec->tty);
	spec->detach = run->detach;
	spec->worker = run->request.ask.worker;
	return 0;
}

/*
 * The start goes with the request, unless somebody must hear of the place before it, or the place
 * decides what the job is: its directory, or which attempt it is.
 */
static bool cmd_run_may_begin(const struct run *run)
{
	const struct placement_ask *ask = &run->request.ask;

	return !ask->named && !*ask->again && ask->restarts < 0 && !run->home;
}

/* Places the job, which has begun if it runs here and its spec is not long. */
/* While the agents decide: what the handshake with another node will need. */
static void cmd_run_meanwhile(void *arg)
{
	struct run *run = arg;

	noise_pair_new(&run->pair);
}

static int cmd_run_begin(struct run *run, struct placement *answer, struct iocom_err *err)
{
	void *packed = NULL;
	size_t length = 0;
	int rc = cmd_run_describe(run, run->cwd, &run->spec, err);

	placement_init(answer);
	if (!rc) {
		strcpy(run->spec.job, SPEC_UNPLACED);
		strcpy(run->spec.node, SPEC_UNPLACED);
		rc = spec_pack(&run->spec, &packed, &length, err);
	}
	if (!rc && length <= PLACEMENT_SPEC_MAX) {
		run->request.ask.spec = packed;
		run->request.ask.spec_length = (uint32_t)length;
	}
	if (!rc)
		rc = placement_request_begin(&run->request, cmd_run_meanwhile, run, run->cwd,
					     run->executable, run->command, answer, &run->stream,
					     err);
	run->request.ask.spec = NULL;
	free(packed);
	return rc;
}

static int cmd_run_place(void *arg, struct placement *answer, struct iocom_err *err)
{
	struct run *run = arg;

	if (cmd_run_may_begin(run))
		return cmd_run_begin(run, answer, err);
	return placement_request_ask(&run->request, true, run->cwd, run->executable, run->command,
				     answer, err);
}

/* Copies one field of the answer.  Returns 0 or -EPROTO. */
static int take_field(const char *value, const char *key, char *out, size_t size,
		      struct iocom_err *err)
{
	if (*value && strlen(value) < size) {
		strcpy(out, value);
		return 0;
	}
	return iocom_err_set(err, -EPROTO, "the agent's answer has no usable '%s'", key);
}

/* The directory in which the job begins: ours, or the home directory for a login. */
static const char *directory(const struct run *run, const struct placement *answer)
{
	const char *directory = *answer->directory ? answer->directory : run->cwd;

	if (!run->home)
		return run->cwd;
	/* For a local job nobody has tried the directory yet: we do. */
	if (!*answer->address && chdir(run->cwd))
		directory = "/";
	if (strcmp(directory, run->cwd) != 0)
		fprintf(stderr, "%s: there is no home directory %s on %s; starting in /\n",
			run->name, run->cwd, answer->node);
	return directory;
}

/* Fills SPEC for the place that ANSWER names. */
static int cmd_run_name(struct run *run, const struct placement *answer, struct spec *spec,
			struct iocom_err *err)
{
	int rc = 0;

	*spec = run->spec;
	run->spec = (struct spec){0};
	if (!spec->argv)
		rc = cmd_run_describe(run, directory(run, answer), spec, err);
	if (!rc && run->along.used && *answer->address)
		rc = run_data_describe(&run->along.set, spec, err);
	if (rc)
		return rc;
	rc = take_field(answer->job, "job", spec->job, sizeof(spec->job), err);
	if (!rc)
		rc = take_field(answer->node, "node", spec->node, sizeof(spec->node), err);
	if (!rc)
		rc = take_field(answer->nonce, "nonce", spec->nonce, sizeof(spec->nonce), err);
	if (rc)
		spec_free(spec);
	return rc;
}

/* Takes the target from the answer; $IOCOM_MUNGE_SOCKET has precedence. */
static int find_target(const struct run *run, const struct placement *answer,
		       struct run_target *target, struct iocom_err *err)
{
	const char *socket = getenv("IOCOM_MUNGE_SOCKET");

	if (!socket || !*socket)
		socket = answer->munge_socket;
	*target = (struct run_target){
		.run_dir = run->request.run_dir,
		.address = answer->address,
		.port = (unsigned)answer->port,
		.munge_socket = *socket ? socket : NULL,
		.ticket = "",
	};
	return run_target_key(target, answer->key, err);
}

/* What the callbacks of run_stream need. */
struct contact {
	const struct run *run;
	const struct run_data *data; /* what goes along; NULL: nothing */
	const struct run_target *target;
	bool said;
};

static void tell_started(void *arg, const struct run_result *result)
{
	const struct contact *contact = arg;

	if (contact->data && contact->run->verbose)
		run_data_tell(contact->data, contact->run->name);
	if (contact->data)
		run_report_staged(&contact->run->report, contact->data);
	run_report_started(&contact->run->report, result->pid);
}

static int cmd_run_ask_again(void *arg, const struct attach_ask *ask, struct records *records)
{
	struct contact *contact = arg;
	struct iocom_err err = {0};
	int fd;

	if (!contact->said)
		fprintf(stderr, "%s: contact with node %s was lost; trying for %g s\n",
			contact->run->name, ask->node, contact->run->grace_s);
	contact->said = true;
	return run_connect_attach(contact->target, ask, &fd, records, &err) ? -1 : fd;
}

/* A lost job that is tied to a node is not run anywhere else. */
static const char *tell_where_again(const struct run *run, const struct run_result *result)
{
	if (result->state != RUN_EXITED || result->kind != 3 || result->value != RUN_UNKNOWN ||
	    run->request.ask.restarts < 0 || !*run->request.ask.node)
		return "";
	return " (only at the node that is asked for: --node)";
}

/* Prints how the job ended if iocom, not the job, is the cause. */
static void tell_end(const struct run *run, const struct run_result *result, int status)
{
	static const char *const states[] = {"lost", "lost", "exited", "failed", "lost"};
	const char *state = states[result->state];

	if (result->state == RUN_EXITED && result->kind >= 2)
		state = "failed";
	if (*result->text && !result->signal && !(run->worker && status == RUN_FAILED))
		fprintf(stderr, "%s: %s%s\n", run->name, result->text,
			tell_where_again(run, result));
	if (result->output_error)
		fprintf(stderr, "%s: output of the job was lost: %s\n", run->name,
			strerror(result->output_error));
	run_report_end(&run->report, state, result, status, result->text);
}

/* A detached job prints only its name. */
static int print_name(const struct run *run, const char *job)
{
	if (printf("%s\n", job) > 0 && !fflush(stdout))
		return 0;
	fprintf(stderr, "%s: cannot print the name of job %s, which runs\n", run->name, job);
	return RUN_UNKNOWN;
}

static int run_there(struct run *run, const struct placement *answer, const struct spec *spec,
		     struct iocom_err *err)
{
	struct run_target target;
	struct records records;
	struct contact contact = {.run = run, .target = &target};
	struct attach_ask self = {0};
	struct run_stream_options options = {
		/*
		 * A closed input is /dev/null by now, which would end a terminal's input at
		 * once.
		 */
		.stdio = {(run->closed & 1 && !run->pty) || run->detach ? -1 : 0, 1, 2},
		.signals = !run->kept, /* in the background we handle the signals ourselves */
		.tty = run->pty && !run->detach ? &run->tty : NULL,
		.leave = run->detach,
		.started = tell_started,
		.again = run->detach ? NULL : cmd_run_ask_again,
		.again_ms = spec->grace_ms,
		.self = &self,
		.arg = &contact,
	};
	struct run_result *result = &run->result;
	struct run_data data;
	int fd, status;

	memcpy(self.job, spec->job, sizeof(self.job));
	memcpy(self.node, spec->node, sizeof(self.node));
	memcpy(self.resume, spec->nonce, sizeof(self.resume));
	if (find_target(run, answer, &target, err))
		return -1;
	target.pair = &run->pair;
	if (spec->data && run_data_init(&data, &run->along.set, run->along.memory, spec->node))
		return iocom_err_set(err, -1, "out of memory for the job's data");
	if (spec->data)
		contact.data = options.data = &data;
	if (answer->begun)
		fd = run->stream;
	else if (run_connect(&target, spec, &fd, &records, err))
		fd = -1;
	if (fd < 0) {
		if (spec->data)
			run_data_fini(&data);
		return -1;
	}
	options.records = run_target_records(&target, &records);
	run->stream = -1;
	if (run->request.ask.restarts >= 0)
		run_again_keep_outputs(&options, (int)answer->lease_ms);
	status = run_stream(&options, fd, result);
	records_erase(&records);
	explicit_bzero(target.key, sizeof(target.key));
	if (run->request.ask.restarts >= 0)
		run_again_drop_outputs(&options);
	if (result->state == RUN_LOST && run->request.ask.restarts < 0 && !result->signal &&
	    !result->left && strcmp(result->text, ATTACH_ELSEWHERE) != 0)
		status = run_home(run->request.run_dir, spec->job, result);
	run->failed = !result->signal && status == RUN_FAILED &&
		      (result->state == RUN_REFUSED ||
		       (result->state == RUN_EXITED && result->kind == 3));
	if (run->detach && result->state == RUN_STARTED && !status)
		return print_name(run, spec->job);
	tell_end(run, result, status);
	if (spec->data)
		status = run_data_end(&data, run->name, status);
	return status;
}

/* Returns the exit code, or -1: it failed before the job began, and ERR says how. */
static int run_placed(struct run *run, const struct placement *answer, struct iocom_err *err)
{
	char before[SPEC_JOB_MAX + 64];
	struct spec spec = {0};
	int status;

	if (cmd_run_name(run, answer, &spec, err)) {
		run_report_end(&run->report, "failed", NULL, RUN_FAILED, err->text);
		return -1;
	}
	run->report.job = spec.job;
	run->report.node = spec.node;
	run_report_placed(&run->report, answer);
	/* A batch has many workers, and one list of needs: `iocom explain` says it of each. */
	if (!run->request.ask.worker && answer->attempt <= 1) {
		snprintf(before, sizeof(before), "%s: job %s: ", run->name, spec.job);
		placement_text_unmet(answer, before, stderr);
	}
	if (run->verbose) {
		fprintf(stderr, "%s: job %s: ", run->name, spec.job);
		placement_text_line(answer, stderr);
	}
	status = run_there(run, answer, &spec, err);
	if (status < 0)
		run_report_end(&run->report, "failed", NULL, RUN_FAILED, err->text);
	run->report.job = run->report.node = "";
	spec_free(&spec);
	return status;
}

/* Returns 0: ANSWER is the next attempt's; 1: *STATUS says how the job ended. */
static int next_attempt(struct run *run, struct placement *answer, int *status,
			struct iocom_err *err)
{
	struct placement next;
	int rc;

	snprintf(run->request.ask.again, sizeof(run->request.ask.again), "%s", answer->job);
	if (run->input_at >= 0)
		(void)lseek(STDIN_FILENO, run->input_at, SEEK_SET);
	rc = run_again(cmd_run_place, run, run->detach ? RUN_KEEP_MS : WAIT_MIN_MS, &run->result,
		       &next, err);
	run->request.ask.again[0] = 0;
	if (rc == 1) {
		*status = run_exit_code(&run->result);
		run->report.job = answer->job;
		run->report.node = answer->node;
		tell_end(run, &run->result, *status);
		run->report.job = run->report.node = "";
	}
	if (rc < 0)
		*status = RUN_UNKNOWN;
	if (rc) {
		placement_fini(&next);
		return 1;
	}
	fprintf(stderr, "%s: job %s was lost with node %s; attempt %d is job %s at node %s\n",
		run->name, answer->job, answer->node, (int)next.attempt, next.job, next.node);
	placement_fini(answer);
	*answer = next;
	return 0;
}

/* Runs the job in as many attempts as it takes.  Returns as run_placed does. */
static int run_attempts(struct run *run, struct placement *answer, struct iocom_err *err)
{
	int status;

	run->input_at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	status = run_placed(run, answer, err);
	if (run->detach && run->request.ask.restarts >= 0 && status == 0) {
		if (run_background(run->name, answer->job))
			return status;
		run->report.fd = -1;
		run->kept = true;
	}
	while (run->request.ask.restarts >= 0 && status >= 0 && run_may_restart(&run->result)) {
		if (next_attempt(run, answer, &status, err))
			return status;
		memset(&run->result, 0, sizeof(run->result));
		status = run_placed(run, answer, err);
		if (status >= 0)
			continue;
		/*
		 * Home placed this attempt, but we cannot reach it: it counts as lost before
		 * its start.
		 */
		fprintf(stderr, "%s: %s\n", run->name, err->text);
		err->text[0] = 0;
		run->result.state = RUN_LOST;
		status = RUN_UNKNOWN;
	}
	return status;
}

/* Places and runs one job.  Returns the exit code (>= 0); ERR says what failed, if anything. */
static int run_job(struct run *run, struct iocom_err *err)
{
	struct placement answer;
	int rc = run->worker || run->home ? 0
					  : placement_data_look(&run->along, &run->request,
								run->cwd, run->executable, err);

	placement_init(&answer);
	rc = rc || cmd_run_place(run, &answer, err) ? RUN_FAILED : 0;
	if (rc)
		run_report_end(&run->report, "failed", NULL, rc, err->text);
	else
		rc = run_attempts(run, &answer, err);
	placement_fini(&answer);
	return rc;
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
		rc = run.multi.nodes ? run_many(&run, &err) : run_job(&run, &err);
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
