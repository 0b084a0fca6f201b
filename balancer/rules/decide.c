/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The frame of every decision: its inputs, tests that become reasons, the plan.  Policies
 * (policy_*.c) say what to test; contest.c finds a target.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/rules/rules_private.h"

bool rules_test(struct rules_tests *t, enum rules_criterion c, uint32_t node, double left,
		double right)
{
	bool holds = rules_criterion_holds(c, left, right);

	t->list[t->n++] = (struct rules_reason){c, node, left, right, holds};
	return holds;
}

bool rules_test_home(struct rules_decision *d, enum rules_criterion c, double left, double right)
{
	bool holds = rules_criterion_holds(c, left, right);

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
			  rules_response_at(d, c, k) + rules_cost_to(d, c, k));
}

double rules_discrepancy(const struct rules_decision *d, double home, double k, double added)
{
	/* (home - k) + added, not (home + added) - k: equal nodes must compare equal. */
	return d->params->discrepancy_after ? (home - k) + added : home - k;
}

double rules_discrepancy_limit(const struct rules_decision *d, double home, double added)
{
	if (d->params->discrepancy_after)
		return home;
	return home > added ? (home - added) * (1 + 1e-9) : 0;
}

static uint64_t stir(uint64_t h, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	h = (h ^ bits) * 0xff51afd7ed558ccdu;
	return h ^ (h >> 32);
}

/* Ties fall differently for different requests, equally for a repeated one. */
static uint64_t salt(uint64_t seed, uint32_t home, const struct rules_request *j,
		     const struct rules_job *job)
{
	uint64_t h = stir(seed, home);

	h = stir(h, j->cpu_ms);
	h = stir(h, j->io_per_ms);
	h = stir(h, j->memory_mb);
	h = stir(h, j->initial_mb);
	h = stir(h, j->requests);
	if (j->output_mb > 0)
		h = stir(h, j->output_mb);
	return job != NULL && job->task > 0 ? stir(h, job->task) : h;
}

void rules_decision_init(struct rules_decision *d, struct rules *r, const struct rules_view *view,
			 uint32_t home, const struct rules_request *j, struct rules_job *job)
{
	const struct rules_cell *c = &view->cells[home];
	double mips = job != NULL ? view->cells[job->home].mips : c->mips;

	*d = (struct rules_decision){
		.rules = r,
		.params = &r->params,
		.view = view,
		.request = j,
		.job = job,
		.home = home,
		.at_home = c,
		.added_home = rules_cell_added(c, j, r->params.rates),
		.reference_mips = r->params.reference_mips > 0 ? r->params.reference_mips : mips,
		.requests = rules_request_count(j, r->params.rates),
	};
	d->does_io = d->requests > 0 || j->io_per_ms > 0;
}

void rules_plan_init(struct rules_plan *plan, uint32_t home)
{
	plan->node = home;
	plan->stayed = true;
	plan->queued = false;
	plan->ntied = 1;
	plan->tied[0] = home;
	plan->nreasons = 0;
	plan->ncandidates = 0;
	memset(plan->refused, 0, sizeof(plan->refused));
}

static int decide_run(struct rules_decision *d, struct rules_plan *plan, bool brief)
{
	struct rules *r = d->rules;
	int ret;

	rules_plan_init(plan, d->home);
	d->plan = plan;
	d->brief = brief;
	d->salt = salt(r->seed, d->home, d->request, d->job);
	ret = rules_policy_function(r->policy)(d);
	return ret < 0 ? ret : 0;
}

int rules_decide(struct rules *r, const struct rules_view *view, uint32_t home,
		 const struct rules_request *request, struct rules_job *job, bool brief,
		 struct rules_plan *plan)
{
	struct rules_decision d;

	rules_decision_init(&d, r, view, home, request, job);
	return decide_run(&d, plan, brief);
}

int rules_decide_batch(struct rules *r, const struct rules_view *view, uint32_t home,
		       const struct rules_request *request, struct rules_plan *plan,
		       uint32_t *nodes)
{
	struct rules_decision d;

	rules_decision_init(&d, r, view, home, request, NULL);
	d.batch = nodes;
	return decide_run(&d, plan, r->brief);
}

int rules_place(struct rules *r, const struct rules_view *view, uint32_t home,
		const struct rules_request *request, struct rules_plan *plan)
{
	if (home >= view->count || rules_request_check(request) < 0)
		return -EINVAL;
	if (view->deferred)
		return -EBUSY;
	return rules_decide(r, view, home, request, NULL, r->brief, plan);
}

/* The response that decisions of this policy compare. */
static double expected_at(const struct rules_decision *d, uint32_t node)
{
	const struct rules_cell *c = &d->view->cells[node];
	struct rules_delay delay;

	if (d->rules->policy != RULES_LEAST_DELAY)
		return rules_response_at(d, c, node);
	rules_delay_at(d, c, node, &delay);
	return delay.response;
}

int rules_expect(struct rules *r, const struct rules_view *view, uint32_t home, uint32_t node,
		 const struct rules_request *request, struct rules_expectation *out)
{
	double there_ms, home_ms;
	struct rules_decision d;

	if (home >= view->count || node >= view->count || rules_request_check(request) < 0)
		return -EINVAL;
	rules_decision_init(&d, r, view, home, request, NULL);
	there_ms = home_ms = expected_at(&d, home);
	if (node != home)
		there_ms = expected_at(&d, node) + rules_cost_to(&d, &view->cells[node], node);
	*out = (struct rules_expectation){
		.there_factor = rules_factor_at(&d, node),
		.home_factor = rules_factor_at(&d, home),
		.known = (request->cpu_ms > 0 || d.requests > 0) && isfinite(there_ms) &&
			 isfinite(home_ms),
	};
	if (out->known) {
		out->there_ms = there_ms;
		out->home_ms = home_ms;
	}
	return 0;
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
	if (policy == RULES_WAL_FC && rules_feedback_init(r) < 0) {
		rules_free(r);
		return NULL;
	}
	return r;
}

void rules_brief(struct rules *r, bool brief)
{
	r->brief = brief;
}

void rules_reseed(struct rules *r, uint64_t seed)
{
	r->seed = seed;
}

void rules_free(struct rules *r)
{
	if (r == NULL)
		return;
	free(r->heap.items);
	free(r->holders.nodes);
	free(r->migrants);
	free(r->feedback.history);
	free(r);
}
