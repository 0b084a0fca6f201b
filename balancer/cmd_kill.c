/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom kill` sends a signal to jobs, wherever they run. */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "balancer/commands.h"
#include "balancer/job_command.h"

#define SIGNAL_MAX 64 /* the highest signal that an agent passes on */

static const char help[] =
	"usage: iocom kill [-SIGNAL | -s SIGNAL] [--run-dir DIR] JOB...\n"
	"       iocom kill -l\n"
	"Sends SIGNAL (a name or a number) [TERM] to the first process of each JOB and\n"
	"its group; KILL ends the whole job, 0 only asks whether it runs.\n\n"
	"  JOB              as `iocom jobs` lists it, of any home node; n2-17 or 17 if no\n"
	"                   other job has that number; last: your newest that was\n"
	"                   submitted here\n"
	"  -s SIGNAL        the same as -SIGNAL\n"
	"  -l               list the signals\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0; 1 a job got no signal (no such job, it has ended, no agent);\n"
	"2 usage\n";

/* Returns the number of a signal's name or number; negative: there is none. */
static int signal_of(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (*text >= '0' && *text <= '9')
		return !*end && number <= SIGNAL_MAX ? (int)number : -1;
	if (!strncasecmp(text, "SIG", 3))
		text += 3;
	for (int i = 1; i < NSIG; i++)
		if (sigabbrev_np(i) && !strcasecmp(sigabbrev_np(i), text))
			return i;
	return -1;
}

static int list(void)
{
	for (int i = 1; i < NSIG; i++)
		if (sigabbrev_np(i))
			printf("%2d %s\n", i, sigabbrev_np(i));
	if (!ferror(stdout) && !fflush(stdout))
		return 0;
	fprintf(stderr, "iocom kill: cannot write to standard output\n");
	return 1;
}

static int kill_one(const struct job_command *command, const char *job, int signal)
{
	struct iocom_err err = {0};
	json_t *answer = NULL;
	int rc = job_command_ask(command, "kill", job, signal, &answer, &err);

	if (rc)
		fprintf(stderr, "iocom kill: %s\n", err.text);
	json_decref(answer);
	return rc ? 1 : 0;
}

int cmd_kill(int argc, char **argv)
{
	static const struct option options[] = {JOB_COMMAND_OPTIONS, {0}};
	struct job_command command = {.help = help, .usage_status = 2};
	const char *name = "TERM";
	int c, rc = 0, signal;

	/* getopt knows neither -9 nor -TERM.  We take -FROB too, to call it an unknown signal. */
	if (argc > 1 && argv[1][0] == '-' && argv[1][1] != '-' &&
	    (signal_of(argv[1] + 1) >= 0 || isupper((unsigned char)argv[1][1]) ||
	     isdigit((unsigned char)argv[1][1]))) {
		name = argv[1] + 1;
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	while ((c = job_command_option(&command, argc, argv, "hls:", options)) == 's')
		name = optarg;
	if (c == 'l')
		return list();
	if (c == JOB_COMMAND_LEAVE)
		return command.status;
	signal = signal_of(name);
	if (signal < 0 || optind >= argc) {
		fprintf(stderr,
			signal >= 0 ? "iocom kill: name the jobs (iocom jobs lists them)\n"
				    : "iocom kill: there is no signal '%s' (iocom kill -l lists "
				      "them)\n",
			name);
		return 2;
	}
	for (; optind < argc; optind++)
		rc |= kill_one(&command, argv[optind], signal);
	return rc;
}
