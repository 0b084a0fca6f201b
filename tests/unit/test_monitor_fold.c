/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Folding threads into processes and jobs: nothing counts twice, is lost, or goes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/monitor/monitor_fold.h"

#define JOB 77

static int setup(void **state)
{
	*state = fold_new(0, 0);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	fold_free(*state);
	return 0;
}

static void add_thread(struct fold *fold, uint32_t tgid, bool is_leader, uint64_t read_bytes)
{
	struct run_record run = {.tgid = tgid, .start = 1000 + tgid, .cgid = JOB};
	struct leader_record leader = {.rss_pages = 10, .uid = 5, .comm = "worker"};
	struct counters counters = {.explicit_read_bytes = read_bytes, .explicit_ops = 1};

	assert_int_equal(fold_run(fold, &run, is_leader ? &leader : NULL, &counters), 0);
}

static void add_late(struct fold *fold, uint32_t tgid, bool exited, uint64_t read_bytes)
{
	struct process_key key = {.tgid = tgid, .start = 1000 + tgid};
	struct late_value late = {.counters.explicit_read_bytes = read_bytes,
				  .cgid = JOB,
				  .uid = 5,
				  .exited = exited,
				  .comm = "worker"};

	assert_int_equal(fold_late(fold, &key, &late), 0);
	assert_int_equal(fold_job(fold, JOB, &late.counters), 0);
}

static struct fold_result end(struct fold *fold)
{
	struct fold_result result;

	assert_int_equal(fold_end(fold, &result), 0);
	return result;
}

static void add_memory(struct fold *fold, uint32_t tgid, uint64_t pages, uint32_t file_pages)
{
	struct run_record run = {.tgid = tgid, .start = 1000 + tgid, .cgid = JOB};
	struct leader_record leader = {.rss_pages = pages, .file_pages = file_pages};

	assert_int_equal(fold_run(fold, &run, &leader, NULL), 0);
}

/* The pages of programs and libraries, which the processes of a job share, count once. */
static void test_shared_files(void **state)
{
	struct fold *fold = *state;
	struct fold_result result;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	fold_begin(fold, 1000);
	add_memory(fold, 7, 500, 400);
	add_memory(fold, 8, 900, 450);
	add_memory(fold, 9, 300, 100);
	add_memory(fold, 10, 50, 60); /* it grew between the two readings */
	result = end(fold);
	assert_int_equal(result.njobs, 1);
	assert_int_equal(result.jobs[0].tasks, 4);
	assert_int_equal(result.jobs[0].rss_bytes / page, 100 + 450 + 200 + 0 + 450);
	assert_int_equal(result.ntasks, 4);
	for (size_t i = 0; i < result.ntasks; i++) /* a process has all of its own */
		if (result.tasks[i].pid == 8)
			assert_int_equal(result.tasks[i].rss_bytes / page, 900);
	/* The next reading begins at nothing. */
	fold_begin(fold, 2000);
	add_memory(fold, 8, 500, 400);
	result = end(fold);
	assert_int_equal(result.jobs[0].rss_bytes / page, 500);
}

/* The record of its end, which names the last cgroup, may come before the record of its move. */
static void test_moved_and_ended(void **state)
{
	struct fold *fold = *state;
	struct process_key moved = {.tgid = 10, .start = 1010, .part = LATE_MOVED};
	struct process_key ended = {.tgid = 10, .start = 1010};
	struct late_value past = {.counters.cpu_ns = 5, .cgid = JOB + 1};
	struct late_value end_there = {.cgid = JOB + 1, .exited = 1, .comm = "worker"};
	struct fold_result r;

	fold_begin(fold, 1);
	add_thread(fold, 10, true, 100);
	end(fold);
	fold_begin(fold, 2);
	assert_int_equal(fold_late(fold, &ended, &end_there), 0);
	assert_int_equal(fold_late(fold, &moved, &past), 0);
	r = end(fold);
	assert_int_equal(r.njobs, 1);
	assert_int_equal(r.jobs[0].cgroup_id, JOB);
	assert_int_equal(r.jobs[0].load.cpu_ns, 5);
	assert_int_equal(r.tasks[0].cgroup_id, JOB + 1);
}

/* Read while it ended: its base is newer than its time. A negative result counts as 0. */
static void test_less_than_nothing(void **state)
{
	struct fold *fold = *state;
	struct run_record run = {.tgid = 10, .start = 1010, .cgid = JOB, .cpu_ns = -(uint64_t)5};
	struct leader_record leader = {.comm = "worker"};
	struct process_key key = {.tgid = 10, .start = 1010};
	struct late_value late = {.counters.cpu_ns = 100, .cgid = JOB};
	struct fold_result r;

	fold_begin(fold, 1);
	assert_int_equal(fold_run(fold, &run, &leader, NULL), 0);
	r = end(fold);
	assert_int_equal(r.tasks[0].load.cpu_ns, 0);
	assert_int_equal(r.tasks[0].delta.cpu_ns, 0);
	assert_int_equal(r.jobs[0].load.cpu_ns, 0);
	fold_begin(fold, 2);
	assert_int_equal(fold_late(fold, &key, &late), 0);
	assert_int_equal(fold_job(fold, JOB, &late.counters), 0);
	assert_int_equal(fold_run(fold, &run, &leader, NULL), 0);
	r = end(fold);
	assert_int_equal(r.tasks[0].load.cpu_ns, 95);
	assert_int_equal(r.jobs[0].delta.cpu_ns, 95);
}

/*
 * What a process did before it moved goes to the cgroup where an earlier reading saw it, else to
 * the new one.
 */
static void test_moved_before_counted(void **state)
{
	struct fold *fold = *state;
	struct process_key seen = {.tgid = 10, .start = 1010, .part = LATE_MOVED};
	struct process_key unseen = {.tgid = 11, .start = 1011, .part = LATE_MOVED};
	struct late_value late = {.counters.cpu_ns = 5, .cgid = JOB + 1};
	struct fold_result r;

	fold_begin(fold, 1);
	add_thread(fold, 10, true, 100);
	end(fold);
	fold_begin(fold, 2);
	assert_int_equal(fold_late(fold, &seen, &late), 0);
	assert_int_equal(fold_late(fold, &unseen, &late), 0);
	add_thread(fold, 10, true, 100);
	r = end(fold);
	assert_int_equal(r.ntasks, 1);
	assert_int_equal(r.tasks[0].load.cpu_ns, 5);
	assert_int_equal(r.njobs, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(r.jobs[i].load.cpu_ns, 5);
}

static void test_threads_become_one_process(void **state)
{
	struct fold *fold = *state;
	struct fold_result r;

	fold_begin(fold, 1);
	add_thread(fold, 10, true, 100);
	add_thread(fold, 10, false, 30);
	r = end(fold);
	assert_int_equal(r.ntasks, 1);
	assert_int_equal(r.tasks[0].load.explicit_read_bytes, 130);
	assert_int_equal(r.tasks[0].delta.explicit_read_bytes, 130);
	assert_int_equal(r.njobs, 1);
	assert_int_equal(r.jobs[0].load.explicit_read_bytes, 130);
	assert_int_equal(r.jobs[0].tasks, 1);
	assert_int_equal(r.live_tasks, 1);
	assert_int_equal(r.io_tasks, 1);

	/* One thread ends: its bytes move from live to folded, the total stays. */
	fold_begin(fold, 2);
	add_late(fold, 10, false, 30);
	add_thread(fold, 10, true, 100);
	r = end(fold);
	assert_int_equal(r.tasks[0].load.explicit_read_bytes, 130);
	assert_int_equal(r.tasks[0].delta.explicit_read_bytes, 0);
	assert_int_equal(r.jobs[0].load.explicit_read_bytes, 130);
}

static void test_totals_never_go_back(void **state)
{
	struct fold *fold = *state;
	struct fold_result r;

	fold_begin(fold, 1);
	add_thread(fold, 10, true, 100);
	add_thread(fold, 10, false, 30);
	end(fold);
	fold_begin(fold, 2); /* the second thread has ended, but its fold has not come yet */
	add_thread(fold, 10, true, 105);
	r = end(fold);
	assert_int_equal(r.tasks[0].load.explicit_read_bytes, 130);
	fold_begin(fold, 3);
	add_late(fold, 10, false, 30);
	add_thread(fold, 10, true, 110);
	r = end(fold);
	assert_int_equal(r.tasks[0].load.explicit_read_bytes, 140);
	assert_int_equal(r.tasks[0].delta.explicit_read_bytes, 10);
}

static void test_an_exit_shows_once_and_late_bytes_once_more(void **state)
{
	struct fold *fold = *state;
	struct fold_result r;

	fold_begin(fold, 1);
	/* the task came and ended between two readings, and did nothing */
	add_late(fold, 10, true, 0);
	r = end(fold);
	assert_int_equal(r.ntasks, 1);
	assert_true(r.tasks[0].exited);
	assert_string_equal(r.tasks[0].comm, "worker");
	assert_int_equal(r.live_tasks, 0);
	fold_begin(fold, 2);
	assert_int_equal(end(fold).ntasks, 0);
	fold_begin(fold, 3);
	add_late(fold, 10, false, 4096);
	r = end(fold);
	assert_int_equal(r.ntasks, 1);
	assert_true(r.tasks[0].exited);
	assert_string_equal(r.tasks[0].comm, "worker");
	assert_int_equal(r.tasks[0].load.explicit_read_bytes, 4096);
	fold_begin(fold, 4);
	assert_int_equal(end(fold).ntasks, 0);
	fold_begin(fold, 5 + FOLD_EXITED_S); /* forgotten because of its age: this is no drop */
	r = end(fold);
	assert_int_equal(r.evicted_processes, 0);
}

static void test_too_many_exited_are_counted(void **state)
{
	struct fold *fold = *state;
	struct fold_result r;
	uint32_t i;

	fold_begin(fold, 1);
	for (i = 1; i <= FOLD_EXITED_MAX + 100; i++)
		add_late(fold, i, true, 1);
	r = end(fold);
	assert_int_equal(r.ntasks,
			 FOLD_EXITED_MAX + 100); /* each is shown once before it is forgotten */
	assert_int_equal(r.jobs[0].load.explicit_read_bytes, FOLD_EXITED_MAX + 100);
	fold_begin(fold, 2);
	assert_int_equal(end(fold).evicted_processes, 100);
	/* A process whose end was lost is given up after a while. */
	fold_begin(fold, 3);
	add_thread(fold, 4000000, true, 1);
	end(fold);
	for (i = 0; i <= FOLD_MISSING_MAX; i++) {
		fold_begin(fold, 4 + i);
		r = end(fold);
		assert_int_equal(r.ntasks, 1);
		assert_int_equal(r.tasks[0].exited, i == FOLD_MISSING_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_threads_become_one_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved_and_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_less_than_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved_before_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_totals_never_go_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_exit_shows_once_and_late_bytes_once_more,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_exited_are_counted, setup, teardown),
	};

	return cmocka_run_group_tests_name("monitor_fold", tests, NULL, NULL);
}
