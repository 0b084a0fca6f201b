/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The view that decisions use: nodes described in the form that the rules expect.
 *
 * Tasks: the node's members and, with transit_counts, the tasks on their way to it.
 *
 * Measured state (MODEL O-8(d)): the node's sums over a span that ends now and began when the
 * last measuring window but one ended, so the span is 1 to 2 windows long (exactly one at a
 * window's end).  A task that was on the node only for a share p of the span is in the sums for
 * p; for the other 1 - p it counts with what it would do alone, as rules_view_charge counts a
 * task just sent.
 *
 * A node is described again only when its description may have changed.  With period 0: when its
 * members change (and at the end of a window, if it had events since).  Otherwise: at period
 * boundaries, if it had events since the last one.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"
#include "sim/engine/core.h"

#define KB_PER_MB   1000.0
#define NODES_AHEAD 8 /* nodes fetched before they are needed */
#define TASKS_AHEAD 4 /* tasks fetched for each of them */
/* the share of changed nodes above which all indexes are rebuilt, as one node in this many */
#define DEFER_SHARE 8

/* --- measured state ----------------------------------------------------------- */

static struct core_shard *core_view_owner(const struct core *c, uint32_t node)
{
	return &c->shards[core_shard_of(c, node)];
}

void core_fetch_node(const struct core_shard *s, uint32_t node)
{
	const struct core *c = s->core;
	const struct core_shard *its = core_view_owner(c, node);

	core_fetch(&c->nodes[node], sizeof(c->nodes[node]));
	core_fetch(&c->meters[node], sizeof(c->meters[node]));
	core_fetch(&c->cluster->machines[node], sizeof(c->cluster->machines[node]));
	node_prefetch(its->model, node - its->first);
	if (c->looks)
		rules_view_prefetch(s->view, node);
}

static void fetch_tasks(const struct core_shard *s, uint32_t node)
{
	const struct core_shard *its = core_view_owner(s->core, node);
	uint32_t at = node - its->first, n = node_members(its->model, at);

	for (uint32_t i = 0; i < n && i < TASKS_AHEAD; i++)
		core_fetch(core_task(its, node_member(its->model, at, i)),
			   sizeof(struct core_task));
}

/* Prefetches for entry I of the list: nodes further on, and the tasks of nodes halfway there. */
static void fetch_listed(const struct core_shard *s, const struct core_list *l, uint32_t i)
{
	if (i + NODES_AHEAD < l->used)
		core_fetch_node(s, l->ids[i + NODES_AHEAD]);
	if (i + NODES_AHEAD / 2 < l->used)
		fetch_tasks(s, l->ids[i + NODES_AHEAD / 2]);
}

/* The node's sums at TIME, if it had no event since its last one. */
static void point_at(const struct core *c, uint32_t node, double time, struct core_point *p)
{
	const struct core_node *n = &c->nodes[node];
	const struct core_shard *s = core_view_owner(c, node);

	struct node_sums sums;

	node_sums(s->model, node - s->first, time, &sums);
	*p = (struct core_point){
		.time_ms = time,
		.runnable_ms = n->runnable_ms + n->runnable * (time - n->last_ms),
		.disk_requests = sums.disk_requests,
		.disk_busy_ms = sums.disk_busy_ms,
		.service_sum = sums.service_sum,
		.service_sum2 = sums.service_sum2,
	};
}

void core_window_turn(struct core_shard *s, uint32_t node, double now)
{
	struct core *c = s->core;
	struct core_node *n = &c->nodes[node];
	struct core_meter *m = &c->meters[node];
	double window = c->params.measure_window_ms, k;

	if (!c->measures) {
		n->window_end_ms = CORE_FOREVER;
		return;
	}
	k = floor(now / window);
	/*
	 * Rounding is off by at most one window.  Beyond 2^53 windows adding one would change
	 * nothing.
	 */
	if (k * window > now)
		k--;
	if ((k + 1) * window <= now)
		k++;
	if (m->newer.time_ms == (k - 1) * window)
		m->older = m->newer;
	else
		point_at(c, node, (k - 1) * window, &m->older);
	point_at(c, node, k * window, &m->newer);
	n->window_end_ms = (k + 1) * window;
}

bool core_measure(struct core_shard *s, uint32_t node, double now)
{
	struct core *c = s->core;
	struct core_meter *m = &c->meters[node];
	struct core_measured *out = &m->measured;
	struct core_point end;
	double span, requests;

	if (!c->measures)
		return true;
	if (now >= c->nodes[node].window_end_ms)
		core_window_turn(s, node, now);
	point_at(c, node, now, &end);
	span = now - m->older.time_ms;
	*out = (struct core_measured){.since_ms = m->older.time_ms};
	if (!(span > 0))
		return false;
	requests = end.disk_requests - m->older.disk_requests;
	out->arrivals_per_ms = requests / span;
	out->utilisation = (end.disk_busy_ms - m->older.disk_busy_ms) / span;
	out->cpu_queue = (end.runnable_ms - m->older.runnable_ms) / span;
	if (requests > 0) {
		out->service_ms = (end.service_sum - m->older.service_sum) / requests;
		out->service_ms2 = (end.service_sum2 - m->older.service_sum2) / requests;
	}
	return c->nodes[node].last_ms <= m->older.time_ms;
}

/* --- description ---------------------------------------------------------------- */

void core_look_free(struct core_look *look)
{
	free(look->tasks);
	free(look->ids);
}

int core_look_reserve(struct core_look *look, size_t n)
{
	size_t tasks_room = look->room, ids_room = look->room;

	if (array_reserve(look->tasks, tasks_room, n, 16) < 0 ||
	    array_reserve(look->ids, ids_room, n, 16) < 0)
		return -ENOMEM;
	look->room = ids_room;
	return 0;
}

/*
 * Eq. (5): a slave on another node than its master communicates, and so does a master
 * with such slaves.
 */
static double com_load(const struct core_shard *s, const struct core_task *t)
{
	const struct core_task *master;
	uint32_t away = 0;

	if (!(t->com_ms > 0))
		return 0;
	master = core_task(s, core_job_of(s, t)->first);
	if (t != master)
		return t->node != master->node ? t->com_ms : 0;
	for (uint32_t id = t->sibling; id != CORE_NONE; id = core_task(s, id)->sibling)
		away += core_task(s, id)->node != t->node;
	return away * t->com_ms;
}

static int look_add(const struct core_shard *s, struct core_look *look, uint32_t id)
{
	const struct core_task *t = core_task(s, id);
	size_t n = look->node.ntasks;

	if (core_look_reserve(look, n + 1) < 0)
		return -ENOMEM;
	look->ids[n] = id;
	look->tasks[n] = (struct rules_task){
		.cpu_ms = t->at.cpu_ms,
		.age_ms = t->at.done_ms,
		.io_per_ms = t->rate_per_ms,
		.request_kb = t->at.request_kb,
		.reaccess = t->at.reaccess,
		.memory_mb = t->at.memory_mb,
		.faults_per_ms = t->at.faults_per_ms,
		.initial_mb = t->initial_mb,
		.written_mb = core_written_mb(t),
		.com_ms = com_load(s, t),
		.pinned = t->state != TASK_RUNNING,
	};
	look->node.ntasks = n + 1;
	return 0;
}

static void name_node(char *name, uint32_t node)
{
	char digits[12];
	int n = 0, at = 1;

	do
		digits[n++] = (char)('0' + node % 10);
	while ((node /= 10) > 0);
	name[0] = 'n';
	while (n > 0)
		name[at++] = digits[--n];
	name[at] = '\0';
}

static void core_view_machine_of(const struct core *c, const struct core_shard *s, uint32_t node,
				 struct rules_node *out)
{
	const struct sim_machine *m = &c->cluster->machines[node];

	*out = (struct rules_node){
		.ram_mb = m->ram_mb,
		.buffer_mb = node_buffer(s->model, node - s->first),
		.cpu_mips = m->cpu_mips,
		.cores = m->cores,
		.disk_fixed_ms = m->disk_fixed_ms,
		.disk_mb_per_s = m->disk_mb_per_s,
		.request_kb = m->request_kb,
		.request_sd_kb = m->request_sd_kb,
		.network_mb_per_s = m->network_mb_per_s,
		.accepts = true,
	};
	name_node(out->name, node);
}

struct core_load core_load_of(const struct core_look *look)
{
	const struct rules_node *n = &look->node;
	double kb_per_ms = 0, room = n->ram_mb > 0 ? n->ram_mb - n->buffer_mb : 0;
	struct core_load load = {0};

	for (size_t i = 0; i < n->ntasks; i++) {
		load.memory_mb += look->tasks[i].memory_mb;
		load.com_ms += look->tasks[i].com_ms;
		kb_per_ms += look->tasks[i].io_per_ms * look->tasks[i].request_kb;
	}
	for (size_t i = 0; i < n->ntasks; i++) {
		const struct rules_task *t = &look->tasks[i];

		load.explicit_per_ms +=
			t->io_per_ms *
			(1 - rules_hit_rate(t->reaccess, n->buffer_mb * KB_PER_MB, t->io_per_ms,
					    t->request_kb, t->cpu_ms, kb_per_ms));
		load.implicit_per_ms += rules_implicit(t->faults_per_ms, load.memory_mb, room);
	}
	return load;
}

/* Adds the load that T alone would put on the node's disk: requests/ms and utilisation. */
static void add_absent(const struct sim_params *p, const struct rules_node *n,
		       const struct rules_task *t, double share, struct core_measured *m)
{
	double service = n->disk_fixed_ms + t->request_kb / n->disk_mb_per_s;
	bool wall = p->rules.rates == RULES_RATES_WALL;
	double rate = wall ? t->io_per_ms : t->io_per_ms / (1 + t->io_per_ms * service);

	if (!p->measure_new_tasks) {
		m->cpu_queue += share * fmax(0, 1 - rate * service);
		return;
	}
	m->cpu_queue += share;
	m->arrivals_per_ms += share * rate;
	m->utilisation += share * rate * service;
}

static void set_measured(const struct core_shard *s, uint32_t node, double now,
			 struct core_look *look)
{
	struct rules_node *n = &look->node;
	struct core_measured m = s->core->meters[node].measured;
	double span = now - m.since_ms;

	for (size_t i = 0; i < n->ntasks; i++) {
		const struct core_task *t = core_task(s, look->ids[i]);
		double present = t->state >= TASK_READING ? 0 : now - t->since_ms;

		if (present < span || !(span > 0))
			add_absent(&s->core->params, n, &look->tasks[i],
				   span > 0 ? 1 - present / span : 1, &m);
	}
	if (m.utilisation > 1) {
		m.arrivals_per_ms /= m.utilisation;
		m.utilisation = 1;
	}
	n->has_measured = true;
	n->measured.disk_arrivals_per_ms = m.arrivals_per_ms;
	n->measured.disk_utilisation = m.utilisation;
	n->measured.service_ms = m.service_ms;
	n->measured.service_ms2 = m.service_ms2;
	n->measured.cpu_queue = m.cpu_queue < n->ntasks ? m.cpu_queue : (double)n->ntasks;
}

static void set_advertised(const struct core_shard *s, uint32_t node, struct core_look *look)
{
	struct core_load load = core_load_of(look);
	size_t coming = look->node.ntasks - node_members(s->model, node - s->first);

	for (size_t i = 0; i < look->node.ntasks; i++) {
		double part = core_task(s, look->ids[i])->implicit_share;

		load.explicit_per_ms -= part * look->tasks[i].io_per_ms;
		load.implicit_per_ms += part * look->tasks[i].io_per_ms;
	}
	load.explicit_per_ms = fmax(0, load.explicit_per_ms);
	look->node.has_advertised = true;
	look->node.advertised.explicit_per_ms = load.explicit_per_ms;
	look->node.advertised.io_per_ms = load.explicit_per_ms + load.implicit_per_ms;
	look->node.advertised.memory_mb = load.memory_mb;
	look->node.advertised.com_ms = load.com_ms;
	look->node.advertised.cpu = node_runnable(s->model, node - s->first) + (double)coming;
}

/* True if nodes tell the work that is left, as live ones do. */
static bool tells_sharers(const struct core *c)
{
	return c->looks && c->params.cpu_load_runnable && c->params.rules.rates == RULES_RATES_WALL;
}

void core_view_share(struct rules_node *n, const struct rules_request *left, double reference_mips)
{
	double slowness = reference_mips > 0 ? reference_mips / n->cpu_mips : 1;
	double cpu_ms = left->cpu_ms * slowness;
	double requests = left->requests >= 0 ? left->requests : left->cpu_ms * left->io_per_ms;
	double size_kb = left->request_kb > 0 ? left->request_kb : n->request_kb;

	rules_sharers_add(&n->sharers, cpu_ms, cpu_ms,
			  requests * rules_service_ms(n->disk_fixed_ms, size_kb, n->disk_mb_per_s));
}

/*
 * Requests are spread evenly over a task's computation, so of both the same part is left; of a task
 * that does not compute nothing is known but its end.
 */
static void set_sharers(const struct core *c, const struct core_shard *s, struct core_look *look)
{
	struct rules_node *n = &look->node;

	n->has_sharers = true;
	n->sharers = (struct rules_sharers){0};
	for (size_t i = 0; i < n->ntasks; i++) {
		const struct node_task *t = &core_task(s, look->ids[i])->at;
		double part = t->cpu_ms > 0 ? fmax(0, 1 - t->done_ms / t->cpu_ms) : 1;
		const struct rules_request left = {
			.cpu_ms = part * t->cpu_ms,
			.io_per_ms = t->io_per_ms,
			.requests = t->requests >= 0 ? part * t->requests : -1,
			.request_kb = t->request_kb,
		};

		core_view_share(n, &left, c->params.rules.reference_mips);
	}
}

int core_describe(const struct core *c, uint32_t node, double now, double sent_before,
		  struct core_look *look)
{
	const struct core_shard *s = core_view_owner(c, node);
	uint32_t at = node - s->first, members = node_members(s->model, at);
	int ret = 0;

	core_view_machine_of(c, s, node, &look->node);
	for (uint32_t i = 0; ret == 0 && i < members; i++)
		ret = look_add(s, look, node_member(s->model, at, i));
	if (c->transit_counts)
		for (uint32_t id = c->nodes[node].coming; ret == 0 && id != CORE_NONE;
		     id = core_task(s, id)->next)
			if (core_task(s, id)->since_ms < sent_before)
				ret = look_add(s, look, id);
	look->node.tasks = look->tasks;
	if (ret == 0 && c->measures)
		set_measured(s, node, now, look);
	/* A batch system wants empty nodes; a node whose task waits for the disk is not empty. */
	if (ret == 0 && c->params.cpu_load_runnable && !c->batch)
		set_advertised(s, node, look);
	if (ret == 0 && tells_sharers(c))
		set_sharers(c, s, look);
	return ret;
}

/* --- the view ---------------------------------------------------------------------- */

static int save(struct core_saved *saved, const struct core_look *look)
{
	size_t n = look->node.ntasks;

	if (n > saved->room) {
		struct rules_task *tasks = realloc(saved->tasks, n * sizeof(*tasks));

		if (tasks == NULL)
			return -ENOMEM;
		saved->tasks = tasks;
		saved->room = n;
	}
	saved->node = look->node;
	if (n > 0)
		memcpy(saved->tasks, look->tasks, n * sizeof(*look->tasks));
	return 0;
}

void core_view_age(struct core_shard *s, uint32_t node, double now)
{
	if (tells_sharers(s->core) && core_view_owner(s->core, node) == s)
		node_refresh(s->model, node - s->first, now);
}

int core_set(struct core_shard *s, uint32_t node, double now, double sent_before)
{
	int ret;

	core_view_age(s, node, now);
	ret = core_describe(s->core, node, now, sent_before, &s->look);

	if (ret == 0)
		ret = rules_view_set(s->view, node, &s->look.node);
	if (ret == 0 && core_view_owner(s->core, node) == s)
		s->core->port_share[node] = core_port_share(&s->look);
	if (ret == 0 && s->core->saved != NULL)
		ret = save(&s->core->saved[node], &s->look);
	if (ret < 0)
		core_fail(s, ret, "cannot describe node %u", node);
	return ret;
}

static int view_init(struct core_shard *s)
{
	struct core *c = s->core;
	int ret;

	s->view = rules_view_new();
	if (s->view == NULL)
		return -ENOMEM;
	rules_view_rates(s->view, c->params.rules.rates);
	rules_view_reference(s->view, c->params.rules.reference_mips);
	ret = rules_view_keep(s->view, c->policy, &c->params.rules);
	if (ret == 0)
		ret = rules_view_defer(s->view);
	for (uint32_t i = 0; ret == 0 && i < c->cluster->n; i++)
		ret = core_set(s, i, 0, CORE_FOREVER);
	rules_view_settle(s->view);
	return ret;
}

void core_view_init(struct core_shard *s)
{
	int ret = view_init(s);

	if (ret == -ENOMEM)
		core_fail(s, ret, "out of memory for a view of %u nodes", s->core->cluster->n);
	else if (ret < 0)
		core_fail(s, ret, "the rules refuse the description of a node");
}

void core_touch(struct core_shard *s, uint32_t node)
{
	struct core_node *n = &s->core->nodes[node];

	n->flags |= NODE_TOUCHED;
	if (s->core->looks && s->core->measures)
		s->touched.ids[s->touched.used++] = node;
}

void core_mark_dirty(struct core_shard *s, uint32_t node)
{
	struct core_node *n = &s->core->nodes[node];

	if (!s->core->looks || (n->flags & NODE_DIRTY))
		return;
	n->flags |= NODE_DIRTY;
	s->dirty.ids[s->dirty.used++] = node;
}

/* Nodes that had events may measure differently now, so they become dirty. */
static void touched_are_dirty(struct core_shard *s)
{
	for (uint32_t i = 0; i < s->touched.used; i++) {
		s->core->nodes[s->touched.ids[i]].flags &= ~NODE_TOUCHED;
		core_mark_dirty(s, s->touched.ids[i]);
	}
	s->touched.used = 0;
}

/* Visits many nodes in the order in which they lie in memory, which is faster. */
static void sort_changed(struct core_shard *s)
{
	const struct core *c = s->core;
	uint32_t n = 0;

	if (s->changed.used < s->n / 16)
		return;
	for (uint32_t node = s->first; node < s->first + s->n; node++)
		if (c->nodes[node].flags & NODE_DIRTY)
			s->changed.ids[n++] = node;
}

/* Moves all dirty nodes to the list `changed`; they are no longer dirty. */
static void take_dirty(struct core_shard *s)
{
	struct core_list was = s->changed;

	s->changed = s->dirty;
	s->dirty = was;
	s->dirty.used = 0;
	sort_changed(s);
	for (uint32_t i = 0; i < s->changed.used; i++)
		s->core->nodes[s->changed.ids[i]].flags &= ~NODE_DIRTY;
}

/* True if the work that NODE tells becomes less while time passes. */
static bool has_work(const struct core_shard *s, uint32_t node)
{
	return tells_sharers(s->core) && node_members(s->model, node - s->first) > 0;
}

/* The caller must call rules_view_settle afterwards. */
static int set_changed(struct core_shard *s, double now)
{
	int ret = s->changed.used > s->n / DEFER_SHARE ? rules_view_defer(s->view) : 0;

	for (uint32_t i = 0; ret == 0 && i < s->changed.used; i++) {
		uint32_t node = s->changed.ids[i];

		fetch_listed(s, &s->changed, i);
		/* Its measured state and the work that is left may go on changing without events.
		 */
		if ((!core_measure(s, node, now) || has_work(s, node)) &&
		    !(s->core->nodes[node].flags & NODE_TOUCHED))
			core_touch(s, node);
		ret = core_set(s, node, now, CORE_FOREVER);
	}
	return ret;
}

int core_view_refresh(struct core_shard *s, double now)
{
	double window = s->core->params.measure_window_ms;
	int ret;

	if (s->core->measures && now >= s->turn_ms) {
		s->turn_ms = (floor(now / window) + 1) * window;
		touched_are_dirty(s);
	}
	if (s->dirty.used == 0)
		return 0;
	take_dirty(s);
	ret = set_changed(s, now);
	rules_view_settle(s->view);
	return ret;
}

int core_snapshot_own(struct core_shard *s, double now)
{
	touched_are_dirty(s);
	take_dirty(s);
	s->placed.used = 0;
	return set_changed(s, now);
}

int core_snapshot_others(struct core_shard *s)
{
	const struct core *c = s->core;

	for (uint32_t k = 0; k < c->nshards; k++) {
		const struct core_list *changed = &c->shards[k].changed;

		for (uint32_t i = 0; k != s->index && i < changed->used; i++) {
			int ret;

			if (i + NODES_AHEAD < changed->used)
				rules_view_prefetch(s->view, changed->ids[i + NODES_AHEAD]);
			ret = rules_view_copy(s->view, c->shards[k].view, changed->ids[i]);
			if (ret < 0)
				return core_fail(s, ret, "cannot copy the snapshot");
		}
	}
	rules_view_settle(s->view);
	return 0;
}
