/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The request level: stopping in each state, paging, hit rates, transfers and conservation. */
#include "tests/sim/node_driver.h"

static void member(struct bench *b, uint32_t id, double now)
{
	assert_int_equal(node_enter(b->model, 0, id, now), 0);
}

static void segment(struct bench *b, uint32_t id, double cpu_ms, double requests, double now)
{
	assert_int_equal(node_run(b->model, 0, id, cpu_ms, requests, now), 0);
}

static void given_accesses_are_evenly_spaced(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b);
	bench_start(&b, 1);
	b.tasks[0] = task_plain(0);
	b.tasks[0].request_kb = 400; /* 10 ms */
	member(&b, 0, 0);
	segment(&b, 0, 80, 3, 0);
	for (int i = 0; i < 3; i++) { /* 20 + 10 each time */
		assert_near(node_next(b.model, 0), 30 * i + 20, 1e-12);
		assert_int_equal(bench_until(&b, 30 * i + 20), 0);
		assert_int_equal(node_at_disk(b.model, 0), 1);
		assert_int_equal(node_runnable(b.model, 0), 0);
		assert_near(b.tasks[0].done_ms, 20 * (i + 1), 1e-12);
		assert_int_equal(bench_until(&b, 30 * i + 30), 0);
	}
	assert_int_equal(bench_until(&b, 109.9), 0);
	assert_int_equal(bench_until(&b, 110.1), 1);
	assert_true(b.tasks[0].done_ms == 80);
	assert_near(b.tasks[0].accessed_mb, 1.2, 1e-12);
	/* Without computation, each access follows the previous one at once. */
	segment(&b, 0, 0, 5, 200);
	assert_int_equal(bench_until(&b, 249.9), 0);
	assert_int_equal(bench_until(&b, 250.1), 1);
	/* An empty segment ends at once. */
	segment(&b, 0, 0, 0, 300);
	assert_true(node_next(b.model, 0) == 300);
	assert_int_equal(bench_until(&b, 300), 1);
	assert_true(node_next(b.model, 0) == NODE_NEVER);
	bench_end(&b);
}

static void stop_while_computing(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b);
	bench_start(&b, 3);
	for (uint32_t i = 0; i < 3; i++) {
		b.tasks[i] = task_plain(i);
		member(&b, i, 0);
		segment(&b, i, 100 + i, -1, 0);
	}
	/* The age is exact at any time. */
	node_refresh(b.model, 0, 60);
	for (uint32_t i = 0; i < 3; i++)
		assert_near(b.tasks[i].done_ms, 20, 1e-12);
	assert_near(node_stop(b.model, 0, 1, 90), 71, 1e-12);
	assert_near(b.tasks[1].done_ms, 30, 1e-12);
	assert_int_equal(node_runnable(b.model, 0), 2);
	node_leave(b.model, 0, 1, 90);
	assert_int_equal(node_members(b.model, 0), 2);
	assert_int_equal(bench_until(&b, 229.9), 0);
	/* 70 of 100 are left, and two tasks share the processor */
	assert_int_equal(bench_until(&b, 230.1), 1);
	assert_int_equal(bench_until(&b, 232.1), 1);
	assert_true(b.tasks[0].done_ms == 100 && b.tasks[2].done_ms == 102);
	/* A task without a segment has nothing to stop. */
	assert_true(node_stop(b.model, 0, 0, 240) == 0);
	/* It continues where it was. */
	member(&b, 1, 240);
	segment(&b, 1, 71, b.tasks[1].requests_left, 240);
	assert_int_equal(bench_until(&b, 311.1), 1);
	assert_near(b.tasks[1].done_ms, 101, 1e-12);
	bench_end(&b);
}

static void stop_at_the_disk(void **state)
{
	struct bench b;
	struct node_sums sums;

	(void)state;
	bench_init(&b);
	bench_start(&b, 3);
	for (uint32_t i = 0; i < 3; i++) {
		b.tasks[i] = task_plain(i);
		b.tasks[i].request_kb = 400;
		member(&b, i, 0);
		segment(&b, i, 0, 2, 0);
	}
	assert_int_equal(node_at_disk(b.model, 0), 3);
	/* Task 0 is in service: the disk finishes the request and drops its result. */
	assert_true(node_stop(b.model, 0, 0, 5) == 0);
	assert_true(b.tasks[0].requests_left == 1);
	/* Task 1 waits: its access is withdrawn. */
	assert_true(node_stop(b.model, 0, 1, 5) == 0);
	assert_true(b.tasks[1].requests_left == 2);
	assert_true(b.tasks[1].accessed_mb == 0);
	node_leave(b.model, 0, 1, 5);
	assert_int_equal(node_at_disk(b.model, 0), 1);
	assert_near(node_next(b.model, 0), 10, 1e-12);
	/* Task 0 continues here while its old access is still in service. */
	segment(&b, 0, 0, b.tasks[0].requests_left, 6);
	assert_int_equal(node_at_disk(b.model, 0), 2);
	assert_true(node_stop(b.model, 0, 0, 7) == 0);
	assert_true(b.tasks[0].requests_left == 1);
	segment(&b, 0, 0, b.tasks[0].requests_left, 7);
	/* order of service: 0 (dropped), 2, 0, 2 */
	assert_int_equal(bench_until(&b, 29.9), 0);
	assert_int_equal(bench_until(&b, 30.1), 1);
	assert_int_equal(bench_until(&b, 40.1), 1);
	node_sums(b.model, 0, 40, &sums);
	assert_true(sums.disk_requests == 4);
	assert_near(sums.disk_busy_ms, 40, 1e-12);
	assert_near(sums.disk_mb, 1.6, 1e-12);
	bench_end(&b);
}

/* By rate: an access that was waiting is issued at once when the task continues elsewhere. */
static void withdrawn_access_is_owed(void **state)
{
	struct bench b;
	double left;

	(void)state;
	bench_init(&b);
	bench_start(&b, 1);
	b.tasks[0] = task_plain(5);
	b.tasks[0].io_per_ms = 0.01;
	b.tasks[0].request_kb = 400;
	member(&b, 0, 0);
	assert_int_equal(node_disk_work(b.model, 0, 1e6, 77, 0), 0);
	segment(&b, 0, 1e5, -1, 0);
	bench_until(&b, 9e5);
	assert_int_equal(node_at_disk(b.model, 0), 1);
	left = node_stop(b.model, 0, 0, 9e5);
	assert_true(left > 0 && left < 1e5);
	assert_int_equal(node_at_disk(b.model, 0), 0);
	segment(&b, 0, left, b.tasks[0].requests_left, 9e5);
	assert_true(node_next(b.model, 0) == 9e5);
	bench_until(&b, 9e5);
	assert_int_equal(node_at_disk(b.model, 0), 1);
	assert_near(b.tasks[0].done_ms, 1e5 - left, 1e-12);
	bench_end(&b);
}

static void transfers_queue_at_the_disk(void **state)
{
	const struct node_done *done;
	struct node_sums sums;
	struct bench b;

	(void)state;
	bench_init(&b);
	bench_start(&b, 1);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(node_disk_work(b.model, 0, 10, 100 + i, 5), 0);
	for (uint32_t i = 0; i < 40; i++) {
		assert_near(node_next(b.model, 0), 15 + 10 * i, 1e-12);
		assert_int_equal(node_step(b.model, 0, node_next(b.model, 0), &done), 1);
		assert_true(done[0].disk_work);
		assert_int_equal(done[0].task, 100 + i);
	}
	node_sums(b.model, 0, 500, &sums);
	assert_near(sums.disk_busy_ms, 400, 1e-12);
	assert_true(sums.disk_requests == 0 && sums.accesses == 0);
	assert_true(node_next(b.model, 0) == NODE_NEVER);
	bench_end(&b);
}

static void many_ends_come_in_portions(void **state)
{
	const struct node_done *done;
	unsigned int ended = 0;
	struct bench b;

	(void)state;
	bench_init(&b);
	bench_start(&b, 10);
	for (uint32_t i = 0; i < 10; i++) {
		b.tasks[i] = task_plain(i);
		member(&b, i, 0);
		segment(&b, i, 0, 0, 0);
	}
	while (node_next(b.model, 0) == 0) {
		int n = node_step(b.model, 0, 0, &done);

		assert_true(n >= 1 && n <= NODE_DONE_MAX);
		ended += (unsigned int)n;
	}
	assert_int_equal(ended, 10);
	bench_end(&b);
}

/* --- memory --------------------------------------------------------------------- */

static void paging_init(struct bench *b, bool at_disk)
{
	bench_init(b);
	b->machine.ram_mb = 640;
	b->machine.buffer_mb = 160;
	b->params.page_fault_at_disk = at_disk;
	bench_start(b, 2);
	for (uint32_t i = 0; i < 2; i++) {
		b->tasks[i] = task_plain(20 + i);
		b->tasks[i].memory_mb = 480;
		b->tasks[i].faults_per_ms = 0.05;
	}
}

/*
 * Alone the memory is exactly full and there is no fault.  With a second member of 480
 * MB page = mu 960 / 480.
 */
static void paging(bool at_disk)
{
	struct bench b;
	struct node_sums sums;
	double computed, end = 1e6;

	paging_init(&b, at_disk);
	member(&b, 0, 0);
	segment(&b, 0, 1e9, -1, 0);
	assert_true(node_memory(b.model, 0) == 480);
	bench_until(&b, end);
	node_sums(b.model, 0, end, &sums);
	assert_true(sums.page_faults == 0);
	/* The running burst takes the new rate. */
	member(&b, 1, end);
	assert_true(node_next(b.model, 0) < end + 1000);
	bench_until(&b, 2 * end);
	node_refresh(b.model, 0, 2 * end);
	computed = b.tasks[0].done_ms - end;
	node_sums(b.model, 0, 2 * end, &sums);
	assert_near(sums.page_faults, computed * 0.1, 0.02);
	assert_near(computed + sums.page_faults * 8.1, end, 0.001);
	if (at_disk)
		assert_near(sums.disk_busy_ms, sums.page_faults * 8.1, 0.001);
	assert_true(sums.disk_requests == (at_disk ? sums.page_faults : 0));
	assert_true(sums.disk_busy_ms == 0 || at_disk);
	assert_true(sums.accesses == 0);
	/* With more memory for tasks the faults end. */
	node_leave(b.model, 0, 1, 2 * end);
	bench_until(&b, 2 * end + 100);
	node_sums(b.model, 0, 2 * end + 100, &sums);
	computed = sums.page_faults;
	bench_until(&b, 3 * end);
	node_sums(b.model, 0, 3 * end, &sums);
	assert_true(sums.page_faults == computed);
	node_set_buffer(b.model, 0, 161, 3 * end);
	bench_until(&b, 4 * end);
	node_sums(b.model, 0, 4 * end, &sums);
	assert_true(sums.page_faults > computed);
	bench_end(&b);
}

static void paging_at_the_disk(void **state)
{
	(void)state;
	paging(true);
}

static void paging_as_a_delay(void **state)
{
	(void)state;
	paging(false);
}

static void stop_while_away(void **state)
{
	struct bench b;
	double now, left;

	(void)state;
	paging_init(&b, false);
	member(&b, 0, 0);
	member(&b, 1, 0);
	segment(&b, 0, 1000, -1, 0);
	now = node_next(b.model, 0);
	bench_until(&b, now);
	assert_int_equal(node_runnable(b.model, 0), 0);
	assert_int_equal(node_at_disk(b.model, 0), 0);
	assert_near(node_next(b.model, 0), now + 8.1, 1e-12);
	left = node_stop(b.model, 0, 0, now + 1);
	assert_near(1000 - left, now, 1e-12);
	assert_true(node_next(b.model, 0) == NODE_NEVER);
	node_leave(b.model, 0, 0, now + 1);
	node_leave(b.model, 0, 1, now + 1);
	assert_true(node_memory(b.model, 0) == 0);
	bench_end(&b);
}

/* --- hit rates -------------------------------------------------------------------- */

/* The cases derived in MODEL 1.5, the second with one and with three neighbours. */
static void hit_rates_follow_the_members(void **state)
{
	const double wanted[] = {5.0 / 6, 0.4, 0, 0.2}; /* values by the number of members - 1 */
	struct node_sums was = {0}, sums;
	double now = 0;
	struct bench b;

	(void)state;
	bench_init(&b);
	b.machine.buffer_mb = 160;
	b.machine.disk_mb_per_s = 1e6; /* the disk is fast, so that accesses take hardly any time */
	bench_start(&b, 4);
	for (uint32_t i = 0; i < 4; i++) {
		b.tasks[i] = task_plain(40 + i);
		b.tasks[i].cpu_ms = i == 0 ? 1000 : 2000;
		b.tasks[i].io_per_ms = 2;
		b.tasks[i].request_kb = 250;
		b.tasks[i].reaccess = 5;
	}
	for (uint32_t i = 0; i < 4; i++) {
		if (i == 1)
			b.tasks[0].cpu_ms = 2000;
		member(&b, i, now);
		if (i == 0)
			segment(&b, 0, 1e9, -1, now);
		if (i == 2)
			continue;
		now += 1e5;
		bench_until(&b, now);
		node_refresh(b.model, 0, now);
		node_sums(b.model, 0, now, &sums);
		assert_near((sums.hits - was.hits) / (sums.accesses - was.accesses), wanted[i],
			    0.01);
		assert_near(sums.accesses - was.accesses, 2e5, 0.01);
		assert_near(sums.accesses - sums.hits, sums.disk_requests, 1e-9);
		was = sums;
	}
	assert_near(b.tasks[0].accessed_mb, sums.accesses * 0.25, 1e-6);
	bench_end(&b);
}

static void no_buffer_no_hits(void **state)
{
	struct node_sums sums;
	struct bench b;

	(void)state;
	bench_init(&b);
	bench_start(&b, 1);
	b.tasks[0] = task_plain(1);
	b.tasks[0].cpu_ms = 1e6;
	b.tasks[0].io_per_ms = 0.1;
	b.tasks[0].request_kb = 1;
	b.tasks[0].reaccess = 5;
	member(&b, 0, 0);
	segment(&b, 0, 1e6, -1, 0);
	assert_int_equal(bench_until(&b, 1e9), 1);
	node_sums(b.model, 0, 1e9, &sums);
	assert_true(sums.hits == 0);
	assert_near(sums.accesses, 1e5, 0.01);
	bench_end(&b);
}

/* Short segments, stops and changes of the rates do not change the accesses per computation. */
static void interruptions_keep_the_rate(void **state)
{
	struct node_sums sums;
	struct bench b;
	double left = 0, now = 0;

	(void)state;
	bench_init(&b);
	b.machine.buffer_mb = 160;
	bench_start(&b, 1);
	b.tasks[0] = task_plain(3);
	b.tasks[0].cpu_ms = 1e6;
	b.tasks[0].io_per_ms = 0.05;
	b.tasks[0].request_kb = 4;
	member(&b, 0, 0);
	for (int i = 0; i < 40000; i++) {
		segment(&b, 0, left + 10, -1, now);
		node_set_buffer(b.model, 0, i % 2 ? 160 : 100, now + 1);
		bench_until(&b, now + 5);
		node_refresh(b.model, 0, now + 5);
		if (i % 4 == 0) {
			left = node_stop(b.model, 0, 0, now + 5);
			now += 5;
			continue;
		}
		left = 0;
		while (b.tasks[0].state) {
			now = node_next(b.model, 0);
			bench_until(&b, now);
		}
	}
	node_sums(b.model, 0, now, &sums);
	assert_near(b.tasks[0].done_ms, 4e5, 1e-3);
	assert_near(sums.disk_requests, b.tasks[0].done_ms * 0.05, 0.02);
	bench_end(&b);
}

/* --- conservation under disturbance ------------------------------------------------ */

struct disturbed {
	struct bench b;
	struct sim_random r;
	double now, cpu[16], requests[16], given, stopped_cpu;
	bool in[16], runs[16];
};

static void disturb_start(struct disturbed *d, uint32_t id)
{
	d->cpu[id] = sim_random_exponential(&d->r, 50);
	d->requests[id] = (double)sim_random_integer(&d->r, 0, 4);
	d->given += d->requests[id];
	segment(&d->b, id, d->cpu[id], d->requests[id], d->now);
	d->runs[id] = true;
}

static void disturb(struct disturbed *d, uint32_t id)
{
	struct node_task *t = &d->b.tasks[id];
	double before = t->done_ms;

	if (!d->in[id]) {
		member(&d->b, id, d->now);
		d->in[id] = true;
	} else if (!d->runs[id]) {
		disturb_start(d, id);
	} else if (sim_random_uniform(&d->r) < 0.5) {
		double left = node_stop(d->b.model, 0, id, d->now);

		assert_true(left >= 0 && left <= d->cpu[id] * (1 + 1e-12));
		assert_true(t->done_ms >= before);
		d->given -= t->requests_left;
		d->runs[id] = false;
		if (sim_random_uniform(&d->r) < 0.5) {
			node_leave(d->b.model, 0, id, d->now);
			d->in[id] = false;
		}
	} else {
		node_set_buffer(d->b.model, 0, sim_random_between(&d->r, 0, 300), d->now);
	}
}

static void steps(struct disturbed *d, double until)
{
	const struct node_done *done;

	while (node_next(d->b.model, 0) <= until) {
		double now = node_next(d->b.model, 0);
		int n;

		assert_true(now >= d->now);
		d->now = now;
		n = node_step(d->b.model, 0, now, &done);
		for (int i = 0; i < n; i++)
			d->runs[done[i].task] = false;
	}
	d->now = until;
}

/* At any time requests given = served + in the queue; busy times never exceed the time. */
static void nothing_is_lost(bool at_disk, bool decay)
{
	struct disturbed d = {.r = sim_random_stream(9, at_disk, decay)};
	struct node_sums sums, was = {0};

	bench_init(&d.b);
	d.b.machine.ram_mb = 640;
	d.b.machine.cores = 2;
	d.b.params.page_fault_at_disk = at_disk;
	d.b.params.priority_decay = decay;
	d.b.params.switch_ms = 0.1;
	bench_start(&d.b, 16);
	for (uint32_t i = 0; i < 16; i++) {
		d.b.tasks[i] = task_plain(i);
		d.b.tasks[i].requests = 0;
		d.b.tasks[i].memory_mb = 60;
		d.b.tasks[i].faults_per_ms = 0.1;
		d.b.tasks[i].request_kb = 250;
		d.b.tasks[i].request_sd_kb = 50;
	}
	for (int i = 0; i < 20000; i++) {
		uint32_t running = 0;
		double left = 0;

		steps(&d, d.now + sim_random_exponential(&d.r, 5));
		disturb(&d, (uint32_t)sim_random_integer(&d.r, 0, 15));
		node_sums(d.b.model, 0, d.now, &sums);
		for (uint32_t k = 0; k < 16; k++) {
			running += d.runs[k];
			left += d.runs[k] ? d.b.tasks[k].requests_left : 0;
		}
		assert_true(node_runnable(d.b.model, 0) + node_at_disk(d.b.model, 0) <= running);
		if (at_disk) {
			assert_int_equal(node_runnable(d.b.model, 0) + node_at_disk(d.b.model, 0),
					 running);
		}
		/* Requests given and not left were served or are at the disk (with faults). */
		assert_true(sums.accesses <= d.given - left);
		assert_true(d.given - left - sums.accesses <= node_at_disk(d.b.model, 0) + 1);
		assert_true(sums.cpu_busy_ms <= 2 * d.now && sums.disk_busy_ms <= d.now);
		assert_true(sums.cpu_busy_ms >= was.cpu_busy_ms);
		was = sums;
	}
	assert_true(sums.page_faults > 100 && sums.accesses > 1000);
	for (uint32_t i = 0; i < 16; i++) {
		if (!d.runs[i])
			continue;
		node_stop(d.b.model, 0, i, d.now);
		d.given -= d.b.tasks[i].requests_left;
	}
	steps(&d, d.now + 1000);
	node_sums(d.b.model, 0, d.now, &sums);
	assert_true(sums.accesses == d.given);
	assert_true(node_next(d.b.model, 0) == NODE_NEVER);
	bench_end(&d.b);
}

static void nothing_is_lost_in_each_mode(void **state)
{
	(void)state;
	nothing_is_lost(true, false);
	nothing_is_lost(false, false);
	nothing_is_lost(true, true);
	nothing_is_lost(false, true);
}

/* --- priorities ------------------------------------------------------------------- */

static double newcomer_ms(bool decay, double cores)
{
	struct bench b;
	double began, ended;

	bench_init(&b);
	b.params.priority_decay = decay;
	b.machine.cores = cores;
	bench_start(&b, 4);
	for (uint32_t i = 0; i < 4; i++) {
		b.tasks[i] = task_plain(i);
		member(&b, i, 0);
		if (i < 3)
			segment(&b, i, 1e6, -1, 0);
	}
	bench_until(&b, 10000);
	began = 10000;
	segment(&b, 3, 100, -1, began);
	while (bench_until(&b, ended = node_next(b.model, 0)) == 0)
		;
	assert_true(b.tasks[3].done_ms == 100);
	/* The whole processor is used, and equal tasks get equal shares. */
	node_refresh(b.model, 0, ended);
	assert_near(b.tasks[0].done_ms + b.tasks[1].done_ms + b.tasks[2].done_ms + 100,
		    fmin(cores, 3) * ended + (cores > 3 ? 100 : 0), 1e-9);
	assert_near(b.tasks[0].done_ms, b.tasks[1].done_ms, 1e-9);
	bench_end(&b);
	return ended - began;
}

static void hogs_lose_priority(void **state)
{
	(void)state;
	assert_near(newcomer_ms(false, 1), 400, 1e-9);
	assert_true(newcomer_ms(true, 1) < 250);
	assert_true(newcomer_ms(true, 1) > 100);
	assert_true(newcomer_ms(true, 2) < newcomer_ms(false, 2));
	assert_near(newcomer_ms(true, 4), 100, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_accesses_are_evenly_spaced),
		cmocka_unit_test(stop_while_computing),
		cmocka_unit_test(stop_at_the_disk),
		cmocka_unit_test(withdrawn_access_is_owed),
		cmocka_unit_test(transfers_queue_at_the_disk),
		cmocka_unit_test(many_ends_come_in_portions),
		cmocka_unit_test(paging_at_the_disk),
		cmocka_unit_test(paging_as_a_delay),
		cmocka_unit_test(stop_while_away),
		cmocka_unit_test(hit_rates_follow_the_members),
		cmocka_unit_test(no_buffer_no_hits),
		cmocka_unit_test(interruptions_keep_the_rate),
		cmocka_unit_test(nothing_is_lost_in_each_mode),
		cmocka_unit_test(hogs_lose_priority),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
