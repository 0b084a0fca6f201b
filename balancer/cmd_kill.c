/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom kill`: a signal to jobs, wherever they run. */
#include <ctype.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client.h"
#include "commands.h"
#include "pack.h"

#define SIGNAL_MAX 64 /* of those that an agent passes on */

static const char help[] =
	"usage: iocom kill [-SIGNAL | -s SIGNAL] [--run-dir DIR] JOB...\n"
	"Sends SIGNAL (a name or a number) [TERM] to the first process of each JOB and its group;\n"
	"KILL ends all of the job.  Ask at a job's home node, or where it runs.\n\n"
	"  JOB              an id from `iocom jobs`, or 'last' for your newest\n"
	"  -s SIGNAL        the same as -SIGNAL\n"
	"  --run-dir DIR    the agent's directory\n";

/* 0: none. */
static int signal_of(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (*text >= '0' && *text <= '9')
		return !*end && number > 0 && number <= SIGNAL_MAX ? (int)number : 0;
	if (!strncasecmp(text, "SIG", 3))
		text += 3;
	for (int i = 1; i < NSIG; i++)
		if (sigabbrev_np(i) && !strcasecmp(sigabbrev_np(i), text))
			return i;
	return 0;
}

static int kill_one(const char *run_dir, const char *job, int signal)
{
	struct iocom_err err = {0};
	msgpack_sbuffer buffer;
	json_t *answer = NULL;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 4);
	pack_str(&pk, "op", "kill");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "job", job);
	pack_u64(&pk, "signal", (uint64_t)signal);
	rc = client_ask(run_dir, &buffer, &answer, &err);
	if (rc)
		fprintf(stderr, "iocom kill: %s\n", err.text);
	json_decref(answer);
	return rc ? 1 : 0;
}

int cmd_kill(int argc, char **argv)
{
	static const struct option options[] = {
		{"run-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *run_dir = NULL, *name = "TERM";
	int c, rc = 0, signal;

	/* -9 and -TERM are no options of getopt's kind; nor is -FROB, which is told as a signal. */
	if (argc > 1 && argv[1][0] == '-' && argv[1][1] != '-' &&
	    (signal_of(argv[1] + 1) || isupper((unsigned char)argv[1][1]) ||
	     isdigit((unsigned char)argv[1][1]))) {
		name = argv[1] + 1;
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	while ((c = getopt_long(argc, argv, "hs:", options, NULL)) != -1) {
		if (c == 's')
			name = optarg;
		else if (c == 'r')
			run_dir = optarg;
		else
			return fputs(help, c == 'h' ? stdout : stderr), c == 'h' ? 0 : 2;
	}
	signal = signal_of(name);
	if (!signal || optind >= argc) {
		fprintf(stderr,
			signal ? "iocom kill: which jobs? (iocom jobs lists them)\n"
			       : "iocom kill: there is no signal '%s'\n",
			name);
		return 2;
	}
	for (; optind < argc; optind++)
		rc |= kill_one(run_dir, argv[optind], signal);
	return rc;
}
