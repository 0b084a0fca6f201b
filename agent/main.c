/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* iocomd: the agent of one node.  Everything else is in the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/base/notify.h"
#include "balancer/settings/settings_trust.h"

static int settings(int argc, char **argv, struct settings *set)
{
	struct config_program program = settings_program;
	struct iocom_err err = {0};
	char *help;
	int rc;

	/* Another user's agent could not begin: nothing is gained by checking. */
	if (!geteuid())
		program.check = settings_trust_file;
	rc = config_load(&program, argc, argv, set, &err);

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
	if (!rc)
		rc = settings_complete(set, &err);
	if (!rc && !geteuid())
		rc = settings_trust(set, &err);
	if (rc)
		fprintf(stderr, "iocomd: %s\n", err.text);
	return rc == CONFIG_E_USAGE ? 2 : rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct settings set;
	struct iocom_err err = {0};
	struct agent *agent;
	int rc = settings(argc, argv, &set);

	if (rc)
		return rc;
	/* No core dump has the keys of sessions and streams. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (agent_start(&agent, &set, &err)) {
		fprintf(stderr, "iocomd: %s\n", err.text);
		return 1;
	}
	notify_systemd("READY=1");
	rc = agent_run(agent);
	notify_systemd("STOPPING=1");
	agent_stop(agent);
	if (rc)
		fprintf(stderr, "iocomd: the event loop failed: %s\n", strerror(-rc));
	return rc ? 1 : 0;
}
