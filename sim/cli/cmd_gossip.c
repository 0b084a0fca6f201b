/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom-sim gossip` calculates how fresh what nodes know is in clusters of up to thousands. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/gossip_cells.h"
#include "sim/report/progress.h"

#define SIZES_MAX 16
#define SEEDS_MAX 100

static const char help[] =
	"usage: iocom-sim gossip [OPTION...]\n"
	"Calculates, with the agents' own rules of who hears whom and who tells of whom,\n"
	"how old what nodes know of each other is in a large cluster, and what the\n"
	"bulletins cost: in a steady cluster, when nodes die, when it is cut in two and\n"
	"joined again, and when a part of its nodes stops and starts again and again.\n"
	"\n"
	"  --nodes N,N,...       sizes of the cluster, up to 16384 [1000]\n"
	"  --scenario A,B,...    steady, dead, cut, flap [all]\n"
	"  --plan A,B            slices: the agents' plan; freshest, to compare: each\n"
	"                        node hears --hear others, drawn, and tells of its\n"
	"                        --relay freshest [slices]\n"
	"  --periods P           periods that are measured [60]\n"
	"  --seeds N             runs of each; the table shows medians and the worst [1]\n"
	"  --seed S              the first seed [1]\n"
	"  --dead PART           (dead) the part of the nodes that stops [0.01]\n"
	"  --cut P               (cut) periods for which the halves are parted [30]\n"
	"  --flapping PART       (flap) the part of the nodes that flaps [0.1]\n"
	"  --up P, --down P      (flap) periods for which these run and stop, means\n"
	"                        [20, 10]\n"
	"  --silent P            a node counts as gone after so many periods [3]\n"
	"  --peers N             nodes that are configured as peers at each [3]\n"
	"  --vector-bytes B      size of what a bulletin tells of one node [225]\n"
	"  --hear N              (freshest) nodes that a node hears [8]\n"
	"  --relay N             (freshest) nodes that a bulletin tells of [255]\n"
	"  --json                JSON on standard output\n"
	"\n"
	"A period is the agents' setting of that name, 1 s by default; a PART is from 0\n"
	"to 0.9.  10,000 nodes take minutes on one core, and 0.7 GB.\n"
	"exit: 0 done, 1 failed or interrupted, 2 usage\n";

enum gossip_option {
	GOSSIP_OPT_NODES = 256,
	GOSSIP_OPT_SCENARIO,
	GOSSIP_OPT_PLAN,
	GOSSIP_OPT_SEEDS,
	GOSSIP_OPT_SEED,
	GOSSIP_OPT_JSON,
	GOSSIP_OPT_NUMBERS, /* and those after it: rows of gossip_numbers */
};

#define GOSSIP_NUMBERS_MAX 16 /* rows of gossip_numbers at most */

/* What is asked for. */
struct gossip_ask {
	struct cli cli;
	struct gossip_setup setup;
	uint32_t nodes[SIZES_MAX];
	size_t nnodes;
	bool scenarios[GOSSIP_SCENARIOS], plans[GOSSIP_PLANS];
	bool some_scenarios, some_plans; /* some were named */
	bool given[GOSSIP_NUMBERS_MAX];	 /* numbers that were given, by their row */
	struct progress progress;
	size_t done, total; /* runs */
};

#define ANY -1

/* Options that are numbers: those with WHOLE go to an uint32_t of the setup, others to a double. */
static const struct gossip_number {
	const char *name;
	size_t offset;
	bool whole;
	double least, most;
	int scenario, plan; /* the one that reads it; ANY: all do */
} gossip_numbers[] = {
	{"periods", offsetof(struct gossip_setup, periods), true, 1, GOSSIP_RUN_PERIODS_MAX, ANY,
	 ANY},
	{"dead", offsetof(struct gossip_setup, dead), false, 0, 0.9, GOSSIP_DEAD, ANY},
	{"cut", offsetof(struct gossip_setup, cut), true, 1, GOSSIP_RUN_PERIODS_MAX, GOSSIP_CUT,
	 ANY},
	{"flapping", offsetof(struct gossip_setup, flapping), false, 0, 0.9, GOSSIP_FLAP, ANY},
	{"up", offsetof(struct gossip_setup, up), false, 1, GOSSIP_RUN_PERIODS_MAX, GOSSIP_FLAP,
	 ANY},
	{"down", offsetof(struct gossip_setup, down), false, 1, GOSSIP_RUN_PERIODS_MAX, GOSSIP_FLAP,
	 ANY},
	{"silent", offsetof(struct gossip_setup, silent), true, 1, GOSSIP_RUN_SILENT_MAX, ANY, ANY},
	{"peers", offsetof(struct gossip_setup, peers), true, 1, 64, ANY, ANY},
	{"vector-bytes", offsetof(struct gossip_setup, vector_bytes), true, 1, 65536, ANY, ANY},
	{"hear", offsetof(struct gossip_setup, hear), true, 1, GOSSIP_RUN_NODES_MAX, ANY,
	 GOSSIP_FRESHEST},
	{"relay", offsetof(struct gossip_setup, relay), true, 0, GOSSIP_RUN_NODES_MAX, ANY,
	 GOSSIP_FRESHEST},
};

#define NUMBERS (sizeof(gossip_numbers) / sizeof(gossip_numbers[0]))
_Static_assert(NUMBERS <= GOSSIP_NUMBERS_MAX, "struct gossip_ask has no room");

static const struct option gossip_words[] = {
	{"help", no_argument, NULL, 'h'},
	{"nodes", required_argument, NULL, GOSSIP_OPT_NODES},
	{"scenario", required_argument, NULL, GOSSIP_OPT_SCENARIO},
	{"plan", required_argument, NULL, GOSSIP_OPT_PLAN},
	{"seeds", required_argument, NULL, GOSSIP_OPT_SEEDS},
	{"seed", required_argument, NULL, GOSSIP_OPT_SEED},
	{"json", no_argument, NULL, GOSSIP_OPT_JSON},
};

#define WORDS (sizeof(gossip_words) / sizeof(gossip_words[0]))

/* --- options ---------------------------------------------------------------------------- */

static int gossip_take_number(struct gossip_ask *ask, const struct gossip_number *number,
			      const char *text)
{
	char *at = (char *)&ask->setup + number->offset;
	uint64_t whole = 0;
	char *end;
	double value;

	ask->given[number - gossip_numbers] = true;
	if (number->whole) {
		int ret = cli_whole(&ask->cli, number->name, text, (uint64_t)number->least,
				    (uint64_t)number->most, &whole);

		uint32_t few = (uint32_t)whole;

		if (!ret)
			memcpy(at, &few, sizeof(few));
		return ret;
	}
	errno = 0;
	value = strtod(text, &end);
	if (*text < '.' || *text > '9' || *end || errno || !(value >= number->least) ||
	    !(value <= number->most))
		return cli_fail(&ask->cli, CLI_USAGE,
				"--%s: expected a number from %g to %g, found '%s'", number->name,
				number->least, number->most, text);
	memcpy(at, &value, sizeof(value));
	return 0;
}

/* Takes the words of TEXT, each of which must be one of N that NAME gives. */
static int gossip_take_names(struct gossip_ask *ask, const char *option, const char *text,
			     const char *(*name)(unsigned), unsigned n, bool *taken)
{
	char known[64] = "";

	for (unsigned i = 0; i < n; i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 i ? i + 1 < n ? ", " : " or " : "", name(i));
	for (;;) {
		size_t length = strcspn(text, ",");
		unsigned i = 0;

		while (i < n && (strncmp(name(i), text, length) || name(i)[length]))
			i++;
		if (i == n)
			return cli_fail(&ask->cli, CLI_USAGE, "--%s: expected %s, found '%.*s'",
					option, known, (int)length, text);
		taken[i] = true;
		if (!text[length])
			return 0;
		text += length + 1;
	}
}

static const char *gossip_scenario_at(unsigned i)
{
	return gossip_scenario_name((enum gossip_scenario)i);
}

static const char *gossip_plan_at(unsigned i)
{
	return gossip_plans_name((enum gossip_plans)i);
}

static int gossip_take_nodes(struct gossip_ask *ask, const char *list)
{
	char *copy = strdup(list), *next = copy;
	int ret = copy ? 0 : cli_fail(&ask->cli, CLI_FAILED, "no memory");

	ask->nnodes = 0;
	while (next && !ret) {
		char *text = strsep(&next, ",");
		uint64_t n = 0;

		if (ask->nnodes == SIZES_MAX)
			ret = cli_fail(&ask->cli, CLI_USAGE, "--nodes: at most %d sizes",
				       SIZES_MAX);
		else
			ret = cli_whole(&ask->cli, "nodes", text, 2, GOSSIP_RUN_NODES_MAX, &n);
		if (!ret)
			ask->nodes[ask->nnodes++] = (uint32_t)n;
	}
	free(copy);
	return ret;
}

static int gossip_take(struct gossip_ask *ask, int id, const char *value)
{
	uint64_t n = 0;
	int ret;

	switch (id) {
	case GOSSIP_OPT_NODES:
		return gossip_take_nodes(ask, value);
	case GOSSIP_OPT_SCENARIO:
		ask->some_scenarios = true;
		return gossip_take_names(ask, "scenario", value, gossip_scenario_at,
					 GOSSIP_SCENARIOS, ask->scenarios);
	case GOSSIP_OPT_PLAN:
		ask->some_plans = true;
		return gossip_take_names(ask, "plan", value, gossip_plan_at, GOSSIP_PLANS,
					 ask->plans);
	case GOSSIP_OPT_SEEDS:
		ret = cli_whole(&ask->cli, "seeds", value, 1, SEEDS_MAX, &n);
		ask->cli.seeds = (uint32_t)n;
		return ret;
	case GOSSIP_OPT_SEED:
		return cli_whole(&ask->cli, "seed", value, 0, CLI_SEED_MAX, &ask->cli.seed);
	case GOSSIP_OPT_JSON:
		ask->cli.json = true;
		return 0;
	default:
		return gossip_take_number(ask, &gossip_numbers[id - GOSSIP_OPT_NUMBERS], value);
	}
}

static void gossip_ask_init(struct gossip_ask *ask, const volatile sig_atomic_t *cancel)
{
	*ask = (struct gossip_ask){
		.cli = {.command = "iocom-sim gossip", .seed = 1, .seeds = 1, .cancel = cancel},
		.nodes = {1000},
		.nnodes = 1,
	};
	gossip_setup_init(&ask->setup);
	ask->setup.cancel = cancel;
}

/* Refuses numbers that none of the scenarios or plans reads. */
static int gossip_check_effect(const struct gossip_ask *ask)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		const struct gossip_number *n = &gossip_numbers[i];

		if (!ask->given[i])
			continue;
		if (n->scenario != ANY && !ask->scenarios[n->scenario])
			return cli_fail(&ask->cli, CLI_USAGE,
					"--%s has no effect here: only the scenario %s reads it",
					n->name, gossip_scenario_name(n->scenario));
		if (n->plan != ANY && !ask->plans[n->plan])
			return cli_fail(&ask->cli, CLI_USAGE,
					"--%s has no effect here: only the plan %s reads it",
					n->name, gossip_plans_name(n->plan));
	}
	return 0;
}

/* Returns 0; CLI_USAGE or CLI_FAILED: the reason was printed; -1: the help was. */
static int gossip_parse(struct gossip_ask *ask, int argc, char **argv)
{
	struct option options[WORDS + NUMBERS + 1] = {0};
	int id, ret = 0;

	memcpy(options, gossip_words, sizeof(gossip_words));
	for (size_t i = 0; i < NUMBERS; i++)
		options[WORDS + i] = (struct option){gossip_numbers[i].name, required_argument,
						     NULL, GOSSIP_OPT_NUMBERS + (int)i};
	optind = 1;
	opterr = 0;
	while (!ret && (id = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (id == 'h') {
			fputs(help, stdout);
			return -1;
		}
		ret = id == ':' || id == '?' ? cli_bad_option(&ask->cli, id, options, argv)
					     : gossip_take(ask, id, optarg);
	}
	if (!ret && optind < argc)
		ret = cli_fail(&ask->cli, CLI_USAGE, "unexpected '%s'", argv[optind]);
	for (int i = 0; i < GOSSIP_SCENARIOS && !ask->some_scenarios; i++)
		ask->scenarios[i] = true;
	ask->plans[GOSSIP_SLICED] = ask->plans[GOSSIP_SLICED] || !ask->some_plans;
	return ret ? ret : gossip_check_effect(ask);
}

/* --- the runs --------------------------------------------------------------------------- */

static void gossip_show(void *arg, double part)
{
	struct gossip_ask *ask = arg;

	progress_show(&ask->progress, (double)ask->done + part, ask->total);
}

/* Finds what cannot be calculated before anything is. */
static int gossip_check_cells(const struct gossip_ask *ask, const struct gossip_cells *all)
{
	struct gossip_setup setup = ask->setup;
	struct iocom_err err = {0};

	for (size_t i = 0; i < all->n; i++) {
		setup.nodes = all->cells[i].nodes;
		if (gossip_setup_check(&setup, all->cells[i].scenario, &err))
			return cli_fail(&ask->cli, CLI_USAGE, "%s", err.text);
	}
	return 0;
}

static int gossip_run_cell(struct gossip_ask *ask, struct gossip_cell *cell)
{
	struct gossip_setup setup = ask->setup;
	struct iocom_err err = {0};

	setup.nodes = cell->nodes;
	setup.plan = cell->plan;
	cell->results = calloc(ask->cli.seeds, sizeof(*cell->results));
	if (!cell->results)
		return cli_fail(&ask->cli, CLI_FAILED, "no memory");
	for (uint32_t i = 0; i < ask->cli.seeds; i++) {
		int rc;

		setup.seed = ask->cli.seed + i;
		rc = gossip_run(&setup, cell->scenario, &cell->results[i], &err);
		if (rc) {
			progress_end(&ask->progress);
			return cli_fail(&ask->cli, CLI_FAILED, "%s", err.text);
		}
		ask->done++;
	}
	return 0;
}

static int gossip_run_cells(struct gossip_ask *ask, struct gossip_cells *all)
{
	int ret = 0;

	ask->total = all->n * ask->cli.seeds;
	ask->setup.progress = gossip_show;
	ask->setup.arg = ask;
	progress_begin(&ask->progress, "gossip");
	for (size_t i = 0; i < all->n && !ret; i++)
		ret = gossip_run_cell(ask, &all->cells[i]);
	if (!ret)
		progress_end(&ask->progress);
	return ret;
}

static int gossip_deliver(const struct gossip_ask *ask, const struct gossip_cells *all)
{
	int rc = 0;

	if (ask->cli.json) {
		json_t *out = gossip_cells_json(all);

		rc = out ? json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : -1;
		json_decref(out);
		putchar('\n');
	} else {
		rc = gossip_cells_print(all);
	}
	if (rc || fflush(stdout))
		return cli_fail(&ask->cli, CLI_FAILED, "cannot write the output");
	return CLI_OK;
}

/* Makes the cells that are asked for, checks each, runs and prints them. */
static int gossip_calculate(struct gossip_ask *ask)
{
	struct gossip_cell cells[SIZES_MAX * GOSSIP_PLANS * GOSSIP_SCENARIOS] = {0};
	struct gossip_cells all = {
		.cli = &ask->cli, .setup = &ask->setup, .cells = cells, .seeds = ask->cli.seeds};
	int ret = 0;

	for (size_t i = 0; i < ask->nnodes; i++)
		for (int p = 0; p < GOSSIP_PLANS; p++)
			for (int s = 0; s < GOSSIP_SCENARIOS; s++)
				if (ask->plans[p] && ask->scenarios[s])
					cells[all.n++] = (struct gossip_cell){
						.nodes = ask->nodes[i],
						.plan = (enum gossip_plans)p,
						.scenario = (enum gossip_scenario)s};
	ret = gossip_check_cells(ask, &all);
	if (!ret)
		ret = gossip_run_cells(ask, &all);
	if (!ret && gossip_cells_sum_up(&all))
		ret = cli_fail(&ask->cli, CLI_FAILED, "no memory");
	if (!ret)
		ret = gossip_deliver(ask, &all);
	for (size_t i = 0; i < all.n; i++)
		free(cells[i].results);
	return ret;
}

int cmd_gossip(int argc, char **argv, const volatile sig_atomic_t *cancel)
{
	struct gossip_ask ask;
	int ret;

	gossip_ask_init(&ask, cancel);
	ret = gossip_parse(&ask, argc, argv);
	if (!ret)
		ret = gossip_calculate(&ask);
	return ret < 0 ? CLI_OK : ret;
}
