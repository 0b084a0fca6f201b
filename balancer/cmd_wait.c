/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom wait` waits until jobs have ended. */
#include <stdio.h>
#include <string.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/job_command.h"
#include "balancer/listing.h"
#include "user/pack.h"
#include "balancer/run/run.h"

static const char help[] =
	"usage: iocom wait [--json] [--run-dir DIR] JOB...\n"
	"Waits until every JOB (or `last`) has ended and returns the last job's exit status, as "
	"iocom\n"
	"run would: 255 when the outcome is unknown, 125 when the job never started.\n\n"
	"  --json           one object a job and line: state, exit status, times\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"Ctrl-C ends the waiting; the jobs go on.  When the agent restarts, iocom wait asks it\n"
	"again for 30 s.\n"
	"exit status: as above; 125 no such job, no agent, usage\n";

static int cmd_wait_status_of(const json_t *job)
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

static int cmd_wait_ask(const struct job_command *command, struct client_patience *patience,
			const char *job, bool now, json_t **answer, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 3u + now);
	pack_str(&pk, "op", "wait");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "job", job);
	if (now)
		pack_bool(&pk, "now", true);
	return client_ask_patiently(patience, command->run_dir, &buffer, answer, err);
}

/* Waits for JOB.  Returns its exit status, or RUN_FAILED with ERR. */
static int cmd_wait_for(const struct job_command *command, struct client_patience *patience,
			const char *job, struct iocom_err *err)
{
	json_t *answer = NULL, *newest = NULL;
	int rc;

	/* Look "last" up only once: a second question could find a newer job. */
	rc = strcmp(job, "last") ? 0 : cmd_wait_ask(command, patience, job, true, &newest, err);
	if (newest)
		job = listing_string(json_object_get(newest, "job"), "job");
	if (!rc)
		rc = cmd_wait_ask(command, patience, job, false, &answer, err);
	json_decref(newest);
	if (rc)
		return RUN_FAILED;
	rc = cmd_wait_status_of(json_object_get(answer, "job"));
	if (command->json) {
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
	static const struct option options[] = {JOB_COMMAND_OPTION_JSON, JOB_COMMAND_OPTIONS, {0}};
	struct job_command command = {.help = help, .usage_status = RUN_FAILED};
	struct client_patience patience = {.name = "iocom wait"};
	int rc = RUN_FAILED;

	if (job_command_option(&command, argc, argv, "h", options) == JOB_COMMAND_LEAVE)
		return command.status;
	if (optind >= argc)
		fprintf(stderr, "iocom wait: name the jobs (iocom jobs lists them)\n");
	for (; optind < argc; optind++) {
		struct iocom_err err = {0};

		rc = cmd_wait_for(&command, &patience, argv[optind], &err);
		if (*err.text)
			fprintf(stderr, "iocom wait: %s\n", err.text);
	}
	return rc;
}
