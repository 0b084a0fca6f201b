/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The frame of every decision: tests become reasons, candidates compete, the
 * plan is filled.  Policies (policy_*.c) say what is tested, in which order of
 * nodes.
 *
 * The first RULES_EXAMINED_MAX nodes are judged one by one, with reasons.  After
 * them whole subtrees are dropped as soon as their bound shows that no node in
 * them can pass.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules_private.h"

/* Kept free for the chosen node and the home node's tests of later stages. */
#define REASONS_RESERVED (2 * RULES_TESTS_MAX)
/* With a choice made, look at no more nodes than this for further candidates ... */
#define EXAMINED_AFTER_CHOICE 128
/* ... and at no more subtrees than so many times the nodes that may be examined. */
#define STEPS_PER_NODE 3

static bool compare(enum rules_criterion c, double left, double right)
{
	switch (c) {
	case RULES_C_IO_OVERLOADED:
	case RULES_C_ACCEPTS:
		return left >= right;
	case RULES_C_IO_UNDERLOADED:
	case RULES_C_MEM_FITS:
		return left <= right;
	case RULES_C_HOME:
		return true;
	default:
		return left > right;
	}
}

bool rules_test(struct rules_tests *t, enum rules_criterion c, uint32_t node, double left,
		double right)
{
	bool holds = compare(c, left, right);

	t->list[t->n++] = (struct rules_reason){c, node, left, right, holds};
	return holds;
}

bool rules_test_home(struct rules_decision *d, enum rules_criterion c, double left, double right)
{
	bool holds = compare(c, left, right);

	if (d->plan->nreasons < RULES_REASONS_MAX)
		d->plan->reasons[d->plan->nreasons++] =
			(struct rules_reason){c, d->home, left, right, holds};
	return holds;
}

bool rules_test_eligible(const struct rules_decision *d, struct rules_tests *t, uint32_t k)
{
	const struct rules_cell *c = &d->view->cells[k];

	if (!rules_test(t, RULES_C_ACCEPTS, k, c->accepts, 1))
		return false;
	if (d->does_io && !rules_test(t, RULES_C_HAS_DISK, k, c->disk_mb_per_s, 0))
		return false;
	return !d->params->require_memory || !(c->n_mem > 0) ||
	       rules_test(t, RULES_C_MEM_FITS, k, c->memory + d->request->memory_mb, c->n_mem);
}

bool rules_test_response(struct rules_decision *d, struct rules_tests *t, uint32_t k)
{
	const struct rules_cell *c = &d->view->cells[k];

	return rules_test(t, RULES_C_RESPONSE, k, rules_response_home(d),
			  rules_response_at(d, c) + rules_cost_to(d, c));
}

struct run {
	struct rules_decision *d;
	const struct rules_contest *contest;
	uint32_t examined; /* nodes judged */
	uint32_t steps;	   /* subtrees and nodes met */
};

static bool below(const struct rules_view *view, uint32_t at, uint32_t index)
{
	uint32_t leaf = view->capacity + index;

	return leaf >> (__builtin_clz(at) - __builtin_clz(leaf)) == at;
}

/* The criterion that no node below AT meets, or RULES_CRITERIA. */
static enum rules_criterion ruled_out(const struct run *run, uint32_t at)
{
	struct rules_decision *d = run->d;
	const struct rules_contest *contest = run->contest;
	const struct rules_bound *b = &d->view->bounds[at];

	if (d->view->least[contest->order][at].key >= contest->limit)
		return contest->limited_by;
	if (b->accepting == 0)
		return RULES_C_ACCEPTS;
	if (d->does_io && b->disks == 0)
		return RULES_C_HAS_DISK;
	/* Where only the lightest is tried, its failing must be seen, not skipped. */
	if (!contest->try_next && d->plan->ncandidates == 0)
		return RULES_CRITERIA;
	return contest->hopeless(d, contest->arg, b);
}

static bool prune(void *arg, uint32_t at)
{
	struct run *run = arg;
	struct rules_decision *d = run->d;
	enum rules_criterion c;

	run->steps++;
	if (d->examined < RULES_EXAMINED_MAX)
		return false;
	c = ruled_out(run, at);
	if (c == RULES_CRITERIA)
		return false;
	d->plan->refused[c] += rules_tree_population(d->view, at) - below(d->view, at, d->home);
	return true;
}

static void give_reasons(struct rules_plan *plan, const struct rules_reason *list, uint32_t n,
			 uint32_t room)
{
	for (uint32_t i = 0; i < n && plan->nreasons < room; i++)
		plan->reasons[plan->nreasons++] = list[i];
}

/* The chosen node shows all its tests; later candidates those with two true sides. */
static void accept(struct rules_decision *d, uint32_t k, struct rules_tests *t)
{
	struct rules_plan *plan = d->plan;
	uint32_t kept = 0;

	plan->candidates[plan->ncandidates++] = k;
	if (plan->ncandidates == 1) {
		give_reasons(plan, t->list, t->n, RULES_REASONS_MAX);
		return;
	}
	for (uint32_t i = 0; i < t->n; i++)
		if (t->list[i].criterion != RULES_C_ACCEPTS &&
		    t->list[i].criterion != RULES_C_HAS_DISK)
			t->list[kept++] = t->list[i];
	if (plan->nreasons + kept <= RULES_REASONS_MAX)
		give_reasons(plan, t->list, kept, RULES_REASONS_MAX);
}

static bool is_eligibility(enum rules_criterion c)
{
	return c == RULES_C_ACCEPTS || c == RULES_C_HAS_DISK || c == RULES_C_MEM_FITS;
}

/* Judges K; true when the search is over. */
static bool examine(struct run *run, uint32_t k)
{
	struct rules_decision *d = run->d;
	const struct rules_contest *contest = run->contest;
	struct rules_plan *plan = d->plan;
	struct rules_tests t = {.n = 0};
	const struct rules_reason *failed;

	run->examined++;
	if (contest->judge(d, contest->arg, k, &t)) {
		accept(d, k, &t);
		d->examined++;
		return plan->ncandidates == RULES_EXAMINED_MAX;
	}
	failed = &t.list[t.n - 1];
	plan->refused[failed->criterion]++;
	if (d->examined++ < RULES_EXAMINED_MAX)
		give_reasons(plan, failed, 1, RULES_REASONS_MAX - REASONS_RESERVED);
	return !contest->try_next && plan->ncandidates == 0 && !is_eligibility(failed->criterion);
}

static bool enough(const struct run *run)
{
	double most = run->d->params->examine_max;

	if (run->d->plan->ncandidates > 0 && (most == 0 || most > EXAMINED_AFTER_CHOICE))
		most = EXAMINED_AFTER_CHOICE;
	return most > 0 && (run->examined >= most || run->steps >= most * STEPS_PER_NODE);
}

/* The candidates that order and tie-break could not tell from the first. */
static void fill_ties(struct rules_decision *d, const struct rules_least *leaves)
{
	struct rules_plan *plan = d->plan;
	const struct rules_least *first = &leaves[plan->candidates[0]];

	plan->ntied = 0;
	for (uint32_t i = 0; i < plan->ncandidates; i++) {
		const struct rules_least *l = &leaves[plan->candidates[i]];

		if (l->key != first->key || l->tie != first->tie)
			break;
		if (plan->ntied < sizeof(plan->tied) / sizeof(plan->tied[0]))
			plan->tied[plan->ntied] = plan->candidates[i];
		plan->ntied++;
	}
}

int rules_contest_run(struct rules_decision *d, const struct rules_contest *contest)
{
	struct run run = {d, contest, 0, 0};
	struct rules_search search;
	uint32_t k;
	int ret = rules_search_init(&search, d->view, contest->order, d->salt, &d->rules->heap);

	while (ret >= 0 && !enough(&run)) {
		ret = rules_search_next(&search, prune, &run, &k);
		if (ret <= RULES_SEARCH_END)
			break;
		if (ret == RULES_SEARCH_LEAF && k != d->home && examine(&run, k))
			break;
	}
	if (ret < 0)
		return ret;
	if (d->plan->ncandidates == 0)
		return 0;
	d->plan->node = d->plan->candidates[0];
	d->plan->stayed = false;
	fill_ties(d, d->view->least[contest->order] + d->view->capacity);
	return 1;
}

static uint64_t stir(uint64_t h, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	h = (h ^ bits) * 0xff51afd7ed558ccdu;
	return h ^ (h >> 32);
}

/* Ties fall differently for different requests, equally for a repeated one. */
static uint64_t salt(uint64_t seed, uint32_t home, const struct rules_request *j)
{
	uint64_t h = stir(seed, home);

	h = stir(h, j->cpu_ms);
	h = stir(h, j->io_per_ms);
	h = stir(h, j->memory_mb);
	h = stir(h, j->initial_mb);
	return stir(h, j->requests);
}

static void decision_init(struct rules_decision *d, struct rules *r, const struct rules_view *view,
			  uint32_t home, const struct rules_request *j, struct rules_plan *plan)
{
	const struct rules_cell *c = &view->cells[home];
	bool wall = r->params.rates == RULES_RATES_WALL;

	*d = (struct rules_decision){
		.rules = r,
		.params = &r->params,
		.view = view,
		.request = j,
		.plan = plan,
		.home = home,
		.at_home = c,
		.added_home = rules_cell_added(c, j, r->params.rates),
		.reference_mips = r->params.reference_mips > 0 ? r->params.reference_mips : c->mips,
		.requests = wall && j->requests >= 0 ? j->requests : j->cpu_ms * j->io_per_ms,
		.salt = salt(r->seed, home, j),
	};
	d->does_io = d->requests > 0 || j->io_per_ms > 0;
}

static void plan_init(struct rules_plan *plan, uint32_t home)
{
	plan->node = home;
	plan->stayed = true;
	plan->ntied = 1;
	plan->tied[0] = home;
	plan->nreasons = 0;
	plan->ncandidates = 0;
	memset(plan->refused, 0, sizeof(plan->refused));
}

int rules_place(struct rules *r, const struct rules_view *view, uint32_t home,
		const struct rules_request *request, struct rules_plan *plan)
{
	struct rules_decision d;
	int ret;

	if (home >= view->count || rules_request_check(request) < 0)
		return -EINVAL;
	plan_init(plan, home);
	decision_init(&d, r, view, home, request, plan);
	ret = rules_policy_function(r->policy)(&d);
	return ret < 0 ? ret : 0;
}

struct rules *rules_new(enum rules_policy policy, const struct rules_params *params, uint64_t seed)
{
	struct rules *r;

	if ((unsigned int)policy >= RULES_POLICIES || rules_params_check(params) < 0)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return NULL;
	r->policy = policy;
	r->params = *params;
	r->seed = seed;
	return r;
}

void rules_free(struct rules *r)
{
	if (r == NULL)
		return;
	free(r->heap.items);
	free(r);
}
