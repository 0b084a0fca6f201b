/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Goes from a view to a decision; see view_decide.h. */
#include "balancer/view/view_decide.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int view_policy_parse(const char *name, struct view_policy *policy, struct iocom_err *err)
{
	char known[400] = "";

	if (!rules_policy_parse_feedback(name, &policy->policy, &policy->feedback)) {
		snprintf(policy->name, sizeof(policy->name), "%s%s",
			 policy->feedback && policy->policy != RULES_WAL_FC ? "feedback+" : "",
			 rules_policy_name(policy->policy));
		return 0;
	}
	for (int i = 0; i < RULES_POLICIES; i++) {
		size_t n = strlen(known);

		snprintf(known + n, sizeof(known) - n, "%s%s", i ? " " : "",
			 rules_policy_name((enum rules_policy)i));
	}
	return iocom_err_set(err, -EINVAL,
			     "unknown policy '%.60s'; known: %s, and feedback+ before any of them",
			     name, known);
}

int view_index(const struct view_file *view, const struct view_policy *policy,
	       struct rules_view **out, struct iocom_err *err)
{
	struct rules_view *v = rules_view_new();
	int rc = v ? 0 : -ENOMEM;

	if (v) {
		rules_view_rates(v, view->params.rates);
		rules_view_reference(v, view->params.reference_mips);
	}
	if (v && policy)
		rc = rules_view_keep(v, policy->policy, &view->params);
	for (uint32_t i = 0; i < view->nnodes && !rc; i++) {
		const struct view_node *n = &view->nodes[i];

		rc = rules_view_set(v, i, &n->node);
		for (size_t j = 0; j < n->ncharged && !rc; j++)
			rc = rules_view_charge(v, i, &n->charged[j]);
		if (rc == -EINVAL)
			iocom_err_set(err, rc,
				      "nodes[%u]: its loads are out of the range of the rules", i);
	}
	if (!rc) {
		*out = v;
		return 0;
	}
	rules_view_free(v);
	return rc == -EINVAL ? rc : iocom_err_set(err, rc, "out of memory");
}

/* Makes a running task from one task of the job. */
static struct rules_task task_of(const struct rules_request *job, uint32_t i)
{
	return (struct rules_task){
		.cpu_ms = job->cpu_ms,
		.io_per_ms = job->io_per_ms,
		.request_kb = job->request_kb,
		.reaccess = job->reaccess,
		.memory_mb = job->memory_mb,
		.faults_per_ms = job->faults_per_ms,
		.initial_mb = job->initial_mb,
		.written_mb = job->written_mb,
		.com_ms = job->com_ms ? job->com_ms[i] : 0,
	};
}

/*
 * Lists the tasks of home after the placement, and charges every node with the tasks that it got.
 */
static int view_decide_settle(struct rules_view *nodes, const struct view_question *q,
			      const struct view_decision *d, struct rules_task **out, size_t *n)
{
	const struct rules_node *home = q->home_node;
	struct rules_task *tasks = calloc(home->ntasks + d->ntasks + 1, sizeof(*tasks));
	struct rules_request one = *q->job;
	int rc = 0;

	if (!tasks)
		return -ENOMEM;
	one.tasks = 1;
	one.com_ms = NULL;
	*n = home->ntasks;
	if (home->ntasks)
		memcpy(tasks, home->tasks, home->ntasks * sizeof(*tasks));
	for (uint32_t i = 0; i < d->ntasks && !rc; i++) {
		if (d->nodes[i] == q->home)
			tasks[(*n)++] = task_of(q->job, i);
		rc = rules_view_charge(nodes, d->nodes[i], &one);
	}
	*out = tasks;
	return rc;
}

static int view_decide_move(struct rules_view *nodes, const struct view_question *q,
			    struct rules *rules, struct view_decision *d)
{
	struct rules_task *tasks = NULL;
	size_t n = 0;
	int rc = view_decide_settle(nodes, q, d, &tasks, &n);

	if (!rc) {
		d->moves = calloc(n + 1, sizeof(*d->moves));
		rc = d->moves ? rules_migrate(rules, nodes, q->home, tasks, n, d->moves, n,
					      &d->nmoves, NULL)
			      : -ENOMEM;
	}
	free(tasks);
	return rc;
}

/* NODES has the placement only while the rules say which tasks should move after it. */
static int view_decide_migrate(struct rules_view *nodes, const struct view_question *q,
			       struct rules *rules, struct view_decision *d)
{
	int rc = rules_view_mark(nodes);

	if (rc)
		return rc;
	rc = view_decide_move(nodes, q, rules, d);
	rules_view_rollback(nodes);
	return rc;
}

static int view_decide_attach(const struct view_question *q, const struct view_policy *policy,
			      struct rules *rules)
{
	const struct rules_node *home = q->home_node;

	/* Without memory there is no buffer to set, and the weights are those of the policy. */
	if (!policy->feedback || !(home->ram_mb > 0))
		return 0;
	return rules_feedback(rules, home->ram_mb, home->buffer_mb);
}

/* Places a job that has pairs, all tasks at once.  Returns 0, -ERANGE: too few slots, or an error.
 */
static int view_decide_gang(struct rules_view *nodes, const struct view_question *q,
			    struct rules *rules, struct view_decision *d)
{
	struct rules_gang gang = {.pairs = q->job->pairs,
				  .npairs = q->job->npairs,
				  .ports = q->ports,
				  .phases = q->job->phases};
	uint32_t count = rules_view_count(nodes);
	struct rules_port *idle = NULL;
	int rc;

	if (!gang.ports) {
		idle = calloc(count, sizeof(*idle));
		if (!idle)
			return -ENOMEM;
		for (uint32_t i = 0; i < count; i++)
			idle[i].slots = q->job->tasks;
		gang.ports = idle;
	}
	rc = rules_place_gang(rules, nodes, q->home, q->job, &gang, &d->gang, d->nodes);
	free(idle);
	if (rc)
		return rc > 0 ? -ERANGE : rc;
	d->is_gang = true;
	d->plan = d->gang.why;
	return 0;
}

static int view_decide_place(struct rules_view *nodes, const struct view_question *q,
			     struct view_decision *d)
{
	struct rules *rules = rules_new(d->policy.policy, q->params, q->seed);
	int rc = rules ? view_decide_attach(q, &d->policy, rules) : -ENOMEM;

	d->nodes = calloc(q->job->tasks + 1, sizeof(*d->nodes));
	if (!rc && !d->nodes)
		rc = -ENOMEM;
	if (!rc && (q->ports || (q->job->npairs && q->job->tasks > 1)))
		rc = view_decide_gang(nodes, q, rules, d);
	else if (!rc)
		rc = rules_place_job(rules, nodes, q->home, q->job, &d->plan, d->nodes);
	d->ntasks = rc || d->plan.queued ? 0 : q->job->tasks;
	if (!rc && d->ntasks)
		rc = rules_expect(rules, nodes, q->home, d->plan.node, q->job, &d->expectation);
	if (!rc && d->ntasks && rules_policy_migrates(d->policy.policy))
		rc = view_decide_migrate(nodes, q, rules, d);
	rules_free(rules);
	return rc;
}

int view_decide_on(struct rules_view *nodes, const struct view_question *q,
		   const struct view_policy *policy, struct view_decision *d, struct iocom_err *err)
{
	uint64_t slots;
	int rc;

	memset(d, 0, sizeof(*d));
	d->policy = *policy;
	d->view = nodes;
	d->home = q->home;
	d->rates = q->params->rates;
	rc = view_decide_place(nodes, q, d);
	if (!rc)
		return 0;
	slots = d->gang.slots;
	view_decision_fini(d);
	if (rc == -ERANGE)
		return iocom_err_set(err, rc,
				     "%u tasks do not fit: the nodes that accept jobs have %llu "
				     "slots for them, or less memory than that",
				     q->job->tasks, (unsigned long long)slots);
	return iocom_err_set(err, rc, "cannot decide by %s where the job runs: %s", policy->name,
			     strerror(-rc));
}

static struct rules_port *view_ports(const struct view_file *view)
{
	struct rules_port *ports = calloc(view->nnodes, sizeof(*ports));

	for (uint32_t i = 0; ports && i < view->nnodes; i++) {
		const struct rules_node *n = &view->nodes[i].node;

		ports[i] = (struct rules_port){.mb_per_s = n->network_mb_per_s,
					       .slots = view->job.tasks};
		if (!n->has_port)
			continue;
		ports[i].busy_mb_per_s = n->port.busy_mb_per_s;
		ports[i].round_trip_ms = n->port.round_trip_ms;
		if (n->port.slots >= 0 && n->port.slots < view->job.tasks)
			ports[i].slots = (uint32_t)n->port.slots;
	}
	return ports;
}

int view_decide(const struct view_file *view, const struct view_policy *policy,
		struct view_decision *decision, struct iocom_err *err)
{
	struct view_question q = {
		.params = &view->params,
		.job = &view->job,
		.seed = view->seed,
		.home = view->home,
		.home_node = &view->nodes[view->home].node,
	};
	struct rules_port *ports = NULL;
	struct rules_view *nodes;
	int rc = view_index(view, policy, &nodes, err);

	if (rc)
		return rc;
	/* Only the view of a gang's decision has ports. */
	if (view->job.npairs || view->nodes[view->home].node.has_port) {
		ports = view_ports(view);
		rc = ports ? 0 : -ENOMEM;
	}
	q.ports = ports;
	if (!rc)
		rc = view_decide_on(nodes, &q, policy, decision, err);
	free(ports);
	if (rc)
		rules_view_free(nodes);
	else
		decision->built = nodes;
	return rc;
}

int view_expect(const struct rules_view *nodes, const struct view_question *q,
		enum rules_policy policy, const uint32_t *at, size_t n,
		struct rules_expectation *out)
{
	struct rules *rules = rules_new(policy, q->params, q->seed);
	int rc = rules ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !rc; i++) {
		out[i] = (struct rules_expectation){.known = false};
		if (at[i] < rules_view_count(nodes))
			rc = rules_expect(rules, nodes, q->home, at[i], q->job, &out[i]);
	}
	rules_free(rules);
	return rc;
}

void view_decision_fini(struct view_decision *d)
{
	free(d->nodes);
	free(d->moves);
	rules_view_free(d->built);
	memset(d, 0, sizeof(*d));
}
