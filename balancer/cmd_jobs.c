/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom jobs` lists jobs submitted at or running on this node, and how they ended. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/job_command.h"
#include "balancer/listing.h"
#include "user/pack.h"

static const char help[] =
	"usage: iocom jobs [--all] [--limit N] [--json] [--run-dir DIR]\n"
	"Lists jobs submitted here or running here: yours, or everybody's for root.\n\n"
	"  --all            ended jobs too, the newest first\n"
	"  --limit N        list only the newest N ended jobs; 0: all [20; --json: all]\n"
	"  --json           one document\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0; 1 failed (no agent); 2 usage\n";

#define LIMIT 20 /* ended jobs shown to a person */

enum { OPTION_LIMIT = JOB_COMMAND_END };

static int take_limit(const char *text, long *limit)
{
	char *end;

	errno = 0;
	*limit = strtol(text, &end, 10);
	if (end != text && !*end && !errno && *limit >= 0 && *limit <= INT_MAX)
		return 0;
	fprintf(stderr, "iocom jobs: --limit takes a number that is not negative, not '%s'\n",
		text);
	return -EINVAL;
}

static int ask_jobs(const char *run_dir, bool all, json_t **answer, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 3);
	pack_str(&pk, "op", "jobs");
	pack_u64(&pk, "v", 1);
	pack_bool(&pk, "all", all);
	return client_ask(run_dir, &buffer, answer, err);
}

static double cmd_jobs_elapsed_ms(const json_t *job)
{
	double start = listing_number(job, "start_ns");
	double end = listing_number(job, "end_ns");
	struct timespec now;

	if (start <= 0)
		return -1;
	clock_gettime(CLOCK_REALTIME, &now);
	if (end <= 0)
		end = (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
	return end > start ? (end - start) / 1e6 : 0;
}

static void result_cell(struct listing *l, const json_t *job)
{
	int value = (int)listing_number(job, "exit_value");

	if (listing_number(job, "end_ns") <= 0)
		listing_cell(l, "-");
	else if (listing_number(job, "exit_kind") == 1)
		listing_cell(l, "signal %s", sigabbrev_np(value) ? sigabbrev_np(value) : "?");
	else if (listing_number(job, "exit_kind") == 0)
		listing_cell(l, "%d", value);
	else if (!strcmp(listing_string(job, "state"), "lost"))
		listing_cell(l, "unknown");
	else
		listing_cell(l, "not started");
}

/* Writes a time in local time, without the date if it is today's. */
static void started_cell(struct listing *l, const json_t *job)
{
	time_t start = (time_t)(listing_number(job, "start_ns") / 1e9), now = time(NULL);
	struct tm then, today;
	char text[32];

	if (start <= 0 || !localtime_r(&start, &then) || !localtime_r(&now, &today)) {
		listing_cell(l, "-");
		return;
	}
	strftime(text, sizeof(text),
		 then.tm_yday == today.tm_yday && then.tm_year == today.tm_year ? "%H:%M:%S"
										: "%F %H:%M",
		 &then);
	listing_cell(l, "%s", text);
}

static void cmd_jobs_row(struct listing *l, const json_t *job)
{
	char span[32];

	listing_span(span, sizeof(span), cmd_jobs_elapsed_ms(job));
	listing_cell(l, "%s", listing_string(job, "job"));
	listing_cell(l, "%s", listing_string(job, "state"));
	listing_cell(l, "%s", listing_string(job, "user"));
	listing_cell(l, "%s", listing_string(job, "home"));
	listing_cell(l, "%s", listing_string(job, "node"));
	listing_cell(l, "%s", listing_string(job, "policy"));
	started_cell(l, job);
	listing_cell(l, "%s", span);
	result_cell(l, job);
	listing_cell(l, "%s", listing_string(job, "command"));
}

/* Removes the oldest ended jobs beyond LIMIT.  Returns how many it removed. */
static size_t cmd_jobs_cut(json_t *jobs, long limit)
{
	size_t i = 0, cuts = 0;
	long ended = 0;

	while (limit && i < json_array_size(jobs)) {
		if (listing_number(json_array_get(jobs, i), "end_ns") <= 0 || ended++ < limit) {
			i++;
			continue;
		}
		json_array_remove(jobs, i);
		cuts++;
	}
	return cuts;
}

/*
 * Prints the reasons below the table, as they are long and few.  Names in them may hold any
 * bytes.
 */
static void cmd_jobs_print_reasons(const json_t *answer)
{
	size_t i;
	json_t *job;

	json_array_foreach (json_object_get(answer, "jobs"), i, job) {
		const char *text = listing_string(job, "text");

		if (!*text)
			continue;
		printf("%s: ", listing_string(job, "job"));
		listing_text(stdout, text);
		putchar('\n');
	}
}

static int cmd_jobs_print_table(const json_t *answer, size_t older)
{
	static const struct listing_column columns[] = {
		{"JOB", false},	 {"STATE", false},   {"USER", false},	{"HOME", false},
		{"NODE", false}, {"POLICY", false},  {"STARTED", true}, {"ELAPSED", true},
		{"EXIT", true},	 {"COMMAND", false},
	};
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	json_t *job;
	int rc;

	json_array_foreach (json_object_get(answer, "jobs"), i, job)
		cmd_jobs_row(l, job);
	listing_cut(l);
	rc = listing_print(l, stdout);
	if (!rc && older)
		printf("... and %zu older (--limit 0: all)\n", older);
	if (!rc)
		cmd_jobs_print_reasons(answer);
	listing_free(l);
	return rc ? 1 : listing_end();
}

int cmd_jobs(int argc, char **argv)
{
	static const struct option options[] = {{"all", no_argument, NULL, 'a'},
						{"limit", required_argument, NULL, OPTION_LIMIT},
						JOB_COMMAND_OPTION_JSON,
						JOB_COMMAND_OPTIONS,
						{0}};
	struct job_command command = {.help = help, .usage_status = 2};
	struct iocom_err err = {0};
	json_t *answer = NULL;
	long limit = -1;
	bool all = false;
	size_t older;
	int c, rc;

	while ((c = job_command_option(&command, argc, argv, "ah", options)) == 'a' ||
	       c == OPTION_LIMIT)
		if (c == 'a')
			all = true;
		else if (take_limit(optarg, &limit))
			return 2;
	if (c == JOB_COMMAND_LEAVE)
		return command.status;
	if (optind < argc) {
		fprintf(stderr, "iocom jobs: takes no argument '%s'\n", argv[optind]);
		return 2;
	}
	if (ask_jobs(command.run_dir, all, &answer, &err)) {
		fprintf(stderr, "iocom jobs: %s\n", err.text);
		return 1;
	}
	if (limit < 0)
		limit = command.json ? 0 : LIMIT;
	older = cmd_jobs_cut(json_object_get(answer, "jobs"), limit);
	rc = command.json ? listing_print_json(answer) : cmd_jobs_print_table(answer, older);
	json_decref(answer);
	return rc;
}
