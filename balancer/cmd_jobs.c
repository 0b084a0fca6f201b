/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom jobs` lists jobs submitted at or running on this node, and how they ended. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/gang_rows.h"
#include "balancer/job_command.h"
#include "balancer/job_name.h"
#include "balancer/job_state.h"
#include "balancer/listing.h"
#include "balancer/reach.h"
#include "user/pack.h"
#include "user/utf8.h"

static const char help[] =
	"usage: iocom jobs [--all] [--here] [--limit N] [--parts] [--wide | --json]\n"
	"                  [--run-dir DIR]\n"
	"Lists your jobs, of all nodes that this one knows; for root everybody's, of\n"
	"those nodes that let other nodes' root ask (allow_root).\n\n"
	"  STATE            starting, running, stopped (^Z), late (its supervisor does\n"
	"                   not answer); exited, killed, failed (it never began), lost\n"
	"  HOME NODE        where it was submitted, and where it runs\n"
	"  POLICY           that decides where to, if the user names no node\n"
	"  TASKS            of a parallel job (iocom run -n), where there is one; below\n"
	"                   it, with --parts, how many of them a node has\n\n"
	"  --all            ended jobs too, the newest first\n"
	"  --here           only jobs that were submitted here or run here\n"
	"  --limit N        list only the newest N ended jobs; 0: all [20; --json: all]\n"
	"  --parts          below each parallel job its parts, one for each of its nodes\n"
	"  --wide           all columns, also where POLICY, HOME, STARTED and USER (left\n"
	"                   out in this order) have no room on the terminal\n"
	"  --json           one document\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0; 1 failed (no agent); 2 usage; 3 a node did not answer, and its\n"
	"jobs are missing\n";

#define LIMIT 20 /* ended jobs shown to a person */

enum { OPTION_LIMIT = JOB_COMMAND_END, OPTION_HERE, OPTION_WIDE, OPTION_PARTS };

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

/* What is asked, and what has come of it. */
struct jobs_asked {
	bool all, here;
	long limit;
	json_t *jobs, *missing;
	json_t *at; /* the places of the jobs in the list, by name */
	json_int_t left_out;
	bool silent; /* a node did not answer */
};

/* True if NODE is the home of JOB, which its name says, whatever the node that told of it says. */
static bool jobs_is_home(const json_t *job, const char *node)
{
	struct job_name name;

	job_name_parse(listing_string(job, "job"), &name);
	return !strcmp(name.kind == JOB_NAME_WHOLE ? name.home : listing_string(job, "home"), node);
}

/* Adds JOB that NODE told of.  A job's home knows more of it than the node where it runs. */
static void jobs_list_add(struct jobs_asked *asked, const char *node, json_t *job)
{
	const char *name = listing_string(job, "job");
	const json_t *at = json_object_get(asked->at, name);

	if (!at) {
		json_object_set_new(asked->at, name,
				    json_integer((json_int_t)json_array_size(asked->jobs)));
		json_array_append(asked->jobs, job);
	} else if (jobs_is_home(job, node)) {
		json_array_set(asked->jobs, (size_t)json_integer_value(at), job);
	}
}

static void jobs_each(void *arg, const char *node, json_t *answer, const char *why, bool silent)
{
	struct jobs_asked *asked = arg;
	json_t *job;
	size_t i;

	if (!answer) {
		asked->silent |= silent;
		json_array_append_new(asked->missing, json_pack("{s:s,s:s,s:b}", "node", node,
								"reason", why, "silent", silent));
		return;
	}
	json_array_foreach (json_object_get(answer, "jobs"), i, job)
		jobs_list_add(asked, node, job);
	asked->left_out += json_integer_value(json_object_get(answer, "left_out"));
}

static int jobs_newer(const void *a, const void *b)
{
	double i = listing_number(*(json_t *const *)a, "submit_ns");
	double j = listing_number(*(json_t *const *)b, "submit_ns");

	return (i < j) - (i > j);
}

/* Returns JOBS, the newest first, as a new array; NULL: no memory. */
static json_t *jobs_sorted(const json_t *jobs)
{
	size_t n = json_array_size(jobs);
	json_t **list = calloc(n + 1, sizeof(json_t *)), *sorted = list ? json_array() : NULL;

	for (size_t i = 0; sorted && i < n; i++)
		list[i] = json_array_get(jobs, i);
	if (sorted)
		qsort(list, n, sizeof(json_t *), jobs_newer);
	for (size_t i = 0; sorted && i < n; i++)
		json_array_append(sorted, list[i]);
	free(list);
	return sorted;
}

static int ask_jobs_reach(struct reach *reach, struct jobs_asked *asked, struct iocom_err *err)
{
	msgpack_sbuffer request;
	msgpack_packer pk;
	json_t *own = NULL;
	int rc;

	pack_begin(&pk, &request, 4);
	pack_str(&pk, "op", "jobs");
	pack_u64(&pk, "v", 1);
	pack_bool(&pk, "all", asked->all);
	pack_u64(&pk, "limit", (uint64_t)asked->limit);
	rc = client_request(reach->fd, request.data, request.size, &own, err);
	if (!rc)
		jobs_each(asked, reach->self, own, "", false);
	if (!rc && !asked->here && reach_all(reach, &request, jobs_each, asked, err)) {
		/* What this node knows is better than nothing. */
		jobs_each(asked, "other nodes", NULL, err->text, true);
		err->text[0] = 0;
	}
	msgpack_sbuffer_destroy(&request);
	json_decref(own);
	return rc;
}

/* Gets the list: { jobs, left_out, missing }. */
static int ask_jobs(const char *run_dir, struct jobs_asked *asked, json_t **answer,
		    struct iocom_err *err)
{
	struct reach reach;
	json_t *sorted = NULL, *folded = NULL;
	int rc = reach_open(&reach, run_dir, err);

	asked->jobs = json_array();
	asked->missing = json_array();
	asked->at = json_object();
	if (!rc)
		rc = ask_jobs_reach(&reach, asked, err);
	if (!rc) {
		folded = gang_rows_fold(asked->jobs);
		sorted = jobs_sorted(folded);
		json_decref(folded);
		*answer = json_pack("{s:o,s:I,s:O}", "jobs", sorted, "left_out", asked->left_out,
				    "missing", asked->missing);
		rc = *answer ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");
	}
	json_decref(asked->jobs);
	json_decref(asked->missing);
	json_decref(asked->at);
	reach_close(&reach);
	return rc;
}

#define REFUSALS_SAID 3 /* nodes that one line names */

/* One line for the nodes that refused for the same reason as row FIRST. */
static void jobs_tell_refused(const json_t *missing, size_t first)
{
	const char *reason = listing_string(json_array_get(missing, first), "reason"), *gap = "";
	char why[512];
	size_t named = 0;

	fprintf(stderr, "iocom jobs: ");
	for (size_t i = first; i < json_array_size(missing); i++) {
		const json_t *row = json_array_get(missing, i);

		if (json_is_true(json_object_get(row, "silent")) ||
		    strcmp(listing_string(row, "reason"), reason) != 0 || named++ >= REFUSALS_SAID)
			continue;
		fprintf(stderr, "%s%s", gap, listing_string(row, "node"));
		gap = ", ";
	}
	if (named > REFUSALS_SAID)
		fprintf(stderr, " and %zu more", named - REFUSALS_SAID);
	snprintf(why, sizeof(why), "%s", reason);
	utf8_plain(why);
	fprintf(stderr, ": %s\n", why);
}

/* Returns true if an earlier row than AT has its reason. */
static bool jobs_told_before(const json_t *missing, size_t at)
{
	const char *reason = listing_string(json_array_get(missing, at), "reason");

	for (size_t i = 0; i < at; i++) {
		const json_t *row = json_array_get(missing, i);

		if (!json_is_true(json_object_get(row, "silent")) &&
		    !strcmp(listing_string(row, "reason"), reason))
			return true;
	}
	return false;
}

/* Says on standard error whose jobs are missing, and why. */
static void jobs_tell_missing(const json_t *answer)
{
	const json_t *missing = json_object_get(answer, "missing");

	for (size_t i = 0; i < json_array_size(missing); i++) {
		const json_t *row = json_array_get(missing, i);
		char why[512];

		if (!json_is_true(json_object_get(row, "silent"))) {
			if (!jobs_told_before(missing, i))
				jobs_tell_refused(missing, i);
			continue;
		}
		snprintf(why, sizeof(why), "%s", listing_string(row, "reason"));
		utf8_plain(why);
		fprintf(stderr, "iocom jobs: %s %s; its jobs are missing\n",
			listing_string(row, "node"), why);
	}
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

/* How many tasks a parallel job or its part has. */
static void cmd_jobs_tasks_cell(struct listing *l, const json_t *job)
{
	double tasks = listing_number(job, "tasks");

	if (tasks >= 1)
		listing_cell(l, "%.0f", tasks);
	else
		listing_cell(l, "-");
}

/* TASKS: there is a column for them. */
static void cmd_jobs_row(struct listing *l, const json_t *job, bool tasks)
{
	char span[32], outcome[32], nodes[256];

	job_state_outcome(outcome, sizeof(outcome), job);
	listing_span(span, sizeof(span), cmd_jobs_elapsed_ms(job));
	listing_cell(l, "%s", listing_string(job, "job"));
	listing_cell(l, "%s", listing_string(job, "state"));
	listing_cell(l, "%s", listing_string(job, "user"));
	listing_cell(l, "%s", listing_string(job, "home"));
	gang_rows_nodes(job, nodes, sizeof(nodes));
	listing_cell(l, "%s", nodes);
	listing_cell(l, "%s", listing_string(job, "policy"));
	started_cell(l, job);
	listing_cell(l, "%s", span);
	listing_cell(l, "%s", outcome);
	if (tasks)
		cmd_jobs_tasks_cell(l, job);
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
		char line[1024];

		if (!*text)
			continue;
		snprintf(line, sizeof(line), "%s: %s", listing_string(job, "job"), text);
		utf8_plain(line);
		if (listing_width() == UINT_MAX)
			puts(line);
		else
			listing_wrap(stdout, line, 2);
	}
}

/* Columns that a narrow terminal does without. */
enum { COLUMN_USER = 2, COLUMN_HOME = 3, COLUMN_POLICY = 5, COLUMN_STARTED = 6 };

/* A part's row has from its gang's what it lacks. */
static void cmd_jobs_parts(struct listing *l, const json_t *job)
{
	static const char *const same[] = {"user", "home", "policy", "command"};
	const json_t *part;
	size_t i;

	json_array_foreach (json_object_get(job, "parts"), i, part) {
		json_t *row = json_copy((json_t *)part);

		for (size_t k = 0; k < sizeof(same) / sizeof(same[0]); k++)
			if (!*listing_string(row, same[k]) && json_object_get(job, same[k]))
				json_object_set(row, same[k], json_object_get(job, same[k]));
		cmd_jobs_row(l, row, true);
		json_decref(row);
	}
}

static bool cmd_jobs_has_gang(const json_t *jobs)
{
	const json_t *job;
	size_t i;

	json_array_foreach (jobs, i, job)
		if (listing_number(job, "tasks") >= 1)
			return true;
	return false;
}

static int cmd_jobs_print_table(const json_t *answer, size_t older, bool wide, bool parts)
{
	static const struct listing_column columns[] = {
		{"JOB", false},	 {"STATE", false},  {"USER", false},	{"HOME", false},
		{"NODE", false}, {"POLICY", false}, {"STARTED", true},	{"ELAPSED", true},
		{"EXIT", true},	 {"TASKS", true},   {"COMMAND", false},
	};
	enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), COLUMN_TASKS = COLUMNS - 2 };
	static const unsigned char spare[] = {COLUMN_POLICY, COLUMN_HOME, COLUMN_STARTED,
					      COLUMN_USER};
	bool tasks = cmd_jobs_has_gang(json_object_get(answer, "jobs"));
	struct listing_column shown[COLUMNS];
	struct listing *l;
	size_t i;
	json_t *job;
	int rc;

	memcpy(shown, columns, sizeof(columns));
	if (!tasks)
		shown[COLUMN_TASKS] = columns[COLUMNS - 1];
	l = listing_new(shown, tasks ? COLUMNS : COLUMNS - 1);
	json_array_foreach (json_object_get(answer, "jobs"), i, job) {
		cmd_jobs_row(l, job, tasks);
		if (parts)
			cmd_jobs_parts(l, job);
	}
	listing_cut(l);
	listing_spare(l, spare, wide ? 0 : sizeof(spare));
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
						{"here", no_argument, NULL, OPTION_HERE},
						{"wide", no_argument, NULL, OPTION_WIDE},
						{"parts", no_argument, NULL, OPTION_PARTS},
						JOB_COMMAND_OPTION_JSON,
						JOB_COMMAND_OPTIONS,
						{0}};
	struct job_command command = {.help = help, .usage_status = 2};
	struct iocom_err err = {0};
	json_t *answer = NULL;
	long limit = -1;
	struct jobs_asked asked = {0};
	bool wide = false, parts = false;
	size_t older;
	int c, rc;

	while ((c = job_command_option(&command, argc, argv, "ah", options)) == 'a' ||
	       c >= OPTION_LIMIT)
		if (c == OPTION_LIMIT && take_limit(optarg, &limit))
			return 2;
		else if (c != OPTION_LIMIT)
			*(c == 'a'	      ? &asked.all
			  : c == OPTION_HERE  ? &asked.here
			  : c == OPTION_PARTS ? &parts
					      : &wide) = true;
	if (c == JOB_COMMAND_LEAVE)
		return command.status;
	if (optind < argc) {
		fprintf(stderr, "iocom jobs: takes no argument '%s'\n", argv[optind]);
		return 2;
	}
	if (limit < 0)
		limit = command.json ? 0 : LIMIT;
	asked.limit = limit;
	if (ask_jobs(command.run_dir, &asked, &answer, &err)) {
		fprintf(stderr, "iocom jobs: %s\n", err.text);
		return 1;
	}
	older = cmd_jobs_cut(json_object_get(answer, "jobs"), limit) + (size_t)asked.left_out;
	jobs_tell_missing(answer);
	rc = command.json ? listing_print_json(answer)
			  : cmd_jobs_print_table(answer, older, wide, parts);
	json_decref(answer);
	return rc || !asked.silent ? rc : 3;
}
