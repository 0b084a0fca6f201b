/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The view as it changes: marks and rollbacks, charges and discharges, the kept indexes, the
 * exact sums. Random operations from seeds; prints the failing seed.
 */
#include <errno.h>

#include "balancer/rules/rules_private.h"

#include "tests/unit/rules_fixture.h"

#define MOST_HERE 150

/* --- the contents of a view, to compare bit by bit --------------------------------- */

struct picture {
	uint32_t count;
	struct rules_totals totals;
	char names[MOST_HERE][RULES_NAME_MAX];
	struct rules_cell cells[MOST_HERE];
	struct rules_least least[RULES_ORDERS][2 * MOST_HERE];
	struct rules_bound bounds[2 * MOST_HERE];
	struct rules_corner corners[2 * MOST_HERE];
};

/* Returns the subtree with all nodes, for any capacity. */
static uint32_t root_of(const struct rules_view *view)
{
	uint32_t root = 1;

	while (root < view->capacity && view->count <= view->capacity / (2 * root))
		root *= 2;
	return root;
}

static void take_picture(struct picture *p, const struct rules_view *view)
{
	uint32_t next = 0, width = 1;

	memset(p, 0, sizeof(*p));
	p->count = view->count;
	p->totals = view->totals;
	if (p->count == 0)
		return;
	memcpy(p->names, view->names, view->count * sizeof(p->names[0]));
	memcpy(p->cells, view->cells, view->count * sizeof(p->cells[0]));
	for (uint32_t at = root_of(view); at < 2 * view->capacity; at *= 2, width *= 2) {
		for (uint32_t i = at; i < at + width && next < 2 * MOST_HERE; i++, next++) {
			for (int o = 0; o < RULES_ORDERS; o++)
				if (view->least[o] != NULL)
					p->least[o][next] = view->least[o][i];
			if (view->bounds != NULL)
				p->bounds[next] = view->bounds[i];
			if (view->corners != NULL)
				p->corners[next] = view->corners[i];
		}
	}
}

/* Compares field by field, because the padding of the trees' elements differs. */
static bool same_trees(const struct picture *a, const struct picture *b)
{
	for (int o = 0; o < RULES_ORDERS; o++)
		for (int i = 0; i < 2 * MOST_HERE; i++) {
			const struct rules_least *x = &a->least[o][i], *y = &b->least[o][i];

			if (x->key != y->key || x->tie != y->tie || x->count != y->count)
				return false;
		}
	for (int i = 0; i < 2 * MOST_HERE; i++) {
		const struct rules_bound *x = &a->bounds[i], *y = &b->bounds[i];
		const struct rules_corner *u = &a->corners[i], *v = &b->corners[i];

		if (x->io_share != y->io_share || x->cpu_factor != y->cpu_factor ||
		    x->fixed_ms != y->fixed_ms || x->s_per_mb != y->s_per_mb ||
		    x->mixed != y->mixed || x->disks != y->disks || x->accepting != y->accepting)
			return false;
		if (memcmp(u->least_mix, v->least_mix, sizeof(u->least_mix)) != 0 ||
		    memcmp(u->most_mix, v->most_mix, sizeof(u->most_mix)) != 0)
			return false;
		if (u->least_cpu != v->least_cpu || u->least_io != v->least_io ||
		    u->most_cpu != v->most_cpu || u->most_io != v->most_io || u->count != v->count)
			return false;
	}
	return true;
}

static bool same_picture(const struct picture *a, const struct picture *b)
{
	return a->count == b->count && memcmp(&a->totals, &b->totals, sizeof(a->totals)) == 0 &&
	       memcmp(a->names, b->names, sizeof(a->names)) == 0 &&
	       memcmp(a->cells, b->cells, a->count * sizeof(a->cells[0])) == 0 && same_trees(a, b);
}

static struct rules_view *view_random(struct draws *d, uint32_t n)
{
	struct rules_view *view = rules_view_new();

	assert_non_null(view);
	for (uint32_t i = 0; i < n; i++) {
		struct rules_node node = node_random(d, i);

		assert_int_equal(rules_view_set(view, i, &node), 0);
	}
	return view;
}

/* Makes one random change; an impossible one (a full view) is skipped. */
static void change(struct draws *d, struct rules_view *view)
{
	uint32_t n = rules_view_count(view), at = n > 0 ? (uint32_t)draw(d, n) : 0;
	double kind = draw(d, 1);
	struct rules_node node = node_random(d, (uint32_t)draw(d, 1000));
	struct rules_request job = job_random(d);

	if (n == 0 || (kind < 0.2 && n < MOST_HERE))
		assert_int_equal(rules_view_set(view, n, &node), 0);
	else if (kind < 0.25)
		assert_int_equal(rules_view_pop(view), 0);
	else if (kind < 0.3)
		assert_int_equal(rules_view_remove(view, at), 0);
	else if (kind < 0.6)
		assert_int_equal(rules_view_set(view, at, &node), 0);
	else if (kind < 0.8)
		assert_int_equal(rules_view_charge(view, at, &job), 0);
	else
		assert_int_equal(rules_view_discharge(view, at, &job), 0);
}

static void rollback_restores_every_bit(void **state)
{
	static struct picture before, after;

	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct draws d = {seed};
		struct rules_view *view = view_random(&d, (uint32_t)draw(&d, 40));

		for (int round = 0; round < 5; round++) {
			int changes = (int)draw(&d, draw_chance(&d, 0.5) ? 5 : 60);

			take_picture(&before, view);
			assert_int_equal(rules_view_mark(view), 0);
			while (changes-- > 0)
				change(&d, view);
			rules_view_rollback(view);
			take_picture(&after, view);
			if (!same_picture(&before, &after)) {
				print_error("seed %llu\n", (unsigned long long)seed);
				fail();
			}
			change(&d, view);
		}
		rules_view_free(view);
	}
}

/* A view depends only on its nodes, not on its history. */
static void the_way_leaves_no_trace(void **state)
{
	static struct picture one, other;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct draws d = {seed}, again;
		uint32_t n = 1 + (uint32_t)draw(&d, 100);
		struct rules_view *view = view_random(&d, (uint32_t)draw(&d, 120)), *fresh;

		for (int i = 0; i < 100; i++)
			change(&d, view);
		while (rules_view_count(view) > n)
			assert_int_equal(rules_view_pop(view), 0);
		again = d;
		fresh = view_random(&d, n);
		for (uint32_t i = 0; i < n; i++) {
			struct rules_node node = node_random(&again, i);

			assert_int_equal(rules_view_set(view, i, &node), 0);
		}
		take_picture(&one, view);
		take_picture(&other, fresh);
		if (!same_picture(&one, &other)) {
			print_error("seed %llu\n", (unsigned long long)seed);
			fail();
		}
		rules_view_free(view);
		rules_view_free(fresh);
	}
}

/* Built at once, or copied node by node from another view: the same bits. */
static void deferred_and_copied_changes_are_changes(void **state)
{
	static struct picture one, deferred, copied;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct draws d = {seed}, first, second, third;
		uint32_t n = 1 + (uint32_t)draw(&d, 100);
		struct rules_view *a, *b, *c;
		int changes = (int)draw(&d, 200);

		first = second = third = d;
		a = view_random(&first, n);
		b = view_random(&second, n);
		c = view_random(&third, n);
		assert_int_equal(rules_view_defer(b), 0);
		for (int i = 0; i < changes; i++) {
			change(&first, a);
			change(&second, b);
		}
		rules_view_settle(b);
		while (rules_view_count(c) > rules_view_count(a))
			assert_int_equal(rules_view_pop(c), 0);
		while (rules_view_count(c) < rules_view_count(a)) {
			struct rules_node node = node_random(&third, 1);

			assert_int_equal(rules_view_set(c, rules_view_count(c), &node), 0);
		}
		if (seed % 2 == 0)
			assert_int_equal(rules_view_defer(c), 0);
		for (uint32_t i = 0; i < rules_view_count(a); i++)
			assert_int_equal(rules_view_copy(c, a, i), 0);
		rules_view_settle(c);
		take_picture(&one, a);
		take_picture(&deferred, b);
		take_picture(&copied, c);
		if (!same_picture(&one, &deferred) || !same_picture(&one, &copied)) {
			print_error("seed %llu\n", (unsigned long long)seed);
			fail();
		}
		rules_view_free(a);
		rules_view_free(b);
		rules_view_free(c);
	}
}

/* A deferred view refuses to decide, because its indexes are out of date. */
static void a_deferred_view_decides_nothing(void **state)
{
	struct rules_node nodes[2] = {node_live("a", 0.5, 1), node_live("b", 0, 0)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params params = params_wall();
	struct rules *rules = rules_new(RULES_CPU_RE, &params, 1);
	struct rules_request job = job_cpu(1000);
	struct rules_task task = {.cpu_ms = 1};
	struct rules_move move;
	struct rules_plan plan;
	uint32_t where;
	size_t n;

	(void)state;
	assert_non_null(rules);
	assert_int_equal(rules_view_mark(view), 0);
	assert_int_equal(rules_view_defer(view), -EBUSY);
	rules_view_rollback(view);
	assert_int_equal(rules_view_defer(view), 0);
	assert_int_equal(rules_view_defer(view), -EBUSY);
	assert_int_equal(rules_view_mark(view), -EBUSY);
	assert_int_equal(rules_place(rules, view, 0, &job, &plan), -EBUSY);
	assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, &where), -EBUSY);
	assert_int_equal(rules_migrate(rules, view, 0, &task, 1, &move, 1, &n, &plan), -EBUSY);
	rules_view_settle(view);
	rules_view_settle(view); /* a second time it does nothing */
	assert_int_equal(rules_place(rules, view, 0, &job, &plan), 0);
	assert_int_equal(rules_view_copy(view, view, 2), -EINVAL);
	rules_free(rules);
	rules_view_free(view);
}

static void marks_do_not_nest(void **state)
{
	struct rules_node node = node_live("a", 0.5, 1), renamed = node_live("b", 0.5, 1);
	struct rules_view *view = view_of(&node, 1, RULES_RATES_WALL);

	(void)state;
	rules_view_rollback(view); /* without a mark it does nothing */
	assert_int_equal(rules_view_mark(view), 0);
	assert_int_equal(rules_view_mark(view), -EBUSY);
	assert_int_equal(rules_view_set(view, 0, &renamed), 0);
	assert_string_equal(rules_view_name(view, 0), "b");
	rules_view_rollback(view);
	assert_string_equal(rules_view_name(view, 0), "a");
	assert_int_equal(rules_view_mark(view), 0);
	assert_int_equal(rules_view_pop(view), 0);
	assert_int_equal(rules_view_pop(view), -EINVAL);
	rules_view_rollback(view);
	assert_int_equal(rules_view_count(view), 1);
	assert_string_equal(rules_view_name(view, 0), "a");
	rules_view_free(view);
}

static void the_newest_takes_the_place_of_the_removed(void **state)
{
	struct rules_node nodes[] = {node_fc("a"), node_fc("b"), node_fc("c")};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_WALL);
	struct rules_request job = job_cpu(1000);

	(void)state;
	assert_int_equal(rules_view_remove(view, 3), -EINVAL);
	assert_int_equal(rules_view_charge(view, 2, &job), 0);
	assert_int_equal(rules_view_remove(view, 0), 0);
	assert_int_equal(rules_view_count(view), 2);
	assert_string_equal(rules_view_name(view, 0), "c");
	assert_string_equal(rules_view_name(view, 1), "b");
	assert_true(view->cells[0].cpu == 1 && view->cells[1].cpu == 0);
	assert_int_equal(rules_view_remove(view, 1), 0);
	assert_string_equal(rules_view_name(view, 0), "c");
	assert_int_equal(rules_view_remove(view, 0), 0);
	assert_int_equal(rules_view_count(view), 0);
	assert_int_equal(rules_view_remove(view, 0), -EINVAL);
	rules_view_free(view);
}

/* --- charges -------------------------------------------------------------------- */

static void assert_near(uint64_t seed, const char *what, double got, double wanted, double size)
{
	if (!(fabs(got - wanted) <= 1e-9 * (fabs(wanted) + size))) {
		print_error("seed %llu: %s: got %.17g, wanted %.17g\n", (unsigned long long)seed,
			    what, got, wanted);
		fail();
	}
}

#define NEAR(field) assert_near(seed, #field, got->field, wanted->field, size)

static void assert_cells_near(uint64_t seed, const struct rules_cell *got,
			      const struct rules_cell *wanted, double size)
{
	NEAR(io);
	NEAR(explicit_io);
	NEAR(implicit_io);
	NEAR(memory);
	NEAR(cpu);
	NEAR(com);
	NEAR(kb_per_ms);
	NEAR(cpu_ms);
	NEAR(disk_ms);
	NEAR(arrivals);
	NEAR(utilisation);
	NEAR(over);
	NEAR(queue);
	NEAR(io_tasks);
}

static void discharge_undoes_charge_within_rounding(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct draws d = {seed};
		struct rules_view *view = rules_view_new();
		struct rules_node node = node_random(&d, 0);
		struct rules_request jobs[4];
		struct rules_cell before;
		int n = 1 + (int)draw(&d, 4);

		rules_view_rates(view,
				 draw_chance(&d, 0.5) ? RULES_RATES_WALL : RULES_RATES_COMPUTATION);
		assert_int_equal(rules_view_set(view, 0, &node), 0);
		before = view->cells[0];
		for (int i = 0; i < n; i++) {
			jobs[i] = job_random(&d);
			assert_int_equal(rules_view_charge(view, 0, &jobs[i]), 0);
		}
		for (int i = n; i-- > 0;)
			assert_int_equal(rules_view_discharge(view, 0, &jobs[i]), 0);
		assert_cells_near(seed, &view->cells[0], &before, 1e6);
		rules_view_free(view);
	}
}

/* An idle node that had a job is exactly idle again. */
static void no_load_is_left_behind(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct draws d = {seed};
		struct rules_node node = node_fc("a");
		struct rules_view *view = view_of(&node, 1, RULES_RATES_COMPUTATION);
		struct rules_request a = job_random(&d), b = job_random(&d);
		const struct rules_cell *c = &view->cells[0];

		assert_int_equal(rules_view_charge(view, 0, &a), 0);
		assert_int_equal(rules_view_charge(view, 0, &b), 0);
		assert_int_equal(rules_view_discharge(view, 0, &b), 0);
		assert_int_equal(rules_view_discharge(view, 0, &a), 0);
		assert_true(c->io == 0 && c->explicit_io == 0 && c->implicit_io == 0);
		assert_true(c->memory == 0 && c->cpu == 0 && c->queue == 0 && c->io_tasks == 0);
		rules_view_free(view);
	}
}

static void a_charge_adds_what_the_task_needs(void **state)
{
	struct rules_node node = node_fc("a");
	struct rules_view *view = view_of(&node, 1, RULES_RATES_COMPUTATION);
	const double com = 40;
	struct rules_request job = {.cpu_ms = 2000,
				    .io_per_ms = 2,
				    .request_kb = 250,
				    .reaccess = 5,
				    .memory_mb = 500,
				    .faults_per_ms = 3,
				    .requests = -1,
				    .tasks = 1,
				    .com_ms = &com};
	const struct rules_cell *c = &view->cells[0];

	(void)state;
	assert_int_equal(rules_view_charge(view, 0, &job), 0);
	/* It needs 166 MB of buffer when alone and has 160: h = 5 * 160000 / (2000 * 500) */
	assert_close(c->explicit_io, 2 * (1 - 0.8), 1e-12);
	assert_close(c->implicit_io, 3 * 500.0 / 480, 1e-12); /* n_MEM = 640 - 160 */
	assert_close(c->io, c->explicit_io + c->implicit_io, 1e-12);
	assert_close(c->cpu_ms, 2000, 0);
	assert_close(c->disk_ms, 4000 * (1 - 0.8) * 14.25, 1e-9);
	assert_close(c->com, 40, 0);
	assert_close(c->cpu, 1, 0);
	job.tasks = 2;
	job.com_ms = (const double[]){0, NAN};
	assert_int_equal(rules_view_charge(view, 0, &job), -EINVAL);
	assert_int_equal(rules_view_discharge(view, 0, &job), -EINVAL);
	job.com_ms = NULL;
	assert_int_equal(rules_view_discharge(view, 1, &job), -EINVAL);
	rules_view_free(view);
}

/* A measured disk is at most always busy; charges beyond that are removed first. */
static void a_full_disk_remembers_what_did_not_fit(void **state)
{
	struct rules_node node = node_live("a", 0.9, 1);
	struct rules_view *view = view_of(&node, 1, RULES_RATES_WALL);
	struct rules_request job = job_io(100, 100);
	const struct rules_cell *c = &view->cells[0];

	(void)state;
	assert_int_equal(rules_view_charge(view, 0, &job), 0);
	assert_close(c->utilisation, 1, 1e-12);
	assert_close(c->arrivals, 1 / 14.25, 1e-12);
	assert_close(c->over, 0.05 - 0.1 / 14.25, 1e-12);
	assert_int_equal(rules_view_charge(view, 0, &job), 0);
	assert_close(c->over, 0.1 - 0.1 / 14.25, 1e-12);
	assert_int_equal(rules_view_discharge(view, 0, &job), 0);
	assert_close(c->utilisation, 1, 1e-12);
	assert_int_equal(rules_view_discharge(view, 0, &job), 0);
	assert_close(c->utilisation, 0.9, 1e-12);
	assert_true(c->over == 0);
	rules_view_free(view);
}

/* Requirements whose sum would overflow change nothing. */
static void huge_charges_are_refused(void **state)
{
	struct rules_node node = node_live("a", 0.5, 1);
	struct rules_view *view = view_of(&node, 1, RULES_RATES_WALL);
	struct rules_request job = job_io(1, 1);
	struct rules_cell before;

	(void)state;
	job.memory_mb = 1e308;
	assert_int_equal(rules_view_charge(view, 0, &job), 0);
	before = view->cells[0];
	assert_int_equal(rules_view_charge(view, 0, &job), -EINVAL);
	assert_memory_equal(&before, &view->cells[0], sizeof(before));
	rules_view_free(view);
}

/* --- exact sums -------------------------------------------------------------------- */

static void sums_are_exact(void **state)
{
	struct rules_exact sum = {0, 0}, start;
	struct draws d = {3};
	double terms[1000];

	(void)state;
	rules_exact_add(&sum, 0.1);
	rules_exact_add(&sum, 0.2);
	rules_exact_subtract(&sum, 0.1);
	assert_true(rules_exact_value(&sum) == 0.2);
	start = sum;
	for (int i = 0; i < 1000; i++) {
		terms[i] = draw(&d, draw_chance(&d, 0.1) ? 1e9 : 1);
		rules_exact_add(&sum, terms[i]);
	}
	for (int i = 0; i < 1000; i++)
		rules_exact_subtract(&sum, terms[(i * 7 + 3) % 1000]);
	assert_memory_equal(&sum, &start, sizeof(sum));
	rules_exact_add(&sum, 1e300); /* the value counts as 2^32 and is removed as 2^32 */
	assert_true(rules_exact_value(&sum) == 0x1p32 + 0.2);
	rules_exact_subtract(&sum, 1e300);
	assert_memory_equal(&sum, &start, sizeof(sum));
}

static void idle_and_open_nodes_are_counted(void **state)
{
	struct rules_node nodes[] = {node_live("idle", 0, 0), node_live("busy", 0, 2),
				     node_live("closed", 0, 0), node_live("diskless", 0, 0)};
	struct rules_view *view;
	struct rules_request job = job_cpu(1);

	(void)state;
	nodes[2].accepts = false;
	nodes[3].disk_mb_per_s = 0;
	view = view_of(nodes, 4, RULES_RATES_WALL);
	assert_int_equal(view->totals.accepting, 3);
	assert_int_equal(view->totals.accepting_disks, 2);
	assert_int_equal(view->totals.idle, 2);
	assert_int_equal(view->totals.idle_disks, 1);
	assert_int_equal(rules_view_charge(view, 0, &job), 0);
	assert_int_equal(view->totals.idle_disks, 0);
	assert_int_equal(rules_view_pop(view), 0);
	assert_int_equal(view->totals.accepting, 2);
	assert_int_equal(view->totals.idle, 0);
	rules_view_free(view);
}

/* --- indexes ------------------------------------------------------------------------- */

static bool needs_own_index(enum rules_policy p)
{
	return p != RULES_NLB && p != RULES_RANDOM && p != RULES_LEAST_DELAY;
}

static void a_missing_index_is_said(void **state)
{
	struct rules_node nodes[] = {node_live("a", 1, 40), node_live("b", 0, 0),
				     node_live("c", 0.1, 1)};
	struct rules_request job = job_io(1000, 1000);
	struct rules_params params = params_wall();
	struct rules_plan plan;

	(void)state;
	nodes[0].advertised.memory_mb = 15999;
	params.eager_probes = 0;
	for (int p = 0; p < RULES_POLICIES; p++) {
		struct rules_view *view = view_of(nodes, 3, RULES_RATES_WALL);
		struct rules *rules = rules_new(p, &params, 1);

		assert_int_equal(rules_view_keep(view, RULES_NLB, &params), 0);
		if (p != RULES_THRESHOLD && needs_own_index(p))
			assert_int_equal(rules_place(rules, view, 0, &job, &plan), -EINVAL);
		assert_int_equal(rules_view_keep(view, p, &params), 0);
		assert_int_equal(rules_place(rules, view, 0, &job, &plan), 0);
		rules_free(rules);
		rules_view_free(view);
	}
}

static void keep_refuses_nonsense(void **state)
{
	struct rules_view *view = rules_view_new();
	struct rules_params params = params_wall();

	(void)state;
	assert_int_equal(rules_view_keep(view, RULES_POLICIES, &params), -EINVAL);
	assert_int_equal(rules_view_keep_also(view, RULES_POLICIES, &params), -EINVAL);
	params.rho_max = 2;
	assert_int_equal(rules_view_keep(view, RULES_NLB, &params), -EINVAL);
	assert_int_equal(rules_view_keep_also(view, RULES_NLB, &params), -EINVAL);
	rules_view_free(view);
}

/* Whether the indexes are reduced early, late or never, the plans are the same. */
static void keeping_less_changes_no_plan(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 600; seed++) {
		struct draws d = {seed}, again;
		enum rules_policy policy = (enum rules_policy)draw(&d, RULES_POLICIES);
		struct rules_params params = params_computation();
		uint32_t n = 1 + (uint32_t)draw(&d, 60), home = (uint32_t)draw(&d, n);
		struct rules_view *all, *early = rules_view_new(), *late, *also;
		struct rules_plan plans[4];
		struct rules_view *views[4];
		struct rules_request job;

		params.cpu_speed_weighted = draw_chance(&d, 0.3);
		params.mem_order_free = draw_chance(&d, 0.3);
		params.io_order_share = draw_chance(&d, 0.3);
		params.cpu_threshold = 1;
		assert_int_equal(rules_view_keep(early, policy, &params), 0);
		again = d;
		all = view_random(&d, n);
		d = again;
		late = view_random(&d, n);
		d = again;
		also = view_random(&d, n);
		for (uint32_t i = 0; i < n; i++) {
			struct rules_node node = node_random(&again, i);

			assert_int_equal(rules_view_set(early, i, &node), 0);
		}
		assert_int_equal(rules_view_keep(late, RULES_WAL, &params), 0);
		assert_int_equal(rules_view_keep(late, policy, &params), 0);
		assert_int_equal(rules_view_keep(also, RULES_NLB, &params), 0);
		assert_int_equal(rules_view_keep_also(also, RULES_WAL, &params), 1);
		assert_in_range(rules_view_keep_also(also, policy, &params), 0, 1);
		assert_int_equal(rules_view_keep_also(also, RULES_WAL, &params), 0);
		assert_int_equal(rules_view_keep_also(also, policy, &params), 0);
		job = job_random(&d);
		views[0] = all, views[1] = early, views[2] = late, views[3] = also;
		for (int v = 0; v < 4; v++) {
			place(policy, &params, views[v], home, &job, &plans[v]);
			if (!same_plan(&plans[0], &plans[v])) {
				print_error("seed %llu (%s)\n", (unsigned long long)seed,
					    rules_policy_name(policy));
				fail();
			}
			rules_view_free(views[v]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rollback_restores_every_bit),
		cmocka_unit_test(the_way_leaves_no_trace),
		cmocka_unit_test(deferred_and_copied_changes_are_changes),
		cmocka_unit_test(a_deferred_view_decides_nothing),
		cmocka_unit_test(marks_do_not_nest),
		cmocka_unit_test(the_newest_takes_the_place_of_the_removed),
		cmocka_unit_test(discharge_undoes_charge_within_rounding),
		cmocka_unit_test(no_load_is_left_behind),
		cmocka_unit_test(a_charge_adds_what_the_task_needs),
		cmocka_unit_test(a_full_disk_remembers_what_did_not_fit),
		cmocka_unit_test(huge_charges_are_refused),
		cmocka_unit_test(sums_are_exact),
		cmocka_unit_test(idle_and_open_nodes_are_counted),
		cmocka_unit_test(a_missing_index_is_said),
		cmocka_unit_test(keep_refuses_nonsense),
		cmocka_unit_test(keeping_less_changes_no_plan),
	};

	return cmocka_run_group_tests_name("rules: view", tests, NULL, NULL);
}
