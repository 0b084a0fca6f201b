/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The fluid level (engine/fluid.c): it is exact where it must be, and its sums are right. */
#include <string.h>

#include "tests/sim/node_driver.h"

#define KB_PER_REQUEST 250.0
#define SERVICE_MS     (8 + KB_PER_REQUEST / 40)

static void fluid_init(struct bench *b)
{
	bench_init(b);
	b->machine.disk_fixed_ms = 8;
	b->params.fidelity = SIM_FLUID;
}

/* A task of CPU_MS with the given number of accesses, all of one size. */
static struct node_task task_given(uint32_t number, double cpu_ms, double requests)
{
	struct node_task t = task_plain(number);

	t.cpu_ms = cpu_ms;
	t.requests = requests;
	t.request_kb = KB_PER_REQUEST;
	return t;
}

static void begin(struct bench *b, uint32_t id, double now)
{
	const struct node_task *t = &b->tasks[id];

	assert_int_equal(node_enter(b->model, 0, id, now), 0);
	assert_int_equal(node_run(b->model, 0, id, t->cpu_ms, t->requests, now), 0);
}

/*
 * Steps to the next end, which must be that of TASK (or of work with this token), and returns its
 * time.
 */
static double next_end(struct bench *b, uint32_t task)
{
	const struct node_done *done;
	double now;
	int n;

	do {
		now = node_next(b->model, 0);
		assert_true(now < NODE_NEVER);
		n = node_step(b->model, 0, now, &done);
	} while (n == 0);
	assert_int_equal(n, 1);
	assert_int_equal(done[0].task, task);
	return now;
}

static void one_task_alone_is_exact(void **state)
{
	struct bench b;

	(void)state;
	fluid_init(&b);
	b.machine.cpu_mips = 500; /* half the reference */
	bench_start(&b, 2);
	b.tasks[0] = task_given(0, 1000, 40);
	begin(&b, 0, 100);
	assert_near(next_end(&b, 0), 100 + 2000 + 40 * SERVICE_MS, 1e-12);
	assert_near(b.tasks[0].done_ms, 1000, 1e-12);
	assert_near(b.tasks[0].accessed_mb, 40 * 0.25, 1e-12);
	node_leave(b.model, 0, 0, node_next(b.model, 0));
	assert_true(node_next(b.model, 0) == NODE_NEVER);
	bench_end(&b);
}

static void a_segment_of_nothing_ends_at_once(void **state)
{
	struct bench b;

	(void)state;
	fluid_init(&b);
	bench_start(&b, 3);
	b.tasks[0] = task_given(0, 1000, 40);
	b.tasks[1] = task_given(1, 0, 0);
	begin(&b, 0, 0);
	begin(&b, 1, 50);
	assert_near(next_end(&b, 1), 50, 0);
	assert_near(next_end(&b, 0), 1000 + 40 * SERVICE_MS, 1e-12);
	bench_end(&b);
}

/* Jobs of random length at random times: both levels give the same ends. */
static void same_ends(uint32_t jobs, double cpu_ms, double requests_most, double cores)
{
	double ends[2][64];

	for (int level = 0; level < 2; level++) {
		struct sim_random r = sim_random_stream(4, 4, jobs);
		double at = 0, last = 0;
		struct bench b;
		uint32_t in = 0, out = 0;

		fluid_init(&b);
		b.machine.cores = cores;
		b.params.fidelity = level == 0 ? SIM_REQUEST : SIM_FLUID;
		bench_start(&b, jobs);
		while (out < jobs) {
			double next = node_next(b.model, 0);
			const struct node_done *done;

			assert_true(next >= last);
			if (in < jobs && at <= next) {
				double requests = (double)sim_random_integer(
					&r, 1, 1 + (uint64_t)requests_most);

				b.tasks[in] = task_given(in, cpu_ms * sim_random_between(&r, 0, 2),
							 requests_most > 0 ? requests : 0);
				begin(&b, in++, last = at);
				at += sim_random_exponential(&r,
							     cpu_ms / cores + requests_most * 6);
				continue;
			}
			for (int i = 0, n = node_step(b.model, 0, last = next, &done); i < n; i++)
				ends[level][done[i].task] = next, out++;
			for (uint32_t i = node_members(b.model, 0); i-- > 0;) {
				uint32_t id = node_member(b.model, 0, i);

				if (b.tasks[id].state == 0)
					node_leave(b.model, 0, id, next);
			}
		}
		bench_end(&b);
	}
	for (uint32_t i = 0; i < jobs; i++)
		assert_near(ends[1][i], ends[0][i], 1e-9);
}

static void computation_alone_is_exact(void **state)
{
	(void)state;
	same_ends(60, 1000, 0, 1);
	same_ends(60, 1000, 0, 3);
}

/* FCFS with one request per job and with several: the same queue as at the request level. */
static void the_disk_alone_is_exact(void **state)
{
	(void)state;
	same_ends(60, 0, 0.5, 1);
	same_ends(60, 0, 6, 1);
}

/* Pollaczek-Khinchine: M/G/1 with one Gamma service per job, at medium and high load. */
static void open_request(struct open_job *job, struct sim_random *r)
{
	(void)r;
	job->cpu_ms = 0;
	job->requests = job->task.requests = 1;
	job->task.request_kb = 400;
	job->task.request_sd_kb = 300;
}

static void single_requests_are_mg1(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct open_system o = {.interarrival_ms = i == 0 ? 20 : 12.5,
					.draw = open_request,
					.jobs = 100000,
					.room = 2000};
		double rho = 10 / o.interarrival_ms, second = 10 * 10 + 7.5 * 7.5;

		bench_init(&o.bench);
		o.bench.params.fidelity = SIM_FLUID;
		open_run(&o, 1);
		assert_near(o.response_ms, 10 + second / o.interarrival_ms / (2 * (1 - rho)), 0.02);
		assert_near(o.resident, o.rate * o.response_ms, 1e-9);
	}
}

static void a_mix(struct open_job *job, struct sim_random *r)
{
	job->cpu_ms = sim_random_between(r, 10, 400);
	job->task.io_per_ms = sim_random_between(r, 0, 0.08);
	job->task.request_kb = KB_PER_REQUEST;
	job->task.request_sd_kb = 50;
	job->task.reaccess = 0.5;
	job->task.memory_mb = 4;
	job->task.faults_per_ms = 0.01;
}

/* When all jobs have left, all their work is done; the measured sums are consistent. */
static void nothing_is_lost(void **state)
{
	struct open_system o = {.interarrival_ms = 400, .draw = a_mix, .jobs = 20000, .room = 5000};
	struct sim_random sizes = sim_random_stream(3, 11, 0);
	double cpu_ms = 0, expected = 0;

	(void)state;
	fluid_init(&o.bench);
	o.bench.machine.ram_mb = 18;
	o.bench.machine.buffer_mb = 2;
	open_run(&o, 3);
	for (uint64_t i = 0; i < o.jobs; i++) {
		struct open_job j = {.task = task_plain(0)};

		a_mix(&j, &sizes);
		cpu_ms += j.cpu_ms;
		expected += j.cpu_ms * j.task.io_per_ms;
	}
	assert_near(o.sums.cpu_busy_ms, cpu_ms, 0.01);
	assert_near(o.sums.accesses, expected, 0.01);
	assert_true(o.sums.hits > 0 && o.sums.hits < o.sums.accesses);
	assert_true(o.sums.page_faults > 0);
	assert_near(o.sums.disk_requests, o.sums.accesses - o.sums.hits + o.sums.page_faults, 1e-9);
	assert_near(o.sums.disk_busy_ms, o.sums.service_sum, 1e-12);
	assert_near(o.sums.disk_mb, 0.25 * (o.sums.accesses - o.sums.hits), 0.01);
	assert_true(o.sums.disk_busy_ms < o.end_ms && o.sums.cpu_busy_ms < o.end_ms);
	assert_near(o.resident, o.rate * o.response_ms, 1e-9);
}

/* A stopped task continues with what it had left, as if it had not stopped. */
static void stop_returns_what_is_left(void **state)
{
	struct bench b;
	double left;

	(void)state;
	fluid_init(&b);
	bench_start(&b, 2);
	b.tasks[0] = task_given(0, 1000, 40);
	b.tasks[1] = task_given(1, 800, 0);
	begin(&b, 0, 0);
	left = node_stop(b.model, 0, 0, 0.25 * (1000 + 40 * SERVICE_MS));
	assert_near(left, 750, 1e-9);
	assert_near(b.tasks[0].requests_left, 30, 1e-9);
	assert_near(b.tasks[0].done_ms, 250, 1e-9);
	assert_near(b.tasks[0].accessed_mb, 2.5, 1e-9);
	assert_true(node_stop(b.model, 0, 0, 5000) == 0);
	node_leave(b.model, 0, 0, 5000);
	begin(&b, 1, 5000);
	assert_near(next_end(&b, 1), 5800, 1e-12);
	node_leave(b.model, 0, 1, 5800);
	assert_int_equal(node_enter(b.model, 0, 0, 6000), 0);
	assert_int_equal(node_run(b.model, 0, 0, left, b.tasks[0].requests_left, 6000), 0);
	assert_near(next_end(&b, 0), 6000 + 0.75 * (1000 + 40 * SERVICE_MS), 1e-9);
	assert_near(b.tasks[0].done_ms, 1000, 1e-9);
	assert_near(b.tasks[0].accessed_mb, 10, 1e-9);
	bench_end(&b);
}

/* Transfers are served one after another; a task that uses the disk waits meanwhile. */
static void transfers_are_served_in_order(void **state)
{
	struct node_sums sums;
	struct bench b;
	double end;

	(void)state;
	fluid_init(&b);
	bench_start(&b, 2);
	b.tasks[0] = task_given(0, 1000, 100);
	b.tasks[1] = task_given(1, 1000, 0);
	assert_int_equal(node_disk_work(b.model, 0, 500, 70, 0), 0);
	assert_int_equal(node_disk_work(b.model, 0, 100, 71, 10), 0);
	assert_int_equal(node_disk_work(b.model, 0, 1, 72, 20), 0);
	assert_int_equal(node_disk_work(b.model, 0, 300, 73, 20), 0);
	assert_int_equal(node_at_disk(b.model, 0), 0);
	assert_near(next_end(&b, 70), 500, 1e-12);
	assert_near(next_end(&b, 71), 600, 1e-12);
	assert_near(next_end(&b, 72), 601, 1e-12);
	assert_near(next_end(&b, 73), 901, 1e-12);
	begin(&b, 0, 1000);
	begin(&b, 1, 1000);
	assert_int_equal(node_disk_work(b.model, 0, 20000, 74, 1000), 0);
	assert_near(next_end(&b, 1), 2000, 0.05); /* while another transfer waits */
	node_leave(b.model, 0, 1, node_next(b.model, 0));
	end = next_end(&b, 74);
	assert_near(end, 21000, 0.003);
	node_refresh(b.model, 0, end);
	assert_true(b.tasks[0].done_ms < 40); /* only a burst or two */
	end = next_end(&b, 0);
	assert_near(end, 21000 + 1000 + 100 * SERVICE_MS, 0.02);
	node_sums(b.model, 0, end, &sums);
	assert_near(sums.disk_requests, 100, 1e-9);
	assert_near(sums.service_sum, 100 * SERVICE_MS, 1e-9);
	assert_near(sums.disk_busy_ms, 20901 + 100 * SERVICE_MS, 1e-9);
	bench_end(&b);
}

static void loads_are_expected_numbers(void **state)
{
	struct bench b;

	(void)state;
	fluid_init(&b);
	bench_start(&b, 8);
	for (uint32_t i = 0; i < 8; i++) {
		b.tasks[i] = task_plain(i);
		b.tasks[i].cpu_ms = 10000;
		b.tasks[i].request_kb = KB_PER_REQUEST;
		b.tasks[i].io_per_ms = i < 5 ? 3 : 0;
		b.tasks[i].requests = -1;
		begin(&b, i, 0);
	}
	assert_int_equal(node_at_disk(b.model, 0), 5); /* the tasks hardly ever compute */
	assert_int_equal(node_runnable(b.model, 0), 3);
	bench_end(&b);
}

/* Runs the mix and looks at the node every LOOK_MS; returns the sum of all ends. */
static double looked_at(double look_ms, struct node_sums *sums)
{
	struct sim_random sizes = sim_random_stream(9, 9, 9);
	double now = 0, sum = 0, look = look_ms;
	struct bench b;

	fluid_init(&b);
	b.machine.ram_mb = 60;
	bench_start(&b, 20);
	for (uint32_t i = 0; i < 20; i++) {
		struct open_job j = {.requests = -1, .task = task_plain(i)};

		a_mix(&j, &sizes);
		j.task.cpu_ms = j.cpu_ms;
		b.tasks[i] = j.task;
		begin(&b, i, 0);
	}
	while (node_next(b.model, 0) < NODE_NEVER) {
		const struct node_done *done;
		double next = node_next(b.model, 0);

		if (look < next) {
			node_refresh(b.model, 0, look);
			node_sums(b.model, 0, look, sums);
			(void)node_runnable(b.model, 0);
			look += look_ms;
			continue;
		}
		for (int i = 0, n = node_step(b.model, 0, now = next, &done); i < n; i++)
			sum += now * (1 + done[i].task);
	}
	node_sums(b.model, 0, now, sums);
	bench_end(&b);
	return sum;
}

static void looking_changes_nothing(void **state)
{
	struct node_sums alone, often;
	double ends = looked_at(1e9, &alone);

	(void)state;
	assert_true(ends == looked_at(1e9, &alone)); /* Repeating a run gives the same result. */
	assert_near(looked_at(7, &often), ends, 1e-9);
	assert_near(often.disk_requests, alone.disk_requests, 1e-9);
	assert_near(often.cpu_busy_ms, alone.cpu_busy_ms, 1e-9);
}

static void moving_the_tasks_and_memory(void **state)
{
	struct bench b;
	struct node_task *moved;
	size_t empty;

	(void)state;
	fluid_init(&b);
	bench_start(&b, 100);
	empty = node_model_bytes(b.model);
	for (uint32_t i = 0; i < 100; i++) {
		b.tasks[i] = task_given(i, 1000 + i, 20);
		begin(&b, i, 0);
	}
	assert_true(node_model_bytes(b.model) > empty);
	moved = malloc(100 * sizeof(*moved));
	assert_non_null(moved);
	memcpy(moved, b.tasks, 100 * sizeof(*moved));
	free(b.tasks);
	b.tasks = moved;
	node_model_tasks(b.model, moved, sizeof(*moved), 0);
	assert_int_equal(bench_until(&b, 1e9), 100);
	bench_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_task_alone_is_exact),
		cmocka_unit_test(a_segment_of_nothing_ends_at_once),
		cmocka_unit_test(computation_alone_is_exact),
		cmocka_unit_test(the_disk_alone_is_exact),
		cmocka_unit_test(single_requests_are_mg1),
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(stop_returns_what_is_left),
		cmocka_unit_test(transfers_are_served_in_order),
		cmocka_unit_test(loads_are_expected_numbers),
		cmocka_unit_test(looking_changes_nothing),
		cmocka_unit_test(moving_the_tasks_and_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
