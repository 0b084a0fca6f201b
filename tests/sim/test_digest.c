/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Same seed, same bytes: a digest of all events on a few nodes with random disturbances.  With the
 * argument "print" it is only printed, so that builds of different compilers can be compared
 * (test_compilers.sh).
 */
#include <string.h>

#include "tests/sim/node_driver.h"

#define NODES 4u
#define TASKS 24u

struct digest {
	uint64_t hash;
};

static void feed(struct digest *d, const void *data, size_t n)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < n; i++)
		d->hash = (d->hash ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
}

static void feed_number(struct digest *d, double x)
{
	feed(d, &x, sizeof(x));
}

struct world {
	struct node_model *m;
	struct node_task tasks[TASKS];
	bool runs[TASKS];
	uint32_t at[TASKS];
	struct sim_random r;
	double now;
	struct digest digest;
};

static void world_task(struct world *w, uint32_t i)
{
	struct sim_random *r = &w->r;

	w->tasks[i] = (struct node_task){
		.cpu_ms = sim_random_pareto(r, 2000, 1.5),
		.io_per_ms = i % 4 ? sim_random_between(r, 0, 0.4) : 0,
		.request_kb = 250,
		.request_sd_kb = i % 3 ? 50 : 0,
		.reaccess = 5,
		.requests = -1,
		.memory_mb = sim_random_between(r, 10, 200),
		.faults_per_ms = 0.05,
		.random = sim_random_stream(1, 2, i),
	};
}

static void world_run(struct world *w, uint32_t i)
{
	bool given = i % 5 == 0;

	w->tasks[i].requests = given ? 3 : -1;
	assert_int_equal(node_run(w->m, w->at[i], i, sim_random_exponential(&w->r, 500),
				  given ? 3 : -1, w->now),
			 0);
	w->runs[i] = true;
}

static void world_disturb(struct world *w)
{
	uint32_t i = (uint32_t)sim_random_integer(&w->r, 0, TASKS - 1);

	if (!w->runs[i]) {
		world_run(w, i);
	} else if (sim_random_uniform(&w->r) < 0.5) {
		feed_number(&w->digest, node_stop(w->m, w->at[i], i, w->now));
		node_leave(w->m, w->at[i], i, w->now);
		w->at[i] = (uint32_t)sim_random_integer(&w->r, 0, NODES - 1);
		assert_int_equal(node_enter(w->m, w->at[i], i, w->now), 0);
		world_run(w, i);
	} else if (sim_random_uniform(&w->r) < 0.5) {
		assert_int_equal(node_disk_work(w->m, w->at[i], 5, 1000, w->now), 0);
	} else {
		node_set_buffer(w->m, w->at[i], sim_random_between(&w->r, 0, 320), w->now);
	}
}

static uint32_t world_first(const struct world *w)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < NODES; i++)
		first = node_next(w->m, i) < node_next(w->m, first) ? i : first;
	return first;
}

static void world_until(struct world *w, double until)
{
	const struct node_done *done;
	uint32_t node;

	while (node_next(w->m, node = world_first(w)) <= until) {
		int n;

		w->now = node_next(w->m, node);
		n = node_step(w->m, node, w->now, &done);
		feed_number(&w->digest, w->now);
		for (int i = 0; i < n; i++) {
			feed_number(&w->digest, done[i].task);
			if (!done[i].disk_work)
				w->runs[done[i].task] = false;
		}
	}
	w->now = until;
}

static uint64_t digest_of(uint64_t seed, enum sim_fidelity fidelity, bool at_disk, bool decay)
{
	static const char text[] = "2xfc+2xfc:cores=2,cpu=400,disk=20";
	struct sim_cluster c;
	struct sim_params p;
	struct world *w = calloc(1, sizeof(*w));
	uint64_t hash;

	assert_non_null(w);
	*w = (struct world){.r = sim_random_stream(seed, 3, 0), .digest = {0xcbf29ce484222325u}};
	sim_params_default(&p);
	p.fidelity = fidelity;
	p.page_fault_at_disk = at_disk;
	p.priority_decay = decay;
	assert_int_equal(sim_cluster_parse(&c, text, NULL), 0);
	assert_int_equal(node_model_new(&w->m, &c, &p, 800), 0);
	node_model_tasks(w->m, w->tasks, sizeof(w->tasks[0]), 0);
	for (uint32_t i = 0; i < TASKS; i++) {
		world_task(w, i);
		w->at[i] = i % NODES;
		assert_int_equal(node_enter(w->m, w->at[i], i, 0), 0);
	}
	for (int i = 0; i < 5000; i++) {
		world_until(w, w->now + sim_random_exponential(&w->r, 50));
		world_disturb(w);
	}
	for (uint32_t i = 0; i < NODES; i++) {
		struct node_sums sums;

		node_refresh(w->m, i, w->now);
		node_sums(w->m, i, w->now, &sums);
		feed(&w->digest, &sums, sizeof(sums));
	}
	for (uint32_t i = 0; i < TASKS; i++)
		feed_number(&w->digest, w->tasks[i].done_ms);
	hash = w->digest.hash;
	node_model_free(w->m);
	sim_cluster_free(&c);
	free(w);
	return hash;
}

static const struct {
	enum sim_fidelity fidelity;
	bool at_disk, decay;
} cases[] = {
	{SIM_REQUEST, true, false},
	{SIM_REQUEST, false, false},
	{SIM_REQUEST, true, true},
	{SIM_FLUID, true, false},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static uint64_t digest_case(size_t i, uint64_t seed)
{
	return digest_of(seed, cases[i].fidelity, cases[i].at_disk, cases[i].decay);
}

static void same_seed_same_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		uint64_t first = digest_case(i, 1);

		assert_true(first == digest_case(i, 1));
		assert_true(first != digest_case(i, 2));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_seed_same_bytes)};

	if (argc < 2 || strcmp(argv[1], "print") != 0)
		return cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < CASES; i++)
		printf("%016llx\n", (unsigned long long)digest_case(i, 1));
	return 0;
}
