/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Shared by the subcommands of iocom-sim. */
#ifndef SIM_CLI_CLI_H
#define SIM_CLI_CLI_H

#include <signal.h>

#include "sim/report/report.h"

enum { CLI_OK, CLI_FAILED, CLI_USAGE }; /* exit codes */

#define CLI_SWEEPS_MAX 8
#define CLI_SEED_MAX   1000000000000000

/* The options of all subcommands; each subcommand accepts some of them. */
struct cli {
	const char *command;	    /* for messages: "iocom-sim run" */
	uint32_t seeds;		    /* --seeds; 0: not given */
	uint64_t seed;		    /* --seed: the first seed; default 1 */
	unsigned int jobs;	    /* --jobs: runs at the same time; 0: one per core */
	unsigned int shard, shards; /* --shard i/n; shards 0: not given */
	const char *out;	    /* --out; NULL: not given */
	bool json;
	bool force; /* --force: replace files that are there */
	const char *workload, *nodes, *policies, *measure;
	const char *sweep[CLI_SWEEPS_MAX];
	size_t nsweeps;
	const char *record, *export_view, *trace;
	struct source *held; /* the copy of a pipe that cli_hold made */
	char held_path[64];
	/* --decide: more runs for undecided claims, so many or for so long; 0: not given */
	uint64_t decide_runs;
	double decide_s;
	bool check; /* --check was given, for a recording */
	uint64_t at_decision;
	struct settings set; /* --set, --fidelity, --parallel */
	const volatile sig_atomic_t *cancel;
};

/* The options that a subcommand accepts. */
enum {
	CLI_TAKES_SWEEP = 1,	/* --jobs, --shard, --seeds, --set, --fidelity, --parallel */
	CLI_TAKES_OUT = 2,	/* --out, --json */
	CLI_TAKES_RUN = 4,	/* --workload, --nodes, --policy, --sweep, --measure ... */
	CLI_TAKES_REPLAY = 8,	/* --nodes, --policy */
	CLI_TAKES_TRACE = 16,	/* --trace */
	CLI_TAKES_FORCE = 32,	/* --force */
	CLI_TAKES_SET = 64,	/* --set, --fidelity, --parallel, as SWEEP has them */
	CLI_TAKES_DECIDE = 128, /* --decide */
};

/*
 * Parses ARGV after the subcommand's name (argv[0]).  *FIRST is the first operand; operands are
 * moved behind the options.  Returns 0; CLI_USAGE: the reason was printed; -1: --help was printed
 * and the program should end with CLI_OK.
 */
int cli_parse(struct cli *cli, int argc, char **argv, int takes, const char *help, int *first);
void cli_free(struct cli *cli);
/* Prints "iocom-sim run: TEXT" to standard error and returns CODE. */
__attribute__((format(printf, 3, 4))) int cli_fail(const struct cli *cli, int code, const char *fmt,
						   ...);

/* Parses the whole number TEXT of the option NAME.  Returns 0; CLI_USAGE: the reason was printed.
 */
int cli_whole(const struct cli *cli, const char *name, const char *text, uint64_t least,
	      uint64_t most, uint64_t *value);
struct option;
/* Says what is wrong after getopt_long returned ID, ':' or '?'.  The values of ALL that are no
 * letters are more than a character has.  Returns CLI_USAGE. */
int cli_bad_option(const struct cli *cli, int id, const struct option *all, char **argv);

/*
 * Prepares *TRACE for being read more than once.  A pipe ("-", "/dev/stdin", <(...)) is copied to
 * memory, and *TRACE becomes a path of the copy until cli_free.  Returns 0; CLI_FAILED: the reason
 * was printed.
 */
int cli_hold(struct cli *cli, const char **trace);
/* The name under which the user gave the trace. */
const char *cli_trace_name(const struct cli *cli, const char *trace);

/*
 * Opens one run of each cell, so that errors in settings, policies or a generator's text are found
 * before anything runs.  Returns 0; CLI_USAGE or CLI_FAILED: the reason was printed.
 */
int cli_check(const struct cli *cli, const struct sweep *s);

/*
 * Refuses options that change nothing in the runs of the N sweeps (effect.h), in a sentence that
 * names the option.  Returns 0; CLI_USAGE or CLI_FAILED: the reason was printed.
 */
int cli_check_effect(const struct cli *cli, struct sweep *const *sweeps, size_t n);

/* Runs the sweeps of REPORTS (all, or one shard to a part file), judges, prints and writes. */
int cli_execute(struct cli *cli, struct report *reports, size_t n, bool page);
/* Only prints and writes results that exist and are judged.  SECONDS: duration of the runs; 0:
 * unknown. */
int cli_deliver(struct cli *cli, struct report *reports, size_t n, bool page, double seconds);

/* Judges the claims of REPORTS.  Returns 0, -ENOMEM. */
int cli_judge(struct report *reports, size_t n);
struct runner_options;
/*
 * Makes more runs for undecided claims, within --decide, and judges these again.  REPORTS are
 * judged.  Returns 0, or a negative errno with ERR set.
 */
int cli_decide(struct cli *cli, struct report *reports, size_t n,
	       const struct runner_options *options, struct iocom_err *err);

int cmd_experiment(int argc, char **argv, const volatile sig_atomic_t *cancel);
int cmd_figures(int argc, char **argv, const volatile sig_atomic_t *cancel);
int cmd_list(int argc, char **argv, const volatile sig_atomic_t *cancel);
int cmd_run(int argc, char **argv, const volatile sig_atomic_t *cancel);
int cmd_replay(int argc, char **argv, const volatile sig_atomic_t *cancel);
int cmd_params(int argc, char **argv, const volatile sig_atomic_t *cancel);
int cmd_gossip(int argc, char **argv, const volatile sig_atomic_t *cancel);
int cmd_merge(int argc, char **argv, const volatile sig_atomic_t *cancel);

/* Adds the policies of "A,B,..." to S as series.  Returns 0; CLI_USAGE: the reason was printed. */
int cli_add_policies(const struct cli *cli, struct sweep *s, const char *policies);
/* Compares the recording cli->trace with its simulation; see check.c. */
int cli_check_recording(const struct cli *cli);
/* Runs one run and records it or exports its view; see record.c. */
int cli_record(struct cli *cli, const struct sweep *s);

/* Unit and source of a parameter; false: the name is unknown. */
bool param_describe(const char *name, const char **unit, const char **source);

#endif
