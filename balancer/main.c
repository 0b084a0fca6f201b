/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom` finds the subcommand; the table below prints the help. */
#include <stdio.h>
#include <string.h>

#include "balancer/commands.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

static const struct command commands[] = {
	{"top", cmd_top, "live load of every task: explicit, implicit, network, CPU, memory"},
	{"nodes", cmd_nodes, "the load matrix: one row a node, with the age of what is known"},
	{"run", cmd_run, "place a command on the best node and run it there as you"},
	{"rsh", cmd_rsh, "a command or a login on a node that you name, as ssh would"},
	{"batch", cmd_batch, "the commands of a list, many at a time, placed by load"},
	{"place", cmd_place, "show that decision without running the command"},
	{"explain", cmd_explain, "why a job went where it went, in numbers"},
	{"jobs", cmd_jobs, "your jobs, their state and exit status"},
	{"report", cmd_report, "what balancing has gained, and how good its predictions were"},
	{"attach", cmd_attach, "the output and exit status of a running or ended job"},
	{"wait", cmd_wait, "wait until jobs have ended; return their exit status"},
	{"kill", cmd_kill, "send a signal to jobs, wherever they run"},
	{"migrate", cmd_migrate, "move a running job to another node"},
	{"owner", cmd_owner, "what this machine lets jobs of other nodes use"},
	{"feedback", cmd_feedback,
	 "the feedback controller: weights, memory for I/O, its last steps"},
	{"profile", cmd_profile, "what classes of jobs need, learned from their runs"},
	{"complete", cmd_complete, "what a shell may offer for a word of a command line"},
	{"doctor", cmd_doctor, "what is missing here, and what this kernel cannot tell"},
	{"calibrate", cmd_calibrate,
	 "measure this machine's processor and disk, for its configuration"},
	{"record", cmd_record, "write what the cluster does as a trace for replay (root)"},
	{"sim", cmd_sim, "simulate: experiments, sweeps, workload files (needs iocom-sim)"},
	{"replay", cmd_replay, "a recorded or public trace under other policies (needs iocom-sim)"},
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void main_usage(FILE *out)
{
	fprintf(out,
		"usage: iocom COMMAND [OPTION...]\n"
		"Balances jobs over Linux machines by the I/O, memory, CPU and network load that\n"
		"the kernel measures.\n\ncommands:\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
	fprintf(out, "\n`iocom COMMAND --help` explains one; every listing takes --json.\n"
		     "The agent's directory is /run/iocom, or $IOCOM_RUN_DIR, or --run-dir DIR.\n");
}

/* How many letters A and B begin with together. */
static size_t main_common(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/* Returns the command that NAME was probably meant to be; NULL: none is like it. */
static const struct command *main_guess(const char *name)
{
	const struct command *best = NULL;
	size_t most = 1; /* letters: one is no likeness */

	for (size_t i = 0; i < NCOMMANDS; i++) {
		size_t n = main_common(name, commands[i].name);

		if (n > most) {
			most = n;
			best = &commands[i];
		}
	}
	return best;
}

static const struct command *main_find(const char *name)
{
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct command *command;
	char name[32];

	if (argc < 2) {
		main_usage(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		char *help[] = {argv[argc > 2 ? 2 : 1], "--help", NULL};

		command = argc > 2 ? main_find(argv[2]) : NULL;
		if (command)
			return command->run(2, help);
		main_usage(argc > 2 ? stderr : stdout);
		return argc > 2 ? 2 : 0;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("iocom %s\n", IOCOM_VERSION);
		return 0;
	}
	command = main_find(argv[1]);
	if (command) {
		/* getopt(3) begins its messages with this name */
		snprintf(name, sizeof(name), "iocom %s", command->name);
		argv[1] = name;
		return command->run(argc - 1, argv + 1);
	}
	command = main_guess(argv[1]);
	fprintf(stderr, "iocom: there is no command '%s'; ", argv[1]);
	if (command)
		fprintf(stderr, "did you mean %s? ", command->name);
	fprintf(stderr, "`iocom --help` lists all\n");
	return 2;
}
