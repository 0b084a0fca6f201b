/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The closed network of a node (engine/sharing.h) against known results. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "sim/engine/sharing.h"
#include "sim/random.h"

#define MOST 100

static const struct sharing_machine one_core = {.cores = 1, .crowded = 1};

static void assert_near(double value, double wanted, double share)
{
	if (!(fabs(value - wanted) <= share * fabs(wanted)))
		fail_msg("%.9g, but %.9g expected (within %g)", value, wanted, share);
}

/* A task whose services have the squared coefficient of variation CV2. */
static struct sharing_task task(double cpu_ms, double visits, double service_ms, double cv2)
{
	return (struct sharing_task){.cpu_ms = cpu_ms,
				     .visits = visits,
				     .service_ms = service_ms,
				     .service_ms2 = service_ms * service_ms * (1 + cv2)};
}

static void one_task_takes_the_sum_of_its_parts(void **state)
{
	struct sharing_task t = task(100, 10, 14.25, 0);
	struct sharing_load load;

	(void)state;
	t.delay_ms = 7;
	sharing_solve(&one_core, &t, 1, &load);
	assert_near(t.rate, 1 / (100 + 142.5 + 7), 1e-15);
	assert_near(load.at_disk, 142.5 / 249.5, 1e-15);
	assert_near(load.cores_busy, 100 / 249.5, 1e-15);
}

static void tasks_that_only_compute_share_evenly(void **state)
{
	const struct sharing_machine m = {.cores = 2, .crowded = 1.9};
	struct sharing_task t[3] = {task(100, 0, 0, 0), task(200, 0, 0, 0), task(50, 0, 0, 0)};
	struct sharing_load load;

	(void)state;
	sharing_solve(&m, t, 3, &load);
	for (int i = 0; i < 3; i++)
		assert_near(t[i].rate * t[i].cpu_ms, 1.9 / 3, 1e-15);
	assert_near(load.cores_busy, 2, 1e-15);
	sharing_solve(&m, t, 2, &load);
	assert_near(t[1].rate * t[1].cpu_ms, 1, 1e-15);
}

static void tasks_that_only_use_the_disk_go_round(void **state)
{
	struct sharing_task t[3] = {task(0, 10, 5, 0), task(0, 100, 20, 0.5), task(0, 1, 7, 1)};
	struct sharing_load load;

	(void)state;
	sharing_solve(&one_core, t, 3, &load);
	for (int i = 0; i < 3; i++)
		assert_near(t[i].rate * t[i].visits, 1.0 / 32, 1e-15);
	assert_near(load.at_disk, 3, 1e-15);
}

/*
 * Exponential services with one mean: the product form, summed over all 2^n sets.  The unit is a
 * cycle of task j: computation 1 / v_j, one service.
 */
static void sets_rate(const struct sharing_task *t, uint32_t n, double service_ms, double *rate)
{
	double all = 0;

	for (uint32_t j = 0; j < n; j++)
		rate[j] = 0;
	for (uint32_t set = 0; set < 1u << n; set++) {
		uint32_t at_cpu = (uint32_t)__builtin_popcount(set);
		double weight = tgamma(at_cpu + 1) * tgamma(n - at_cpu + 1);

		for (uint32_t j = 0; j < n; j++)
			weight *= set >> j & 1 ? t[j].cpu_ms : t[j].visits * service_ms;
		all += weight;
		for (uint32_t j = 0; j < n; j++)
			rate[j] += set >> j & 1 ? weight / at_cpu / t[j].cpu_ms : 0;
	}
	for (uint32_t j = 0; j < n; j++)
		rate[j] /= all;
}

static void exponential_services_have_the_product_form(void **state)
{
	struct sim_random r = sim_random_stream(1, 2, 3);

	(void)state;
	for (uint32_t n = 2; n <= 9; n++) {
		struct sharing_task t[9];
		struct sharing_load load;
		double wanted[9], at_cpu = 0;

		for (uint32_t j = 0; j < n; j++)
			t[j] = task(100, sim_random_between(&r, 0.5, 30), 10, 1);
		sharing_solve(&one_core, t, n, &load);
		sets_rate(t, n, 10, wanted);
		for (uint32_t j = 0; j < n; j++) {
			assert_near(t[j].rate, wanted[j], n == 2 ? 1e-12 : 0.003);
			at_cpu += t[j].rate * 100;
		}
		assert_near(load.cores_busy, at_cpu, 0.003);
		assert_near(load.at_cpu + load.at_disk, n, 1e-9);
	}
}

/*
 * Returns the utilisation of M/D/1 with room for N: Poisson arrivals from the processor while it
 * has work.
 */
static double md1n_utilisation(uint32_t n, double rho)
{
	double left[MOST] = {1}, sum = 0; /* departures that leave k tasks behind, relative */

	for (uint32_t k = 0; k + 1 < n; k++) {
		double crossing = 0;

		for (uint32_t i = 0; i <= k; i++) {
			double alpha = exp(-rho), below = alpha;
			uint32_t room = i == 0 ? k : k + 1 - i;

			for (uint32_t a = 1; a <= room; a++) {
				alpha *= rho / a;
				below += alpha;
			}
			crossing += left[i] * (1 - below);
		}
		left[k + 1] = crossing / exp(-rho);
	}
	for (uint32_t k = 0; k < n; k++)
		sum += left[k];
	return rho * sum / (left[0] + rho * sum);
}

static void constant_services_are_md1n(void **state)
{
	static const double rhos[] = {0.1, 0.5, 0.9, 1, 1.3, 2.5, 6};
	static const uint32_t sizes[] = {2, 3, 4, 7, 15, 30};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (size_t k = 0; k < sizeof(rhos) / sizeof(*rhos); k++) {
			struct sharing_task t[30];
			struct sharing_load load;
			double busy = 0;

			for (uint32_t j = 0; j < sizes[i]; j++)
				t[j] = task(10 / rhos[k], 1, 10, 0);
			sharing_solve(&one_core, t, sizes[i], &load);
			for (uint32_t j = 0; j < sizes[i]; j++)
				busy += t[j].rate * 10;
			assert_near(busy, md1n_utilisation(sizes[i], rhos[k]), 0.001);
		}
	}
}

/* With as many cores as tasks each request at the disk removes one of N sources: M/M/1//N. */
static void enough_cores_are_the_machine_repair_model(void **state)
{
	const struct sharing_machine m = {.cores = 8, .crowded = 8};

	(void)state;
	for (uint32_t n = 2; n <= 8; n++) {
		struct sharing_task t[8];
		struct sharing_load load;
		double weight = 1, all = 1;

		for (uint32_t j = 0; j < n; j++)
			t[j] = task(40, 1, 10, 1);
		for (uint32_t k = 0; k < n; k++) {
			weight *= (n - k) * 10.0 / 40;
			all += weight;
		}
		sharing_solve(&m, t, n, &load);
		assert_near(n * t[0].rate * 10, 1 - 1 / all, 0.015);
	}
}

/* Two tasks that both need the disk at once alternate for ever, evenly by symmetry. */
static void two_tasks(void **state)
{
	struct sharing_task t[2] = {task(100, 10, 5, 0.3), task(100, 10, 5, 0.3)};
	struct sharing_load load;

	(void)state;
	sharing_solve(&one_core, t, 2, &load);
	assert_near(t[0].rate, t[1].rate, 1e-14);
	/* Beside a task that only computes, the disk is always free, and both share the CPU. */
	t[1] = task(300, 0, 0, 0);
	sharing_solve(&one_core, t, 2, &load);
	assert_near(1 / t[0].rate, 2 * 100 + 50, 1e-12);
	assert_near(t[1].rate * 300, 1 - t[0].rate * 100, 1e-12);
	/* Beside a task that never computes, a task with short bursts gets every other service. */
	t[1] = task(0, 10, 5, 0.3);
	t[0] = task(1e-6, 10, 5, 0.3);
	sharing_solve(&one_core, t, 2, &load);
	assert_near(t[0].rate, 1.0 / 100, 1e-6);
	assert_near(t[1].rate, 1.0 / 100, 1e-6);
}

/* Equal tasks with evenly spread requests fall into step, and none waits for another. */
static void regular_tasks_fall_into_step(void **state)
{
	struct sharing_task t[2] = {task(100, 10, 10, 0), task(100, 10, 10, 0)};
	struct sharing_load load;

	(void)state;
	t[0].regular = t[1].regular = true;
	sharing_solve(&one_core, t, 2, &load);
	assert_near(t[0].rate, 1.0 / 200, 0.02);
	assert_near(load.cores_busy, 1, 0.02);
}

static struct sharing_task draw(struct sim_random *r, bool delays)
{
	double kind = sim_random_uniform(r);
	struct sharing_task t = task(sim_random_between(r, 50, 200), sim_random_between(r, 0.2, 40),
				     sim_random_between(r, 4, 40), sim_random_between(r, 0, 0.5));

	if (kind < 0.15)
		t.visits = 0;
	else if (kind < 0.25)
		t.cpu_ms = 0;
	if (delays && t.cpu_ms > 0)
		t.delay_ms = sim_random_between(r, 0, 100);
	return t;
}

/* No resource does more than it can; no task is faster than alone; every task is somewhere. */
static void laws_hold_for_any_mix(void **state)
{
	static const uint32_t sizes[] = {2, 3, 5, 12, 32, 33, 100};

	(void)state;
	for (uint32_t seed = 0; seed < 400; seed++) {
		struct sim_random r = sim_random_stream(seed, 7, 7);
		uint32_t n = sizes[seed % 7];
		struct sharing_machine m = {.cores = seed % 3 == 0 ? 4 : 1};
		double cpu = 0, disk = 0, away = 0;
		struct sharing_task t[MOST];
		struct sharing_load load;

		m.crowded = m.cores * 0.99;
		for (uint32_t j = 0; j < n; j++)
			t[j] = draw(&r, seed % 2);
		sharing_solve(&m, t, n, &load);
		for (uint32_t j = 0; j < n; j++) {
			double alone = t[j].cpu_ms + t[j].visits * t[j].service_ms + t[j].delay_ms;

			if (!(t[j].rate > 0 && t[j].rate * alone < 1.02))
				fail_msg("seed %u: rate %g, alone 1 / %g", seed, t[j].rate, alone);
			cpu += t[j].rate * t[j].cpu_ms;
			disk += t[j].rate * t[j].visits * t[j].service_ms;
			away += t[j].rate * t[j].delay_ms;
		}
		if (cpu > m.cores * 1.03 || disk > 1.03)
			fail_msg("seed %u, %u tasks: cpu %g of %g, disk %g", seed, n, cpu, m.cores,
				 disk);
		if (fabs(load.at_cpu + load.at_disk + away - n) > 0.01 * n)
			fail_msg("seed %u: %g + %g + %g tasks, not %u", seed, load.at_cpu,
				 load.at_disk, away, n);
	}
}

/* Demands over twelve orders of magnitude give finite rates, at most those of tasks alone. */
static void extremes_are_survived(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 3000; seed++) {
		struct sim_random r = sim_random_stream(seed, 6, 6);
		struct sharing_machine m = {.cores = seed % 4 ? 1 : 8};
		uint32_t n = (uint32_t)sim_random_integer(&r, 1, seed % 10 ? 32 : MOST);
		struct sharing_task t[MOST];
		struct sharing_load load;

		m.crowded = m.cores * 0.5;
		for (uint32_t j = 0; j < n; j++) {
			t[j] = task(pow(10, sim_random_between(&r, -6, 6)),
				    pow(10, sim_random_between(&r, -6, 6)),
				    pow(10, sim_random_between(&r, -6, 6)),
				    pow(10, sim_random_between(&r, -6, 1)));
			t[j].delay_ms = seed % 3 ? 0 : pow(10, sim_random_between(&r, -6, 6));
			t[j].regular = seed % 7 == 0;
		}
		sharing_solve(&m, t, n, &load);
		for (uint32_t j = 0; j < n; j++) {
			double alone = t[j].cpu_ms + t[j].visits * t[j].service_ms + t[j].delay_ms;

			if (!(t[j].rate > 0 && t[j].rate * alone < 1.05))
				fail_msg("seed %u, task %u of %u: rate %g, alone 1 / %g", seed, j,
					 n, t[j].rate, alone);
		}
		assert_true(load.at_cpu >= 0 && load.at_disk >= 0);
		assert_true(load.cores_busy >= 0 && load.cores_busy <= m.cores * (1 + 1e-9));
	}
}

/*
 * One more equal task slows all, whichever method solves their number.  (Among different tasks one
 * may gain, when a task that is held up elsewhere gets out of its way.)
 */
static void one_more_of_the_same_slows_all(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 60; seed++) {
		struct sim_random r = sim_random_stream(seed, 8, 8);
		struct sharing_task like = draw(&r, seed % 2);
		struct sharing_machine m = {.cores = seed % 3 == 0 ? 2 : 1};
		double last = INFINITY;

		m.crowded = m.cores * 0.99;
		for (uint32_t n = 1; n <= MOST; n++) {
			struct sharing_task t[MOST];
			struct sharing_load load;

			for (uint32_t j = 0; j < n; j++)
				t[j] = like;
			sharing_solve(&m, t, n, &load);
			if (!(t[0].rate <= last * (1 + 1e-9)))
				fail_msg("seed %u: %u tasks at %g, one less at %g", seed, n,
					 t[0].rate, last);
			last = t[0].rate;
		}
	}
}

/* From any start the answer is the same within the tolerance. */
static void the_last_solution_is_only_a_start(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 100; seed++) {
		struct sim_random r = sim_random_stream(seed, 9, 9);
		struct sharing_task t[MOST], again[MOST];
		struct sharing_load load;
		uint32_t n = 3 + seed % 50;

		for (uint32_t j = 0; j < n; j++)
			again[j] = t[j] = draw(&r, false);
		sharing_solve(&one_core, t, n, &load);
		for (uint32_t j = 0; j < n; j++) {
			again[j].rate = t[j].rate * sim_random_between(&r, 0.5, 2);
			again[j].stretch = t[j].stretch;
		}
		sharing_solve(&one_core, again, n, &load);
		for (uint32_t j = 0; j < n; j++)
			assert_near(again[j].rate, t[j].rate, 0.06);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_task_takes_the_sum_of_its_parts),
		cmocka_unit_test(tasks_that_only_compute_share_evenly),
		cmocka_unit_test(tasks_that_only_use_the_disk_go_round),
		cmocka_unit_test(exponential_services_have_the_product_form),
		cmocka_unit_test(constant_services_are_md1n),
		cmocka_unit_test(enough_cores_are_the_machine_repair_model),
		cmocka_unit_test(two_tasks),
		cmocka_unit_test(regular_tasks_fall_into_step),
		cmocka_unit_test(laws_hold_for_any_mix),
		cmocka_unit_test(extremes_are_survived),
		cmocka_unit_test(one_more_of_the_same_slows_all),
		cmocka_unit_test(the_last_solution_is_only_a_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
