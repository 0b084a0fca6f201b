/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom complete` prints what a shell may offer for a word, one candidate a line.  Whatever fails
 * is silent: a shell that completes has no place for a message.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/job_command.h"
#include "balancer/listing.h"
#include "balancer/reach.h"
#include "iocom/rules.h"
#include "user/clock.h"
#include "user/gang_name.h"
#include "user/pack.h"

#define WAIT_MS	   300 /* for other nodes: a shell waits */
#define ENDED_MOST 20
#define WORD_MOST  128

extern char **environ;

static const char help[] =
	"usage: iocom complete [--run-dir DIR] WHAT [COMMAND]\n"
	"Prints what a shell may offer for a word, one candidate a line; nothing if it\n"
	"cannot know. WHAT is one of:\n\n"
	"  jobs             your jobs of all nodes, with the newest 20 that ended, and\n"
	"                   last\n"
	"  running          your jobs that have not ended, and last\n"
	"  nodes            the nodes that are heard\n"
	"  classes          your classes of jobs\n"
	"  policies         what --policy takes\n"
	"  commands         the commands of iocom\n"
	"  options          the options of COMMAND\n\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0, also with nothing to offer; 2 usage\n";

/* Prints TEXT unless a shell could take it for more than one word, or for something else. */
static void complete_say(const char *text)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at <= ' ' || strchr("\"'`$\\|&;<>(){}*?[]!#~", *at) ||
		    *at == 0x7f)
			return;
	if (*text)
		printf("%s\n", text);
}

/* --- what the agents know ---------------------------------------------------------- */

static void complete_jobs_each(void *arg, const char *node, json_t *answer, const char *why,
			       bool silent)
{
	json_t *said = arg, *job;
	size_t i;

	(void)node;
	(void)why;
	(void)silent;
	json_array_foreach (json_object_get(answer, "jobs"), i, job) {
		const char *name = listing_string(job, "job");

		/* A gang's name stands for its parts. */
		if (json_object_get(said, name) || gang_part_of(name, NULL, NULL))
			continue;
		json_object_set_new(said, name, json_true());
		complete_say(name);
	}
}

static void complete_jobs(struct reach *reach, bool ended)
{
	json_t *said = json_object(), *own = NULL;
	struct iocom_err err = {0};
	msgpack_sbuffer request;
	msgpack_packer pk;

	pack_begin(&pk, &request, 4);
	pack_str(&pk, "op", "jobs");
	pack_u64(&pk, "v", 1);
	pack_bool(&pk, "all", ended);
	pack_u64(&pk, "limit", ENDED_MOST);
	if (!client_request(reach->fd, request.data, request.size, &own, &err)) {
		complete_jobs_each(said, reach->self, own, "", false);
		reach->wait_ms = WAIT_MS;
		(void)reach_all(reach, &request, complete_jobs_each, said, &err);
		complete_say("last");
	}
	msgpack_sbuffer_destroy(&request);
	json_decref(own);
	json_decref(said);
}

static void complete_nodes(struct reach *reach)
{
	json_t *node;
	size_t i;

	complete_say(reach->self);
	json_array_foreach (json_object_get(reach->known, "nodes"), i, node)
		if (json_is_true(json_object_get(node, "alive")))
			complete_say(listing_string(node, "name"));
}

/* Says the classes from FROM on that one answer has.  Returns where the next part begins; 0: no. */
static json_int_t complete_classes_part(const struct reach *reach, json_int_t from)
{
	json_t *answer = NULL, *profile;
	struct iocom_err err = {0};
	msgpack_sbuffer request;
	msgpack_packer pk;
	json_int_t next;
	size_t i;

	pack_begin(&pk, &request, 3);
	pack_str(&pk, "op", "profile");
	pack_u64(&pk, "v", 1);
	pack_u64(&pk, "from", (uint64_t)from);
	(void)client_request(reach->fd, request.data, request.size, &answer, &err);
	json_array_foreach (json_object_get(answer, "profiles"), i, profile)
		complete_say(listing_string(profile, "class"));
	msgpack_sbuffer_destroy(&request);
	next = json_integer_value(json_object_get(answer, "next"));
	json_decref(answer);
	return next > from ? next : 0;
}

static void complete_classes(struct reach *reach)
{
	uint64_t until_ns = clock_boot_ns() + WAIT_MS * CLOCK_NS_PER_MS;
	json_int_t from = 0;

	do
		from = complete_classes_part(reach, from);
	while (from && clock_boot_ns() < until_ns);
}

/* Returns false: WHAT is nothing that agents know. */
static bool complete_agent(const char *run_dir, const char *what)
{
	static const char *const words[] = {"jobs", "running", "nodes", "classes"};
	struct iocom_err err = {0};
	struct reach reach;
	size_t i = 0;

	while (i < sizeof(words) / sizeof(*words) && strcmp(words[i], what) != 0)
		i++;
	if (i == sizeof(words) / sizeof(*words))
		return false;
	if (!reach_open(&reach, run_dir, &err)) {
		if (i < 2)
			complete_jobs(&reach, i == 0);
		else if (i == 2)
			complete_nodes(&reach);
		else
			complete_classes(&reach);
	}
	reach_close(&reach);
	return true;
}

/* --- what the help says ------------------------------------------------------------- */

/* Starts this program with ARGUMENTS.  Returns the end of a pipe from its output, or NULL. */
static FILE *complete_ask_self(char *const arguments[], pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	rc = posix_spawn(pid, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!rc)
		return fdopen(ends[0], "r");
	close(ends[0]);
	return NULL;
}

/* Prints the options that begin LINE of a help: "  -n, --count COUNT    ...". */
static void complete_options_of(const char *line)
{
	size_t at = strspn(line, " ");

	while (at && line[at] == '-') {
		size_t n = strcspn(line + at, " ,=[|]\n");
		char word[WORD_MOST];

		snprintf(word, sizeof(word), "%.*s", (int)n, line + at);
		complete_say(word);
		if (line[at + n] != ',')
			return;
		at += n + 1;
		at += strspn(line + at, " ");
	}
}

/* The first word of LINE of the list of commands: "  top       live load ...". */
static void complete_command_of(const char *line)
{
	char word[WORD_MOST];

	if (strncmp(line, "  ", 2) != 0 || line[2] == ' ')
		return;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(line + 2, " \n"), line + 2);
	complete_say(word);
}

/* COMMAND NULL: the list of commands; else its options. */
static void complete_help(const char *command)
{
	char self[] = "iocom", option[] = "--help", *name = command ? strdup(command) : NULL;
	char *whole[] = {self, option, NULL}, *one[] = {self, name, option, NULL};
	char *line = NULL;
	size_t room = 0;
	bool listed = false;
	pid_t pid;
	FILE *from = complete_ask_self(command ? one : whole, &pid);

	while (from && getline(&line, &room, from) > 0) {
		if (command)
			complete_options_of(line);
		else if (listed && *line == '\n')
			listed = false;
		else if (listed)
			complete_command_of(line);
		else
			listed = !strcmp(line, "commands:\n");
	}
	if (from) {
		fclose(from);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(line);
	free(name);
}

static void complete_policies(void)
{
	for (int i = 0; i < RULES_POLICIES; i++)
		complete_say(rules_policy_name((enum rules_policy)i));
}

int cmd_complete(int argc, char **argv)
{
	static const struct option options[] = {JOB_COMMAND_OPTIONS, {0}};
	struct job_command command = {.help = help, .usage_status = 2};
	const char *what;

	if (job_command_option(&command, argc, argv, "h", options) == JOB_COMMAND_LEAVE)
		return command.status;
	what = optind < argc ? argv[optind] : "";
	if (!strcmp(what, "options") && optind + 2 == argc && argv[optind + 1][0] != '-') {
		complete_help(argv[optind + 1]);
		return 0;
	}
	if (optind + 1 != argc || !strcmp(what, "options")) {
		fputs(help, stderr);
		return 2;
	}
	if (!strcmp(what, "commands"))
		complete_help(NULL);
	else if (!strcmp(what, "policies"))
		complete_policies();
	else if (!complete_agent(command.run_dir, what))
		return fputs(help, stderr), 2;
	return 0;
}
