/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* iocomd: the agent of one node.  Everything else is in the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/base/notify.h"
#include "agent/feedback/feedback_restore.h"
#include "balancer/settings/settings_trust.h"

/* Returns 0, CONFIG_E_* or negative errno. */
static int settings_load(int argc, char **argv, struct settings *set, struct iocom_err *err)
{
	struct config_program program = settings_program;
	int rc;

	/* Another user's agent could not begin: nothing is gained by checking. */
	if (!geteuid())
		program.check = settings_trust_file;
	rc = config_load(&program, argc, argv, set, err);
	if (!rc)
		rc = settings_complete(set, err);
	if (!rc && !geteuid())
		rc = settings_trust(set, err);
	return rc;
}

struct command_line {
	int argc;
	char **argv;
};

static int settings_again(void *arg, struct settings *next, struct iocom_err *err)
{
	const struct command_line *line = arg;

	return settings_load(line->argc, line->argv, next, err);
}

static int settings(int argc, char **argv, struct settings *set)
{
	struct iocom_err err = {0};
	char *help;
	int rc = settings_load(argc, argv, set, &err);

	if (rc == CONFIG_E_HELP) {
		help = config_help(&settings_program);
		fputs(help ? help : "", stdout);
		free(help);
		exit(fflush(stdout) ? 1 : 0);
	}
	if (rc == CONFIG_E_VERSION) {
		printf("iocomd %s\n", IOCOM_VERSION);
		exit(fflush(stdout) ? 1 : 0);
	}
	if (rc)
		fprintf(stderr, "iocomd: %s\n", err.text);
	return rc == CONFIG_E_USAGE ? 2 : rc ? 1 : 0;
}

/* --feedback-restore. */
static int restore(const struct settings *set)
{
	struct iocom_err err = {0};
	char said[300];

	if (feedback_restore(set, said, sizeof(said), &err)) {
		fprintf(stderr, "iocomd: %s\n", err.text);
		return 1;
	}
	printf("%s\n", said);
	return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct settings set;
	struct command_line line = {argc, argv};
	struct iocom_err err = {0};
	struct agent *agent;
	int rc = settings(argc, argv, &set);

	if (rc)
		return rc;
	if (set.feedback.restore)
		return restore(&set);
	/* No core dump has the keys of sessions and streams. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (agent_start(&agent, &set, &err)) {
		fprintf(stderr, "iocomd: %s\n", err.text);
		return 1;
	}
	agent_on_reload(agent, settings_again, &line);
	notify_systemd("READY=1");
	rc = agent_run(agent);
	notify_systemd("STOPPING=1");
	agent_stop(agent);
	if (rc)
		fprintf(stderr, "iocomd: the event loop failed: %s\n", strerror(-rc));
	return rc ? 1 : 0;
}
