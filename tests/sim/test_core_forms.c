/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Closed forms of one node in a whole run: means within 2 % at a fixed seed.  Little's law and the
 * law of utilisation hold exactly.
 */
#include "tests/sim/core_fixture.h"

#define JOBS 300000

static void within(double got, double wanted, double relative)
{
	assert_close(got / wanted, 1, relative);
}

static void node_init(struct bench *b, double gap_ms)
{
	bench_init(b, "1xfc:ram=0,buffer=0");
	b->generator.jobs = JOBS;
	b->generator.interarrival_ms = gap_ms;
	b->generator.kind[0].reaccess = 0;
	b->generator.seed = 11;
}

static void laws_hold(const struct sim_result *r, double work_ms)
{
	double rate = (double)r->completed / r->makespan_ms;

	assert_conserved(r);
	assert_close(r->nodes[0].jobs_mean / (rate * r->turnaround_ms.mean), 1, 1e-9);
	assert_true(work_ms > 0);
}

/* T = E(S) / (1 - rho), and the slowdown of every size is 1 / (1 - rho). */
static void mm1_ps(void **state)
{
	(void)state;
	for (int f = 0; f < 2; f++) {
		struct sim_result r;
		struct bench b;

		node_init(&b, 1000 / 0.6);
		b.params.fidelity = f ? SIM_FLUID : SIM_REQUEST;
		bench_run(&b, &r);
		laws_hold(&r, 1000);
		within(r.cpu_utilisation, 0.6, 0.02);
		within(r.turnaround_ms.mean, 1000 / 0.4, 0.02);
		within(r.slowdown.mean, 1 / 0.4, 0.02);
		within(r.nodes[0].jobs_mean, 0.6 / 0.4, 0.02);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* The mean does not depend on the distribution: constant and hyperexponential give the same. */
static void mg1_ps(void **state)
{
	const enum generator_lifetime lifetimes[] = {LIFETIME_CONSTANT, LIFETIME_HYPEREXP};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sim_result r;
		struct bench b;

		node_init(&b, 1000 / 0.5);
		b.generator.lifetime = lifetimes[i];
		b.generator.lifetime_shape = 4;
		b.params.fidelity = SIM_FLUID;
		bench_run(&b, &r);
		laws_hold(&r, 1000);
		within(r.turnaround_ms.mean, 2000, 0.02);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* Each job has one request and no computation: the disk is an M/M/1 or M/G/1 queue. */
static void disk(double sd_kb, double fixed_ms, double rho)
{
	struct sim_result r;
	struct bench b;
	double size = 400, service, service2, arrivals;

	bench_init(&b, "1xfc:ram=0,buffer=0");
	b.cluster.machines[0].disk_fixed_ms = fixed_ms;
	service = fixed_ms + size / 40;
	service2 = service * service + (sd_kb / 40) * (sd_kb / 40);
	arrivals = rho / service;
	b.generator.jobs = JOBS;
	b.generator.interarrival_ms = 1 / arrivals;
	b.generator.lifetime = LIFETIME_CONSTANT;
	b.generator.lifetime_mean_ms = 1e-9;
	b.generator.kind[0].request_kb = size;
	b.generator.kind[0].request_sd_kb = sd_kb;
	b.generator.kind[0].requests = 1;
	bench_run(&b, &r);
	assert_conserved(&r);
	within(r.disk_utilisation, rho, 0.02);
	/* Pollaczek-Khinchine */
	within(r.turnaround_ms.mean, service + arrivals * service2 / (2 * (1 - rho)), 0.02);
	assert_int_equal(r.disk_requests, JOBS);
	sim_result_free(&r);
	bench_free(&b);
}

static void mm1_disk(void **state)
{
	(void)state;
	disk(400, 0, 0.6); /* Gamma with sd = mean: exponential */
}

static void mg1_disk(void **state)
{
	(void)state;
	disk(80, 4, 0.7);
	disk(0, 0, 0.7); /* M/D/1 */
}

/* Checks mean and percentiles against the list of the jobs. */
struct listed {
	double slowdown[20000];
	size_t n;
};

static void list(void *arg, const struct sim_completion *c)
{
	struct listed *l = arg;

	l->slowdown[l->n++] = c->slowdown;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void summaries_are_those_of_the_jobs(void **state)
{
	static struct listed l;
	struct sim_result r;
	struct bench b;
	double sum = 0, squares = 0;

	(void)state;
	node_init(&b, 1000 / 0.8);
	b.generator.jobs = sizeof(l.slowdown) / sizeof(l.slowdown[0]);
	b.params.fidelity = SIM_FLUID;
	b.generator.kind[0].io_per_ms = 0.01;
	b.run.completed = list;
	b.run.arg = &l;
	bench_run(&b, &r);
	assert_int_equal(l.n, r.completed);
	for (size_t i = 0; i < l.n; i++)
		sum += l.slowdown[i];
	for (size_t i = 0; i < l.n; i++)
		squares += (l.slowdown[i] - sum / l.n) * (l.slowdown[i] - sum / l.n);
	qsort(l.slowdown, l.n, sizeof(l.slowdown[0]), by_value);
	within(r.slowdown.mean, sum / l.n, 1e-10);
	within(r.slowdown.sd, sqrt(squares / l.n), 1e-6);
	assert_close(r.slowdown.min, l.slowdown[0], 0);
	assert_close(r.slowdown.max, l.slowdown[l.n - 1], 0);
	within(r.slowdown.p50, l.slowdown[l.n / 2 - 1], 0.01);
	within(r.slowdown.p95, l.slowdown[l.n * 95 / 100 - 1], 0.01);
	within(r.slowdown.p99, l.slowdown[l.n * 99 / 100 - 1], 0.01);
	assert_int_equal(r.kind_slowdown[0].n, l.n);
	assert_int_equal(r.kind_slowdown[1].n, 0);
	sim_result_free(&r);
	bench_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mm1_ps),
		cmocka_unit_test(mg1_ps),
		cmocka_unit_test(mm1_disk),
		cmocka_unit_test(mg1_disk),
		cmocka_unit_test(summaries_are_those_of_the_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
