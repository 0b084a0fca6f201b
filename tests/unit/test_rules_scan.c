/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Compares the indexed search with a plain scan that judges every node: the same nodes are
 * acceptable, the lightest first. Also compares brief plans with full ones.
 */
#include "tests/unit/rules_scan.h"

#define SEEDS 9000

/* What a policy balances after its trigger. */
enum stage {
	STAY,
	TASKS,	    /* L_CPU with the job as one more task */
	MEMORY,	    /* L_MEM / n_MEM with the job */
	IO,	    /* L_IO, thresholds */
	EXPLICIT,   /* explicit part of L_IO */
	IO_ALONE,   /* L_IO without thresholds (3.7) */
	MEMORY_ANY, /* 3.7: the response alone decides */
	TASKS_ANY,
	WEIGHTED,
};

static const struct rules_cell *cell(const struct cluster *c, uint32_t index)
{
	return &c->view->cells[index];
}

static double scan_count(const struct cluster *c, uint32_t index, double tasks)
{
	const struct rules_cell *k = cell(c, index);

	if (!c->params.cpu_speed_weighted)
		return tasks;
	return tasks / (k->cores * (k->mips / cell(c, c->home)->mips));
}

struct sums {
	double io, memory, cpu, performance, added; /* home's load with the job */
};

static struct sums sums_of(const struct cluster *c)
{
	struct rules_added a = rules_cell_added(cell(c, c->home), &c->job, c->params.rates);
	struct sums s = {.memory = c->job.memory_mb,
			 .cpu = 1,
			 .io = a.explicit_io + a.implicit_io,
			 .added = a.explicit_io + a.implicit_io};

	for (uint32_t n = 0; n < c->n; n++) {
		s.io += cell(c, n)->io;
		s.memory += cell(c, n)->memory;
		s.cpu += cell(c, n)->cpu;
		s.performance += cell(c, n)->performance;
	}
	return s;
}

static double weighted(const struct cluster *c, const struct sums *s, double cpu, double io)
{
	double w_cpu = 1 - c->params.w_io, w_io = c->params.w_io;

	if (c->params.wal_normalise) {
		w_cpu /= s->cpu / c->n;
		w_io = s->io > 0 ? w_io / (s->io / c->n) : 0;
	}
	return w_cpu * cpu + w_io * io;
}

static bool is_highest(const struct cluster *c, const struct sums *s, double home)
{
	for (uint32_t n = 0; n < c->n; n++)
		if (n != c->home && weighted(c, s, cell(c, n)->cpu, cell(c, n)->io) > home)
			return false;
	return true;
}

static enum stage cpu_stage(const struct cluster *c)
{
	const struct rules_cell *i = cell(c, c->home);
	double cores = c->params.cpu_speed_weighted ? 1 : i->cores;

	return scan_count(c, c->home, i->cpu + 1) > c->params.cpu_threshold * cores ? TASKS : STAY;
}

/* The share of the disk's time that I's load takes, measured or announced. */
static double scan_busy(const struct cluster *c, const struct rules_cell *i)
{
	bool measured = c->params.measured_state && i->measured;
	double service = measured && i->seen_service > 0 ? i->seen_service : i->service;

	if (!measured)
		return fmin(1, i->io * service);
	return fmin(1, fmax(i->utilisation, c->params.significance_demand * i->io * service));
}

static enum stage hom_stage(const struct cluster *c, bool memory)
{
	const struct rules_cell *i = cell(c, c->home);
	double part = c->params.hom_stage_explicit ? i->explicit_io : i->io, io = part;

	if (c->params.rates == RULES_RATES_WALL && part > 0)
		io = scan_busy(c, i) * (part / i->io);
	if (io > c->params.io_significance)
		return IO_ALONE;
	if (memory)
		return MEMORY_ANY;
	return cpu_stage(c) == TASKS ? TASKS_ANY : STAY;
}

static enum stage stage_of(const struct cluster *c, const struct sums *s)
{
	const struct rules_cell *i = cell(c, c->home);
	const struct rules_params *p = &c->params;
	bool memory = i->memory + c->job.memory_mb > i->n_mem;
	double load, mean;

	switch (c->policy) {
	case RULES_CPU_RE:
		return cpu_stage(c);
	case RULES_MEM_RE:
		return memory ? MEMORY : cpu_stage(c);
	case RULES_CM:
		if (p->cm_memory_ratio)
			memory = (i->memory + c->job.memory_mb) / (s->memory / c->n) >
				 p->overload_ratio;
		if (memory)
			return MEMORY;
		return (i->cpu + 1) / (s->cpu / c->n) > p->overload_ratio ? TASKS : STAY;
	case RULES_IO:
		return EXPLICIT;
	case RULES_IO_RE:
		return i->io + s->added >= s->io *
						   (i->performance > 0
							    ? i->performance / s->performance
							    : 0) *
						   (1 - 1e-12)
			       ? IO
			       : STAY;
	case RULES_IOCM_RE_HOM:
		return hom_stage(c, memory);
	case RULES_WAL:
		load = weighted(c, s, i->cpu, i->io) + weighted(c, s, 1, s->added);
		mean = weighted(c, s, s->cpu, s->io) / c->n;
		return load / mean > p->overload_ratio && is_highest(c, s, load) ? WEIGHTED : STAY;
	default:
		return STAY;
	}
}

/* Returns true if home's load exceeds K's by more than ADDED (O-12). */
static bool exceeds(const struct cluster *c, double home, double k, double added)
{
	return c->params.discrepancy_after ? (home - k) + added > added : home - k > added;
}

static bool scan_lighter(const struct cluster *c, const struct sums *s, enum stage stage,
			 uint32_t index)
{
	const struct rules_cell *i = cell(c, c->home), *k = cell(c, index);
	struct rules_added added = rules_cell_added(i, &c->job, c->params.rates);

	switch (stage) {
	case TASKS:
		return scan_count(c, c->home, i->cpu + 1) > scan_count(c, index, k->cpu + 1);
	case MEMORY:
		return !c->params.mem_ratio_test ||
		       (k->memory + c->job.memory_mb) / k->n_mem <
			       (i->memory + c->job.memory_mb) / i->n_mem;
	case IO:
		return exceeds(c, i->io, k->io, s->added) &&
		       k->io <= s->io * k->performance / s->performance;
	case EXPLICIT:
		return exceeds(c, i->explicit_io, k->explicit_io, added.explicit_io);
	case IO_ALONE:
		return exceeds(c, i->io, k->io, s->added);
	case WEIGHTED:
		return !c->params.wal_discrepancy ||
		       exceeds(c, weighted(c, s, i->cpu, i->io), weighted(c, s, k->cpu, k->io),
			       weighted(c, s, 1, s->added));
	default:
		return true;
	}
}

static bool cost_is_tested(const struct cluster *c, enum stage stage)
{
	switch (stage) {
	case TASKS:
	case MEMORY:
		return c->params.cpu_cost_test;
	case IO:
		return c->params.io_cost_test;
	case EXPLICIT:
		return c->params.io_useful_test;
	default:
		return true;
	}
}

struct key {
	double key, tie;
};

static struct key key_of(const struct cluster *c, const struct sums *s, enum stage stage,
			 uint32_t index)
{
	const struct rules_cell *k = cell(c, index);
	bool by_speed = c->params.cpu_speed_weighted;

	switch (stage) {
	case TASKS:
	case TASKS_ANY:
		return (struct key){by_speed ? k->cpu / (k->cores * k->mips) : k->cpu,
				    c->policy == RULES_CM && !by_speed ? 0 : k->memory};
	case MEMORY:
	case MEMORY_ANY:
		return (struct key){c->params.mem_order_free ? k->memory - k->n_mem
							     : k->memory / k->n_mem,
				    k->memory};
	case IO:
		if (c->params.io_order_share)
			return (struct key){k->performance > 0 ? k->io / k->performance
					    : k->io > 0	       ? INFINITY
							       : 0,
					    k->memory};
		return (struct key){k->io, k->memory};
	case IO_ALONE:
		return (struct key){k->io, k->memory};
	case EXPLICIT:
		return (struct key){k->explicit_io, 0};
	default:
		return (struct key){weighted(c, s, k->cpu, k->io), 0};
	}
}

/* Returns true if A comes before B in the policy's order; of equal nodes neither does. */
static bool before(const struct cluster *c, const struct sums *s, enum stage stage, uint32_t a,
		   uint32_t b)
{
	struct key ka = key_of(c, s, stage, a), kb = key_of(c, s, stage, b);

	/* A sum weighted in another order may differ in the last bit. */
	if (stage == WEIGHTED && fabs(ka.key - kb.key) <= 1e-11 * (fabs(ka.key) + 1))
		return false;
	return ka.key != kb.key ? ka.key < kb.key : ka.tie < kb.tie;
}

struct scan {
	enum stage stage;
	struct sums sums;
	bool eligible[MOST_HERE], acceptable[MOST_HERE];
	uint32_t count; /* number of acceptable nodes */
};

static void scan_all(const struct cluster *c, struct scan *s)
{
	s->sums = sums_of(c);
	s->stage = stage_of(c, &s->sums);
	s->count = 0;
	for (uint32_t k = 0; k < c->n; k++) {
		s->eligible[k] = k != c->home && scan_eligible(c, k);
		s->acceptable[k] = s->stage != STAY && s->eligible[k] &&
				   scan_lighter(c, &s->sums, s->stage, k) &&
				   (!cost_is_tested(c, s->stage) || scan_worthwhile(c, k));
		s->count += s->acceptable[k];
	}
}

/*
 * A sum in another order may round differently, which can decide whether a node is at its
 * threshold.
 */
static bool rounding_decides(const struct cluster *c, const struct scan *s)
{
	for (uint32_t k = 0; k < c->n && s->stage == IO; k++) {
		double threshold = s->sums.io * cell(c, k)->performance / s->sums.performance;

		if (fabs(cell(c, k)->io - threshold) <= 1e-12 * threshold)
			return true;
	}
	return false;
}

/* All acceptable nodes are tried: the candidates are the lightest of them, in order. */
static void compare_all(const struct cluster *c, struct scan *s, const struct rules_plan *plan)
{
	uint32_t n = plan->ncandidates;

	if (rounding_decides(c, s))
		return;
	if (c->n <= RULES_EXAMINED_MAX)
		REQUIRE(c, n == s->count);
	REQUIRE(c, n <= s->count && (s->count == 0 || n > 0));
	for (uint32_t i = 0; i < n; i++) {
		REQUIRE(c, s->acceptable[plan->candidates[i]]);
		s->acceptable[plan->candidates[i]] = false;
		REQUIRE(c, i == 0 || !before(c, &s->sums, s->stage, plan->candidates[i],
					     plan->candidates[i - 1]));
	}
	for (uint32_t k = 0; k < c->n && n > 0; k++)
		REQUIRE(c, !s->acceptable[k] ||
				   !before(c, &s->sums, s->stage, k, plan->candidates[n - 1]));
}

/* Only the lightest eligible node is tried: it is chosen, or an equally light one failed. */
static void compare_first(const struct cluster *c, const struct scan *s,
			  const struct rules_plan *plan)
{
	bool lightest_fails = false, any = false;

	REQUIRE(c, plan->stayed || s->acceptable[plan->node]);
	for (uint32_t k = 0; k < c->n; k++) {
		bool least = s->eligible[k];

		any |= s->eligible[k];
		for (uint32_t l = 0; l < c->n && least; l++)
			least = !s->eligible[l] || !before(c, &s->sums, s->stage, l, k);
		lightest_fails |= least && !s->acceptable[k];
		REQUIRE(c, plan->stayed || !s->eligible[k] ||
				   !before(c, &s->sums, s->stage, k, plan->node));
	}
	REQUIRE(c, !plan->stayed || lightest_fails || !any);
}

static const enum rules_policy compared[] = {RULES_CPU_RE, RULES_MEM_RE,      RULES_CM, RULES_IO,
					     RULES_IO_RE,  RULES_IOCM_RE_HOM, RULES_WAL};

#define COMPARED (sizeof(compared) / sizeof(compared[0]))

static void search_equals_a_scan(void **state)
{
	static struct cluster c;
	struct rules_plan plan;
	struct scan scan;
	unsigned int chosen[RULES_POLICIES] = {0};

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		bool always;

		cluster_draw(&c, seed);
		c.policy = compared[seed % COMPARED];
		c.params.stage_fallthrough = false;
		cluster_place(&c, &plan);
		scan_all(&c, &scan);
		/* These always try the next, whatever try_next says. */
		always = scan.stage == IO || scan.stage == IO_ALONE;
		if (scan.stage == STAY)
			REQUIRE(&c, plan.stayed);
		else if (always || c.params.try_next)
			compare_all(&c, &scan, &plan);
		else
			compare_first(&c, &scan, &plan);
		chosen[c.policy] += !plan.stayed;
		rules_view_free(c.view);
	}
	for (size_t i = 0; i < COMPARED; i++)
		assert_true(chosen[compared[i]] > SEEDS / COMPARED / 20);
}

/* Returns the least price of an acceptable node, or INFINITY; *COUNT: how many there are. */
static double least_price(const struct cluster *c, double limit, uint32_t *count)
{
	double least = INFINITY;

	*count = 0;
	for (uint32_t k = 0; k < c->n; k++) {
		double price = scan_delay(c, k, true) + scan_cost(c, k);

		if (k == c->home || !scan_eligible(c, k) || !(limit > price))
			continue;
		least = fmin(least, price);
		++*count;
	}
	return least;
}

/* The chosen node has the least price, or one that is held equal; home stays if none is below. */
static void least_delay_equals_a_scan(void **state)
{
	unsigned int chosen = 0, near = 0;
	static struct cluster c;
	struct rules_plan plan;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
		double limit, least, price;
		const struct rules_cell *home;
		uint32_t count;

		cluster_draw(&c, seed);
		c.policy = RULES_LEAST_DELAY;
		cluster_place(&c, &plan);
		home = cell(&c, c.home);
		limit = (1 - c.params.delay_margin) * scan_delay(&c, c.home, true);
		if (c.params.require_memory && home->memory + c.job.memory_mb > home->n_mem)
			limit = INFINITY;
		least = least_price(&c, limit, &count);
		if (fabs(least - limit) > 1e-9 * limit || isinf(limit)) {
			REQUIRE(&c, plan.stayed == (count == 0));
			REQUIRE(&c,
				plan.ncandidates ==
					(count < RULES_EXAMINED_MAX ? count : RULES_EXAMINED_MAX));
		}
		if (!plan.stayed) {
			price = scan_delay(&c, plan.node, true) + scan_cost(&c, plan.node);
			REQUIRE(&c, price <= least * (1 + c.params.delay_tie) * (1 + 1e-9));
			near += price > least;
			chosen++;
		}
		rules_view_free(c.view);
	}
	assert_true(chosen > SEEDS / 4 / 10 && near > 10);
}

static void require_expected(const struct cluster *c, struct rules *rules, uint32_t k)
{
	bool known = c->job.cpu_ms > 0 || rules_request_count(&c->job, c->params.rates) > 0;
	bool shares = c->policy == RULES_LEAST_DELAY;
	double home = shares ? scan_delay(c, c->home, false) : scan_response(c, c->home);
	double there = home;
	struct rules_expectation e;

	if (k != c->home)
		there = (shares ? scan_delay(c, k, false) : scan_response(c, k)) + scan_cost(c, k);
	assert_int_equal(rules_expect(rules, c->view, c->home, k, &c->job, &e), 0);
	REQUIRE(c, e.known == known);
	REQUIRE(c, e.there_factor == scan_factor(c, k));
	REQUIRE(c, e.home_factor == scan_factor(c, c->home));
	REQUIRE(c, fabs(e.home_ms - home) <= 1e-9 * home);
	REQUIRE(c, fabs(e.there_ms - there) <= 1e-9 * there);
	REQUIRE(c, k != c->home || e.there_ms == e.home_ms);
}

/* Whatever the policy, each node is expected to take what the plain formula says. */
static void expectations_equal_a_scan(void **state)
{
	static struct cluster c;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS / 10; seed++) {
		struct rules *rules;

		cluster_draw(&c, seed);
		rules = rules_new(c.policy, &c.params, c.seed);
		for (uint32_t k = 0; k < c.n; k++)
			require_expected(&c, rules, k);
		rules_free(rules);
		rules_view_free(c.view);
	}
}

/* Brief or full: every policy chooses the same node. */
static void brief_plans_choose_the_same_node(void **state)
{
	static struct cluster c;
	struct rules_plan full, brief;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct rules *rules;

		cluster_draw(&c, seed);
		rules = rules_new(c.policy, &c.params, c.seed);
		cluster_place(&c, &full);
		rules_brief(rules, true);
		assert_int_equal(rules_place(rules, c.view, c.home, &c.job, &brief), 0);
		REQUIRE(&c, full.node == brief.node && full.stayed == brief.stayed);
		REQUIRE(&c, full.queued == brief.queued);
		REQUIRE(&c, brief.stayed || brief.candidates[0] == brief.node);
		rules_free(rules);
		rules_view_free(c.view);
	}
}

/* Also when bounds rule out most nodes: thousands of nodes, jobs of many tasks. */
static void brief_plans_of_large_clusters(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct draws d = {seed};
		struct rules_params p = scan_params(&d);
		enum rules_policy policy = compared[seed % COMPARED];
		struct rules *full = rules_new(policy, &p, seed),
			     *brief = rules_new(policy, &p, seed);
		struct rules_view *view = rules_view_new();

		rules_view_rates(view, p.rates);
		rules_brief(brief, true);
		for (uint32_t i = 0; i < 2000; i++) {
			struct rules_node n = node_random(&d, i);

			assert_int_equal(rules_view_set(view, i, &n), 0);
		}
		for (int i = 0; i < 40; i++) {
			uint32_t home = (uint32_t)draw(&d, 2000), a[6], b[6];
			struct rules_request job = job_random(&d);
			struct rules_correction corrections[2000];
			struct rules_plan plan;

			if (i % 2 == 0)
				correct_randomly(&job, corrections, 2000, seed * 64 + (uint64_t)i);
			job.tasks = 1 + (uint32_t)draw(&d, 6);
			assert_int_equal(rules_place_job(full, view, home, &job, &plan, a), 0);
			assert_int_equal(rules_place_job(brief, view, home, &job, &plan, b), 0);
			if (memcmp(a, b, job.tasks * sizeof(a[0])) != 0) {
				print_error("seed %llu, job %d (%s)\n", (unsigned long long)seed, i,
					    rules_policy_name(policy));
				fail();
			}
		}
		rules_free(full);
		rules_free(brief);
		rules_view_free(view);
	}
}

/* The weighted search over many more nodes than one would examine one by one. */
static void the_weighted_search_finds_the_lightest(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct draws d = {seed};
		struct rules_view *view = rules_view_new();
		uint32_t n = 1 + (uint32_t)draw(&d, 3000), index;
		double w = draw_chance(&d, 0.2) ? 0.5 : draw(&d, 1), least = INFINITY,
		       most = -INFINITY;
		bool coarse = draw_chance(&d, 0.5);
		struct rules_search s;
		struct rules_heap heap = {0};

		for (uint32_t i = 0; i < n; i++) {
			double cpu = draw(&d, 20), io = draw(&d, 2), load;
			struct rules_node node =
				node_advertised("n", coarse ? (double)(int)io : io, 8,
						coarse ? (double)(int)cpu : cpu);

			assert_int_equal(rules_view_set(view, i, &node), 0);
			load = (1 - w) * node.advertised.cpu + w * node.advertised.io_per_ms;
			least = fmin(least, load);
			most = i == 0 ? most : fmax(most, load);
		}
		assert_int_equal(rules_search_init_weighted(&s, view, 1 - w, w, seed, &heap), 0);
		for (uint32_t i = 0; i < n; i++) {
			double load;

			assert_int_equal(rules_search_next(&s, NULL, NULL, &index),
					 RULES_SEARCH_LEAF);
			load = rules_search_leaf(&s, index).key;
			assert_true(load >= least); /* ascending, with the least first */
			assert_true(i > 0 || load == least);
			least = load;
		}
		assert_int_equal(rules_search_next(&s, NULL, NULL, &index), RULES_SEARCH_END);
		assert_true(rules_search_highest(view, 1 - w, w, 0, INFINITY) == most);
		free(heap.items);
		rules_view_free(view);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(search_equals_a_scan),
		cmocka_unit_test(least_delay_equals_a_scan),
		cmocka_unit_test(expectations_equal_a_scan),
		cmocka_unit_test(brief_plans_choose_the_same_node),
		cmocka_unit_test(brief_plans_of_large_clusters),
		cmocka_unit_test(the_weighted_search_finds_the_lightest),
	};

	return cmocka_run_group_tests_name("rules: search and scan", tests, NULL, NULL);
}
