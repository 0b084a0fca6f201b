/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The table of a node's jobs: what readings tell of each, and whose a cgroup was (jobs.h). */
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

#include "agent/guest/jobs.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))

/* Takes SAMPLE.  Returns the explicit operations of all jobs in it. */
static uint64_t take(struct jobs *jobs, struct sample_names *names,
		     const struct monitor_sample *sample)
{
	struct vector_jobs_did all = {0};

	jobs_sampled(jobs, names, sample, &all);
	return all.running.delta.explicit_ops;
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
	assert_int_equal(take(&jobs, NULL, &sample), 100);
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
		load[i].disk_delta = (struct iocom_disk_time){
			.low_ns = 200000000, .high_ns = 250000000, .metadata_bytes = 8192};
	}
	job = jobs_add(&jobs, &order);
	assert_non_null(job);
	job->cgroup_id = load[0].cgroup_id;
	job->state = JOB_RUNNING;
	job->start_ns = sample.time_ns - 700000000; /* the job started since the last reading */
	names = sample_names_new(root);
	assert_non_null(names);
	/* but the cgroup beside it does not count */
	assert_int_equal(take(&jobs, names, &sample), 3);
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
	assert_int_equal(take(&jobs, names, &sample), 3);
	NEAR(job->behaviour.disk_high_ms, 750);
	assert_int_equal(job->load.cpu_ns, 600000000);
	assert_int_equal(job->metadata_bytes, 3 * 8192);
	/*
	 * A disk that was removed, or is idle since then, is remembered by name and adds nothing.
	 */
	for (int i = 0; i < 4; i++)
		load[i] = (struct iocom_job_load){.cgroup_id = load[i].cgroup_id};
	assert_int_equal(take(&jobs, names, &sample), 0);
	assert_int_equal(job->load.cpu_ns, 600000000);
	assert_int_equal(job->rss_bytes, 0);
	jobs_fini(&jobs);
	assert_null(jobs.first);
	sample_names_free(names);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

/*
 * The monitor's last reading may miss the end of a process, or the kernel's account those that
 * nobody waited for: the larger counts. The shim's steps are not the job's.
 */
static void test_cpu_of_ended_job(void **state)
{
	static const struct {
		uint64_t monitor_us, kernel_us, begin_us;
		double expected_ms;
	} cases[] = {
		{5000, 7000, 400, 6.6}, {5000, 3000, 400, 4.6}, {5000, 0, 0, 5},
		{0, 7000, 400, 6.6},	{0, 300, 400, 0},	{0, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct job job = {
			.load = {.cpu_ns = cases[i].monitor_us * 1000},
			.end = {.cpu_us = cases[i].kernel_us, .begin_us = cases[i].begin_us},
		};
		struct job_report r;

		job_report_make(&job, 2, &r);
		NEAR(r.cpu_ms, cases[i].expected_ms * 2); /* at reference speed */
		NEAR(r.alone_ms, cases[i].expected_ms);
	}
}

/* What was written, or is left to be written if that is more, and what the file system adds. */
static void test_written_of_ended_job(void **state)
{
	struct job job = {
		.load = {.explicit_write_bytes = 4096,
			 .dirtied_bytes = 30000,
			 .cancelled_bytes = 10000},
		.metadata_bytes = 8192,
	};
	struct job_report r;

	(void)state;
	job_report_make(&job, 1, &r);
	NEAR(r.written_kb, 28.192);
	job.load.cancelled_bytes = 40000; /* of what another job wrote before, too */
	job_report_make(&job, 1, &r);
	NEAR(r.written_kb, 12.288);
}

/* The disk time of a job's cgroup after its end is known to be that job's. */
static void test_ended_job(void **state)
{
	struct job_order order = {.job = "h-1-1"};
	struct iocom_job_load load[2] = {
		{.cgroup_id = 42, .delta.cpu_ns = 5, .disk_delta = {.low_ns = 10, .high_ns = 20}},
		{.cgroup_id = 43, .delta.cpu_ns = 5, .disk_delta = {.low_ns = 100, .high_ns = 200}},
	};
	struct monitor_sample sample = {.jobs = load, .njobs = 2};
	struct vector_jobs_did all = {0};
	struct jobs jobs = {0};
	struct job *job = jobs_add(&jobs, &order);

	(void)state;
	assert_non_null(job);
	job->cgroup_id = 42;
	job->state = JOB_RUNNING;
	jobs_sampled(&jobs, NULL, &sample, &all);
	assert_int_equal(all.running.disk_delta.low_ns, 10);
	assert_int_equal(all.disk_ended.low_ns, 0);
	jobs_remove(&jobs, job);
	all = (struct vector_jobs_did){0};
	jobs_sampled(&jobs, NULL, &sample, &all);
	assert_int_equal(all.running.disk_delta.low_ns, 0);
	assert_int_equal(all.running.delta.cpu_ns, 0);
	assert_int_equal(all.disk_ended.low_ns, 10);
	assert_int_equal(all.disk_ended.high_ns, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_job_table),
		cmocka_unit_test(test_nested_jobs),
		cmocka_unit_test(test_ended_job),
		cmocka_unit_test(test_cpu_of_ended_job),
		cmocka_unit_test(test_written_of_ended_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
