/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What one decision and one update of the view cost, by cluster size.  Loads,
 * disks and processors are drawn at random, every decision is a fresh job at a
 * fresh home, reasons included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <iocom/rules.h>

#define DECISIONS 4000

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

static void bench_policy(enum rules_policy policy, enum rules_rates rates,
			 const struct rules_view *view)
{
	static double took[DECISIONS];
	struct rules_params params;
	struct rules *rules;
	struct rules_plan plan;
	unsigned int moved = 0;
	double sum = 0;

	rules_params_default(&params, rates);
	rules = rules_new(policy, &params, 1);
	for (int i = 0; i < DECISIONS; i++) {
		struct rules_request job = job_draw();
		uint32_t home = (uint32_t)draw(rules_view_count(view));
		double start = now_us();

		if (rules_place(rules, view, home, &job, &plan) < 0)
			abort();
		took[i] = now_us() - start;
		sum += took[i];
		moved += !plan.stayed;
	}
	rules_free(rules);
	qsort(took, DECISIONS, sizeof(took[0]), by_value);
	printf("%8u  %-8s %-12s %8.2f %8.2f %8.2f %8.2f %7.0f%%\n", rules_view_count(view),
	       rules_policy_name(policy), rates == RULES_RATES_WALL ? "wall" : "computation",
	       sum / DECISIONS, took[DECISIONS / 2], took[DECISIONS * 99 / 100],
	       took[DECISIONS - 1], 100.0 * moved / DECISIONS);
}

static double bench_set(struct rules_view *view, uint32_t nodes)
{
	struct rules_node n;
	double sum = 0;

	for (int i = 0; i < DECISIONS; i++) {
		uint32_t at = (uint32_t)draw(nodes);
		double start;

		node_draw(&n, at);
		start = now_us();
		if (rules_view_set(view, at, &n) < 0)
			abort();
		sum += now_us() - start;
	}
	return sum / DECISIONS;
}

int main(void)
{
	printf("%8s  %-8s %-12s %8s %8s %8s %8s %8s\n", "nodes", "policy", "rates", "mean us",
	       "p50", "p99", "max", "moved");
	for (uint32_t nodes = 10; nodes <= 100000; nodes *= 10) {
		struct rules_view *view = rules_view_new();
		struct rules_node n;

		for (uint32_t i = 0; i < nodes; i++) {
			node_draw(&n, i);
			if (rules_view_set(view, i, &n) < 0)
				abort();
		}
		printf("%8u  update of one node: mean %.2f us\n", nodes, bench_set(view, nodes));
		for (int p = RULES_CPU_RE; p < RULES_POLICIES; p++) {
			bench_policy(p, RULES_RATES_COMPUTATION, view);
			bench_policy(p, RULES_RATES_WALL, view);
		}
		rules_view_free(view);
	}
	return 0;
}
