/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Places the tasks of a parallel job one after another (MODEL 3.0).  Each decision sees the view
 * charged with the tasks before it; at the end the view is restored.
 *
 *   Task 0 starts at home.  With parallel_start 0 the others start there, too; with 1 each
 *   starts on the node after its predecessor's.  The policy decides from there.     O-17
 *
 * Communication is charged by (5): a slave on another node than the master adds its traffic to
 * both nodes, a slave beside the master adds none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/rules/rules_private.h"

/* --- which nodes have tasks of the job --------------------------------------- */

static int holders_start(struct rules_holders *h, uint32_t tasks)
{
	uint32_t room = 16;

	while (room < 2 * (uint64_t)tasks && room < 1u << 31)
		room *= 2;
	if (room > h->room) {
		uint32_t *both = malloc(2 * (size_t)room * sizeof(*both));

		if (both == NULL)
			return -ENOMEM;
		free(h->nodes);
		h->nodes = both;
		h->tasks = both + room;
		h->room = room;
	}
	memset(h->nodes, 0, h->room * sizeof(*h->nodes));
	return 0;
}

/* The slot where NODE is, or would be. */
static uint32_t holder_slot(const struct rules_holders *h, uint32_t node)
{
	uint32_t at = node * 0x9e3779b1u & (h->room - 1);

	while (h->nodes[at] != 0 && h->nodes[at] != node + 1)
		at = (at + 1) & (h->room - 1);
	return at;
}

static void holders_add(struct rules_holders *h, uint32_t node)
{
	uint32_t at = holder_slot(h, node);

	h->tasks[at] = h->nodes[at] == 0 ? 1 : h->tasks[at] + 1;
	h->nodes[at] = node + 1;
}

uint32_t rules_job_tasks_at(const struct rules_decision *d, uint32_t node)
{
	const struct rules_holders *h = &d->rules->holders;
	uint32_t at;

	if (d->job == NULL || d->job->task == 0)
		return 0;
	at = holder_slot(h, node);
	return h->nodes[at] == 0 ? 0 : h->tasks[at];
}

/* --- placing ------------------------------------------------------------------- */

struct placing {
	struct rules *rules;
	struct rules_view *view;
	struct rules_plan *plan;
	struct rules_request task; /* the request of one task */
	struct rules_job job;
	uint32_t home, start; /* home of the job; start of the task */
	uint32_t *nodes;
	bool explained; /* PLAN is final */
};

/* The next node, round-robin, that accepts the task: where it starts without balancing. */
static uint32_t next_start(const struct placing *p)
{
	const struct rules_view *view = p->view;
	bool disk =
		rules_request_count(&p->task, p->rules->params.rates) > 0 || p->task.io_per_ms > 0;
	uint32_t fit = disk ? view->totals.accepting_disks : view->totals.accepting;
	uint32_t at = p->start;

	if (fit == 0)
		return p->home;
	do {
		at = at + 1 < view->count ? at + 1 : 0;
	} while (at != p->home &&
		 (!view->cells[at].accepts || (disk && !(view->cells[at].disk_mb_per_s > 0))));
	return at;
}

static void explain_start(struct placing *p)
{
	struct rules_plan *plan = p->plan;

	if (plan->nreasons < RULES_REASONS_MAX)
		plan->reasons[plan->nreasons++] = (struct rules_reason){
			.criterion = RULES_C_ROUND_ROBIN, .node = p->start, .holds = true};
}

static int job_decide(struct placing *p, struct rules_plan *plan, bool brief)
{
	return rules_decide(p->rules, p->view, p->start, &p->task, &p->job, brief, plan);
}

/* Decides where task p->job.task goes; for COM the plan explains the first slave that moves. */
static int place_task(struct placing *p, uint32_t *node)
{
	bool slaves = p->rules->policy == RULES_COM;
	uint32_t task = p->job.task;
	struct rules_plan other;
	int ret;

	if (task == 0) {
		ret = job_decide(p, p->plan, p->rules->brief);
		*node = p->plan->node;
		p->explained = !slaves;
		return ret;
	}
	ret = job_decide(p, &other, p->explained || p->rules->brief);
	*node = other.node;
	if (ret == 0 && !p->explained && !other.stayed) {
		*p->plan = other;
		p->explained = true;
	}
	return ret;
}

static int job_add_com(struct rules_view *view, uint32_t node, double com_ms)
{
	struct rules_cell cell = view->cells[node];

	if (com_ms == 0)
		return 0;
	cell.com += com_ms;
	return rules_view_replace(view, node, &cell);
}

/* Charges the view with task p->job.task on NODE. */
static int charge_task(struct placing *p, uint32_t node)
{
	struct rules_request alone = p->task;
	uint32_t master = p->nodes[0];
	double com = p->job.task > 0 && node != master && alone.com_ms ? alone.com_ms[0] : 0;
	int ret;

	alone.com_ms = NULL;
	alone.ncorrections = 0;
	alone.nheld = 0;
	alone.shared = (struct rules_shared){0};
	ret = rules_view_charge(p->view, node, &alone);
	if (ret == 0)
		ret = job_add_com(p->view, node, com);
	return ret < 0 ? ret : job_add_com(p->view, master, com);
}

static int place_tasks(struct placing *p)
{
	const struct rules_request *whole = p->job.whole;
	bool round_robin = p->rules->params.parallel_start == 1;

	for (uint32_t t = 0; t < whole->tasks; t++) {
		uint32_t node;
		int ret;

		p->job.task = t;
		p->task.com_ms = whole->com_ms != NULL ? &whole->com_ms[t] : NULL;
		if (t > 0 && round_robin)
			p->start = next_start(p);
		ret = place_task(p, &node);
		if (ret < 0)
			return ret;
		if (t == 1 && round_robin && !p->rules->brief)
			explain_start(p);
		p->nodes[t] = node;
		if (t + 1 == whole->tasks)
			break;
		holders_add(&p->rules->holders, node);
		rules_unheld_remove(&p->rules->unheld, node);
		ret = charge_task(p, node);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int rules_place_job(struct rules *r, struct rules_view *view, uint32_t home,
		    const struct rules_request *request, struct rules_plan *plan, uint32_t *nodes)
{
	struct placing p = {
		.rules = r,
		.view = view,
		.plan = plan,
		.task = *request,
		.job = {.whole = request, .home = home, .nodes = nodes},
		.home = home,
		.start = home,
		.nodes = nodes,
	};
	size_t begin;
	int ret;

	if (home >= view->count || rules_request_check(request) < 0)
		return -EINVAL;
	if (view->deferred)
		return -EBUSY;
	p.task.tasks = 1;
	if (r->policy == RULES_BS)
		return rules_decide_batch(r, view, home, request, plan, nodes);
	ret = holders_start(&r->holders, request->tasks);
	if (ret < 0)
		return ret;
	begin = rules_journal_begin(view);
	ret = place_tasks(&p);
	rules_journal_undo(view, begin);
	rules_unheld_free(&r->unheld);
	return ret;
}
