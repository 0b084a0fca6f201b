/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The requests that a run refuses and its messages; callbacks; stopping. */
#include "tests/sim/core_fixture.h"

static void expect(struct bench *b, int code, const char *says)
{
	struct sim_result r;
	int ret = bench_try(b, &r);

	if (ret != code || strstr(b->err.text, says) == NULL)
		print_error("%d \"%s\", wanted %d \"%s\"\n", ret, b->err.text, code, says);
	assert_int_equal(ret, code);
	assert_non_null(strstr(b->err.text, says));
}

static void start(struct bench *b)
{
	bench_init(b, "2xfc");
	bench_job(b, 0, 0, 100);
	bench_job(b, 10, 1, 100);
}

static void bad_jobs_are_refused(void **state)
{
	struct bench b;

	(void)state;
	start(&b);
	b.jobs[1].home = 2;
	expect(&b, -EINVAL, "job 1: its home is node 2, the cluster has nodes 0 to 1");
	b.jobs[1].home = 1;
	b.jobs[1].cpu_ms = NAN;
	expect(&b, -EINVAL, "job 1: a field is negative or not a number");
	b.jobs[1].cpu_ms = -1;
	expect(&b, -EINVAL, "job 1: a field");
	b.jobs[1].cpu_ms = 1;
	b.jobs[1].requests = INFINITY;
	expect(&b, -EINVAL, "job 1: a field");
	b.jobs[1].requests = 0;
	b.jobs[1].tasks = 0;
	expect(&b, -EINVAL, "job 1: 0 tasks");
	b.jobs[1].tasks = 1;
	b.jobs[1].kind = SIM_KINDS_MAX;
	expect(&b, -EINVAL, "job 1: kind 16");
	b.jobs[1].kind = 0;
	b.jobs[0].arrival_ms = 11;
	expect(&b, -EINVAL, "job 1: it arrives at 10.000 ms, before the previous job");
	for (uint32_t threads = 2; threads < 4; threads++) {
		b.params.threads = threads;
		expect(&b, -EINVAL, "job 1: it arrives");
	}
	bench_free(&b);
}

static void bad_requests_are_refused(void **state)
{
	struct bench b;

	(void)state;
	start(&b);
	b.policy = "fastest";
	expect(&b, -EINVAL, "unknown policy \"fastest\"");
	b.policy = "nlb";
	b.params.slice_ms = NAN;
	expect(&b, -EINVAL, "a parameter");
	b.params.slice_ms = 10;
	b.params.threads = 0;
	expect(&b, -EINVAL, "threads must be 1 to");
	b.params.threads = 1;
	b.cluster.machines[1].disk_mb_per_s = 0;
	expect(&b, -EINVAL, "node 1: needs");
	b.cluster.machines[1].disk_mb_per_s = 40;
	b.params.rules.w_io = 2;
	expect(&b, -EINVAL, "a parameter of the rules");
	b.params.rules.w_io = 0.5;
	b.policy = "wal-fc";
	b.cluster.machines[0].ram_mb = b.cluster.machines[0].buffer_mb = 0;
	expect(&b, -EINVAL, "controller needs nodes whose memory is known");
	b.policy = "nlb";
	b.params.threads = 2;
	b.run.completed = see;
	expect(&b, -EINVAL, "needs one thread");
	bench_free(&b);
}

static int fail_next(void *state, struct sim_job *job, struct iocom_err *err)
{
	int *left = state;

	*job = (struct sim_job){.tasks = 1, .cpu_ms = 10, .requests = 0};
	return (*left)-- > 0 ? 1 : iocom_err_set(err, -EBADMSG, "line 3: expected a number");
}

static int no_rewind(void *state, struct iocom_err *err)
{
	(void)state, (void)err;
	return 0;
}

static void no_free(void *state)
{
	(void)state;
}

/* Errors of the workload come back unchanged. */
static void errors_of_the_workload_come_back(void **state)
{
	static const struct workload_ops ops = {fail_next, no_rewind, no_free};
	const struct workload_info info = {.synthetic = ""};
	struct sim_result r;
	struct bench b;

	(void)state;
	start(&b);
	for (int left = 0; left < 3; left++) {
		int n = left;

		b.run.workload = workload_new(&ops, &n, &info);
		assert_non_null(b.run.workload);
		b.run.cluster = &b.cluster;
		b.run.policy = "nlb";
		b.run.params = &b.params;
		assert_int_equal(sim_run(&b.run, &r, &b.err), -EBADMSG);
		assert_non_null(strstr(b.err.text, "line 3"));
		workload_free(b.run.workload);
	}
	bench_free(&b);
}

static bool stop_late(void *arg, double time_ms, uint64_t completed)
{
	(void)completed;
	return ++*(int *)arg < 3 || time_ms < 0;
}

static void a_run_can_be_stopped(void **state)
{
	int asked = 0;
	struct bench b;

	(void)state;
	start(&b);
	b.njobs = 0;
	b.generator.jobs = 100000;
	b.generator.interarrival_ms = 1000;
	b.run.progress = stop_late;
	b.run.arg = &asked;
	expect(&b, -ECANCELED, "stopped at");
	assert_int_equal(asked, 3);
	b.params.threads = 2;
	asked = 0;
	expect(&b, -ECANCELED, "stopped at");
	bench_free(&b);
}

/* A workload without jobs, and jobs without work. */
static void empty_workloads_run(void **state)
{
	struct sim_result r;
	struct seen seen;
	struct bench b;

	(void)state;
	start(&b);
	b.njobs = 0;
	b.generator.jobs = 1;
	b.params.until_ms = 1e-9;
	bench_run(&b, &r);
	assert_int_equal(r.arrived, 0);
	assert_int_equal(r.slowdown.n, 0);
	assert_close(r.makespan_ms, 0, 0);
	sim_result_free(&r);
	b.params.until_ms = 0;
	b.jobs[0] = (struct sim_job){.arrival_ms = 3, .tasks = 1, .requests = 0};
	b.njobs = 1;
	bench_see(&b, &r, &seen);
	assert_close(seen.end[0], 3, 0);
	assert_close(seen.slowdown[0], 1, 0);
	sim_result_free(&r);
	bench_free(&b);
}

/* The view that `decided` gets leads to the same decision again. */
struct decisions {
	const struct sim_params *params;
	enum rules_policy policy;
	unsigned int n, moved, differ;
};

static void decide_again(void *arg, double time_ms, const struct sim_job *job,
			 const struct rules_plan *plan, const uint32_t *nodes,
			 const struct sim_look *look)
{
	struct decisions *d = arg;
	struct rules_view *view = rules_view_new();
	struct rules *rules = rules_new(d->policy, &d->params->rules, sim_look_seed(look));
	struct rules_request request = {.cpu_ms = job->cpu_ms,
					.io_per_ms = job->io_per_ms,
					.request_kb = job->request_kb,
					.reaccess = job->reaccess,
					.memory_mb = job->memory_mb,
					.faults_per_ms = job->faults_per_ms,
					.initial_mb = job->initial_mb,
					.requests = -1,
					.tasks = 1};
	static struct rules_plan again;
	struct rules_node node;

	(void)time_ms;
	assert_non_null(view);
	assert_non_null(rules);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(sim_look_node(look, i, &node), 0);
		assert_int_equal(rules_view_set(view, i, &node), 0);
	}
	assert_int_equal(sim_look_node(look, 5, &node), -EINVAL);
	assert_int_equal(rules_place(rules, view, job->home, &request, &again), 0);
	d->n++;
	d->moved += !plan->stayed;
	d->differ += again.node != plan->node;
	assert_int_equal(plan->node, nodes[0]);
	assert_true(plan->nreasons > 0);
	rules_free(rules);
	rules_view_free(view);
}

static void a_decision_shows_what_it_saw(void **state)
{
	static const char *const policies[] = {"cpu-re", "iocm-re", "wal"};

	(void)state;
	for (int p = 0; p < 3; p++) {
		for (int period = 0; period < 2; period++) {
			struct decisions d = {0};
			struct sim_result r;
			struct bench b;

			bench_init(&b, "5xfc");
			b.generator.jobs = 800;
			b.generator.interarrival_ms = 420;
			b.generator.home_skew = 1;
			b.generator.kind[0].io_per_ms = 0.08;
			b.generator.kind[0].io_uniform = true;
			b.params.information_period_ms = 1000 * period;
			b.params.rules.reference_mips = 800;
			b.policy = policies[p];
			rules_policy_parse(policies[p], &d.policy);
			d.params = &b.params;
			b.run.decided = decide_again;
			b.run.arg = &d;
			bench_run(&b, &r);
			assert_int_equal(d.n, 800);
			assert_true(d.moved > 20);
			/* charged nodes cannot be described exactly */
			assert_true(d.differ <= (period ? 8 : 0));
			assert_int_equal(r.decisions, 800);
			sim_result_free(&r);
			bench_free(&b);
		}
	}
}

/* The fluid level shares the processor equally and must not claim to do otherwise. */
static void priorities_need_the_request_level(void **state)
{
	struct sim_result r;
	struct bench b;

	(void)state;
	start(&b);
	b.params.priority_decay = true;
	b.params.fidelity = SIM_FLUID;
	expect(&b, -EINVAL,
	       "priority_decay: the fluid level has no priorities; use fidelity request");
	b.params.fidelity = SIM_REQUEST;
	bench_run(&b, &r);
	sim_result_free(&r);
	bench_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_jobs_are_refused),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(errors_of_the_workload_come_back),
		cmocka_unit_test(a_run_can_be_stopped),
		cmocka_unit_test(empty_workloads_run),
		cmocka_unit_test(a_decision_shows_what_it_saw),
		cmocka_unit_test(priorities_need_the_request_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
