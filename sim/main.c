/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom-sim`, the simulator: finds the subcommand and prints the help from the table. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/cli.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv, const volatile sig_atomic_t *cancel);
	const char *help;
};

static const struct command commands[] = {
	{"run", cmd_run, "run a workload on a cluster under policies, with sweeps"},
	{"replay", cmd_replay, "run a trace's jobs again under other policies"},
	{"figures", cmd_figures, "run all experiments and write the page of claims"},
	{"gossip", cmd_gossip, "how fresh what nodes know is in clusters of thousands"},
	{"params", cmd_params, "list every parameter with its value, unit and source"},
	{"merge", cmd_merge, "join the parts of a sweep that was run in shards"},
	{"--list", cmd_list, "list experiments, policies, machines, workloads"},
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static void sim_main_usage(FILE *out)
{
	fprintf(out, "usage: iocom-sim ID... [OPTION...]\n"
		     "       iocom-sim COMMAND [OPTION...]\n"
		     "Simulates a cluster with the rules that the live balancer uses: the papers'\n"
		     "experiments by id (FC-5.2, ACM-3, ...), your own workloads, and traces.\n\n"
		     "commands:\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
	fprintf(out, "\n`iocom-sim COMMAND --help` explains a command; `iocom-sim FC-5.2 --help`\n"
		     "lists the options of experiments.\n");
}

static void main_catch_signals(void)
{
	struct sigaction action = {.sa_handler = interrupt};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	/* If gnuplot is missing, its exit status tells us; a SIGPIPE must not kill us first. */
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
}

/* Fills closed standard streams with /dev/null so that no output file gets their
 * numbers. It is opened for reading: writing to it fails as on a closed stream. */
static void keep_standard_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int main_run(int argc, char **argv)
{
	if (argc < 2) {
		sim_main_usage(stderr);
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		sim_main_usage(stdout);
		return CLI_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("iocom-sim %s\n", IOCOM_VERSION);
		return CLI_OK;
	}
	main_catch_signals();
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1, &interrupted);
	return cmd_experiment(argc, argv, &interrupted);
}

int main(int argc, char **argv)
{
	int ret;

	keep_standard_streams();
	ret = main_run(argc, argv);
	/* Subcommands that print much have already noticed and reported this error. */
	if (fflush(stdout) && ret == CLI_OK) {
		fputs("iocom-sim: cannot write the output\n", stderr);
		ret = CLI_FAILED;
	}
	return ret;
}
