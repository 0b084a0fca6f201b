/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Zatti's matching (MODEL 3.14, 3.15): it tries the home node, then takes the first fit in the
 * a.matrix (zatti_index.c), which is the best fit in memory.
 *
 *   forwarded hop_max times, or a light job (r = 0)             run on i
 *   what the job needs is below the local thresholds at home    run on i
 *   binary: for the slots with (slot & r) = r, r itself first;
 *   real:   for cpu interval from r.cpu up, for i/o interval from r.io up:
 *     in ascending free memory: thresholds of k hold            run on k
 *
 * O-32: the remote threshold is the local one less the delta; or (relative) it is the local one,
 * and k's load must be below home's by more than the delta, tested only for the resources that
 * home lacks.  The real form adds what the job will use: one process in the run queue (or its
 * cpu% of a core), its i/o rate.  The seed picks among equally free nodes.
 */
#include <errno.h>
#include <float.h>
#include <math.h>

#include "balancer/rules/zatti.h"

struct match {
	const struct rules_zatti_index *index;
	struct rules_zatti_vector need;
	struct rules_zatti_query query;
	uint32_t first_slot; /* the slot of the first fit */
};

static double cpu_of(const struct match *m, const struct rules_cell *c)
{
	return rules_zatti_cpu(&m->index->cuts, m->index->real, c);
}

/* The thresholds of a node: the highest loads at which the job does well there. */
static double cpu_threshold(const struct rules_decision *d, const struct match *m, bool remote)
{
	const struct rules_params *p = d->params;
	double delta = remote && !p->zatti_relative ? p->zatti_queue_delta : 0;

	if (!p->zatti_idle)
		return p->zatti_queue - delta;
	return m->index->real ? 100 - m->need.cpu_percent : 100 - p->zatti_idle_percent;
}

static double io_threshold(const struct rules_decision *d, bool remote)
{
	const struct rules_params *p = d->params;
	double delta = remote && !p->zatti_relative ? p->zatti_blocks_delta : 0;

	return p->zatti_blocks_per_s - delta;
}

/* Returns true if home is good enough; otherwise prepares the query for other nodes. */
static bool local(struct rules_decision *d, struct match *m)
{
	const struct rules_cell *c = d->at_home;
	double cpu = cpu_of(m, c), io = rules_zatti_io(c), free_mb = rules_zatti_free_mb(c);
	bool relative = d->params->zatti_relative;
	bool good = true;

	if (m->need.cpu && rules_test_home(d, RULES_C_LOCAL_CPU, cpu, cpu_threshold(d, m, false))) {
		if (relative && !d->params->zatti_idle)
			m->query.cpu_below = cpu - d->params->zatti_queue_delta;
		good = false;
	}
	if (m->need.io && c->disk_mb_per_s > 0 &&
	    rules_test_home(d, RULES_C_LOCAL_IO, io + m->query.io_need, io_threshold(d, false))) {
		if (relative)
			m->query.io_below = io - d->params->zatti_blocks_delta;
		good = false;
	}
	if (isfinite(free_mb) &&
	    rules_test_home(d, RULES_C_LOCAL_MEMORY, m->need.memory_mb, free_mb))
		good = false;
	return good;
}

static void query_init(const struct rules_decision *d, struct match *m)
{
	m->query = (struct rules_zatti_query){
		.memory_mb = m->need.memory_mb,
		.io_need = m->index->real && m->need.io ? m->need.blocks_per_s : 0,
		.cpu_most = m->need.cpu ? cpu_threshold(d, m, true) : INFINITY,
		.io_most = m->need.io ? io_threshold(d, true) : INFINITY,
		.cpu_below = INFINITY,
		.io_below = INFINITY,
		.home = d->home,
		.salt = d->salt,
		.found = d->plan->candidates,
		.room = d->brief ? 1 : RULES_EXAMINED_MAX,
	};
	if (d->does_io && !m->need.io)
		m->query.io_most = DBL_MAX / 2; /* any load is fine, but there must be a disk */
}

static void policy_zatti_collect(struct match *m, uint32_t slot)
{
	bool none = m->query.n == 0;

	rules_zatti_collect(m->index, slot, &m->query);
	if (none && m->query.n > 0)
		m->first_slot = slot;
}

static void match_binary(const struct rules_decision *d, struct match *m)
{
	uint32_t key = 2u * m->need.cpu + m->need.io;

	for (uint32_t slot = key; slot < m->index->nslots; slot++)
		if ((slot & key) == key && (slot == key || d->params->zatti_superset))
			policy_zatti_collect(m, slot);
}

/* The first intervals that may have fitting nodes: those of the highest allowed loads. */
static uint32_t first_row(const struct match *m)
{
	const struct rules_zatti_query *q = &m->query;

	return rules_zatti_interval(m->index,
				    q->cpu_most < q->cpu_below ? q->cpu_most : q->cpu_below,
				    m->index->cuts.cpu_top);
}

static uint32_t first_column(const struct match *m)
{
	const struct rules_zatti_query *q = &m->query;
	double most = q->io_most - q->io_need, top = m->index->cuts.io_top;

	/*
	 * Leave room for rounding, as the need is added to the loads and not taken off the
	 * limit.
	 */
	most += 1e-9 * (top + q->io_need);
	return rules_zatti_interval(m->index, most < q->io_below ? most : q->io_below, top);
}

static void match_real(struct match *m)
{
	const struct rules_zatti_index *x = m->index;
	const struct rules_zatti_query *q = &m->query;
	uint32_t row = first_row(m), column = first_column(m);

	for (; row < x->nrows && q->n < q->room; row++) {
		if (x->row_sizes[row] == 0)
			continue;
		for (uint32_t i = column; i < x->nrows && q->n < q->room; i++)
			policy_zatti_collect(m, row * x->nrows + i);
	}
}

/* --- reasons -------------------------------------------------------------------- */

/* Makes the tests that the index implies by its order one by one.  Returns whether K fits. */
static bool policy_zatti_judge(const struct rules_decision *d, const struct match *m, uint32_t k,
			       struct rules_tests *t)
{
	const struct rules_cell *c = &d->view->cells[k];
	const struct rules_zatti_query *q = &m->query;
	double cpu = cpu_of(m, c), io = rules_zatti_io(c), free_mb = rules_zatti_free_mb(c);
	int sent = (m->need.cpu ? c->spent_cpu : 0) + (m->need.io ? c->spent_io : 0);

	if (!rules_test(t, RULES_C_ACCEPTS, k, c->accepts, 1))
		return false;
	if (d->does_io && !rules_test(t, RULES_C_HAS_DISK, k, c->disk_mb_per_s, 0))
		return false;
	if (!m->index->real && !rules_test(t, RULES_C_SENT, k, sent, 0))
		return false;
	if (m->need.cpu && !rules_test(t, RULES_C_REMOTE_CPU, k, cpu, q->cpu_most))
		return false;
	if (isfinite(q->cpu_below) && !rules_test(t, RULES_C_DELTA_CPU, k, cpu, q->cpu_below))
		return false;
	if (m->need.io && !rules_test(t, RULES_C_REMOTE_IO, k, io + q->io_need, q->io_most))
		return false;
	if (isfinite(q->io_below) && !rules_test(t, RULES_C_DELTA_IO, k, io, q->io_below))
		return false;
	return !isfinite(free_mb) ||
	       rules_test(t, RULES_C_REMOTE_MEMORY, k, free_mb, m->need.memory_mb);
}

static void policy_zatti_give(struct rules_plan *plan, const struct rules_tests *t, uint32_t from)
{
	for (uint32_t i = from; i < t->n && plan->nreasons < RULES_REASONS_MAX; i++)
		plan->reasons[plan->nreasons++] = t->list[i];
}

static void policy_zatti_refuse(struct rules_plan *plan, const struct rules_tests *t)
{
	plan->refused[t->list[t->n - 1].criterion]++;
	policy_zatti_give(plan, t, t->n - 1);
}

/* The criterion that rules a node of this slot out: its load, or for some its memory. */
static enum rules_criterion ruled_out_by(const struct match *m, uint32_t slot)
{
	const struct rules_zatti_index *x = m->index;
	uint32_t row = m->need.cpu, column = m->need.io;

	if (x->real) {
		row = first_row(m);
		column = first_column(m);
	}
	if (slot / x->nrows < row)
		return RULES_C_REMOTE_CPU;
	return slot % x->nrows < column ? RULES_C_REMOTE_IO : RULES_C_REMOTE_MEMORY;
}

/* Counts refused nodes by the slot that ruled them out, without visiting each node. */
static void count_refused(const struct rules_decision *d, const struct match *m)
{
	const struct rules_zatti_index *x = m->index;
	const struct rules_zatti_link *home = &x->links[d->home];
	uint32_t *refused = d->plan->refused, open = 0;

	for (uint32_t slot = 0; slot < x->nslots; slot++) {
		uint32_t size = rules_zatti_size(x, slot);
		enum rules_criterion c;

		if (size == 0)
			continue;
		c = ruled_out_by(m, slot);
		open += size;
		refused[c] += c == RULES_C_REMOTE_MEMORY
				      ? rules_zatti_short(x, slot, m->need.memory_mb)
				      : size;
	}
	refused[RULES_C_ACCEPTS] += d->view->count - open - !d->at_home->accepts;
	if (d->at_home->accepts) {
		enum rules_criterion c = ruled_out_by(m, home->slot);

		refused[c] -= c != RULES_C_REMOTE_MEMORY || home->free_mb < m->need.memory_mb;
	}
}

static bool is_candidate(const struct rules_plan *plan, uint32_t k)
{
	for (uint32_t i = 0; i < plan->ncandidates; i++)
		if (plan->candidates[i] == k)
			return true;
	return false;
}

static void policy_zatti_explain(const struct rules_decision *d, const struct match *m)
{
	struct rules_plan *plan = d->plan;
	struct rules_tests t;

	for (uint32_t i = 0; i < plan->ncandidates; i++) {
		t.n = 0;
		policy_zatti_judge(d, m, plan->candidates[i], &t);
		policy_zatti_give(plan, &t,
				  i > 0 ? t.n - 1
					/* all tests of the chosen node, the last test of others */
					: 0);
	}
	if (d->view->count > RULES_EXAMINED_MAX) {
		count_refused(d, m);
		return;
	}
	for (uint32_t k = 0; k < d->view->count; k++) {
		t.n = 0;
		if (k != d->home && !is_candidate(plan, k) && !policy_zatti_judge(d, m, k, &t))
			policy_zatti_refuse(plan, &t);
	}
}

static void fill_plan(const struct rules_decision *d, const struct match *m)
{
	struct rules_plan *plan = d->plan;
	const struct rules_zatti_link *links = m->index->links;

	plan->ncandidates = m->query.n;
	if (plan->ncandidates == 0)
		return;
	plan->node = plan->candidates[0];
	plan->stayed = false;
	plan->ntied = 0;
	for (uint32_t i = 0; i < plan->ncandidates; i++) {
		const struct rules_zatti_link *l = &links[plan->candidates[i]];

		if (l->slot != m->first_slot || l->free_mb != links[plan->node].free_mb)
			break;
		if (plan->ntied < sizeof(plan->tied) / sizeof(plan->tied[0]))
			plan->tied[plan->ntied] = plan->candidates[i];
		plan->ntied++;
	}
}

static int match(struct rules_decision *d, bool real)
{
	struct match m = {.index = d->view->zatti[real]};
	double key;

	if (m.index == NULL || !rules_zatti_serves(m.index, d->params))
		return -EINVAL;
	m.need = rules_zatti_vector(&m.index->cuts, d->at_home, d->request, d->params->rates);
	key = 2 * m.need.cpu + m.need.io;
	if (!rules_test_home(d, RULES_C_HOPS, d->request->hops, d->params->hop_max) ||
	    !rules_test_home(d, RULES_C_NEEDS, key, 0))
		return 0;
	query_init(d, &m);
	if (local(d, &m))
		return 0;
	if (real)
		match_real(&m);
	else
		match_binary(d, &m);
	fill_plan(d, &m);
	if (!d->brief)
		policy_zatti_explain(d, &m);
	return m.query.n > 0;
}

int rules_policy_zatti_binary(struct rules_decision *d)
{
	return match(d, false);
}

int rules_policy_zatti_real(struct rules_decision *d)
{
	return match(d, true);
}
