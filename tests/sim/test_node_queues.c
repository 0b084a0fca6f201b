/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The request level against closed forms of queueing theory: each mean within 2 %,
 * each law of conservation exactly.
 */
#include "tests/sim/node_driver.h"

#define JOBS 400000u

static void one_request(struct open_job *job, struct sim_random *r)
{
	(void)r;
	job->requests = 1;
	job->task.request_kb = 250;
	job->task.request_sd_kb = 250; /* exponential */
}

static void md_request(struct open_job *job, struct sim_random *r)
{
	one_request(job, r);
	job->task.request_sd_kb = 0;
}

static void gamma_request(struct open_job *job, struct sim_random *r)
{
	one_request(job, r);
	job->task.request_sd_kb = 50;
}

static void exponential_burst(struct open_job *job, struct sim_random *r)
{
	job->cpu_ms = sim_random_exponential(r, 10);
}

/* The services have a squared coefficient of variation of 4. */
static void wide_burst(struct open_job *job, struct sim_random *r)
{
	job->cpu_ms = sim_random_gamma(r, 10, 20);
}

static void constant_burst(struct open_job *job, struct sim_random *r)
{
	(void)r;
	job->cpu_ms = 10;
}

static void assert_laws(const struct open_system *o)
{
	assert_int_equal(o->entered, o->left);
	assert_near(o->resident, o->rate * o->response_ms, 1e-9); /* Little */
}

static void mm1_at_the_disk(void **state)
{
	const double service = 250.0 / 40;

	(void)state;
	for (double load = 0.3; load < 0.8; load += 0.2) {
		struct open_system o = {
			.draw = one_request, .interarrival_ms = service / load, .jobs = JOBS};

		bench_init(&o.bench);
		open_run(&o, 1);
		assert_near(o.response_ms, service / (1 - load), 0.02);
		assert_near(o.sums.disk_busy_ms / o.end_ms, load, 0.01);
		assert_laws(&o);
		assert_true(o.sums.disk_requests == JOBS);
		/* Utilisation law: busy = sum of services, to the last digits. */
		assert_near(o.sums.disk_busy_ms, o.sums.service_sum, 1e-12);
		assert_near(o.sums.disk_mb, o.sums.service_sum * 40 / 1000, 1e-9);
	}
}

/* Pollaczek-Khinchine on the FC disk: 8 ms + 250 KB (sd 50) at 40 MB/s. */
static void mg1_at_the_disk(void **state)
{
	double s = rules_service_ms(8, 250, 40), s2 = rules_service_ms2(8, 250, 50, 40);

	(void)state;
	for (double load = 0.5; load < 0.9; load += 0.2) {
		struct open_system o = {
			.draw = gamma_request, .interarrival_ms = s / load, .jobs = JOBS};

		bench_init(&o.bench);
		o.bench.machine.disk_fixed_ms = 8;
		open_run(&o, 2);
		assert_near(o.response_ms, rules_disk_response_ms(s, s2, load / s, load, 1), 0.02);
		assert_near(o.sums.service_sum / JOBS, s, 0.001);
		assert_near(o.sums.service_sum2 / JOBS, s2, 0.001);
		assert_laws(&o);
	}
}

static void md1_at_the_disk(void **state)
{
	struct open_system o = {.draw = md_request, .interarrival_ms = 6.25 / 0.8, .jobs = JOBS};

	(void)state;
	bench_init(&o.bench);
	open_run(&o, 3);
	assert_near(o.response_ms, 6.25 * (1 + 0.8 / (2 * 0.2)), 0.02);
	assert_laws(&o);
}

static void dd1_waits_for_nobody(void **state)
{
	struct open_system o = {
		.draw = md_request, .interarrival_ms = 12.5, .regular = true, .jobs = 1000};

	(void)state;
	bench_init(&o.bench);
	open_run(&o, 1);
	assert_near(o.response_ms, 6.25, 1e-9);
	assert_near(o.sums.disk_busy_ms, 6250, 1e-12);
	assert_near(o.end_ms, 999 * 12.5 + 6.25, 1e-12);
}

/* With processor sharing the mean depends only on the mean size. */
static void mg1_processor_sharing(void **state)
{
	void (*const draws[])(struct open_job *, struct sim_random *) = {
		exponential_burst, wide_burst, constant_burst};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct open_system o = {
			.draw = draws[i], .interarrival_ms = 10 / 0.7, .jobs = 2 * JOBS};

		bench_init(&o.bench);
		open_run(&o, 4);
		assert_near(o.response_ms, 10 / (1 - 0.7), 0.02);
		assert_near(o.sums.cpu_busy_ms / o.end_ms, 0.7, 0.01);
		assert_laws(&o);
	}
}

/* With c cores and exponential sizes, processor sharing has the mean of M/M/c. */
static void mmc_on_cores(void **state)
{
	struct open_system o = {
		.draw = exponential_burst, .interarrival_ms = 10 / (4 * 0.8), .jobs = 2 * JOBS};
	double a = 4 * 0.8, term = 1, sum = 0, wait;

	(void)state;
	for (int k = 0; k < 4; k++, term *= a / k)
		sum += term;
	wait = term / (1 - 0.8) / (sum + term / (1 - 0.8)); /* Erlang C */
	bench_init(&o.bench);
	o.bench.machine.cores = 4;
	open_run(&o, 5);
	assert_near(o.response_ms, 10 + wait * 10 / (4 * (1 - 0.8)), 0.02);
	assert_near(o.sums.cpu_busy_ms / o.end_ms, a, 0.01);
	assert_laws(&o);
}

/*
 * While tasks share, they are slower by the cost of switches; speed is relative to the
 * reference.
 */
static void slice_and_speed(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b);
	b.params.slice_ms = 10;
	b.params.switch_ms = 0.1;
	b.machine.cpu_mips = 500;
	bench_start(&b, 2);
	for (uint32_t i = 0; i < 2; i++) {
		b.tasks[i] = task_plain(i);
		assert_int_equal(node_enter(b.model, 0, i, 0), 0);
		assert_int_equal(node_run(b.model, 0, i, 100 + 100 * i, -1, 0), 0);
	}
	assert_near(node_next(b.model, 0), 200 * 2 * 10.1 / 10, 1e-12);
	assert_int_equal(bench_until(&b, 405), 1);
	assert_near(node_next(b.model, 0), 404 + 200, 1e-12); /* alone, without switches */
	bench_end(&b);
}

/* A closed network of N tasks between processor and disk, by mean value analysis. */
static double closed_throughput(unsigned int n, double burst, double service)
{
	double at_cpu = 0, at_disk = 0, x = 0;

	for (unsigned int k = 1; k <= n; k++) {
		double cpu = burst * (1 + at_cpu), disk = service * (1 + at_disk);

		x = k / (cpu + disk);
		at_cpu = x * cpu;
		at_disk = x * disk;
	}
	return x;
}

static void closed_network(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 8; n += n) {
		struct bench b;
		struct node_sums sums;
		const double end = 3e6;

		bench_init(&b);
		bench_start(&b, n);
		for (uint32_t i = 0; i < n; i++) {
			b.tasks[i] = task_plain(100 + i);
			b.tasks[i].io_per_ms = 0.125;
			b.tasks[i].request_kb = b.tasks[i].request_sd_kb = 250;
			assert_int_equal(node_enter(b.model, 0, i, 0), 0);
			assert_int_equal(node_run(b.model, 0, i, 1e9, -1, 0), 0);
		}
		assert_int_equal(bench_until(&b, end), 0);
		node_sums(b.model, 0, end, &sums);
		assert_near(sums.disk_requests / end, closed_throughput(n, 8, 6.25), 0.02);
		assert_near(sums.cpu_busy_ms, 8 * sums.disk_requests, 0.02);
		bench_end(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mm1_at_the_disk),	 cmocka_unit_test(mg1_at_the_disk),
		cmocka_unit_test(md1_at_the_disk),	 cmocka_unit_test(dd1_waits_for_nobody),
		cmocka_unit_test(mg1_processor_sharing), cmocka_unit_test(mmc_on_cores),
		cmocka_unit_test(slice_and_speed),	 cmocka_unit_test(closed_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
