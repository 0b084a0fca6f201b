/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The matrix as the rules look at it; see cluster_view.h.
 *
 * An entry of the matrix knows its node by view_index, a node its entry by pointer; both
 * end when the entry is dropped.  Each charge is in two lists: that of its node, in the
 * order placed, and that of all charges, oldest first.
 *
 * A node is always what rules_view_set makes of its vector, then one rules_view_charge
 * for each charge in order: nothing is subtracted, so that the node is bit for bit what
 * a view built anew would have.
 */
#include "agent/cluster/cluster_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define HOME 0

struct cluster_charge {
	struct view_charge said;
	uint64_t number;
	struct matrix_entry *entry;
	struct cluster_charge *next; /* the next charge of the same node */
	TAILQ_ENTRY(cluster_charge) all;
};

TAILQ_HEAD(cluster_charges, cluster_charge);

/* The entry or home that a node of the rules' view stands for; home has no entry. */
struct cluster_node {
	struct matrix_entry *entry;
	struct cluster_charge *first, *last;
};

struct cluster_view {
	struct matrix *matrix;
	struct rules_view *rules;
	struct rules_params params;
	struct iocom_vector own;
	struct rules_node home; /* OWN as a node of the rules */
	struct cluster_node *nodes;
	uint32_t room;
	struct cluster_charges charges;
	size_t ncharges;
	uint64_t numbers; /* charges ever made */
	uint64_t charges_lost, left_out;
};

/* --- vectors ----------------------------------------------------------------------- */

void view_node(const struct iocom_vector *v, double age_ms, struct rules_node *n)
{
	*n = (struct rules_node){
		.ram_mb = v->memory_mb,
		.cpu_mips = v->cpu_speed * VIEW_REFERENCE_MIPS,
		.burst_mips = v->cpu_burst > v->cpu_speed ? v->cpu_burst * VIEW_REFERENCE_MIPS : 0,
		.cores = v->cores,
		.disk_fixed_ms = v->disk_fixed_ms,
		.disk_mb_per_s = v->disks ? v->disk_mb_per_s : 0,
		.disk_parallel = v->disk_parallel >= 1 ? v->disk_parallel : 0,
		.request_kb = VIEW_REQUEST_KB,
		.network_mb_per_s = v->network_mb_per_s,
		.has_measured = true,
		.measured =
			{
				.disk_arrivals_per_ms = v->disk_arrivals_per_ms,
				.disk_utilisation = v->disk_utilisation,
				.service_ms = v->disk_service_ms,
				.service_ms2 = v->disk_service_ms2,
				.cpu_queue = v->run_queue,
				.io_tasks = v->io_tasks,
			},
		.has_advertised = true,
		.advertised =
			{
				.io_per_ms = v->explicit_per_ms + v->implicit_per_ms,
				.explicit_per_ms = v->explicit_per_ms,
				.memory_mb = v->memory_requested_mb,
				.cpu = v->run_queue,
			},
		.has_sharers = v->cpu_burst > 0,
		.sharers =
			{
				.cpu = v->cpu_sharers,
				.disk = v->disk_sharers,
				.cpu_left_ms = v->cpu_left_ms,
				.disk_left_ms = v->disk_left_ms,
			},
		.accepts = v->accepts_jobs,
		.age_ms = age_ms,
	};
	snprintf(n->name, sizeof(n->name), "%s", v->name);
}

void view_params(struct rules_params *params)
{
	rules_params_default(params, RULES_RATES_WALL);
	params->reference_mips = VIEW_REFERENCE_MIPS;
}

/* --- charges ----------------------------------------------------------------------- */

static struct cluster_node *node_of(const struct cluster_view *v, const struct matrix_entry *e)
{
	return &v->nodes[e->view_index];
}

/* Returns true if V already counts the job, or can never count it. */
static bool counts(const struct iocom_vector *v, const struct view_charge *charge)
{
	return v->boot_id != charge->boot_id || v->sequence >= charge->sequence;
}

static void charge_free(struct cluster_view *v, struct cluster_charge *c)
{
	TAILQ_REMOVE(&v->charges, c, all);
	v->ncharges--;
	free(c);
}

/* The reason why a charge of a node ends; one of these is set. */
struct ending {
	const struct iocom_vector *vector; /* the charges that this vector counts, or NULL */
	uint64_t before_ns;		   /* the charges that are older than this */
	const struct cluster_charge *one;  /* only this charge, or NULL */
};

static bool ends(const struct ending *why, const struct cluster_charge *c)
{
	return c == why->one || c->said.since_ns < why->before_ns ||
	       (why->vector && counts(why->vector, &c->said));
}

/*
 * Ends the charges of NODE to which WHY applies, without telling the rules' view. Returns how many.
 */
static size_t charges_end(struct cluster_view *v, struct cluster_node *node,
			  const struct ending *why)
{
	struct cluster_charge *c = node->first, *next;
	size_t ended = 0;

	node->first = node->last = NULL;
	for (; c; c = next) {
		next = c->next;
		if (ends(why, c)) {
			charge_free(v, c);
			ended++;
			continue;
		}
		c->next = NULL;
		*(node->last ? &node->last->next : &node->first) = c;
		node->last = c;
	}
	return ended;
}

/* Sets the rules' node INDEX from its vector and its charges. */
static int node_set(struct cluster_view *v, uint32_t index)
{
	struct cluster_node *node = &v->nodes[index];
	struct rules_node as_told;
	int rc;

	view_node(&node->entry->vector, 0, &as_told);
	rc = rules_view_set(v->rules, index, &as_told);
	if (rc)
		return rc;
	for (struct cluster_charge *c = node->first, *next; c; c = next) {
		next = c->next;
		if (!rules_view_charge(v->rules, index, &c->said.request))
			continue;
		/* The sum overflows, so this charge is forgotten. */
		charges_end(v, node, &(struct ending){.one = c});
		v->charges_lost++;
	}
	return 0;
}

/* Forgets the oldest charge of all. */
static void forget_oldest(struct cluster_view *v)
{
	struct cluster_charge *c = TAILQ_FIRST(&v->charges);
	const struct matrix_entry *e = c->entry;

	charges_end(v, node_of(v, e), &(struct ending){.one = c});
	node_set(v, e->view_index);
	v->charges_lost++;
}

uint64_t cluster_view_charge(struct cluster_view *v, const struct view_charge *charge)
{
	const struct matrix_entry *found = matrix_find(v->matrix, charge->node);
	struct cluster_charge *c;
	struct cluster_node *node;

	if (!found || !found->view_index || counts(&found->vector, charge))
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c || rules_view_charge(v->rules, found->view_index, &charge->request)) {
		free(c);
		v->charges_lost++;
		return 0;
	}
	node = node_of(v, found);
	c->number = ++v->numbers;
	c->said = *charge;
	c->said.request.com_ms = NULL; /* vectors do not tell communication either */
	c->said.request.corrections = NULL;
	c->said.request.ncorrections = 0;
	c->said.request.held = NULL;
	c->said.request.nheld = 0;
	c->said.request.shared = (struct rules_shared){0};
	c->said.request.correction = 0;
	c->entry = node->entry;
	*(node->last ? &node->last->next : &node->first) = c;
	node->last = c;
	TAILQ_INSERT_TAIL(&v->charges, c, all);
	if (++v->ncharges > VIEW_CHARGES_MAX)
		forget_oldest(v);
	return v->numbers;
}

/* The newest are looked at first: what is taken back was charged a moment ago. */
void cluster_view_uncharge(struct cluster_view *v, uint64_t number)
{
	struct cluster_charge *c;

	TAILQ_FOREACH_REVERSE(c, &v->charges, cluster_charges, all)
	{
		const struct matrix_entry *e = c->entry;

		if (c->number < number)
			return;
		if (c->number > number)
			continue;
		charges_end(v, node_of(v, e), &(struct ending){.one = c});
		node_set(v, e->view_index);
		return;
	}
}

static void end_old_charges(struct cluster_view *v, uint64_t now_ns)
{
	const struct ending why = {.before_ns =
					   now_ns > VIEW_CHARGE_NS ? now_ns - VIEW_CHARGE_NS : 0};
	struct cluster_charge *c;

	while ((c = TAILQ_FIRST(&v->charges)) && ends(&why, c)) {
		const struct matrix_entry *e = c->entry;

		charges_end(v, node_of(v, e), &why);
		node_set(v, e->view_index);
	}
}

/* --- nodes ------------------------------------------------------------------------- */

static int nodes_reserve(struct cluster_view *v, uint32_t count)
{
	uint32_t room = v->room ? 2 * v->room : 16;
	struct cluster_node *grown;

	if (count <= v->room)
		return 0;
	grown = realloc(v->nodes, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	v->nodes = grown;
	v->room = room;
	return 0;
}

static int node_join(struct cluster_view *v, struct matrix_entry *e)
{
	uint32_t index = rules_view_count(v->rules);
	int rc = nodes_reserve(v, index + 1);

	if (rc)
		return rc;
	v->nodes[index] = (struct cluster_node){.entry = e};
	rc = node_set(v, index);
	if (!rc)
		e->view_index = index;
	return rc;
}

/* The newest node takes over the index of the one that leaves. */
static void node_leave(struct cluster_view *v, struct matrix_entry *e)
{
	uint32_t index = e->view_index, last = rules_view_count(v->rules) - 1;

	if (!index)
		return;
	charges_end(v, &v->nodes[index], &(struct ending){.before_ns = UINT64_MAX});
	/* This cannot fail, because no mark is set. */
	(void)rules_view_remove(v->rules, index);
	v->nodes[index] = v->nodes[last];
	v->nodes[index].entry->view_index = index;
	e->view_index = 0;
}

static int node_update(struct cluster_view *v, struct matrix_entry *e)
{
	if (!e->view_index)
		return node_join(v, e);
	charges_end(v, node_of(v, e), &(struct ending){.vector = &e->vector});
	return node_set(v, e->view_index);
}

/* Follows a change of the matrix (matrix_changed). */
static void follow(void *arg, struct matrix_entry *e)
{
	struct cluster_view *v = arg;

	if (e->alive && !node_update(v, e))
		return;
	v->left_out += e->alive;
	node_leave(v, e);
}

/* --- the view ---------------------------------------------------------------------- */

static int set_home(struct cluster_view *v, const struct iocom_vector *own)
{
	struct rules_node home;
	int rc;

	view_node(own, 0, &home);
	/* The owner's setting is only for other users' jobs: home always accepts its own. */
	home.accepts = true;
	rc = rules_view_set(v->rules, HOME, &home);
	if (rc)
		return rc;
	v->own = *own;
	v->home = home;
	return 0;
}

/* Until its own vector is known, home counts as a machine without load. */
static int cluster_view_begin(struct cluster_view *v)
{
	struct iocom_vector unknown = {.cores = 1, .cpu_speed = 1};
	int rc = v->rules ? nodes_reserve(v, 1) : -ENOMEM;

	if (rc)
		return rc;
	v->nodes[HOME] = (struct cluster_node){0};
	view_params(&v->params);
	rules_view_rates(v->rules, v->params.rates);
	rules_view_reference(v->rules, v->params.reference_mips);
	memcpy(unknown.name, v->matrix->self, sizeof(unknown.name));
	/* No index is built until a decision needs one. */
	rc = rules_view_keep(v->rules, RULES_NLB, &v->params);
	return rc ? rc : set_home(v, &unknown);
}

void cluster_view_use(struct cluster_view *v, const struct rules_params *params)
{
	v->params = *params;
}

void cluster_view_weigh(struct cluster_view *v, double w_io)
{
	v->params.w_io = w_io;
}

struct cluster_view *cluster_view_new(struct matrix *m)
{
	struct cluster_view *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->matrix = m;
	TAILQ_INIT(&v->charges);
	v->rules = rules_view_new();
	if (cluster_view_begin(v)) {
		cluster_view_free(v);
		return NULL;
	}
	matrix_watch(m, follow, v);
	for (size_t i = 0; i < m->count; i++)
		if (m->entries[i]->alive)
			follow(v, m->entries[i]);
	return v;
}

void cluster_view_free(struct cluster_view *v)
{
	struct cluster_charge *c;

	if (!v)
		return;
	matrix_watch(v->matrix, NULL, NULL);
	for (size_t i = 0; i < v->matrix->count; i++)
		v->matrix->entries[i]->view_index = 0;
	while ((c = TAILQ_FIRST(&v->charges)))
		charge_free(v, c);
	rules_view_free(v->rules);
	free(v->nodes);
	free(v);
}

int cluster_view_refresh(struct cluster_view *v, const struct iocom_vector *own, uint64_t now_ns)
{
	end_old_charges(v, now_ns);
	return set_home(v, own);
}

/* The indexes of POLICY.  A new table of Zatti's does not show the charges before it. */
static int keep_indexes(struct cluster_view *v, enum rules_policy policy)
{
	int rc = rules_view_keep_also(v->rules, policy, &v->params);

	for (uint32_t i = 1; rc == 1 && i < rules_view_count(v->rules); i++)
		if (v->nodes[i].first)
			node_set(v, i);
	return rc < 0 ? rc : 0;
}

static struct view_question cluster_view_question(const struct cluster_view *v,
						  const struct rules_request *job, uint64_t seed)
{
	return (struct view_question){
		.params = &v->params,
		.job = job,
		.seed = seed,
		.home = HOME,
		.home_node = &v->home,
	};
}

int cluster_view_expect(const struct cluster_view *v, enum rules_policy policy,
			const struct rules_request *job, const uint32_t *at, size_t n,
			struct rules_expectation *out)
{
	const struct view_question question = cluster_view_question(v, job, 0);

	return view_expect(v->rules, &question, policy, at, n, out);
}

int cluster_view_decide(struct cluster_view *v, const struct view_policy *policy,
			const struct rules_request *job, uint64_t seed,
			struct view_decision *decision, struct iocom_err *err)
{
	return cluster_view_decide_gang(v, policy, job, NULL, seed, decision, err);
}

int cluster_view_decide_gang(struct cluster_view *v, const struct view_policy *policy,
			     const struct rules_request *job, const struct rules_port *ports,
			     uint64_t seed, struct view_decision *decision, struct iocom_err *err)
{
	struct view_question question = cluster_view_question(v, job, seed);
	int rc = keep_indexes(v, policy->policy);

	question.ports = ports;
	if (rc)
		return iocom_err_set(err, rc, "cannot index the cluster for %s: %s", policy->name,
				     strerror(-rc));
	return view_decide_on(v->rules, &question, policy, decision, err);
}

int cluster_view_migrate(struct cluster_view *v, enum rules_policy policy,
			 const struct cluster_view_costs *costs, const struct rules_task *tasks,
			 size_t n, uint64_t seed, struct rules_move *move, struct rules_plan *plan)
{
	struct rules_params params = v->params;
	struct rules *rules;
	size_t found = 0;
	int rc = keep_indexes(v, policy);

	if (rc)
		return rc;
	params.migration_fixed_ms = costs->fixed_ms;
	rules = rules_new(policy, &params, seed);
	if (!rules)
		return -ENOMEM;
	rules_migrate_paths(rules, costs->paths, costs->npaths);
	rc = rules_migrate(rules, v->rules, HOME, tasks, n, move, 1, &found, plan);
	rules_free(rules);
	return rc ? rc : found > 0;
}

/* Copies node INDEX and its charges for output. */
static int file_add(const struct cluster_view *v, uint32_t index, uint64_t now_ns,
		    struct view_file *out)
{
	struct rules_node node = v->home;
	int rc;

	if (index != HOME)
		view_node(cluster_view_vector(v, index), cluster_view_age_ms(v, index, now_ns),
			  &node);
	rc = view_file_add(out, &node);
	for (const struct cluster_charge *c = v->nodes[index].first; c && !rc; c = c->next)
		rc = view_file_charge(out, index, &c->said.request);
	return rc;
}

int cluster_view_file(const struct cluster_view *v, uint64_t now_ns, struct view_file *out)
{
	int rc = 0;

	view_file_init(out, v->params.rates);
	out->params = v->params;
	out->time_ms = (double)now_ns / 1e6;
	for (uint32_t i = 0; i < rules_view_count(v->rules) && !rc; i++)
		rc = file_add(v, i, now_ns, out);
	if (rc)
		view_file_fini(out);
	return rc;
}

uint32_t cluster_view_count(const struct cluster_view *v)
{
	return rules_view_count(v->rules);
}

const struct iocom_vector *cluster_view_vector(const struct cluster_view *v, uint32_t index)
{
	return index == HOME ? &v->own : &v->nodes[index].entry->vector;
}

double cluster_view_age_ms(const struct cluster_view *v, uint32_t index, uint64_t now_ns)
{
	return index == HOME ? 0 : (double)matrix_age_ns(v->nodes[index].entry, now_ns) / 1e6;
}

size_t cluster_view_charges(const struct cluster_view *v)
{
	return v->ncharges;
}

uint64_t cluster_view_charges_lost(const struct cluster_view *v)
{
	return v->charges_lost;
}

uint64_t cluster_view_left_out(const struct cluster_view *v)
{
	return v->left_out;
}
