/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The fluid level: segments advance at rates.  The only events are that a segment begins, ends or
 * is stopped, or that the members or the buffer change what tasks need.
 *
 *   A segment of C ms of computation needs C / speed of the processor, C (1 - h) lambda
 *   accesses and C page faults by the present rates (1.3-1.5), or the given number of accesses.
 *   All tasks' rates follow from the demands of all (sharing.h); left_j falls by rate_j per ms.
 *
 * The number of requests of a segment is drawn when it begins (fluid_demand.c), unless given.
 *
 * On a node where no task both computes and uses the disk, the requests of tasks with few of them
 * (transfers have one) are served one at a time in turn, as FCFS would.  A transfer waits for
 * earlier transfers.
 *
 * Sums are booked per task from its progress since the last booking, because all of them are
 * linear in the progress.  Demands and rates are computed only when they are needed: a change
 * marks them stale, so many arrivals or ends at one instant cost one solution.  Only the request
 * level has a scheduler that lowers the priority of CPU hogs (O-50).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/fluid.h"

#define STALE	   -1.0	 /* a value in next[]: rates must be solved first */
#define NOTHING	   1e-12 /* a segment with less left has ended */
#define ROUNDING   1e-6	 /* tolerance, in requests */
#define TURNS_MOST 16	 /* requests are served in turn if a task has at most this many */

/* --- rates ------------------------------------------------------------------------------ */

static inline bool fluid_disk_only(const struct sharing_task *s)
{
	return !(s->cpu_ms > 0);
}

/*
 * Serve requests in turn if several tasks use the disk, none of them computes and one
 * has few requests.
 */
static bool turns_wanted(const struct fluid_node *f)
{
	uint32_t users = 0;
	bool few = false;

	for (uint32_t i = 0; i < f->active; i++) {
		const struct sharing_task *s = &f->shares[i];

		if (!fluid_disk_only(s) && s->visits + s->delay_ms > 0)
			return false;
		if (fluid_disk_only(s)) {
			users++;
			few = few || s->visits <= TURNS_MOST;
		}
	}
	return few && users > 1;
}

/* The run whose request is being served, else the one with the lowest ticket. */
static struct fluid_run *turn_of(struct fluid_node *f, uint32_t *index)
{
	struct fluid_run *r = NULL;

	for (uint32_t i = 0; i < f->active; i++) {
		struct fluid_run *other = &f->runs[i];

		if (!fluid_disk_only(&f->shares[i]))
			continue;
		if (!r || other->serving || (!r->serving && other->ticket < r->ticket)) {
			r = other;
			*index = i;
		}
	}
	return r;
}

static void turns_solve(struct fluid_node *f)
{
	double computing = 0, power, requests;
	struct fluid_run *r;
	uint32_t served = 0;

	for (uint32_t i = 0; i < f->active; i++)
		computing += !fluid_disk_only(&f->shares[i]);
	power = computing <= f->machine.cores ? computing : f->machine.crowded;
	for (uint32_t i = 0; i < f->active; i++) {
		struct sharing_task *s = &f->shares[i];

		s->rate = fluid_disk_only(s) ? 0 : power / computing / s->cpu_ms;
	}
	r = turn_of(f, &served);
	requests = f->shares[served].visits * r->left;
	r->serving = true;
	r->until = fmax((ceil(requests - ROUNDING) - 1) / f->shares[served].visits, 0);
	f->shares[served].rate = 1 / (f->shares[served].visits * f->shares[served].service_ms);
	f->load.at_cpu = computing;
	f->load.at_disk = f->active - computing;
	f->load.cores_busy = fmin(computing, f->machine.cores);
}

/* Finds the next event and its time. */
static void fluid_plan(const struct node_model *m, uint32_t node, struct fluid_node *f)
{
	double soonest = NODE_NEVER;

	f->first = 0;
	for (uint32_t i = 0; i < f->active; i++) {
		const struct fluid_run *r = &f->runs[i];
		double to = f->turns && r->serving ? r->until : 0, rate = f->shares[i].rate;
		double time = r->left - to <= NOTHING ? 0 : (r->left - to) / rate;

		if (rate > 0 && time < soonest) {
			soonest = time;
			f->first = i;
			f->first_left = to;
		}
	}
	m->next[node] = soonest < NODE_NEVER ? f->at_ms + soonest : NODE_NEVER;
}

/* A run with nothing left ends first; the solution is only needed for the runs that remain. */
static bool ended_already(const struct node_model *m, uint32_t node, struct fluid_node *f)
{
	for (uint32_t i = 0; i < f->active; i++) {
		if (f->runs[i].left <= NOTHING) {
			f->first = i;
			f->first_left = 0;
			m->next[node] = f->at_ms;
			return true;
		}
	}
	return false;
}

/* Updates the demands of all runs after others have come or gone. */
static void demand_again(const struct node_model *m, uint32_t node, struct fluid_node *f)
{
	for (uint32_t i = 0; i < f->active; i++) {
		struct fluid_run *r = &f->runs[i];

		if (!r->work)
			fluid_demand(m, &m->nodes[node], node_task_of(m, r->id), r, &f->shares[i]);
	}
	f->changed = false;
}

static void fluid_settle(const struct node_model *m, uint32_t node)
{
	struct fluid_node *f = fluid_of(m, node);

	if (m->next[node] != STALE)
		return;
	f->load = (struct sharing_load){0};
	if (ended_already(m, node, f))
		return;
	if (f->changed)
		demand_again(m, node, f);
	f->turns = turns_wanted(f);
	if (f->turns)
		turns_solve(f);
	else if (f->active > 0)
		sharing_solve(&f->machine, f->shares, f->active, &f->load);
	fluid_plan(m, node, f);
}

static void fluid_advance(const struct node_model *m, uint32_t node, struct fluid_node *f,
			  double now)
{
	double passed = now - f->at_ms;

	if (!(passed > 0))
		return;
	fluid_settle(m, node);
	for (uint32_t i = 0; i < f->active; i++) {
		double left = f->runs[i].left - f->shares[i].rate * passed;

		f->runs[i].left = left > 0 ? left : 0;
	}
	f->sums.cpu_busy_ms += passed * f->load.cores_busy;
	f->at_ms = now;
	f->booked = false;
}

static void stale(struct node_model *m, uint32_t node)
{
	m->next[node] = STALE;
}

static void run_move(struct node_model *m, struct fluid_node *f, uint32_t to, uint32_t from)
{
	if (to == from)
		return;
	f->runs[to] = f->runs[from];
	f->shares[to] = f->shares[from];
	if (!f->runs[to].work)
		node_task_of(m, f->runs[to].id)->link = to;
}

/* Adds a run at the end of the active ones; there must be room. */
static uint32_t run_add(struct node_model *m, struct fluid_node *f, const struct fluid_run *r,
			const struct sharing_task *s)
{
	uint32_t i = f->active++;

	run_move(m, f, f->count++, i);
	f->runs[i] = *r;
	f->runs[i].ticket = ++f->tickets;
	f->shares[i] = *s;
	return i;
}

/* Activates the transfer that has waited longest. */
static void work_begin(struct node_model *m, struct fluid_node *f)
{
	uint32_t oldest = f->active;
	struct sharing_task s;
	struct fluid_run r;

	for (uint32_t i = f->active + 1; i < f->count; i++) {
		if (f->runs[i].ticket < f->runs[oldest].ticket)
			oldest = i;
	}
	r = f->runs[oldest];
	s = f->shares[oldest];
	run_move(m, f, oldest, f->active);
	f->runs[f->active] = r;
	f->shares[f->active++] = s;
}

static void run_remove(struct node_model *m, struct fluid_node *f, uint32_t i)
{
	bool work = f->runs[i].work;

	run_move(m, f, i, --f->active);
	run_move(m, f, f->active, --f->count);
	if (work && --f->works > 0)
		work_begin(m, f);
}

/* --- the interface ----------------------------------------------------------------------- */

static int fluid_room_make(struct fluid_node *f, uint32_t need)
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

	return fluid_room_make(f, m->nodes[node].count + f->works + 1);
}

static void fluid_before(struct node_model *m, uint32_t node, double now)
{
	fluid_advance(m, node, fluid_of(m, node), now);
}

static void fluid_after(struct node_model *m, uint32_t node, double now, bool rates)
{
	struct fluid_node *f = fluid_of(m, node);

	(void)now;
	if (!rates || f->active == 0)
		return;
	for (uint32_t i = 0; i < f->active && !f->booked; i++)
		if (!f->runs[i].work)
			fluid_book(m, f, &f->runs[i]);
	f->booked = f->changed = true;
	stale(m, node);
}

static int fluid_run(struct node_model *m, uint32_t node, uint32_t task, double cpu_ms,
		     double requests, double now)
{
	struct fluid_node *f = fluid_of(m, node);
	struct node_task *t = node_task_of(m, task);
	struct fluid_run r = {
		.left = 1, .booked = 1, .cpu_ms = cpu_ms, .given = requests, .id = task};
	struct sharing_task s = {0};

	fluid_advance(m, node, f, now);
	t->segment_ms = cpu_ms;
	t->goal_ms = t->done_ms + cpu_ms;
	t->requests_left = requests;
	t->state = 1;
	fluid_draw(&m->nodes[node], t, &r);
	fluid_demand(m, &m->nodes[node], t, &r, &s);
	if (!(cpu_ms > 0) && !(s.visits * s.service_ms > 0))
		r.left = 0;
	t->link = run_add(m, f, &r, &s);
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
	fluid_advance(m, node, f, now);
	r = &f->runs[t->link];
	fluid_book(m, f, r);
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
	struct fluid_run r = {.left = 1, .booked = 1, .access_ms = ms, .id = token, .work = true};
	struct sharing_task s = {.visits = 1, .service_ms = ms, .service_ms2 = ms * ms};

	if (fluid_room_make(f, m->nodes[node].count + f->works + 2) < 0)
		return -ENOMEM;
	fluid_advance(m, node, f, now);
	if (!(ms > 0))
		r.left = 0;
	run_add(m, f, &r, &s);
	if (f->works++ > 0)
		f->active--;
	stale(m, node);
	return 0;
}

static void fluid_refresh(struct node_model *m, uint32_t node, double now)
{
	struct fluid_node *f = fluid_of(m, node);

	fluid_advance(m, node, f, now);
	for (uint32_t i = 0; i < f->active; i++)
		fluid_book(m, f, &f->runs[i]);
}

/* Handles the planned event: the end of a run or of a request served in turn. */
static void reach(struct node_model *m, uint32_t node, struct fluid_node *f)
{
	struct fluid_run *r = &f->runs[f->first];

	/*
	 * Of the runs that have ended this is the first, so this step ends it, which books it.
	 * The others have made no progress: booking all of them for each end of thousands of ranks
	 * that end together would cost the square of their number.
	 */
	f->booked = f->booked && r->left <= NOTHING;
	r->left = f->first_left;
	if (f->turns && r->serving) {
		r->serving = false;
		r->ticket = ++f->tickets;
		stale(m, node);
	}
}

static int fluid_step(struct node_model *m, uint32_t node, double now,
		      const struct node_done **done)
{
	struct fluid_node *f = fluid_of(m, node);
	int n = 0;

	fluid_settle(m, node);
	fluid_advance(m, node, f, now);
	if (f->active > 0 && now >= m->next[node])
		reach(m, node, f);
	for (uint32_t i = 0; i < f->active && n < NODE_DONE_MAX;) {
		struct fluid_run *r = &f->runs[i];

		if (r->left > NOTHING) {
			i++;
			continue;
		}
		r->left = 0;
		fluid_book(m, f, r);
		f->done[n++] = (struct node_done){.task = r->id, .disk_work = r->work};
		if (!r->work)
			node_task_of(m, r->id)->state = 0;
		run_remove(m, f, i);
		stale(m, node);
	}
	if (m->next[node] != STALE)
		fluid_plan(m, node, f);
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
	return (uint32_t)fmax(f->load.at_disk - (f->works > 0) + 0.5, 0);
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
	for (uint32_t i = 0; i < f->active; i++) {
		double left = f->runs[i].left;

		if (passed > 0)
			left = fmax(left - passed * f->shares[i].rate, 0);
		fluid_book_to(sums, &f->runs[i], f->runs[i].booked - left);
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

static void fluid_prefetch(const struct node_model *m, uint32_t node)
{
	const char *state = (const char *)fluid_of(m, node);

	for (size_t at = 0; at < sizeof(struct fluid_node); at += 64)
		__builtin_prefetch(state + at, 1);
	__builtin_prefetch(&m->nodes[node], 1);
	__builtin_prefetch((const char *)&m->nodes[node] + 64, 1);
}

static void fluid_prefetch_tasks(const struct node_model *m, uint32_t node)
{
	const struct fluid_node *f = fluid_of(m, node);
	const struct node *n = &m->nodes[node];
	const char *runs = (const char *)f->runs;

	for (uint32_t i = 0; i < n->count && i < NODE_FEW; i++)
		__builtin_prefetch(&node_task_of(m, n->members[i])->done_ms, 1);
	for (size_t at = 0; at < sizeof(struct fluid_run); at += 64)
		__builtin_prefetch(runs + at, 1);
	__builtin_prefetch(f->shares, 1);
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
	.prefetch = fluid_prefetch,
	.prefetch_tasks = fluid_prefetch_tasks,
	.runnable = fluid_runnable,
	.at_disk = fluid_at_disk,
	.sums = fluid_sums,
};
