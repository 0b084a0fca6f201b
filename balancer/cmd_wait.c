/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom wait` waits until jobs have ended. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/job_command.h"
#include "balancer/job_state.h"
#include "balancer/listing.h"
#include "balancer/reach.h"
#include "user/clock.h"
#include "user/pack.h"
#include "balancer/run/run.h"

#define PAUSE_FIRST_MS 50
#define PAUSE_MOST_MS  500
#define AWAY_MS	       30000

static const char help[] =
	"usage: iocom wait [--json] [--run-dir DIR] JOB...\n"
	"Waits until every JOB has ended and returns the last job's exit status, as iocom\n"
	"run would: 255 when the outcome is unknown, 125 when the job never started.\n\n"
	"  JOB              as `iocom jobs` lists it, of any home node; n2-17 or 17 if no\n"
	"                   other job has that number; last: your newest that was\n"
	"                   submitted here\n"
	"  --json           one object a job and line: state, exit status, times\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"Ctrl-C ends the waiting; the jobs go on.  When the agent restarts, iocom wait\n"
	"asks it again for 30 s.\n"
	"exit status: as above; 125 no such job, no agent, usage\n";

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

/* Waits at this node's agent. */
static int cmd_wait_here(const struct job_command *command, struct client_patience *patience,
			 const char *job, json_t **answer, struct iocom_err *err)
{
	json_t *newest = NULL;
	int rc;

	/* Look "last" up only once: a second question could find a newer job. */
	rc = strcmp(job, "last") ? 0 : cmd_wait_ask(command, patience, job, true, &newest, err);
	if (newest)
		job = listing_string(json_object_get(newest, "job"), "job");
	if (!rc)
		rc = cmd_wait_ask(command, patience, job, false, answer, err);
	json_decref(newest);
	return rc;
}

/* Asks JOB's home, another node, for its state once.  Returns 0; 1: it has not ended. */
static int cmd_wait_look(const struct job_command *command, const char *job, json_t **answer,
			 struct iocom_err *err)
{
	struct reach reach;
	msgpack_sbuffer request;
	msgpack_packer pk;
	int rc = reach_open(&reach, command->run_dir, err);

	if (!rc) {
		pack_begin(&pk, &request, 4);
		pack_str(&pk, "op", "wait");
		pack_u64(&pk, "v", 1);
		pack_str(&pk, "job", job);
		pack_bool(&pk, "now", true);
		rc = reach_home(&reach, job, &request, answer, err);
		msgpack_sbuffer_destroy(&request);
	}
	reach_close(&reach);
	if (rc || json_is_true(json_object_get(*answer, "over")))
		return rc;
	json_decref(*answer);
	*answer = NULL;
	return 1;
}

/*
 * Waits for a job of another home, which is asked again and again: an agent does not hold a
 * question of another node for long.  A node that does not answer may come back.
 */
static int cmd_wait_far(const struct job_command *command, const char *job, json_t **answer,
			struct iocom_err *err)
{
	unsigned pause_ms = PAUSE_FIRST_MS;
	uint64_t silent_ms = 0, now;
	bool told = false;
	int rc;

	for (;;) {
		rc = cmd_wait_look(command, job, answer, err);
		now = clock_boot_ms();
		if (rc == 0 || (rc < 0 && rc != -EHOSTUNREACH && !client_agent_is_away(rc)))
			return rc;
		if (rc > 0) {
			silent_ms = 0;
			told = false;
		} else if (!silent_ms) {
			silent_ms = now;
		} else if (now - silent_ms >= AWAY_MS) {
			return rc;
		} else if (!told) {
			fprintf(stderr, "iocom wait: %s; asking again for %d s\n", err->text,
				AWAY_MS / 1000);
			told = true;
		}
		err->text[0] = 0;
		usleep(pause_ms * 1000);
		if (pause_ms < PAUSE_MOST_MS)
			pause_ms += pause_ms / 2;
	}
}

/* Waits for JOB.  Returns its exit status, or RUN_FAILED with ERR. */
static int cmd_wait_for(const struct job_command *command, struct client_patience *patience,
			const char *job, struct iocom_err *err)
{
	char name[SPEC_JOB_MAX], home[64];
	json_t *answer = NULL;
	struct reach reach;
	bool far = false;
	int rc = reach_open(&reach, command->run_dir, err);

	if (client_agent_is_away(rc) && patience->heard) { /* it waits for the agent */
		err->text[0] = 0;
		snprintf(name, sizeof(name), "%.*s", (int)sizeof(name) - 1, job);
		rc = 0;
	} else if (!rc) {
		rc = reach_job(&reach, job, name, err);
		far = !rc && reach_where(&reach, name, home);
	}
	reach_close(&reach);
	if (!rc && far)
		rc = cmd_wait_far(command, name, &answer, err);
	else if (!rc)
		rc = cmd_wait_here(command, patience, name, &answer, err);
	if (rc)
		return RUN_FAILED;
	rc = job_state_status(json_object_get(answer, "job"));
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
