/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The batch queue with EASY backfill, against a plain simulation of it: who starts when, that
 * requested times decide, and that the first in the queue is never delayed.
 */
#include "tests/sim/core_fixture.h"

#include "sim/random.h"

#define NODES 8
#define N     300

static void batch_init(struct bench *b)
{
	bench_init(b, "8xfc");
	b->policy = "bs";
	b->params.fidelity = SIM_FLUID;
	b->params.bs_backfill = BS_EASY;
	b->params.rules.fixed_cost_ms = 0;
	b->params.network_latency_ms = 0;
}

static struct sim_job *batch_job(struct bench *b, double arrival, uint32_t tasks, double run,
				 double requested)
{
	struct sim_job *j = bench_job(b, arrival, (uint32_t)(b->njobs % NODES), run);

	j->tasks = tasks;
	j->is_batch = true;
	j->batch = (struct sim_batch){.requested_ms = requested, .run_ms = run};
	return j;
}

/* --- the plain simulation ----------------------------------------------------------- */

struct plain {
	const struct bench *b;
	double start[N], now;
	uint32_t free;
};

static double plain_end(const struct plain *p, size_t i, bool expected)
{
	const struct sim_job *j = &p->b->jobs[i];
	double end = p->start[i] + (expected ? j->batch.requested_ms : j->cpu_ms);

	return expected && end < p->now ? p->now : end;
}

static bool plain_runs(const struct plain *p, size_t i)
{
	return p->start[i] >= 0 && plain_end(p, i, false) > p->now;
}

static void plain_start(struct plain *p, size_t i)
{
	p->start[i] = p->now;
	p->free -= p->b->jobs[i].tasks;
}

/* The first time at which TASKS nodes are free as expected, and how many more are free then. */
static double plain_reserve(const struct plain *p, uint32_t tasks, uint32_t *extra)
{
	for (double time = p->now;;) {
		uint32_t nodes = p->free;
		double next = INFINITY;

		for (size_t i = 0; i < p->b->njobs; i++) {
			double end = plain_runs(p, i) ? plain_end(p, i, true) : INFINITY;

			if (end <= time)
				nodes += p->b->jobs[i].tasks;
			else if (end < next)
				next = end;
		}
		*extra = nodes - tasks;
		if (nodes >= tasks)
			return time;
		time = next;
	}
}

static bool plain_waits(const struct plain *p, size_t i)
{
	return p->start[i] < 0 && p->b->jobs[i].arrival_ms <= p->now;
}

static void plain_schedule(struct plain *p)
{
	double reserved = -1;
	uint32_t extra = 0;

	for (size_t i = 0; i < p->b->njobs; i++) {
		const struct sim_job *j = &p->b->jobs[i];

		if (!plain_waits(p, i))
			continue;
		if (reserved < 0 && j->tasks <= p->free) {
			plain_start(p, i);
		} else if (reserved < 0) {
			reserved = plain_reserve(p, j->tasks, &extra);
		} else if (j->tasks <= p->free) {
			if (p->now + j->batch.requested_ms > reserved) {
				if (j->tasks > extra)
					continue;
				extra -= j->tasks;
			}
			plain_start(p, i);
		}
	}
}

static void plain_run(struct plain *p, const struct bench *b)
{
	*p = (struct plain){.b = b, .free = NODES};
	for (size_t i = 0; i < b->njobs; i++)
		p->start[i] = -1;
	for (double next = 0; next < INFINITY;) {
		bool came = false, ended = false;

		for (size_t i = 0; i < b->njobs; i++) {
			if (p->start[i] >= 0 && plain_end(p, i, false) > p->now &&
			    plain_end(p, i, false) <= next) {
				p->free += b->jobs[i].tasks;
				ended = true;
			}
			came |= b->jobs[i].arrival_ms == next;
		}
		p->now = next;
		if (came || ended)
			plain_schedule(p);
		next = INFINITY;
		for (size_t i = 0; i < b->njobs; i++) {
			double at =
				p->start[i] >= 0 ? plain_end(p, i, false) : b->jobs[i].arrival_ms;

			if (at > p->now && at < next)
				next = at;
		}
	}
}

/* --- tests --------------------------------------------------------------------------- */

/* FACTOR: how much longer than they run jobs ask for, at most; below 1: some run over. */
static void random_jobs(struct bench *b, uint64_t seed, double factor)
{
	struct sim_random r = sim_random_stream(seed, 1, 0);
	double arrival = 0;

	batch_init(b);
	for (size_t i = 0; i < N; i++) {
		double run = 64 * ceil(40 * sim_random_uniform(&r));
		double more = 1 + (factor - 1) * sim_random_uniform(&r);

		arrival += 64 * floor(14 * sim_random_uniform(&r));
		batch_job(b, arrival, 1 + (uint32_t)(NODES * pow(sim_random_uniform(&r), 2)), run,
			  64 * ceil(run * more / 64));
	}
}

static void same_as_plain(uint64_t seed, double factor)
{
	struct sim_result r;
	struct plain *p = malloc(sizeof(*p));
	struct seen *s = malloc(sizeof(*s));
	struct bench b;

	assert_non_null(p);
	assert_non_null(s);
	random_jobs(&b, seed, factor);
	plain_run(p, &b);
	bench_see(&b, &r, s);
	assert_conserved(&r);
	for (size_t i = 0; i < N; i++) {
		if (fabs(s->start[i] - p->start[i]) > 1e-3)
			print_error("seed %llu, factor %g, job %zu\n", (unsigned long long)seed,
				    factor, i);
		assert_close(s->start[i], p->start[i], 1e-3);
	}
	sim_result_free(&r);
	bench_free(&b);
	free(p);
	free(s);
}

static void starts_as_a_plain_simulation_says(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		same_as_plain(seed, 1);
		same_as_plain(seed, 8);
		same_as_plain(seed, 0.25);
	}
}

/*
 * Job 0 holds 6 of 8 nodes to 1000.  Job 1 needs all 8 and gets 1000 reserved.  Job 2 ends before
 * and passes; job 3 would end after and waits; job 4, too, though it is narrow: job 1 leaves no
 * node over.
 */
static void the_first_is_not_delayed(void **state)
{
	struct sim_result r;
	struct seen s;
	struct bench b;

	(void)state;
	batch_init(&b);
	batch_job(&b, 0, 6, 1000, 1000);
	batch_job(&b, 10, 8, 500, 500);
	batch_job(&b, 20, 2, 900, 980);
	batch_job(&b, 30, 2, 10, 2000);
	batch_job(&b, 40, 1, 10, 2000);
	bench_see(&b, &r, &s);
	assert_close(s.start[1], 1000, 1e-6);
	assert_close(s.start[2], 20, 1e-6);
	assert_close(s.start[3], 1500, 1e-6);
	assert_close(s.start[4], 1500, 1e-6);
	assert_int_equal(r.queued, 3);
	sim_result_free(&r);
	bench_free(&b);
}

/* The reservation of a job that needs 7 of 8 nodes leaves one over: a long narrow job takes it. */
static void extra_nodes_are_for_long_jobs(void **state)
{
	struct sim_result r;
	struct seen s;
	struct bench b;

	(void)state;
	batch_init(&b);
	batch_job(&b, 0, 6, 1000, 1000);
	batch_job(&b, 10, 7, 500, 500);
	batch_job(&b, 20, 1, 9000, 9000);
	batch_job(&b, 30, 1, 9000, 9000); /* the second one would delay job 1 */
	bench_see(&b, &r, &s);
	assert_close(s.start[1], 1000, 1e-6);
	assert_close(s.start[2], 20, 1e-6);
	assert_close(s.start[3], 1500, 1e-6);
	sim_result_free(&r);
	bench_free(&b);
}

static void without_requested_times_run_times_decide(void **state)
{
	struct sim_result r;
	struct seen s;
	struct bench b;

	(void)state;
	batch_init(&b);
	batch_job(&b, 0, 6, 1000, 0);
	batch_job(&b, 10, 8, 500, 0);
	batch_job(&b, 20, 2, 900, 0);
	batch_job(&b, 30, 2, 2000, 0);
	bench_see(&b, &r, &s);
	assert_close(s.start[1], 1000, 1e-6);
	assert_close(s.start[2], 20, 1e-6);
	assert_close(s.start[3], 1500, 1e-6);
	sim_result_free(&r);
	bench_free(&b);
}

static void a_job_wider_than_the_cluster_blocks_nobody(void **state)
{
	struct sim_result r;
	struct bench b;

	(void)state;
	batch_init(&b);
	batch_job(&b, 0, 9, 10, 10);
	batch_job(&b, 5, 8, 10, 10);
	batch_job(&b, 6, 1, 10, 10);
	bench_run(&b, &r);
	assert_int_equal(r.completed, 2);
	assert_int_equal(r.unfinished, 1);
	sim_result_free(&r);
	bench_free(&b);
}

static void first_come_first_served_is_another(void **state)
{
	struct sim_result r;
	struct seen s;
	struct bench b;

	(void)state;
	batch_init(&b);
	b.params.bs_backfill = BS_FCFS;
	batch_job(&b, 0, 6, 1000, 1000);
	batch_job(&b, 10, 8, 500, 500);
	batch_job(&b, 20, 2, 900, 900);
	bench_see(&b, &r, &s);
	assert_close(s.start[2], 1500, 1e-6);
	sim_result_free(&r);
	bench_free(&b);
}

static void negative_requested_time_is_refused(void **state)
{
	struct sim_result r;
	struct bench b;

	(void)state;
	batch_init(&b);
	batch_job(&b, 0, 1, 10, -1);
	assert_int_equal(bench_try(&b, &r), -EINVAL);
	bench_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_as_a_plain_simulation_says),
		cmocka_unit_test(the_first_is_not_delayed),
		cmocka_unit_test(extra_nodes_are_for_long_jobs),
		cmocka_unit_test(without_requested_times_run_times_decide),
		cmocka_unit_test(a_job_wider_than_the_cluster_blocks_nobody),
		cmocka_unit_test(first_come_first_served_is_another),
		cmocka_unit_test(negative_requested_time_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
