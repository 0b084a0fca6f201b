/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom-sim run` runs a workload on a cluster under policies, with parameters and sweeps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"

#define SEEDS 10 /* default */

static const char help[] =
	"usage: iocom-sim run --workload W --nodes SPEC --policy A,B,... [OPTION...]\n"
	"Runs a workload on a cluster under policies.  Prints a table and writes\n"
	"run.csv, run.json, run.svg.\n"
	"\n"
	"  --workload W          a trace (its content shows the format; plain or gzip) or\n"
	"                        gen:PRESET,key=value,... (`iocom-sim --list` has the presets)\n"
	"  --nodes SPEC          the cluster: 6xfc, 30xfc+2xfc:disk_mb_per_s=20, @FILE\n"
	"  --policy A,B,...      policies (`iocom-sim --list`); feedback+P attaches the "
	"controller\n"
	"  --set NAME=VALUE      a parameter (`iocom-sim params`; the papers' figures set some to\n"
	"                        other values, the output names them), a field of all machines\n"
	"                        (nodes.buffer_mb=210), a key of the workload (load.io_per_ms=2)\n"
	"  --sweep NAME=V1,V2..  runs with each value; up to 8 sweeps, all combinations\n"
	"  --measure NAME        the measure that table and figure show [slowdown]\n"
	"  --seeds N             runs of each cell, each with its own workload [10]\n"
	"  --seed S              the first seed [1]\n"
	"  --jobs N              runs at the same time [one per core]\n"
	"  --parallel N          threads inside one run [1]\n"
	"  --fidelity F          fluid or request [fluid]\n"
	"  --out DIR             where to write the files [.]\n"
	"  --force               replace files that are there\n"
	"  --json                JSON on standard output; files only with --out\n"
	"  --shard I/N           only every Nth run, to a part file; `iocom-sim merge` joins them\n"
	"  --record FILE         (one policy, one seed) write the run as a recording\n"
	"  --export-view FILE    (the same) write the view of one decision, for\n"
	"                        `iocom place --view FILE`\n"
	"  --at-decision K       export the view of decision K, counted from 1 [1]\n"
	"\n"
	"exit: 0 done, 1 failed or interrupted (nothing is written), 2 usage\n";

static int cmd_run_set(const struct cli *cli, struct settings *s, const char *name,
		       const char *value)
{
	return settings_set(s, name, value) ? cli_fail(cli, CLI_FAILED, "no memory") : 0;
}

/* A value that is a number is its position on the axis. */
static double cli_cmd_run_place(const char *value)
{
	char *end;
	double x = strtod(value, &end);

	return *value && !*end && isfinite(x) ? x : NAN;
}

static int add_point(const struct cli *cli, struct sweep *s, const char *settings)
{
	bool single = !strchr(settings, ' ');
	const char *value = strchr(settings, '=') + 1;
	struct iocom_err err = {0};
	int ret = sweep_add_point(s, single ? value : settings,
				  single ? cli_cmd_run_place(value) : NAN, settings, &err);

	return ret ? cli_fail(cli, CLI_USAGE, "--sweep: %s", err.text) : 0;
}

/* Returns whether V, a value in the parsed copy VALUES of TEXT, stands there before. */
static bool cli_run_swept_before(const char *text, const char *values, const char *v)
{
	const char *end = text + (v - values);
	size_t n = strlen(v);

	for (const char *at = text; at < end; at += strcspn(at, ",") + 1)
		if (strcspn(at, ",") == n && !strncmp(at, v, n))
			return true;
	return false;
}

/* Adds all combinations of sweep I and those after it to PREFIX. */
static int add_combinations(const struct cli *cli, struct sweep *s, size_t i, const char *prefix)
{
	const char *text = cli->sweep[i], *equals = strchr(text, '=');
	char *values = strdup(equals + 1), *save = NULL;
	int ret = values ? 0 : cli_fail(cli, CLI_FAILED, "no memory");

	for (char *v = values ? strtok_r(values, ",", &save) : NULL; v && !ret;
	     v = strtok_r(NULL, ",", &save)) {
		char *settings;

		if (cli_run_swept_before(equals + 1, values, v)) {
			ret = cli_fail(cli, CLI_USAGE, "--sweep: %.*s=%s is given twice",
				       (int)(equals - text), text, v);
			break;
		}
		if (asprintf(&settings, "%s%s%.*s=%s", prefix, *prefix ? " " : "",
			     (int)(equals - text), text, v) < 0) {
			ret = cli_fail(cli, CLI_FAILED, "no memory");
			break;
		}
		ret = i + 1 < cli->nsweeps ? add_combinations(cli, s, i + 1, settings)
					   : add_point(cli, s, settings);
		free(settings);
	}
	free(values);
	return ret;
}

int cli_add_points(const struct cli *cli, struct sweep *s)
{
	struct iocom_err err = {0};

	for (size_t i = 0; i < cli->nsweeps; i++) {
		const char *equals = strchr(cli->sweep[i], '=');

		if (!equals || equals == cli->sweep[i] || !equals[1])
			return cli_fail(cli, CLI_USAGE,
					"--sweep: expected NAME=V1,V2,..., found '%s'",
					cli->sweep[i]);
		for (size_t k = 0; k < i; k++)
			if (!strncmp(cli->sweep[k], cli->sweep[i],
				     (size_t)(equals - cli->sweep[i]) + 1))
				return cli_fail(cli, CLI_USAGE, "--sweep: %.*s is swept twice",
						(int)(equals - cli->sweep[i]), cli->sweep[i]);
	}
	if (cli->nsweeps)
		return add_combinations(cli, s, 0, "");
	return sweep_add_point(s, "all", NAN, NULL, &err) ? cli_fail(cli, CLI_FAILED, "no memory")
							  : 0;
}

bool cli_numeric(const struct sweep *s)
{
	for (size_t i = 0; i < s->npoints; i++)
		if (!isfinite(s->points[i].x))
			return false;
	return true;
}

static int cmd_run_fill(const struct cli *cli, struct sweep *s)
{
	int ret = cmd_run_set(cli, &s->settings, "workload", cli->workload);

	if (!ret)
		ret = cmd_run_set(cli, &s->settings, "nodes", cli->nodes);
	if (!ret && settings_merge(&s->settings, &cli->set))
		ret = cli_fail(cli, CLI_FAILED, "no memory");
	if (!ret)
		ret = cli_add_points(cli, s);
	return ret ? ret : cli_add_policies(cli, s, cli->policies);
}

static struct sweep *make_sweep(const struct cli *cli, int *ret)
{
	char x_name[128] = "";
	struct sweep *s;

	if (cli->nsweeps == 1)
		snprintf(x_name, sizeof(x_name), "%.*s", (int)strcspn(cli->sweep[0], "="),
			 cli->sweep[0]);
	s = sweep_new("run", cli_trace_name(cli, cli->workload), x_name);
	if (!s) {
		*ret = cli_fail(cli, CLI_FAILED, "no memory");
		return NULL;
	}
	s->seeds = cli->seeds ? cli->seeds : SEEDS;
	s->first_seed = cli->seed;
	*ret = cmd_run_fill(cli, s);
	if (!*ret)
		return s;
	sweep_free(s);
	return NULL;
}

static int cmd_run_complete(const struct cli *cli, int argc, char **argv, int first)
{
	if (first < argc)
		return cli_fail(cli, CLI_USAGE, "unexpected '%s'", argv[first]);
	if (!cli->workload)
		return cli_fail(cli, CLI_USAGE, "--workload is missing");
	if (!cli->nodes)
		return cli_fail(cli, CLI_USAGE, "--nodes is missing");
	if (!cli->policies)
		return cli_fail(cli, CLI_USAGE, "--policy is missing");
	if (settings_get(&cli->set, "workload") || settings_get(&cli->set, "nodes"))
		return cli_fail(cli, CLI_USAGE,
				"--set: --workload and --nodes give the workload and the nodes");
	if ((cli->record || cli->export_view) && (cli->measure || cli->json || cli->out))
		return cli_fail(cli, CLI_USAGE,
				"--%s has no effect with --record or --export-view, which make no "
				"table",
				cli->measure ? "measure"
				: cli->json  ? "json"
					     : "out");
	if (cli->measure && measure_parse(cli->measure) == M_COUNT)
		return cli_fail(cli, CLI_USAGE,
				"--measure: there is no '%s'; see the columns of the CSV "
				"for the names",
				cli->measure);
	if (cli->at_decision && !cli->export_view)
		return cli_fail(cli, CLI_USAGE, "--at-decision needs --export-view");
	return 0;
}

static int cli_cmd_run(struct cli *cli)
{
	struct report report = {0};
	int ret;
	struct sweep *s = make_sweep(cli, &ret);

	if (!s)
		return ret;
	report.sweep = s;
	report.y = cli->measure ? measure_parse(cli->measure) : M_SLOWDOWN;
	report.plot = s->npoints == 1 && !cli->measure	 ? PLOT_COMPARE
		      : s->npoints > 1 && cli_numeric(s) ? PLOT_LINES
							 : PLOT_BARS;
	ret = cli->record || cli->export_view ? cli_record(cli, s)
					      : cli_execute(cli, &report, 1, false);
	report_free(&report);
	sweep_free(s);
	return ret;
}

int cmd_run(int argc, char **argv, const volatile sig_atomic_t *cancel)
{
	struct cli cli = {.command = "iocom-sim run", .cancel = cancel};
	int first,
		ret = cli_parse(&cli, argc, argv,
				CLI_TAKES_SWEEP | CLI_TAKES_OUT | CLI_TAKES_FORCE | CLI_TAKES_RUN,
				help, &first);

	if (!ret)
		ret = cmd_run_complete(&cli, argc, argv, first);
	if (!ret && strncmp(cli.workload, "gen:", 4))
		ret = cli_hold(&cli, &cli.workload);
	if (!ret)
		ret = cli_cmd_run(&cli);
	cli_free(&cli);
	return ret < 0 ? CLI_OK : ret;
}
