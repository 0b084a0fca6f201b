/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * COM-aware (MODEL 3.12) balances the resource that limits the home node.  It chooses once for
 * a job, with the job's p tasks counted at home:
 *
 *   L_COM = max(L_COM, L_CPU, L_Disk), all in ms (O-7):
 *     communication-intensive job: network; I/O-intensive job: disk; else CPU
 *   else memory short: memory; I/O-intensive job: disk;
 *     CPU-intensive: CPU; communication-intensive: network (O-29)
 *
 * Disk means IOCM-RE's homogeneous form, memory MEM-RE, CPU CPU-RE.  Network: the
 * master (task 0) stays, and each slave t in turn goes to
 *
 *   k = argmin L_COM(k)                 ties: fewest tasks of the job, least L_CPU
 *   if  L_COM(i) - L_COM(k) > R_COM(t)                                     (7)
 *   and r(i,t) > r(k,t) + R_COM(t) + e + m/b_net (+ data as in 2.3)        (8), E-4
 *
 * O-14: in (7) L_COM(i) counts the slaves still at home with their full demand.  Likewise the
 * queue of r(i,t) counts the tasks still to be placed, as all start at home (O-17).  Read
 * literally (com_decision 1), a slave beside its master has load 0.  If tasks start on nodes of
 * their own (parallel_start 1), i is the start node: it counts only its own load, and r(i,t)
 * includes R_COM(t), too.
 *
 * O-7 for a node that tells only loads, not tasks: each of its tasks counts with the computation
 * of the job's own, L_CPU R_CPU, and the disk's share of that time, L_IO E(s) R_CPU.
 */
#include <math.h>

#include "balancer/rules/rules_private.h"

enum stage {
	STAGE_NONE,
	STAGE_NETWORK,
	STAGE_MEMORY,
	STAGE_DISK,
	STAGE_CPU,
	STAGE_HOME,
};

enum com_decision {
	DECISION_DEMAND,  /* O-14 as described above */
	DECISION_LITERAL, /* (5) literally */
	DECISION_SPREAD,  /* first one task on each node */
};

static double policy_com_greater(double a, double b)
{
	return a > b ? a : b;
}

static const struct rules_request *policy_com_whole(const struct rules_decision *d)
{
	return d->job != NULL ? d->job->whole : d->request;
}

static double com_of(const struct rules_request *j, uint32_t task)
{
	return j->com_ms != NULL && task > 0 ? j->com_ms[task] : 0;
}

/* The sum of R_COM over all slaves of the job. */
static double com_demand(const struct rules_request *j)
{
	double sum = 0;

	for (uint32_t t = 1; t < j->tasks; t++)
		sum += com_of(j, t);
	return sum;
}

/* --- which resource ----------------------------------------------------------- */

static bool test(struct rules_decision *d, enum rules_criterion c, double left, double right)
{
	bool holds = rules_test_home(d, c, left, right);
	struct rules_job *job = d->job;

	if (job != NULL && job->com_ntests < sizeof(job->com_tests) / sizeof(job->com_tests[0]))
		job->com_tests[job->com_ntests++] =
			(struct rules_reason){c, d->home, left, right, holds};
	return holds;
}

/* R of the job's tasks (5.10), in ms; the disk's part before buffer hits. */
struct demand {
	double cpu, disk, com;
};

static struct demand demand_of(const struct rules_decision *d)
{
	const struct rules_request *j = policy_com_whole(d);
	const struct rules_cell *c = d->at_home;
	double kb = j->request_kb > 0 ? j->request_kb : c->request_kb;
	double service =
		c->disk_mb_per_s > 0 ? rules_service_ms(c->fixed_ms, kb, c->disk_mb_per_s) : 0;

	return (struct demand){
		.cpu = j->cpu_ms,
		.disk = d->requests * service,
		.com = j->tasks > 1 ? com_demand(j) / (j->tasks - 1) : 0,
	};
}

/* L_COM, L_CPU, L_Disk of the home node, including the job unless (5) is taken literally. */
static struct demand loads_of(const struct rules_decision *d, const struct demand *r)
{
	const struct rules_cell *c = d->at_home;
	const struct rules_request *j = policy_com_whole(d);
	double hits = d->params->rates == RULES_RATES_COMPUTATION ? rules_cell_hit_rate(c, j) : 0;
	struct demand l = {
		.cpu = c->timed ? c->cpu_ms : c->cpu * r->cpu,
		.disk = c->timed ? c->disk_ms : c->io * c->service * r->cpu,
		.com = c->com,
	};

	if (d->params->com_decision == DECISION_LITERAL)
		return l;
	l.cpu += j->tasks * r->cpu;
	l.disk += j->tasks * r->disk * (1 - hits);
	l.com += com_demand(j);
	return l;
}

static bool memory_short(struct rules_decision *d)
{
	const struct rules_cell *c = d->at_home;
	double with_job = c->memory + policy_com_whole(d)->tasks * d->request->memory_mb;

	return c->n_mem > 0 && test(d, RULES_C_MEM_OVERLOADED, with_job, c->n_mem);
}

/* O-28: takes the resource with the maximum, whatever kind of job it is. */
static enum stage strict_stage(struct rules_decision *d, const struct demand *l)
{
	if (memory_short(d))
		return STAGE_MEMORY;
	return test(d, RULES_C_DISK_FIRST, l->disk, l->cpu) ? STAGE_DISK : STAGE_CPU;
}

static enum stage choose_stage(struct rules_decision *d)
{
	struct demand r = demand_of(d), l = loads_of(d, &r);
	bool first = test(d, RULES_C_COM_FIRST, l.com, policy_com_greater(l.cpu, l.disk));

	if (d->params->com_strict_maximum)
		return first ? STAGE_NETWORK : strict_stage(d, &l);
	if (!first && memory_short(d))
		return STAGE_MEMORY;
	if (test(d, RULES_C_JOB_COM, r.com, policy_com_greater(r.cpu, r.disk)))
		return first || d->params->com_always_spread ? STAGE_NETWORK : STAGE_HOME;
	return test(d, RULES_C_JOB_IO, r.disk, r.cpu) ? STAGE_DISK : STAGE_CPU;
}

/* --- balancing the network ------------------------------------------------------ */

struct slave {
	uint32_t task;
	double com;	 /* R_COM(t) */
	double com_here; /* L_{t,p,COM} of (7) */
	double rest;	 /* L_COM(i) without com_here */
	double response; /* R_t^i */
	bool spread;	 /* take nodes without a task of the job, with no other test */
};

/*
 * Returns true if task T queues alone where it starts (O-17), not together with the rest of the
 * job.
 */
static bool starts_apart(const struct rules_decision *d)
{
	return d->params->parallel_start == 1;
}

/* The slave's communication on node K; it has none beside the master. */
static double com_time(const struct rules_decision *d, const struct slave *s, uint32_t k)
{
	if (!(s->com > 0) || k == d->job->nodes[0])
		return 0;
	/* O-13: scaled by L_COM(k) with t over t's own. */
	return d->params->com_port_contention ? s->com + d->view->cells[k].com : s->com;
}

/* L_COM(i) of the decision without task T. */
static double com_rest(const struct rules_decision *d, uint32_t t)
{
	const struct rules_request *j = policy_com_whole(d);
	double sum = d->job->com_home;

	if (d->params->com_decision == DECISION_LITERAL || starts_apart(d))
		return d->at_home->com;
	for (uint32_t u = 1; u < j->tasks; u++)
		if (u > t || (u < t && d->job->nodes[u] == d->home))
			sum += com_of(j, u);
	return sum;
}

/* r(i,t) with the unplaced tasks counted at home, too. */
static double response_at_home(const struct rules_decision *d, uint32_t t)
{
	struct rules_cell c = *d->at_home;
	double later = starts_apart(d) ? 0 : policy_com_whole(d)->tasks - 1 - t;
	double io = d->added_home.explicit_io + d->added_home.implicit_io;

	c.queue += later;
	c.io += later * io;
	c.io_tasks += io > 0 ? later : 0;
	c.memory += later * d->request->memory_mb;
	c.kb_per_ms += later * d->request->io_per_ms * d->request->request_kb;
	return rules_response_at(d, &c, d->home);
}

/*
 * R_{t,mig}: the cost to start t elsewhere: its image over the network, its data over both
 * disks.
 */
static double policy_com_cost_to(const struct rules_decision *d, const struct rules_cell *c,
				 uint32_t k)
{
	double from = d->at_home->network > 0 ? d->at_home->network : d->params->network_mb_per_s;
	double to = c->network > 0 ? c->network : d->params->network_mb_per_s;

	return rules_migration_cost_ms(d->params->fixed_cost_ms, d->request->memory_mb,
				       rules_moved_mb(d->request, k), from < to ? from : to,
				       d->at_home->disk_mb_per_s, c->disk_mb_per_s);
}

static bool test_response(const struct rules_decision *d, const struct slave *s,
			  struct rules_tests *t, uint32_t k)
{
	const struct rules_cell *c = &d->view->cells[k];
	double there = rules_response_at(d, c, k) + com_time(d, s, k),
	       cost = policy_com_cost_to(d, c, k);

	if (d->params->com_printed_cost)
		return rules_test(t, RULES_C_COM_RESPONSE, k, s->response + cost, there);
	return rules_test(t, RULES_C_COM_RESPONSE, k, s->response, there + cost);
}

static bool policy_com_judge(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t)
{
	const struct slave *s = arg;
	double com = d->view->cells[k].com;

	if (s->spread)
		return rules_test_eligible(d, t, k) &&
		       rules_test(t, RULES_C_NO_SIBLING, k, rules_job_tasks_at(d, k), 0);
	/* With this order of terms, equal nodes compare equal despite rounding. */
	if (!rules_test(t, RULES_C_COM_DISCREPANCY, k, (s->rest - com) + s->com_here, s->com_here))
		return false;
	return rules_test_eligible(d, t, k) && test_response(d, s, t, k);
}

static enum rules_criterion policy_com_hopeless(struct rules_decision *d, void *arg,
						const struct rules_bound *b)
{
	const struct slave *s = arg;

	if (!s->spread && !d->params->com_printed_cost && rules_response_floor(d, b) >= s->response)
		return RULES_C_COM_RESPONSE;
	return RULES_CRITERIA;
}

/*
 * Moves that candidate to the front which, among those with the least L_COM, has the fewest tasks
 * of the job.
 */
static void prefer_few_siblings(const struct rules_decision *d)
{
	struct rules_plan *plan = d->plan;
	const struct rules_cell *cells = d->view->cells;
	uint32_t best = 0, best_tasks = rules_job_tasks_at(d, plan->candidates[0]), k;

	for (uint32_t i = 1; i < plan->ncandidates && best_tasks > 0; i++) {
		if (cells[plan->candidates[i]].com != cells[plan->candidates[0]].com)
			break;
		if (rules_job_tasks_at(d, plan->candidates[i]) < best_tasks) {
			best = i;
			best_tasks = rules_job_tasks_at(d, plan->candidates[i]);
		}
	}
	if (best == 0)
		return;
	k = plan->candidates[best];
	for (uint32_t i = best; i > 0; i--)
		plan->candidates[i] = plan->candidates[i - 1];
	plan->candidates[0] = plan->node = plan->tied[0] = k;
	plan->ntied = 1;
}

static int contest(struct rules_decision *d, struct slave *s)
{
	struct rules_contest c = {
		.order = RULES_ORDER_COM,
		.judge = policy_com_judge,
		.arg = s,
		.limited_by = RULES_C_COM_DISCREPANCY,
		.limit = s->spread ? INFINITY : s->rest,
		.try_next = s->spread || d->params->try_next,
		.counts = true,
		.hopeless = policy_com_hopeless,
	};
	int ret = rules_contest_run(d, &c);

	if (ret <= 0 || rules_job_tasks_at(d, d->plan->node) == 0)
		return ret;
	/*
	 * Seldom the choice has a task of the job already.  Other nodes may be equally light:
	 * look again.
	 */
	if (d->brief) {
		d->brief = false;
		d->plan->ncandidates = 0;
		ret = rules_contest_run(d, &c);
		if (ret < 0)
			return ret;
	}
	prefer_few_siblings(d);
	return 1;
}

static int balance_network(struct rules_decision *d)
{
	struct slave s = {.task = d->job != NULL ? d->job->task : 0};
	int ret;

	if (s.task == 0) {
		rules_test_home(d, RULES_C_MASTER, 0, 0);
		return 0;
	}
	s.com = com_of(policy_com_whole(d), s.task);
	s.com_here = d->params->com_decision == DECISION_LITERAL ? 0 : s.com;
	s.rest = com_rest(d, s.task);
	s.response = response_at_home(d, s.task) + com_time(d, &s, d->home);
	s.spread = d->params->com_decision == DECISION_SPREAD;
	ret = contest(d, &s);
	if (ret != 0 || !s.spread)
		return ret;
	s.spread = false;
	return contest(d, &s);
}

int rules_policy_com(struct rules_decision *d)
{
	struct rules_job *job = d->job;
	enum stage stage;

	if (job == NULL || job->com_stage == STAGE_NONE) {
		if (job != NULL)
			job->com_home = d->at_home->com;
		stage = choose_stage(d);
		if (job != NULL)
			job->com_stage = stage;
	} else {
		stage = (enum stage)job->com_stage;
		for (uint32_t i = 0; i < job->com_ntests; i++)
			d->plan->reasons[d->plan->nreasons++] = job->com_tests[i];
	}
	switch (stage) {
	case STAGE_NETWORK:
		return balance_network(d);
	case STAGE_MEMORY:
		return rules_policy_mem_re(d);
	case STAGE_DISK:
		return rules_policy_iocm_re_hom(d);
	case STAGE_CPU:
		return rules_policy_cpu_re(d);
	default:
		return 0;
	}
}
