/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom-sim replay` shows how the jobs of a trace would have run under another policy.  Its users
 * administer machines, so it prints plain words and few numbers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/as_recorded.h"
#include "sim/cli/cli.h"
#include <iocom/rules.h>

#include "sim/report/table.h"
#include "sim/workload/spec.h"

static const char help[] =
	"usage: iocom-sim replay TRACE [--policy A,B,...] [OPTION...]\n"
	"       iocom-sim replay RECORDING --check [--json] [OPTION...]\n"
	"Replays the jobs of TRACE under policies and compares how long jobs took, how busy\n"
	"the machines were and how much was moved.  TRACE is an iocom recording, SWF, CSD csv,\n"
	"Darshan csv, block csv, or the simulator's 8 columns, plain or gzip.\n"
	"Writes replay.csv, replay.json, replay.svg.\n"
	"\n"
	"--check compares a recording with its simulation: each decision, taken again on the\n"
	"view that it used, must be the same (goal: 95 %), and the mean slowdown of its jobs,\n"
	"simulated under its own policy, must be near the measured one (goal: 10 %).\n"
	"\n"
	"  --policy A,B,...      the policies to compare [nlb,cpu-re,mem-re,iocm-re,iocm-pm]\n"
	"  --nodes SPEC          the machines [those of the recording; for another trace: as\n"
	"                        many of kind host as it names, with enough memory]\n"
	"  --check               compare RECORDING with its simulation\n"
	"  --seed S              seed of what the trace does not hold and is generated [1]\n"
	"  --seeds N             number of such seeds; several give an interval [1]\n"
	"  --set NAME=VALUE      a parameter (`iocom-sim params`; the papers' figures set some to\n"
	"                        other values, the output names them), a field of all machines\n"
	"                        (nodes.cpu_mips=400), an option of the reader\n"
	"                        (load.to_s=3600, load.jobs_max=10000, load.io_per_ms=0.01)\n"
	"  --fidelity F          fluid or request [fluid; --check: request]\n"
	"  --jobs N              runs at the same time [one per core]\n"
	"  --parallel N          threads inside one run [1]\n"
	"  --out DIR             where to write the files [.]\n"
	"  --force               replace files that are there\n"
	"  --json                JSON on standard output; files only with --out\n"
	"  --shard I/N           only every Nth run, to a part file; `iocom-sim merge` joins them\n"
	"\n"
	"exit: 0 done, 1 failed or interrupted (nothing is written), or a goal of --check not\n"
	"met, 2 usage\n";

static const char words[] =
	"\nslowdown      how many times longer a job took than alone at home; 1 is ideal\n"
	"p95           19 of 20 jobs were better\n"
	"turnaround    from submission to end\n"
	"busy          share of the time, mean over the machines\n"
	"moved         tasks that ran on another node than their home; data sent for them\n";

static const char no_disk[] =
	"\nNo disk was used: the trace has no disk accesses, so policies that look at\n"
	"disks decide like the others. --set load.io_per_ms=0.01 generates some.\n";

/*
 * Makes as many machines as the trace names, with the cores that it states.  No trace states their
 * memory: it is assumed to be enough.
 */
static int default_nodes(const struct cli *cli, char *out, size_t size)
{
	struct workload_options options;
	struct iocom_err err = {0};
	struct sim_job job;
	struct workload *w;
	uint32_t nodes;
	double cores;
	int ret = 1;

	workload_options_default(&options);
	w = workload_spec_open(cli->trace, &options, &err);
	if (!w)
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	nodes = workload_info(w)->nodes;
	cores = workload_info(w)->cores;
	while (!workload_info(w)->nodes && (ret = workload_next(w, &job, &err)) == 1)
		nodes = job.home + 1 > nodes ? job.home + 1 : nodes;
	workload_free(w);
	if (ret < 0)
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	snprintf(out, size, "%uxhost:cores=%g", nodes ? nodes : 1, cores >= 1 ? cores : 1);
	return 0;
}

static int cmd_replay_fill(const struct cli *cli, struct sweep *s)
{
	const char *policies = cli->policies ? cli->policies : "nlb,cpu-re,mem-re,iocm-re,iocm-pm";
	struct recorded_facts facts;
	struct iocom_err err = {0};
	char nodes[64];
	int ret = recorded_settings(cli->trace, &s->settings, &facts, &err);

	if (ret < 0)
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	if (ret == 0 && !cli->nodes) {
		ret = default_nodes(cli, nodes, sizeof(nodes));
		if (ret)
			return ret;
		ret = settings_set(&s->settings, "nodes", nodes);
	}
	if ((cli->nodes && settings_set(&s->settings, "nodes", cli->nodes)) || ret < 0 ||
	    settings_set(&s->settings, "workload", cli->trace) ||
	    settings_merge(&s->settings, &cli->set) || sweep_add_point(s, "all", NAN, NULL, NULL))
		return cli_fail(cli, CLI_FAILED, "no memory");
	return cli_add_policies(cli, s, policies);
}

static bool disks_idle(const struct sweep *s)
{
	for (size_t i = 0; i < s->nseries; i++)
		if (sweep_mean(s, 0, i, M_DISK).mean > 0)
			return false;
	return true;
}

static void explain_policy(const char *label, enum rules_policy policy, bool feedback)
{
	char text[512];
	int n = printf("%-13s ", label);

	snprintf(text, sizeof(text), "%s%s", rules_policy_summary(policy),
		 feedback ? ", with the feedback controller" : "");
	table_paragraph(stdout, n > 0 ? (size_t)n : 0, 14, text);
}

static void cmd_replay_explain(const struct sweep *s)
{
	if (disks_idle(s))
		fputs(no_disk, stdout);
	fputs(words, stdout);
	putchar('\n');
	for (size_t i = 0; i < s->nseries; i++) {
		enum rules_policy policy;
		bool feedback;

		if (!rules_policy_parse_feedback(s->series[i].policy, &policy, &feedback))
			explain_policy(s->series[i].label, policy, feedback);
	}
}

static int replay(struct cli *cli)
{
	struct report report = {.plot = PLOT_COMPARE, .y = M_SLOWDOWN};
	struct sweep *s = sweep_new("replay", cli_trace_name(cli, cli->trace), "");
	int ret;

	if (!s)
		return cli_fail(cli, CLI_FAILED, "no memory");
	report.sweep = s;
	s->seeds = cli->seeds ? cli->seeds : 1;
	s->first_seed = cli->seed;
	ret = cmd_replay_fill(cli, s);
	if (!ret)
		ret = cli_execute(cli, &report, 1, false);
	if (!ret && !cli->json && !cli->shards)
		cmd_replay_explain(s);
	report_free(&report);
	sweep_free(s);
	return ret;
}

int cmd_replay(int argc, char **argv, const volatile sig_atomic_t *cancel)
{
	struct cli cli = {.command = "iocom-sim replay", .cancel = cancel};
	int first, ret = cli_parse(&cli, argc, argv,
				   CLI_TAKES_SWEEP | CLI_TAKES_OUT | CLI_TAKES_FORCE |
					   CLI_TAKES_REPLAY,
				   help, &first);

	if (!ret && first == argc)
		ret = cli_fail(&cli, CLI_USAGE, "no trace given");
	if (!ret && first + 1 < argc)
		ret = cli_fail(&cli, CLI_USAGE, "unexpected '%s'", argv[first + 1]);
	if (!ret) {
		cli.trace = argv[first];
		ret = cli_hold(&cli, &cli.trace);
	}
	if (!ret)
		ret = cli.check ? cli_check_recording(&cli) : replay(&cli);
	cli_free(&cli);
	return ret < 0 ? CLI_OK : ret;
}
