/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Phases of a job and the time of each resource (MODEL 5.10). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "user/monitor/job_times.h"
#include "user/monitor/jobdisk_share.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))
#define MS	   1000000ull

static void add(struct behaviour *b, double cpu, double com, double disk, double wall)
{
	double ms[BEHAVIOUR_RESOURCES] = {cpu, com, disk};

	behaviour_add(b, ms, wall);
}

/* MODEL 5.10: (10,5,0)/(8,4,6) and (5,0,20)/(9,1,1), s_p = 4: T_p = 4 + 18 + 25. */
static void test_parallel(void **state)
{
	struct behaviour p[2] = {
		{.n = 2, .phases = {{.ms = {10, 5, 0}}, {.ms = {5, 0, 20}}}},
		{.n = 2, .phases = {{.ms = {8, 4, 6}}, {.ms = {9, 1, 1}}}},
	};
	const double sequential[BEHAVIOUR_RESOURCES] = {2, 1, 1};
	double r[BEHAVIOUR_RESOURCES];

	(void)state;
	NEAR(behaviour_parallel_ms(p, 2, sequential), 47);
	NEAR(behaviour_parallel_ms(p, 1, sequential), 4 + 15 + 25);
	NEAR(behaviour_parallel_ms(p, 0, sequential), 4);
	p[1].n = 1; /* this process has one phase less */
	NEAR(behaviour_parallel_ms(p, 2, sequential), 4 + 18 + 25);
	NEAR(behaviour_sum(&p[0], r), 40);
	NEAR(r[BEHAVIOUR_CPU], 15);
	NEAR(r[BEHAVIOUR_COM], 5);
	NEAR(r[BEHAVIOUR_DISK], 20);
}

static void test_phases(void **state)
{
	struct behaviour b = {0};
	double share[BEHAVIOUR_RESOURCES];

	(void)state;
	add(&b, 1, 0, 0, 1000); /* idle, so it begins no phase */
	add(&b, 900, 0, 50, 1000);
	add(&b, 0, 0, 0, 1000);	    /* a sleep inside the phase */
	add(&b, 500, 0, 600, 1000); /* within the margin of the largest */
	assert_int_equal(b.n, 1);
	assert_int_equal(b.phases[0].dominant, BEHAVIOUR_CPU);
	NEAR(b.phases[0].wall_ms, 4000);
	add(&b, 500, 0, 700, 1000);
	assert_int_equal(b.n, 2);
	assert_int_equal(b.phases[1].dominant, BEHAVIOUR_DISK);
	add(&b, 10, 400, 0, 1000);
	assert_int_equal(b.n, 3);
	assert_int_equal(b.phases[2].dominant, BEHAVIOUR_COM);
	behaviour_shares(&b, share);
	NEAR(share[0] + share[1] + share[2], 1);
	NEAR(share[BEHAVIOUR_COM], 400 / (1911.0 + 400 + 1350));
	assert_string_equal(behaviour_class(&b), "cpu");
	assert_true(behaviour_valid(&b));
	b.phases[1].ms[0] = NAN;
	assert_false(behaviour_valid(&b));
}

static void test_class(void **state)
{
	struct behaviour b = {0};

	(void)state;
	assert_string_equal(behaviour_class(&b), "idle");
	add(&b, 10, 20, 30, 100);
	b.fault_ms = 10;
	assert_string_equal(behaviour_class(&b), "io");
	b.fault_ms = 20;
	assert_string_equal(behaviour_class(&b), "memory");
	add(&b, 0, 40, 0, 100);
	assert_string_equal(behaviour_class(&b), "communication");
	assert_string_equal(behaviour_resource_name(b.phases[0].dominant), "disk");
	assert_string_equal(behaviour_resource_name(-1), "idle");
}

/* A job of many phases keeps its sums; the small ones are joined, and counted. */
static void test_more_phases_than_room(void **state)
{
	struct behaviour b = {0};
	double r[BEHAVIOUR_RESOURCES];

	(void)state;
	for (int i = 0; i < 100; i++)
		add(&b, i % 2 ? 0 : 100 + i, 0, i % 2 ? 100 + i : 0, 200);
	assert_true(b.n <= BEHAVIOUR_PHASES);
	assert_int_equal(b.n + b.joined, 100);
	NEAR(behaviour_sum(&b, r), 100 * 100 + 99 * 50);
	NEAR(r[BEHAVIOUR_CPU], 50 * 100 + 49 * 50);
	assert_true(behaviour_valid(&b));
}

/* Two jobs, one disk: 300 operations of 4 KiB beside 100 of 1 MiB. */
static void test_disk_shared(void **state)
{
	const double small = 300 * 4096, large = 100 << 20;
	uint64_t bytes = (uint64_t)(small + large);
	struct iocom_disk before = {.service_sum_ns = 5 * MS, .response_sum_ns = 6 * MS};
	struct iocom_disk now = {.service_sum_ns = 405 * MS,
				 .response_sum_ns = 606 * MS,
				 .task_bytes = bytes,
				 .unattributed_bytes = bytes / 3};
	struct jobdisk_due due = {0};
	struct iocom_disk_time a, b;
	double part = 0;

	(void)state;
	jobdisk_due_add(&due, &now, &before, &part);
	assert_true(fabs(due.service_ns / 1e6 - 300) < 1e-3);
	assert_true(fabs(due.wait_ns / 1e6 - 150) < 1e-3);
	a = jobdisk_share(&due, 300, small, 400, small + large);
	b = jobdisk_share(&due, 100, large, 400, small + large);
	assert_true(fabs((double)a.high_ns - 0.75 * due.service_ns) < 2);
	assert_true(fabs((double)a.low_ns - small / (small + large) * due.service_ns) < 2);
	assert_true(fabs((double)(a.low_ns + b.high_ns) - due.service_ns) < 4);
	assert_true(fabs((double)(a.high_ns + b.low_ns) - due.service_ns) < 4);
	assert_true(fabs((double)(a.wait_ns + b.wait_ns) - due.wait_ns) < 4);
	/* Completions without new bytes belong to the jobs of the last reading. */
	before = now;
	now.service_sum_ns += 40 * MS;
	due = (struct jobdisk_due){0};
	jobdisk_due_add(&due, &now, &before, &part);
	assert_true(fabs(due.service_ns / 1e6 - 30) < 1e-3);
	/* Only a disk above sent these: they belong to no job. */
	before = now;
	now.service_sum_ns += 40 * MS;
	now.stacked_bytes += bytes;
	due = (struct jobdisk_due){0};
	jobdisk_due_add(&due, &now, &before, &part);
	assert_true(due.service_ns == 0);
}

static void test_times(void **state)
{
	struct job_times_network network = {.mb_per_s = 0};
	struct iocom_job_load job = {.delta = {.explicit_read_bytes = 2000,
					       .implicit_bytes = 1000,
					       .implicit_ops = 3,
					       .cpu_ns = 30 * MS,
					       .run_wait_ns = 7 * MS,
					       .sent_bytes = 500000,
					       .received_bytes = 750000,
					       .sent_messages = 10},
				     .disk_delta = {20 * MS, 40 * MS, 9 * MS}};
	struct behaviour b = {0};
	struct job_times t;

	(void)state;
	job_times(&job, &network, &t);
	NEAR(t.ms[BEHAVIOUR_CPU], 30);
	NEAR(t.ms[BEHAVIOUR_COM], 10); /* 1.25 MB at 125 MB/s */
	NEAR(t.ms[BEHAVIOUR_DISK], 30);
	NEAR(t.fault_ms, 10);
	network.mb_per_s = 12.5;
	network.message_ms = 0.5;
	job_times(&job, &network, &t);
	NEAR(t.ms[BEHAVIOUR_COM], 105);
	job_times_learn(&b, &t, 1000);
	job_times_learn(&b, &t, 1000);
	NEAR(b.fault_requests, 6); /* of two readings */
	NEAR(b.fault_kb, 2);
	b = (struct behaviour){0};
	job_times_learn(&b, &t, 1000);
	NEAR(b.run_wait_ms, 7);
	NEAR(b.disk_wait_ms, 9);
	NEAR(b.disk_low_ms, 20);
	NEAR(b.disk_high_ms, 40);
	assert_string_equal(behaviour_class(&b), "communication");
	/* Nothing happened: no division by zero. */
	job = (struct iocom_job_load){0};
	job_times(&job, &network, &t);
	job_times_learn(&b, &t, 0);
	assert_int_equal(b.n, 1);
	assert_true(behaviour_valid(&b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parallel), cmocka_unit_test(test_phases),
		cmocka_unit_test(test_class),	 cmocka_unit_test(test_more_phases_than_room),
		cmocka_unit_test(test_times),	 cmocka_unit_test(test_disk_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
