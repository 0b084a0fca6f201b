/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One run that keeps its decisions: all of them as a recording (recording.h), or the view of one
 * as a view file (view_json.h).  Files are written beside their place and then renamed.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/view/json_msgpack.h"
#include "balancer/view/replace.h"
#include "balancer/view/recording.h"

#include "sim/cli/cli.h"
#include "sim/experiments/scenario.h"

struct keeper {
	struct cli *cli;
	struct scenario *scenario;
	const struct workload_info *info;
	const char *policy;
	uint32_t nodes;
	double reference_mips;
	struct recorder *recorder; /* or NULL */
	FILE *view;		   /* or NULL */
	uint64_t decisions;
	bool done;	     /* the view is written, so the run may end */
	unsigned char *seen; /* a bit per submitted job */
	uint64_t room;
	int code;
	struct iocom_err err;
};

/* --- what a decision looked at ---------------------------------------------------- */

/* The policy's parameters now; a controller may have changed the weight. */
static struct rules_params params_now(const struct keeper *k, const struct sim_look *look)
{
	struct rules_params p = k->scenario->params.rules;
	struct rules_control control;

	sim_look_control(look, &control);
	if (control.active)
		p.w_io = control.w_io;
	p.reference_mips = k->reference_mips;
	return p;
}

static int fill_view(struct keeper *k, double time_ms, const struct sim_job *job,
		     const struct sim_look *look, struct view_file *view)
{
	const struct rules_request *request = sim_look_request(look);
	int ret = 0;

	view_file_init(view, RULES_RATES_COMPUTATION);
	view->time_ms = time_ms;
	view->home = job->home;
	view->seed = sim_look_seed(look);
	view->params = params_now(k, look);
	view->job = *request;
	for (uint32_t i = 0; i < k->nodes && !ret; i++) {
		struct rules_node node;

		ret = sim_look_node(look, i, &node);
		if (!ret)
			ret = view_file_add(view, &node);
	}
	if (!ret && request->com_ms) {
		view->com_ms = malloc(request->tasks * sizeof(double));
		if (view->com_ms)
			memcpy(view->com_ms, request->com_ms, request->tasks * sizeof(double));
		else
			ret = -ENOMEM;
	}
	view->job.com_ms = view->com_ms;
	if (!ret && request->npairs) {
		view->pairs = malloc(request->npairs * sizeof(*view->pairs));
		if (view->pairs)
			memcpy(view->pairs, request->pairs, request->npairs * sizeof(*view->pairs));
		else
			ret = -ENOMEM;
	}
	view->job.pairs = view->pairs;
	if (ret)
		view_file_fini(view);
	return ret;
}

/* --- the recording ------------------------------------------------------------------ */

/* Returns true only the first time. */
static bool first_seen(struct keeper *k, uint64_t id)
{
	uint64_t bytes = id / 8 + 1;

	if (bytes > k->room) {
		uint64_t room = 2 * bytes + 1024;
		unsigned char *grown = realloc(k->seen, room);

		if (!grown) {
			k->code = -ENOMEM;
			return false;
		}
		memset(grown + k->room, 0, room - k->room);
		k->seen = grown;
		k->room = room;
	}
	if (k->seen[id / 8] >> id % 8 & 1)
		return false;
	k->seen[id / 8] |= (unsigned char)(1u << id % 8);
	return true;
}

static int record_job(struct keeper *k, const struct sim_job *j)
{
	struct recording_job job = {
		.time_ms = j->arrival_ms,
		.home = j->home,
		.tasks = j->tasks,
		.cpu_ms = j->cpu_ms,
		.io_per_ms = j->io_per_ms,
		.request_kb = j->request_kb,
		.request_sd_kb = j->request_sd_kb,
		.reaccess = j->reaccess,
		.requests = j->requests,
		.memory_mb = j->memory_mb,
		.faults_per_ms = j->faults_per_ms,
		.initial_mb = j->initial_mb,
		.write_fraction = j->write_fraction,
		.barrier_ms = j->barrier_ms,
		.messages_per_ms = j->messages_per_ms,
		.message_kb = j->message_kb,
	};

	snprintf(job.id, sizeof(job.id), "%llu", (unsigned long long)j->id);
	snprintf(job.class_name, sizeof(job.class_name), "%s",
		 j->kind < k->info->kinds ? k->info->kind[j->kind] : "job");
	return recorder_submit(k->recorder, &job, &k->err);
}

static int record_decision(struct keeper *k, const struct sim_job *j, const struct rules_plan *plan,
			   const uint32_t *nodes, const struct rules_gang_plan *gang,
			   const struct view_file *view)
{
	struct recording_decision d = {
		.time_ms = view->time_ms,
		.home = view->home,
		.seed = view->seed,
		.params = &view->params,
		.request = &view->job,
		.plan = plan,
		.gang = gang,
		.nodes = nodes,
	};
	int ret = 0;

	/* Writes nodes that have changed since the last decision. */
	for (uint32_t i = 0; i < view->nnodes && !ret; i++)
		ret = recorder_node(k->recorder, view->time_ms, i, &view->nodes[i], &k->err);
	if (!ret && first_seen(k, j->id))
		ret = record_job(k, j);
	snprintf(d.job, sizeof(d.job), "%llu", (unsigned long long)j->id);
	snprintf(d.policy, sizeof(d.policy), "%s", k->policy);
	return ret ? ret : recorder_decision(k->recorder, &d, &k->err);
}

static int record_write_view(struct keeper *k, const struct view_file *view)
{
	json_t *document = view_file_json(view);
	bool packed = json_msgpack_named(k->cli->export_view);
	size_t n = 0;
	char *bytes = packed ? json_msgpack_dump(document, &n) : NULL;

	if (!document || (packed && !bytes)) {
		json_decref(document);
		return -ENOMEM;
	}
	if (packed)
		fwrite(bytes, 1, n, k->view);
	else if (!json_dumpf(document, k->view, JSON_INDENT(1)))
		fputc('\n', k->view);
	free(bytes);
	json_decref(document);
	k->done = true;
	return 0;
}

static void record_decided(void *arg, double time_ms, const struct sim_job *job,
			   const struct rules_plan *plan, const uint32_t *nodes,
			   const struct sim_look *look)
{
	struct keeper *k = arg;
	struct view_file view;
	bool wanted;

	k->decisions++;
	wanted = k->view && !k->done && k->decisions == k->cli->at_decision;
	if (k->code || (!k->recorder && !wanted))
		return;
	k->code = fill_view(k, time_ms, job, look, &view);
	if (k->code)
		return;
	if (k->recorder)
		k->code = record_decision(k, job, plan, nodes, sim_look_gang(look), &view);
	if (!k->code && wanted)
		k->code = record_write_view(k, &view);
	view_file_fini(&view);
}

static void record_completed(void *arg, const struct sim_completion *c)
{
	struct keeper *k = arg;
	struct recording_finish finish = {
		.time_ms = c->end_ms,
		.start_ms = c->start_ms,
		.node = c->node,
		.moves = c->moves,
		.alone_ms = c->alone_ms,
		.slowdown = c->slowdown,
	};

	if (!k->recorder || k->code)
		return;
	snprintf(finish.id, sizeof(finish.id), "%llu", (unsigned long long)c->job->id);
	k->code = recorder_finish(k->recorder, &finish, &k->err);
}

static bool record_keep_going(void *arg, double time_ms, uint64_t jobs)
{
	const struct keeper *k = arg;

	(void)time_ms;
	(void)jobs;
	return !k->code && !(k->done && !k->recorder) && !(k->cli->cancel && *k->cli->cancel);
}

/* --- the run -------------------------------------------------------------------------- */

static int record_open_recorder(struct keeper *k, const char *path, uint64_t seed)
{
	struct recording_header header = {
		.seed = seed,
		.params = k->scenario->params.rules,
	};
	char *cluster = sim_cluster_format(&k->scenario->cluster);

	header.params.reference_mips = k->reference_mips;
	snprintf(header.program, sizeof(header.program), "iocom-sim " IOCOM_VERSION);
	snprintf(header.cluster, sizeof(header.cluster), "%s", cluster ? cluster : "");
	snprintf(header.source, sizeof(header.source), "%s", k->info->source);
	snprintf(header.hash, sizeof(header.hash), "%s", k->info->hash);
	snprintf(header.policy, sizeof(header.policy), "%s", k->policy);
	free(cluster);
	return recorder_open(path, &header, &k->recorder, &k->err);
}

static int record_simulate(struct keeper *k, struct workload *workload)
{
	struct sim_run run = {
		.cluster = &k->scenario->cluster,
		.workload = workload,
		.policy = k->policy,
		.params = &k->scenario->params,
		.progress = record_keep_going,
		.completed = record_completed,
		.decided = record_decided,
		.arg = k,
	};
	struct sim_result result;
	int ret = sim_run(&run, &result, &k->err);

	if (!ret)
		sim_result_free(&result);
	if (k->code)
		return k->code;
	if (ret == -ECANCELED && k->done && !k->recorder)
		return 0;
	if (ret == -ECANCELED)
		return iocom_err_set(&k->err, ret, "interrupted; nothing was written");
	if (!ret && k->view && !k->done)
		return iocom_err_set(&k->err, -ENOENT, "there were only %llu decisions",
				     (unsigned long long)k->decisions);
	return ret;
}

/* Makes "FILE.XXXXXX" beside FILE; its suffix tells the recorder whether to compress. */
static void beside(char *out, size_t size, const char *path)
{
	snprintf(out, size, "%s.%d.tmp%s", path, (int)getpid(), json_msgpack_suffix(path));
}

static int record_finish(struct keeper *k, const char *temporary, const char *path, int ret)
{
	if (!ret)
		ret = replace_rename(temporary, path, k->cli->force, &k->err);
	if (ret)
		unlink(temporary);
	return ret;
}

static int record_keep(struct keeper *k, struct workload *workload, uint64_t seed)
{
	struct cli *cli = k->cli;
	char record[PATH_MAX] = "", view[PATH_MAX] = "";
	int ret = 0;

	if (cli->record) {
		beside(record, sizeof(record), cli->record);
		ret = record_open_recorder(k, record, seed);
	}
	if (!ret && cli->export_view) {
		beside(view, sizeof(view), cli->export_view);
		k->view = fopen(view, "we");
		if (!k->view)
			ret = iocom_err_set(&k->err, -errno, "cannot write %s: %s",
					    cli->export_view, strerror(errno));
	}
	if (!ret)
		ret = record_simulate(k, workload);
	if (k->recorder && ret)
		recorder_abandon(k->recorder);
	else if (k->recorder)
		ret = recorder_close(k->recorder, &k->err);
	if (k->view && fclose(k->view) && !ret)
		ret = iocom_err_set(&k->err, -EIO, "cannot write %s", cli->export_view);
	if (cli->record)
		ret = record_finish(k, record, cli->record, ret);
	if (cli->export_view)
		ret = record_finish(k, view, cli->export_view, ret);
	return ret;
}

static int run_one(struct cli *cli, const struct sweep *s, struct scenario *scenario)
{
	struct keeper k = {
		.cli = cli,
		.scenario = scenario,
		.policy = s->series[0].policy,
		.nodes = scenario->cluster.n,
		.reference_mips = sim_reference_mips(&scenario->cluster, &scenario->params),
	};
	struct workload *w = scenario_workload(scenario, s->first_seed, &k.err);
	int ret;

	if (!w)
		return cli_fail(cli, CLI_FAILED, "%s", k.err.text);
	k.info = workload_info(w);
	scenario->params.seed = s->first_seed;
	if (!cli->at_decision)
		cli->at_decision = 1;
	ret = record_keep(&k, w, s->first_seed);
	workload_free(w);
	free(k.seen);
	if (ret)
		return cli_fail(cli, CLI_FAILED, "%s", k.err.text[0] ? k.err.text : strerror(-ret));
	return CLI_OK;
}

int cli_record(struct cli *cli, const struct sweep *s)
{
	struct settings all;
	struct scenario scenario;
	struct iocom_err err = {0};
	int ret;

	if (s->nseries != 1 || s->npoints != 1 || cli->shards)
		return cli_fail(cli, CLI_USAGE,
				"--record and --export-view take one policy and no sweep");
	if (s->seeds > 1 && cli->seeds)
		return cli_fail(cli, CLI_USAGE,
				"--seeds: --record and --export-view make one run (--seed chooses "
				"it)");
	ret = cli_check(cli, s);
	if (!ret)
		ret = cli_check_effect(cli, (struct sweep *const[]){(struct sweep *)s}, 1);
	if (ret)
		return ret;
	if ((cli->record && replace_check(cli->record, cli->force, &err)) ||
	    (cli->export_view && replace_check(cli->export_view, cli->force, &err)))
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	if (sweep_unit_settings(s, 0, &all) || scenario_open(&scenario, &all, &err)) {
		return cli_fail(cli, CLI_FAILED, "%s", err.text);
	}
	settings_free(&all);
	if (scenario.params.threads > 1)
		ret = cli_fail(cli, CLI_USAGE, "--record and --export-view run in one thread");
	else
		ret = run_one(cli, s, &scenario);
	scenario_close(&scenario);
	return ret;
}
