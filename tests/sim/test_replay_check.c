/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom-sim replay RECORDING --check` on recordings with known results: they are made by hand from
 * jobs that are alone on their nodes, so that formulas give their times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/cli.h"
#include "balancer/view/recording.h"
#include "sim/run.h"
#include "sim/workload/spec.h"

#define JOBS 8
#define GAP  20000.0 /* ms between arrivals, so that no two jobs meet */
#define MIPS 500
#define FAST 20 /* MB/s */
#define SLOW 10

static char path[64], out[64];

static int setup(void **state)
{
	(void)state;
	strcpy(path, "/tmp/iocom-check-XXXXXX");
	strcpy(out, "/tmp/iocom-check-XXXXXX");
	close(mkstemp(path));
	close(mkstemp(out));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(out);
	return 0;
}

static struct rules_node idle_node(const char *name, double disk)
{
	struct rules_node n = {
		.ram_mb = 1000,
		.cpu_mips = MIPS,
		.cores = 1,
		.disk_fixed_ms = 0.1,
		.disk_mb_per_s = disk,
		.request_kb = 128,
		.network_mb_per_s = 125,
		.has_measured = true,
		.has_advertised = true,
		.accepts = true,
	};

	snprintf(n.name, sizeof(n.name), "%s", name);
	return n;
}

/* --- a recording ----------------------------------------------------------------------- */

struct story {
	double stretch;	  /* measured times are this multiple of the true times */
	bool other_plans; /* the plans have other nodes than the rules choose */
	bool cut;	  /* there is no end line */
	bool started_ago; /* there is an end without its job */
	bool mapped;	  /* the readers read by page faults of mapped files */
	bool short_of;	  /* the nodes have less memory than what runs there needs */
	double others;	  /* the part of a node's processors that others took; 0: not known */
};

static void put_decision(struct recorder *r, const struct view_file *v, double time_ms,
			 const char *id, bool other)
{
	struct view_decision made;
	struct view_policy policy;
	struct recording_decision d = {
		.time_ms = time_ms,
		.seed = v->seed,
		.params = &v->params,
		.request = &v->job,
		.changed = v->nodes,
		.nchanged = v->nnodes,
	};

	assert_int_equal(view_policy_parse("iocm-re", &policy, NULL), 0);
	assert_int_equal(view_decide(v, &policy, &made, NULL), 0);
	assert_int_equal(made.plan.node, 0);
	made.plan.node = other;
	snprintf(d.job, sizeof(d.job), "%s", id);
	snprintf(d.policy, sizeof(d.policy), "iocm-re");
	d.plan = &made.plan;
	assert_int_equal(recorder_decision(r, &d, NULL), 0);
	view_decision_fini(&made);
}

/* Job I: even jobs read, odd jobs compute; they request nearly nothing. */
static void put_job(struct recorder *r, struct view_file *v, unsigned int i,
		    const struct story *story)
{
	struct recording_job j = {
		.time_ms = i * GAP, .tasks = 1, .cpu_ms = 1, .memory_mb = 1, .request_kb = 64};
	double requests = i % 2 ? 0 : 1000, cpu_ms = i % 2 ? 2000 : 100;
	double wall = cpu_ms * 1000 / MIPS + requests * (0.1 + 64.0 / FAST);
	struct recording_finish f = {
		.start_ms = j.time_ms,
		.has_measured = true,
		.measured = {.wall_ms = wall * story->stretch,
			     .cpu_ms = cpu_ms,
			     .requests = story->mapped ? 0 : requests,
			     .request_mb = story->mapped ? 0 : requests * 0.064,
			     .page_faults = story->mapped ? requests : 0,
			     .page_fault_mb = story->mapped ? requests * 0.064 : 0,
			     .memory_mb = 2},
	};

	if (story->mapped)
		j.implicit_share = 0.5;
	snprintf(j.id, sizeof(j.id), "a-%u", i);
	snprintf(j.class_name, sizeof(j.class_name), i % 2 ? "compute" : "read");
	snprintf(f.id, sizeof(f.id), "%s", j.id);
	v->job = (struct rules_request){
		.cpu_ms = 1, .memory_mb = 1, .request_kb = 64, .tasks = 1, .requests = 0};
	assert_int_equal(recorder_submit(r, &j, NULL), 0);
	put_decision(r, v, j.time_ms, j.id, story->other_plans);
	f.time_ms = j.time_ms + f.measured.wall_ms + 30;
	if (i == JOBS - 2) { /* never ran */
		f.measured = (struct recording_measured){0};
		f.exit = 125;
	}
	if (i != JOBS - 1) /* the last job still runs at the end */
		assert_int_equal(recorder_finish(r, &f, NULL), 0);
}

static void write_recording(const struct story *story)
{
	struct recording_header h = {.live = true, .policy = "iocm-re", .seed = 1};
	struct rules_node a = idle_node("a", FAST), b = idle_node("b", SLOW);
	struct recording_finish ago = {.id = "before", .node = 0};
	struct view_file v;
	struct recorder *r;

	rules_params_default(&h.params, RULES_RATES_WALL);
	h.params.reference_mips = 1000;
	h.params.fixed_cost_ms = 40;
	h.period_ms = 1000;
	assert_int_equal(recorder_open(path, &h, &r, NULL), 0);
	if (story->short_of)
		a.advertised.memory_mb = b.advertised.memory_mb = 2000;
	view_file_init(&v, RULES_RATES_WALL);
	v.params = h.params;
	assert_int_equal(view_file_add(&v, &a), 0);
	assert_int_equal(view_file_add(&v, &b), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(recorder_node(r, 0, i, &v.nodes[i], NULL), 0);
	if (story->started_ago)
		assert_int_equal(recorder_finish(r, &ago, NULL), 0);
	for (unsigned int i = 0; i < JOBS; i++)
		put_job(r, &v, i, story);
	view_file_fini(&v);
	if (story->others > 0)
		recorder_disturbed(r, &(struct recording_end){.others_cpu = story->others});
	if (story->cut)
		recorder_abandon(r);
	else
		assert_int_equal(recorder_close(r, NULL), 0);
}

/* --- the command ------------------------------------------------------------------------- */

/* Runs the command with standard output and error in the file OUT; returns its exit code. */
static int replay(char **argv)
{
	int argc = 0, ret, saved = dup(STDOUT_FILENO), errors = dup(STDERR_FILENO);
	int fd = open(out, O_WRONLY | O_TRUNC);

	while (argv[argc])
		argc++;
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	ret = cmd_replay(argc, argv, NULL);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	close(saved);
	close(errors);
	close(fd);
	return ret;
}

static json_t *check(int exit_code)
{
	char *argv[] = {"replay", path, "--check", "--json", NULL};
	json_t *answer;
	int ret = replay(argv);

	answer = json_load_file(out, 0, NULL);
	if (ret != exit_code || !answer)
		fail_msg("exit %d, wanted %d; %s", ret, exit_code,
			 answer ? json_dumps(answer, 0) : "no JSON");
	return answer;
}

static double number(const json_t *answer, const char *group, const char *key)
{
	const json_t *o = group ? json_object_get(answer, group) : answer;

	return json_number_value(json_object_get(o, key));
}

static bool output_has(const char *text)
{
	static char all[20000];
	FILE *f = fopen(out, "r");
	size_t n = fread(all, 1, sizeof(all) - 1, f);

	fclose(f);
	all[n] = 0;
	return strstr(all, text) != NULL;
}

static void test_true_story(void **state)
{
	const struct story story = {.stretch = 1, .started_ago = true};
	json_t *answer;
	char *argv[] = {"replay", path, "--check", NULL};

	(void)state;
	write_recording(&story);
	answer = check(0);
	assert_true(number(answer, NULL, "decisions") == JOBS);
	assert_true(number(answer, NULL, "placements_same") == JOBS);
	assert_true(number(answer, NULL, "plans_same") == JOBS);
	assert_true(number(answer, NULL, "jobs") == JOBS - 1);
	assert_true(number(answer, NULL, "jobs_ended") == JOBS - 2);
	assert_true(number(answer, NULL, "jobs_never_ran") == 1);
	assert_true(number(answer, "times", "jobs") == JOBS - 2);
	/*
	 * The jobs do what was measured. If they did what they requested, they would take no time.
	 */
	assert_true(fabs(number(answer, "times", "slowdown_measured") - 1) < 1e-3);
	assert_true(fabs(number(answer, "times", "slowdown_simulated") - 1) < 1e-3);
	assert_true(fabs(number(answer, "times", "turnaround_job_error_percent")) < 0.1);
	assert_true(number(answer, "times_where_they_ran", "same_node_percent") == 100);
	json_decref(answer);
	assert_int_equal(replay(argv), 0);
	assert_true(output_has("1 job never ran and is left out"));
	assert_true(output_has("placements   8 of 8 decisions"));
	assert_true(output_has("compute"));
}

/* Times that others disturbed are not compared; nor does a part of a recording pass for the whole.
 */
static void test_what_cannot_be_compared(void **state)
{
	struct story story = {.stretch = 1, .others = 0.2};
	char *argv[] = {"replay", path, "--check", NULL};

	(void)state;
	write_recording(&story);
	assert_int_equal(replay(argv), 0);
	assert_true(output_has("of a node's processors: 20 %; of its disk: 0 %"));
	assert_false(output_has("void"));
	story.others = 0.3;
	write_recording(&story);
	assert_int_equal(replay(argv), 1);
	assert_true(output_has("void         that is too much to compare times"));
	story.others = 0;
	write_recording(&story);
	assert_int_equal(replay(argv), 0);
	assert_true(output_has("of a node's processors: not known"));
	story.cut = true;
	write_recording(&story);
	assert_int_equal(replay(argv), 1);
	assert_true(output_has("the recording was cut off"));
}

/* What jobs read through mapped files takes the disk's time again, not the processor's alone. */
static void test_mapped_readers(void **state)
{
	const struct story story = {.stretch = 1, .mapped = true};
	json_t *answer;

	(void)state;
	write_recording(&story);
	answer = check(0);
	assert_true(number(answer, NULL, "placements_same") == JOBS);
	assert_true(number(answer, "times", "jobs") == JOBS - 2);
	assert_true(fabs(number(answer, "times", "slowdown_simulated") - 1) < 1e-3);
	assert_true(fabs(number(answer, "times", "turnaround_job_error_percent")) < 0.1);
	json_decref(answer);
}

/* A replay's decisions use the part that was announced. */
static void test_announced_share(void **state)
{
	const struct story story = {.stretch = 1, .mapped = true};
	struct workload_options options;
	struct iocom_err err = {0};
	struct sim_job job;
	struct workload *w;

	(void)state;
	write_recording(&story);
	workload_options_default(&options);
	w = workload_spec_open(path, &options, &err);
	assert_non_null(w);
	assert_int_equal(workload_next(w, &job, &err), 1);
	assert_true(job.has_asked && job.asked.implicit_share == 0.5);
	assert_true(job.requests == 1000 && job.request_kb == 64);
	workload_free(w);
}

/* Where memory was short, page faults may be its doing: nodes with enough do not repeat them. */
static void test_faults_of_short_memory(void **state)
{
	const struct story story = {.stretch = 1, .mapped = true, .short_of = true};
	json_t *answer;

	(void)state;
	write_recording(&story);
	answer = check(1);
	assert_true(number(answer, NULL, "placements_same") == JOBS);
	assert_true(number(answer, "times", "turnaround_difference_percent") < -40);
	json_decref(answer);
}

static void test_slow_machines(void **state)
{
	const struct story story = {.stretch = 2, .cut = true};
	json_t *answer;

	(void)state;
	write_recording(&story);
	answer = check(1);
	assert_true(fabs(number(answer, "times", "slowdown_difference_percent") + 50) < 0.5);
	assert_false(json_is_true(json_object_get(answer, "complete")));
	json_decref(answer);
}

static void test_other_plans(void **state)
{
	const struct story story = {.stretch = 1, .other_plans = true};
	json_t *answer;
	char *argv[] = {"replay", path, "--check", NULL};

	(void)state;
	write_recording(&story);
	answer = check(1);
	assert_true(number(answer, NULL, "placements_same") == 0);
	json_decref(answer);
	assert_int_equal(replay(argv), 1);
	assert_true(output_has("line 7, job a-0: not the same"));
}

/* Replay under other policies uses the machines and parameters of the recording. */
static void test_policies(void **state)
{
	const struct story story = {.stretch = 1};
	char *argv[] = {"replay", path, "--policy", "nlb,iocm-re", "--json", NULL};
	json_t *answer, *row;

	(void)state;
	write_recording(&story);
	assert_int_equal(replay(argv), 0);
	answer = json_load_file(out, 0, NULL);
	assert_non_null(answer);
	assert_true(output_has("reference_mips"));
	row = json_array_get(json_object_get(answer, "results"), 0);
	row = json_object_get(json_object_get(row, "measures"), "slowdown");
	assert_true(fabs(json_number_value(json_object_get(row, "mean")) - 1) < 0.01);
	json_decref(answer);
}

static void test_refused(void **state)
{
	char *missing[] = {"replay", "/nonexistent/x", "--check", NULL};
	char *other[] = {"replay", "tests/sim/data/csd.csv", "--check", NULL};
	char *bad[] = {"replay", path, "--check", "--policy", "nonsense", NULL};
	char *broken[] = {"replay", path, "--check", NULL};
	const struct story story = {.stretch = 1};
	FILE *f;

	(void)state;
	assert_int_equal(replay(missing), 1);
	assert_int_equal(replay(other), 1);
	assert_true(output_has("csd.csv is not a recording, or cannot be read twice"));
	write_recording(&story);
	assert_int_equal(replay(bad), 1);
	assert_true(output_has("nonsense"));
	f = fopen(path, "a");
	fputs("rubbish\n", f);
	fclose(f);
	assert_int_equal(replay(broken), 1);
	assert_true(output_has("nothing may follow the \"end\" line"));
}

/* --- asked and done ------------------------------------------------------------------------ */

static uint32_t ended_at;

static void ended(void *arg, const struct sim_completion *c)
{
	(void)arg;
	ended_at = c->node;
}

static uint32_t run_one(const struct sim_job *job, const char *policy, bool follow)
{
	const struct rules_node small = idle_node("a", FAST);
	struct sim_machine machines[2] = {
		{.cpu_mips = MIPS,
		 .cores = 1,
		 .ram_mb = small.ram_mb,
		 .disk_mb_per_s = FAST,
		 .request_kb = 128,
		 .network_mb_per_s = 125},
		{.cpu_mips = MIPS,
		 .cores = 1,
		 .ram_mb = 4000,
		 .disk_mb_per_s = FAST,
		 .request_kb = 128,
		 .network_mb_per_s = 125},
	};
	struct sim_cluster cluster = {2, machines};
	struct sim_params params;
	struct sim_result result;
	struct iocom_err err = {0};
	struct sim_run run = {
		.cluster = &cluster,
		.workload = workload_from_jobs(job, 1, "one"),
		.policy = policy,
		.params = &params,
		.completed = ended,
	};

	sim_params_default(&params);
	rules_params_default(&params.rules, RULES_RATES_WALL);
	params.follow_recorded = follow;
	assert_non_null(run.workload);
	if (sim_run(&run, &result, &err))
		fail_msg("%s", err.text);
	sim_result_free(&result);
	workload_free(run.workload);
	return ended_at;
}

/* Decisions use what was requested; times follow what was done. */
static void test_asked(void **state)
{
	struct sim_job job = {
		.tasks = 1, .cpu_ms = 1000, .requests = 0, .request_kb = 64, .memory_mb = 1};

	(void)state;
	job.asked = (struct sim_asked){
		.cpu_ms = 1000, .request_kb = 64, .memory_mb = 2000, .faults_per_ms = 1, .node = 1};
	assert_int_equal(run_one(&job, "mem-re", false), 0);
	job.has_asked = true;
	assert_int_equal(run_one(&job, "mem-re", false), 1);
	assert_int_equal(run_one(&job, "nlb", false), 0);
	assert_int_equal(run_one(&job, "nlb", true), 1);
	job.asked.node = UINT32_MAX; /* the job had not ended */
	assert_int_equal(run_one(&job, "nlb", true), 0);
	job.asked.memory_mb = NAN;
	{
		struct sim_cluster cluster;
		struct sim_params params;
		struct sim_result result;
		struct iocom_err err = {0};
		struct sim_run run = {.cluster = &cluster, .policy = "nlb", .params = &params};

		assert_int_equal(sim_cluster_parse(&cluster, "fc", &err), 0);
		sim_params_default(&params);
		run.workload = workload_from_jobs(&job, 1, "one");
		assert_int_equal(sim_run(&run, &result, &err), -EINVAL);
		workload_free(run.workload);
		sim_cluster_free(&cluster);
	}
}

struct told {
	unsigned int decisions;
	double share;			   /* of the request of the first decision */
	double explicit_per_ms, io_per_ms; /* of home, at the last decision */
	struct rules_sharers left;	   /* there, likewise */
};

static void look_at_home(void *arg, double time_ms, const struct sim_job *job,
			 const struct rules_plan *plan, const uint32_t *nodes,
			 const struct sim_look *look)
{
	struct told *told = arg;
	struct rules_node home;

	(void)time_ms;
	(void)job;
	(void)plan;
	(void)nodes;
	if (!told->decisions++)
		told->share = sim_look_request(look)->implicit_share;
	assert_int_equal(sim_look_node(look, 0, &home), 0);
	assert_true(home.has_advertised);
	told->explicit_per_ms = home.advertised.explicit_per_ms;
	told->io_per_ms = home.advertised.io_per_ms;
	assert_true(home.has_sharers);
	told->left = home.sharers;
}

/* A node that runs a reader of mapped files tells its load as a live one does. */
static void test_implicit_apart(void **state)
{
	struct sim_job jobs[] = {
		{.tasks = 1, .cpu_ms = 1000, .requests = 2000, .request_kb = 64, .has_asked = true},
		{.id = 1, .tasks = 1, .arrival_ms = 3000, .cpu_ms = 10, .request_kb = 64},
	};
	struct sim_machine machine = {.cpu_mips = MIPS,
				      .cores = 1,
				      .ram_mb = 1000,
				      .disk_mb_per_s = FAST,
				      .request_kb = 128,
				      .network_mb_per_s = 125};
	struct sim_cluster cluster = {1, &machine};
	struct told told = {0};
	struct sim_params params;
	struct sim_result result;
	struct iocom_err err = {0};
	struct sim_run run = {.cluster = &cluster,
			      .policy = "iocm-re",
			      .params = &params,
			      .decided = look_at_home,
			      .arg = &told};

	(void)state;
	jobs[0].asked = (struct sim_asked){.cpu_ms = 1000,
					   .io_per_ms = 0.4,
					   .requests = 2000,
					   .implicit_share = 0.75,
					   .request_kb = 64,
					   .node = UINT32_MAX};
	sim_params_default(&params);
	rules_params_default(&params.rules, RULES_RATES_WALL);
	params.cpu_load_runnable = true; /* as in a replay of a live recording */
	run.workload = workload_from_jobs(jobs, 2, "one");
	assert_int_equal(sim_run(&run, &result, &err), 0);
	assert_int_equal(told.decisions, 2);
	assert_true(told.share == 0.75);
	assert_true(fabs(told.explicit_per_ms - 0.1) < 1e-12);
	assert_true(fabs(told.io_per_ms - 0.4) < 1e-12);
	/* Of 1000 ms and of 2000 requests the same part is left; nothing overlaps without a cap. */
	assert_true(told.left.cpu_left_ms > 0 && told.left.cpu_left_ms < 1000);
	assert_true(fabs(told.left.disk_left_ms / told.left.cpu_left_ms - 2 * 64.0 / FAST) < 1e-9);
	assert_true(fabs(told.left.cpu + told.left.disk - 1) < 1e-12);
	sim_result_free(&result);
	workload_free(run.workload);
	jobs[0].asked.implicit_share = 1.5;
	run.workload = workload_from_jobs(jobs, 2, "one");
	assert_int_equal(sim_run(&run, &result, &err), -EINVAL);
	workload_free(run.workload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_true_story),
		cmocka_unit_test(test_what_cannot_be_compared),
		cmocka_unit_test(test_mapped_readers),
		cmocka_unit_test(test_slow_machines),
		cmocka_unit_test(test_other_plans),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_implicit_apart),
		cmocka_unit_test(test_announced_share),
		cmocka_unit_test(test_faults_of_short_memory),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
