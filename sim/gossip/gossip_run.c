/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What happens to the nodes, and what is measured; see gossip_run.h. */
#include "sim/gossip/gossip_run.h"

#include <errno.h>
#include <stdlib.h>

#include "sim/gossip/spread.h"

#define SETTLE	   18u /* periods before anything happens, and those of the silence */
#define AGE_MS_MAX (GOSSIP_RUN_AGE_MAX * SPREAD_PERIOD_MS)

struct gossip_run {
	struct spread s;
	uint32_t *counted; /* the nodes of which ages count, of this period */
	uint32_t *stopped; /* GOSSIP_DEAD: the nodes that stopped */
	uint32_t ncounted, nstopped;
	uint64_t *ages, pairs;	   /* ages[ms] */
	uint32_t dead_ms, last_ms; /* when they stopped; their newest vector then */
	uint32_t joined_ms;	   /* 0: not yet */
	bool excluded, healed;
	uint32_t healed_ms;
};

static const char *const scenario_names[GOSSIP_SCENARIOS] = {"steady", "dead", "cut", "flap"};
static const char *const plan_names[GOSSIP_PLANS] = {"slices", "freshest"};

const char *gossip_scenario_name(enum gossip_scenario scenario)
{
	return scenario_names[scenario];
}

const char *gossip_plans_name(enum gossip_plans plan)
{
	return plan_names[plan];
}

void gossip_setup_init(struct gossip_setup *setup)
{
	*setup = (struct gossip_setup){
		.nodes = 1000,
		.periods = 60,
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
		.hear = 8,
		.relay = 255, /* as many as a bulletin may have: agent/net/net_bulletin.h */
	};
}

/* --- what happens ---------------------------------------------------------------------- */

static void gossip_run_flap(struct spread *s, uint32_t now)
{
	for (uint32_t number = 0; number < s->n; number++) {
		struct spread_node *node = &s->nodes[s->by_number[number]];

		if (!node->flaps || now < node->turns_at)
			continue;
		node->up = !node->up;
		if (node->up)
			spread_restart(s, s->by_number[number]);
		node->turns_at =
			now + SPREAD_PERIOD_MS *
				      sim_random_exponential(&s->random, node->up ? s->setup->up
										  : s->setup->down);
	}
}

/* Some nodes stop, but none of the configured peers. */
static void gossip_run_stop(struct gossip_run *run, uint32_t now)
{
	struct spread *s = &run->s;
	uint32_t dead = (uint32_t)(s->setup->dead * s->n + 0.5);

	run->dead_ms = now;
	for (uint32_t i = 0; i < (dead ? dead : 1) && s->setup->peers + i < s->n; i++) {
		uint32_t at = s->by_number[s->setup->peers + i];

		s->nodes[at].up = false;
		run->stopped[run->nstopped++] = at;
	}
}

static void gossip_run_begin(struct gossip_run *run, uint32_t now)
{
	struct spread *s = &run->s;

	if (s->scenario == GOSSIP_DEAD) {
		gossip_run_stop(run, now);
	} else if (s->scenario == GOSSIP_CUT) {
		s->parted = true;
		for (uint32_t i = 0; i < s->n; i++)
			s->nodes[s->by_number[i]].other_half = sim_random_uniform(&s->random) < 0.5;
	} else if (s->scenario == GOSSIP_FLAP) {
		for (uint32_t i = s->setup->peers; i < s->n; i++) {
			struct spread_node *node = &s->nodes[s->by_number[i]];

			node->flaps = sim_random_uniform(&s->random) < s->setup->flapping;
			node->turns_at = now + SPREAD_PERIOD_MS * sim_random_exponential(
									  &s->random, s->setup->up);
		}
	}
}

/* --- what is measured ------------------------------------------------------------------ */

static void gossip_run_age(struct gossip_run *run, const uint32_t *made, uint32_t from, uint32_t to,
			   uint32_t now)
{
	uint64_t *ages = run->ages;

	for (uint32_t k = from; k < to; k++) {
		uint32_t age = now - made[run->counted[k]];

		ages[age < AGE_MS_MAX ? age : AGE_MS_MAX]++;
	}
	run->pairs += to - from;
}

/* The ages of what is known now.  The nodes that flap are not counted: they are unknown for a
 * while after each start, and rightly so. */
static void gossip_run_ages(struct gossip_run *run, uint32_t now)
{
	const struct spread *s = &run->s;

	run->ncounted = 0;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->nodes[i].up && !s->nodes[i].flaps)
			run->counted[run->ncounted++] = i;
	for (uint32_t k = 0; k < run->ncounted; k++) {
		const uint32_t *made = spread_row(s, run->counted[k]);

		gossip_run_age(run, made, 0, k, now);
		gossip_run_age(run, made, k + 1, run->ncounted, now);
	}
}

/* Are the nodes that stopped gone everywhere?  They are as soon as their newest vector is old. */
static void gossip_run_excluded(struct gossip_run *run, uint32_t now)
{
	const struct spread *s = &run->s;

	run->last_ms = 0;
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t k = 0; s->nodes[i].up && k < run->nstopped; k++) {
			uint32_t made = spread_row(s, i)[run->stopped[k]];

			run->last_ms = made > run->last_ms ? made : run->last_ms;
		}
	run->excluded = now - run->last_ms > s->silent_ms;
}

static void gossip_run_healed(struct gossip_run *run, uint32_t now)
{
	const struct spread *s = &run->s;

	for (uint32_t i = 0; i < s->n; i++)
		if (spread_count(s, i, now) + 1 < s->n)
			return;
	run->healed = true;
	run->healed_ms = s->learned_ms > run->joined_ms ? s->learned_ms : run->joined_ms;
}

static void gossip_run_look(struct gossip_run *run, uint32_t now)
{
	if (run->s.measures)
		gossip_run_ages(run, now);
	if (run->dead_ms && !run->excluded)
		gossip_run_excluded(run, now);
	if (run->joined_ms && !run->healed)
		gossip_run_healed(run, now);
}

/* --- the run ---------------------------------------------------------------------------- */

static bool gossip_run_goes_on(const struct gossip_run *run)
{
	return !run->s.failed && !*run->s.setup->cancel;
}

static void gossip_run_period(struct gossip_run *run, uint32_t begins)
{
	struct spread *s = &run->s;

	if (s->scenario == GOSSIP_FLAP)
		gossip_run_flap(s, begins);
	for (uint32_t at = 0; at < s->n && gossip_run_goes_on(run); at++) {
		uint32_t i = s->order[at];

		if (s->nodes[i].up)
			spread_publish(s, i, begins + s->nodes[i].phase);
	}
}

static void gossip_run_all(struct gossip_run *run)
{
	const struct gossip_setup *setup = run->s.setup;
	uint32_t settled = SETTLE + setup->silent, cut = 0, total;

	if (run->s.scenario == GOSSIP_CUT)
		cut = setup->cut;
	total = settled + cut + setup->periods;
	for (uint32_t period = 1; period < total && gossip_run_goes_on(run); period++) {
		uint32_t now = (SPREAD_BEGIN + period) * SPREAD_PERIOD_MS;

		if (period == settled)
			gossip_run_begin(run, now);
		if (run->s.parted && period == settled + cut) {
			run->s.parted = false;
			run->joined_ms = now;
		}
		run->s.measures = period >= settled + cut;
		gossip_run_period(run, now);
		gossip_run_look(run, now + SPREAD_PERIOD_MS - 1);
		if (setup->progress)
			setup->progress(setup->arg, (double)period / (total - 1));
	}
}

static double gossip_run_quantile(const struct gossip_run *run, double q)
{
	uint64_t sum = 0;

	for (uint32_t age = 0; age <= AGE_MS_MAX; age++) {
		sum += run->ages[age];
		if ((double)sum >= q * (double)run->pairs)
			return (double)age / SPREAD_PERIOD_MS;
	}
	return GOSSIP_RUN_AGE_MAX;
}

static void gossip_run_report_ages(const struct gossip_run *run, struct gossip_result *r)
{
	const double pairs = run->pairs ? (double)run->pairs : 1;

	for (uint32_t age = 0; age <= AGE_MS_MAX; age++) {
		r->age_mean += (double)run->ages[age] * age / SPREAD_PERIOD_MS / pairs;
		if (age > run->s.silent_ms)
			r->gone += (double)run->ages[age] / pairs;
	}
	r->age_p50 = gossip_run_quantile(run, 0.5);
	r->age_p99 = gossip_run_quantile(run, 0.99);
	r->age_max = gossip_run_quantile(run, 1);
}

static void gossip_run_report(const struct gossip_run *run, struct gossip_result *r)
{
	const struct spread *s = &run->s;
	const double periods = s->setup->periods, n = s->n, all = periods * n;

	*r = (struct gossip_result){.healed = -1, .excluded = -1};
	gossip_run_report_ages(run, r);
	for (uint32_t i = 0; i < s->n; i++) {
		double bytes = (double)s->nodes[i].bytes / periods;
		double sent = (double)s->nodes[i].sent / periods;

		r->bytes += bytes / n;
		r->bytes_max = bytes > r->bytes_max ? bytes : r->bytes_max;
		r->sent_max = sent > r->sent_max ? sent : r->sent_max;
	}
	r->bulletins = (double)s->bulletins / all;
	r->vectors = (double)s->vectors / all;
	r->news = (double)s->news / all;
	r->ties = (double)s->ties / all;
	r->dials = (double)s->dials / all;
	if (run->excluded)
		r->excluded =
			((double)run->last_ms + s->silent_ms - run->dead_ms) / SPREAD_PERIOD_MS;
	if (run->healed)
		r->healed = (double)(run->healed_ms - run->joined_ms) / SPREAD_PERIOD_MS;
}

int gossip_setup_check(const struct gossip_setup *setup, enum gossip_scenario scenario,
		       struct iocom_err *err)
{
	if (setup->nodes < 2 || setup->nodes > GOSSIP_RUN_NODES_MAX)
		return iocom_err_set(err, -EINVAL, "from 2 to %d nodes can be calculated",
				     GOSSIP_RUN_NODES_MAX);
	if (!setup->periods || setup->periods > GOSSIP_RUN_PERIODS_MAX ||
	    setup->cut > GOSSIP_RUN_PERIODS_MAX)
		return iocom_err_set(err, -EINVAL, "from 1 to %d periods can be calculated",
				     GOSSIP_RUN_PERIODS_MAX);
	if (!setup->silent || setup->silent > GOSSIP_RUN_SILENT_MAX || !setup->hear)
		return iocom_err_set(err, -EINVAL,
				     "a node must hear others, and be gone after 1 to %d periods",
				     GOSSIP_RUN_SILENT_MAX);
	if ((scenario == GOSSIP_DEAD || scenario == GOSSIP_FLAP) && setup->peers >= setup->nodes)
		return iocom_err_set(err, -EINVAL,
				     "scenario %s: %u nodes with %u configured peers: configured "
				     "peers go on, so none is left to stop",
				     gossip_scenario_name(scenario), setup->nodes, setup->peers);
	return 0;
}

int gossip_run(const struct gossip_setup *setup, enum gossip_scenario scenario,
	       struct gossip_result *result, struct iocom_err *err)
{
	struct gossip_run run = {0};
	int rc = gossip_setup_check(setup, scenario, err);

	if (rc)
		return rc;
	run.counted = calloc(setup->nodes, sizeof(*run.counted));
	run.stopped = calloc(setup->nodes, sizeof(*run.stopped));
	run.ages = calloc(AGE_MS_MAX + 1, sizeof(*run.ages));
	if (!spread_init(&run.s, setup, scenario) || !run.counted || !run.stopped || !run.ages)
		run.s.failed = true;
	if (!run.s.failed)
		gossip_run_all(&run);
	if (run.s.failed)
		rc = iocom_err_set(err, -ENOMEM, "no memory for %u nodes (%.1f GB)", setup->nodes,
				   (double)setup->nodes * setup->nodes * sizeof(*run.s.made) / 1e9);
	else if (*setup->cancel)
		rc = iocom_err_set(err, -ECANCELED, "interrupted");
	else
		gossip_run_report(&run, result);
	spread_deinit(&run.s);
	free(run.counted);
	free(run.stopped);
	free(run.ages);
	return rc;
}
