/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Finds a policy's target: it judges nodes from the lightest on, in the policy's order, and the
 * first acceptable one is the choice.
 *
 * The first RULES_EXAMINED_MAX nodes are judged one by one, with reasons.  After them it drops
 * whole subtrees whose bound shows that no node in them can pass.  A brief plan needs the choice
 * alone: it uses bounds from the first failure on if they cannot change the choice, and ends the
 * search with the choice.
 *
 * The tasks of one job spread over equal nodes (O-16): if the choice has a task of this job
 * already, an equal node without one replaces it.  To settle that, the search needs one more
 * acceptable equal node than the job has nodes.  A brief plan of a wide job skips those that have
 * a task (unheld.c).
 */
#include <errno.h>
#include <math.h>

#include "balancer/rules/rules_private.h"

/* Reserved for the chosen node and for the home node's tests of later stages. */
#define REASONS_RESERVED (2 * RULES_TESTS_MAX)
/*
 * After the choice, the search still looks for further candidates, until it has FALLBACKS
 * candidates and examined EXAMINED_FOR_FALLBACKS nodes, or examined EXAMINED_AFTER_CHOICE nodes.
 */
#define FALLBACKS	       8
#define EXAMINED_FOR_FALLBACKS 32
#define EXAMINED_AFTER_CHOICE  128
/* A limit of N examined nodes also ends the search after N times this many visits to subtrees. */
#define STEPS_PER_NODE 3

struct run {
	struct rules_decision *d;
	const struct rules_contest *contest;
	struct rules_search search;
	struct rules_least choice; /* key and tie of the first acceptable node */
	bool settled;		   /* the choice is final, or nothing was acceptable so far */
	bool bounded;		   /* the search uses bounds */
	bool skips;		   /* until settled, it skips nodes that have a task of the job */
	uint32_t examined;	   /* nodes judged */
	uint32_t steps;		   /* subtrees and nodes visited */
};

static bool contest_below(const struct rules_view *view, uint32_t at, uint32_t index)
{
	uint32_t leaf = view->capacity + index;

	return leaf >> (__builtin_clz(at) - __builtin_clz(leaf)) == at;
}

/* The criterion that every node below AT fails, or RULES_CRITERIA. */
static enum rules_criterion ruled_out(const struct run *run, uint32_t at, double key)
{
	struct rules_decision *d = run->d;
	const struct rules_contest *contest = run->contest;
	const struct rules_bound *b;

	if (key >= contest->limit)
		return contest->limited_by;
	b = &d->view->bounds[at];
	if (b->accepting == 0)
		return RULES_C_ACCEPTS;
	if (d->does_io && b->disks == 0)
		return RULES_C_HAS_DISK;
	/* If only the lightest node is tried, the plan must show how it failed. */
	if (!contest->try_next && d->plan->ncandidates == 0)
		return RULES_CRITERIA;
	if (contest->share_limit > 0 && b->io_share > contest->share_limit)
		return RULES_C_IO_UNDERLOADED;
	if (contest->response && rules_response_floor(d, b) >= rules_response_home(d))
		return RULES_C_RESPONSE;
	return contest->hopeless != NULL ? contest->hopeless(d, contest->arg, b) : RULES_CRITERIA;
}

static bool contest_prune(void *arg, uint32_t at, double key)
{
	struct run *run = arg;
	struct rules_decision *d = run->d;
	enum rules_criterion c;

	run->steps++;
	if (run->skips && rules_unheld_after(&d->rules->unheld, at, &run->choice))
		return true;
	c = ruled_out(run, at, key);
	if (c == RULES_CRITERIA)
		return false;
	if (!d->brief)
		d->plan->refused[c] +=
			rules_tree_population(d->view, at) - contest_below(d->view, at, d->home);
	return true;
}

static void give_reasons(struct rules_plan *plan, const struct rules_reason *list, uint32_t n,
			 uint32_t room)
{
	for (uint32_t i = 0; i < n && plan->nreasons < room; i++)
		plan->reasons[plan->nreasons++] = list[i];
}

/* Later candidates give only the tests that compare two values; the choice gives all tests. */
static void give_main_reasons(struct rules_plan *plan, struct rules_tests *t)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->list[i].criterion != RULES_C_ACCEPTS &&
		    t->list[i].criterion != RULES_C_HAS_DISK)
			t->list[kept++] = t->list[i];
	if (plan->nreasons + kept <= RULES_REASONS_MAX)
		give_reasons(plan, t->list, kept, RULES_REASONS_MAX);
}

static bool equal_to_choice(const struct run *run, uint32_t k)
{
	struct rules_least l = rules_search_leaf(&run->search, k);

	return l.key == run->choice.key && l.tie == run->choice.tie;
}

static bool holds_no_task(const struct rules_decision *d, uint32_t k)
{
	return d->job == NULL || !d->params->spread_tasks || rules_job_tasks_at(d, k) == 0;
}

/* Makes K the choice; the previous choice becomes the second candidate. */
static void contest_choose(struct run *run, uint32_t k, struct rules_tests *t)
{
	struct rules_plan *plan = run->d->plan;
	uint32_t n = plan->ncandidates;

	n = run->d->brief ? 1 : n < RULES_EXAMINED_MAX ? n + 1 : n;
	for (uint32_t i = n - 1; i > 0; i--)
		plan->candidates[i] = plan->candidates[i - 1];
	plan->candidates[0] = k;
	plan->ncandidates = n;
	if (!run->d->brief)
		give_reasons(plan, t->list, t->n, RULES_REASONS_MAX);
}

static void accept(struct run *run, uint32_t k, struct rules_tests *t)
{
	struct rules_plan *plan = run->d->plan;

	if (plan->ncandidates == 0) {
		run->choice = rules_search_leaf(&run->search, k);
		run->settled = holds_no_task(run->d, k);
		contest_choose(run, k, t);
	} else if (!run->settled && !equal_to_choice(run, k)) {
		run->settled = true;
	} else if (!run->settled && holds_no_task(run->d, k)) {
		run->settled = true;
		contest_choose(run, k, t);
		return;
	}
	if (run->d->brief || plan->candidates[0] == k || plan->ncandidates == RULES_EXAMINED_MAX)
		return;
	plan->candidates[plan->ncandidates++] = k;
	give_main_reasons(plan, t);
}

static bool is_eligible(const struct rules_decision *d, uint32_t k)
{
	struct rules_tests t;

	t.n = 0; /* leave the rest of the large array unset */
	return rules_test_eligible(d, &t, k);
}

/* Judges K.  Returns true when the search is over. */
static bool contest_examine(struct run *run, uint32_t k)
{
	struct rules_decision *d = run->d;
	const struct rules_contest *contest = run->contest;
	struct rules_plan *plan = d->plan;
	struct rules_tests t;
	const struct rules_reason *failed;

	t.n = 0; /* leave the rest of the large array unset, as this runs for each node */
	run->examined++;
	if (contest->judge(d, contest->arg, k, &t)) {
		accept(run, k, &t);
		d->examined++;
		return run->settled && (d->brief || plan->ncandidates == RULES_EXAMINED_MAX);
	}
	failed = &t.list[t.n - 1];
	d->examined++;
	if (!d->brief) {
		plan->refused[failed->criterion]++;
		if (d->examined <= RULES_EXAMINED_MAX)
			give_reasons(plan, failed, 1, RULES_REASONS_MAX - REASONS_RESERVED);
	}
	return !contest->try_next && plan->ncandidates == 0 && is_eligible(d, k);
}

static bool enough(const struct run *run)
{
	double most = run->d->params->examine_max;

	if (run->d->plan->ncandidates > 0 && run->settled) {
		if (run->d->plan->ncandidates >= FALLBACKS &&
		    run->examined >= EXAMINED_FOR_FALLBACKS)
			return true;
		if (most == 0 || most > EXAMINED_AFTER_CHOICE)
			most = EXAMINED_AFTER_CHOICE;
	}
	return most > 0 && (run->examined >= most || run->steps >= most * STEPS_PER_NODE);
}

/* Lists the candidates that equal the first in order and tie-break. */
static void fill_ties(struct run *run)
{
	struct rules_plan *plan = run->d->plan;

	plan->ntied = 0;
	for (uint32_t i = 0; i < plan->ncandidates; i++) {
		if (!equal_to_choice(run, plan->candidates[i]))
			break;
		if (plan->ntied < sizeof(plan->tied) / sizeof(plan->tied[0]))
			plan->tied[plan->ntied] = plan->candidates[i];
		plan->ntied++;
	}
}

static int contest_start(struct run *run)
{
	const struct rules_contest *contest = run->contest;
	struct rules_decision *d = run->d;

	if (!rules_view_has(d->view, RULES_INDEX_BOUNDS))
		return -EINVAL;
	if (contest->weighted)
		return rules_search_init_weighted(&run->search, d->view, contest->w_cpu,
						  contest->w_io, d->salt, &d->rules->heap);
	return rules_search_init(&run->search, d->view, contest->order, d->salt, &d->rules->heap);
}

/* Bounds begin to matter, or matter more: checks the waiting subtrees again. */
static void begin_bounds(struct run *run)
{
	run->bounded = true;
	rules_search_drop(&run->search, contest_prune, run);
}

/* The choice has a task of the job: from now on the search skips others that have one. */
static void skip_holders(struct run *run)
{
	const struct rules_contest *contest = run->contest;

	if (contest->weighted || contest->counts || run->skips)
		return;
	run->skips = rules_unheld_look(&run->d->rules->unheld, run->d, contest->order);
	if (run->skips)
		begin_bounds(run);
}

int rules_contest_run(struct rules_decision *d, const struct rules_contest *contest)
{
	struct run run = {
		.d = d,
		.contest = contest,
		.settled = true,
		.bounded = d->examined >= RULES_EXAMINED_MAX,
	};
	/* With a limit on examined nodes, brief and full plans must count the same nodes. */
	bool early = d->brief && d->params->examine_max == 0;
	uint32_t k;
	int ret = contest_start(&run);

	while (ret >= 0 && !enough(&run)) {
		uint32_t candidates = d->plan->ncandidates;

		ret = rules_search_next(&run.search, run.bounded ? contest_prune : NULL, &run, &k);
		if (ret <= RULES_SEARCH_END)
			break;
		if (ret == RULES_SEARCH_LEAF && k != d->home && contest_examine(&run, k))
			break;
		if (run.bounded ? candidates == 0 && d->plan->ncandidates > 0 && !contest->try_next
				: early || d->examined >= RULES_EXAMINED_MAX)
			begin_bounds(&run);
		if (early && !run.settled)
			skip_holders(&run);
	}
	if (ret < 0)
		return ret;
	if (d->plan->ncandidates == 0)
		return 0;
	d->plan->node = d->plan->candidates[0];
	d->plan->stayed = false;
	fill_ties(&run);
	return 1;
}
