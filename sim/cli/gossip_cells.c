/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gossip_cells.h. */
#include "sim/cli/gossip_cells.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/table.h"

#define GOAL_NODES 1000u /* the goals are those of clusters so large */

/* --- medians and worst values ----------------------------------------------------------- */

/* A member of struct gossip_result; more is worse, but for `news`, which is neither. */
static const struct gossip_measure {
	const char *key;
	size_t offset;
} gossip_measures[] = {
	{"age_mean_periods", offsetof(struct gossip_result, age_mean)},
	{"age_p50_periods", offsetof(struct gossip_result, age_p50)},
	{"age_p99_periods", offsetof(struct gossip_result, age_p99)},
	{"age_max_periods", offsetof(struct gossip_result, age_max)},
	{"wrongly_gone", offsetof(struct gossip_result, gone)},
	{"received_bytes_per_period", offsetof(struct gossip_result, bytes)},
	{"received_bytes_per_period_most", offsetof(struct gossip_result, bytes_max)},
	{"sent_bytes_per_period_most", offsetof(struct gossip_result, sent_max)},
	{"bulletins_per_period", offsetof(struct gossip_result, bulletins)},
	{"vectors_per_period", offsetof(struct gossip_result, vectors)},
	{"vectors_news_per_period", offsetof(struct gossip_result, news)},
	{"hears_nodes", offsetof(struct gossip_result, ties)},
	{"dials_per_period", offsetof(struct gossip_result, dials)},
	{"excluded_after_periods", offsetof(struct gossip_result, excluded)},
	{"healed_after_periods", offsetof(struct gossip_result, healed)},
};

#define MEASURES (sizeof(gossip_measures) / sizeof(gossip_measures[0]))

/* The member at OFFSET. */
static double gossip_at(const struct gossip_result *r, size_t offset)
{
	double value;

	memcpy(&value, (const char *)r + offset, sizeof(value));
	return value;
}

static double gossip_measure_of(const struct gossip_result *r, size_t m)
{
	return gossip_at(r, gossip_measures[m].offset);
}

static void gossip_measure_set(struct gossip_result *r, size_t m, double value)
{
	memcpy((char *)r + gossip_measures[m].offset, &value, sizeof(value));
}

static int gossip_cells_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void gossip_cell_sum_up(struct gossip_cell *cell, double *values, uint32_t seeds)
{
	for (size_t m = 0; m < MEASURES; m++) {
		for (uint32_t i = 0; i < seeds; i++)
			values[i] = gossip_measure_of(&cell->results[i], m);
		qsort(values, seeds, sizeof(*values), gossip_cells_by_value);
		gossip_measure_set(&cell->median, m,
				   (values[(seeds - 1) / 2] + values[seeds / 2]) / 2);
		/* What did not come in a run (< 0) is the worst of all. */
		gossip_measure_set(&cell->worst, m, values[0] < 0 ? -1 : values[seeds - 1]);
		if (values[0] < 0 && values[(seeds - 1) / 2] < 0)
			gossip_measure_set(&cell->median, m, -1);
	}
}

int gossip_cells_sum_up(struct gossip_cells *all)
{
	double *values = calloc(all->seeds, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++)
		gossip_cell_sum_up(&all->cells[i], values, all->seeds);
	free(values);
	return 0;
}

/* --- goals ------------------------------------------------------------------------------ */

enum { GOAL_MEAN, GOAL_P99, GOAL_BYTES, GOAL_EXCLUDED, GOAL_HEALED, GOALS };

static const struct gossip_goal {
	const char *key, *text, *unit;
	size_t offset;
	double limit, scale; /* a result times SCALE is in UNIT */
	int scenario;	     /* < 0: all */
	int decimals;
} gossip_goals[GOALS] = {
	[GOAL_MEAN] = {"age_mean", "age of what a node knows, mean", "periods",
		       offsetof(struct gossip_result, age_mean), 3, 1, -1, 2},
	[GOAL_P99] = {"age_p99", "age of what a node knows, p99", "periods",
		      offsetof(struct gossip_result, age_p99), 9, 1, -1, 2},
	[GOAL_BYTES] = {"received", "received by a node", "KB/s",
			offsetof(struct gossip_result, bytes), 310, 1e-3, -1, 0},
	[GOAL_EXCLUDED] = {"excluded", "dead nodes excluded after", "periods",
			   offsetof(struct gossip_result, excluded), 3, 1, GOSSIP_DEAD, 2},
	[GOAL_HEALED] = {"healed", "a cut healed after", "periods",
			 offsetof(struct gossip_result, healed), 5, 1, GOSSIP_CUT, 2},
};

/* A cell's worst value, in the goal's unit; < 0: it did not come in the run. */
static double gossip_goal_value(const struct gossip_goal *goal, const struct gossip_cell *cell)
{
	return gossip_at(&cell->worst, goal->offset) * goal->scale;
}

/* Is it a goal of this scenario? */
static bool gossip_goal_asks(const struct gossip_goal *goal, const struct gossip_cell *cell)
{
	return goal->scenario < 0 || goal->scenario == (int)cell->scenario;
}

static bool gossip_goal_met(const struct gossip_goal *goal, double value)
{
	return value >= 0 && value <= goal->limit;
}

/* The cells of one number of nodes and plan: [FIRST, the returned one). */
static size_t gossip_cells_group(const struct gossip_cells *all, size_t first)
{
	size_t i = first;

	while (i < all->n && all->cells[i].nodes == all->cells[first].nodes &&
	       all->cells[i].plan == all->cells[first].plan)
		i++;
	return i;
}

/* --- tables ----------------------------------------------------------------------------- */

static const char *const gossip_heads[] = {"scenario", "mean",	  "p99",      "oldest", "gone %",
					   "KB/s in",  "most in", "most out", "hears",	"after"};

#define HEADS (sizeof(gossip_heads) / sizeof(gossip_heads[0]))

/* "10,000" */
static const char *gossip_count(char out[16], uint32_t n)
{
	if (n >= 1000)
		snprintf(out, 16, "%u,%03u", n / 1000, n % 1000);
	else
		snprintf(out, 16, "%u", n);
	return out;
}

static void gossip_set_age(struct table *t, size_t row, size_t column, double age)
{
	if (age >= GOSSIP_RUN_AGE_MAX)
		table_set(t, row, column, ">%d", GOSSIP_RUN_AGE_MAX);
	else
		table_set(t, row, column, "%.2f", age);
}

static void gossip_set_row(struct table *t, size_t row, const char *name,
			   const struct gossip_cell *cell, const struct gossip_result *r)
{
	bool dead = cell->scenario == GOSSIP_DEAD, cut = cell->scenario == GOSSIP_CUT;
	double after = dead ? r->excluded : r->healed;

	table_set(t, row, 0, "%s", name);
	gossip_set_age(t, row, 1, r->age_mean);
	gossip_set_age(t, row, 2, r->age_p99);
	gossip_set_age(t, row, 3, r->age_max);
	table_set(t, row, 4, "%.3f", 100 * r->gone);
	table_set(t, row, 5, "%.0f", r->bytes / 1e3);
	table_set(t, row, 6, "%.0f", r->bytes_max / 1e3);
	table_set(t, row, 7, "%.0f", r->sent_max / 1e3);
	table_set(t, row, 8, "%.1f", r->ties);
	if (!dead && !cut)
		table_set(t, row, 9, "-");
	else if (after < 0)
		table_set(t, row, 9, "never");
	else
		table_set(t, row, 9, "%.2f", after);
}

static int gossip_print_table(const struct gossip_cells *all, size_t first, size_t end)
{
	size_t each = all->seeds > 1 ? 2 : 1;
	struct table t;

	if (table_init(&t, 1 + each * (end - first), HEADS))
		return -ENOMEM;
	for (size_t c = 0; c < HEADS; c++)
		table_set(&t, 0, c, "%s", gossip_heads[c]);
	for (size_t i = first; i < end; i++) {
		const struct gossip_cell *cell = &all->cells[i];
		size_t row = 1 + each * (i - first);

		gossip_set_row(&t, row, gossip_scenario_name(cell->scenario), cell, &cell->median);
		if (each == 2)
			gossip_set_row(&t, row + 1, "  worst", cell, &cell->worst);
	}
	table_print(&t, stdout);
	table_free(&t);
	return 0;
}

static void gossip_print_goal(const struct gossip_cells *all, const struct gossip_goal *goal,
			      size_t first, size_t end)
{
	const struct gossip_cell *worst = NULL;
	bool promised = all->cells[first].nodes <= GOAL_NODES;
	double value;

	for (size_t i = first; i < end; i++) {
		const struct gossip_cell *cell = &all->cells[i];

		if (!gossip_goal_asks(goal, cell))
			continue;
		value = gossip_goal_value(goal, cell);
		if (!worst || value < 0 ||
		    (gossip_goal_value(goal, worst) >= 0 && value > gossip_goal_value(goal, worst)))
			worst = cell;
	}
	if (!worst)
		return;
	value = gossip_goal_value(goal, worst);
	printf("  %-8s %-31s <= %3.0f %-8s",
	       gossip_goal_met(goal, value) ? promised ? "met" : "holds"
	       : promised		    ? "missed"
					    : "not",
	       goal->text, goal->limit, goal->unit);
	if (value < 0)
		printf("never in the run");
	else
		printf("%.*f", goal->decimals, value);
	printf(goal->scenario < 0 ? " (%s)\n" : "\n", gossip_scenario_name(worst->scenario));
}

static void gossip_print_goals(const struct gossip_cells *all, size_t first, size_t end)
{
	char nodes[16], than[16];
	const char *of = all->seeds > 1 ? "worst scenario and seed" : "worst scenario";

	gossip_count(nodes, all->cells[first].nodes);
	if (all->cells[first].nodes <= GOAL_NODES)
		printf("\nGoals (%s):\n", of);
	else
		printf("\nWhat holds at %s nodes of the goals for %s (%s):\n", nodes,
		       gossip_count(than, GOAL_NODES), of);
	for (size_t g = 0; g < GOALS; g++)
		gossip_print_goal(all, &gossip_goals[g], first, end);
}

static void gossip_print_words(const struct gossip_cells *all)
{
	const struct gossip_setup *s = all->setup;

	printf("mean ... oldest  age of what a node knows of another, in periods\n"
	       "gone %%           pairs of running nodes where one counts the other as gone:\n"
	       "                 nothing of it for %u period%s\n"
	       "KB/s             at a period of 1 s and %u bytes a vector: received by a node,\n"
	       "                 by the one that receives most; sent by the one that sends most\n"
	       "hears            nodes that a node hears directly\n"
	       "after            dead: periods until no node counts those that stopped as there;\n"
	       "                 cut: periods until all know of all again\n",
	       s->silent, s->silent > 1 ? "s" : "", s->vector_bytes);
	printf("scenarios        dead: %g %% of the nodes stop; cut: two halves part for %u\n"
	       "                 periods; flap: %g %% run for %g periods and stop for %g (means)\n",
	       100 * s->dead, s->cut, 100 * s->flapping, s->up, s->down);
}

int gossip_cells_print(const struct gossip_cells *all)
{
	char nodes[16];

	for (size_t first = 0, end; first < all->n; first = end) {
		const struct gossip_cell *cell = &all->cells[first];

		end = gossip_cells_group(all, first);
		printf("%s nodes, plan %s", gossip_count(nodes, cell->nodes),
		       gossip_plans_name(cell->plan));
		if (cell->plan == GOSSIP_FRESHEST)
			printf(" (hears %u, tells of %u)", all->setup->hear, all->setup->relay);
		printf(", %u periods", all->setup->periods);
		if (all->seeds > 1)
			printf(", medians of %u seeds", all->seeds);
		printf("\n\n");
		if (gossip_print_table(all, first, end))
			return -ENOMEM;
		gossip_print_goals(all, first, end);
		putchar('\n');
	}
	gossip_print_words(all);
	return 0;
}

/* --- JSON ------------------------------------------------------------------------------- */

static json_t *gossip_result_json(const struct gossip_result *r)
{
	json_t *out = json_object();

	for (size_t m = 0; out && m < MEASURES; m++) {
		double value = gossip_measure_of(r, m);

		json_object_set_new(out, gossip_measures[m].key,
				    value < 0 ? json_null() : json_real(value));
	}
	return out;
}

static json_t *gossip_cell_json(const struct gossip_cells *all, const struct gossip_cell *cell)
{
	json_t *runs = json_array();

	for (uint32_t i = 0; runs && i < all->seeds; i++) {
		json_t *run = gossip_result_json(&cell->results[i]);

		json_object_set_new(run, "seed", json_integer((json_int_t)(all->cli->seed + i)));
		json_array_append_new(runs, run);
	}
	return json_pack("{s:I,s:s,s:s,s:o,s:o,s:o}", "nodes", (json_int_t)cell->nodes, "plan",
			 gossip_plans_name(cell->plan), "scenario",
			 gossip_scenario_name(cell->scenario), "median",
			 gossip_result_json(&cell->median), "worst",
			 gossip_result_json(&cell->worst), "runs", runs);
}

static void gossip_goals_json(json_t *out, const struct gossip_cell *cell)
{
	for (size_t g = 0; g < GOALS; g++) {
		const struct gossip_goal *goal = &gossip_goals[g];
		double value = gossip_goal_value(goal, cell);

		if (!gossip_goal_asks(goal, cell))
			continue;
		json_array_append_new(out, json_pack("{s:I,s:s,s:s,s:s,s:f,s:s,s:o,s:b}", "nodes",
						     (json_int_t)cell->nodes, "plan",
						     gossip_plans_name(cell->plan), "scenario",
						     gossip_scenario_name(cell->scenario), "goal",
						     goal->key, "at_most", goal->limit, "unit",
						     goal->unit, "worst",
						     value < 0 ? json_null() : json_real(value),
						     "met", gossip_goal_met(goal, value)));
	}
}

json_t *gossip_cells_json(const struct gossip_cells *all)
{
	const struct gossip_setup *s = all->setup;
	json_t *cells = json_array(), *goals = json_array();

	for (size_t i = 0; cells && goals && i < all->n; i++) {
		json_array_append_new(cells, gossip_cell_json(all, &all->cells[i]));
		gossip_goals_json(goals, &all->cells[i]);
	}
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:I,s:f,s:f,s:f,s:I,s:I,s:o,s:o}", "periods",
			 (json_int_t)s->periods, "seeds", (json_int_t)all->seeds, "seed",
			 (json_int_t)all->cli->seed, "peers", (json_int_t)s->peers, "vector_bytes",
			 (json_int_t)s->vector_bytes, "silent_periods", (json_int_t)s->silent,
			 "dead", s->dead, "cut_periods", (json_int_t)s->cut, "flapping",
			 s->flapping, "up_periods", s->up, "down_periods", s->down, "hear",
			 (json_int_t)s->hear, "relay", (json_int_t)s->relay, "results", cells,
			 "goals", goals);
}
