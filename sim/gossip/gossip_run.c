/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gossip_run.h. */
#include "sim/gossip/gossip_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/gossip/gossip.h"
#include "sim/random.h"

#define PERIOD_MS     1000u
#define NS_PER_MS     1000000ull
#define AGE_MS_MAX    60000u
#define RELAYED_MAX   255 /* as agent/net/net_bulletin.h has it */
#define HELLO_PERIODS 15u
#define ASKED_PERIODS 30u
#define LOST_PERIODS  600u

/* That a node hears another, heard it a while ago, or was asked to hear it. */
struct run_tie {
	uint32_t who;
	uint32_t asked_until; /* ms */
	struct gossip_tie tie;
};

struct run_node {
	struct gossip_place place;
	uint32_t phase; /* ms */
	bool up, flaps, other_half;
	double turns_at;      /* ms: flapping */
	struct run_tie *ties; /* by `who` */
	size_t nties, ties_room;
	uint32_t *ears; /* the nodes that hear this one */
	size_t nears, ears_room;
	uint64_t bytes, sent;
};

struct run {
	const struct gossip_setup *setup;
	enum gossip_scenario scenario;
	uint32_t n;
	struct run_node *nodes;
	uint32_t *
		made; /* [n * n]: made[i * n + j] when what i knows of j was made, ms; 0: nothing */
	uint32_t *since; /* the same: when j was there, for the first time or again */
	uint32_t *order; /* nodes by their phases */
	struct gossip_node *plan;
	struct gossip_item *items;
	uint32_t *told;
	bool *tied;
	size_t alive; /* nodes that the one in turn counts as there, itself included */
	struct sim_random random;
	bool parted, measures;
	uint64_t ages[AGE_MS_MAX + 1], pairs, gone;
	uint64_t bulletins, vectors, news, ties, dials;
	uint32_t from, dead_ms, excluded_ms, joined_ms, healed_ms;
	bool failed;
};

static const char *const names[GOSSIP_SCENARIOS] = {"steady", "dead", "cut", "flap"};

const char *gossip_scenario_name(enum gossip_scenario scenario)
{
	return names[scenario];
}

void gossip_setup_init(struct gossip_setup *setup)
{
	*setup = (struct gossip_setup){
		.nodes = 1000,
		.periods = 60,
		.settle = 15,
		.seed = 1,
		.peers = 3,
		.vector_bytes = 225, /* balancer/view/vector_codec.h */
		.head_bytes = 200,
		.dial_ms = 100,
		.silent = 3,
		.dead = 0.01,
		.cut = 30,
		.flapping = 0.1,
		.up = 20,
		.down = 10,
	};
}

/* --- ties --------------------------------------------------------------------------- */

static size_t run_tie_at(const struct run_node *node, uint32_t who)
{
	size_t low = 0, high = node->nties;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (node->ties[mid].who < who)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct run_tie *run_tie_find(const struct run_node *node, uint32_t who)
{
	size_t at = run_tie_at(node, who);

	return at < node->nties && node->ties[at].who == who ? &node->ties[at] : NULL;
}

/* Makes room for one more of *LIST, of SIZE bytes each. */
static bool run_grow(struct run *run, void **list, size_t *room, size_t n, size_t size)
{
	size_t more = *room ? 2 * *room : 64;
	void *grown;

	if (n < *room)
		return true;
	grown = realloc(*list, more * size);
	run->failed = run->failed || !grown;
	if (!grown)
		return false;
	*list = grown;
	*room = more;
	return true;
}

static struct run_tie *run_tie_make(struct run *run, struct run_node *node, uint32_t who)
{
	struct run_tie *found = run_tie_find(node, who);
	size_t at = run_tie_at(node, who);

	if (found || !run_grow(run, (void **)&node->ties, &node->ties_room, node->nties,
			       sizeof(*node->ties)))
		return found;
	memmove(&node->ties[at + 1], &node->ties[at], (node->nties - at) * sizeof(*node->ties));
	node->nties++;
	node->ties[at] = (struct run_tie){.who = who};
	return &node->ties[at];
}

static void run_ear(struct run *run, uint32_t speaker, uint32_t ear, bool on)
{
	struct run_node *s = &run->nodes[speaker];

	if (on) {
		if (run_grow(run, (void **)&s->ears, &s->ears_room, s->nears, sizeof(*s->ears)))
			s->ears[s->nears++] = ear;
		return;
	}
	for (size_t i = 0; i < s->nears; i++)
		if (s->ears[i] == ear) {
			s->ears[i] = s->ears[--s->nears];
			return;
		}
}

static void run_tie_set(struct run *run, uint32_t self, uint32_t who, bool on, uint32_t now)
{
	struct run_node *node = &run->nodes[self];
	struct run_tie *tie = on ? run_tie_make(run, node, who) : run_tie_find(node, who);

	if (!tie || !gossip_tie_set(&tie->tie, on, now * NS_PER_MS))
		return;
	run_ear(run, who, self, on);
	run->dials += on && run->measures;
}

/* --- the plan ------------------------------------------------------------------------ */

static bool run_is_alive(const struct run *run, uint32_t self, uint32_t who, uint32_t now)
{
	uint32_t made = run->made[(size_t)self * run->n + who];

	return made && now - made <= run->setup->silent * PERIOD_MS;
}

/* Asks the configured peers to hear this node. */
static void run_hello(struct run *run, uint32_t self, uint32_t now)
{
	for (uint32_t p = 0; p < run->setup->peers && p < run->n; p++) {
		struct run_node *peer = &run->nodes[p];
		struct run_tie *tie;

		if (p == self || !peer->up || !run_is_alive(run, self, p, now) ||
		    (run->parted && peer->other_half != run->nodes[self].other_half) ||
		    run_is_alive(run, p, self, now))
			continue;
		run_tie_set(run, p, self, true, now);
		tie = run_tie_find(peer, self);
		if (tie)
			tie->asked_until = now + ASKED_PERIODS * PERIOD_MS;
	}
}

/* Returns true if WHO, which is not alive, is to be heard all the same: when it comes. */
static bool run_is_awaited(const struct run *run, uint32_t self, uint32_t who, uint32_t now)
{
	const struct run_tie *tie = run_tie_find(&run->nodes[self], who);

	return who < run->setup->peers || (tie && now < tie->asked_until);
}

static void run_plan(struct run *run, uint32_t self, uint32_t now)
{
	struct run_node *node = &run->nodes[self];
	const uint32_t *made = &run->made[(size_t)self * run->n];
	size_t n = 0;

	run->alive = 1;
	for (uint32_t j = 0; j < run->n; j++) {
		if (j == self || !made[j] || now - made[j] > LOST_PERIODS * PERIOD_MS)
			continue;
		run->told[n] = j;
		run->plan[n++] = (struct gossip_node){.place = run->nodes[j].place,
						      .alive = run_is_alive(run, self, j, now)};
		run->alive += run->plan[n - 1].alive;
	}
	for (size_t i = 0, at = 0; i < n; i++) { /* both are in the order of the nodes */
		while (at < node->nties && node->ties[at].who < run->told[i])
			at++;
		run->tied[i] = at < node->nties && node->ties[at].who == run->told[i];
		if (run->tied[i])
			run->plan[i].mute = gossip_tie_is_mute(&node->ties[at].tie, now * NS_PER_MS,
							       PERIOD_MS * NS_PER_MS);
	}
	(void)gossip_plan(&node->place, run->plan, n, 0);
	for (size_t i = 0; i < n; i++) {
		bool hears = run->plan[i].chosen ||
			     (!run->plan[i].alive && run_is_awaited(run, self, run->told[i], now));

		if (hears || run->tied[i])
			run_tie_set(run, self, run->told[i], hears, now);
	}
	for (uint32_t p = 0; p < run->setup->peers && p < run->n; p++)
		if (p != self && !made[p])
			run_tie_set(run, self, p, true, now);
	if (run->measures)
		for (size_t i = 0; i < node->nties; i++)
			run->ties += node->ties[i].tie.on;
}

/* --- a bulletin ----------------------------------------------------------------------- */

/* Adds the MOST freshest of the slice that SELF keeps, or the latest news of the others. */
static size_t run_take(struct run *run, uint32_t self, uint32_t now, unsigned slices, bool news,
		       size_t most, size_t told)
{
	const uint32_t *made = &run->made[(size_t)self * run->n];
	const uint32_t *since = &run->since[(size_t)self * run->n];
	size_t n = 0;

	for (uint32_t j = 0; j < run->n; j++) {
		bool own = gossip_tells(&run->nodes[self].place, &run->nodes[j].place, slices);

		if (j == self || own == news || !run_is_alive(run, self, j, now) ||
		    (news && !gossip_is_news(since[j], now, PERIOD_MS)))
			continue;
		run->items[n++] = (struct gossip_item){.heard_ns = news ? since[j] : made[j],
						       .what = &run->nodes[j]};
	}
	n = gossip_freshest(run->items, n, most);
	for (size_t i = 0; i < n; i++)
		run->told[told + i] =
			(uint32_t)((const struct run_node *)run->items[i].what - run->nodes);
	return told + n;
}

/* What SELF tells of: of the slice that it keeps, or all.  Returns how many are in run->told. */
static size_t run_tell(struct run *run, uint32_t self, uint32_t now)
{
	unsigned slices = gossip_slices_kept(run->alive);
	size_t n;

	n = run_take(run, self, now, slices, false, RELAYED_MAX, 0);
	return slices == 1 ? n : run_take(run, self, now, slices, true, GOSSIP_NEWS_MAX, n);
}

static void run_learn(struct run *run, uint32_t self, uint32_t who, uint32_t made, uint32_t now)
{
	size_t at = (size_t)self * run->n + who;
	bool was = run_is_alive(run, self, who, now);
	struct run_tie *tie;

	run->made[at] = made;
	if (was || !run_is_alive(run, self, who, now))
		return;
	run->since[at] = now;
	tie = run_tie_find(&run->nodes[self], who);
	if (tie)
		gossip_tie_again(&tie->tie);
}

static void run_hear(struct run *run, uint32_t self, uint32_t from, size_t n, uint32_t now)
{
	struct run_node *node = &run->nodes[self];
	struct run_tie *tie = run_tie_find(node, from);
	const uint32_t *mine = &run->made[(size_t)self * run->n];
	const uint32_t *theirs = &run->made[(size_t)from * run->n];
	uint64_t bytes = run->setup->head_bytes + (n + 1) * run->setup->vector_bytes;
	uint64_t news = 1;

	if (!node->up || !tie || (run->parted && node->other_half != run->nodes[from].other_half) ||
	    now * NS_PER_MS < tie->tie.since_ns + run->setup->dial_ms * NS_PER_MS)
		return;
	tie->tie.heard_ns = now * NS_PER_MS;
	run_learn(run, self, from, now, now);
	for (size_t i = 0; i < n; i++) {
		uint32_t j = run->told[i];

		if (j == self || theirs[j] <= mine[j])
			continue;
		run_learn(run, self, j, theirs[j], now);
		news++;
	}
	if (!run->measures)
		return;
	run->bulletins++;
	run->vectors += n + 1;
	run->news += news;
	node->bytes += bytes;
	run->nodes[from].sent += bytes;
}

static void run_publish(struct run *run, uint32_t self, uint32_t now)
{
	size_t n;

	run_plan(run, self, now);
	if (now / PERIOD_MS % HELLO_PERIODS == self % HELLO_PERIODS || run->scenario == GOSSIP_FLAP)
		run_hello(run, self, now);
	n = run_tell(run, self, now);
	for (size_t i = 0; i < run->nodes[self].nears; i++)
		run_hear(run, run->nodes[self].ears[i], self, n, now);
}

/* --- what happens ---------------------------------------------------------------------- */

/* A node that starts again knows nothing. */
static void run_restart(struct run *run, uint32_t self)
{
	struct run_node *node = &run->nodes[self];

	memset(&run->made[(size_t)self * run->n], 0, run->n * sizeof(*run->made));
	for (size_t i = 0; i < node->nties; i++)
		if (node->ties[i].tie.on)
			run_ear(run, node->ties[i].who, self, false);
	node->nties = 0;
}

static void run_flap(struct run *run, uint32_t now)
{
	for (uint32_t i = 0; i < run->n; i++) {
		struct run_node *node = &run->nodes[i];

		if (!node->flaps || now < node->turns_at)
			continue;
		node->up = !node->up;
		if (node->up)
			run_restart(run, i);
		node->turns_at =
			now + PERIOD_MS * sim_random_exponential(&run->random,
								 node->up ? run->setup->up
									  : run->setup->down);
	}
}

static void run_begin_event(struct run *run, uint32_t now)
{
	uint32_t dead = (uint32_t)(run->setup->dead * run->n + 0.5);

	if (run->scenario == GOSSIP_DEAD) {
		run->dead_ms = now;
		/* Not the configured peers. */
		for (uint32_t i = 0; i < (dead ? dead : 1) && run->setup->peers + i < run->n; i++)
			run->nodes[run->setup->peers + i].up = false;
	} else if (run->scenario == GOSSIP_CUT) {
		run->parted = true;
		for (uint32_t i = 0; i < run->n; i++)
			run->nodes[i].other_half = sim_random_uniform(&run->random) < 0.5;
	} else if (run->scenario == GOSSIP_FLAP) {
		for (uint32_t i = run->setup->peers; i < run->n; i++) {
			struct run_node *node = &run->nodes[i];

			node->flaps = sim_random_uniform(&run->random) < run->setup->flapping;
			node->turns_at = now + PERIOD_MS * sim_random_exponential(&run->random,
										  run->setup->up);
		}
	}
}

/* The ages of what is known now.  The nodes that flap are not counted: they are unknown for a
 * while after each start, and rightly so. */
static void run_look(struct run *run, uint32_t now)
{
	bool all = true, any_dead = false;

	for (uint32_t i = 0; i < run->n; i++) {
		const uint32_t *made = &run->made[(size_t)i * run->n];

		if (!run->nodes[i].up || run->nodes[i].flaps)
			continue;
		for (uint32_t j = 0; j < run->n; j++) {
			uint32_t age = now - made[j];
			bool gone = !made[j] || age > run->setup->silent * PERIOD_MS;

			if (j == i || run->nodes[j].flaps)
				continue;
			any_dead = any_dead || (!run->nodes[j].up && !gone);
			if (!run->nodes[j].up ||
			    (run->parted && run->nodes[i].other_half != run->nodes[j].other_half))
				continue;
			all = all && !gone;
			if (!run->measures)
				continue;
			run->ages[made[j] && age < AGE_MS_MAX ? age : AGE_MS_MAX]++;
			run->pairs++;
			run->gone += gone;
		}
	}
	if (run->dead_ms && !any_dead && !run->excluded_ms)
		run->excluded_ms = now;
	if (run->joined_ms && all && !run->healed_ms)
		run->healed_ms = now;
}

/* --- the run ---------------------------------------------------------------------------- */

static int run_by_phase(const void *a, const void *b, void *arg)
{
	const struct run_node *nodes = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (nodes[x].phase != nodes[y].phase)
		return nodes[x].phase < nodes[y].phase ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void run_period(struct run *run, uint32_t period)
{
	uint32_t begins = period * PERIOD_MS;

	if (run->scenario == GOSSIP_FLAP)
		run_flap(run, begins);
	for (uint32_t at = 0; at < run->n && !run->failed; at++) {
		uint32_t i = run->order[at];

		if (run->nodes[i].up)
			run_publish(run, i, begins + run->nodes[i].phase);
	}
}

static void run_all(struct run *run)
{
	const struct gossip_setup *setup = run->setup;
	/* All settle long enough that no time of the beginning is older than the silence. */
	uint32_t begin = LOST_PERIODS / 100 + setup->settle, end = begin + setup->periods;

	if (run->scenario == GOSSIP_CUT)
		end += setup->cut;
	for (uint32_t period = 1; period < end && !run->failed && !*setup->cancel; period++) {
		uint32_t now = period * PERIOD_MS;
		bool cut_now = run->scenario == GOSSIP_CUT && period < begin + setup->cut;

		if (period == begin)
			run_begin_event(run, now);
		if (run->parted && !cut_now && period >= begin) {
			run->parted = false;
			run->joined_ms = now;
		}
		run->measures = period >= begin && !cut_now;
		run_period(run, period);
		run_look(run, now + PERIOD_MS - 1);
	}
}

/* Everybody knows of everybody, as after a while. */
static void run_init(struct run *run)
{
	char name[24];

	for (uint32_t i = 0; i < run->n; i++) {
		struct run_node *node = &run->nodes[i];

		snprintf(name, sizeof(name), "node%u", i);
		node->place = gossip_place(name);
		node->phase = (uint32_t)sim_random_integer(&run->random, 0, PERIOD_MS - 1);
		node->up = true;
		run->order[i] = i;
		for (uint32_t j = 0; j < run->n; j++)
			run->made[(size_t)i * run->n + j] = 1;
	}
	qsort_r(run->order, run->n, sizeof(*run->order), run_by_phase, run->nodes);
}

static double run_quantile(const struct run *run, double q)
{
	uint64_t sum = 0;

	for (uint32_t age = 0; age <= AGE_MS_MAX; age++) {
		sum += run->ages[age];
		if ((double)sum >= q * (double)run->pairs)
			return (double)age / PERIOD_MS;
	}
	return (double)AGE_MS_MAX / PERIOD_MS;
}

static void run_report(const struct run *run, struct gossip_result *r)
{
	const double periods = run->setup->periods, n = run->n;
	const double pairs = run->pairs ? (double)run->pairs : 1;
	double sum = 0;

	*r = (struct gossip_result){.scenario = run->scenario, .healed = -1, .excluded = -1};
	for (uint32_t age = 0; age <= AGE_MS_MAX; age++)
		sum += (double)run->ages[age] * age;
	r->age_mean = sum / pairs / PERIOD_MS;
	r->age_p50 = run_quantile(run, 0.5);
	r->age_p99 = run_quantile(run, 0.99);
	r->age_max = run_quantile(run, 1);
	r->gone = (double)run->gone / pairs;
	for (uint32_t i = 0; i < run->n; i++) {
		double bytes = (double)run->nodes[i].bytes / periods;
		double sent = (double)run->nodes[i].sent / periods;

		r->bytes += bytes / n;
		if (bytes > r->bytes_max)
			r->bytes_max = bytes;
		if (sent > r->sent_max)
			r->sent_max = sent;
	}
	r->bulletins = (double)run->bulletins / periods / n;
	r->vectors = (double)run->vectors / periods / n;
	r->news = (double)run->news / periods / n;
	r->ties = (double)run->ties / periods / n;
	r->dials = (double)run->dials / periods / n;
	if (run->excluded_ms)
		r->excluded = (double)(run->excluded_ms - run->dead_ms) / PERIOD_MS;
	if (run->healed_ms)
		r->healed = (double)(run->healed_ms - run->joined_ms) / PERIOD_MS;
}

static void run_free(struct run *run)
{
	for (uint32_t i = 0; run->nodes && i < run->n; i++) {
		free(run->nodes[i].ties);
		free(run->nodes[i].ears);
	}
	free(run->nodes);
	free(run->made);
	free(run->since);
	free(run->order);
	free(run->plan);
	free(run->items);
	free(run->told);
	free(run->tied);
	free(run);
}

int gossip_run(const struct gossip_setup *setup, enum gossip_scenario scenario,
	       struct gossip_result *result, struct iocom_err *err)
{
	struct run *run = calloc(1, sizeof(*run));
	size_t n = setup->nodes;
	int rc = 0;

	if (n < 2 || n > GOSSIP_RUN_NODES_MAX || !setup->periods) {
		free(run);
		return iocom_err_set(err, -EINVAL, "from 2 to %d nodes can be calculated",
				     GOSSIP_RUN_NODES_MAX);
	}
	if (!run)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	run->setup = setup;
	run->scenario = scenario;
	run->n = setup->nodes;
	run->random = sim_random_stream(setup->seed, 0x676f73736970, (uint64_t)scenario);
	run->nodes = calloc(n, sizeof(*run->nodes));
	run->made = calloc(n * n, sizeof(*run->made));
	run->since = calloc(n * n, sizeof(*run->since));
	run->order = calloc(n, sizeof(*run->order));
	run->plan = calloc(n, sizeof(*run->plan));
	run->items = calloc(n, sizeof(*run->items));
	run->told = calloc(n + GOSSIP_NEWS_MAX, sizeof(*run->told));
	run->tied = calloc(n, sizeof(*run->tied));
	run->failed = !run->nodes || !run->made || !run->since || !run->order || !run->plan ||
		      !run->items || !run->told || !run->tied;
	if (!run->failed) {
		run_init(run);
		run_all(run);
	}
	if (run->failed)
		rc = iocom_err_set(err, -ENOMEM, "no memory for %zu nodes (%.1f GB)", n,
				   2.0 * (double)(n * n * sizeof(*run->made)) / 1e9);
	else if (*setup->cancel)
		rc = iocom_err_set(err, -ECANCELED, "interrupted");
	else
		run_report(run, result);
	run_free(run);
	return rc;
}
