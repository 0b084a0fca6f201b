/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom-sim replay` shows how the jobs of a trace would have run under another policy.  Its users
 * administer machines, so it prints plain words and few numbers.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/as_recorded.h"
#include "sim/cli/cli.h"
#include <iocom/rules.h>

#include "sim/experiments/recorded_run.h"
#include "sim/report/replayed.h"
#include "sim/report/table.h"
#include "sim/workload/spec.h"

#define POLICIES       "nlb,cpu-re,mem-re,iocm-re,iocm-pm,least-delay"
#define BATCH_POLICIES "bs,bs-fcfs"

static const char help[] =
	"usage: iocom-sim replay TRACE [--policy A,B,...] [OPTION...]\n"
	"       iocom-sim replay RECORDING --check [--json] [OPTION...]\n"
	"Replays the jobs of TRACE under policies and compares how long jobs took, how busy\n"
	"the machines were and how much was moved.  TRACE is an iocom recording, SWF, CSD csv,\n"
	"Darshan csv, block csv, or the simulator's 8 columns, plain or gzip.\n"
	"Writes replay.csv, .json, .svg, .groups.csv (weeks, users, classes of jobs) and, for a\n"
	"batch log, .samples.csv and .utilisation.svg (how busy processors were over time).\n"
	"\n"
	"A batch log (SWF) is replayed as batch: the ranks of a job start together, each on a\n"
	"processor of its own, and the first row is what the log itself recorded.  Policy bs\n"
	"backfills by EASY with the requested times, bs-fcfs is first come first served.\n"
	"Bounded slowdown is turnaround / max(run time, 10 s).  Intervals come from a block\n"
	"bootstrap over the weeks of the log; fewer than 8 weeks give none.  The last line\n"
	"recommends a policy, or says that nothing is told apart; after a sweep the last lines\n"
	"say what each point brings compared with the first, and to how many users.\n"
	"\n"
	"--check compares a recording with its simulation: each decision, taken again on the\n"
	"view that it used, must be the same (goal: 95 %), and the mean slowdown of its jobs,\n"
	"simulated under its own policy, must be near the measured one (goal: 10 %).\n"
	"\n"
	"  --policy A,B,...      the policies to compare [nlb,cpu-re,mem-re,iocm-re,iocm-pm,\n"
	"                        least-delay, which is iocom's own; batch log: bs,bs-fcfs]\n"
	"  --nodes SPEC          the machines [those of the recording; of a batch log: one of\n"
	"                        one core for each processor; of another trace: as many of\n"
	"                        kind host as it names, with enough memory]\n"
	"  --sweep NAME=V1,V2..  replays with each value: nodes=64,128,256 (of the same kind),\n"
	"                        nodes.ram_mb=..., nodes.disk_mb_per_s=..., a parameter; up to\n"
	"                        8 sweeps, all combinations\n"
	"  --measure NAME        the measure that a sweep's table and figure show [batch log:\n"
	"                        bounded_slowdown, else slowdown]\n"
	"  --check               compare RECORDING with its simulation\n"
	"  --seed S              seed of what the trace does not hold and is generated [1]\n"
	"  --seeds N             number of such seeds; several give an interval [1]\n"
	"  --set NAME=VALUE      a parameter (`iocom-sim params`; the papers' figures set some to\n"
	"                        other values, the output names them), a field of all machines\n"
	"                        (nodes.cpu_mips=400), an option of the reader\n"
	"                        (load.to_s=3600, load.jobs_max=10000, load.io_per_ms=0.01;\n"
	"                        load.batch=no: not as batch)\n"
	"  --fidelity F          fluid or request [fluid; --check: request]\n"
	"  --jobs N              runs at the same time [one per core]\n"
	"  --parallel N          threads inside one run [1]; not for a batch log\n"
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

static const char batch_words[] =
	"\nwait          from submission to the start\n"
	"turnaround    from submission to end\n"
	"bounded slowdown  turnaround over the longer of run time and 10 s; 1 is ideal\n"
	"slowdown p95  turnaround over run time; 19 of 20 jobs were better\n"
	"recorded      what the log says; outages, limits and priorities of the real\n"
	"              system are in it, and not in the simulation\n";

/* Of a sweep, the table shows one measure. */
static const char swept_words[] =
	"\nslowdown      how many times longer a job took than alone at home; 1 is ideal\n";

static const char swept_batch_words[] =
	"\nbounded slowdown  turnaround over the longer of run time and 10 s; 1 is ideal\n"
	"recorded      what the log says of its own machines: the same at each point\n";

static const char shared_words[] =
	"\nOther policies than bs let jobs share processors. The log says neither how ranks\n"
	"wait for each other nor what memory jobs would lack then: these rows flatter them.\n";

static const char no_disk[] =
	"\nNo disk was used: the trace has no disk accesses, so policies that look at\n"
	"disks decide like the others. --set load.io_per_ms=0.01 generates some.\n";

/* What a replay needs to know about a trace before it starts. */
struct replay_trace {
	uint32_t nodes, processors; /* that it names or needs; at least 1 */
	double cores;		    /* of a node, at least 1 */
	bool batch;		    /* the log of a batch system */
	bool waits;		    /* it recorded how long some job waited */
	double span_ms;		    /* from the first arrival to the last recorded end */
};

static int replay_options(const struct cli *cli, struct workload_options *options)
{
	static const char prefix[] = "load.";
	struct iocom_err err = {0};

	workload_options_default(options);
	for (size_t i = 0; i < cli->set.n; i++) {
		const char *name = cli->set.v[i].name;

		if (strncmp(name, prefix, strlen(prefix)) || !strcmp(name, "load.seed"))
			continue; /* checked later, with all other settings */
		if (workload_options_set(options, name + strlen(prefix), cli->set.v[i].value, &err))
			return cli_fail(cli, CLI_USAGE, "%s", err.text);
	}
	return 0;
}

static void replay_see(struct replay_trace *t, const struct sim_job *job)
{
	double end = job->arrival_ms;

	if (job->is_batch && job->batch.wait_ms >= 0) {
		t->waits = true;
		end += job->batch.wait_ms + job->batch.run_ms;
	}
	t->span_ms = fmax(t->span_ms, end);
}

static int replay_look(const struct cli *cli, struct replay_trace *t)
{
	struct workload_options options;
	struct iocom_err err = {0};
	const struct workload_info *info;
	struct workload *w;
	struct sim_job job;
	uint32_t widest = 1, homes = 1;
	int ret = replay_options(cli, &options);

	*t = (struct replay_trace){0};
	if (ret)
		return ret;
	w = workload_spec_open(cli->trace, &options, &err);
	if (!w)
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	info = workload_info(w);
	t->batch = info->batch;
	while ((t->batch || !info->nodes) && (ret = workload_next(w, &job, &err)) == 1) {
		replay_see(t, &job);
		homes = job.home + 1 > homes ? job.home + 1 : homes;
		widest = job.tasks > widest ? job.tasks : widest;
	}
	t->nodes = info->nodes ? info->nodes : homes;
	t->processors = info->processors ? info->processors : widest;
	t->cores = info->cores >= 1 ? info->cores : 1;
	workload_free(w);
	return ret < 0 ? cli_fail(cli, CLI_FAILED, "%s", err.text) : 0;
}

/* Whether the log is to be replayed as a batch system: unless load.batch=no says otherwise. */
static int replay_as_batch(const struct cli *cli, struct replay_trace *t)
{
	const char *text = settings_get(&cli->set, "load.batch");
	struct workload_options options;

	workload_options_default(&options);
	if (t->batch && text && !workload_options_set(&options, "batch", text, NULL))
		t->batch = options.batch;
	if (t->batch && settings_get(&cli->set, "threads"))
		return cli_fail(cli, CLI_USAGE,
				"--parallel: all nodes share the batch queue, so one thread runs "
				"it (--jobs runs several policies at the same time)");
	return 0;
}

#define REPLAY_SAMPLES	   200	     /* points of the time series */
#define REPLAY_SAMPLE_UNIT 3600000.0 /* whole hours */

/*
 * A batch system gives processors to one job at a time: a machine with one core stands for a
 * processor, the ranks of a job start together, and the log's run times hold all that starting
 * costs.
 */
static int replay_set_batch(struct sweep *s, const struct replay_trace *t)
{
	double sample = ceil(t->span_ms / REPLAY_SAMPLES / REPLAY_SAMPLE_UNIT) * REPLAY_SAMPLE_UNIT;
	char text[32];

	snprintf(text, sizeof(text), "%.0f", fmax(sample, REPLAY_SAMPLE_UNIT));
	s->batch = s->keep_samples = true;
	if (settings_set(&s->settings, "load.batch", "yes") ||
	    settings_set(&s->settings, "bs_backfill", "2") ||
	    settings_set(&s->settings, "parallel_start", "1") ||
	    settings_set(&s->settings, "fixed_cost_ms", "0") ||
	    settings_set(&s->settings, "sample_ms", text))
		return -ENOMEM;
	return t->waits ? sweep_add_series(s, RECORDED_POLICY, RECORDED_POLICY, NULL, NULL) : 0;
}

/* As many machines as the trace names, with the cores that it states; of memory, enough. */
static void replay_default_nodes(const struct replay_trace *t, char *out, size_t size)
{
	if (t->batch)
		snprintf(out, size, "%uxhost:cores=1", t->processors);
	else
		snprintf(out, size, "%uxhost:cores=%g", t->nodes ? t->nodes : 1, t->cores);
}

/*
 * --sweep nodes=64,128: as many machines of the kind that NODES has.  Replaces the text of the
 * sweep by one that the caller frees.
 */
static int replay_sweep_nodes(struct cli *cli, const char *nodes, char **out)
{
	const char *kind = nodes + strspn(nodes, "0123456789");
	size_t size = 0;
	FILE *f;

	for (size_t i = 0; i < cli->nsweeps; i++) {
		const char *v = cli->sweep[i];

		if (strncmp(v, "nodes=", 6) || v[6 + strspn(v + 6, "0123456789,")])
			continue;
		if (*kind != 'x' || strchr(kind, '+') || strchr(kind, ','))
			return cli_fail(cli, CLI_USAGE,
					"--sweep nodes=N,...: the machines (%.40s) are not of one "
					"kind; give each value as a SPEC",
					nodes);
		f = *out ? NULL : open_memstream(out, &size);
		if (!f)
			return cli_fail(cli, CLI_USAGE, "--sweep: nodes is given twice");
		fputs("nodes=", f);
		for (v += 6; *v;) {
			size_t n = strcspn(v, ",");

			if (n)
				fprintf(f, "%.*s%s%s", (int)n, v, kind, v[n] ? "," : "");
			v += n + (v[n] == ',');
		}
		if (fclose(f))
			return cli_fail(cli, CLI_FAILED, "no memory");
		cli->sweep[i] = *out;
	}
	return 0;
}

/* Points of a sweep over numbers of machines are named by the number. */
static void replay_name_points(struct sweep *s, bool by_number)
{
	for (size_t i = 0; i < s->npoints && by_number; i++) {
		char *end;
		double x = strtod(s->points[i].label, &end);

		if (*end != 'x')
			continue;
		*end = '\0';
		s->points[i].x = x;
	}
}

static int replay_points(struct cli *cli, struct sweep *s)
{
	char *text = NULL;
	int ret = replay_sweep_nodes(cli, settings_get(&s->settings, "nodes"), &text);

	if (!ret)
		ret = cli_add_points(cli, s);
	if (!ret)
		replay_name_points(s, text && cli->nsweeps == 1);
	free(text);
	return ret;
}

static int replay_set_nodes(const struct cli *cli, struct sweep *s, const struct replay_trace *t,
			    bool recording)
{
	char nodes[64];

	if (recording && !cli->nodes)
		return 0; /* the settings of the recording name them */
	replay_default_nodes(t, nodes, sizeof(nodes));
	return settings_set(&s->settings, "nodes", cli->nodes ? cli->nodes : nodes);
}

static int cmd_replay_fill(struct cli *cli, struct sweep *s)
{
	struct replay_trace trace = {0};
	struct recorded_facts facts;
	struct iocom_err err = {0};
	int recording = recorded_settings(cli->trace, &s->settings, &facts, &err), ret;

	if (recording < 0)
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	ret = recording ? 0 : replay_look(cli, &trace);
	if (!ret)
		ret = replay_as_batch(cli, &trace);
	if (ret)
		return ret;
	s->keep_outcomes = true;
	s->keep_samples = settings_get(&cli->set, "sample_ms") != NULL;
	if (replay_set_nodes(cli, s, &trace, recording > 0) ||
	    (trace.batch && replay_set_batch(s, &trace)) ||
	    settings_set(&s->settings, "workload", cli->trace) ||
	    settings_merge(&s->settings, &cli->set))
		return cli_fail(cli, CLI_FAILED, "no memory");
	ret = replay_points(cli, s);
	return ret ? ret
		   : cli_add_policies(cli, s,
				      cli->policies ? cli->policies
				      : trace.batch ? BATCH_POLICIES
						    : POLICIES);
}

static bool disks_idle(const struct sweep *s)
{
	for (size_t i = 0; i < s->nseries; i++)
		if (sweep_mean(s, 0, i, M_DISK).mean > 0)
			return false;
	return true;
}

static void explain_policy(const struct sweep *s, const struct sweep_series *series,
			   enum rules_policy policy, bool feedback)
{
	const char *more = feedback ? ", with the feedback controller" : "";
	char text[512];
	int n = printf("%-13s ", series->label);

	if (s->batch && replayed_is_bs(series))
		more = settings_get(&series->settings, "bs_backfill")
			       ? "; first come first served"
			       : "; a later job may pass if it does not delay the first (EASY "
				 "backfill, by the requested times)";
	snprintf(text, sizeof(text), "%s%s", rules_policy_summary(policy), more);
	table_paragraph(stdout, n > 0 ? (size_t)n : 0, 14, text);
}

static void cmd_replay_explain(const struct sweep *s)
{
	if (disks_idle(s) && !s->batch)
		fputs(no_disk, stdout);
	if (s->batch && replayed_shares(s))
		fputs(shared_words, stdout);
	if (s->npoints > 1)
		fputs(s->batch ? swept_batch_words : swept_words, stdout);
	else
		fputs(s->batch ? batch_words : words, stdout);
	putchar('\n');
	for (size_t i = 0; i < s->nseries; i++) {
		enum rules_policy policy;
		bool feedback;

		if (!rules_policy_parse_feedback(s->series[i].policy, &policy, &feedback))
			explain_policy(s, &s->series[i], policy, feedback);
	}
}

static int replay(struct cli *cli)
{
	struct report report = {0};
	char x_name[128] = "";
	struct sweep *s;
	int ret;

	if (cli->measure && measure_parse(cli->measure) == M_COUNT)
		return cli_fail(cli, CLI_USAGE,
				"--measure: there is no '%s'; see the columns of the CSV for the "
				"names",
				cli->measure);
	if (cli->nsweeps == 1)
		snprintf(x_name, sizeof(x_name), "%.*s", (int)strcspn(cli->sweep[0], "="),
			 cli->sweep[0]);
	s = sweep_new("replay", cli_trace_name(cli, cli->trace), x_name);
	if (!s)
		return cli_fail(cli, CLI_FAILED, "no memory");
	report.sweep = s;
	s->seeds = cli->seeds ? cli->seeds : 1;
	s->first_seed = cli->seed;
	ret = cmd_replay_fill(cli, s);
	report.y = cli->measure ? measure_parse(cli->measure) : replayed_measure(s);
	report.plot = s->npoints == 1 && !cli->measure	 ? PLOT_COMPARE
		      : s->npoints > 1 && cli_numeric(s) ? PLOT_LINES
							 : PLOT_BARS;
	if (!ret)
		ret = cli_execute(cli, &report, 1, false);
	if (!ret && !cli->json && !cli->shards) {
		cmd_replay_explain(s);
		replayed_tell_advice(s, stdout);
	}
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
	if (!ret && cli.check && (cli.nsweeps || cli.measure))
		ret = cli_fail(&cli, CLI_USAGE, "--check takes no --sweep and no --measure");
	if (!ret) {
		cli.trace = argv[first];
		ret = cli_hold(&cli, &cli.trace);
	}
	if (!ret)
		ret = cli.check ? cli_check_recording(&cli) : replay(&cli);
	cli_free(&cli);
	return ret < 0 ? CLI_OK : ret;
}
