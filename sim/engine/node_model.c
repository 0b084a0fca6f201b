/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The shared half of the node models: membership, memory, buffer, and the rates that follow:
 *
 *   L_MEM(i)  = sum of m_v                                    MODEL 1.3
 *   page(i,j) = mu_j L_MEM / n_MEM  if L_MEM > n_MEM, else 0  (4.3) FC
 *   h(i,j)    by the members' sum of lambda_k d_k             (5.4) FC
 *
 * The fidelities (request.c, fluid.c) do the rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/node_private.h"

#define KB_PER_MB 1000.0

double node_hit_rate(const struct node *n, const struct node_task *t)
{
	if (t->requests >= 0)
		return 0;
	return rules_hit_rate(t->reaccess, n->buffer_mb * KB_PER_MB, t->io_per_ms, t->request_kb,
			      t->cpu_ms, exact_sum_value(&n->kb_per_ms));
}

double node_page_rate(const struct node *n, const struct node_task *t)
{
	return rules_implicit(t->faults_per_ms, exact_sum_value(&n->memory_mb),
			      node_memory_room(n));
}

/* Limits the buffer so that some memory stays for tasks. */
static double buffer_within(double buffer_mb, double ram_mb)
{
	const double least_mb = 1e-3;

	if (!(buffer_mb > 0))
		return 0;
	if (ram_mb > 0 && buffer_mb > ram_mb - least_mb)
		return ram_mb > least_mb ? ram_mb - least_mb : 0;
	return buffer_mb;
}

static void node_init(const struct node_model *m, struct node *n, const struct sim_machine *machine,
		      double reference_mips)
{
	double slice = m->slice_ms, change = m->switch_ms;

	n->epoch = 1;
	n->members = n->few;
	n->room = NODE_FEW;
	n->ram_mb = machine->ram_mb;
	n->buffer_mb = buffer_within(machine->buffer_mb, machine->ram_mb);
	n->speed = reference_mips > 0 ? machine->cpu_mips / reference_mips : 1;
	n->cores = machine->cores;
	n->crowded = n->speed * n->cores * (change > 0 ? slice / (slice + change) : 1);
	n->disk_fixed_ms = machine->disk_fixed_ms;
	n->disk_mb_per_s = machine->disk_mb_per_s;
}

int node_model_new(struct node_model **result, const struct sim_cluster *cluster,
		   const struct sim_params *p, double reference_mips)
{
	struct node_model *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	m->fidelity = p->fidelity == SIM_FLUID ? &node_fluid : &node_request_level;
	m->n = cluster->n;
	m->slice_ms = p->slice_ms;
	m->switch_ms = p->switch_ms;
	m->page_fault_ms = p->page_fault_ms;
	m->page_fault_at_disk = p->page_fault_at_disk;
	m->priority_decay = p->priority_decay;
	m->nodes = aligned_alloc(_Alignof(struct node), m->n * sizeof(*m->nodes));
	if (m->nodes)
		memset(m->nodes, 0, m->n * sizeof(*m->nodes));
	m->next = malloc(m->n * sizeof(*m->next));
	rc = m->nodes && m->next ? 0 : -ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < m->n; i++) {
		node_init(m, &m->nodes[i], &cluster->machines[i], reference_mips);
		m->next[i] = NODE_NEVER;
	}
	if (rc == 0)
		rc = m->fidelity->create(m);
	if (rc < 0) {
		node_model_free(m);
		return rc;
	}
	*result = m;
	return 0;
}

void node_model_free(struct node_model *m)
{
	if (!m)
		return;
	if (m->state)
		m->fidelity->destroy(m);
	for (uint32_t i = 0; m->nodes && i < m->n; i++)
		if (m->nodes[i].members != m->nodes[i].few)
			free(m->nodes[i].members);
	free(m->nodes);
	free(m->next);
	free(m);
}

void node_model_tasks(struct node_model *m, void *tasks, size_t stride, size_t offset)
{
	m->tasks = tasks;
	m->stride = stride;
	m->offset = offset;
}

size_t node_model_bytes(const struct node_model *m)
{
	size_t bytes = sizeof(*m) + m->n * (sizeof(*m->nodes) + sizeof(*m->next));

	for (uint32_t i = 0; i < m->n; i++)
		if (m->nodes[i].members != m->nodes[i].few)
			bytes += m->nodes[i].room * sizeof(*m->nodes[i].members);
	return bytes + m->fidelity->bytes(m);
}

static int members_reserve(struct node *n)
{
	bool few = n->members == n->few;
	uint32_t *members;

	if (n->count < n->room)
		return 0;
	members = realloc(few ? NULL : n->members, 2 * n->room * sizeof(*members));
	if (!members)
		return -ENOMEM;
	if (few)
		memcpy(members, n->few, sizeof(n->few));
	n->members = members;
	n->room *= 2;
	return 0;
}

/* What the rates of all members depend on. */
struct shared_state {
	double kb_per_ms, pressure, buffer_mb;
};

static struct shared_state shared_state(const struct node *n)
{
	return (struct shared_state){
		.kb_per_ms = exact_sum_value(&n->kb_per_ms),
		.pressure = rules_implicit(1, exact_sum_value(&n->memory_mb), node_memory_room(n)),
		.buffer_mb = n->buffer_mb,
	};
}

static void node_model_changed(struct node_model *m, uint32_t node,
			       const struct shared_state *before, double now)
{
	struct node *n = &m->nodes[node];
	struct shared_state s = shared_state(n);
	bool rates = s.kb_per_ms != before->kb_per_ms || s.pressure != before->pressure ||
		     s.buffer_mb != before->buffer_mb;

	if (rates && ++n->epoch == 0)
		n->epoch = 1;
	m->fidelity->after(m, node, now, rates);
}

int node_enter(struct node_model *m, uint32_t node, uint32_t task, double now)
{
	struct node *n = &m->nodes[node];
	struct node_task *t = node_task_of(m, task);
	struct shared_state before;

	if (members_reserve(n) < 0 || m->fidelity->reserve(m, node) < 0)
		return -ENOMEM;
	m->fidelity->before(m, node, now);
	before = shared_state(n);
	t->position = n->count;
	t->state = 0;
	t->epoch = 0;
	n->members[n->count++] = task;
	exact_sum_add(&n->memory_mb, t->memory_mb);
	exact_sum_add(&n->kb_per_ms, t->io_per_ms * t->request_kb);
	node_model_changed(m, node, &before, now);
	return 0;
}

void node_leave(struct node_model *m, uint32_t node, uint32_t task, double now)
{
	struct node *n = &m->nodes[node];
	struct node_task *t = node_task_of(m, task);
	struct shared_state before;
	uint32_t last;

	m->fidelity->before(m, node, now);
	before = shared_state(n);
	last = n->members[--n->count];
	n->members[t->position] = last;
	node_task_of(m, last)->position = t->position;
	exact_sum_add(&n->memory_mb, -t->memory_mb);
	exact_sum_add(&n->kb_per_ms, -(t->io_per_ms * t->request_kb));
	if (n->count == 0)
		n->memory_mb = n->kb_per_ms = (struct exact_sum){0};
	node_model_changed(m, node, &before, now);
}

void node_set_buffer(struct node_model *m, uint32_t node, double buffer_mb, double now)
{
	struct node *n = &m->nodes[node];
	struct shared_state before;

	m->fidelity->before(m, node, now);
	before = shared_state(n);
	n->buffer_mb = buffer_within(buffer_mb, n->ram_mb);
	node_model_changed(m, node, &before, now);
}

int node_run(struct node_model *m, uint32_t node, uint32_t task, double cpu_ms, double requests,
	     double now)
{
	return m->fidelity->run(m, node, task, cpu_ms, requests, now);
}

double node_stop(struct node_model *m, uint32_t node, uint32_t task, double now)
{
	return m->fidelity->stop(m, node, task, now);
}

int node_disk_work(struct node_model *m, uint32_t node, double ms, uint32_t token, double now)
{
	return m->fidelity->disk_work(m, node, ms, token, now);
}

void node_refresh(struct node_model *m, uint32_t node, double now)
{
	m->fidelity->refresh(m, node, now);
}

double node_next(const struct node_model *m, uint32_t node)
{
	if (m->fidelity->settle)
		m->fidelity->settle(m, node);
	return m->next[node];
}

void node_prefetch(const struct node_model *m, uint32_t node)
{
	if (m->fidelity->prefetch)
		m->fidelity->prefetch(m, node);
}

void node_prefetch_tasks(const struct node_model *m, uint32_t node)
{
	if (m->fidelity->prefetch_tasks)
		m->fidelity->prefetch_tasks(m, node);
}

int node_step(struct node_model *m, uint32_t node, double now, const struct node_done **done)
{
	return m->fidelity->step(m, node, now, done);
}

uint32_t node_members(const struct node_model *m, uint32_t node)
{
	return m->nodes[node].count;
}

uint32_t node_member(const struct node_model *m, uint32_t node, uint32_t i)
{
	return m->nodes[node].members[i];
}

uint32_t node_runnable(const struct node_model *m, uint32_t node)
{
	return m->fidelity->runnable(m, node);
}

uint32_t node_at_disk(const struct node_model *m, uint32_t node)
{
	return m->fidelity->at_disk(m, node);
}

double node_memory(const struct node_model *m, uint32_t node)
{
	return exact_sum_value(&m->nodes[node].memory_mb);
}

double node_buffer(const struct node_model *m, uint32_t node)
{
	return m->nodes[node].buffer_mb;
}

void node_sums(const struct node_model *m, uint32_t node, double now, struct node_sums *sums)
{
	m->fidelity->sums(m, node, now, sums);
}
