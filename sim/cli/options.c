/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The options of all subcommands. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/cli/cli.h"
#include "sim/report/table.h"
#include "sim/workload/source.h"

enum option_id {
	OPT_SEEDS = 256,
	OPT_SEED,
	OPT_JOBS,
	OPT_SHARD,
	OPT_SET,
	OPT_FIDELITY,
	OPT_PARALLEL,
	OPT_OUT,
	OPT_JSON,
	OPT_WORKLOAD,
	OPT_NODES,
	OPT_POLICY,
	OPT_SWEEP,
	OPT_MEASURE,
	OPT_RECORD,
	OPT_EXPORT,
	OPT_DECISION,
	OPT_TRACE,
	OPT_CHECK,
	OPT_FORCE,
	OPT_DECIDE,
};

static const struct option options[] = {
	{"help", no_argument, NULL, 'h'},
	{"seeds", required_argument, NULL, OPT_SEEDS},
	{"seed", required_argument, NULL, OPT_SEED},
	{"jobs", required_argument, NULL, OPT_JOBS},
	{"shard", required_argument, NULL, OPT_SHARD},
	{"set", required_argument, NULL, OPT_SET},
	{"fidelity", required_argument, NULL, OPT_FIDELITY},
	{"parallel", required_argument, NULL, OPT_PARALLEL},
	{"out", required_argument, NULL, OPT_OUT},
	{"json", no_argument, NULL, OPT_JSON},
	{"workload", required_argument, NULL, OPT_WORKLOAD},
	{"nodes", required_argument, NULL, OPT_NODES},
	{"policy", required_argument, NULL, OPT_POLICY},
	{"sweep", required_argument, NULL, OPT_SWEEP},
	{"measure", required_argument, NULL, OPT_MEASURE},
	{"record", required_argument, NULL, OPT_RECORD},
	{"export-view", required_argument, NULL, OPT_EXPORT},
	{"at-decision", required_argument, NULL, OPT_DECISION},
	{"trace", required_argument, NULL, OPT_TRACE},
	{"check", no_argument, NULL, OPT_CHECK},
	{"force", no_argument, NULL, OPT_FORCE},
	{"decide", required_argument, NULL, OPT_DECIDE},
	{NULL, 0, NULL, 0},
};

/* Which subcommands take an option; options that are not listed here are for all. */
static bool options_taken(int id, int takes)
{
	switch (id) {
	case OPT_SEEDS:
	case OPT_SEED:
	case OPT_JOBS:
	case OPT_SHARD:
		return takes & CLI_TAKES_SWEEP;
	case OPT_SET:
	case OPT_FIDELITY:
	case OPT_PARALLEL:
		return takes & (CLI_TAKES_SWEEP | CLI_TAKES_SET);
	case OPT_OUT:
		return takes & CLI_TAKES_SWEEP;
	case OPT_FORCE:
		return takes & CLI_TAKES_FORCE;
	case OPT_JSON:
		return takes & CLI_TAKES_OUT;
	case OPT_NODES:
	case OPT_POLICY:
	case OPT_SWEEP:
	case OPT_MEASURE:
		return takes & (CLI_TAKES_RUN | CLI_TAKES_REPLAY);
	case OPT_WORKLOAD:
	case OPT_RECORD:
	case OPT_EXPORT:
	case OPT_DECISION:
		return takes & CLI_TAKES_RUN;
	case OPT_TRACE:
		return takes & CLI_TAKES_TRACE;
	case OPT_DECIDE:
		return takes & CLI_TAKES_DECIDE;
	case OPT_CHECK:
		return takes & CLI_TAKES_REPLAY;
	default:
		return true;
	}
}

int cli_fail(const struct cli *cli, int code, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: ", cli->command);
	table_text(stderr, text, sizeof(text));
	fputc('\n', stderr);
	if (code == CLI_USAGE)
		fprintf(stderr, "`%s --help` explains the options\n", cli->command);
	return code;
}

int cli_whole(const struct cli *cli, const char *name, const char *text, uint64_t least,
	      uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || *value < least || *value > most)
		return cli_fail(cli, CLI_USAGE,
				"--%s: expected a whole number from %llu to %llu, found '%s'", name,
				(unsigned long long)least, (unsigned long long)most, text);
	return 0;
}

/* Parses a whole number of at most six digits; *END is what follows it. */
static unsigned int few_digits(const char *text, const char **end)
{
	unsigned int value = 0, n = 0;

	for (; n < 6 && text[n] >= '0' && text[n] <= '9'; n++)
		value = 10 * value + (unsigned int)(text[n] - '0');
	*end = text + n;
	return value;
}

static int shard(struct cli *cli, const char *text)
{
	const char *slash, *end = "";

	cli->shard = few_digits(text, &slash);
	if (*slash == '/')
		cli->shards = few_digits(slash + 1, &end);
	if (*slash != '/' || *end || !cli->shard || cli->shard > cli->shards)
		return cli_fail(cli, CLI_USAGE,
				"--shard: expected I/N with 1 <= I <= N (2/8: the second of eight "
				"parts), found '%s'",
				text);
	return 0;
}

/* "500" runs, "90s", "10m", "2h". */
static int decide_budget(struct cli *cli, const char *text)
{
	static const double seconds[] = {1, 60, 3600};
	static const char units[] = "smh";
	const char *end, *unit;
	unsigned int value = few_digits(text, &end);

	unit = *end && !end[1] ? strchr(units, *end) : NULL;
	if (!value || (*end && !unit))
		return cli_fail(cli, CLI_USAGE,
				"--decide: expected a number of runs (500) or a time (90s, 10m, "
				"2h), found '%s'",
				text);
	cli->decide_runs = unit ? 0 : value;
	cli->decide_s = unit ? value * seconds[unit - units] : 0;
	return 0;
}

static int setting(struct cli *cli, const char *name, const char *value)
{
	return settings_set(&cli->set, name, value) ? cli_fail(cli, CLI_FAILED, "no memory") : 0;
}

/* Handles options whose value is a number or a setting. */
static int take_checked(struct cli *cli, int id, const char *value)
{
	struct iocom_err err = {0};
	uint64_t n = 0;
	int ret;

	switch (id) {
	case OPT_SEEDS:
		ret = cli_whole(cli, "seeds", value, 1, 10000, &n);
		cli->seeds = (uint32_t)n;
		return ret;
	case OPT_SEED:
		return cli_whole(cli, "seed", value, 0, CLI_SEED_MAX, &cli->seed);
	case OPT_JOBS:
		ret = cli_whole(cli, "jobs", value, 1, 4096, &n);
		cli->jobs = (unsigned int)n;
		return ret;
	case OPT_PARALLEL:
		ret = cli_whole(cli, "parallel", value, 1, 1024, &n);
		return ret ? ret : setting(cli, "threads", value);
	case OPT_DECISION:
		return cli_whole(cli, "at-decision", value, 1, UINT64_MAX, &cli->at_decision);
	case OPT_SHARD:
		return shard(cli, value);
	case OPT_DECIDE:
		return decide_budget(cli, value);
	case OPT_SET:
		ret = settings_add(&cli->set, value, &err);
		return ret ? cli_fail(cli, CLI_USAGE, "--set: %s", err.text) : 0;
	case OPT_FIDELITY:
		return setting(cli, "fidelity", value);
	case OPT_SWEEP:
		if (cli->nsweeps == CLI_SWEEPS_MAX)
			return cli_fail(cli, CLI_USAGE, "--sweep can be given at most %d times",
					CLI_SWEEPS_MAX);
		cli->sweep[cli->nsweeps++] = value;
		return 0;
	default:
		return 0;
	}
}

static int options_take(struct cli *cli, int id, const char *value)
{
	switch (id) {
	case OPT_OUT:
		cli->out = value;
		return *value ? 0 : cli_fail(cli, CLI_USAGE, "--out: expected a directory");
	case OPT_JSON:
		cli->json = true;
		return 0;
	case OPT_WORKLOAD:
		cli->workload = value;
		return 0;
	case OPT_NODES:
		cli->nodes = value;
		return 0;
	case OPT_POLICY:
		cli->policies = value;
		return 0;
	case OPT_MEASURE:
		cli->measure = value;
		return 0;
	case OPT_RECORD:
		cli->record = value;
		return 0;
	case OPT_EXPORT:
		cli->export_view = value;
		return 0;
	case OPT_TRACE:
		cli->trace = value;
		return 0;
	case OPT_CHECK:
		cli->check = true;
		return 0;
	case OPT_FORCE:
		cli->force = true;
		return 0;
	default:
		return take_checked(cli, id, value);
	}
}

static const char *option_name(int id, const struct option *all)
{
	for (const struct option *o = all; o->name; o++)
		if (o->val == id)
			return o->name;
	return "?";
}

int cli_bad_option(const struct cli *cli, int id, const struct option *all, char **argv)
{
	if (id == ':')
		return cli_fail(cli, CLI_USAGE, "%s needs a value", argv[optind - 1]);
	if (optopt > UCHAR_MAX)
		return cli_fail(cli, CLI_USAGE, "--%s takes no value", option_name(optopt, all));
	return cli_fail(cli, CLI_USAGE, "there is no option '%s'", argv[optind - 1]);
}

int cli_parse(struct cli *cli, int argc, char **argv, int takes, const char *help, int *first)
{
	int id, ret = 0;

	cli->seed = 1;
	optind = 1;
	opterr = 0;
	while (!ret && (id = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (id == 'h') {
			fputs(help, stdout);
			return -1;
		}
		if (id == ':' || id == '?')
			return cli_bad_option(cli, id, options, argv);
		if (!options_taken(id, takes))
			return cli_fail(cli, CLI_USAGE, "this command does not take --%s",
					option_name(id, options));
		ret = options_take(cli, id, optarg);
	}
	*first = optind;
	return ret;
}

int cli_hold(struct cli *cli, const char **trace)
{
	struct iocom_err err = {0};
	struct stat st;

	if (strcmp(*trace, "-") &&
	    (stat(*trace, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return 0;
	cli->held = source_open(*trace, &err);
	if (!cli->held)
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	if (source_path(cli->held, cli->held_path, sizeof(cli->held_path)))
		return cli_fail(cli, CLI_FAILED, "no memory for %s", *trace);
	*trace = cli->held_path;
	return 0;
}

const char *cli_trace_name(const struct cli *cli, const char *trace)
{
	return cli->held ? source_name(cli->held) : trace;
}

void cli_free(struct cli *cli)
{
	source_free(cli->held);
	settings_free(&cli->set);
}
