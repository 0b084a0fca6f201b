/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The fluid level: segments advance at rates, and something happens only when one
 * begins, ends or is stopped, or when members or the buffer change what others need.
 *
 *   A segment of C ms of computation asks, as a whole, for C / speed of the processor,
 *   C (1 - h) lambda accesses and C page faults by the rates of the moment (1.3-1.5), or
 *   for the given number of accesses.  All tasks' rates follow from all their demands
 *   (sharing.h); left_j falls by rate_j a ms.
 *
 * What is random in the mean of many requests is small, but not their number: as at the
 * request level, a segment that expects M requests makes a Poisson number of them, and a
 * mean of as many sizes.  Both are drawn where it begins: N requests instead of M.  When
 * its rates change later it makes M' N / M for M' <= M, else N + M' - M: of extra
 * requests that were not foreseen the mean.  (Without this, tasks alike would end at
 * the same moment and barriers would cost nothing.)  Accesses given by number are not
 * drawn.
 *
 * Sums are booked task by task from the progress since the last booking, as all of them
 * are linear in it.  Rates are solved when they are asked for: a change makes them
 * stale, so that an arrival or an end costs one solution.  A scheduler that lowers the
 * priority of hogs (O-50) is known at the request level only.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node_private.h"
#include "sharing.h"

#define STALE	     -1.0  /* in next[]: to be solved first */
#define NOTHING	     1e-12 /* of a segment: it has ended */
#define MB_PER_KB    1e-3
#define POISSON_FEW  10.0
#define SPREAD_LEAST 1e-4 /* squared; less variable means are not drawn */

struct fluid_run {
	double left, booked; /* of the segment, 1 to 0; as of which the sums are */
	double cpu_ms;	     /* computation in the segment, reference speed */
	double given;	     /* accesses by number; negative: by rate */
	double drawn, expected;
	double kb; /* mean size of its accesses */
	/* in the whole segment, at the present rates */
	double accesses, hits, faults;
	double access_ms, access_ms2, fault_ms;
	uint32_t id;
	bool work;
};

struct fluid_node {
	struct sharing_task *shares; /* of each run; one block with runs */
	struct fluid_run *runs;
	uint32_t count, room, works;
	uint32_t first; /* ends next */
	double at_ms;	/* what `left` is as of */
	struct sharing_machine machine;
	struct sharing_load load;
	struct node_sums sums;
	struct node_done done[NODE_DONE_MAX];
};

static inline struct fluid_node *fluid_of(const struct node_model *m, uint32_t node)
{
	return &((struct fluid_node *)m->state)[node];
}

/* --- demands -------------------------------------------------------------------------- */

static double draw_normal(struct sim_random *r)
{
	double radius = sqrt(-2 * log(sim_random_uniform(r)));

	return radius * cos(2 * M_PI * sim_random_uniform(r));
}

/* Few: by inversion; more: (sqrt(mean) + z / 2)^2, which has the mean and variance. */
static double draw_poisson(struct sim_random *r, double mean)
{
	double n = 0, p = exp(-mean), u, root;

	if (mean < POISSON_FEW) {
		for (u = sim_random_uniform(r) - p; u > 0 && p > 0; u -= p)
			p *= mean / ++n;
		return n;
	}
	root = sqrt(mean) + draw_normal(r) / 2;
	return root > 0 ? fmax(root * root - 0.25, 0) : 0;
}

/* Mean of N sizes. */
static double draw_size(const struct node_task *t, struct sim_random *r, double n)
{
	double cv = t->request_kb > 0 ? t->request_sd_kb / t->request_kb : 0;

	if (!(n > 0) || !(cv * cv > SPREAD_LEAST * n))
		return t->request_kb;
	return t->request_kb * fmax(1 + cv * draw_normal(r) / sqrt(n), 0);
}

/* By rate, per segment: accesses that miss, accesses that hit, page faults. */
static void expect(const struct node *n, const struct node_task *t, struct fluid_run *r)
{
	double io = r->given < 0 ? r->cpu_ms * t->io_per_ms : 0;
	double hit = io > 0 ? node_hit_rate(n, t) : 0;

	r->hits = io * hit;
	r->accesses = io - r->hits;
	r->faults = r->cpu_ms * node_page_rate(n, t);
}

/* The part of the disk requests expected by rate that the segment makes. */
static double luck(const struct fluid_run *r, double expected)
{
	if (!(expected > 0))
		return 0;
	if (expected <= r->expected)
		return r->drawn / r->expected;
	return (r->drawn + expected - r->expected) / expected;
}

/* What the segment asks for at the node's present rates. */
static void demand(const struct node_model *m, const struct node *n, struct node_task *t,
		   struct fluid_run *r, struct sharing_task *s)
{
	double part, sum_ms, sum_ms2;

	expect(n, t, r);
	part = luck(r, r->accesses + r->faults);
	r->accesses *= part;
	r->faults *= part;
	if (r->given >= 0)
		r->accesses = r->given;
	r->access_ms = rules_service_ms(n->disk_fixed_ms, r->kb, n->disk_mb_per_s);
	r->access_ms2 =
		rules_service_ms2(n->disk_fixed_ms, r->kb, t->request_sd_kb, n->disk_mb_per_s);
	r->fault_ms = m->page_fault_at_disk ? m->page_fault_ms : 0;
	sum_ms = r->accesses * r->access_ms + r->faults * r->fault_ms;
	sum_ms2 = r->accesses * r->access_ms2 + r->faults * r->fault_ms * r->fault_ms;
	s->cpu_ms = r->cpu_ms / n->speed;
	s->regular = r->given >= 0 && !(r->faults > 0);
	s->visits = r->accesses + (m->page_fault_at_disk ? r->faults : 0);
	s->service_ms = s->visits > 0 ? sum_ms / s->visits : 0;
	s->service_ms2 = s->visits > 0 ? sum_ms2 / s->visits : 0;
	s->delay_ms = m->page_fault_at_disk ? 0 : r->faults * m->page_fault_ms;
	t->epoch = n->epoch;
}

/* --- progress --------------------------------------------------------------------------- */

static void book_to(struct node_sums *sums, const struct fluid_run *r, double part)
{
	double accesses = part * r->accesses, at_disk;

	if (r->work) {
		sums->disk_busy_ms += part * r->access_ms;
		return;
	}
	at_disk = r->fault_ms > 0 ? part * r->faults : 0;
	sums->disk_requests += accesses + at_disk;
	sums->page_faults += part * r->faults;
	sums->accesses += accesses + part * r->hits;
	sums->hits += part * r->hits;
	sums->service_sum += accesses * r->access_ms + at_disk * r->fault_ms;
	sums->service_sum2 += accesses * r->access_ms2 + at_disk * r->fault_ms * r->fault_ms;
	sums->disk_busy_ms += accesses * r->access_ms + at_disk * r->fault_ms;
	sums->disk_mb += accesses * r->kb * MB_PER_KB;
}

static void book(const struct node_model *m, struct fluid_node *f, struct fluid_run *r)
{
	double part = r->booked - r->left;
	struct node_task *t;

	if (part > 0) {
		book_to(&f->sums, r, part);
		r->booked = r->left;
	}
	if (r->work)
		return;
	t = node_task_of(m, r->id);
	t->segment_ms = r->cpu_ms * r->left;
	t->done_ms = t->goal_ms - t->segment_ms;
	if (part > 0)
		t->accessed_mb +=
			part * (r->accesses * r->kb + r->hits * t->request_kb) * MB_PER_KB;
}

/* Which run ends next, and when. */
static void plan(const struct node_model *m, uint32_t node, struct fluid_node *f)
{
	double soonest = NODE_NEVER;

	f->first = 0;
	for (uint32_t i = 0; i < f->count; i++) {
		double rate = f->shares[i].rate, left = f->runs[i].left;
		double time = left <= NOTHING ? 0 : rate > 0 ? left / rate : NODE_NEVER;

		if (time < soonest) {
			soonest = time;
			f->first = i;
		}
	}
	m->next[node] = soonest < NODE_NEVER ? f->at_ms + soonest : NODE_NEVER;
}

/* Runs that have nothing left ask for nothing: the solution is for those behind them. */
static void fluid_settle(const struct node_model *m, uint32_t node)
{
	struct fluid_node *f = fluid_of(m, node);

	if (m->next[node] != STALE)
		return;
	f->load = (struct sharing_load){0};
	for (uint32_t i = 0; i < f->count; i++) {
		if (f->runs[i].left <= NOTHING) {
			f->first = i;
			m->next[node] = f->at_ms;
			return;
		}
	}
	if (f->count > 0)
		sharing_solve(&f->machine, f->shares, f->count, &f->load);
	plan(m, node, f);
}

static void advance(const struct node_model *m, uint32_t node, struct fluid_node *f, double now)
{
	double passed = now - f->at_ms;

	if (!(passed > 0))
		return;
	fluid_settle(m, node);
	for (uint32_t i = 0; i < f->count; i++) {
		double left = f->runs[i].left - f->shares[i].rate * passed;

		f->runs[i].left = left > 0 ? left : 0;
	}
	f->sums.cpu_busy_ms += passed * f->load.cores_busy;
	f->at_ms = now;
}

static void stale(struct node_model *m, uint32_t node)
{
	m->next[node] = STALE;
}

static void run_remove(struct node_model *m, struct fluid_node *f, uint32_t i)
{
	uint32_t last = --f->count;

	if (f->runs[i].work)
		f->works--;
	if (i == last)
		return;
	f->runs[i] = f->runs[last];
	f->shares[i] = f->shares[last];
	if (!f->runs[i].work)
		node_task_of(m, f->runs[i].id)->link = i;
}

/* --- the interface ----------------------------------------------------------------------- */

static int room_make(struct fluid_node *f, uint32_t need)
{
	uint32_t room = f->room ? f->room : 2;
	struct sharing_task *shares;
	struct fluid_run *runs;

	if (need <= f->room)
		return 0;
	while (room < need)
		room *= 2;
	shares = malloc(room * (sizeof(*shares) + sizeof(*runs)));
	if (!shares)
		return -ENOMEM;
	runs = (struct fluid_run *)(void *)(shares + room);
	if (f->count > 0) {
		memcpy(shares, f->shares, f->count * sizeof(*shares));
		memcpy(runs, f->runs, f->count * sizeof(*runs));
	}
	free(f->shares);
	f->shares = shares;
	f->runs = runs;
	f->room = room;
	return 0;
}

static int fluid_reserve(struct node_model *m, uint32_t node)
{
	struct fluid_node *f = fluid_of(m, node);

	return room_make(f, m->nodes[node].count + f->works + 1);
}

static void fluid_before(struct node_model *m, uint32_t node, double now)
{
	advance(m, node, fluid_of(m, node), now);
}

static void fluid_after(struct node_model *m, uint32_t node, double now, bool rates)
{
	struct fluid_node *f = fluid_of(m, node);

	(void)now;
	if (!rates || f->count == 0)
		return;
	for (uint32_t i = 0; i < f->count; i++) {
		struct fluid_run *r = &f->runs[i];

		if (r->work)
			continue;
		book(m, f, r);
		demand(m, &m->nodes[node], node_task_of(m, r->id), r, &f->shares[i]);
	}
	stale(m, node);
}

static int fluid_run(struct node_model *m, uint32_t node, uint32_t task, double cpu_ms,
		     double requests, double now)
{
	struct fluid_node *f = fluid_of(m, node);
	struct node_task *t = node_task_of(m, task);
	struct fluid_run r = {
		.left = 1, .booked = 1, .cpu_ms = cpu_ms, .given = requests, .id = task};
	uint32_t i = f->count;

	advance(m, node, f, now);
	t->segment_ms = cpu_ms;
	t->goal_ms = t->done_ms + cpu_ms;
	t->requests_left = requests;
	t->state = 1;
	t->link = i;
	expect(&m->nodes[node], t, &r);
	r.expected = r.accesses + r.faults;
	r.drawn = r.expected > 0 ? draw_poisson(&t->random, r.expected) : 0;
	r.kb = draw_size(t, &t->random,
			 requests < 0 ? luck(&r, r.expected) * r.accesses : requests);
	f->shares[i] = (struct sharing_task){0};
	demand(m, &m->nodes[node], t, &r, &f->shares[i]);
	if (!(cpu_ms > 0) && !(f->shares[i].visits * f->shares[i].service_ms > 0))
		r.left = 0;
	f->runs[i] = r;
	f->count++;
	stale(m, node);
	return 0;
}

static double fluid_stop(struct node_model *m, uint32_t node, uint32_t task, double now)
{
	struct fluid_node *f = fluid_of(m, node);
	struct node_task *t = node_task_of(m, task);
	struct fluid_run *r;

	if (t->state == 0)
		return 0;
	advance(m, node, f, now);
	r = &f->runs[t->link];
	book(m, f, r);
	t->requests_left = r->given < 0 ? r->given : r->given * r->left;
	t->state = 0;
	run_remove(m, f, t->link);
	stale(m, node);
	return t->segment_ms;
}

static int fluid_disk_work(struct node_model *m, uint32_t node, double ms, uint32_t token,
			   double now)
{
	struct fluid_node *f = fluid_of(m, node);

	if (room_make(f, m->nodes[node].count + f->works + 2) < 0)
		return -ENOMEM;
	advance(m, node, f, now);
	f->runs[f->count] = (struct fluid_run){
		.left = ms > 0 ? 1 : 0, .booked = 1, .access_ms = ms, .id = token, .work = true};
	f->shares[f->count] =
		(struct sharing_task){.visits = 1, .service_ms = ms, .service_ms2 = ms * ms};
	f->count++;
	f->works++;
	stale(m, node);
	return 0;
}

static void fluid_refresh(struct node_model *m, uint32_t node, double now)
{
	struct fluid_node *f = fluid_of(m, node);

	advance(m, node, f, now);
	for (uint32_t i = 0; i < f->count; i++)
		book(m, f, &f->runs[i]);
}

static int fluid_step(struct node_model *m, uint32_t node, double now,
		      const struct node_done **done)
{
	struct fluid_node *f = fluid_of(m, node);
	int n = 0;

	fluid_settle(m, node);
	advance(m, node, f, now);
	if (now >= m->next[node])
		f->runs[f->first].left = 0;
	for (uint32_t i = 0; i < f->count && n < NODE_DONE_MAX;) {
		struct fluid_run *r = &f->runs[i];

		if (r->left > NOTHING) {
			i++;
			continue;
		}
		r->left = 0;
		book(m, f, r);
		f->done[n++] = (struct node_done){.task = r->id, .disk_work = r->work};
		if (!r->work)
			node_task_of(m, r->id)->state = 0;
		run_remove(m, f, i);
	}
	if (n > 0)
		stale(m, node);
	else
		plan(m, node, f);
	*done = f->done;
	return n;
}

static uint32_t fluid_runnable(const struct node_model *m, uint32_t node)
{
	fluid_settle(m, node);
	return (uint32_t)(fluid_of(m, node)->load.at_cpu + 0.5);
}

static uint32_t fluid_at_disk(const struct node_model *m, uint32_t node)
{
	const struct fluid_node *f = fluid_of(m, node);

	fluid_settle(m, node);
	return (uint32_t)fmax(f->load.at_disk - f->works + 0.5, 0);
}

static void fluid_sums(const struct node_model *m, uint32_t node, double now,
		       struct node_sums *sums)
{
	const struct fluid_node *f = fluid_of(m, node);
	double passed = now - f->at_ms;

	if (passed > 0)
		fluid_settle(m, node);
	*sums = f->sums;
	sums->cpu_busy_ms += passed * f->load.cores_busy;
	for (uint32_t i = 0; i < f->count; i++) {
		double left = f->runs[i].left;

		if (passed > 0)
			left = fmax(left - passed * f->shares[i].rate, 0);
		book_to(sums, &f->runs[i], f->runs[i].booked - left);
	}
}

static int fluid_create(struct node_model *m)
{
	struct fluid_node *nodes = calloc(m->n, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct node *n = &m->nodes[i];

		nodes[i].machine.cores = n->cores;
		nodes[i].machine.crowded = n->crowded / n->speed;
	}
	m->state = nodes;
	return 0;
}

static void fluid_destroy(struct node_model *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		free(fluid_of(m, i)->shares);
	free(m->state);
}

static size_t fluid_bytes(const struct node_model *m)
{
	size_t bytes = m->n * sizeof(struct fluid_node);

	for (uint32_t i = 0; i < m->n; i++)
		bytes += fluid_of(m, i)->room *
			 (sizeof(struct sharing_task) + sizeof(struct fluid_run));
	return bytes;
}

const struct node_fidelity node_fluid = {
	.create = fluid_create,
	.destroy = fluid_destroy,
	.bytes = fluid_bytes,
	.reserve = fluid_reserve,
	.before = fluid_before,
	.after = fluid_after,
	.run = fluid_run,
	.stop = fluid_stop,
	.disk_work = fluid_disk_work,
	.refresh = fluid_refresh,
	.settle = fluid_settle,
	.step = fluid_step,
	.runnable = fluid_runnable,
	.at_disk = fluid_at_disk,
	.sums = fluid_sums,
};
