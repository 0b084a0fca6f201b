/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The cost of a decision and of a change of the view, by policy and cluster size.  Loads, disks and
 * processors are drawn at random; every decision is a new job at a new home, and its time is the
 * least of REPEATS, so that other work on the machine does not count.  Arguments: the policies to
 * measure, default all.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <iocom/rules.h>

#define DECISIONS 4000
#define REPEATS	  5
#define CHANGES	  100000

static uint64_t state = 1;

static double draw(double most)
{
	state += 0x9e3779b97f4a7c15u;
	uint64_t x = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;

	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53 * most;
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void node_draw(struct rules_node *n, uint32_t i)
{
	double busy = draw(1);

	*n = (struct rules_node){
		.ram_mb = 8000 + draw(56000),
		.cpu_mips = 500 + draw(1000),
		.cores = 1 + (double)(int)draw(16),
		.disk_fixed_ms = 2 + draw(8),
		.disk_mb_per_s = 20 + draw(180),
		.request_kb = 256,
		.has_measured = true,
		.has_advertised = true,
		.accepts = draw(1) < 0.95,
	};
	snprintf(n->name, sizeof(n->name), "n%u", i);
	n->measured.disk_utilisation = busy;
	n->measured.service_ms = n->disk_fixed_ms + 256 / n->disk_mb_per_s;
	n->measured.service_ms2 = n->measured.service_ms * n->measured.service_ms * 1.2;
	n->measured.disk_arrivals_per_ms = busy / n->measured.service_ms;
	n->measured.io_tasks = (double)(int)(busy * 6);
	n->measured.cpu_queue = draw(2 * n->cores);
	n->advertised.explicit_per_ms = n->measured.disk_arrivals_per_ms;
	n->advertised.io_per_ms = n->advertised.explicit_per_ms * (1 + draw(0.2));
	n->advertised.memory_mb = draw(n->ram_mb);
	n->advertised.cpu = (double)(int)draw(6 * n->cores);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct rules_request job_draw(void)
{
	double cpu_ms = 100 + draw(60000);

	return (struct rules_request){
		.cpu_ms = cpu_ms,
		.io_per_ms = draw(0.1),
		.request_kb = 16 + draw(500),
		.memory_mb = draw(2000),
		.initial_mb = draw(1) < 0.5 ? 0 : draw(1000),
		.requests = cpu_ms * draw(0.1),
		.tasks = 1,
	};
}

struct timing {
	double mean, p50, p99;
};

static struct timing timing_of(double *took)
{
	double sum = 0;

	for (int i = 0; i < DECISIONS; i++)
		sum += took[i];
	qsort(took, DECISIONS, sizeof(took[0]), by_value);
	return (struct timing){sum / DECISIONS, took[DECISIONS / 2], took[DECISIONS * 99 / 100]};
}

/* Makes the same decisions each time; returns how many jobs left home. */
static unsigned int place_all(enum rules_policy policy, const struct rules_params *params,
			      bool brief, const struct rules_view *view, double *took)
{
	struct rules *rules = rules_new(policy, params, 1);
	struct rules_plan plan;
	unsigned int moved = 0;

	state = 7;
	rules_brief(rules, brief);
	for (int i = 0; i < DECISIONS; i++) {
		struct rules_request job = job_draw();
		uint32_t home = (uint32_t)draw(rules_view_count(view));
		double start = now_us();

		if (rules_place(rules, view, home, &job, &plan) < 0)
			abort();
		took[i] = fmin(took[i], now_us() - start);
		moved += !plan.stayed;
	}
	rules_free(rules);
	return moved;
}

static struct timing bench_place(enum rules_policy policy, const struct rules_params *params,
				 bool brief, const struct rules_view *view, unsigned int *moved)
{
	static double took[DECISIONS];

	for (int i = 0; i < DECISIONS; i++)
		took[i] = INFINITY;
	for (int i = 0; i < REPEATS; i++)
		*moved = place_all(policy, params, brief, view, took);
	return timing_of(took);
}

static void bench_decisions(enum rules_policy policy, enum rules_rates rates,
			    struct rules_view *view)
{
	struct rules_params params;
	struct timing full, brief;
	unsigned int moved;

	rules_params_default(&params, rates);
	if (rules_view_keep(view, policy, &params) < 0)
		abort();
	full = bench_place(policy, &params, false, view, &moved);
	brief = bench_place(policy, &params, true, view, &moved);
	printf("%8u  %-12s %-12s %8.2f %8.2f %8.2f  %8.2f %8.2f %8.2f %6.0f%%\n",
	       rules_view_count(view), rules_policy_name(policy),
	       rates == RULES_RATES_WALL ? "wall" : "computation", full.mean, full.p50, full.p99,
	       brief.mean, brief.p50, brief.p99, 100.0 * moved / DECISIONS);
}

/* Mean us of a set, of a charge, and of a mark, a set, two charges and a rollback together. */
static void bench_changes(enum rules_policy policy, struct rules_view *view)
{
	struct rules_request job = job_draw();
	struct rules_params params;
	double set = 0, charge = 0, round = 0, start;
	struct rules_node n;

	rules_params_default(&params, RULES_RATES_COMPUTATION);
	if (rules_view_keep(view, policy, &params) < 0)
		abort();
	for (int i = 0; i < CHANGES; i++) {
		uint32_t at = (uint32_t)draw(rules_view_count(view));
		uint32_t to = (uint32_t)draw(rules_view_count(view));
		int ret = 0;

		node_draw(&n, at);
		start = now_us();
		ret |= rules_view_set(view, at, &n);
		set += now_us() - start;
		start = now_us();
		ret |= rules_view_charge(view, to, &job);
		charge += now_us() - start;
		ret |= rules_view_discharge(view, to, &job);
		at = (uint32_t)draw(rules_view_count(view));
		start = now_us();
		ret |= rules_view_mark(view) | rules_view_set(view, at, &n) |
		       rules_view_charge(view, to, &job) | rules_view_charge(view, at, &job);
		rules_view_rollback(view);
		round += now_us() - start;
		if (ret != 0)
			abort();
	}
	printf("%8u  %-12s %8.2f %8.2f %8.2f\n", rules_view_count(view), rules_policy_name(policy),
	       set / CHANGES, charge / CHANGES, round / CHANGES);
}

static struct rules_view *view_draw(uint32_t nodes)
{
	struct rules_view *view = rules_view_new();
	struct rules_node n;

	for (uint32_t i = 0; i < nodes; i++) {
		node_draw(&n, i);
		if (rules_view_set(view, i, &n) < 0)
			abort();
	}
	return view;
}

static bool wanted(enum rules_policy policy, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], rules_policy_name(policy)) == 0)
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	printf("decisions, us: with reasons, then brief\n");
	printf("%8s  %-12s %-12s %8s %8s %8s  %8s %8s %8s %7s\n", "nodes", "policy", "rates",
	       "mean", "p50", "p99", "mean", "p50", "p99", "moved");
	for (uint32_t nodes = 10; nodes <= 100000; nodes *= 10) {
		struct rules_view *view = view_draw(nodes);

		for (int p = 0; p < RULES_POLICIES; p++) {
			if (!wanted(p, argc, argv))
				continue;
			bench_decisions(p, RULES_RATES_COMPUTATION, view);
			bench_decisions(p, RULES_RATES_WALL, view);
		}
		rules_view_free(view);
	}
	printf("changes of a view that keeps what the policy needs, mean us\n");
	printf("%8s  %-12s %8s %8s %8s\n", "nodes", "policy", "set", "charge", "mark+3");
	for (uint32_t nodes = 100; nodes <= 100000; nodes *= 10) {
		struct rules_view *view = view_draw(nodes);

		for (int p = 0; p < RULES_POLICIES; p++)
			if (wanted(p, argc, argv))
				bench_changes(p, view);
		rules_view_free(view);
	}
	return 0;
}
