/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The load vector: disk state from counters, smoothing, and what jobs declared. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/cluster/peer_message.h"
#include "agent/guest/jobs.h"
#include "user/pack.h"
#include "agent/measure/vector.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))

static const struct vector_self self = {
	.name = "n1",
	.port = 7700,
	.boot_id = 7,
	.period_ms = 1000,
	.cpu_speed = 0.5,
	.network_mb_per_s = 125,
	.accepts_jobs = true,
};
static const struct host_reading host = {
	.memory_mb = 1000, .used_mb = 300, .cores = 2, .core_share = 0.5};

static const struct vector_jobs_did none;

static void test_disks(void **state)
{
	struct iocom_disk before[2] = {{.major = 7, .minor = 1, .requests = 100}}, now[2];
	struct vector_measure m;

	(void)state;
	before[1] = (struct iocom_disk){.major = 7, .minor = 2, .requests = 5};
	memcpy(now, before, sizeof(now));
	now[0].requests += 100; /* 4 ms each: 400 ms of 1000 */
	now[0].service_sum_ns += 400000000;
	now[0].service_sum2_ms2 += 100 * 16;
	now[0].read_bytes += 10000000;
	now[1].requests += 50; /* 2 ms each */
	now[1].service_sum_ns += 100000000;
	now[1].service_sum2_ms2 += 50 * 4;
	vector_disks(before, 2, now, 2, 1000, &m);
	NEAR(m.disk_arrivals_per_ms, 0.15);
	NEAR(m.disk_utilisation, 0.4);
	NEAR(m.disk_service_ms, 500.0 / 150);
	NEAR(m.disk_service_ms2, 1800.0 / 150);
	NEAR(m.disk_mb_per_s, 10);
	/* half of the first disk's bytes came from a disk above it */
	now[0].stacked_bytes += 5000000;
	vector_disks(before, 2, now, 2, 1000, &m);
	NEAR(m.disk_mb_per_s, 5);
	now[0].stacked_bytes -= 5000000;
	/* a new disk counts from its beginning, and so does a replaced one */
	vector_disks(before, 1, now, 2, 1000, &m);
	NEAR(m.disk_arrivals_per_ms, 0.155);
	vector_disks(now, 2, before, 2, 1000, &m);
	NEAR(m.disk_arrivals_per_ms, 0.105);
	vector_disks(NULL, 0, NULL, 0, 1000, &m);
	NEAR(m.disk_utilisation, 0);
}

static void period(struct vector_state *s, uint64_t ops, double run_queue, uint64_t mine)
{
	struct iocom_job_load load = {.delta = {.explicit_ops = ops, .implicit_ops = 10}};
	struct iocom_disk disk = {.major = 7, .minor = 1};
	struct monitor_sample sample = {
		.elapsed_ns = 1000000000,
		.jobs = &load,
		.njobs = 1,
		.disks = &disk,
		.ndisks = 1,
		.run_queue = run_queue,
		.live_tasks = 3,
		.io_tasks = 1,
	};

	struct vector_jobs_did jobs = {.running.delta.explicit_ops = mine};

	assert_int_equal(vector_take(s, &sample, &jobs), 0);
	vector_close(s);
}

static void test_smoothing(void **state)
{
	struct vector_state s;
	struct iocom_vector v;

	(void)state;
	vector_init(&s);
	period(&s, 400, 4, 0);
	vector_build(&s, &self, &host, NULL, 0, 0, &v);
	NEAR(v.explicit_per_ms, 0.4); /* the first value is not smoothed */
	NEAR(v.run_queue, 4);
	NEAR(v.implicit_per_ms, 0.01);
	period(&s, 0, 0, 0);
	vector_build(&s, &self, &host, NULL, 0, 0, &v);
	NEAR(v.explicit_per_ms, 0.2); /* 0.5 * 0 + 0.5 * 0.4 */
	NEAR(v.run_queue, 2);
	NEAR(v.cpu_speed, 0.25); /* speed 0.5, and a quota of half of each core */
	NEAR(v.memory_available_mb, 700);
	assert_int_equal(v.disks, 1);
	assert_int_equal(v.bits, IOCOM_BIT_IO | IOCOM_BIT_CPU);
	vector_fini(&s);
}

static void test_jobs_declared(void **state)
{
	struct vector_job jobs[] = {
		/* admitted a moment ago: all that it declared counts */
		{.declared_per_ms = 0.3, .declared_mb = 200, .cpu_share = 1},
		/*
		 * running: it does more than declared, and its resident memory exceeds what it
		 * declared
		 */
		{.declared_per_ms = 0.1,
		 .measured_per_ms = 0.25,
		 .declared_mb = 50,
		 .resident_mb = 80,
		 .cpu_share = 1,
		 .seen = 2},
	};
	struct vector_state s;
	struct iocom_vector v;

	(void)state;
	vector_init(&s);
	period(&s, 400, 1, 250); /* 250 of the 400 are the jobs' own */
	vector_build(&s, &self, &host, jobs, 2, 0, &v);
	NEAR(v.explicit_per_ms, 0.15 + 0.3 + 0.25);
	NEAR(v.memory_requested_mb, 300 + 200);
	NEAR(v.run_queue, 1 + 1 + 0.25);
	assert_int_equal(v.jobs, 2);
	vector_fini(&s);
}

static void test_no_disk(void **state)
{
	struct monitor_sample sample = {.elapsed_ns = 1000000000};
	struct vector_state s;
	struct iocom_vector v;

	(void)state;
	vector_init(&s);
	vector_take(&s, &sample, &none);
	vector_close(&s);
	vector_build(&s, &self, &host, NULL, 0, 0, &v);
	assert_int_equal(v.disks, 0);
	NEAR(v.disk_mb_per_s, 0);
	assert_int_equal(v.bits & IOCOM_BIT_IO, 0);
	vector_fini(&s);
}

static void test_change(void **state)
{
	struct iocom_vector a = {.run_queue = 1, .explicit_per_ms = 1, .disk_utilisation = 0.5},
			    b = a;

	(void)state;
	assert_false(vector_changed(&a, &b, 0.25));
	b.run_queue = 1.4;
	assert_false(vector_changed(&a, &b, 0.25));
	b.run_queue = 2;
	assert_true(vector_changed(&a, &b, 0.25));
	b = a;
	b.jobs = 1;
	assert_true(vector_changed(&a, &b, 0.25));
	b = a;
	a.cpu_left_ms = b.cpu_left_ms = 1000;
	b.disk_left_ms = 499;
	assert_false(vector_changed(&a, &b, 0.25));
	b.disk_left_ms = 501;
	assert_true(vector_changed(&a, &b, 0.25));
	a.cpu_left_ms = b.cpu_left_ms = 2000; /* not more than a quarter of what is left */
	assert_false(vector_changed(&a, &b, 0.25));
	assert_true(vector_changed(&a, &b, 0.1)); /* but more than a tenth */
	b = a;
	b.run_queue = 100;
	assert_false(vector_changed(&a, &b, 1)); /* only once a period, ... */
	b.bits ^= IOCOM_BIT_CPU;
	assert_true(vector_changed(&a, &b, 1)); /* but bits and counts at once */
}

/* --- the work that is left ------------------------------------------------------- */

/* A request of 64 KB takes 8 + 64 / 64 = 9 ms at the disk. */
#define REQUEST_KB 64
#define REQUEST_MS 9

/* Builds the vector of a node with a disk, on which nothing but JOBS runs, SINCE_MS after the
 * reading.
 */
static struct iocom_vector left_at(const struct vector_job *jobs, size_t n, double core_share,
				   double since_ms)
{
	struct host_reading reading = host;
	struct vector_self me = self;
	struct vector_state s;
	struct iocom_vector v;

	me.disk_mb_per_s = 64;
	me.disk_fixed_ms = 8;
	reading.core_share = core_share;
	vector_init(&s);
	period(&s, 0, 0, 0);
	vector_build(&s, &me, &reading, jobs, n, since_ms, &v);
	vector_fini(&s);
	return v;
}

static struct iocom_vector left(const struct vector_job *jobs, size_t n, double core_share)
{
	return left_at(jobs, n, core_share, 0);
}

static struct iocom_vector left_since(const struct vector_job *jobs, size_t n, double since_ms)
{
	return left_at(jobs, n, 1, since_ms);
}

#define LEFT(v, c, d, cpu_ms, disk_ms)                                                             \
	do {                                                                                       \
		NEAR((v).cpu_sharers, c);                                                          \
		NEAR((v).disk_sharers, d);                                                         \
		NEAR((v).cpu_left_ms, cpu_ms);                                                     \
		NEAR((v).disk_left_ms, disk_ms);                                                   \
	} while (0)

/* This node computes at half the reference speed; a cap leaves half of that. */
static void test_left_of_known_needs(void **state)
{
	struct vector_job job = {
		.need_known = true,
		.need_cpu_ms = 1000,
		.need_requests = 200,
		.need_request_kb = REQUEST_KB,
		.done_cpu_ms = 1000,
		.done_requests = 100,
		.done_disk_ms = 5000, /* other requests than those needed are not compared */
	};
	struct iocom_vector v = left(&job, 1, 1);
	double alone;

	(void)state;
	/* half is done: 500 ms at the reference speed and 100 requests are left */
	NEAR(v.cpu_speed, 0.5);
	NEAR(v.cpu_burst, 0.5);
	LEFT(v, 1000 / 1900.0, 900 / 1900.0, 1000, 100 * REQUEST_MS);
	/* With the cap the 1000 ms take 2000, in which some of the disk's 900 have room. */
	v = left(&job, 1, 0.5);
	NEAR(v.cpu_speed, 0.25);
	NEAR(v.cpu_burst, 0.5);
	alone = 2000 + RULES_SEQUENTIAL * 900;
	LEFT(v, 2000 / alone, 900 / alone, 2000, 100 * REQUEST_MS);
	/* it ran past its needs: a quarter of 1600 ms at the reference speed, of 800 requests */
	job.done_cpu_ms = 3200;
	job.done_requests = 800;
	v = left(&job, 1, 1);
	LEFT(v, 800 / 2600.0, 1800 / 2600.0, 800, 200 * REQUEST_MS);
	/* just before its end it has as much left as just behind it */
	job.done_cpu_ms = 0.8 * 2000;
	job.done_requests = 0.8 * 200;
	v = left(&job, 1, 1);
	LEFT(v, 400 / 760.0, 360 / 760.0, 400, 40 * REQUEST_MS);
	/* nothing is needed, and nothing was done */
	job = (struct vector_job){.need_known = true};
	v = left(&job, 1, 1);
	LEFT(v, 0, 0, 0, 0);
}

static void test_left_of_unknown_needs(void **state)
{
	struct vector_job jobs[2] = {{0}};
	struct iocom_vector v = left(jobs, 1, 1);

	(void)state;
	LEFT(v, 1000 / 1500.0, 500 / 1500.0, 1000, 500); /* it did nothing yet */
	/* 100 ms at the reference speed of 400 that it had, and 500 of 1000 that it was to have */
	jobs[0].done_cpu_ms = 200;
	jobs[0].done_disk_ms = 300;
	v = left(jobs, 1, 1);
	LEFT(v, 1200 / 2000.0, 800 / 2000.0, 1200 / 1.4, 800 / 1.4);
	jobs[0].seen = 1; /* the guess has half of its weight */
	v = left(jobs, 1, 1);
	LEFT(v, 700 / 1250.0, 550 / 1250.0, 500 * 700 / 900.0, 500 * 550 / 900.0);
	jobs[0].done_cpu_ms = 6000; /* what ran long runs long */
	jobs[0].done_disk_ms = 1000;
	jobs[0].seen = 60;
	v = left(jobs, 1, 1);
	LEFT(v, 6000 / 7000.0, 1000 / 7000.0, 6000, 1000);
	jobs[1] = jobs[0];
	v = left(jobs, 2, 1);
	LEFT(v, 12000 / 7000.0, 2000 / 7000.0, 12000, 2000);
}

/* A guess counts in place of the halves, and is forgotten of a job that sleeps. */
static void test_left_of_guessed_needs(void **state)
{
	struct vector_job job = {
		.need_cpu_ms = 3000, .need_requests = 200, .need_request_kb = REQUEST_KB};
	struct iocom_vector v = left(&job, 1, 1);

	(void)state;
	LEFT(v, 6000 / 7800.0, 1800 / 7800.0, 6000, 1800);
	job.seen = 2;
	v = left(&job, 1, 1);
	LEFT(v, 6000 / 7800.0, 1800 / 7800.0, 1500, 450);
	job.seen = 13;
	v = left(&job, 1, 1);
	LEFT(v, 0, 0, 0, 0);
	job.done_cpu_ms = 2; /* it wakes up now and then */
	v = left(&job, 1, 1);
	assert_true(v.cpu_sharers > 0 && v.cpu_left_ms + v.disk_left_ms < 10);
}

/* Three readers at a disk that serves PARALLEL at a time, SINCE_MS after the reading. */
static struct iocom_vector left_parallel(double parallel, double since_ms)
{
	const struct vector_job reader = {
		.need_known = true, .need_requests = 100, .need_request_kb = REQUEST_KB, .seen = 1};
	const struct vector_job jobs[] = {reader, reader, reader};
	struct vector_self me = self;
	struct vector_state s;
	struct iocom_vector v;

	me.disk_mb_per_s = 64;
	me.disk_fixed_ms = 8;
	me.disk_parallel = parallel;
	vector_init(&s);
	period(&s, 0, 0, 0);
	vector_build(&s, &me, &host, jobs, 3, since_ms, &v);
	vector_fini(&s);
	assert_true(v.disk_parallel == parallel);
	return v;
}

/* Jobs that the last reading saw have gone on since then. */
static void test_left_after_the_reading(void **state)
{
	struct vector_job jobs[2] = {
		{.need_known = true, .need_cpu_ms = 1000, .seen = 3},
		{.need_known = true,
		 .need_requests = 100,
		 .need_request_kb = REQUEST_KB,
		 .seen = 1},
	};
	struct iocom_vector v;

	(void)state;
	v = left_since(jobs, 2, 400);
	LEFT(v, 1, 1, 2000 - 400, 900 - 400);
	v = left_since(jobs, 2, 1000);
	LEFT(v, 1, 1, 2000 - 1000, 0);
	/* three tasks have but two processors; four share one disk */
	jobs[1] = jobs[0];
	v = left_since((struct vector_job[]){jobs[0], jobs[0], jobs[0]}, 3, 400);
	LEFT(v, 3, 0, 3 * 2000 - 2 * 400, 0);
	/* three share a disk that serves two at a time */
	v = left_parallel(2, 400);
	LEFT(v, 0, 3, 0, 3 * 900 - 2 * 400);
	/* one of an unknown class, or past its need, is not nearer to its end than it was */
	jobs[0] = (struct vector_job){.done_cpu_ms = 500, .seen = 60};
	v = left_since(jobs, 1, 400);
	LEFT(v, 1, 0, 500, 0);
	jobs[0] = (struct vector_job){
		.need_known = true, .need_cpu_ms = 100, .done_cpu_ms = 400, .seen = 60};
	v = left_since(jobs, 1, 400);
	LEFT(v, 1, 0, 100, 0);
	jobs[0] = jobs[1];
	/* one that has come since then has all of it left */
	jobs[1].seen = 0;
	v = left_since(jobs, 2, 400);
	LEFT(v, 2, 0, 2 * 2000 - 400, 0);
}

/* Without a disk there is nothing left to do at it. */
static void test_left_without_disk(void **state)
{
	const struct vector_job jobs[] = {
		{.need_known = true, .need_cpu_ms = 500, .need_requests = 9},
		{.done_cpu_ms = 0},
	};
	struct monitor_sample sample = {.elapsed_ns = 1000000000};
	struct vector_state s;
	struct iocom_vector v;

	(void)state;
	vector_init(&s);
	vector_take(&s, &sample, &none);
	vector_close(&s);
	vector_build(&s, &self, &host, jobs, 2, 0, &v);
	LEFT(v, 2, 0, 4000, 0);
	vector_fini(&s);
}

/* From the order and the readings to what is left; a lease has all of its needs left. */
static void test_left_of_job_table(void **state)
{
	struct job_order order = {.job = "h-1-1"};
	struct iocom_job_load load = {
		.cgroup_id = 42,
		.delta = {.cpu_ns = 1000000000, .explicit_ops = 60, .implicit_ops = 40},
		.disk_delta = {.low_ns = 200000000, .high_ns = 400000000},
	};
	struct monitor_sample sample = {
		.elapsed_ns = 1000000000, .time_ns = 2000000000, .jobs = &load, .njobs = 1};
	struct vector_jobs_did all = {0};
	struct jobs jobs = {0};
	struct iocom_vector v;
	struct vector_job *list;
	struct job *job;
	size_t n;

	(void)state;
	need_init(&order.need);
	need_set(&order.need, NEED_CPU_S, 1, NEED_PROFILE);
	need_set(&order.need, NEED_REQUESTS, 200, NEED_PROFILE);
	need_set(&order.need, NEED_IO_SIZE_KB, REQUEST_KB, NEED_PROFILE);
	job = jobs_add(&jobs, &order);
	assert_non_null(job);
	list = jobs_vector(&jobs, &n);
	v = left(list, n, 1);
	LEFT(v, 2000 / 3800.0, 1800 / 3800.0, 2000, 200 * REQUEST_MS);
	free(list);
	job->state = JOB_RUNNING;
	job->cgroup_id = 42;
	jobs_sampled(&jobs, NULL, &sample, &all);
	assert_memory_equal(&all.running.delta, &load.delta, sizeof(load.delta));
	assert_memory_equal(&all.running.disk_delta, &load.disk_delta, sizeof(load.disk_delta));
	list = jobs_vector(&jobs, &n);
	v = left(list, n, 1);
	LEFT(v, 1000 / 1900.0, 900 / 1900.0, 1000, 100 * REQUEST_MS);
	free(list);
	/* of an unknown class: 500 ms at the reference speed and 300 ms at the disk were done */
	need_init(&job->order.need);
	list = jobs_vector(&jobs, &n);
	v = left(list, n, 1);
	LEFT(v, 10 / 14.0, 4 / 14.0, 10000 / 9.0, 4000 / 9.0);
	free(list);
	/* of one of which is guessed that it takes 3 s of computation, and no I/O */
	need_set(&job->order.need, NEED_CPU_S, 3, NEED_GUESS);
	list = jobs_vector(&jobs, &n);
	v = left(list, n, 1);
	LEFT(v, 7000 / 7300.0, 300 / 7300.0, 2 * 3000 * 3500 / 3800.0, 3000 * 300 / 3800.0);
	free(list);
	jobs_fini(&jobs);
}

/* One period of 1 s of the whole node, and of iocom's jobs on it. */
struct node_did {
	double cpu_ms, wait_ms, disk_ms;
	double jobs_cpu_ms, jobs_wait_ms, jobs_disk_ms;
	double ended_disk_ms; /* of jobs that have ended */
	uint32_t io_tasks;
	bool kernel; /* no task had the disk */
};

static struct iocom_job_load load_of(double cpu_ms, double wait_ms, double disk_ms)
{
	return (struct iocom_job_load){
		.delta = {.cpu_ns = (uint64_t)(cpu_ms * 1e6),
			  .run_wait_ns = (uint64_t)(wait_ms * 1e6)},
		.disk_delta = {.low_ns = (uint64_t)(disk_ms * 0.5e6),
			       .high_ns = (uint64_t)(disk_ms * 1.5e6)},
	};
}

static void node_period(struct vector_state *s, struct iocom_disk *disk, const struct node_did *did)
{
	struct iocom_job_load whole =
		load_of(did->cpu_ms, did->wait_ms, did->kernel ? 0 : did->disk_ms);
	struct vector_jobs_did jobs = {
		.running = load_of(did->jobs_cpu_ms, did->jobs_wait_ms, did->jobs_disk_ms),
		.disk_ended = load_of(0, 0, did->ended_disk_ms).disk_delta,
	};
	struct monitor_sample sample = {
		.elapsed_ns = 1000000000,
		.jobs = &whole,
		.njobs = 1,
		.disks = disk,
		.ndisks = 1,
		.io_tasks = did->io_tasks,
	};

	disk->requests += did->disk_ms > 0;
	disk->service_sum_ns += (uint64_t)(did->disk_ms * 1e6);
	assert_int_equal(vector_take(s, &sample, &jobs), 0);
	vector_close(s);
}

/* Builds the vector after PERIODS in which everything did DID, and IDLE periods without load. */
static struct iocom_vector foreign_for(unsigned periods, struct node_did did, double core_share,
				       unsigned idle)
{
	static const struct node_did nothing;
	struct iocom_disk disk = {.major = 7, .minor = 1, .requests = 1};
	struct host_reading reading = host;
	struct vector_state s;
	struct iocom_vector v;

	reading.core_share = core_share;
	vector_init(&s);
	s.primed = true;
	for (unsigned i = 0; i < periods; i++)
		node_period(&s, &disk, &did);
	while (idle--)
		node_period(&s, &disk, &nothing);
	vector_build(&s, &self, &reading, NULL, 0, 0, &v);
	vector_fini(&s);
	return v;
}

/* The same, after it went on for so long that all means show it. */
static struct iocom_vector foreign(struct node_did did, double core_share, unsigned idle)
{
	return foreign_for(300, did, core_share, idle);
}

/* What has just come is expected to be gone soon; what lasts is expected to last. */
static void test_left_of_what_has_just_come(void **state)
{
	const struct node_did did = {.cpu_ms = 1000, .disk_ms = 800, .io_tasks = 9};
	const double second = 1 - exp(-0.1), third = 1 - exp(-0.3);
	struct iocom_vector v;

	(void)state;
	v = foreign_for(1, did, 1, 0); /* half of it is seen, of which the mean has a tenth */
	NEAR(v.cpu_sharers, 0.5);
	NEAR(v.cpu_left_ms, 10000 * second);
	NEAR(v.disk_left_ms, 10000 * (0.8 * second) / (1 - 0.8 * second));
	v = foreign_for(3, did, 1, 0);
	NEAR(v.cpu_left_ms, 10000 * third);
	v = foreign_for(3, did, 1, 3); /* it is gone: no more than what is still seen */
	NEAR(v.cpu_sharers, 0.875 / 8);
	NEAR(v.cpu_left_ms, 10000 * 0.875 / 8);
}

static void test_left_of_everything_else(void **state)
{
	struct iocom_vector v;

	(void)state;
	/* an idle node: the agent itself, and the system's housekeeping */
	v = foreign((struct node_did){.cpu_ms = 20, .wait_ms = 5, .disk_ms = 30, .io_tasks = 1}, 1,
		    0);
	LEFT(v, 0, 0, 0, 0);
	/* a task that computes, alone; a cap lets it have half of a processor */
	v = foreign((struct node_did){.cpu_ms = 1000}, 1, 0);
	LEFT(v, 1, 0, 10000, 0);
	v = foreign((struct node_did){.cpu_ms = 500}, 0.5, 0);
	LEFT(v, 1, 0, 10000, 0);
	/* four of them on two processors: two wait */
	v = foreign((struct node_did){.cpu_ms = 2000, .wait_ms = 2000}, 1, 0);
	LEFT(v, 4, 0, 40000, 0);
	/* one of them is a job, which counts by what it has left */
	v = foreign(
		(struct node_did){
			.cpu_ms = 2000, .wait_ms = 2000, .jobs_cpu_ms = 500, .jobs_wait_ms = 500},
		1, 0);
	LEFT(v, 3, 0, 30000, 0);
	v = foreign((struct node_did){.cpu_ms = 900, .jobs_cpu_ms = 950}, 1, 0);
	LEFT(v, 0, 0, 0, 0);
	/* it is smoothed as all that is measured */
	v = foreign((struct node_did){.cpu_ms = 1000}, 0.25, 1);
	LEFT(v, 2, 0, 20000, 0);
	v = foreign((struct node_did){.cpu_ms = 200, .wait_ms = 3800}, 1, 1);
	LEFT(v, 2, 0, 20000, 0);
	v = foreign((struct node_did){.disk_ms = 800, .io_tasks = 9}, 1, 1);
	LEFT(v, 0, 4 / 6.0, 0, 40000 / 6.0);
}

static void test_left_at_the_disk(void **state)
{
	struct iocom_vector v;

	(void)state;
	v = foreign((struct node_did){.disk_ms = 750, .io_tasks = 9}, 1, 0);
	LEFT(v, 0, 3, 0, 30000);
	/* no more tasks share the disk than there are; a disk that was always busy has no more */
	v = foreign((struct node_did){.disk_ms = 750, .io_tasks = 2}, 1, 0);
	LEFT(v, 0, 2, 0, 20000);
	v = foreign((struct node_did){.disk_ms = 1000, .io_tasks = 5000}, 1, 0);
	assert_true(v.disk_sharers > 98 && v.disk_sharers < 100);
	/* writes of the kernel, which are no task's */
	v = foreign((struct node_did){.disk_ms = 500, .kernel = true}, 1, 0);
	LEFT(v, 0, 1, 0, 10000);
	/* the jobs' part of the disk's time, 0.6 of 0.8, is theirs */
	v = foreign((struct node_did){.disk_ms = 800, .jobs_disk_ms = 600, .io_tasks = 9}, 1, 0);
	LEFT(v, 0, 0.25, 0, 2500);
	v = foreign((struct node_did){.disk_ms = 800, .jobs_disk_ms = 800, .io_tasks = 9}, 1, 0);
	LEFT(v, 0, 0, 0, 0);
}

/* Builds the vector of a node whose disk moves 10 MB/s, DIRTY MB in memory, after a period of DID.
 */
static struct iocom_vector writes(struct node_did did, double dirty_mb,
				  const struct vector_job *job)
{
	struct iocom_disk disk = {.major = 7, .minor = 1, .requests = 1};
	struct host_reading reading = host;
	struct vector_self me = self;
	struct vector_state s;
	struct iocom_vector v;

	reading.dirty_mb = dirty_mb;
	me.disk_mb_per_s = 10;
	me.disk_fixed_ms = 8;
	vector_init(&s);
	node_period(&s, &disk, &did);
	vector_build(&s, &me, &reading, job, job != NULL, 0, &v);
	vector_fini(&s);
	return v;
}

/* What a job wrote is written after its end: that is no foreign load of unknown length. */
static void test_left_to_write(void **state)
{
	const struct node_did did = {.disk_ms = 800, .ended_disk_ms = 800, .io_tasks = 9};
	const struct vector_job job = {
		.need_known = true, .need_requests = 10, .need_request_kb = 100};
	struct iocom_vector v = writes(did, 5, NULL);

	(void)state;
	LEFT(v, 0, 1, 0, 500);
	/* a quarter of the disk's time is of somebody else: 0.2 / 0.8 sharers */
	v = writes((struct node_did){.disk_ms = 800, .ended_disk_ms = 600, .io_tasks = 9}, 5, NULL);
	LEFT(v, 0, 1.25, 0, 500 + 2500);
	/* all is written; dirty pages that nobody writes yet do not hold up anybody */
	v = writes(did, 0, NULL);
	LEFT(v, 0, 0, 0, 0);
	v = writes((struct node_did){.disk_ms = 10}, 5, NULL);
	LEFT(v, 0, 0, 0, 0);
	/* a job that has 10 requests of 100 KB left, 180 ms, may have dirtied as much */
	v = writes(did, 5, &job);
	LEFT(v, 0, 2, 0, 180 + 320);
	v = writes(did, 0.5, &job);
	LEFT(v, 0, 1, 0, 180);
}

static int repack(const struct job_report *r, struct job_report *back)
{
	msgpack_unpacked map;
	msgpack_sbuffer b;
	int rc;

	msgpack_sbuffer_init(&b);
	job_report_pack(r, &b);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	rc = job_report_unpack(back, &map.data);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&b);
	return rc;
}

/* The target's measurements reach home and the profile there. */
static void test_report(void **state)
{
	struct job_order order = {.job = "h-1-1"};
	struct jobs jobs = {0};
	struct job *job = jobs_add(&jobs, &order);
	struct job_report r, back;
	struct profile profile;

	(void)state;
	assert_non_null(job);
	job->load.cpu_ns = 400000000;
	job->behaviour = (struct behaviour){
		.n = 2,
		.phases = {{.ms = {400, 5, 0}, .wall_ms = 500, .dominant = BEHAVIOUR_CPU},
			   {.ms = {0, 7, 90}, .wall_ms = 100, .dominant = BEHAVIOUR_DISK}},
		.disk_low_ms = 80,
		.disk_high_ms = 100,
		.fault_requests = 30,
		.fault_kb = 3840,
		.disk_wait_ms = 10,
		.run_wait_ms = 1,
	};
	job_report_make(job, 0.5, &r);
	/* the value is at reference speed, like cpu_ms */
	NEAR(r.behaviour.phases[0].ms[BEHAVIOUR_CPU], 200);
	NEAR(r.cpu_ms, 200);
	assert_int_equal(repack(&r, &back), 0);
	assert_memory_equal(&back.behaviour, &r.behaviour, sizeof(r.behaviour));
	job_report_profile(&back, &profile);
	NEAR(profile.com_ms, 12);
	NEAR(profile.disk_ms, 90);
	assert_int_equal(profile.behaviour.n, 2);
	NEAR(profile.fault_requests, 30); /* what a mapped file costs the disk is learned */
	NEAR(profile.fault_mb, 3.84);
	NEAR(profile.requests, 0);
	back.requests = 34;
	back.request_kb = 50;
	back.wall_ms = 2;
	job_report_profile(&back, &profile);
	NEAR(profile.request_mb, 1.7);
	NEAR(profile.wall_ms, 2);
	NEAR(profile.rest_ms, 0); /* its resources took longer than the run: several threads */
	back.wall_ms = 2000;
	job_report_profile(&back, &profile);
	NEAR(profile.rest_ms, 2000 - 200 - 90 - 10 - 1);
	r.behaviour.fault_kb = -1;
	assert_int_equal(repack(&r, &back), -EBADMSG);
	r.behaviour.fault_kb = 0;
	r.behaviour.phases[1].ms[BEHAVIOUR_COM] = -1;
	assert_int_equal(repack(&r, &back), -EBADMSG);
	r.behaviour.phases[1].ms[BEHAVIOUR_COM] = 0;
	r.behaviour.phases[1].dominant = 77;
	assert_int_equal(repack(&r, &back), -EBADMSG);
	jobs_fini(&jobs);
}

/*
 * Returns what job_report_others says to COUNT reports in one message; the one at BROKEN has no
 * job.
 */
static int together(size_t count, size_t broken, const msgpack_object_array **others, size_t *n)
{
	const struct job_report whole = {.job = "h-1-1", .state = "exited"};
	const struct job_report empty = {.job = "h-1-2", .state = "asleep"};
	msgpack_unpacked map;
	struct job_report r;
	msgpack_sbuffer b;
	int rc;

	msgpack_sbuffer_init(&b);
	job_report_pack_first(&whole, count - 1, &b);
	for (size_t i = 1; i < count; i++)
		job_report_pack(i == broken ? &empty : &whole, &b);
	assert_int_equal(unpack_map_of(&map, b.data, b.size, PEER_VALUES_MAX), 0);
	/* the report in the form in which an older home unpacks it */
	assert_int_equal(job_report_unpack(&r, &map.data), 0);
	assert_string_equal(r.job, "h-1-1");
	rc = job_report_others(&map.data, others);
	*n = *others ? (*others)->size : 0;
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&b);
	return rc;
}

/* Many reports in one message. With one too many, or one that is no report, none is accepted. */
static void test_reports(void **state)
{
	const msgpack_object_array *others;
	size_t n;

	(void)state;
	assert_int_equal(together(1, 0, &others, &n), 0);
	assert_null(others);
	assert_int_equal(together(2, 0, &others, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(together(JOB_REPORTS_MAX, 0, &others, &n), 0);
	assert_int_equal(n, JOB_REPORTS_MAX - 1);
	assert_int_equal(together(JOB_REPORTS_MAX + 1, 0, &others, &n), -EBADMSG);
	assert_int_equal(together(3, 2, &others, &n), -EBADMSG);
	assert_null(others);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disks),
		cmocka_unit_test(test_smoothing),
		cmocka_unit_test(test_jobs_declared),
		cmocka_unit_test(test_no_disk),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_left_of_known_needs),
		cmocka_unit_test(test_left_of_unknown_needs),
		cmocka_unit_test(test_left_of_guessed_needs),
		cmocka_unit_test(test_left_after_the_reading),
		cmocka_unit_test(test_left_of_what_has_just_come),
		cmocka_unit_test(test_left_without_disk),
		cmocka_unit_test(test_left_of_job_table),
		cmocka_unit_test(test_left_of_everything_else),
		cmocka_unit_test(test_left_at_the_disk),
		cmocka_unit_test(test_left_to_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
