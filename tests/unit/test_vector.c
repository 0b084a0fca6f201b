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

	assert_int_equal(vector_take(s, &sample, mine), 0);
	vector_close(s);
}

static void test_smoothing(void **state)
{
	struct vector_state s;
	struct iocom_vector v;

	(void)state;
	vector_init(&s);
	period(&s, 400, 4, 0);
	vector_build(&s, &self, &host, NULL, 0, &v);
	NEAR(v.explicit_per_ms, 0.4); /* the first value is not smoothed */
	NEAR(v.run_queue, 4);
	NEAR(v.implicit_per_ms, 0.01);
	period(&s, 0, 0, 0);
	vector_build(&s, &self, &host, NULL, 0, &v);
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
	vector_build(&s, &self, &host, jobs, 2, &v);
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
	vector_take(&s, &sample, 0);
	vector_close(&s);
	vector_build(&s, &self, &host, NULL, 0, &v);
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
	assert_false(vector_changed(&a, &b));
	b.run_queue = 1.4;
	assert_false(vector_changed(&a, &b));
	b.run_queue = 2;
	assert_true(vector_changed(&a, &b));
	b = a;
	b.jobs = 1;
	assert_true(vector_changed(&a, &b));
}

static void test_job_table(void **state)
{
	struct job_order order = {.job = "h-1-1", .home = "h"};
	struct iocom_job_load load = {.cgroup_id = 42, .delta.explicit_ops = 100, .rss_bytes = 5};
	struct monitor_sample sample = {.jobs = &load, .njobs = 1};
	struct jobs jobs = {0};
	struct vector_job *list;
	struct job *job;
	size_t n;

	(void)state;
	job = jobs_add(&jobs, &order);
	assert_non_null(job);
	assert_ptr_equal(jobs_find(&jobs, "h-1-1"), job);
	assert_null(jobs_find(&jobs, "h-1-2"));
	job->state = JOB_RUNNING;
	job->cgroup_id = 42;
	assert_int_equal(jobs_sampled(&jobs, NULL, &sample), 100);
	jobs_period(&jobs, 1000);
	NEAR(job->measured_per_ms, 0.05);
	assert_int_equal(job->seen, 1);
	list = jobs_vector(&jobs, &n);
	assert_int_equal(n, 1);
	free(list);
	job->state = JOB_ENDED;
	list = jobs_vector(&jobs, &n);
	assert_int_equal(n, 0);
	free(list);
	jobs_remove(&jobs, job);
	assert_int_equal(jobs.count, 0);
}

/* A job's cgroups are real directories here: their inode numbers are the ids. */
static void test_nested_jobs(void **state)
{
	struct job_order order = {.job = "h-1-1"};
	struct iocom_job_load load[4] = {{0}};
	struct monitor_sample sample = {
		.time_ns = 10000000000, .elapsed_ns = 1000000000, .jobs = load, .njobs = 4};
	char root[] = "/tmp/iocom-test-nested-XXXXXX", path[4][80], command[80];
	static const char *const below[] = {"", "/in", "/in/deep", "/../other"};
	struct sample_names *names;
	struct jobs jobs = {0};
	struct stat st;
	struct job *job;

	(void)state;
	assert_non_null(mkdtemp(root));
	for (int i = 0; i < 4; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/job%s", root, below[i]);
		assert_int_equal(mkdir(path[i], 0755), 0);
		assert_int_equal(stat(path[i], &st), 0);
		load[i].cgroup_id = st.st_ino;
		load[i].tasks = 1;
		load[i].rss_bytes = 10;
		load[i].delta.explicit_ops = 1;
		load[i].delta.explicit_read_bytes = 1000;
		load[i].delta.cpu_ns = 100000000;
		load[i].disk_delta = (struct iocom_disk_time){200000000, 250000000, 0};
	}
	job = jobs_add(&jobs, &order);
	assert_non_null(job);
	job->cgroup_id = load[0].cgroup_id;
	job->state = JOB_RUNNING;
	job->start_ns = sample.time_ns - 700000000; /* the job started since the last reading */
	names = sample_names_new(root);
	assert_non_null(names);
	/* but the cgroup beside it does not count */
	assert_int_equal(jobs_sampled(&jobs, names, &sample), 3);
	assert_int_equal(job->load.explicit_read_bytes, 3000);
	assert_int_equal(job->rss_bytes, 30);
	assert_int_equal(job->behaviour.n, 1);
	NEAR(job->behaviour.phases[0].ms[BEHAVIOUR_DISK], 675);
	NEAR(job->behaviour.phases[0].ms[BEHAVIOUR_CPU], 300);
	assert_string_equal(behaviour_class(&job->behaviour), "io");
	NEAR(job->behaviour.phases[0].wall_ms, 700);
	/* Totals go on even if the disk did nothing. */
	for (int i = 0; i < 4; i++)
		load[i].disk_delta = (struct iocom_disk_time){0};
	assert_int_equal(jobs_sampled(&jobs, names, &sample), 3);
	NEAR(job->behaviour.disk_high_ms, 750);
	assert_int_equal(job->load.cpu_ns, 600000000);
	/*
	 * A disk that was removed, or is idle since then, is remembered by name and adds nothing.
	 */
	for (int i = 0; i < 4; i++)
		load[i] = (struct iocom_job_load){.cgroup_id = load[i].cgroup_id};
	assert_int_equal(jobs_sampled(&jobs, names, &sample), 0);
	assert_int_equal(job->load.cpu_ns, 600000000);
	assert_int_equal(job->rss_bytes, 0);
	jobs_fini(&jobs);
	assert_null(jobs.first);
	sample_names_free(names);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
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
		cmocka_unit_test(test_disks),	      cmocka_unit_test(test_smoothing),
		cmocka_unit_test(test_jobs_declared), cmocka_unit_test(test_no_disk),
		cmocka_unit_test(test_change),	      cmocka_unit_test(test_job_table),
		cmocka_unit_test(test_nested_jobs),   cmocka_unit_test(test_report),
		cmocka_unit_test(test_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
