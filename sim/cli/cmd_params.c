/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom-sim params` lists every parameter with its value, unit and source. */
#include <stdio.h>

#include "sim/cli/cli.h"
#include "sim/experiments/scenario.h"

static const char help[] =
	"usage: iocom-sim params [--set NAME=VALUE]... [--json]\n"
	"Lists what --set and --sweep can change: each parameter with its value, unit and\n"
	"source, an entry of the model in share/doc/iocom/model.md: 5.1 is a section, O-15 what\n"
	"the papers leave open, E-4 a misprint, reading 2 a choice of the simulator.\n";

static void print_fields(const char *title, const char *prefix, const char *(*field)(unsigned int))
{
	const char *name;

	printf("\n%s\n ", title);
	for (unsigned int i = 0; (name = field(i)); i++)
		printf(" %s%s", prefix, name);
	putchar('\n');
}

static void cmd_params_print(const struct sim_params *p)
{
	const char *name;
	double value;

	printf("%-24s %10s  %-12s %s\n", "PARAMETER", "VALUE", "UNIT", "SOURCE");
	for (unsigned int i = 0; (name = sim_params_get(p, i, &value)); i++) {
		const char *unit = "", *source = "";

		param_describe(name, &unit, &source);
		printf("%-24s %10g  %-12s %s\n", name, value, unit, source);
	}
	print_fields("fields of all machines (`iocom-sim --list` names the machines):", "nodes.",
		     scenario_machine_field);
	print_fields("options of a generated workload: load.KEY with the keys of gen:PRESET; of a "
		     "trace:",
		     "load.", scenario_option_field);
}

static int cmd_params_print_json(const struct sim_params *p)
{
	json_t *out = json_array();
	const char *name;
	double value;
	int ret;

	for (unsigned int i = 0; (name = sim_params_get(p, i, &value)); i++) {
		const char *unit = "", *source = "";

		param_describe(name, &unit, &source);
		json_array_append_new(out, json_pack("{s:s, s:f, s:s, s:s}", "name", name, "value",
						     value, "unit", unit, "source", source));
	}
	ret = json_dumpf(out, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(out);
	return ret ? CLI_FAILED : CLI_OK;
}

/* Applies --set to parameters only, because this command has no cluster and no workload. */
static int cmd_params_apply(const struct cli *cli, struct sim_params *p)
{
	struct settings all = {0};
	struct scenario s;
	struct iocom_err err = {0};
	int ret = settings_set(&all, "nodes", "1xfc") ?: settings_set(&all, "workload", "gen:fc");

	if (!ret)
		ret = settings_merge(&all, &cli->set);
	if (!ret)
		ret = scenario_open(&s, &all, &err);
	settings_free(&all);
	if (ret)
		return cli_fail(cli, CLI_USAGE, "--set: %s", err.text);
	*p = s.params;
	scenario_close(&s);
	return 0;
}

int cmd_params(int argc, char **argv, const volatile sig_atomic_t *cancel)
{
	struct cli cli = {.command = "iocom-sim params", .cancel = cancel};
	struct sim_params params;
	int first, ret = cli_parse(&cli, argc, argv, CLI_TAKES_SET | CLI_TAKES_OUT, help, &first);

	if (!ret && first < argc)
		ret = cli_fail(&cli, CLI_USAGE, "unexpected '%s'", argv[first]);
	if (!ret)
		ret = cmd_params_apply(&cli, &params);
	if (!ret && cli.json)
		ret = cmd_params_print_json(&params);
	else if (!ret)
		cmd_params_print(&params);
	cli_free(&cli);
	if (ret > 0)
		return ret;
	return fflush(stdout) ? CLI_FAILED : CLI_OK;
}
