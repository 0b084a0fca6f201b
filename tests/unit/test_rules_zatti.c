/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Zatti's matching (MODEL 3.14, 3.15, 4.4, 4.5): vectors, thresholds, slots, and the effects of
 * a placement.
 */
#include <errno.h>

#include "tests/unit/rules_zatti_fixture.h"

static struct rules_view *kept_view(const struct rules_node *nodes, uint32_t n,
				    enum rules_policy policy, const struct rules_params *p)
{
	struct rules_view *view = view_of(nodes, n, p->rates);

	assert_int_equal(rules_view_keep(view, policy, p), 0);
	return view;
}

/* Makes one decision at node 0 of a view that has the parameters. */
static void decide(enum rules_policy policy, const struct rules_params *p,
		   const struct rules_node *nodes, uint32_t n, const struct rules_request *job,
		   struct rules_plan *plan)
{
	struct rules_view *view = kept_view(nodes, n, policy, p);

	place(policy, p, view, 0, job, plan);
	rules_view_free(view);
}

/* --- the r.vector ------------------------------------------------------------------ */

/* ZAT Tables 1 and 2: cpu%, i/o rate and the bits. */
static void tables_1_and_2_agree(void **state)
{
	static const struct {
		double cpu_percent, blocks_per_s;
		bool cpu, io;
	} jobs[] = {
		{56.98, 5.46, true, true},   /* CC */
		{20.75, 27.70, false, true}, /* IO */
		{51.10, 0.0, true, false},   /* CPU */
		{51.59, 0.4, true, false},   /* NROFF */
	};
	struct rules_params p = wall();
	struct rules_zatti_cuts cuts = rules_zatti_cuts(&p);

	(void)state;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		struct rules_zatti_vector v = {.cpu_percent = jobs[i].cpu_percent,
					       .blocks_per_s = jobs[i].blocks_per_s};

		rules_zatti_bits(&cuts, &v);
		assert_int_equal(v.cpu, jobs[i].cpu);
		assert_int_equal(v.io, jobs[i].io);
	}
}

static void vectors_follow_from_requests(void **state)
{
	struct rules_params p = wall();
	struct rules_zatti_cuts cuts = rules_zatti_cuts(&p);
	struct rules_node node = node_fc("a");
	struct rules_request j = job_io(850, 100);
	const struct rules_reading reading = {.rates = RULES_RATES_COMPUTATION};
	struct rules_zatti_vector v;
	struct rules_cell c;

	(void)state;
	assert_int_equal(rules_cell_init(&c, &node, &reading), 0);
	j.io_per_ms = 100.0 / 850;
	v = rules_zatti_vector(&cuts, &c, &j, RULES_RATES_COMPUTATION);
	assert_close(v.cpu_percent, 100 * 850 / (850 + 1425.0), 1e-9);
	assert_close(v.blocks_per_s, 1000 * 100 / (850 + 1425.0), 1e-9);
	assert_true(v.cpu && v.io && v.memory_mb == 4);
	j.io_per_ms = 0.0015; /* wall: the job's own rate */
	v = rules_zatti_vector(&cuts, &c, &j, RULES_RATES_WALL);
	assert_close(v.blocks_per_s, 1.5, 1e-12);
	assert_close(v.cpu_percent, 100 * 850 / (100 / 0.0015), 1e-9);
	assert_false(v.io);
	j.requests = -1; /* the number of requests is unknown: t lambda, one after the other */
	v = rules_zatti_vector(&cuts, &c, &j, RULES_RATES_WALL);
	assert_close(v.cpu_percent, 100 * 850 / (850 + 850 * 0.0015 * 14.25), 1e-9);
	c.disk_mb_per_s = 0;
	v = rules_zatti_vector(&cuts, &c, &j, RULES_RATES_COMPUTATION);
	assert_close(v.cpu_percent, 100, 1e-9);
	j = (struct rules_request){.tasks = 1, .requests = -1};
	v = rules_zatti_vector(&cuts, &c, &j, RULES_RATES_WALL);
	assert_true(v.cpu_percent == 0 && v.blocks_per_s == 0 && !v.cpu && !v.io);
	cuts.cpu_need = cuts.io_need =
		0; /* with cuts of 0 the job needs all that it uses, and nothing else */
	rules_zatti_bits(&cuts, &v);
	assert_true(!v.cpu && !v.io);
}

/* --- local first --------------------------------------------------------------------- */

static void home_good_enough_keeps_the_job(void **state)
{
	struct rules_node nodes[] = {node_zatti("a", 4, 15, 4), node_zatti("b", 0, 0, 100)};
	struct rules_request both = needs_both();
	struct rules_params p = wall();
	struct rules_plan plan;

	(void)state;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &both, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_NEEDS, 0, true);
	assert_reason(&plan, RULES_C_LOCAL_CPU, 0, false);
	assert_reason(&plan, RULES_C_LOCAL_IO, 0, false);
	assert_reason(&plan, RULES_C_LOCAL_MEMORY, 0, false);
	nodes[0].zatti.free_mb = 3.9; /* too little memory alone is reason enough */
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &both, &plan);
	assert_int_equal(plan.node, 1);
	assert_reason(&plan, RULES_C_LOCAL_MEMORY, 0, true);
	assert_reason(&plan, RULES_C_REMOTE_MEMORY, 1, true);
	assert_null(reason_find(&plan, RULES_C_DELTA_CPU, 1)); /* home has enough CPU */
}

static void light_jobs_and_travelled_jobs_stay(void **state)
{
	struct rules_node nodes[] = {node_zatti("a", 9, 99, 100), node_zatti("b", 0, 0, 100)};
	struct rules_request job = needs_cpu();
	struct rules_params p = wall();
	struct rules_plan plan;

	(void)state;
	job.hops = 3;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_HOPS, 0, false);
	job.hops = 2;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
	assert_reason(&plan, RULES_C_HOPS, 0, true);
	p.hop_max = 0;
	job.hops = 0;
	decide(RULES_ZATTI_REAL, &p, nodes, 2, &job, &plan);
	assert_true(plan.stayed);
	p = wall();
	job = job_io(10, 100); /* little CPU, 1.9 blocks/s: r = 0 */
	job.io_per_ms = 0.0019;
	decide(RULES_ZATTI_REAL, &p, nodes, 2, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_NEEDS, 0, false);
	p.zatti_io_need = 1.9;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
}

/* --- thresholds ------------------------------------------------------------------------- */

/* Local 4, delta 3: sent only to a queue shorter by more than 3 (9.4.1). */
static void queue_thresholds_are_local_and_delta(void **state)
{
	struct rules_node nodes[] = {node_zatti("a", 5, 0, 100), node_zatti("b", 2, 0, 100)};
	struct rules_request job = needs_cpu();
	struct rules_params p = wall();
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_true(plan.stayed);
	r = assert_reason(&plan, RULES_C_LOCAL_CPU, 0, true);
	assert_true(r->left == 5 && r->right == 4);
	r = assert_reason(&plan, RULES_C_DELTA_CPU, 1, false);
	assert_true(r->left == 2 && r->right == 2);
	assert_int_equal(plan.refused[RULES_C_DELTA_CPU], 1);
	nodes[1].zatti.run_queue = 1;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
	/* With a high queue at home the relative form accepts what the absolute one refuses. */
	nodes[0].zatti.run_queue = 8;
	nodes[1].zatti.run_queue = 4;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
	p.zatti_relative = false;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	r = assert_reason(&plan, RULES_C_REMOTE_CPU, 1, false);
	assert_true(plan.stayed && r->left == 4 && r->right == 1);
	nodes[1].zatti.run_queue = 1;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
	nodes[1].zatti.run_queue = 4; /* on four cores this is one task per core */
	nodes[1].cores = 4;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
}

static void traffic_thresholds_are_local_and_delta(void **state)
{
	struct rules_node nodes[] = {node_zatti("a", 0, 16, 100), node_zatti("b", 99, 15, 100)};
	struct rules_request job = needs_io();
	struct rules_params p = wall();
	struct rules_plan plan;

	(void)state;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
	p.zatti_blocks_delta = 1;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_reason(&plan, RULES_C_DELTA_IO, 1, false);
	p.zatti_relative = false;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_reason(&plan, RULES_C_REMOTE_IO, 1, false);
	nodes[1].zatti.blocks_per_s = 14;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
	nodes[1].disk_mb_per_s = 0;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_HAS_DISK, 1, false);
	/* A job with little I/O can use any disk, but needs one. */
	job = needs_both();
	job.io_per_ms = 0.0001;
	nodes[0].zatti.run_queue = 9;
	nodes[1].zatti.run_queue = 0;
	for (int policy = RULES_ZATTI_BINARY; policy <= RULES_ZATTI_REAL; policy++) {
		job.requests = 0.1;
		decide((enum rules_policy)policy, &p, nodes, 2, &job, &plan);
		assert_true(plan.stayed);
		assert_reason(&plan, RULES_C_HAS_DISK, 1, false);
	}
}

static void idle_time_may_be_the_index(void **state)
{
	struct rules_node nodes[] = {node_zatti("a", 0, 0, 100), node_zatti("b", 99, 0, 100)};
	struct rules_request job = needs_cpu();
	struct rules_params p = wall();
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	p.zatti_idle = true;
	nodes[0].zatti.cpu_idle_percent = 10;
	nodes[1].zatti.cpu_idle_percent = 10;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_true(plan.stayed);
	nodes[0].zatti.cpu_idle_percent = 9;
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
	r = assert_reason(&plan, RULES_C_REMOTE_CPU, 1, true);
	assert_true(r->left == 90 && r->right == 90);
	/* Real: the idle time of one core must hold the job's cpu%. */
	job = job_io(60, 1);
	job.io_per_ms = 0.01;
	p.zatti_io_need = 100;
	nodes[1].zatti.cpu_idle_percent = 59;
	decide(RULES_ZATTI_REAL, &p, nodes, 2, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_REMOTE_CPU, 1, false);
	nodes[1].zatti.cpu_idle_percent = 61;
	decide(RULES_ZATTI_REAL, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
	nodes[1].zatti.cpu_idle_percent = 31;
	nodes[1].cores = 2;
	decide(RULES_ZATTI_REAL, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
}

/* Fields that no vector has follow from the loads. */
static void loads_are_derived_where_not_given(void **state)
{
	struct rules_node node = node_live("a", 0.57, 3);
	struct rules_params p = wall();
	struct rules_zatti_cuts cuts = rules_zatti_cuts(&p);
	const struct rules_reading reading = {.rates = RULES_RATES_WALL};
	struct rules_cell c;

	(void)state;
	assert_int_equal(rules_cell_init(&c, &node, &reading), 0);
	assert_close(rules_zatti_cpu(&cuts, false, &c), 3.0 / 4, 1e-12);
	assert_close(rules_zatti_cpu(&cuts, true, &c), 4.0 / 4, 1e-12);
	assert_close(rules_zatti_io(&c), 40, 1e-9);
	assert_close(rules_zatti_free_mb(&c), 15000, 1e-9);
	cuts.idle = true;
	assert_close(rules_zatti_cpu(&cuts, false, &c), 75, 1e-12);
	assert_close(rules_zatti_cpu(&cuts, true, &c), 0, 1e-12); /* a core's worth is idle */
	node.ram_mb = 0;
	node.advertised.cpu = 9;
	assert_int_equal(rules_cell_init(&c, &node, &reading), 0);
	assert_true(rules_zatti_free_mb(&c) == INFINITY);
	assert_close(rules_zatti_cpu(&cuts, true, &c), 100, 1e-12);
}

/* --- slots --------------------------------------------------------------------------------- */

/* r = 1 looks in {1,3}, 2 in {2,3}, 3 in {3} (O-31). */
static void keys_open_their_slots(void **state)
{
	/* Nodes of slots 0 to 3 behind a home that lacks everything. */
	struct rules_node nodes[] = {node_zatti("home", 50, 99, 0), node_zatti("s0", 20, 50, 90),
				     node_zatti("s1", 20, 0, 90), node_zatti("s2", 0, 50, 90),
				     node_zatti("s3", 0, 0, 5)};
	struct rules_request jobs[] = {needs_io(), needs_cpu(), needs_both()};
	static const uint32_t first[] = {2, 3, 4};
	struct rules_params p = wall();
	struct rules_plan plan;

	(void)state;
	for (int i = 0; i < 3; i++) {
		decide(RULES_ZATTI_BINARY, &p, nodes, 5, &jobs[i], &plan);
		assert_int_equal(plan.node, first[i]);
		assert_int_equal(plan.ntied, 1);
		assert_int_equal(plan.ncandidates, i < 2 ? 2 : 1);
		assert_int_equal(plan.candidates[plan.ncandidates - 1], 4);
		assert_true(plan.refused[RULES_C_REMOTE_CPU] + plan.refused[RULES_C_REMOTE_IO] > 0);
	}
	p.zatti_superset = false;
	decide(RULES_ZATTI_BINARY, &p, nodes, 5, &jobs[1], &plan);
	assert_int_equal(plan.ncandidates, 1);
	nodes[3].accepts = false;
	decide(RULES_ZATTI_BINARY, &p, nodes, 5, &jobs[1], &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_ACCEPTS, 3, false);
	p.zatti_superset = true;
	decide(RULES_ZATTI_BINARY, &p, nodes, 5, &jobs[1], &plan);
	assert_int_equal(plan.node, 4);
}

static void first_fit_is_best_fit(void **state)
{
	struct rules_node nodes[] = {node_zatti("a", 9, 0, 0), node_zatti("b", 0, 0, 30),
				     node_zatti("c", 0, 0, 10), node_zatti("d", 1, 0, 20)};
	struct rules_request job = needs_cpu();
	struct rules_params p = wall();
	struct rules_plan plan;

	(void)state;
	job.memory_mb = 15;
	decide(RULES_ZATTI_BINARY, &p, nodes, 4, &job, &plan);
	assert_int_equal(plan.node, 3);
	assert_int_equal(plan.candidates[1], 1);
	assert_int_equal(plan.ncandidates, 2);
	assert_reason(&plan, RULES_C_REMOTE_MEMORY, 2, false);
	assert_int_equal(plan.refused[RULES_C_REMOTE_MEMORY], 1);
	job.memory_mb = 31;
	decide(RULES_ZATTI_BINARY, &p, nodes, 4, &job, &plan);
	assert_true(plan.stayed);
	for (int i = 1; i < 4; i++) { /* unknown memory is always enough */
		nodes[i].has_zatti = false;
		nodes[i].ram_mb = nodes[i].buffer_mb = 0;
	}
	decide(RULES_ZATTI_BINARY, &p, nodes, 4, &job, &plan);
	assert_int_equal(plan.ntied, 3);
}

/* The real form takes the lowest interval that is enough, then the next (3.15, O-33). */
static void intervals_ascend_by_availability(void **state)
{
	struct rules_node nodes[] = {node_zatti("a", 9, 30, 0), node_zatti("idle", 0, 0, 50),
				     node_zatti("busy", 3, 0, 90), node_zatti("full", 4, 0, 90),
				     node_zatti("traffic", 2, 11, 90)};
	struct rules_request job = needs_both();
	struct rules_params p = wall();
	struct rules_plan plan;

	(void)state;
	decide(RULES_ZATTI_REAL, &p, nodes, 5, &job, &plan);
	assert_int_equal(plan.ncandidates, 2);
	assert_int_equal(plan.node, 2); /* queue 3 and the job: 4 of 4 */
	assert_int_equal(plan.candidates[1], 1);
	assert_reason(&plan, RULES_C_REMOTE_CPU, 3, false);
	assert_reason(&plan, RULES_C_REMOTE_IO, 4, false); /* 11 + 5 blocks/s */
	nodes[4].zatti.blocks_per_s = 10;
	decide(RULES_ZATTI_REAL, &p, nodes, 5, &job, &plan);
	assert_int_equal(plan.ncandidates, 3);
	assert_int_equal(plan.candidates[1], 4);
	/* the threshold is 4 less 3, so only a node without other processes fits */
	p.zatti_relative = false;
	decide(RULES_ZATTI_REAL, &p, nodes, 5, &job, &plan);
	assert_int_equal(plan.ncandidates, 1);
	assert_int_equal(plan.node, 1);
	p.zatti_intervals = 1;
	decide(RULES_ZATTI_REAL, &p, nodes, 5, &job, &plan);
	assert_int_equal(plan.node, 1);
}

/* ZAT 9.4.2: 27.7 blocks/s are hardly ever free; for the binary form the bit is enough. */
static void a_rate_too_high_for_all_stays_home(void **state)
{
	struct rules_node nodes[] = {node_zatti("a", 0, 30, 90), node_zatti("b", 0, 0, 90)};
	struct rules_request job = needs_io();
	struct rules_params p = wall();
	struct rules_plan plan;

	(void)state;
	job.io_per_ms = 0.0277;
	decide(RULES_ZATTI_REAL, &p, nodes, 2, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_REMOTE_IO, 1, false);
	decide(RULES_ZATTI_BINARY, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
	p.zatti_blocks_per_s = 40;
	decide(RULES_ZATTI_REAL, &p, nodes, 2, &job, &plan);
	assert_int_equal(plan.node, 1);
}

static void equally_free_nodes_are_drawn_by_the_seed(void **state)
{
	struct rules_node nodes[5] = {node_zatti("a", 9, 0, 0)};
	struct rules_request job = needs_cpu();
	struct rules_params p = wall();
	struct rules_view *view;
	struct rules_plan plan;
	int taken[5] = {0};

	(void)state;
	for (int i = 1; i < 5; i++)
		nodes[i] = node_zatti("n", 0, 0, i == 4 ? 91 : 90);
	view = kept_view(nodes, 5, RULES_ZATTI_BINARY, &p);
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct rules *rules = rules_new(RULES_ZATTI_BINARY, &p, seed);
		uint32_t node;

		assert_int_equal(rules_place(rules, view, 0, &job, &plan), 0);
		assert_int_equal(plan.ntied, 3);
		assert_int_equal(plan.tied[0], plan.node);
		assert_int_equal(plan.candidates[3], 4);
		taken[plan.node]++;
		node = plan.node;
		rules_brief(rules, true);
		assert_int_equal(rules_place(rules, view, 0, &job, &plan), 0);
		assert_int_equal(plan.node, node);
		assert_int_equal(plan.ncandidates, 1);
		rules_free(rules);
	}
	for (int i = 1; i < 4; i++)
		assert_in_range(taken[i], 70, 130);
	rules_view_free(view);
}

/* --- after a placement ------------------------------------------------------------------------ */

static void a_placement_takes_the_bits_and_the_memory(void **state)
{
	struct rules_node nodes[] = {node_zatti("a", 9, 99, 0), node_zatti("b", 0, 0, 20)};
	struct rules_request cpu = needs_cpu(), io = needs_io(), both = needs_both();
	struct rules_params p = wall();
	struct rules_view *view = kept_view(nodes, 2, RULES_ZATTI_BINARY, &p);
	struct rules_plan plan;

	(void)state;
	assert_int_equal(rules_view_charge(view, 1, &cpu), 0);
	place(RULES_ZATTI_BINARY, &p, view, 0, &cpu, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_SENT, 1, false);
	place(RULES_ZATTI_BINARY, &p, view, 0, &both, &plan);
	assert_true(plan.stayed);
	io.memory_mb = 16;
	place(RULES_ZATTI_BINARY, &p, view, 0, &io, &plan);
	assert_int_equal(plan.node, 1); /* 20 - 4 MB are left */
	io.memory_mb = 16.1;
	place(RULES_ZATTI_BINARY, &p, view, 0, &io, &plan);
	assert_reason(&plan, RULES_C_REMOTE_MEMORY, 1, false);
	assert_int_equal(rules_view_discharge(view, 1, &cpu), 0);
	place(RULES_ZATTI_BINARY, &p, view, 0, &both, &plan);
	assert_int_equal(plan.node, 1);
	io.memory_mb = 4;
	assert_int_equal(rules_view_charge(view, 1, &io), 0);
	place(RULES_ZATTI_BINARY, &p, view, 0, &cpu, &plan);
	assert_int_equal(plan.node, 1);
	place(RULES_ZATTI_BINARY, &p, view, 0, &io, &plan);
	assert_true(plan.stayed);
	assert_int_equal(rules_view_set(view, 1, &nodes[1]), 0); /* the node's next vector */
	place(RULES_ZATTI_BINARY, &p, view, 0, &both, &plan);
	assert_int_equal(plan.node, 1);
	rules_view_free(view);
}

/* 3.15: run queue + 1, i/o traffic + r.io, free - r.mem. */
static void a_placement_changes_the_fields(void **state)
{
	struct rules_node nodes[] = {node_zatti("a", 1, 2, 20), node_live("b", 0.57, 3)};
	struct rules_request both = needs_both();
	struct rules_params p = wall();
	struct rules_zatti_cuts cuts = rules_zatti_cuts(&p);
	struct rules_view *view = kept_view(nodes, 2, RULES_ZATTI_REAL, &p);
	const struct rules_cell *a = &view->cells[0], *b = &view->cells[1];

	(void)state;
	assert_int_equal(rules_view_charge(view, 0, &both), 0);
	assert_int_equal(rules_view_charge(view, 1, &both), 0);
	assert_close(a->zatti_queue, 2, 0);
	assert_close(a->zatti_blocks, 2 + 5, 1e-12);
	assert_close(a->zatti_free, 16, 0);
	assert_close(a->zatti_idle, 0 - 50, 1e-9);
	assert_close(rules_zatti_cpu(&cuts, false, b), 4.0 / 4, 0);
	assert_close(rules_zatti_io(b), 40 + 5, 1e-9);
	assert_close(rules_zatti_free_mb(b), 15000 - 4, 1e-9);
	assert_int_equal(rules_view_discharge(view, 0, &both), 0);
	assert_close(a->zatti_queue, 1, 0);
	assert_close(a->zatti_blocks, 2, 1e-12);
	assert_close(a->zatti_free, 20, 0);
	assert_close(a->zatti_idle, 0, 1e-9);
	rules_view_free(view);
}

static void a_view_cut_otherwise_is_refused(void **state)
{
	static const char *const cuts[] = {"zatti_queue", "zatti_blocks_per_s", "zatti_cpu_need",
					   "zatti_io_need", "zatti_idle"};
	struct rules_node nodes[] = {node_zatti("a", 9, 99, 0), node_zatti("b", 0, 0, 20)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_request job = needs_cpu();
	struct rules_plan plan;

	(void)state;
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++)
		for (int policy = RULES_ZATTI_BINARY; policy <= RULES_ZATTI_REAL; policy++) {
			struct rules_params p = wall();
			struct rules *rules;

			assert_int_equal(rules_params_set(&p, cuts[i], 1), 0);
			rules = rules_new((enum rules_policy)policy, &p, 1);
			assert_int_equal(rules_place(rules, view, 0, &job, &plan), -EINVAL);
			assert_int_equal(rules_view_keep(view, (enum rules_policy)policy, &p), 0);
			assert_int_equal(rules_place(rules, view, 0, &job, &plan), 0);
			rules_free(rules);
			rules_view_free(view);
			view = view_of(nodes, 2, RULES_RATES_WALL);
		}
	rules_view_free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_1_and_2_agree),
		cmocka_unit_test(vectors_follow_from_requests),
		cmocka_unit_test(home_good_enough_keeps_the_job),
		cmocka_unit_test(light_jobs_and_travelled_jobs_stay),
		cmocka_unit_test(queue_thresholds_are_local_and_delta),
		cmocka_unit_test(traffic_thresholds_are_local_and_delta),
		cmocka_unit_test(idle_time_may_be_the_index),
		cmocka_unit_test(loads_are_derived_where_not_given),
		cmocka_unit_test(keys_open_their_slots),
		cmocka_unit_test(first_fit_is_best_fit),
		cmocka_unit_test(intervals_ascend_by_availability),
		cmocka_unit_test(a_rate_too_high_for_all_stays_home),
		cmocka_unit_test(equally_free_nodes_are_drawn_by_the_seed),
		cmocka_unit_test(a_placement_takes_the_bits_and_the_memory),
		cmocka_unit_test(a_placement_changes_the_fields),
		cmocka_unit_test(a_view_cut_otherwise_is_refused),
	};

	return cmocka_run_group_tests_name("rules: Zatti", tests, NULL, NULL);
}
