/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The probe's study: its text, a machine with and without background, how decisions are made, and
 * ZAT-8 against its closed form.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "sim/probe/probe.h"

#define assert_near(got, expected, within) assert_true(fabs((got) - (expected)) <= (within))

struct bench {
	struct probe_spec spec;
	struct sim_cluster cluster;
	struct sim_params params;
	struct probe_month month;
	struct iocom_err err;
};

/* Sets the common configuration of ZAT. */
static void bench_init(struct bench *b, const char *text, const char *nodes)
{
	memset(b, 0, sizeof(*b));
	assert_int_equal(probe_spec_parse(&b->spec, text, &b->err), 0);
	assert_int_equal(sim_cluster_parse(&b->cluster, nodes, &b->err), 0);
	sim_params_default(&b->params);
	rules_params_default(&b->params.rules, RULES_RATES_WALL);
	b->params.fidelity = SIM_REQUEST;
	b->params.priority_decay = true;
	b->params.information_period_ms = 30000;
	b->params.rules.fixed_cost_ms = 4900;
}

static void bench_run(struct bench *b, uint64_t seed)
{
	assert_int_equal(probe_month_run(&b->spec, &b->cluster, &b->params, seed, NULL, NULL,
					 &b->month, &b->err),
			 0);
}

static void bench_free(struct bench *b)
{
	probe_month_free(&b->month);
	sim_cluster_free(&b->cluster);
}

/* --- the text ------------------------------------------------------------------------- */

static void refuses(const char *text, const char *says)
{
	struct probe_spec spec;
	struct iocom_err err = {0};

	assert_int_equal(probe_spec_parse(&spec, text, &err), -EINVAL);
	assert_non_null(strstr(err.text, says));
}

static void test_text(void **state)
{
	struct probe_spec spec;
	struct iocom_err err = {0};

	(void)state;
	assert_int_equal(probe_spec_parse(&spec, "probe:io,local=7,jobs=12", &err), 0);
	assert_string_equal(spec.job->name, "io");
	assert_true(spec.local == 7 && spec.jobs == 12 && spec.alpha == 0.5);
	assert_int_equal(probe_spec_parse(&spec, "probe:imbalance,exact=1", &err), 0);
	assert_true(!spec.job && spec.exact);
	refuses("probe:", "found \"\"");
	refuses("probe:vi", "expected cc, io, cpu, nroff or imbalance, found \"vi\"");
	refuses("probe:cpu,local", "expected key=value, found \"local\"");
	refuses("probe:cpu,near=1", "there is no key \"near\"");
	refuses("probe:cpu,local=-1", "local: expected a number from 0 to 1000, found \"-1\"");
	refuses("probe:cpu,local=nan", "local: expected");
	refuses("probe:cpu,local=2x", "local: expected");
	refuses("probe:cpu,jobs=2.5", "jobs: expected a count");
	refuses("probe:imbalance,exact=2", "exact: expected 0 or 1");
}

/* --- the machines ---------------------------------------------------------------------- */

/*
 * Alone: computation on what the system's own work leaves, 25 ms per block; the printed
 * cost of rsh.
 */
static void alone(const char *text, double cpu_s, double blocks)
{
	struct bench b;
	double alone_s = cpu_s / (1 - 0.43) + blocks * 0.025;

	bench_init(&b, text, "2xvax");
	b.spec.local = b.spec.remote = 0;
	b.spec.jobs = 3;
	bench_run(&b, 1);
	for (uint32_t i = 0; i < 3; i++) {
		const double *v = b.month.rows[i].v;

		assert_near(v[PROBE_LOCAL_S], alone_s, 1e-6);
		assert_near(v[PROBE_PURE_S], alone_s, 1e-6);
		assert_near(v[PROBE_REMOTE_S], alone_s + 4.9, 1e-6);
		assert_near(v[PROBE_IDLE], 57, 1e-9);
		assert_true(v[PROBE_QUEUE] == 0 && v[PROBE_BLOCKS] == 0 && v[PROBE_LOAD] == 0);
		assert_true(v[PROBE_ACTIVE] == 0 && v[PROBE_FREE] > 0 && v[PROBE_FREE] <= 3600);
	}
	bench_free(&b);
}

static void test_alone(void **state)
{
	(void)state;
	alone("probe:cpu", 0.5110 * 13.09, 0);
	alone("probe:io", 0.2075 * 17.28, 479);
	alone("probe:cc", 0.5698 * 27.52, 150);
	alone("probe:nroff", 0.5159 * 46.83, 19);
}

/* A loaded remote machine costs 0.8 s more. */
static void test_overhead(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, "probe:cpu,jobs=5,local=0,remote=40,swing=0,mood_sd=0,io_share=0", "2xvax");
	bench_run(&b, 2);
	for (uint32_t i = 0; i < 5; i++)
		assert_near(b.month.rows[i].v[PROBE_OVERHEAD_S], 5.7, 1e-9);
	bench_free(&b);
}

/* All probes get the same background; a busy machine is slower than an idle one. */
static void test_background(void **state)
{
	struct bench cpu, io, again;
	double local = 0, remote = 0, queue = 0;

	(void)state;
	bench_init(&cpu, "probe:cpu,jobs=60,local=4,remote=0,swing=0,mood_sd=0", "2xvax");
	bench_init(&io, "probe:io,jobs=60,local=4,remote=0,swing=0,mood_sd=0", "2xvax");
	bench_init(&again, "probe:cpu,jobs=60,local=4,remote=0,swing=0,mood_sd=0", "2xvax");
	bench_run(&cpu, 5);
	bench_run(&io, 5);
	bench_run(&again, 5);
	assert_memory_equal(cpu.month.rows, again.month.rows, 60 * sizeof(*cpu.month.rows));
	for (uint32_t i = 0; i < 60; i++) {
		const double *v = cpu.month.rows[i].v, *w = io.month.rows[i].v;

		for (int c = PROBE_IDLE; c < PROBE_COLUMNS; c++)
			assert_true(v[c] == w[c]);
		assert_true(v[PROBE_IDLE] >= 0 && v[PROBE_IDLE] <= 57 && v[PROBE_BLOCKS] <= 41);
		/*
		 * 0.7 s more at a queue of 6.5 or above; a remote machine without loops adds
		 * nothing
		 */
		assert_near(v[PROBE_OVERHEAD_S], 4.9 + 0.7 * fmin(1, v[PROBE_QUEUE] / 6.5), 1e-9);
		local += v[PROBE_LOCAL_S] / 60;
		remote += v[PROBE_PURE_S] / 60;
		queue += v[PROBE_LOAD] / 60;
	}
	assert_near(remote, 0.511 * 13.09 / 0.57, 1e-6);
	assert_true(local > 2 * remote);
	assert_true(queue > 2 && queue < 5); /* four loops, 70 % of them always runnable */
	probe_month_free(&again.month);
	bench_run(&again, 6);
	assert_memory_not_equal(cpu.month.rows, again.month.rows, 60 * sizeof(*cpu.month.rows));
	bench_free(&cpu);
	bench_free(&io);
	bench_free(&again);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void test_refused_and_stopped(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, "probe:cpu", "3xvax");
	assert_int_equal(
		probe_month_run(&b.spec, &b.cluster, &b.params, 1, NULL, NULL, &b.month, &b.err),
		-EINVAL);
	assert_non_null(strstr(b.err.text, "two machines"));
	bench_free(&b);
	bench_init(&b, "probe:cpu", "2xvax");
	assert_int_equal(
		probe_month_run(&b.spec, &b.cluster, &b.params, 1, never, NULL, &b.month, &b.err),
		-ECANCELED);
	assert_null(b.month.rows);
	bench_free(&b);
}

/* --- decisions ------------------------------------------------------------------------- */

/* A row of the month: queue, idle time and traffic of both machines, and which was faster. */
static struct probe_row row(double queue, double idle, double blocks, double r_queue, double r_idle,
			    double r_blocks, bool remote)
{
	return (struct probe_row){.v = {
					  [PROBE_LOCAL_S] = remote ? 30 : 20,
					  [PROBE_REMOTE_S] = remote ? 20 : 30,
					  [PROBE_QUEUE] = queue,
					  [PROBE_IDLE] = idle,
					  [PROBE_BLOCKS] = blocks,
					  [PROBE_FREE] = 2000,
					  [PROBE_AT_REMOTE] = r_idle,
					  [PROBE_R_QUEUE] = r_queue,
					  [PROBE_R_BLOCKS] = r_blocks,
					  [PROBE_R_FREE] = 2000,
				  }};
}

static struct probe_score decide(const char *probe, const char *policy, bool idle,
				 struct probe_row *rows, uint32_t n)
{
	struct probe_month month = {.n = n, .rows = rows};
	struct probe_score score;
	struct bench b;

	bench_init(&b, probe, "2xvax");
	b.params.rules.zatti_idle = idle;
	assert_int_equal(probe_decide(&b.spec, &month, &b.cluster, &b.params.rules, policy, 1,
				      &score, &b.err),
			 0);
	bench_free(&b);
	return score;
}

static double sent(const char *probe, const char *policy, bool idle, struct probe_row one)
{
	return decide(probe, policy, idle, &one, 1).sent;
}

/* The thresholds of 3.14 and Table 2: which probe uses which field. */
static void test_thresholds(void **state)
{
	const char *binary = "zatti-binary", *real = "zatti-real";

	(void)state;
	/* run queue above 4, and a target whose queue is shorter by more than 3 */
	assert_true(sent("probe:cpu", binary, false, row(5, 0, 0, 1, 0, 0, 1)) == 1);
	assert_true(sent("probe:cpu", binary, false, row(5, 0, 0, 2, 0, 0, 1)) == 0);
	assert_true(sent("probe:cpu", binary, false, row(4, 0, 0, 0, 57, 0, 1)) == 0);
	/* i/o 15 blocks/s: IO and CC use it, CPU and NROFF do not */
	assert_true(sent("probe:io", binary, false, row(0, 57, 16, 9, 0, 0, 1)) == 1);
	assert_true(sent("probe:io", binary, false, row(9, 0, 15, 0, 57, 0, 1)) == 0);
	assert_true(sent("probe:cc", binary, false, row(0, 57, 16, 0, 57, 0, 1)) == 1);
	assert_true(sent("probe:cpu", binary, false, row(0, 57, 16, 0, 57, 0, 1)) == 0);
	assert_true(sent("probe:nroff", binary, false, row(0, 57, 16, 0, 57, 0, 1)) == 0);
	/* cpu_idle below 10 % means busy; the real form requires the probe's own share */
	assert_true(sent("probe:cpu", binary, true, row(0, 9, 0, 0, 10, 0, 1)) == 1);
	assert_true(sent("probe:cpu", binary, true, row(0, 10, 0, 0, 57, 0, 1)) == 0);
	assert_true(sent("probe:cpu", binary, true, row(0, 9, 0, 0, 9, 0, 1)) == 0);
	assert_true(sent("probe:cpu", real, true, row(0, 50, 0, 0, 52, 0, 1)) == 1);
	assert_true(sent("probe:cpu", real, true, row(0, 50, 0, 0, 51, 0, 1)) == 0);
	assert_true(sent("probe:cpu", real, true, row(0, 52, 0, 0, 57, 0, 1)) == 0);
}

static void test_score(void **state)
{
	struct probe_row rows[] = {
		row(6, 0, 0, 1, 0, 0, 1),  /* sent away, which was right */
		row(6, 0, 0, 1, 0, 0, 0),  /* sent away, which was wrong */
		row(1, 0, 0, 1, 0, 0, 0),  /* stays, which was right */
		row(1, 0, 20, 1, 0, 0, 1), /* sent away by the i/o field alone, which was right */
	};
	struct probe_score s = decide("probe:cc", "zatti-binary", false, rows, 4);

	(void)state;
	assert_true(s.win == 0.75 && s.sent == 0.75 && s.local_better == 0.5);
	assert_true(s.local_right == 0.25 && s.remote_right == 0.5 && s.io_win == 1);
	assert_true(s.memory_wrong == 0);
	assert_near(s.local_s, 25, 1e-12);
	s = decide("probe:cpu", "zatti-binary", false, rows, 3);
	assert_true(isnan(s.io_win));
}

/* The memory field counts if it alone decided and the decision was wrong. */
static void test_memory_field(void **state)
{
	struct probe_row r = row(0, 57, 0, 0, 57, 0, 0);

	(void)state;
	r.v[PROBE_FREE] = 0;
	assert_true(decide("probe:cpu", "zatti-binary", false, &r, 1).memory_wrong == 1);
	r.v[PROBE_QUEUE] = 6;
	assert_true(decide("probe:cpu", "zatti-binary", false, &r, 1).memory_wrong == 0);
	r = row(6, 0, 0, 0, 57, 0, 1);
	r.v[PROBE_R_FREE] = 0;
	assert_true(decide("probe:cpu", "zatti-binary", false, &r, 1).memory_wrong == 1);
}

static void test_random(void **state)
{
	struct probe_row rows[1000];
	struct probe_score s;

	(void)state;
	for (int i = 0; i < 1000; i++)
		rows[i] = row(9, 0, 0, 0, 57, 0, 1);
	s = decide("probe:cpu", "random", false, rows, 1000);
	assert_near(s.sent, 0.5, 0.05);
	assert_true(s.win == s.sent);
}

/* --- ZAT-8 ------------------------------------------------------------------------------- */

static void test_imbalance(void **state)
{
	struct bench b;
	double share;

	(void)state;
	/* Of two machines one is idle and the other has two or more: 2 (1 - u) u^2. */
	assert_near(probe_imbalance_exact(2, 0.5), 2 * 0.5 * 0.25, 1e-12);
	assert_near(probe_imbalance_exact(1, 0.5), 0, 1e-12);
	assert_near(probe_imbalance_exact(10, 0.4), 0.825, 0.0005);
	assert_near(probe_imbalance_exact(10, 0.8), 0.893, 0.0005);
	bench_init(&b, "probe:imbalance,utilisation=0.6,hours=5", "3xvax");
	assert_int_equal(probe_imbalance(&b.spec, &b.cluster, &b.params, 3, &share), 0);
	assert_near(share, probe_imbalance_exact(3, 0.6), 0.02);
	b.spec.exact = true;
	assert_int_equal(probe_imbalance(&b.spec, &b.cluster, &b.params, 3, &share), 0);
	assert_true(share == probe_imbalance_exact(3, 0.6));
	bench_free(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_background),
		cmocka_unit_test(test_overhead),
		cmocka_unit_test(test_refused_and_stopped),
		cmocka_unit_test(test_thresholds),
		cmocka_unit_test(test_score),
		cmocka_unit_test(test_memory_field),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_imbalance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
