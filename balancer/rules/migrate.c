/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Preemptive migration (MODEL 3.9): running tasks leave an overloaded home node i.
 *
 *   while load(i) > limit:                             O-24
 *     k = the lightest node with EM(i,k) != {},
 *         EM(i,k) = { j on i : r_PM(i,j) > r_PM(k,j) + c_j(i,k) }
 *     j* = argmax CE over EM(i,k), CE = load of j / c_j(i,k)      2.7
 *     j* goes to k
 *
 *   c_j(i,k)  = f + m_j/b_net + (d^INIT + d^W)(1/b_net + 1/b_disk^i + 1/b_disk^k)
 *   r_PM(i,j) = r(i,j) (t_j - a_j) / t_j                          2.2
 *
 * f and b_net are the parameters', or what moves to k have cost (rules_migrate_paths).
 *
 * Load and limit are the policy's: L_IO and (16); L_MEM and n_MEM; L_CPU and its threshold; the
 * weighted load, which must be the highest and overload_ratio times the mean.  IOCM-PM takes the
 * first of I/O, memory and CPU that is overloaded.  The load of a task in CE is page + IO, m_j,
 * 1, or the weighted sum.  CPU-PM tests a_j > c_j / (n - m) instead of r_PM, with n tasks at i
 * and m tasks at k including the migrant.
 *
 * At home r counts j once, because it runs there already.  Each move assumes the moves before
 * it; a task moves once.  If the bounds at the root show that a task could gain on no node, no
 * node is tried; subtrees are skipped the same way.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "balancer/rules/rules_private.h"

#define MS_PER_S 1000.0
/*
 * In the search by weighted load this weight lets the other load break ties and changes nothing
 * else.
 */
#define LEAST_WEIGHT 1e-12

enum load {
	LOAD_IO,
	LOAD_MEM,
	LOAD_CPU,
	LOAD_WEIGHTED,
};

struct rules_migrant {
	struct rules_request request; /* the request for the task's whole run */
	uint32_t task;
	double left; /* share of the run still to come, 0 to 1 */
	double age_ms;
	double requests; /* requests of the whole run, before buffer hits */
	double response; /* r_PM at home */
	double load;	 /* load that its move removes from home */
	/* Least r_PM and cost on any node, as in floor_of. */
	double floor_cpu, floor_requests, floor_cost, floor_data;
	bool hopeful; /* some node might be worth the move */
};

struct migration {
	struct rules_decision d; /* request and requests are the current migrant's */
	struct rules_view *view;
	struct rules_migrant *migrants;
	size_t nmigrants;
	enum load load;
	double w_cpu, w_io;
	bool by_age;
	double home_key; /* nodes with this key or more are not lighter than home */
};

static double migrate_lesser(double a, double b)
{
	return a < b ? a : b;
}

static double migrate_greater(double a, double b)
{
	return a > b ? a : b;
}

static double network_of(const struct migration *m, const struct rules_cell *c)
{
	return c->network > 0 ? c->network : m->d.params->network_mb_per_s;
}

/* --- tasks as requests --------------------------------------------------------- */

static int migrant_init(struct rules_migrant *g, const struct rules_task *t, uint32_t task)
{
	*g = (struct rules_migrant){
		.request = {.cpu_ms = t->cpu_ms,
			    .io_per_ms = t->io_per_ms,
			    .request_kb = t->request_kb,
			    .reaccess = t->reaccess,
			    .memory_mb = t->memory_mb,
			    .faults_per_ms = t->faults_per_ms,
			    .initial_mb = t->initial_mb,
			    .written_mb = t->written_mb,
			    .requests = -1,
			    .tasks = 1,
			    .com_ms = &t->com_ms},
		.task = task,
		.left = t->age_ms < t->cpu_ms ? 1 - t->age_ms / t->cpu_ms : 0,
		.age_ms = t->age_ms,
		.requests = t->requests > 0 ? t->requests : t->cpu_ms * t->io_per_ms,
	};
	if (rules_request_check(&g->request) < 0 || !isfinite(t->age_ms) || t->age_ms < 0 ||
	    !isfinite(t->requests) || t->requests < 0)
		return -EINVAL;
	return 0;
}

static int migrants_init(struct migration *m, struct rules *r, const struct rules_task *tasks,
			 size_t ntasks)
{
	if (ntasks > r->migrants_room) {
		struct rules_migrant *more = realloc(r->migrants, ntasks * sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		r->migrants = more;
		r->migrants_room = ntasks;
	}
	m->migrants = r->migrants;
	m->nmigrants = 0;
	for (size_t i = 0; i < ntasks; i++) {
		struct rules_migrant *g = &m->migrants[m->nmigrants];

		if (migrant_init(g, &tasks[i], (uint32_t)i) < 0)
			return -EINVAL;
		if (!tasks[i].pinned)
			m->nmigrants++;
	}
	return 0;
}

/* Makes this task the subject of the decision. */
static void consider(struct migration *m, const struct rules_migrant *g)
{
	m->d.request = &g->request;
	m->d.requests = g->requests;
	m->d.does_io = g->requests > 0 || g->request.io_per_ms > 0;
}

static double migrate_minus(double whole, double part)
{
	return whole > part ? whole - part : 0;
}

/*
 * Home without the task, because r counts it once.  A measured disk state stays as it is: the
 * task's own requests are part of it.
 */
static struct rules_cell home_without(const struct migration *m, const struct rules_migrant *g,
				      struct rules_added *added)
{
	const struct rules_request *j = &g->request;
	struct rules_cell c = *m->d.at_home;

	c.memory = migrate_minus(c.memory, j->memory_mb);
	c.kb_per_ms = migrate_minus(c.kb_per_ms, j->io_per_ms * j->request_kb);
	*added = rules_cell_added(&c, j, m->d.params->rates);
	c.io = migrate_minus(c.io, added->explicit_io + added->implicit_io);
	c.queue = migrate_minus(c.queue, 1);
	if (added->explicit_io + added->implicit_io > 0)
		c.io_tasks = migrate_minus(c.io_tasks, 1);
	return c;
}

static double task_load(const struct migration *m, const struct rules_migrant *g, double io)
{
	switch (m->load) {
	case LOAD_IO:
		return io;
	case LOAD_MEM:
		return g->request.memory_mb;
	case LOAD_CPU:
		return 1;
	default:
		return m->w_cpu + m->w_io * io;
	}
}

static const struct rules_path *path_to(const struct rules *r, uint32_t node)
{
	size_t low = 0, high = r->npaths;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->paths[middle].node == node)
			return &r->paths[middle];
		if (r->paths[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static double migrate_cost_to(const struct migration *m, const struct rules_migrant *g, uint32_t k)
{
	const struct rules_request *j = &g->request;
	const struct rules_cell *c = &m->view->cells[k];
	const struct rules_path *path = path_to(m->d.rules, k);

	return rules_migration_cost_ms(
		path != NULL ? path->fixed_ms : m->d.params->migration_fixed_ms, j->memory_mb,
		j->initial_mb + j->written_mb,
		path != NULL ? path->mb_per_s
			     : migrate_lesser(network_of(m, m->d.at_home), network_of(m, c)),
		m->d.at_home->disk_mb_per_s, c->disk_mb_per_s);
}

/* --- what no node can beat --------------------------------------------------------- */

static void floor_init(const struct migration *m, struct rules_migrant *g)
{
	const struct rules_request *j = &g->request;
	const struct rules_params *p = m->d.params;
	double fixed = p->migration_fixed_ms, fastest = network_of(m, m->d.at_home), per_mb;
	bool all = p->literal_requests || p->rates == RULES_RATES_WALL;

	g->floor_cpu = j->cpu_ms * g->left * m->d.reference_mips;
	g->floor_requests = g->requests * g->left / (all ? 1 : 1 + j->reaccess);
	g->floor_data = MS_PER_S * (j->initial_mb + j->written_mb);
	for (size_t i = 0; i < m->d.rules->npaths; i++) {
		fixed = migrate_lesser(fixed, m->d.rules->paths[i].fixed_ms);
		fastest = migrate_greater(fastest, m->d.rules->paths[i].mb_per_s);
	}
	per_mb = MS_PER_S / fastest;
	g->floor_cost = fixed + j->memory_mb * per_mb + (j->initial_mb + j->written_mb) * per_mb;
	if (m->d.at_home->disk_mb_per_s > 0)
		g->floor_cost += g->floor_data / m->d.at_home->disk_mb_per_s;
}

/* A lower bound of r_PM(k,j) + c_j (by age, of c_j) for every node k that B covers. */
static double floor_of(const struct migration *m, const struct rules_migrant *g,
		       const struct rules_bound *b)
{
	double floor = g->floor_cost + g->floor_data * b->s_per_mb;

	if (!m->by_age)
		floor += g->floor_cpu * b->cpu_factor +
			 g->floor_requests * (b->fixed_ms + g->request.request_kb * b->s_per_mb);
	/* The true values are summed in another order: leave room for rounding. */
	return floor * (1 - 1e-9);
}

/* What must exceed cost and response elsewhere: r_PM(i,j), or by age, age (n - m). */
static double stake(const struct migration *m, const struct rules_migrant *g, double m_at_target)
{
	return m->by_age ? g->age_ms * (m->d.at_home->cpu - m_at_target) : g->response;
}

static bool migrate_hopeless(const struct migration *m, const struct rules_bound *b)
{
	for (size_t i = 0; i < m->nmigrants; i++) {
		const struct rules_migrant *g = &m->migrants[i];

		if (g->hopeful && stake(m, g, 1) > floor_of(m, g, b))
			return false;
	}
	return true;
}

/* Updates the values at home.  Returns false if no task could gain anywhere. */
static bool migrate_prepare(struct migration *m)
{
	const struct rules_bound *root = m->view->bounds != NULL ? &m->view->bounds[1] : NULL;
	bool any = false;

	for (size_t i = 0; i < m->nmigrants; i++) {
		struct rules_migrant *g = &m->migrants[i];
		struct rules_added added;
		struct rules_cell home;

		consider(m, g);
		home = home_without(m, g, &added);
		g->response = m->by_age ? 0 : rules_response_at(&m->d, &home, m->d.home) * g->left;
		g->load = task_load(m, g, added.explicit_io + added.implicit_io);
		floor_init(m, g);
		g->hopeful = root == NULL || stake(m, g, 1) > floor_of(m, g, root);
		any = any || g->hopeful;
	}
	return any;
}

/* --- overload ----------------------------------------------------------------------- */

static bool migrate_overloaded(struct migration *m, enum load load)
{
	const struct rules_cell *c = m->d.at_home;
	const struct rules_totals *all = &m->view->totals;
	const struct rules_params *p = m->d.params;
	double mine, mean;

	switch (load) {
	case LOAD_IO:
		return rules_test_home(&m->d, RULES_C_STILL_OVERLOADED, c->io,
				       rules_io_threshold(rules_exact_value(&all->io),
							  c->performance,
							  rules_exact_value(&all->performance)));
	case LOAD_MEM:
		return c->n_mem > 0 &&
		       rules_test_home(&m->d, RULES_C_STILL_OVERLOADED, c->memory, c->n_mem);
	case LOAD_CPU:
		if (p->cpu_speed_weighted)
			return rules_test_home(&m->d, RULES_C_STILL_OVERLOADED,
					       c->cpu /
						       (c->cores * (c->mips / m->d.reference_mips)),
					       p->cpu_threshold);
		return rules_test_home(&m->d, RULES_C_STILL_OVERLOADED, c->cpu,
				       p->cpu_threshold * c->cores);
	default:
		mine = m->w_cpu * c->cpu + m->w_io * c->io;
		mean = (m->w_cpu * rules_exact_value(&all->cpu) +
			m->w_io * rules_exact_value(&all->io)) /
		       m->view->count;
		return rules_test_home(&m->d, RULES_C_STILL_OVERLOADED, mine,
				       p->overload_ratio * mean) &&
		       rules_test_home(&m->d, RULES_C_LOAD_HIGHEST, mine,
				       rules_search_highest(m->view, m->w_cpu, m->w_io, m->d.home,
							    INFINITY));
	}
}

/* Returns the policy's first overloaded stage from FIRST on; -1: none. */
static int next_stage(struct migration *m, int first)
{
	switch (m->d.rules->policy) {
	case RULES_IOCM_PM:
		for (int load = first; load <= LOAD_CPU; load++)
			if (migrate_overloaded(m, (enum load)load))
				return load;
		return -1;
	case RULES_IO_PM:
		return first <= LOAD_IO && migrate_overloaded(m, LOAD_IO) ? LOAD_IO : -1;
	case RULES_MEM_PM:
		return first <= LOAD_MEM && migrate_overloaded(m, LOAD_MEM) ? LOAD_MEM : -1;
	case RULES_CPU_PM:
		return first <= LOAD_CPU && migrate_overloaded(m, LOAD_CPU) ? LOAD_CPU : -1;
	default:
		return first <= LOAD_WEIGHTED && migrate_overloaded(m, LOAD_WEIGHTED)
			       ? LOAD_WEIGHTED
			       : -1;
	}
}

/* --- one move ------------------------------------------------------------------------- */

static enum rules_order order_of(const struct migration *m)
{
	const struct rules_params *p = m->d.params;

	switch (m->load) {
	case LOAD_IO:
		return p->io_order_share ? RULES_ORDER_IO_SHARE : RULES_ORDER_IO;
	case LOAD_MEM:
		return p->mem_order_free ? RULES_ORDER_MEM_FREE : RULES_ORDER_MEM;
	default:
		return p->cpu_speed_weighted ? RULES_ORDER_CPU_WEIGHTED : RULES_ORDER_CPU;
	}
}

static int search_start(struct migration *m, struct rules_search *s, uint64_t salt)
{
	struct rules_heap *heap = &m->d.rules->heap;
	int ret = m->load == LOAD_WEIGHTED
			  ? rules_search_init_weighted(
				    s, m->view, migrate_greater(m->w_cpu, LEAST_WEIGHT),
				    migrate_greater(m->w_io, LEAST_WEIGHT), salt, heap)
			  : rules_search_init(s, m->view, order_of(m), salt, heap);

	if (ret == 0)
		m->home_key = rules_search_leaf(s, m->d.home).key;
	return ret;
}

static bool migrate_prune(void *arg, uint32_t at, double key)
{
	const struct migration *m = arg;
	const struct rules_bound *b = m->view->bounds != NULL ? &m->view->bounds[at] : NULL;

	if (key >= m->home_key)
		return true;
	return b != NULL && (b->accepting == 0 || migrate_hopeless(m, b));
}

struct best {
	struct rules_migrant *migrant;
	double cost, effectiveness;
	/*
	 * The test that the plan shows: that of the best migrant, or of the one that came closest.
	 */
	struct rules_reason reason;
	double margin;
};

static bool migrate_judge(struct migration *m, struct rules_migrant *g, uint32_t k, double cost,
			  struct rules_reason *why)
{
	const struct rules_cell *c = &m->view->cells[k];

	if (m->by_age)
		*why = (struct rules_reason){RULES_C_MIGRANT_AGE, k, g->age_ms,
					     cost / (m->d.at_home->cpu - (c->cpu + 1)), false};
	else
		*why = (struct rules_reason){RULES_C_MIGRANT, k, g->response,
					     rules_response_at(&m->d, c, k) * g->left + cost,
					     false};
	why->holds = why->left > why->right;
	return why->holds;
}

/* Finds the most cost-effective migrant of EM(home, K), if there is any. */
static void migrate_examine(struct migration *m, uint32_t k, struct best *best)
{
	*best = (struct best){.margin = -INFINITY};
	/* With the age criterion, k with the migrant must still have fewer tasks than home. */
	if (m->by_age && m->view->cells[k].cpu + 1 >= m->d.at_home->cpu)
		return;
	for (size_t i = 0; i < m->nmigrants; i++) {
		struct rules_migrant *g = &m->migrants[i];
		struct rules_tests t = {.n = 0};
		struct rules_reason why;
		double cost, effectiveness;
		bool holds;

		consider(m, g);
		if (!g->hopeful || !rules_test_eligible(&m->d, &t, k))
			continue;
		cost = migrate_cost_to(m, g, k);
		holds = migrate_judge(m, g, k, cost, &why);
		effectiveness = cost > 0 ? g->load / cost : INFINITY;
		if (holds && (best->migrant == NULL || effectiveness > best->effectiveness)) {
			best->migrant = g;
			best->cost = cost;
			best->effectiveness = effectiveness;
			best->reason = why;
		} else if (best->migrant == NULL && why.left - why.right > best->margin) {
			best->margin = why.left - why.right;
			best->reason = why;
		}
	}
}

static void give_reason(struct rules_plan *plan, const struct rules_reason *why)
{
	if (why->criterion == RULES_C_MIGRANT || why->criterion == RULES_C_MIGRANT_AGE) {
		if (plan->nreasons < RULES_REASONS_MAX)
			plan->reasons[plan->nreasons++] = *why;
		else if (why->holds) /* the one that decides is always told */
			plan->reasons[RULES_REASONS_MAX - 1] = *why;
		plan->refused[why->criterion] += !why->holds;
	}
}

/* Finds the next move.  Returns 1 with *BEST and *TO, 0: none, -ENOMEM, -EINVAL. */
static int find_move(struct migration *m, uint64_t salt, struct best *best, uint32_t *to)
{
	double most = m->d.params->migration_examine;
	struct rules_search s;
	uint32_t k, examined = 0;
	int ret;

	if (!migrate_prepare(m))
		return 0;
	ret = search_start(m, &s, salt);
	while (ret >= 0 && (most == 0 || examined < most)) {
		ret = rules_search_next(&s, migrate_prune, m, &k);
		if (ret <= RULES_SEARCH_END)
			break;
		if (ret == RULES_SEARCH_DROPPED || k == m->d.home)
			continue;
		examined++;
		migrate_examine(m, k, best);
		give_reason(m->d.plan, &best->reason);
		if (best->migrant != NULL) {
			*to = k;
			return 1;
		}
	}
	return ret < 0 ? ret : 0;
}

/* Makes the move in the view and removes the task from the list. */
static int migrate_apply(struct migration *m, struct rules_migrant *g, uint32_t to)
{
	struct rules_request request = g->request;
	int ret;

	for (struct rules_migrant *end = m->migrants + --m->nmigrants; g < end; g++)
		g[0] = g[1];
	ret = rules_view_discharge(m->view, m->d.home, &request);
	return ret < 0 ? ret : rules_view_charge(m->view, to, &request);
}

/* Drops old reasons to make room for those of later moves. */
static void forget_old_reasons(struct rules_plan *plan)
{
	if (plan->nreasons > RULES_REASONS_MAX / 2)
		plan->nreasons = 0;
}

static int make_move(struct migration *m, const struct best *best, uint32_t to,
		     struct rules_move *move)
{
	struct rules_plan *plan = m->d.plan;

	*move = (struct rules_move){best->migrant->task, to, best->cost, best->effectiveness};
	plan->node = plan->tied[0] = plan->candidates[0] = to;
	plan->ncandidates = 1;
	plan->stayed = false;
	return migrate_apply(m, best->migrant, to);
}

static int moves_find(struct migration *m, struct rules_move *moves, size_t room, size_t *n)
{
	double most = m->d.params->migrations_max;
	struct best best;
	int stage = 0, ret = 0;
	uint32_t to;

	while (*n < room && m->nmigrants > 0 && (most == 0 || (double)*n < most)) {
		forget_old_reasons(m->d.plan);
		stage = next_stage(m, stage);
		if (stage < 0)
			break;
		m->load = (enum load)stage;
		ret = find_move(m, m->d.salt + *n, &best, &to);
		if (ret < 0)
			return ret;
		if (ret > 0) {
			ret = make_move(m, &best, to, &moves[(*n)++]);
			if (ret < 0)
				return ret;
			stage = 0;
		} else if (m->d.params->stage_fallthrough) {
			stage++;
		} else {
			break;
		}
	}
	return 0;
}

/* Sets the weights as WAL does (policy_wal.c), from the present cluster. */
static void weights_init(struct migration *m)
{
	const struct rules_totals *all = &m->view->totals;
	double cpu = rules_exact_value(&all->cpu), io = rules_exact_value(&all->io);

	m->w_io = rules_weight_io(m->d.rules);
	m->w_cpu = 1 - m->w_io;
	if (!m->d.params->wal_normalise)
		return;
	m->w_cpu = cpu > 0 ? m->w_cpu * m->view->count / cpu : 0;
	m->w_io = io > 0 ? m->w_io * m->view->count / io : 0;
}

static void migration_init(struct migration *m, struct rules *r, struct rules_view *view,
			   uint32_t home, struct rules_plan *plan)
{
	const struct rules_cell *c = &view->cells[home];

	*m = (struct migration){
		.d = {.rules = r,
		      .params = &r->params,
		      .view = view,
		      .plan = plan,
		      .home = home,
		      .at_home = c,
		      .reference_mips =
			      r->params.reference_mips > 0 ? r->params.reference_mips : c->mips,
		      .salt = r->seed ^ (home + 1) * 0x9e3779b97f4a7c15u},
		.view = view,
		.by_age = r->policy == RULES_CPU_PM && r->params.age_criterion,
	};
	weights_init(m);
	rules_plan_init(plan, home);
}

void rules_migrate_paths(struct rules *r, const struct rules_path *paths, size_t n)
{
	r->paths = paths;
	r->npaths = n;
}

int rules_migrate(struct rules *r, struct rules_view *view, uint32_t home,
		  const struct rules_task *tasks, size_t ntasks, struct rules_move *moves,
		  size_t room, size_t *n, struct rules_plan *plan)
{
	struct migration m;
	struct rules_plan unseen;
	size_t begin;
	int ret;

	*n = 0;
	if (home >= view->count)
		return -EINVAL;
	if (view->deferred)
		return -EBUSY;
	migration_init(&m, r, view, home, plan != NULL ? plan : &unseen);
	if (!rules_policy_migrates(r->policy))
		return 0;
	if (r->policy == RULES_WAL_PM && !rules_view_has(view, RULES_INDEX_CORNERS))
		return -EINVAL;
	ret = migrants_init(&m, r, tasks, ntasks);
	if (ret < 0)
		return ret;
	begin = rules_journal_begin(view);
	ret = moves_find(&m, moves, room, n);
	rules_journal_undo(view, begin);
	if (ret < 0)
		*n = 0;
	return ret;
}
