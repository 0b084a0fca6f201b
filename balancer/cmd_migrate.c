/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom migrate` moves a running job to another node. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "balancer/commands.h"
#include "balancer/job_command.h"
#include "balancer/listing.h"

/* Between looks whether it is decided: at first, and later. */
#define MIGRATE_LOOK_MS	 100
#define MIGRATE_LATER_MS 1000
#define MIGRATE_TRIES	 20 /* looks that fail, one after the other, until we know nothing */

static const char help[] =
	"usage: iocom migrate [--json] [--run-dir DIR] JOB [NODE]\n"
	"Moves JOB, which runs and was started with --migratable, to NODE, where it goes\n"
	"on as it was: the same name, the same client, no line of output lost. Meanwhile\n"
	"it is frozen. If anything fails it goes on where it is.\n\n"
	"  JOB              as `iocom jobs` lists it; last: your newest\n"
	"  NODE             without it, the node that the job's policy chooses now\n"
	"  --json           one JSON object: from, to, state, frozen_ms ...; also of\n"
	"                   a move that began and did not come to its end\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"What cannot move, and what a move changes: iocom-run(1), MOVING JOBS.\n"
	"exit status: 0; 1 it did not move, and goes on where it is, or nobody can say\n"
	"whether it did; 2 usage\n";

static void migrate_print(const char *job, const json_t *move)
{
	printf("%s: moved from %s to %s: frozen for %" JSON_INTEGER_FORMAT " ms, %.1f MB\n", job,
	       json_string_value(json_object_get(move, "from")),
	       json_string_value(json_object_get(move, "to")),
	       json_integer_value(json_object_get(move, "frozen_ms")),
	       (double)json_integer_value(json_object_get(move, "bytes")) / 1e6);
}

/* Returns move NUMBER in ANSWER if it is decided, or NULL. */
static const json_t *migrate_decided(const json_t *answer, json_int_t number)
{
	const json_t *move;
	size_t i;

	json_array_foreach (json_object_get(answer, "moves"), i, move) {
		if (json_integer_value(json_object_get(move, "number")) == number &&
		    strcmp(listing_string(move, "state"), "asked") != 0)
			return move;
	}
	return NULL;
}

/* Waits for MS.  Returns how long to wait the next time. */
static unsigned migrate_pause(unsigned ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&pause, NULL);
	return ms * 5 / 4 < MIGRATE_LATER_MS ? ms * 5 / 4 : MIGRATE_LATER_MS;
}

/*
 * Waits until move NUMBER of JOB is decided.  Returns it, borrowed from ANSWER; NULL: see ERR.  The
 * agent may be busy, or start again: the move goes on.
 */
static const json_t *migrate_await(const struct job_command *command, const char *job,
				   json_int_t number, json_t **answer, struct iocom_err *err)
{
	unsigned failed = 0, pause_ms = MIGRATE_LOOK_MS;
	const json_t *move = NULL;

	while (!move && failed < MIGRATE_TRIES) {
		json_decref(*answer);
		*answer = NULL;
		failed = job_command_ask(command, "explain", job, -1, answer, err) ? failed + 1 : 0;
		move = migrate_decided(*answer, number);
		if (!move)
			pause_ms = migrate_pause(failed ? MIGRATE_LATER_MS : pause_ms);
	}
	return move;
}

int cmd_migrate(int argc, char **argv)
{
	static const struct option options[] = {JOB_COMMAND_OPTION_JSON, JOB_COMMAND_OPTIONS, {0}};
	struct job_command command = {.help = help, .usage_status = 2};
	struct iocom_err err = {0};
	const json_t *move;
	json_t *answer = NULL;

	if (job_command_option(&command, argc, argv, "h", options) == JOB_COMMAND_LEAVE)
		return command.status;
	if (argc - optind < 1 || argc - optind > 2 || !*argv[argc - 1]) {
		fprintf(stderr, "iocom migrate: name one job, and at most one node\n");
		return 2;
	}
	if (job_command_send(
		    &command,
		    &(struct job_command_ask){.op = "migrate",
					      .job = argv[optind],
					      .signal = -1,
					      .node = argc - optind > 1 ? argv[optind + 1] : NULL},
		    &answer, &err)) {
		fprintf(stderr, "iocom migrate: %s: %s\n", argv[optind], err.text);
		return 1;
	}
	move = migrate_await(&command, argv[optind],
			     json_integer_value(json_object_get(answer, "number")), &answer, &err);
	if (!move || strcmp(listing_string(move, "state"), "resumed") != 0) {
		if (move)
			iocom_err_set(&err, -EREMOTE, "it goes on at node %s: %s",
				      listing_string(move, "from"), listing_string(move, "why"));
		fprintf(stderr, "iocom migrate: %s: %s%s\n", argv[optind], err.text,
			move ? "" : "; `iocom explain` will say whether it moved");
		if (move && command.json && !json_dumpf(move, stdout, JSON_COMPACT))
			putchar('\n');
		json_decref(answer);
		return 1;
	}
	if (command.json && !json_dumpf(move, stdout, JSON_COMPACT))
		putchar('\n');
	else if (!command.json)
		migrate_print(listing_string(answer, "job"), move);
	json_decref(answer);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
