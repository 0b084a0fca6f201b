/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Compares Zatti's a.matrix (MODEL 4.4) with a plain scan, over random nodes and changes; prints
 * the failing seed.
 */
#include <errno.h>

#include "tests/unit/rules_zatti_fixture.h"

#define MOST_HERE 90

struct scan {
	struct rules_params p;
	struct rules_view *view;
	struct rules_request job;
	struct rules_plan plan;
	uint64_t seed;
	uint32_t home;
	bool real;
};

#define REQUIRE(s, what)                                                                           \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			print_error("seed %llu (%s): %s\n", (unsigned long long)(s)->seed,         \
				    (s)->real ? "real" : "binary", #what);                         \
			fail();                                                                    \
		}                                                                                  \
	} while (0)

static struct rules_node scan_node(struct draws *d)
{
	double queue = (double)(int)draw(d, 8), blocks = (double)(int)draw(d, 30);
	double free_mb = (double)(int)draw(d, 6) * 10;
	struct rules_node n = node_zatti("n", queue, blocks, free_mb);

	n.zatti.cpu_idle_percent = (double)(int)draw(d, 11) * 10;
	n.cores = draw_chance(d, 0.8) ? 1 : 2;
	n.accepts = draw_chance(d, 0.9);
	n.has_zatti = draw_chance(d, 0.9);
	if (draw_chance(d, 0.05))
		n.disk_mb_per_s = 0;
	return n;
}

static struct rules_request scan_job(struct draws *d)
{
	double pick = draw(d, 3), memory = (double)(int)draw(d, 5) * 10;
	struct rules_request j = pick < 1 ? needs_cpu() : pick < 2 ? needs_io() : needs_both();

	j.memory_mb = memory;
	return j;
}

static void scan_params(struct draws *d, struct rules_params *p)
{
	rules_params_default(p, RULES_RATES_WALL);
	p->zatti_relative = draw_chance(d, 0.5);
	p->zatti_idle = draw_chance(d, 0.3);
	p->zatti_superset = draw_chance(d, 0.7);
	p->zatti_queue = (double)(int)draw(d, 6);
	p->zatti_queue_delta = (double)(int)draw(d, 3);
	p->zatti_blocks_delta = (double)(int)draw(d, 3);
	p->zatti_intervals = 1 + (double)(int)draw(d, 12);
}

static double scan_queue(const struct rules_cell *c)
{
	return c->has_zatti ? c->zatti_queue : c->cpu;
}

/* Judges one node directly by the definitions. */
static bool scan_fits(const struct scan *s, uint32_t k)
{
	const struct rules_cell *c = &s->view->cells[k], *i = &s->view->cells[s->home];
	const struct rules_params *p = &s->p;
	double percent = 100 * s->job.cpu_ms / (s->job.requests / 0.005);
	bool cpu = s->job.cpu_ms > 1000, io = s->job.requests > 0;
	double need = s->real && io ? 5 : 0, one = s->real;
	double mine = rules_zatti_io(i), its = rules_zatti_io(c), limit;

	if (s->job.requests < 0)
		percent = 100;
	if (!c->accepts || (io && !(c->disk_mb_per_s > 0)))
		return false;
	if (rules_zatti_free_mb(c) < s->job.memory_mb)
		return false;
	if (!s->real && ((cpu && c->spent_cpu > 0) || (io && c->spent_io > 0)))
		return false;
	if (cpu && p->zatti_idle) {
		double idle = c->has_zatti ? c->zatti_idle : 100 * fmax(0, 1 - c->cpu / c->cores);

		idle = fmax(idle, 0) * (s->real ? c->cores : 1);
		if (s->real ? 100 - idle > 100 - percent : idle < p->zatti_idle_percent)
			return false;
	} else if (cpu) {
		double home = (scan_queue(i) + one) / i->cores,
		       k_load = (scan_queue(c) + one) / c->cores;

		limit = p->zatti_queue - (p->zatti_relative ? 0 : p->zatti_queue_delta);
		if (k_load > limit)
			return false;
		if (p->zatti_relative && home > p->zatti_queue &&
		    !(k_load < home - p->zatti_queue_delta))
			return false;
	}
	if (!io)
		return true;
	limit = p->zatti_blocks_per_s - (p->zatti_relative ? 0 : p->zatti_blocks_delta) - need;
	if (its > limit)
		return false;
	return !p->zatti_relative || !(i->disk_mb_per_s > 0) ||
	       mine <= p->zatti_blocks_per_s - need || its < mine - p->zatti_blocks_delta;
}

/* Returns the place of a node's list in the order in which lists are searched. */
static uint32_t scan_list(const struct scan *s, uint32_t k)
{
	uint32_t slot = s->view->zatti[s->real]->links[k].slot;
	uint32_t key = 2u * (s->job.cpu_ms > 1000) + (s->job.requests > 0);

	if (s->real)
		return slot;
	return (slot & key) != key || (!s->p.zatti_superset && slot != key) ? UINT32_MAX : slot;
}

static void compare(const struct scan *s)
{
	bool fits[MOST_HERE] = {false};
	uint32_t n = rules_view_count(s->view), count = 0;
	const struct rules_plan *plan = &s->plan;

	for (uint32_t k = 0; k < n; k++) {
		fits[k] = k != s->home && scan_fits(s, k) && scan_list(s, k) != UINT32_MAX;
		count += fits[k];
	}
	REQUIRE(s, plan->ncandidates == (count < 32 ? count : 32));
	for (uint32_t i = 0; i < plan->ncandidates; i++) {
		uint32_t k = plan->candidates[i], last = i ? plan->candidates[i - 1] : k;
		double free_k = rules_zatti_free_mb(&s->view->cells[k]);
		double free_last = rules_zatti_free_mb(&s->view->cells[last]);

		REQUIRE(s, fits[k]);
		fits[k] = false;
		REQUIRE(s, scan_list(s, k) > scan_list(s, last) ||
				   (scan_list(s, k) == scan_list(s, last) && free_k >= free_last));
	}
	/* No node that was left out comes before the last listed node. */
	for (uint32_t k = 0; k < n && plan->ncandidates > 0; k++) {
		uint32_t last = plan->candidates[plan->ncandidates - 1];

		REQUIRE(s, !fits[k] || scan_list(s, k) > scan_list(s, last) ||
				   (scan_list(s, k) == scan_list(s, last) &&
				    rules_zatti_free_mb(&s->view->cells[k]) >=
					    rules_zatti_free_mb(&s->view->cells[last])));
	}
}

static bool looked_abroad(const struct rules_plan *plan)
{
	for (uint32_t i = 0; i < plan->nreasons; i++) {
		const struct rules_reason *r = &plan->reasons[i];

		if (r->holds &&
		    (r->criterion == RULES_C_LOCAL_CPU || r->criterion == RULES_C_LOCAL_IO ||
		     r->criterion == RULES_C_LOCAL_MEMORY))
			return true;
	}
	return false;
}

/* Makes one change of one node, of any kind that a view has. */
static void change(struct scan *s, struct draws *d)
{
	uint32_t n = rules_view_count(s->view), at = (uint32_t)draw(d, n);
	double kind = draw(d, 10);
	struct rules_node node;
	struct rules_request job;

	if (kind < 6) {
		node = scan_node(d);
		assert_int_equal(rules_view_set(s->view, at, &node), 0);
	} else if (kind < 8) {
		job = scan_job(d);
		assert_int_equal(rules_view_charge(s->view, at, &job), 0);
	} else if (kind < 9 && n > 2) {
		assert_int_equal(rules_view_pop(s->view), 0);
	} else if (n < MOST_HERE) {
		node = scan_node(d);
		assert_int_equal(rules_view_set(s->view, n, &node), 0);
	}
}

static void start(struct scan *s, struct draws *d, uint64_t seed)
{
	uint32_t n = 2 + (uint32_t)draw(d, draw_chance(d, 0.5) ? 6 : MOST_HERE - 2);

	*s = (struct scan){.seed = seed, .real = draw_chance(d, 0.5)};
	scan_params(d, &s->p);
	s->view = rules_view_new();
	rules_view_rates(s->view, RULES_RATES_WALL);
	assert_int_equal(
		rules_view_keep(s->view, s->real ? RULES_ZATTI_REAL : RULES_ZATTI_BINARY, &s->p),
		0);
	for (uint32_t i = 0; i < n; i++) {
		struct rules_node node = scan_node(d);

		assert_int_equal(rules_view_set(s->view, i, &node), 0);
	}
}

static void matching_equals_a_scan(void **state)
{
	struct scan s;
	unsigned int abroad = 0, found = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct draws d = {seed};

		start(&s, &d, seed);
		for (int round = 0; round < 30; round++) {
			struct rules *rules = rules_new(
				s.real ? RULES_ZATTI_REAL : RULES_ZATTI_BINARY, &s.p, seed);

			for (int i = 0; i < 5; i++)
				change(&s, &d);
			s.home = (uint32_t)draw(&d, rules_view_count(s.view));
			s.job = scan_job(&d);
			assert_int_equal(rules_place(rules, s.view, s.home, &s.job, &s.plan), 0);
			if (looked_abroad(&s.plan)) {
				compare(&s);
				abroad++;
			} else {
				REQUIRE(&s, s.plan.stayed && s.plan.ncandidates == 0);
			}
			found += s.plan.ncandidates > 0;
			rules_free(rules);
		}
		rules_view_free(s.view);
	}
	assert_true(abroad > 3000 && found > 1000);
}

/* Reasons, counts and the choice agree. */
static void plans_agree_with_their_reasons(void **state)
{
	struct scan s;

	(void)state;
	for (uint64_t seed = 1; seed <= 1500; seed++) {
		struct draws d = {seed};
		struct rules *rules;
		uint32_t refused = 0;

		start(&s, &d, seed);
		s.home = (uint32_t)draw(&d, rules_view_count(s.view));
		s.job = scan_job(&d);
		rules = rules_new(s.real ? RULES_ZATTI_REAL : RULES_ZATTI_BINARY, &s.p, seed);
		assert_int_equal(rules_place(rules, s.view, s.home, &s.job, &s.plan), 0);
		for (uint32_t i = 0; i < s.plan.nreasons; i++) {
			const struct rules_reason *r = &s.plan.reasons[i];

			REQUIRE(&s, isfinite(r->left) && isfinite(r->right));
			REQUIRE(&s, r->node != s.plan.node || r->node == s.home || r->holds);
		}
		for (int c = 0; c < RULES_CRITERIA; c++)
			refused += s.plan.refused[c];
		REQUIRE(&s, s.plan.stayed == (s.plan.ncandidates == 0));
		REQUIRE(&s, refused + s.plan.ncandidates < rules_view_count(s.view));
		rules_free(rules);
		rules_view_free(s.view);
	}
}

static void assert_same_index(const struct scan *s, const struct rules_zatti_index *a,
			      const struct rules_zatti_index *b, uint32_t n)
{
	REQUIRE(s, memcmp(a->roots, b->roots, a->nslots * sizeof(a->roots[0])) == 0);
	REQUIRE(s, memcmp(a->row_sizes, b->row_sizes, a->nrows * sizeof(a->row_sizes[0])) == 0);
	for (uint32_t i = 0; i < n; i++) {
		const struct rules_zatti_link *l = &a->links[i], *m = &b->links[i];

		REQUIRE(s, l->slot == m->slot && l->left == m->left && l->right == m->right);
		REQUIRE(s, l->size == m->size && l->least_cpu == m->least_cpu &&
				   l->least_io == m->least_io);
	}
}

/* The tables depend only on the nodes, not on earlier or undone changes. */
static void the_way_leaves_no_trace(void **state)
{
	struct scan s;

	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct draws d = {seed}, again;
		struct scan fresh;
		uint32_t n;

		start(&s, &d, seed);
		n = rules_view_count(s.view);
		assert_int_equal(rules_view_mark(s.view), 0);
		for (int i = 0; i < 40; i++)
			change(&s, &d);
		rules_view_rollback(s.view);
		REQUIRE(&s, rules_view_count(s.view) == n);
		again = (struct draws){seed};
		start(&fresh, &again, seed);
		assert_same_index(&s, s.view->zatti[s.real], fresh.view->zatti[s.real], n);
		/* If the indexes are kept again, they are rebuilt from the cells. */
		assert_int_equal(rules_view_keep(s.view,
						 s.real ? RULES_ZATTI_REAL : RULES_ZATTI_BINARY,
						 &s.p),
				 0);
		assert_same_index(&s, s.view->zatti[s.real], fresh.view->zatti[s.real], n);
		rules_view_free(s.view);
		rules_view_free(fresh.view);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matching_equals_a_scan),
		cmocka_unit_test(plans_agree_with_their_reasons),
		cmocka_unit_test(the_way_leaves_no_trace),
	};

	return cmocka_run_group_tests_name("rules: Zatti's index", tests, NULL, NULL);
}
