/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See moves.h. */
#include "agent/moves/moves.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/moves/moves_cost.h"
#include "agent/moves/moves_tasks.h"
#include "user/clock.h"

#define LOOK_NS	  (2 * CLOCK_NS_PER_S)
#define SETTLE_NS (2 * CLOCK_NS_PER_S)	 /* until loads show that a job has left */
#define PERIODS	  4			 /* but at least so many periods of the monitor */
#define YOUNG_NS  (3 * CLOCK_NS_PER_S)	 /* until it is seen what a job does */
#define BEGIN_NS  (20 * CLOCK_NS_PER_S)	 /* by then home has let a job go */
#define MOST_NS	  (750 * CLOCK_NS_PER_S) /* by then its shim has given up */
#define MINUTE_NS (60 * CLOCK_NS_PER_S)
#define FIXED_MS  300 /* f of 2.4 before the first move, as measured here */
#define MB_PER_S  125 /* b, assumed beside the first moves to a node */
#define AGREE	  2   /* looks in a row that must name a job */

struct moves_rest {
	char job[SPEC_JOB_MAX];
	uint64_t until_ns;
};

struct moves_made {
	uint64_t ns;
	double mb;
};

struct moves_node {
	char name[IOCOM_NAME_MAX];
	uint64_t used; /* the number of its last move */
	struct moves_cost cost;
};

struct moves {
	const struct base *base;
	struct moves_config config;
	uint64_t look_ns; /* the next look */
	unsigned agreed;
	uint64_t seed;
	/* The job that is leaving; "": none. */
	char job[SPEC_JOB_MAX];
	uint64_t asked_ns;
	bool began;
	char before[SPEC_JOB_MAX]; /* the last one, which may have left just now */
	char named[SPEC_JOB_MAX];  /* by the look before */
	char named_to[IOCOM_NAME_MAX];
	size_t njobs; /* of the last look */
	struct moves_rest rests[MOVES_RESTS_MAX];
	size_t nrests;
	struct moves_made made[MOVES_BUDGET_MAX]; /* within the last minute */
	size_t nmade;
	struct moves_node nodes[MOVES_NODES_MAX];
	size_t nnodes;
	uint64_t number; /* of moves that were learned from */
};

/* What one look has, for one policy. */
struct moves_look {
	struct cluster_view *view;
	struct view_policy policy;
	struct rules_task tasks[MOVES_JOBS_MAX];
	const struct guest_running *jobs[MOVES_JOBS_MAX]; /* of the tasks */
	size_t n;
	struct rules_path paths[MOVES_NODES_MAX];
	size_t npaths;
};

int moves_new(struct moves **out, const struct moves_config *config, struct iocom_err *err)
{
	struct moves *m = calloc(1, sizeof(*m));

	if (!m)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	m->config = *config;
	m->base = config->base;
	m->seed = m->base->boot_id;
	*out = m;
	return 0;
}

void moves_free(struct moves *m)
{
	free(m);
}

void moves_count(const struct moves *m, struct moves_counts *counts)
{
	*counts = (struct moves_counts){m->njobs, m->nrests, m->nnodes, m->nmade};
}

/* --- jobs that rest, the budget ---------------------------------------------------------- */

static struct moves_rest *rest_of(struct moves *m, const char *job)
{
	for (size_t i = 0; i < m->nrests; i++)
		if (!strcmp(m->rests[i].job, job))
			return &m->rests[i];
	return NULL;
}

/* JOB is left alone for a while; where there is no room, the one that would be free soonest is. */
static void rest_begin(struct moves *m, const char *job, uint64_t now)
{
	struct moves_rest *rest = rest_of(m, job);

	if (!rest && m->nrests < MOVES_RESTS_MAX)
		rest = &m->rests[m->nrests++];
	if (!rest) {
		rest = &m->rests[0];
		for (size_t i = 1; i < MOVES_RESTS_MAX; i++)
			if (m->rests[i].until_ns < rest->until_ns)
				rest = &m->rests[i];
		m->base->counters->moves_rests_replaced++;
	}
	snprintf(rest->job, sizeof(rest->job), "%s", job);
	rest->until_ns = now + m->base->set->moves.pause_s * CLOCK_NS_PER_S;
}

static void rests_expire(struct moves *m, uint64_t now)
{
	for (size_t i = 0; i < m->nrests;)
		if (m->rests[i].until_ns <= now)
			m->rests[i] = m->rests[--m->nrests];
		else
			i++;
}

static void budget_expire(struct moves *m, uint64_t now)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->nmade; i++)
		if (now - m->made[i].ns < MINUTE_NS)
			m->made[kept++] = m->made[i];
	m->nmade = kept;
}

/* Whether one more move, of MB, is within what a minute may have. */
static bool budget_has(const struct moves *m, double mb)
{
	const struct settings_moves *set = &m->base->set->moves;
	double sum = mb;

	for (size_t i = 0; i < m->nmade; i++)
		sum += m->made[i].mb;
	/* One that is larger than all of it alone goes alone. */
	return m->nmade < set->a_minute && (sum <= set->mb_a_minute || !m->nmade);
}

/* --- what moves cost ------------------------------------------------------------------------ */

static struct moves_node *node_known(struct moves *m, const char *name)
{
	for (size_t i = 0; i < m->nnodes; i++)
		if (!strcmp(m->nodes[i].name, name))
			return &m->nodes[i];
	return NULL;
}

/* The node that was not moved to for longest makes room. */
static struct moves_node *node_make(struct moves *m, const char *name)
{
	struct moves_node *node = &m->nodes[0];

	if (m->nnodes < MOVES_NODES_MAX) {
		node = &m->nodes[m->nnodes++];
	} else {
		for (size_t i = 1; i < MOVES_NODES_MAX; i++)
			if (m->nodes[i].used < node->used)
				node = &m->nodes[i];
		m->base->counters->moves_nodes_replaced++;
	}
	*node = (struct moves_node){0};
	snprintf(node->name, sizeof(node->name), "%s", name);
	moves_cost_begin(&node->cost, FIXED_MS, MB_PER_S);
	return node;
}

static void moves_over(struct moves *m, uint64_t now)
{
	uint64_t settle_ns = (uint64_t)(PERIODS * m->base->set->period_s * CLOCK_NS_PER_S);

	memcpy(m->before, m->job, sizeof(m->before));
	m->job[0] = 0;
	m->agreed = 0;
	m->look_ns = now + (settle_ns > SETTLE_NS ? settle_ns : SETTLE_NS);
}

void moves_left(void *arg, const char *job, const char *target, uint64_t frozen_ms, uint64_t bytes)
{
	struct moves *m = arg;
	struct moves_node *node = node_known(m, target);
	uint64_t now = loop_boot_ns(m->base->loop);
	double mb = (double)bytes / 1e6;

	if (!*target) /* an agent that began meanwhile does not know */
		return;
	if (!node)
		node = node_make(m, target);
	node->used = ++m->number;
	moves_cost_learn(&node->cost, mb, (double)frozen_ms);
	if (strcmp(m->job, job) != 0 && strcmp(m->before, job) != 0)
		return;
	budget_expire(m, now);
	if (m->nmade < MOVES_BUDGET_MAX)
		m->made[m->nmade++] = (struct moves_made){now, mb};
	if (!strcmp(m->job, job))
		moves_over(m, now);
}

/* --- a look ------------------------------------------------------------------------------- */

/* Whether JOB is one that the policy may move now. */
static bool look_takes(struct moves *m, const struct guest_running *job)
{
	uint64_t real_ns = loop_real_ns(m->base->loop);
	uint64_t age_ns = real_ns > job->since_ns ? real_ns - job->since_ns : 0;
	uint64_t pause_ns = m->base->set->moves.pause_s * CLOCK_NS_PER_S;

	return job->may_move && age_ns >= YOUNG_NS && (!job->came || age_ns >= pause_ns) &&
	       !rest_of(m, job->job);
}

/* Takes those of the N JOBS that have the policy of L. */
static void look_tasks(struct moves *m, struct moves_look *l, const struct guest_running *jobs,
		       size_t n)
{
	const struct iocom_vector *own = cluster_view_vector(l->view, 0);
	uint64_t real_ns = loop_real_ns(m->base->loop);

	l->n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct guest_running *job = &jobs[i];
		double kb = job->requests > 0 ? job->moved_mb * 1e3 / job->requests : 0;
		double disk_ms =
			own->disks && own->disk_mb_per_s > 0
				? rules_service_ms(own->disk_fixed_ms, kb, own->disk_mb_per_s)
				: 0;

		if (strcasecmp(job->policy, l->policy.name) != 0 || !look_takes(m, job))
			continue;
		l->jobs[l->n] = job;
		moves_task(job, m->config.cpu_speed, (double)(real_ns - job->since_ns) / 1e6,
			   disk_ms, &l->tasks[l->n++]);
	}
}

/* What is known of ways to nodes, in their order. */
static void look_paths(struct moves *m, struct moves_look *l)
{
	l->npaths = 0;
	for (uint32_t i = 1; m->nnodes && i < cluster_view_count(l->view); i++) {
		const struct moves_node *node =
			node_known(m, cluster_view_vector(l->view, i)->name);
		struct rules_path *path = &l->paths[l->npaths];

		if (!node)
			continue;
		path->node = i;
		moves_cost_tell(&node->cost, &path->fixed_ms, &path->mb_per_s);
		l->npaths++;
	}
}

/* The test that MOVE has passed, or NULL. */
static const struct rules_reason *look_reason(const struct rules_plan *plan,
					      const struct rules_move *move)
{
	for (uint32_t i = 0; i < plan->nreasons; i++) {
		const struct rules_reason *r = &plan->reasons[i];

		if (r->node == move->to && r->holds &&
		    (r->criterion == RULES_C_MIGRANT || r->criterion == RULES_C_MIGRANT_AGE))
			return r;
	}
	return NULL;
}

static void moves_told(void *arg, const char *job, bool goes, const char *why)
{
	struct moves *m = arg;

	if (goes || strcmp(m->job, job) != 0)
		return;
	rest_begin(m, job, loop_boot_ns(m->base->loop));
	m->base->counters->policy_moves_stayed++;
	log_provoked(m->base->log, LOG_L_INFO, "job %s was to leave, and stays: %s", job, why);
	moves_over(m, loop_boot_ns(m->base->loop));
}

/* Asks that the job of MOVE leaves.  WHY is the test that it has passed. */
static void look_ask(struct moves *m, const struct moves_look *l, const struct rules_move *move,
		     const struct rules_reason *why)
{
	const struct guest_running *job = l->jobs[move->task];
	bool times = why->criterion == RULES_C_MIGRANT;
	struct peer_away away = {.cost_ms = move->cost_ms};
	struct iocom_err err = {0};

	snprintf(away.node, sizeof(away.node), "%s", cluster_view_vector(l->view, move->to)->name);
	snprintf(away.cause, sizeof(away.cause), "%s", l->policy.name);
	if (times) {
		away.here_ms = why->left;
		away.there_ms = why->right > move->cost_ms ? why->right - move->cost_ms : 0;
	}
	memcpy(m->job, job->job, sizeof(m->job));
	m->asked_ns = loop_boot_ns(m->base->loop);
	m->began = false;
	m->base->counters->policy_moves++;
	log_write(m->base->log, LOG_L_INFO,
		  "job %s should go on at node %s, by %s: %.1f s here, %.1f s there with %.1f s "
		  "for the move",
		  job->job, away.node, away.cause, away.here_ms / 1e3,
		  (away.there_ms + away.cost_ms) / 1e3, away.cost_ms / 1e3);
	if (m->config.ports.away(m->config.ports.arg, job->job, &away, moves_told, m, &err))
		moves_told(m, job->job, false, err.text);
}

/* Whether the look before named JOB and NODE, too. */
static bool look_agrees(struct moves *m, const char *job, const char *node)
{
	bool agrees = !strcmp(m->named, job) && !strcmp(m->named_to, node);

	snprintf(m->named, sizeof(m->named), "%s", job);
	snprintf(m->named_to, sizeof(m->named_to), "%s", node);
	return agrees;
}

/* Returns true if a job of L's policy should leave; it does if the looks agree. */
static bool look_decide(struct moves *m, struct moves_look *l)
{
	const struct cluster_view_costs costs = {FIXED_MS, l->paths, l->npaths};
	const struct rules_reason *why = NULL;
	struct rules_move move;
	struct rules_plan plan;

	if (!l->n || cluster_view_migrate(l->view, l->policy.policy, &costs, l->tasks, l->n,
					  ++m->seed, &move, &plan) <= 0)
		return false;
	why = look_reason(&plan, &move);
	if (!why || why->left <= (1 + m->base->set->moves.gain) * why->right)
		return false;
	if (!budget_has(m, l->tasks[move.task].memory_mb)) {
		m->base->counters->policy_moves_held++;
		return false;
	}
	if (!look_agrees(m, l->jobs[move.task]->job, cluster_view_vector(l->view, move.to)->name))
		m->agreed = 0;
	if (++m->agreed >= AGREE)
		look_ask(m, l, &move, why);
	return true;
}

/* Whether job I may leave, and is the first such one that has its policy. */
static bool look_is_first(struct moves *m, const struct guest_running *jobs, size_t i)
{
	size_t first = 0;

	if (!look_takes(m, &jobs[i]))
		return false;
	while (strcmp(jobs[first].policy, jobs[i].policy) != 0 || !look_takes(m, &jobs[first]))
		first++;
	return first == i;
}

/* The policies of the jobs one after the other, until one names a job. */
static void moves_look(struct moves *m, const struct guest_running *jobs, size_t n)
{
	struct moves_look *l = calloc(1, sizeof(*l));
	bool named = false;

	for (size_t i = 0; l && i < n && !named; i++) {
		struct iocom_err ignored;

		if (!look_is_first(m, jobs, i) ||
		    view_policy_parse(jobs[i].policy, &l->policy, &ignored) ||
		    !rules_policy_migrates(l->policy.policy))
			continue;
		l->view = m->config.ports.look(m->config.ports.arg, l->policy.feedback);
		if (!l->view)
			break;
		look_tasks(m, l, jobs, n);
		look_paths(m, l);
		named = look_decide(m, l);
	}
	if (!named)
		m->agreed = 0;
	free(l);
}

/* What has become of the job that is leaving?  Returns true while it is on its way. */
static bool moves_watch(struct moves *m, const struct guest_running *jobs, size_t n, uint64_t now)
{
	size_t i = 0;

	if (!m->job[0])
		return false;
	while (i < n && strcmp(jobs[i].job, m->job) != 0)
		i++;
	if (i < n && jobs[i].moves && now - m->asked_ns < MOST_NS) {
		m->began = true;
		return true;
	}
	if (i < n && !m->began && now - m->asked_ns < BEGIN_NS)
		return true;
	if (i < n)
		moves_told(m, m->job, false, "`iocom explain` says why");
	else
		moves_over(m, now); /* it has ended, or leaves just now */
	return true;
}

void moves_chores(struct moves *m)
{
	uint64_t now = loop_boot_ns(m->base->loop);
	struct guest_running *jobs;

	if (now < m->look_ns || !m->base->set->moves.a_minute)
		return;
	m->look_ns = now + LOOK_NS;
	rests_expire(m, now);
	budget_expire(m, now);
	jobs = calloc(MOVES_JOBS_MAX, sizeof(*jobs));
	if (!jobs)
		return;
	m->njobs = m->config.ports.running(m->config.ports.arg, jobs, MOVES_JOBS_MAX);
	m->base->counters->moves_left_out += m->njobs == MOVES_JOBS_MAX;
	if (!moves_watch(m, jobs, m->njobs, now))
		moves_look(m, jobs, m->njobs);
	free(jobs);
}
