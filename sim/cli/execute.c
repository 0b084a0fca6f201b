/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Runs, judges, prints and writes, for experiments and for runs from the command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/cli.h"
#include "sim/experiments/effect.h"
#include "sim/experiments/probe_run.h"
#include "sim/experiments/recorded_run.h"
#include "sim/experiments/runner.h"
#include "sim/experiments/scenario.h"
#include "sim/report/page.h"
#include "sim/report/part.h"
#include "sim/report/progress.h"

#define NAME_BYTES 256

static int check_probe(const struct cli *cli, const struct scenario *scenario)
{
	struct iocom_err err = {0};
	char words[256];

	if (probe_describe(scenario, words, sizeof(words), &err))
		return cli_fail(cli, CLI_USAGE, "%s", err.text);
	return 0;
}

static int check_unit(const struct cli *cli, const struct sweep *s, size_t unit)
{
	struct iocom_err err = {0};
	struct settings all;
	struct scenario scenario;
	struct workload *w;
	bool generated;

	if (sweep_unit_settings(s, unit, &all))
		return cli_fail(cli, CLI_FAILED, "no memory");
	if (scenario_open(&scenario, &all, &err)) {
		settings_free(&all);
		return cli_fail(cli, CLI_USAGE, "%s", err.text);
	}
	settings_free(&all);
	if (scenario_is_probe(&scenario)) {
		int ret = check_probe(cli, &scenario);

		scenario_close(&scenario);
		return ret;
	}
	generated = !strncmp(scenario.workload, "gen:", 4) && !strstr(scenario.workload, ",trace=");
	w = !strncmp(scenario.workload, "gen:", 4) || unit == 0
		    ? scenario_workload(&scenario, sweep_unit_seed(s, unit), &err)
		    : NULL;
	workload_free(w);
	scenario_close(&scenario);
	if (!w && err.text[0])
		return cli_fail(cli, generated ? CLI_USAGE : CLI_FAILED, "%s", err.text);
	return 0;
}

int cli_check(const struct cli *cli, const struct sweep *s)
{
	for (size_t i = 0; i < s->nseries; i++) {
		enum rules_policy policy;
		bool feedback;

		if (s->keep_outcomes && recorded_is(s->series[i].policy))
			continue;
		if (rules_policy_parse_feedback(s->series[i].policy, &policy, &feedback))
			return cli_fail(cli, CLI_USAGE,
					"there is no policy '%s'; `iocom-sim --list` names them",
					s->series[i].policy);
	}
	for (size_t u = 0; u < sweep_units(s); u += s->seeds) {
		int ret = check_unit(cli, s, u);

		if (ret)
			return ret;
	}
	return 0;
}

int cli_check_effect(const struct cli *cli, struct sweep *const *sweeps, size_t n)
{
	struct iocom_err err = {0};
	int ret = effect_check(sweeps, n, &cli->set, cli->nsweeps > 0, &err);

	if (ret == -EINVAL)
		return cli_fail(cli, CLI_USAGE, "%s", err.text);
	return ret ? cli_fail(cli, CLI_FAILED, "%s", err.text[0] ? err.text : strerror(-ret)) : 0;
}

/* A time series that was asked for is kept: ID.samples.csv. */
static void keep_series(const struct cli *cli, struct sweep *const *sweeps, size_t n)
{
	const char *period = settings_get(&cli->set, "sample_ms");

	for (size_t i = 0; i < n && period && atof(period) > 0; i++)
		sweeps[i]->keep_samples = true;
}

int cli_add_policies(const struct cli *cli, struct sweep *s, const char *policies)
{
	char *copy = strdup(policies), *save = NULL;
	bool any = false;
	int ret = copy ? 0 : cli_fail(cli, CLI_FAILED, "no memory");

	for (char *p = copy ? strtok_r(copy, ",", &save) : NULL; p && !ret;
	     p = strtok_r(NULL, ",", &save)) {
		any = true;
		if (s->batch && recorded_is(p) && sweep_find_series(s, p) >= 0)
			continue; /* it is there in any case */
		if (sweep_find_series(s, p) >= 0)
			ret = cli_fail(cli, CLI_USAGE, "--policy: %s is given twice", p);
		else if (s->batch && !strcmp(p, "bs-fcfs")
				 ? sweep_add_series(s, p, "bs", "bs_backfill=0", NULL)
				 : sweep_add_series(s, p, p, NULL, NULL))
			ret = cli_fail(cli, CLI_FAILED, "no memory");
	}
	free(copy);
	if (!ret && !any)
		ret = cli_fail(cli, CLI_USAGE, "--policy: expected A,B,..., found '%s'", policies);
	return ret;
}

static void execute_show(void *arg, double done, size_t total)
{
	progress_show(arg, done, total);
}

static const char *directory_of(const struct cli *cli)
{
	return cli->out ? cli->out : ".";
}

static bool execute_cancelled(const struct cli *cli)
{
	return cli->cancel && *cli->cancel;
}

/* --- one shard ------------------------------------------------------------------- */

static void part_name(const struct cli *cli, const struct report *reports, size_t n, bool page,
		      char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%s.part-%u-of-%u.jsonl",
		 page	  ? "figures"
		 : n == 1 ? reports[0].sweep->id
			  : "experiments",
		 cli->shard, cli->shards);
}

static int write_part(struct cli *cli, const struct report *reports, size_t n, bool page)
{
	struct iocom_err err = {0};
	const char *directory = directory_of(cli);
	struct output *o = output_open(directory, cli->force, &err);
	char name[NAME_BYTES];
	FILE *f;

	if (!o)
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	part_name(cli, reports, n, page, name);
	f = output_file(o, name, &err);
	if (f && part_write(f, reports, n, page, cli->shard, cli->shards))
		iocom_err_set(&err, -ENOMEM, "no memory for the part");
	if (!f || output_close(o, f, &err) || err.text[0]) {
		output_drop(o);
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	}
	if (output_commit(o, &err))
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	fprintf(stderr, "%s/%s written; join all parts with `iocom-sim merge DIR PART...`\n",
		directory, name);
	return CLI_OK;
}

/* --- outputs --------------------------------------------------------------------- */

int cli_judge(struct report *reports, size_t n)
{
	const struct sweep **all = calloc(n ? n : 1, sizeof(*all));
	int ret = all ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !ret; i++)
		all[i] = reports[i].sweep;
	for (size_t i = 0; i < n && !ret; i++) {
		struct claim_context context = {reports[i].sweep, all, n, 0};

		ret = report_judge(&reports[i], &context);
	}
	free(all);
	return ret;
}

static int execute_print_json(const struct report *reports, size_t n)
{
	json_t *out = n == 1 ? report_json(&reports[0]) : json_array();
	int ret;

	for (size_t i = 0; i < n && n != 1; i++)
		json_array_append_new(out, report_json(&reports[i]));
	if (!out)
		return -ENOMEM;
	ret = json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(out);
	return ret || fflush(stdout) ? -EIO : 0;
}

static int write_page(struct cli *cli, const struct report *reports, size_t n, double seconds,
		      struct output *o, struct iocom_err *err)
{
	char *settings = settings_text(&cli->set);
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct page page = {
		.reports = reports,
		.n = n,
		.seconds = seconds,
		.cores = cli->jobs ? cli->jobs : (unsigned int)(cores > 0 ? cores : 1),
		.settings = settings,
	};
	FILE *f = output_file(o, "index.html", err);
	int ret;

	if (!f) {
		free(settings);
		return -EIO;
	}
	ret = page_write(&page, o, f);
	free(settings);
	if (ret)
		iocom_err_set(err, ret, "no memory for the page");
	return output_close(o, f, ret ? NULL : err) ?: ret;
}

/* Writes all files; *FIGURES is false when gnuplot is missing. */
static int write_files(struct cli *cli, const struct report *reports, size_t n, bool page,
		       double seconds, bool *figures)
{
	struct iocom_err err = {0}, note = {0};
	struct output *o = output_open(directory_of(cli), cli->force, &err);
	int ret = o ? 0 : -EIO;

	for (size_t i = 0; i < n && ret >= 0 && o; i++) {
		ret = report_write(&reports[i], o, &err);
		if (ret == 1)
			note = err;
		if (execute_cancelled(cli))
			ret = iocom_err_set(&err, -ECANCELED, "interrupted; nothing was written");
	}
	if (ret >= 0 && page)
		ret = write_page(cli, reports, n, seconds, o, &err);
	if (ret < 0) {
		output_drop(o);
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	}
	if (output_commit(o, &err))
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	*figures = !note.text[0];
	if (note.text[0])
		fprintf(stderr, "%s: %s\n", cli->command, note.text);
	return CLI_OK;
}

static void tell_files(const struct cli *cli, const struct report *reports, size_t n, bool page,
		       bool figures)
{
	const char *svg = figures ? ", .svg" : "";
	const char *directory = directory_of(cli);

	if (page)
		printf("%s/index.html: all figures and claims\n", directory);
	else if (n == 1)
		printf("\nwritten: %s/%s.csv, .json%s%s%s\n", directory, reports[0].sweep->id, svg,
		       reports[0].sweep->keep_outcomes ? ", .groups.csv" : "",
		       !reports[0].sweep->keep_samples ? ""
		       : figures && reports[0].plot != PLOT_SERIES
			       ? ", .samples.csv, .utilisation.svg"
			       : ", .samples.csv");
	else
		printf("\nwritten: %zu figures (.csv, .json%s) in %s\n", n, svg, directory);
}

/* Prints for each id how many of its claims have which verdict; those that calibrate count apart.
 */
static void tell_claims(const struct report *reports, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned int count[VERDICTS] = {0}, calibrate = 0;

		for (size_t k = 0; k < reports[i].njudged; k++) {
			if (reports[i].judged[k].claim->calibrates)
				calibrate++;
			else
				count[reports[i].judged[k].judgement.verdict]++;
		}
		printf("%-12s", reports[i].sweep->id);
		for (int v = 0; v < VERDICTS; v++)
			printf("%s %2u %s", v ? "," : "", count[v], verdict_name(v));
		if (calibrate)
			printf(", %2u calibrating", calibrate);
		putchar('\n');
	}
}

static bool writes_files(const struct cli *cli, bool page)
{
	return !cli->json || cli->out || page || cli->shards;
}

/* Finds files that are there already before hours of runs. */
static int files_free(const struct cli *cli, const struct report *reports, size_t n, bool page,
		      struct iocom_err *err)
{
	static const char *const suffixes[] = {".csv",	      ".json",	      ".svg",
					       REPORT_GROUPS, REPORT_SAMPLES, REPORT_USE};
	const char *directory = directory_of(cli);
	char name[NAME_BYTES];
	int ret = output_try(directory, err);

	if (!ret && cli->shards) {
		part_name(cli, reports, n, page, name);
		return output_may_write(directory, name, cli->force, err);
	}
	if (!ret && page)
		ret = output_may_write(directory, "index.html", cli->force, err);
	for (size_t i = 0; !ret && i < n; i++)
		/* Only a replay has the last ones. */
		for (size_t k = 0; !ret && k < (reports[i].sweep->keep_outcomes ? 6 : 3); k++) {
			snprintf(name, sizeof(name), "%s%s", reports[i].sweep->id, suffixes[k]);
			ret = output_may_write(directory, name, cli->force, err);
		}
	return ret;
}

int cli_deliver(struct cli *cli, struct report *reports, size_t n, bool page, double seconds)
{
	bool figures = false;

	if (writes_files(cli, page)) {
		int ret = write_files(cli, reports, n, page, seconds, &figures);

		if (ret)
			return ret;
	}
	if (cli->json)
		return execute_print_json(reports, n)
			       ? cli_fail(cli, CLI_FAILED, "cannot write the output")
			       : CLI_OK;
	if (page)
		tell_claims(reports, n);
	for (size_t i = 0; i < n && !page; i++) {
		if (i)
			putchar('\n');
		if (report_text(&reports[i], stdout))
			return cli_fail(cli, CLI_FAILED, "no memory for the table");
	}
	tell_files(cli, reports, n, page, figures);
	return fflush(stdout) ? cli_fail(cli, CLI_FAILED, "cannot write the output") : CLI_OK;
}

int cli_execute(struct cli *cli, struct report *reports, size_t n, bool page)
{
	struct iocom_err err = {0};
	struct progress progress;
	struct runner_options options = {
		.jobs = cli->jobs,
		.shard = cli->shard,
		.shards = cli->shards,
		.cancel = cli->cancel,
		.progress = execute_show,
		.arg = &progress,
	};
	struct sweep **sweeps = calloc(n ? n : 1, sizeof(*sweeps));
	int ret = 0;

	if (!sweeps)
		return cli_fail(cli, CLI_FAILED, "no memory");
	for (size_t i = 0; i < n; i++)
		sweeps[i] = reports[i].sweep;
	keep_series(cli, sweeps, n);
	for (size_t i = 0; i < n && !ret; i++)
		ret = cli_check(cli, sweeps[i]);
	if (!ret)
		ret = cli_check_effect(cli, sweeps, n);
	/* Fail now rather than after hours. */
	if (!ret && writes_files(cli, page) && files_free(cli, reports, n, page, &err))
		ret = cli_fail(cli, CLI_FAILED, "%s", err.text);
	if (ret) {
		free(sweeps);
		return ret;
	}
	progress_begin(&progress, n == 1 ? sweeps[0]->id : "experiments");
	ret = runner_run(sweeps, n, &options, &err);
	progress_end(&progress);
	free(sweeps);
	if (ret == -ECANCELED)
		return cli_fail(cli, CLI_FAILED, "interrupted; nothing was written");
	if (ret)
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	if (cli->shards)
		return write_part(cli, reports, n, page);
	if (cli_judge(reports, n))
		return cli_fail(cli, CLI_FAILED, "no memory");
	if (cli_decide(cli, reports, n, &options, &err))
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	return cli_deliver(cli, reports, n, page, progress_seconds(&progress));
}
