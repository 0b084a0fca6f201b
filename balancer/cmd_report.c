/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom report` says what balancing has gained lately, and how good its predictions were. */
#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "balancer/commands.h"
#include "balancer/job_command.h"
#include "balancer/listing.h"
#include "balancer/report/endings.h"
#include "balancer/report/page.h"
#include "iocom/rules.h"

static const char help[] =
	"usage: iocom report [--since WHEN] [--all | --user USER] [--policy P] [--node N]\n"
	"                    [--json [--jobs]] [--run-dir DIR]\n"
	"       iocom report --merge [--policy P] [--node N] [--json [--jobs]] FILE...\n"
	"Says how much time balancing has saved: how long jobs that were submitted here\n"
	"took at other nodes, beside what they would have taken here, and how good\n"
	"predictions were. It is about your jobs, or everybody's for root.\n\n"
	"  --since WHEN     jobs submitted since then: 7d, 24h, 90m, 2026-05-17 or\n"
	"                   \"2026-05-17 08:30\" [7d]\n"
	"  --all            everybody's jobs (root)\n"
	"  --user USER      one user's jobs, by name or number (of others: root)\n"
	"  --policy P       only jobs that policy P placed\n"
	"  --node N         only jobs that ran at node N\n"
	"  --json           one document\n"
	"  --jobs           with --json: the jobs, too, for --merge\n"
	"  --merge          read the documents of several nodes instead of asking the\n"
	"                   agent\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0; 1 failed (no agent, unknown policy or user, not your jobs);\n"
	"2 usage\n";

#define WEEK_S (7 * 86400)

enum {
	OPTION_SINCE = JOB_COMMAND_END,
	OPTION_ALL,
	OPTION_USER,
	OPTION_POLICY,
	OPTION_NODE,
	OPTION_JOBS,
	OPTION_MERGE
};

struct report_command {
	struct job_command common;
	time_t since;
	const char *user;
	struct gain_filter filter;
	bool all, jobs, merge;
	bool since_set;
};

/* --- options --------------------------------------------------------------------------- */

/* A number of days, hours or minutes before NOW.  Returns false if TEXT is none. */
static bool report_ago(const char *text, time_t now, time_t *since)
{
	double unit_s, n;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	n = strtod(text, &end);
	unit_s = *end == 'd' ? 86400 : *end == 'h' ? 3600 : *end == 'm' ? 60 : 0;
	if (!unit_s || end[1] || !isfinite(n) || n * unit_s > (double)now)
		return false;
	*since = now - (time_t)(n * unit_s);
	return true;
}

static bool report_date(const char *text, time_t *since)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct tm tm = {.tm_isdst = -1};
		const char *end = strptime(text, formats[i], &tm);
		int day = tm.tm_mday;

		if (!end || *end)
			continue;
		*since = mktime(&tm);
		return *since > 0 && tm.tm_mday == day; /* there is no 31st of June */
	}
	return false;
}

static int report_since(struct report_command *command, const char *text)
{
	time_t now = time(NULL);

	command->since_set = true;
	if ((report_ago(text, now, &command->since) || report_date(text, &command->since)) &&
	    command->since <= now)
		return 0;
	fprintf(stderr,
		"iocom report: --since takes 7d, 24h, 90m or a date in the past as 2026-05-17 or "
		"\"2026-05-17 08:30\", not '%s'\n",
		text);
	return 2;
}

/* Returns 0, or the exit status. */
static int report_option(struct report_command *command, int option)
{
	switch (option) {
	case OPTION_SINCE:
		return report_since(command, optarg);
	case OPTION_ALL:
		command->all = true;
		return 0;
	case OPTION_USER:
		command->user = optarg;
		return 0;
	case OPTION_POLICY:
		command->filter.policy = optarg;
		return 0;
	case OPTION_NODE:
		command->filter.node = optarg;
		return 0;
	case OPTION_JOBS:
		command->jobs = true;
		return 0;
	default:
		command->merge = true;
		return 0;
	}
}

/* Options that contradict each other.  Returns 0, or the exit status. */
static int report_check(const struct report_command *command, int argc, char **argv)
{
	const char *wrong = NULL;

	if (command->all && command->user)
		wrong = "--all and --user exclude each other";
	else if (command->jobs && !command->common.json)
		wrong = "--jobs needs --json";
	else if (command->merge && (command->all || command->user || command->since_set))
		wrong = "--merge takes all jobs of its files: no --since, --all or --user";
	else if (command->merge && optind == argc)
		wrong = "--merge needs at least one file";
	if (wrong)
		fprintf(stderr, "iocom report: %s\n", wrong);
	else if (!command->merge && optind < argc)
		fprintf(stderr, "iocom report: takes no argument '%s' without --merge\n",
			argv[optind]);
	else
		return 0;
	return 2;
}

static int report_check_policy(const char *name)
{
	enum rules_policy policy;

	if (!name || !rules_policy_parse(name, &policy))
		return 0;
	fprintf(stderr, "iocom report: there is no policy '%s'; iocom(1) lists them\n", name);
	return 1;
}

/* Whose jobs are asked for; -1: everybody's.  Returns false after a message. */
static bool report_uid(const struct report_command *command, int64_t *uid)
{
	const struct passwd *pw;
	char *end;

	*uid = command->all || (!command->user && getuid() == 0) ? -1 : (int64_t)getuid();
	if (!command->user)
		return true;
	pw = getpwnam(command->user);
	errno = 0;
	*uid = pw ? (int64_t)pw->pw_uid : strtoll(command->user, &end, 10);
	if (pw || (end != command->user && !*end && !errno && *uid >= 0 && *uid < UINT32_MAX))
		return true;
	fprintf(stderr, "iocom report: there is no user '%s' on this machine\n", command->user);
	return false;
}

/* --- the report -------------------------------------------------------------------------- */

static int report_from_agent(const struct report_command *command, struct endings *endings,
			     json_t *homes, struct iocom_err *err)
{
	json_t *node = NULL;
	int64_t uid;
	int rc;

	if (!report_uid(command, &uid))
		return 1;
	rc = endings_ask(endings, command->common.run_dir, (uint64_t)command->since * 1000000000,
			 uid, &node, err);
	if (node)
		json_array_append_new(homes, node);
	return rc;
}

static int report_from_files(char **files, struct endings *endings, json_t *homes,
			     struct iocom_err *err)
{
	int rc = 0;

	while (!rc && *files)
		rc = endings_read(endings, *files++, homes, err);
	return rc;
}

/* Whose jobs the report is about.  Returns OUT. */
static const char *report_whose(char *out, size_t size, const struct report_command *command)
{
	if (command->merge)
		snprintf(out, size, "Jobs");
	else if (command->user)
		snprintf(out, size, "Jobs of %s", command->user);
	else
		snprintf(out, size, "%s jobs",
			 command->all || getuid() == 0 ? "Everybody's" : "Your");
	return out;
}

static int report_show(const struct report_command *command, const struct endings *endings,
		       const json_t *homes)
{
	struct gain_report report;
	char whose[160];
	const struct page page = {
		.report = &report,
		.homes = homes,
		.whose = report_whose(whose, sizeof(whose), command),
		.filter = &command->filter,
		.since_ns = command->merge ? 0 : (uint64_t)command->since * 1000000000,
		.until_ns = command->merge ? 0 : (uint64_t)time(NULL) * 1000000000,
		.cut = endings->cut};
	json_t *document;
	int rc;

	if (gain_compute(endings->jobs, endings->njobs, &command->filter, &report)) {
		fputs("iocom report: out of memory\n", stderr);
		return 1;
	}
	if (!command->common.json)
		return page_print(&page);
	document = page_json(&page);
	if (document && command->jobs)
		json_object_set(document, "jobs", endings->listed);
	rc = listing_print_json(document);
	json_decref(document);
	return rc;
}

static int report_run(const struct report_command *command, char **files)
{
	struct endings endings = {0};
	struct iocom_err err = {0};
	json_t *homes = json_array();
	int rc = command->merge ? report_from_files(files, &endings, homes, &err)
				: report_from_agent(command, &endings, homes, &err);

	if (rc < 0)
		fprintf(stderr, "iocom report: %s\n", err.text);
	rc = rc ? 1 : report_show(command, &endings, homes);
	json_decref(homes);
	endings_free(&endings);
	return rc;
}

int cmd_report(int argc, char **argv)
{
	static const struct option options[] = {{"since", required_argument, NULL, OPTION_SINCE},
						{"all", no_argument, NULL, OPTION_ALL},
						{"user", required_argument, NULL, OPTION_USER},
						{"policy", required_argument, NULL, OPTION_POLICY},
						{"node", required_argument, NULL, OPTION_NODE},
						{"jobs", no_argument, NULL, OPTION_JOBS},
						{"merge", no_argument, NULL, OPTION_MERGE},
						JOB_COMMAND_OPTION_JSON,
						JOB_COMMAND_OPTIONS,
						{0}};
	struct report_command command = {.common = {.help = help, .usage_status = 2},
					 .since = time(NULL) - WEEK_S};
	int c, rc = 0;

	while (!rc && (c = job_command_option(&command.common, argc, argv, "h", options)) >= 0)
		rc = report_option(&command, c);
	if (rc)
		return rc;
	if (c == JOB_COMMAND_LEAVE)
		return command.common.status;
	rc = report_check(&command, argc, argv);
	if (!rc)
		rc = report_check_policy(command.filter.policy);
	return rc ? rc : report_run(&command, argv + optind);
}
