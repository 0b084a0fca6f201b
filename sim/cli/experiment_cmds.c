/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom-sim ID...`, `iocom-sim figures`, `iocom-sim --list`. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <iocom/rules.h>

#include "sim/cli/cli.h"
#include "sim/cluster.h"
#include "sim/workload/presets.h"

#define SEEDS 10 /* default */

static const char help[] =
	"usage: iocom-sim ID... [OPTION...]\n"
	"       iocom-sim figures [ID|PAPER]... [OPTION...]\n"
	"Runs experiments by id (`iocom-sim --list`) and judges the papers' claims about them;\n"
	"`figures` also writes a page, index.html, of all of them, or of these and whole papers\n"
	"(such as COM).  Writes ID.csv, ID.json, ID.svg.\n"
	"\n"
	"  --seeds N             runs of each cell, each with its own workload [10]\n"
	"  --seed S              the first seed [1]\n"
	"  --jobs N              runs at the same time [one per core]\n"
	"  --parallel N          threads inside one run [1]\n"
	"  --fidelity F          fluid or request [fluid]\n"
	"  --set NAME=VALUE      another value for a setting (`iocom-sim params`) in all runs\n"
	"  --trace FILE          the process trace for the CSD ids "
	"[$IOCOM_TRACES/CSD-trace.csv.gz,\n"
	"                        else a generated one with the same statistics]\n"
	"  --decide BUDGET       more seeds for undecided claims: so many runs (500) or so long "
	"(10m)\n"
	"  --out DIR             where to write the files [.]\n"
	"  --force               replace files that are there\n"
	"  --json                JSON on standard output; files only with --out\n"
	"  --shard I/N           only every Nth run, to a part file; `iocom-sim merge` joins them\n"
	"\n"
	"exit: 0 done, 1 failed or interrupted (nothing is written), 2 usage\n";

/* --- which experiments ----------------------------------------------------------- */

struct chosen {
	const struct experiment **list;
	size_t n;
};

static int experiment_cmds_choose(struct chosen *c, const struct experiment *e)
{
	const struct experiment **grown;

	for (size_t i = 0; i < c->n; i++)
		if (c->list[i] == e)
			return 0;
	grown = realloc(c->list, (c->n + 1) * sizeof(*grown));
	if (!grown)
		return -1;
	c->list = grown;
	c->list[c->n++] = e;
	return 0;
}

/* Adds the experiments whose results the claims of E also use. */
static int choose_needed(struct chosen *c, const struct experiment *e)
{
	char *copy = strdup(e->needs ? e->needs : ""), *save = NULL;
	int ret = copy ? 0 : -1;

	for (char *id = copy ? strtok_r(copy, " ", &save) : NULL; id && !ret;
	     id = strtok_r(NULL, " ", &save)) {
		const struct experiment *needed = experiment_find(id);

		if (needed)
			ret = experiment_cmds_choose(c, needed);
	}
	free(copy);
	return ret;
}

/* Adds all experiments of a paper; returns 1 if there is no such paper. */
static int choose_paper(struct chosen *c, const char *name)
{
	const struct experiment *e;
	int ret = 1;

	for (size_t i = 0; (e = experiment_at(i)); i++) {
		if (e->none || strcasecmp(e->paper, name) != 0)
			continue;
		if (experiment_cmds_choose(c, e))
			return -1;
		ret = 0;
	}
	return ret;
}

/* PAPERS: names of papers are ids, too. */
static int choose_ids(const struct cli *cli, struct chosen *c, char **ids, bool papers)
{
	for (; *ids; ids++) {
		const struct experiment *e = experiment_find(*ids);
		int paper = papers ? choose_paper(c, *ids) : 1;

		if (paper < 0)
			return cli_fail(cli, CLI_FAILED, "no memory");
		if (!paper)
			continue;
		if (!e)
			return cli_fail(
				cli, CLI_USAGE,
				"there is no experiment '%s'; `iocom-sim --list` names them", *ids);
		if (e->none)
			return cli_fail(cli, CLI_USAGE, "%s is not an experiment of its own: %s",
					e->id, e->none);
		if (experiment_cmds_choose(c, e))
			return cli_fail(cli, CLI_FAILED, "no memory");
	}
	for (size_t i = 0, n = c->n; i < n; i++)
		if (choose_needed(c, c->list[i]))
			return cli_fail(cli, CLI_FAILED, "no memory");
	return 0;
}

static int choose_all(const struct cli *cli, struct chosen *c)
{
	const struct experiment *e;

	for (size_t i = 0; (e = experiment_at(i)); i++)
		if (!e->none && experiment_cmds_choose(c, e))
			return cli_fail(cli, CLI_FAILED, "no memory");
	return 0;
}

/* Refuses --trace when no chosen experiment replays the trace, because it would have no effect. */
static int check_trace(const struct cli *cli, const struct chosen *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i]->trace)
			return 0;
	return cli->trace ? cli_fail(cli, CLI_USAGE,
				     "--trace: none of these experiments replays the process trace "
				     "(CSD and CSD-PM do)")
			  : 0;
}

/* --- running them ---------------------------------------------------------------- */

/* Finds the process trace, if there is one: --trace, else in $IOCOM_TRACES. */
static int find_trace(struct cli *cli, char **path)
{
	const char *directory = getenv("IOCOM_TRACES");

	*path = NULL;
	if (cli->trace)
		*path = strdup(cli->trace);
	else if (directory && *directory && asprintf(path, "%s/CSD-trace.csv.gz", directory) < 0)
		*path = NULL;
	if (!cli->trace && (!directory || !*directory))
		return 0;
	if (!*path)
		return -1;
	return 0;
}

static int make_report(struct cli *cli, const struct experiment *e, const char *trace,
		       struct report *r)
{
	struct iocom_err err = {0};

	*r = (struct report){
		.sweep = experiment_sweep(e, cli->seeds ? cli->seeds : SEEDS, trace, &cli->set,
					  &err),
		.experiment = e,
		.plot = e->plot,
		.y = e->y,
		.log_y = e->log_y,
		.facets = e->facets,
	};
	if (!r->sweep)
		return cli_fail(cli, CLI_USAGE, "%s: %s", e->id, err.text);
	r->sweep->first_seed = cli->seed;
	return 0;
}

static int run_chosen(struct cli *cli, const struct chosen *c, bool page)
{
	struct report *reports = calloc(c->n ? c->n : 1, sizeof(*reports));
	char *trace;
	int ret;

	if (!reports || find_trace(cli, &trace)) {
		free(reports);
		return cli_fail(cli, CLI_FAILED, "no memory");
	}
	ret = 0;
	for (size_t i = 0; i < c->n && !ret; i++)
		ret = make_report(cli, c->list[i], trace, &reports[i]);
	if (!ret)
		ret = cli_execute(cli, reports, c->n, page);
	for (size_t i = 0; i < c->n; i++) {
		sweep_free(reports[i].sweep);
		report_free(&reports[i]);
	}
	free(reports);
	free(trace);
	return ret;
}

static int experiments(int argc, char **argv, bool page, const volatile sig_atomic_t *cancel)
{
	struct cli cli = {.command = page ? "iocom-sim figures" : "iocom-sim", .cancel = cancel};
	struct chosen chosen = {0};
	int first, ret;

	ret = cli_parse(&cli, argc, argv,
			CLI_TAKES_SWEEP | CLI_TAKES_OUT | CLI_TAKES_FORCE | CLI_TAKES_TRACE |
				CLI_TAKES_DECIDE,
			help, &first);
	if (!ret && (cli.decide_runs || cli.decide_s > 0) && cli.shards)
		ret = cli_fail(&cli, CLI_USAGE,
			       "--decide needs all results, not those of one shard");
	if (!ret && !page && first == argc)
		ret = cli_fail(&cli, CLI_USAGE, "no experiment given");
	if (!ret)
		ret = first == argc ? choose_all(&cli, &chosen)
				    : choose_ids(&cli, &chosen, argv + first, page);
	if (!ret)
		ret = check_trace(&cli, &chosen);
	if (!ret)
		ret = run_chosen(&cli, &chosen, page);
	free(chosen.list);
	cli_free(&cli);
	return ret < 0 ? CLI_OK : ret;
}

int cmd_experiment(int argc, char **argv, const volatile sig_atomic_t *cancel)
{
	return experiments(argc, argv, false, cancel);
}

int cmd_figures(int argc, char **argv, const volatile sig_atomic_t *cancel)
{
	return experiments(argc, argv, true, cancel);
}

/* --- the list -------------------------------------------------------------------- */

static const char list_help[] = "usage: iocom-sim --list [--json]\n"
				"Lists the experiments, the presets of workloads, the machines and "
				"the policies.\n";

static void list_ids(void)
{
	const struct experiment *e;

	printf("%-12s %-7s %s\n", "ID", "PAPER", "TITLE");
	for (size_t i = 0; (e = experiment_at(i)); i++)
		printf("%-12s %-7s %s%s%s%s\n", e->id, e->paper, e->title, e->none ? " (" : "",
		       e->none ? e->none : "", e->none ? ")" : "");
}

static void list_names(void)
{
	const char *name;

	printf("\npolicies (\"feedback+P\" is P with the feedback controller):\n");
	for (unsigned int i = 0; i < RULES_POLICIES; i++)
		printf("  %-13s %s\n", rules_policy_name((enum rules_policy)i),
		       rules_policy_summary((enum rules_policy)i));
	printf("\nmachines (--nodes COUNTxMACHINE[:field=value,...][+...]):\n ");
	for (unsigned int i = 0; (name = sim_machine_name(i)); i++)
		printf(" %s", name);
	printf("\n\nworkloads (--workload gen:PRESET[,key=value...]):\n");
	for (unsigned int i = 0;; i++) {
		const char *text;

		name = preset_name(i, &text);
		if (!name)
			break;
		printf("  %-15s %s\n", name, text);
	}
}

static int list_json(void)
{
	json_t *out = json_array();
	const struct experiment *e;
	int ret;

	for (size_t i = 0; (e = experiment_at(i)); i++) {
		json_t *one = json_pack("{s:s, s:s, s:s, s:b}", "id", e->id, "paper", e->paper,
					"title", e->title, "experiment", e->none == NULL);

		if (e->none)
			json_object_set_new(one, "instead", json_string(e->none));
		json_array_append_new(out, one);
	}
	ret = json_dumpf(out, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(out);
	return ret ? CLI_FAILED : CLI_OK;
}

int cmd_list(int argc, char **argv, const volatile sig_atomic_t *cancel)
{
	struct cli cli = {.command = "iocom-sim --list", .cancel = cancel};
	int first, ret = cli_parse(&cli, argc, argv, CLI_TAKES_OUT, list_help, &first);

	if (ret)
		return ret < 0 ? CLI_OK : ret;
	if (first < argc)
		return cli_fail(&cli, CLI_USAGE, "unexpected '%s'", argv[first]);
	if (cli.json)
		return list_json();
	list_ids();
	list_names();
	return fflush(stdout) ? CLI_FAILED : CLI_OK;
}
