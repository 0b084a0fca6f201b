/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom wait`: until jobs have ended. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "commands.h"
#include "listing.h"
#include "pack.h"
#include "run.h"

static const char help[] =
	"usage: iocom wait [--json] [--run-dir DIR] JOB...\n"
	"Waits until every JOB (or `last`) has ended; the exit status is the last one's, as iocom\n"
	"run's would be: 255 when nobody knows how it ended, 125 when it never started.\n\n"
	"  --json           one object a job and line: state, exit status, times\n"
	"  --run-dir DIR    the agent's directory\n";

static int status_of(const json_t *job)
{
	int value = (int)listing_number(job, "exit_value");

	if (!strcmp(listing_string(job, "state"), "lost"))
		return RUN_UNKNOWN;
	switch ((int)listing_number(job, "exit_kind")) {
	case 0:
	case 2:
		return value;
	case 1:
		return 128 + value;
	default:
		return RUN_FAILED;
	}
}

/* The exit status of JOB, or RUN_FAILED and ERR. */
static int wait_for(const char *run_dir, const char *job, bool json, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	json_t *answer = NULL;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 3);
	pack_str(&pk, "op", "wait");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "job", job);
	if (client_ask(run_dir, &buffer, &answer, err))
		return RUN_FAILED;
	rc = status_of(json_object_get(answer, "job"));
	if (json) {
		json_object_set_new(json_object_get(answer, "job"), "status", json_integer(rc));
		if (json_dumpf(json_object_get(answer, "job"), stdout, JSON_COMPACT) ||
		    putchar('\n') == EOF || fflush(stdout))
			rc = iocom_err_set(err, RUN_FAILED, "cannot write to standard output");
	}
	json_decref(answer);
	return rc;
}

int cmd_wait(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"run-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *run_dir = NULL;
	bool json = false;
	int c, rc = RUN_FAILED;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'j')
			json = true;
		else if (c == 'r')
			run_dir = optarg;
		else
			return fputs(help, c == 'h' ? stdout : stderr), c == 'h' ? 0 : RUN_FAILED;
	}
	if (optind >= argc)
		fprintf(stderr, "iocom wait: for which jobs? (iocom jobs lists them)\n");
	for (; optind < argc; optind++) {
		struct iocom_err err = {0};

		rc = wait_for(run_dir, argv[optind], json, &err);
		if (*err.text)
			fprintf(stderr, "iocom wait: %s\n", err.text);
	}
	return rc;
}
