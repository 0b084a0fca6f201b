/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The samples show that each trace format is read right: held fields and generated fields. */
#include "tests/sim/workload_fixture.h"

#include <unistd.h>

static void test_columns8(void **state)
{
	struct workload *w = must_open(SAMPLES "columns8.txt", NULL);
	const struct workload_info *info = workload_info(w);
	struct sim_job j;

	(void)state;
	assert_string_equal(info->source, "eight-column trace columns8.txt");
	assert_int_equal(info->jobs, 4);
	assert_int_equal(info->nodes, 6);
	assert_int_equal(info->kinds, 2);
	assert_string_equal(info->synthetic, "request_kb, reaccess, faults_per_ms");
	assert_string_equal(info->note, "");
	j = must_next(w);
	assert_int_equal(j.id, 0);
	NEAR(j.arrival_ms, 0, 0);
	assert_int_equal(j.home, 0);
	assert_int_equal(j.tasks, 1);
	NEAR(j.cpu_ms, 1500, 1e-9);
	NEAR(j.memory_mb, 4, 0);
	NEAR(j.io_per_ms, 0.5, 0);
	NEAR(j.requests, -1, 0);
	NEAR(j.initial_mb, 50, 0);
	NEAR(j.write_fraction, 0, 0);
	NEAR(j.request_kb, 256, 0);
	NEAR(j.reaccess, 5, 0);
	NEAR(j.faults_per_ms, 0.5, 0);
	assert_int_equal(j.kind, 1);
	j = must_next(w);
	assert_int_equal(j.kind, 0);
	j = must_next(w);
	NEAR(j.write_fraction, 1, 0);
	j = must_next(w);
	assert_int_equal(j.id, 3);
	NEAR(j.arrival_ms, 1250, 1e-9);
	assert_int_equal(j.home, 5);
	NEAR(j.cpu_ms, 5, 1e-12);
	NEAR(j.write_fraction, 0.5, 0);
	must_end(w);
	workload_free(w);
}

static void test_columns8_spellings(void **state)
{
	static const char *const texts[] = {
		"1 2 3 4 5 -1 0 6\n",
		"arrival_time,node,duration,memory,io,io_node,io_type,data\n1,2,3,4,5,2,r,6\n",
		"# c\r\n; c\r\n1;2; 3 ;4;5;-1;r;6\r\n",
		"\t1\t+2\t3.0e0\t4.\t5 -1 0 0.6E+1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct workload *w = must_open_text(texts[i], NULL);
		struct sim_job j = must_next(w);

		NEAR(j.arrival_ms, 1000, 0);
		assert_int_equal(j.home, 2);
		NEAR(j.cpu_ms, 3000, 0);
		NEAR(j.memory_mb, 4, 0);
		NEAR(j.io_per_ms, 5, 0);
		NEAR(j.initial_mb, 6, 0);
		must_end(w);
		workload_free(w);
	}
}

static void test_columns8_data_elsewhere(void **state)
{
	struct workload *w = must_open_text("0 1 1 4 1 3 r 5\n0 1 1 4 1 1 r 5\n", NULL);

	(void)state;
	assert_string_equal(
		workload_info(w)->note,
		"in the trace the data of 1 jobs is at another node; here it is at home");
	workload_free(w);
}

static void test_csd(void **state)
{
	struct workload_options o = defaults();
	struct workload *w = must_open(SAMPLES "csd.csv", &o);
	const struct workload_info *info = workload_info(w);
	struct sim_job j;

	(void)state;
	/* the first run in the file is 2 */
	assert_string_equal(info->source, "CSD process trace csd.csv, run 2");
	assert_int_equal(info->jobs, 4);
	assert_int_equal(info->nodes, 6);
	assert_string_equal(info->kind[0], "process");
	assert_string_equal(
		info->synthetic,
		"memory_mb, io_per_ms, request_kb, reaccess, faults_per_ms, initial_mb");
	j = must_next(w);
	NEAR(j.arrival_ms, 500, 1e-9);
	assert_int_equal(j.home, 5);
	NEAR(j.cpu_ms, 90, 1e-9);
	j = must_next(w);
	NEAR(j.cpu_ms, 5, 1e-12);
	j = must_next(w);
	NEAR(j.arrival_ms, 61200, 1e-9);
	j = must_next(w);
	NEAR(j.arrival_ms, 3599900, 1e-6);
	must_end(w);
	workload_free(w);

	o.run = 0;
	w = must_open(SAMPLES "csd.csv", &o);
	assert_int_equal(workload_info(w)->jobs, 3);
	must_next(w);
	j = must_next(w);
	NEAR(j.cpu_ms, 1573500, 0);
	j = must_next(w);
	NEAR(j.arrival_ms, 59 * 60000 + 3500, 1e-9);
	must_end(w);
	workload_free(w);
}

static void test_swf(void **state)
{
	struct workload *w = must_open(SAMPLES "log.swf", NULL);
	const struct workload_info *info = workload_info(w);
	struct sim_job j;

	(void)state;
	assert_int_equal(info->jobs, 4);
	assert_int_equal(info->left_out, 1);
	assert_int_equal(info->nodes, 4); /* MaxNodes, not MaxProcs */
	assert_string_equal(info->synthetic, "home, memory_mb (in part), io_per_ms, request_kb, "
					     "reaccess, faults_per_ms, initial_mb");
	j = must_next(w);
	NEAR(j.arrival_ms, 0, 0); /* counted from the first job */
	NEAR(j.cpu_ms, 55000, 1e-9);
	NEAR(j.memory_mb, 2, 1e-12);
	assert_int_equal(j.tasks, 1);
	assert_true(j.home < 4);
	j = must_next(w);
	NEAR(j.arrival_ms, 10000, 1e-9);
	NEAR(j.cpu_ms, 30000, 1e-9); /* without CPU time: the run time */
	NEAR(j.memory_mb, 8, 1e-12); /* without used memory: the requested memory */
	assert_int_equal(j.tasks, 4);
	assert_int_equal(j.kind, 1);
	j = must_next(w);
	NEAR(j.cpu_ms, 500, 1e-9);		   /* below a second */
	assert_true(j.memory_mb > 4.0 / 3 - 1e-9); /* generated */
	assert_int_equal(j.id, 2);
	j = must_next(w);
	NEAR(j.cpu_ms, 9500, 1e-9);
	NEAR(j.memory_mb, 512, 1e-9);
	assert_int_equal(j.tasks, 8);
	must_end(w);
	workload_free(w);
}

static void test_swf_requested(void **state)
{
	struct workload_options o = defaults();
	struct workload *w;
	struct sim_job j;

	(void)state;
	o.requested = true;
	o.tasks_max = 2;
	w = must_open(SAMPLES "log.swf", &o);
	j = must_next(w);
	NEAR(j.cpu_ms, 120000, 1e-9);
	NEAR(j.memory_mb, 4, 1e-12);
	j = must_next(w);
	assert_int_equal(j.tasks, 2); /* six tasks, folded; the work stays the same */
	NEAR(j.cpu_ms, 180000, 1e-9);
	NEAR(j.memory_mb, 24, 1e-12);
	workload_free(w);
}

static void test_darshan(void **state)
{
	struct workload *w = must_open(SAMPLES "darshan.csv", NULL);
	const struct workload_info *info = workload_info(w);
	struct sim_job j;

	(void)state;
	assert_int_equal(info->jobs, 3);
	assert_int_equal(info->kinds, 2);
	assert_string_equal(info->kind[0], "reader");
	assert_string_equal(info->kind[1], "ior");
	assert_string_equal(info->synthetic, "home, memory_mb, faults_per_ms, initial_mb");
	j = must_next(w); /* sorted by time, so the second row comes first */
	NEAR(j.arrival_ms, 0, 0);
	assert_int_equal(j.kind, 1);
	assert_int_equal(j.tasks, 2);
	NEAR(j.cpu_ms, 1000 * (20 - 8 / 2.0), 1e-9);
	NEAR(j.requests, 10, 0);
	NEAR(j.request_kb, 4096000 / 20.0 / 1000, 1e-9);
	NEAR(j.write_fraction, 0.5, 1e-12);
	NEAR(j.io_per_ms, 10 / 16000.0, 1e-15);
	j = must_next(w);
	NEAR(j.arrival_ms, 50000, 1e-6);
	NEAR(j.requests, 0, 0);
	NEAR(j.io_per_ms, 0, 0);
	j = must_next(w);
	NEAR(j.arrival_ms, 100000, 1e-6);
	NEAR(j.requests, 250, 0);
	NEAR(j.request_kb, 8.192, 1e-9);
	NEAR(j.cpu_ms, 50000, 1e-9);
	assert_int_equal(j.id, 2);
	must_end(w);
	workload_free(w);
}

/* The same names without a row index: names and fields match. */
static void test_darshan_unshifted(void **state)
{
	static const char text[] =
		"darshan_start_time,darshan_walltime,darshan_nprocs,darshan_tot_reads_posix,"
		"darshan_tot_writes_posix,darshan_tot_bytes_read_posix,"
		"darshan_tot_bytes_written_posix\n"
		"5,10,1,4,0,8000,0\n";
	struct workload *w = must_open_text(text, NULL);
	struct sim_job j = must_next(w);

	(void)state;
	NEAR(j.cpu_ms, 10000, 0);
	NEAR(j.requests, 4, 0);
	NEAR(j.request_kb, 2, 0);
	assert_string_equal(workload_info(w)->kind[0], "application");
	workload_free(w);
}

static void test_block(void **state)
{
	struct workload *w = must_open(SAMPLES "block.csv", NULL);
	struct workload_options o = defaults();
	struct sim_job j;

	(void)state;
	assert_int_equal(workload_info(w)->jobs, 3);
	assert_string_equal(workload_info(w)->synthetic,
			    "home, cpu_ms, memory_mb, faults_per_ms, initial_mb");
	j = must_next(w);
	NEAR(j.arrival_ms, 0, 0);
	NEAR(j.requests, 3, 0);
	NEAR(j.request_kb, 16.384 / 3, 1e-12);
	NEAR(j.request_sd_kb, 4.096 * sqrt(2.0) / 3, 1e-9); /* deviation of 1, 2, 1 times 4.096 */
	NEAR(j.write_fraction, 0.25, 1e-12);
	NEAR(j.cpu_ms, 0.3, 1e-12);
	assert_int_equal(j.kind, 0);
	j = must_next(w);
	NEAR(j.arrival_ms, 1000, 1e-9);
	assert_int_equal(j.kind, 1);
	j = must_next(w);
	NEAR(j.arrival_ms, 3000, 1e-9);
	NEAR(j.requests, 1, 0);
	must_end(w);
	workload_free(w);

	o.burst_gap_ms = -1; /* every request */
	o.time_unit_s = 1e-6;
	w = must_open(SAMPLES "block.csv", &o);
	assert_int_equal(workload_info(w)->jobs, 5);
	workload_free(w);
	o.burst_gap_ms = 1;
	w = must_open(SAMPLES "block.csv", &o);
	assert_int_equal(workload_info(w)->jobs, 1);
	workload_free(w);
}

static void test_recording(void **state)
{
	struct workload *w = must_open(SAMPLES "recording.jsonl", NULL);
	const struct workload_info *info = workload_info(w);
	struct sim_job j;

	(void)state;
	assert_string_equal(info->synthetic, "");
	assert_string_equal(info->note, "");
	assert_int_equal(info->jobs, 2);
	assert_int_equal(info->nodes, 2);
	assert_string_equal(info->kind[0], "scan");
	assert_string_equal(info->kind[1], "sum");
	j = must_next(w);
	NEAR(j.arrival_ms, 1200.1, 0);
	assert_int_equal(j.home, 1);
	NEAR(j.cpu_ms, 400, 0);
	NEAR(j.io_per_ms, 2.8, 0);
	NEAR(j.requests, -1, 0);
	j = must_next(w);
	assert_int_equal(j.kind, 1);
	assert_int_equal(j.tasks, 3);
	NEAR(j.barrier_ms, 100, 0);
	must_end(w);
	assert_int_equal(workload_rewind(w, NULL), 0);
	j = must_next(w);
	assert_int_equal(j.id, 0);
	workload_free(w);
}

/* Real traces, if the user has them: IOCOM_TRACES names their folder. */
static void test_real(void **state)
{
	static const struct {
		const char *name;
		int32_t run;
		uint64_t jobs, left_out;
		double mean_cpu_ms, within;
	} rows[] = {
		{"CSD-trace.csv.gz", 0, 18039, 0, 431, 1},
		{"CSD-trace.csv.gz", 1, 19535, 0, 480, 1},
		{"CSD-trace.csv.gz", 2, 20271, 0, 402, 1},
		{"CSD-trace.csv.gz", 3, 19872, 0, 318, 1},
		{"CSD-trace.csv.gz", 4, 15193, 0, 397, 1},
		{"LPC-EGEE-2004-1.2-cln.swf.gz", -1, 220695, 14194, 0, 0},
		{"HPC2N-2002-2.2-cln.swf.gz", -1, 202871, 0, 0, 0},
		{"LCG-2005-1.swf.gz", -1, 188041, 0, 0, 0},
		{"cori-darshan-summaries_2017-02-14_2018-02-15.csv.gz", -1, 11232, 0, 0, 0},
		{"cloudPhysicsIO.csv.gz", -1, 6754, 0, 0, 0},
	};
	const char *folder = getenv("IOCOM_TRACES");
	struct workload_options o = defaults();
	char path[1024];

	(void)state;
	if (!folder) {
		print_message("skipped: IOCOM_TRACES names no folder of traces\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct workload *w;
		struct sim_job j;
		double sum = 0;
		uint64_t n = 0;

		snprintf(path, sizeof(path), "%s/%s", folder, rows[i].name);
		if (access(path, R_OK))
			continue;
		o.run = rows[i].run;
		w = must_open(path, &o);
		assert_int_equal(workload_info(w)->jobs, rows[i].jobs);
		assert_int_equal(workload_info(w)->left_out, rows[i].left_out);
		while (workload_next(w, &j, NULL) == 1) {
			sum += j.cpu_ms;
			n++;
		}
		assert_int_equal(n, rows[i].jobs);
		if (rows[i].within > 0)
			NEAR(sum / (double)n, rows[i].mean_cpu_ms, rows[i].within);
		workload_free(w);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns8),
		cmocka_unit_test(test_columns8_spellings),
		cmocka_unit_test(test_columns8_data_elsewhere),
		cmocka_unit_test(test_csd),
		cmocka_unit_test(test_swf),
		cmocka_unit_test(test_swf_requested),
		cmocka_unit_test(test_darshan),
		cmocka_unit_test(test_darshan_unshifted),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_recording),
		cmocka_unit_test(test_real),
	};

	return cmocka_run_group_tests_name("workload formats", tests, NULL, NULL);
}
