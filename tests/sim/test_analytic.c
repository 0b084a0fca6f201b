/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The analytic model (MODEL 5.9): its equations, its estimation, and a comparison with
 * simulations. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim/analytic/estimate.h"
#include "sim/random.h"
#include "sim/run.h"

static void assert_near(double value, double wanted, double share)
{
	if (!(fabs(value - wanted) <= share * fabs(wanted)))
		fail_msg("%.9g, but %.9g expected (within %g)", value, wanted, share);
}

/* --- equations --------------------------------------------------------------------------- */

static void r_is_a_convolution(void **state)
{
	const double io[] = {0.5, 0.3, 0.2}, cpu[] = {0.25, 0.75};
	double p[4], printed[4];

	(void)state;
	analytic_sum(io, 3, cpu, 2, false, p);
	assert_near(p[0], 0.125, 1e-15);
	assert_near(p[1], 0.5 * 0.75 + 0.3 * 0.25, 1e-15);
	assert_near(p[2], 0.3 * 0.75 + 0.2 * 0.25, 1e-15);
	assert_near(p[3], 0.2 * 0.75, 1e-15);
	assert_near(analytic_mean(p, 4), 0.7 + 0.75, 1e-15);
	/* E-12: the printed form loses the cases with R_CPU = 0 ... */
	analytic_sum(io, 3, cpu, 2, true, printed);
	assert_true(printed[0] == 0);
	assert_near(printed[1], 0.5 * 0.75, 1e-15);
	assert_near(printed[0] + printed[1] + printed[2] + printed[3], 0.75, 1e-15);
	/* ... and is right if R_CPU is never 0. */
	analytic_sum(io, 3, (const double[]){0, 1}, 2, false, p);
	analytic_sum(io, 3, (const double[]){0, 1}, 2, true, printed);
	for (int i = 0; i < 4; i++)
		assert_true(p[i] == printed[i]);
}

static void slowdown_by_the_means(void **state)
{
	const double alpha[] = {0, 0.5, 0.5}, beta[] = {0, 0.2, 0.3, 0.5};

	(void)state;
	assert_near(analytic_execution(alpha, 3, beta, 4), 1.5 + 2.3, 1e-15);
	assert_near(analytic_slowdown(7.6, 3.8), 3, 1e-15);
	assert_near(analytic_slowdown(0, 3.8), 1, 1e-15);
	assert_near(analytic_slowdown(7.6, 0), 1, 1e-15);
}

/* Derived: n = 2, q(0) = q(1) = 0.5: u(0) = 0.5, u(1) = 1, pi(0) = 0.5, pi(1) = 0. */
static void two_nodes_of_two_levels(void **state)
{
	static const double q[] = {0.5, 0.5};
	const struct analytic_node nodes[2] = {{.load = {q, q, q}}, {.load = {q, q, q}}};
	const struct analytic_model m = {.nodes = 2, .levels = 2, .node = nodes};

	(void)state;
	for (int i = 0; i < ANALYTIC_RESOURCES; i++) {
		enum analytic_resource x = (enum analytic_resource)i;

		assert_near(analytic_unbalanced(&m, 0, x, 0), 0.5, 1e-15);
		assert_near(analytic_unbalanced(&m, 0, x, 1), 1, 1e-15);
		assert_near(analytic_lightest(&m, 1, x, 0), 0.5, 1e-15);
		assert_true(analytic_lightest(&m, 1, x, 1) == 0);
		assert_near(analytic_mean_lightest(&m, 1, x), 0.25, 1e-15);
	}
}

static void identical_nodes_have_a_closed_form(void **state)
{
	static const double q[] = {0.1, 0.4, 0.3, 0.2};
	struct analytic_node nodes[6];
	const struct analytic_model m = {.nodes = 6, .levels = 4, .node = nodes};

	(void)state;
	for (int i = 0; i < 6; i++)
		nodes[i] = (struct analytic_node){.load = {q, q, q}};
	for (size_t level = 0; level < 4; level++)
		assert_near(analytic_unbalanced(&m, 3, ANALYTIC_MEM, level),
			    analytic_unbalanced_alike(q, 4, 6, level), 1e-14);
	assert_near(analytic_unbalanced_alike(q, 4, 6, 1), 1 - pow(0.5, 5), 1e-15);
}

/* (8) and (12) term by term with E-11: each resource counts by its own load. */
static void transfers_by_the_ladder(void **state)
{
	static const double q[] = {0.5, 0.5};
	const struct analytic_node nodes[2] = {
		{.arrivals = 2,
		 .gain = {0.9, 0.8, 0.7},
		 .unbalanced = {0.3, 0.4, 0.5},
		 .useful = {0.6, 0.5, 0.4},
		 .load = {q, q, q}},
		{.load = {q, q, q}},
	};
	const struct analytic_model m = {.nodes = 2, .levels = 2, .node = nodes, .arrivals = 3};
	const size_t level[] = {0, 1, 0}; /* u is 0.5, 1, 0.5 and pi 0.5, 0, 0.5 */
	double out = 2 * (0.5 * 0.9 + 0.5 * 1 * 0.8);
	double in = 3 * (0.3 * 0.5 * 0.6 + 0 + 0.7 * 0.6 * 0.5 * 0.5 * 0.4);

	(void)state;
	assert_near(analytic_out(&m, 0, level), out, 1e-15);
	assert_near(analytic_in(&m, 0, level), in, 1e-15);
	assert_near(analytic_rate(&m, 0, level), 2 + in - out, 1e-15);
	/* The means over the loads are 0.75 for u and 0.25 for pi. */
	assert_near(analytic_mean_out(&m, 0),
		    2 * (0.75 * 0.9 + 0.25 * 0.75 * 0.8 + 0.0625 * 0.75 * 0.7), 1e-15);
	assert_near(analytic_mean_in(&m, 0),
		    3 * 0.25 * (0.3 * 0.6 + 0.7 * 0.4 * 0.5 + 0.7 * 0.6 * 0.5 * 0.4), 1e-15);
}

/* With identical nodes, and theta such that transfers go where they are useful, in = out. */
static void in_and_out_balance_when_consistent(void **state)
{
	static const double q[] = {0.4, 0.3, 0.2, 0.1};
	struct analytic_node nodes[5];
	struct analytic_model m = {.nodes = 5, .levels = 4, .node = nodes, .arrivals = 5 * 0.2};
	double out = 0, in = 0, lightest, u;

	(void)state;
	for (int i = 0; i < 5; i++)
		nodes[i] =
			(struct analytic_node){.arrivals = 0.2, .gain = {0.5}, .load = {q, q, q}};
	lightest = analytic_mean_lightest(&m, 0, ANALYTIC_IO);
	u = 1 - lightest;
	for (int i = 0; i < 5; i++) {
		nodes[i].unbalanced[ANALYTIC_IO] = u;
		nodes[i].useful[ANALYTIC_IO] = 0.5 / (5 * lightest);
	}
	for (uint32_t i = 0; i < 5; i++) {
		out += analytic_mean_out(&m, i);
		in += analytic_mean_in(&m, i);
	}
	assert_near(in, out, 1e-14);
	assert_near(out, 5 * 0.2 * u * 0.5, 1e-14);
}

/* --- estimation (O-42) --------------------------------------------------------------------- */

static const struct analytic_scale plain = {
	.unit_ms = 10, .times = 100, .load_unit = {1, 1, 1}, .loads = 4};

static struct analytic_task task(double arrival, double start, double end, uint32_t home,
				 uint32_t node, double io, double cpu)
{
	return (struct analytic_task){.arrival_ms = arrival,
				      .start_ms = start,
				      .end_ms = end,
				      .home = home,
				      .node = node,
				      .io_ms = io,
				      .cpu_ms = cpu,
				      .load = {io > 0, 0, 1}};
}

static void estimates_from_three_tasks(void **state)
{
	struct analytic_task t[] = {
		task(100, 100, 200, 0, 0, 40, 60), /* the task finds equal, empty nodes and stays */
		task(130, 130, 290, 0, 0, 20, 50), /* home has load; the task stays */
		task(150, 160, 190, 0, 1, 0, 30),  /* home has more load; the task goes to 1 */
	};
	struct analytic_estimate e;

	(void)state;
	assert_int_equal(analytic_estimate(t, 3, 2, &plain, &e), 0);
	assert_near(e.execution_ms, (100 + 30 + 70) / 3.0, 1e-12);
	assert_near(e.cumulative_ms, (0 + (40 - 30) + (60 - 30) + 0) / 3.0, 1e-12);
	assert_near(e.r_io[1], 1 / 3.0, 1e-12);
	assert_near(e.r_cpu[3], 1 / 3.0, 1e-12);
	assert_near(e.t_io[4], 1 / 3.0, 1e-12);
	assert_near(e.t_cpu[3], 1 / 3.0, 1e-12);
	assert_near(e.slowdown, 1 + 40 / 200.0, 1e-12);
	assert_near(e.seen_slowdown, (1 + 1 + 160 / 70.0) / 3, 1e-12);
	assert_near(e.seen_of_means, (100 + 30 + 160) / 200.0, 1e-12);
	/* I/O tasks at home: none, one, two. */
	assert_near(e.unbalanced[ANALYTIC_IO], 1, 1e-12);
	for (int level = 0; level < 3; level++)
		assert_near(e.model.node[0].load[ANALYTIC_IO][level], 1 / 3.0, 1e-12);
	assert_near(e.model.node[1].load[ANALYTIC_CPU][0], 1, 1e-12);
	assert_near(e.model.node[0].gain[ANALYTIC_IO], 1 / 3.0, 1e-12);
	assert_near(e.model.node[0].unbalanced[ANALYTIC_IO], 1, 1e-12);
	assert_near(e.model.arrivals, 3 / 50.0, 1e-12);
	assert_near(e.moved_per_ms, 1 / 50.0, 1e-12);
	/* Node 1, always at level 0, is the lightest 2 times of 3; theta makes rho equal to what
	 * was observed. */
	assert_near(analytic_mean_lightest(&e.model, 1, ANALYTIC_IO), 2 / 3.0, 1e-12);
	assert_near(e.in_per_ms, e.moved_per_ms, 1e-12);
	analytic_estimate_free(&e);
}

static void estimation_refuses_nonsense(void **state)
{
	struct analytic_task t[] = {task(0, 0, 1, 0, 2, 1, 1)};
	struct analytic_scale scale = plain;
	struct analytic_estimate e;

	(void)state;
	assert_int_equal(analytic_estimate(t, 0, 2, &plain, &e), -EINVAL);
	assert_int_equal(analytic_estimate(t, 1, 2, &plain, &e), -EINVAL);
	scale.unit_ms = 0;
	assert_int_equal(analytic_estimate(t, 1, 3, &scale, &e), -EINVAL);
	scale = plain;
	scale.load_unit[1] = NAN;
	assert_int_equal(analytic_estimate(t, 1, 3, &scale, &e), -EINVAL);
	analytic_estimate_free(&e);
}

/* --- beside simulations ---------------------------------------------------------------------- */

struct seen {
	struct analytic_task *tasks;
	size_t n, room;
};

static void note(void *arg, const struct sim_completion *c)
{
	struct seen *s = arg;
	double requests =
		c->job->requests >= 0 ? c->job->requests : c->job->cpu_ms * c->job->io_per_ms;

	assert_true(s->n < s->room);
	s->tasks[s->n++] = (struct analytic_task){
		.arrival_ms = c->job->arrival_ms,
		.start_ms = c->start_ms,
		.end_ms = c->end_ms,
		.home = c->job->home,
		.node = c->node,
		.io_ms = c->alone_ms - c->job->cpu_ms,
		.cpu_ms = c->job->cpu_ms,
		.load = {requests > 0 ? c->job->io_per_ms : 0, c->job->memory_mb, 1},
	};
}

static struct analytic_estimate simulate(struct generator_params *g, const char *cluster,
					 const char *policy, const struct analytic_scale *scale)
{
	struct seen seen = {.room = g->jobs};
	struct analytic_estimate e;
	struct sim_cluster c = {0};
	struct sim_params p;
	struct sim_result r;
	struct iocom_err err;

	assert_int_equal(sim_cluster_parse(&c, cluster, &err), 0);
	sim_params_default(&p);
	p.switch_ms = 0;
	p.information_period_ms = 0;
	g->nodes = c.n;
	g->seed = 5;
	seen.tasks = calloc(seen.room, sizeof(*seen.tasks));
	assert_non_null(seen.tasks);
	struct sim_run run = {.cluster = &c,
			      .workload = generator_new(g, &err),
			      .policy = policy,
			      .params = &p,
			      .completed = note,
			      .arg = &seen};
	assert_non_null(run.workload);
	assert_int_equal(sim_run(&run, &r, &err), 0);
	assert_int_equal(analytic_estimate(seen.tasks, seen.n, c.n, scale, &e), 0);
	sim_result_free(&r);
	workload_free(run.workload);
	sim_cluster_free(&c);
	free(seen.tasks);
	return e;
}

static void generator_begin(struct generator_params *g, double busy, double demand_ms)
{
	generator_params_default(g);
	g->jobs = 60000;
	g->interarrival_ms = demand_ms / busy;
	g->kind[0].memory_mean_mb = 1;
	g->kind[0].memory_shape = 0;
}

static const struct analytic_scale one_node = {
	.unit_ms = 20, .times = 4000, .load_unit = {0.02, 50, 1}, .loads = 30};

/* Computes E(S) by (2)-(6) from the rounded distributions; only the rounding may differ. */
static double by_distributions(const struct analytic_estimate *e)
{
	size_t n = one_node.times;
	double *p = calloc(2 * n, sizeof(*p)), cumulative;

	assert_non_null(p);
	analytic_sum(e->r_io, n, e->r_cpu, n, false, p);
	cumulative = analytic_mean(p, 2 * n - 1);
	free(p);
	return analytic_slowdown(cumulative, analytic_execution(e->t_io, n, e->t_cpu, n));
}

static void report(const char *setting, const struct analytic_estimate *e)
{
	printf("# | E(S) %-42s model %.3f, simulated mean(T')/mean(T) %.3f, mean(T'/T) %.3f\n",
	       setting, e->slowdown, e->seen_of_means, e->seen_slowdown);
}

/* One request per job, FCFS: an arrival waits for the work it finds, so the model holds. */
static void first_come_first_served_is_the_model(void **state)
{
	struct generator_params g;
	struct analytic_estimate e;

	(void)state;
	generator_begin(&g, 0.7, 8 + 250.0 / 40);
	g.lifetime = LIFETIME_CONSTANT;
	g.lifetime_mean_ms = 0.001;
	g.kind[0].requests = 1;
	g.kind[0].request_kb = 250;
	g.kind[0].request_sd_kb = 50;
	e = simulate(&g, "1xfc", "nlb", &one_node);
	report("disk only, FCFS:", &e);
	assert_near(e.seen_of_means, e.slowdown, 0.01);
	assert_near(e.seen_slowdown, e.slowdown, 0.02);
	analytic_estimate_free(&e);
}

/*
 * Time sharing.  With exponential lengths the mean is that of FCFS, so the model holds for means.
 * With equal lengths all jobs take 1 / (1 - rho) times as long, and the model gives half of the
 * excess.  With a heavy tail the model gives many times too much.
 */
static void time_sharing_only_in_the_mean(void **state)
{
	static const double rho = 0.6;
	struct generator_params g;
	struct analytic_estimate e;

	(void)state;
	generator_begin(&g, rho, 1000);
	g.lifetime = LIFETIME_EXPONENTIAL;
	g.lifetime_mean_ms = 1000;
	e = simulate(&g, "1xfc", "nlb", &one_node);
	report("time sharing, exponential lengths:", &e);
	assert_near(e.seen_of_means, e.slowdown, 0.05);
	assert_near(by_distributions(&e), e.slowdown, 0.01);
	analytic_estimate_free(&e);
	g.lifetime = LIFETIME_CONSTANT;
	e = simulate(&g, "1xfc", "nlb", &one_node);
	report("time sharing, equal lengths:", &e);
	assert_near(e.slowdown, 1 + rho / (2 * (1 - rho)), 0.05);
	assert_near(e.seen_slowdown, 1 / (1 - rho), 0.05);
	analytic_estimate_free(&e);
	g.lifetime = LIFETIME_HYPEREXP;
	g.lifetime_shape = 10;
	e = simulate(&g, "1xfc", "nlb", &one_node);
	report("time sharing, c^2 = 10:", &e);
	assert_near(e.seen_slowdown, 1 / (1 - rho), 0.1);
	assert_true(e.slowdown > 2 * e.seen_of_means);
	analytic_estimate_free(&e);
}

/* Both resources work at the same time, but the model adds up their work. */
static void both_resources_at_once(void **state)
{
	struct generator_params g;
	struct analytic_estimate e;

	(void)state;
	generator_begin(&g, 0.6, 1000);
	g.lifetime = LIFETIME_EXPONENTIAL;
	g.lifetime_mean_ms = 1000;
	g.kind[0].io_per_ms = 0.07;
	g.kind[0].io_uniform = false;
	g.kind[0].reaccess = 0;
	e = simulate(&g, "1xfc", "nlb", &one_node);
	report("I/O and computation, exponential lengths:", &e);
	assert_true(e.slowdown > 1.05 * e.seen_of_means && e.slowdown < 1.4 * e.seen_of_means);
	analytic_estimate_free(&e);
}

/* A policy that transfers tasks: compares the ladder of the estimated shares with the run. */
static void transfers_beside_a_simulation(void **state)
{
	const struct analytic_scale scale = {
		.unit_ms = 20, .times = 2000, .load_unit = {0.01, 4, 1}, .loads = 60};
	struct generator_params g;
	struct analytic_estimate e;
	double u = 0;

	(void)state;
	generator_begin(&g, 0.6 * 6, 1000 * 0.07 * 14.25);
	g.jobs = 30000;
	g.lifetime = LIFETIME_EXPONENTIAL;
	g.lifetime_mean_ms = 1000;
	g.kind[0].io_per_ms = 0.07;
	g.kind[0].reaccess = 0;
	e = simulate(&g, "6xfc", "io-re", &scale);
	for (uint32_t i = 0; i < 6; i++)
		u += (1 - analytic_mean_lightest(&e.model, i, ANALYTIC_IO)) / 6;
	printf("# | io-re, 6 nodes: transfers a s: seen %.3f, sum of rho %.3f, of phi %.3f; "
	       "u_IO seen %.3f, by (9) %.3f\n",
	       1e3 * e.moved_per_ms, 1e3 * e.in_per_ms, 1e3 * e.out_per_ms,
	       e.unbalanced[ANALYTIC_IO], u);
	assert_true(e.moved_per_ms > 0);
	assert_near(e.in_per_ms, e.moved_per_ms, 1e-6);
	assert_near(e.out_per_ms, e.in_per_ms, 0.15);
	assert_near(u, e.unbalanced[ANALYTIC_IO], 0.1);
	analytic_estimate_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r_is_a_convolution),
		cmocka_unit_test(slowdown_by_the_means),
		cmocka_unit_test(two_nodes_of_two_levels),
		cmocka_unit_test(identical_nodes_have_a_closed_form),
		cmocka_unit_test(transfers_by_the_ladder),
		cmocka_unit_test(in_and_out_balance_when_consistent),
		cmocka_unit_test(estimates_from_three_tasks),
		cmocka_unit_test(estimation_refuses_nonsense),
		cmocka_unit_test(first_come_first_served_is_the_model),
		cmocka_unit_test(time_sharing_only_in_the_mean),
		cmocka_unit_test(both_resources_at_once),
		cmocka_unit_test(transfers_beside_a_simulation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
