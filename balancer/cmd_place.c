/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom place`: where a command would run now, and why, without running it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "client.h"
#include "commands.h"
#include "listing.h"
#include "run.h"
#include "verdict.h"

static const char help[] = "usage: iocom place [OPTION...] [--] COMMAND [ARGUMENT...]\n"
			   "Decides where COMMAND would run now, and says why; runs nothing.\n\n"
			   "  --json          the decision as one document\n"
			   "  --run-dir DIR   the agent's directory\n";

static int decide(const struct ask *ask, char **command, bool json)
{
	struct iocom_err err = {0};
	msgpack_sbuffer buffer;
	json_t *answer = NULL;
	char *cwd = getcwd(NULL, 0);
	char *executable = cwd ? ask_resolve(command[0], cwd, getenv("PATH")) : NULL;
	int rc = 1;

	if (!executable) {
		perror("iocom place: cannot read the working directory");
		free(cwd);
		return 1;
	}
	if (!ask->node && run_executable_check(command[0], executable, &err)) {
		fprintf(stderr, "iocom place: %s\n", err.text);
		free(executable);
		free(cwd);
		return 1;
	}
	ask_pack(ask, false, cwd, executable, command, &buffer);
	if (client_ask(ask->run_dir, &buffer, &answer, &err)) {
		fprintf(stderr, "iocom place: %s\n", err.text);
	} else if (json) {
		rc = listing_print_json(answer);
	} else {
		verdict_print(answer, stdout);
		rc = fflush(stdout) ? 1 : 0;
	}
	json_decref(answer);
	free(executable);
	free(cwd);
	return rc;
}

int cmd_place(int argc, char **argv)
{
	static const struct option options[] = {
		ASK_LONG_OPTIONS,
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct iocom_err err = {0};
	bool json = false;
	struct ask ask;
	int c;

	ask_init(&ask);
	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		int rc = ask_take(&ask, c, optarg, &err);

		if (rc < 0) {
			fprintf(stderr, "iocom place: %s\n", err.text);
			return 2;
		}
		if (rc == 0)
			continue;
		if (c == 'j')
			json = true;
		else
			return fprintf(c == 'h' ? stdout : stderr, "%s%s", help, ask_help),
			       c == 'h' ? 0 : 2;
	}
	if (optind >= argc) {
		fprintf(stderr, "iocom place: which command? (iocom place --help)\n");
		return 2;
	}
	return decide(&ask, argv + optind, json);
}
