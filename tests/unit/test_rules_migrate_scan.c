/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Compares preemptive migration (MODEL 3.9) with a plain scan over all nodes and tasks that
 * computes each side of each test on its own; prints the failing seed.
 */
#include <errno.h>

#include "tests/unit/rules_migrate_fixture.h"

#define MOST_NODES 12

struct scan {
	uint64_t seed;
	enum rules_policy policy;
	struct rules_params p;
	uint32_t n;
	struct rules_node nodes[MOST_NODES];
	struct rules_task tasks[MOST_NODES][MOST_TASKS];
	struct rules_view *view;
	bool gone[MOST_TASKS];
	double w_cpu, w_io;
};

#define REQUIRE(s, what)                                                                           \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			print_error("seed %llu (%s): %s\n", (unsigned long long)(s)->seed,         \
				    rules_policy_name((s)->policy), #what);                        \
			fail();                                                                    \
		}                                                                                  \
	} while (0)

static struct rules_task scan_task(struct draws *d)
{
	double cpu_ms = 500 + draw(d, 60000), io = draw_chance(d, 0.6) ? draw(d, 0.5) : 0;
	struct rules_task t = task_io(cpu_ms, io);

	t.age_ms = draw_chance(d, 0.7) ? draw(d, 1.1 * cpu_ms) : 0;
	t.memory_mb = draw(d, 90);
	t.reaccess = draw_chance(d, 0.5) ? 5 : 0;
	t.faults_per_ms = draw_chance(d, 0.5) ? draw(d, 0.01) : 0;
	t.initial_mb = draw_chance(d, 0.5) ? draw(d, 200) : 0;
	t.written_mb = draw_chance(d, 0.2) ? draw(d, 50) : 0;
	t.pinned = draw_chance(d, 0.15);
	return t;
}

static void scan_start(struct scan *s, uint64_t seed)
{
	struct draws d = {seed};

	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->policy = families[(int)draw(&d, sizeof(families) / sizeof(families[0]))];
	s->p = computation();
	s->p.migration_examine = 0;
	s->p.migrations_max = draw_chance(&d, 0.2) ? 2 : 0;
	s->p.age_criterion = draw_chance(&d, 0.6);
	s->p.stage_fallthrough = draw_chance(&d, 0.5);
	s->p.literal_requests = draw_chance(&d, 0.5);
	s->p.require_memory = draw_chance(&d, 0.3);
	s->p.cpu_threshold = draw(&d, 5);
	s->p.w_io = draw(&d, 1);
	s->w_io = s->p.w_io;
	s->w_cpu = 1 - s->w_io;
	s->n = 2 + (uint32_t)draw(&d, MOST_NODES - 2);
	for (uint32_t k = 0; k < s->n; k++) {
		struct rules_node *n = &s->nodes[k];
		size_t most = k == 0 ? MOST_TASKS : 6;

		*n = node_fc("n");
		n->cpu_mips = draw_chance(&d, 0.5) ? 800 : 400 + draw(&d, 1600);
		n->disk_mb_per_s = draw_chance(&d, 0.6) ? 40 : 10 + draw(&d, 100);
		n->accepts = draw_chance(&d, 0.9);
		n->network_mb_per_s = draw_chance(&d, 0.5) ? 0 : 10 + draw(&d, 500);
		n->ntasks = 1 + (size_t)draw(&d, (double)(most - 1));
		for (size_t i = 0; i < n->ntasks; i++)
			s->tasks[k][i] = scan_task(&d);
		s->tasks[k][0].io_per_ms = 0.01 + draw(&d, 0.1); /* no two nodes are equal */
		n->tasks = s->tasks[k];
		if (k > 0 && draw_chance(&d, 0.3)) {
			n->has_measured = true;
			n->measured.cpu_queue = draw(&d, 4);
			n->measured.disk_utilisation = draw(&d, 1);
			n->measured.disk_arrivals_per_ms = n->measured.disk_utilisation / 15;
		}
	}
	s->view = view_of(s->nodes, s->n, s->p.rates);
}

static struct rules_request request_of(const struct rules_task *t)
{
	return (struct rules_request){.cpu_ms = t->cpu_ms,
				      .io_per_ms = t->io_per_ms,
				      .request_kb = t->request_kb,
				      .reaccess = t->reaccess,
				      .memory_mb = t->memory_mb,
				      .faults_per_ms = t->faults_per_ms,
				      .initial_mb = t->initial_mb,
				      .written_mb = t->written_mb,
				      .requests = -1,
				      .tasks = 1};
}

/* Mean response of one request of KB on C, whose load includes the task. */
static double scan_disk(const struct scan *s, const struct rules_cell *c, double kb, double io,
			double io_tasks)
{
	double own = c->fixed_ms + kb / c->disk_mb_per_s;
	double arrivals = c->measured ? c->arrivals : io;
	double rho = c->measured ? c->utilisation : io * c->service;

	rho = fmin(rho, s->p.rho_max);
	return fmin(own + arrivals * c->service2 / (2 * (1 - rho)),
		    io_tasks * fmax(own, c->service));
}

/* r_PM(k,j). THERE: the task is on the node already. */
static double scan_response(const struct scan *s, uint32_t k, const struct rules_task *t,
			    bool there)
{
	const struct rules_cell *c = &s->view->cells[k], *home = &s->view->cells[0];
	double kb = c->kb_per_ms + (there ? 0 : t->io_per_ms * t->request_kb);
	double memory = c->memory + (there ? 0 : t->memory_mb);
	double queue = fmax(1, (c->queue + !there) / c->cores);
	double hit = rules_hit_rate(t->reaccess, c->buffer_kb, t->io_per_ms, t->request_kb,
				    t->cpu_ms, kb);
	double page = rules_implicit(t->faults_per_ms, memory, c->n_mem);
	double own = t->io_per_ms * (1 - hit) + page;
	double io = c->io + (there ? 0 : own);
	double io_tasks = there && own > 0 ? c->io_tasks : c->io_tasks + 1;
	double left = fmax(0, t->cpu_ms - t->age_ms);
	double requests = left * t->io_per_ms * (s->p.literal_requests ? 1 : 1 - hit);
	double faults = s->p.literal_requests ? 0 : left * page;
	double r = left * home->mips / c->mips * queue;

	if (requests > 0)
		r += requests * scan_disk(s, c, t->request_kb, io, io_tasks);
	if (faults > 0)
		r += faults * scan_disk(s, c, RULES_PAGE_KB, io, io_tasks);
	return r;
}

static double scan_cost(const struct scan *s, uint32_t k, const struct rules_task *t)
{
	const struct rules_cell *i = &s->view->cells[0], *c = &s->view->cells[k];
	double net = fmin(i->network > 0 ? i->network : 125, c->network > 0 ? c->network : 125);
	double data = t->initial_mb + t->written_mb;

	return s->p.migration_fixed_ms + 1000 * t->memory_mb / net +
	       1000 * data * (1 / net + 1 / i->disk_mb_per_s + 1 / c->disk_mb_per_s);
}

enum resource {
	IO,
	MEMORY,
	CPU,
	WEIGHTED,
	NONE,
};

static double scan_load(const struct scan *s, uint32_t k, enum resource of)
{
	const struct rules_cell *c = &s->view->cells[k];

	switch (of) {
	case IO:
		return c->io;
	case MEMORY:
		return c->memory / c->n_mem;
	case CPU:
		return c->cpu;
	default:
		return s->w_cpu * c->cpu + s->w_io * c->io;
	}
}

static bool scan_overloaded(const struct scan *s, enum resource of)
{
	const struct rules_cell *home = &s->view->cells[0];
	double total = 0, power = 0, highest = 0, sum = 0;

	for (uint32_t k = 0; k < s->n; k++) {
		total += s->view->cells[k].io;
		power += s->view->cells[k].performance;
		sum += scan_load(s, k, WEIGHTED);
		highest = fmax(highest, scan_load(s, k, WEIGHTED));
	}
	switch (of) {
	case IO:
		return home->io > total * home->performance / power;
	case MEMORY:
		return home->memory > home->n_mem;
	case CPU:
		return home->cpu > s->p.cpu_threshold;
	default:
		return scan_load(s, 0, WEIGHTED) >= highest &&
		       scan_load(s, 0, WEIGHTED) > s->p.overload_ratio * sum / s->n;
	}
}

static enum resource scan_stage(const struct scan *s, int from)
{
	static const int first[] = {IO, IO, MEMORY, CPU, WEIGHTED};
	static const int last[] = {CPU, IO, MEMORY, CPU, WEIGHTED};

	for (int f = 0; f < 5; f++)
		for (int of = first[f]; families[f] == s->policy && of <= last[f]; of++)
			if (of >= from && scan_overloaded(s, (enum resource)of))
				return (enum resource)of;
	return NONE;
}

static bool scan_migrates(const struct scan *s, uint32_t k, const struct rules_task *t)
{
	const struct rules_cell *i = &s->view->cells[0], *c = &s->view->cells[k];
	double cost = scan_cost(s, k, t);

	if (s->p.require_memory && c->memory + t->memory_mb > c->n_mem)
		return false;
	if (s->policy == RULES_CPU_PM && s->p.age_criterion)
		return i->cpu > c->cpu + 1 && t->age_ms > cost / (i->cpu - c->cpu - 1);
	return scan_response(s, 0, t, true) > scan_response(s, k, t, false) + cost;
}

static double scan_gain(const struct scan *s, uint32_t k, const struct rules_task *t,
			enum resource of)
{
	const struct rules_cell *c = &s->view->cells[0];
	double hit = rules_hit_rate(t->reaccess, c->buffer_kb, t->io_per_ms, t->request_kb,
				    t->cpu_ms, c->kb_per_ms);
	double io =
		t->io_per_ms * (1 - hit) + rules_implicit(t->faults_per_ms, c->memory, c->n_mem);
	double load = of == IO	     ? io
		      : of == MEMORY ? t->memory_mb
		      : of == CPU    ? 1
				     : s->w_cpu + s->w_io * io;

	return load / scan_cost(s, k, t);
}

static bool scan_before(const struct scan *s, uint32_t a, uint32_t b, enum resource of)
{
	double la = scan_load(s, a, of), lb = scan_load(s, b, of);

	return la != lb ? la < lb : s->view->cells[a].memory < s->view->cells[b].memory;
}

/* Finds the next move by examining everything. Returns false if there is none. */
static bool scan_move(struct scan *s, enum resource of, struct rules_move *move)
{
	bool tried[MOST_NODES] = {true};

	for (;;) {
		uint32_t k = 0;
		double most = -1;

		for (uint32_t n = 1; n < s->n; n++)
			if (!tried[n] && s->nodes[n].accepts &&
			    scan_load(s, n, of) < scan_load(s, 0, of) &&
			    (k == 0 || scan_before(s, n, k, of)))
				k = n;
		if (k == 0)
			return false;
		tried[k] = true;
		for (uint32_t t = 0; t < s->nodes[0].ntasks; t++) {
			const struct rules_task *task = &s->tasks[0][t];

			if (task->pinned || s->gone[t] || !scan_migrates(s, k, task) ||
			    scan_gain(s, k, task, of) <= most * (1 + 1e-12))
				continue;
			most = scan_gain(s, k, task, of);
			*move = (struct rules_move){t, k, scan_cost(s, k, task), most};
		}
		if (most >= 0)
			return true;
	}
}

static size_t scan_moves(struct scan *s, struct rules_move *moves)
{
	size_t n = 0;
	int from = IO;

	while (s->p.migrations_max == 0 || (double)n < s->p.migrations_max) {
		enum resource of = scan_stage(s, from);
		struct rules_request job;

		if (of == NONE)
			break;
		if (scan_move(s, of, &moves[n])) {
			job = request_of(&s->tasks[0][moves[n].task]);
			s->gone[moves[n].task] = true;
			assert_int_equal(rules_view_discharge(s->view, 0, &job), 0);
			assert_int_equal(rules_view_charge(s->view, moves[n].to, &job), 0);
			n++;
			from = IO;
		} else if (s->p.stage_fallthrough) {
			from = of + 1;
		} else {
			break;
		}
	}
	return n;
}

static void moves_equal_a_scan(void **state)
{
	static struct scan s;
	struct rules_move want[MOST_TASKS];
	size_t most = 0, some = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		struct outcome out;
		size_t n;

		scan_start(&s, seed);
		migrate(s.policy, &s.p, s.nodes, s.n, s.tasks[0], s.nodes[0].ntasks, &out);
		n = scan_moves(&s, want);
		REQUIRE(&s, out.n == n);
		for (size_t i = 0; i < n; i++) {
			REQUIRE(&s, out.moves[i].task == want[i].task);
			REQUIRE(&s, out.moves[i].to == want[i].to);
			REQUIRE(&s, fabs(out.moves[i].cost_ms - want[i].cost_ms) <
					    1e-9 * want[i].cost_ms);
			REQUIRE(&s, fabs(out.moves[i].cost_effectiveness -
					 want[i].cost_effectiveness) <=
					    1e-9 * want[i].cost_effectiveness);
		}
		for (uint32_t i = 0; i < out.plan.nreasons; i++)
			REQUIRE(&s, isfinite(out.plan.reasons[i].left) &&
					    isfinite(out.plan.reasons[i].right));
		REQUIRE(&s, out.plan.stayed == (n == 0));
		REQUIRE(&s, n == 0 || out.plan.node == out.moves[n - 1].to);
		some += n > 0;
		most = n > most ? n : most;
		rules_view_free(s.view);
	}
	assert_true(some > 1000);
	assert_true(most > 5);
}

static void the_view_is_as_it_was(void **state)
{
	static struct scan s;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct rules_move moves[MOST_TASKS];
		struct rules_view *before;
		struct rules *rules;
		size_t n;

		scan_start(&s, seed);
		before = view_of(s.nodes, s.n, s.p.rates);
		rules = rules_new(s.policy, &s.p, 1);
		if (seed % 2) /* the same holds inside a mark of the caller */
			assert_int_equal(rules_view_mark(s.view), 0);
		assert_int_equal(rules_migrate(rules, s.view, 0, s.tasks[0], s.nodes[0].ntasks,
					       moves, MOST_TASKS, &n, NULL),
				 0);
		for (uint32_t k = 0; k < s.n; k++)
			REQUIRE(&s, memcmp(&s.view->cells[k], &before->cells[k],
					   sizeof(before->cells[k])) == 0);
		REQUIRE(&s, memcmp(&s.view->totals, &before->totals, sizeof(before->totals)) == 0);
		if (seed % 2)
			rules_view_rollback(s.view);
		rules_free(rules);
		rules_view_free(before);
		rules_view_free(s.view);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_equal_a_scan),
		cmocka_unit_test(the_view_is_as_it_was),
	};

	return cmocka_run_group_tests_name("rules: migration by scan", tests, NULL, NULL);
}
