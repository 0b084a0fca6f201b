/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Decision traces: for each policy a text with seed, view, request and the plan
 * with its reasons, compared with tests/golden/rules_POLICY.txt.  A change of a
 * decision shows as a diff there.  GOLDEN_UPDATE=1 rewrites the files.
 */
#include <unistd.h>

#include "tests/lib/trace.h"
#include "tests/unit/rules_fixture.h"

#define CASES	   6
#define TASKS_HERE 12

static void write_node(FILE *out, const struct rules_node *n)
{
	fprintf(out,
		"  %-4s ram %g MB, %g MIPS x %g cores, disk %g ms + %g MB/s, network %g MB/s%s\n",
		n->name, n->ram_mb, n->cpu_mips, n->cores, n->disk_fixed_ms, n->disk_mb_per_s,
		n->network_mb_per_s, n->accepts ? "" : ", closed");
	fprintf(out, "       advertised: io %.6g (explicit %.6g)/ms, memory %g MB, cpu %g\n",
		n->advertised.io_per_ms, n->advertised.explicit_per_ms, n->advertised.memory_mb,
		n->advertised.cpu);
	if (n->has_measured)
		fprintf(out,
			"       measured: disk %.6g/ms busy %g, E(s) %g, E(s^2) %g, queue %.6g, "
			"io tasks %g\n",
			n->measured.disk_arrivals_per_ms, n->measured.disk_utilisation,
			n->measured.service_ms, n->measured.service_ms2, n->measured.cpu_queue,
			n->measured.io_tasks);
	if (n->has_zatti)
		fprintf(out, "       zatti: queue %g, idle %g %%, %g blocks/s, free %g MB\n",
			n->zatti.run_queue, n->zatti.cpu_idle_percent, n->zatti.blocks_per_s,
			n->zatti.free_mb);
}

static void write_request(FILE *out, const struct rules_request *j)
{
	fprintf(out,
		"request: cpu %.6g ms, io %.6g/ms of %g KB, requests %g, memory %.6g MB, "
		"faults %.6g/ms, initial %.6g MB, reaccess %g\n",
		j->cpu_ms, j->io_per_ms, j->request_kb, j->requests, j->memory_mb, j->faults_per_ms,
		j->initial_mb, j->reaccess);
}

static void write_plan(FILE *out, const struct rules_view *view, enum rules_rates rates,
		       const struct rules_plan *plan)
{
	fprintf(out, "plan: %s%s%s, %u tied, candidates", rules_view_name(view, plan->node),
		plan->stayed ? " (home)" : "", plan->queued ? ", queued" : "", plan->ntied);
	for (uint32_t i = 0; i < plan->ncandidates; i++)
		fprintf(out, " %s", rules_view_name(view, plan->candidates[i]));
	fprintf(out, "\n");
	for (uint32_t i = 0; i < plan->nreasons; i++) {
		const struct rules_reason *r = &plan->reasons[i];

		fprintf(out, "  %-4s %-16s %s  %.9g %s %.9g %s\n", rules_view_name(view, r->node),
			rules_criterion_name(r->criterion), r->holds ? "holds" : "fails", r->left,
			rules_criterion_relation(r->criterion), r->right,
			rules_criterion_unit(r->criterion, rates));
	}
	for (int c = 0; c < RULES_CRITERIA; c++)
		if (plan->refused[c] > 0)
			fprintf(out, "  refused by %s: %u\n", rules_criterion_name(c),
				plan->refused[c]);
}

/* Writes where each task of a parallel, communicating job goes. */
static void write_tasks(FILE *out, enum rules_policy policy, const struct rules_params *params,
			struct rules_view *view, struct rules_request job, struct draws *d)
{
	double com[6] = {0};
	uint32_t nodes[6];
	struct rules *rules = rules_new(policy, params, 7);
	struct rules_plan plan;

	job.tasks = policy == RULES_BS ? 2 : 6;
	fprintf(out, "parallel: %u tasks, communication", job.tasks);
	for (uint32_t t = 1; t < job.tasks; t++)
		fprintf(out, " %.6g", com[t] = (double)(int)draw(d, 5) * job.cpu_ms / 2);
	fprintf(out, " ms\n");
	job.com_ms = com;
	assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, nodes), 0);
	rules_free(rules);
	write_plan(out, view, params->rates, &plan);
	fprintf(out, "tasks:");
	for (uint32_t t = 0; t < job.tasks && !plan.queued; t++)
		fprintf(out, " %s", rules_view_name(view, nodes[t]));
	fprintf(out, "\n");
}

static struct rules_task task_random(struct draws *d)
{
	struct rules_request j = job_random(d);
	double age_ms = draw(d, j.cpu_ms);
	bool pinned = draw_chance(d, 0.2);

	return (struct rules_task){.cpu_ms = j.cpu_ms,
				   .age_ms = age_ms,
				   .io_per_ms = 4 * j.io_per_ms,
				   .request_kb = j.request_kb,
				   .reaccess = j.reaccess,
				   .memory_mb = j.memory_mb / 4,
				   .faults_per_ms = j.faults_per_ms,
				   .initial_mb = j.initial_mb / 4,
				   .pinned = pinned};
}

/* Writes which of twelve tasks at home leave. */
static void write_moves(FILE *out, enum rules_policy policy, const struct rules_params *params,
			struct rules_view *view, struct draws *d)
{
	struct rules_node home = node_fc("n0");
	struct rules *rules = rules_new(policy, params, 7);
	struct rules_task tasks[TASKS_HERE];
	struct rules_move moves[TASKS_HERE];
	struct rules_plan plan;
	size_t n;

	for (int t = 0; t < TASKS_HERE; t++) {
		const struct rules_task *k = &tasks[t];

		tasks[t] = task_random(d);
		fprintf(out,
			"task %d: cpu %.6g ms, age %.6g ms, io %.6g/ms, memory %.6g MB, "
			"faults %.6g/ms, initial %.6g MB, reaccess %g%s\n",
			t, k->cpu_ms, k->age_ms, k->io_per_ms, k->memory_mb, k->faults_per_ms,
			k->initial_mb, k->reaccess, k->pinned ? ", pinned" : "");
	}
	home.tasks = tasks;
	home.ntasks = TASKS_HERE;
	assert_int_equal(rules_view_set(view, 0, &home), 0);
	assert_int_equal(
		rules_migrate(rules, view, 0, tasks, TASKS_HERE, moves, TASKS_HERE, &n, &plan), 0);
	rules_free(rules);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "move: task %u to %s, cost %.9g ms, effectiveness %.9g\n",
			moves[i].task, rules_view_name(view, moves[i].to), moves[i].cost_ms,
			moves[i].cost_effectiveness);
	write_plan(out, view, params->rates, &plan);
}

/* Draws the nodes' vectors in Zatti's terms: home has too little of everything. */
static void draw_zatti(struct rules_node *nodes, uint32_t n, struct draws *d)
{
	for (uint32_t i = 0; i < n; i++) {
		nodes[i].has_zatti = true;
		nodes[i].zatti.run_queue = (double)(int)draw(d, 6) * nodes[i].cores;
		nodes[i].zatti.cpu_idle_percent = (double)(int)draw(d, 100);
		nodes[i].zatti.blocks_per_s = (double)(int)draw(d, 20);
		nodes[i].zatti.free_mb = (double)(int)draw(d, 1500);
	}
	nodes[0].zatti.run_queue += 5 * nodes[0].cores;
	nodes[0].zatti.blocks_per_s += 40;
}

static void write_case(FILE *out, enum rules_policy policy, uint64_t seed)
{
	enum rules_rates rates = seed % 2 ? RULES_RATES_WALL : RULES_RATES_COMPUTATION;
	struct draws d = {seed};
	struct rules_node nodes[6];
	struct rules_params params;
	struct rules_request job;
	struct rules_plan plan;
	struct rules_view *view;

	for (uint32_t i = 0; i < 6; i++)
		nodes[i] = node_random(&d, i);
	/* Makes home busy in several ways, so that each policy has something to do. */
	nodes[0].advertised.cpu += 20;
	nodes[0].measured.cpu_queue += 15;
	nodes[0].advertised.memory_mb += seed % 3 == 0 ? nodes[0].ram_mb : 0;
	/* A batch system needs nodes without tasks. */
	for (uint32_t i = 1; i < 6 && policy == RULES_BS; i++)
		if (i % 2 == seed / 2 % 2 || seed > 3)
			nodes[i].advertised.cpu = 0;
	job = job_random(&d);
	rules_params_default(&params, rates);
	if (policy == RULES_ZATTI_BINARY || policy == RULES_ZATTI_REAL) {
		draw_zatti(nodes, 6, &d);
		params.zatti_blocks_per_s = 60; /* the disks of today */
	}
	view = view_of(nodes, 6, rates);
	assert_int_equal(rules_view_keep(view, policy, &params), 0);
	fprintf(out, "seed %llu, %s, %s rates, home n0\nview:\n", (unsigned long long)seed,
		rules_policy_name(policy), rates == RULES_RATES_WALL ? "wall" : "computation");
	for (uint32_t i = 0; i < 6; i++)
		write_node(out, &nodes[i]);
	write_request(out, &job);
	place(policy, &params, view, 0, &job, &plan);
	write_plan(out, view, rates, &plan);
	if (policy == RULES_COM || policy == RULES_BS || policy == RULES_IO)
		write_tasks(out, policy, &params, view, job, &d);
	if (rules_policy_migrates(policy))
		write_moves(out, policy, &params, view, &d);
	fprintf(out, "\n");
	rules_view_free(view);
}

static char *trace(enum rules_policy policy)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	for (uint64_t seed = 1; seed <= CASES; seed++)
		write_case(out, policy, seed);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* Compares TEXT, and frees it. */
static void settle(const char *name, char *text)
{
	char file[64];

	snprintf(file, sizeof(file), "rules_%s", name);
	trace_golden(file, NULL, text);
	free(text);
}

static void decisions_match_their_traces(void **state)
{
	(void)state;
	for (int p = 0; p < RULES_POLICIES; p++)
		settle(rules_policy_name(p), trace(p));
}

/* Slowdowns that fall, jump and settle, with some noise; the disk grows busy. */
static struct rules_outcome outcome_draw(struct draws *d, int i)
{
	double level = i < 60 ? 6 - i * 0.05 : i < 120 ? 9 : 4, noise = draw(d, 1);
	double disk = draw(d, 0.3), share = draw(d, 0.2), hits = draw(d, 0.3);

	return (struct rules_outcome){.slowdown = level + noise,
				      .cpu_utilisation = 0.5,
				      .disk_utilisation = 0.3 + disk + i * 0.002,
				      .implicit_share = i < 120 ? share : 0.5 + share,
				      .hit_rate = 0.4 + hits};
}

/* Tells what runs when outcome I comes: few tasks, then many, then large ones. */
static void foresee(struct rules *rules, struct draws *d, int i)
{
	struct rules_task tasks[12];
	struct rules_node node = node_fc("a");
	size_t n = i < 60 ? 3 : 12;

	for (size_t j = 0; j < n; j++) {
		double cpu = 50 + draw(d, 900), memory = i < 120 ? 5 : 60;

		tasks[j] = (struct rules_task){.cpu_ms = cpu,
					       .age_ms = cpu / 2,
					       .io_per_ms = draw(d, 4),
					       .request_kb = 250,
					       .reaccess = 5,
					       .memory_mb = memory + draw(d, memory),
					       .faults_per_ms = 2};
	}
	node.tasks = tasks;
	node.ntasks = n;
	assert_int_equal(rules_foresee(rules, &node, 8.1, false), 0);
}

static void write_forecast(FILE *out, const struct rules_control *c)
{
	if (c->why != RULES_WHY_NONE)
		fprintf(out, "             %s: wanted %.9g MB, stretch %.9g, there %.9g\n",
			rules_control_why_name(c->why), c->wanted_mb, c->stretch,
			c->stretch_wanted);
}

static void write_controller(FILE *out, enum rules_controller controller)
{
	struct draws d = {11}, running = {12};
	struct rules_params params;
	struct rules_control c;
	struct rules *rules;

	rules_params_default(&params, RULES_RATES_COMPUTATION);
	params.fb_controller = controller;
	rules = rules_new(RULES_WAL_FC, &params, 1);
	assert_int_equal(rules_feedback(rules, 640, 160), 0);
	fprintf(out, "controller %s\n", rules_controller_name(controller));
	for (int i = 0; i < 180; i++) {
		struct rules_outcome o = outcome_draw(&d, i);

		foresee(rules, &running, i);
		assert_int_equal(rules_done(rules, &o), 0);
		if (i % 12 != 0)
			continue;
		rules_control(rules, &c);
		fprintf(out, "  after %3u: slowdown %.9g, w_io %.9g, buffer %.9g MB, %u cut\n",
			(unsigned int)c.outcomes, c.slowdown, c.w_io, c.buffer_mb,
			(unsigned int)c.saturated);
		write_forecast(out, &c);
	}
	fprintf(out, "\n");
	rules_free(rules);
}

static void controllers_match_their_trace(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	for (int c = 0; c < RULES_CONTROLLERS; c++)
		write_controller(out, c);
	assert_int_equal(fclose(out), 0);
	settle("feedback", text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decisions_match_their_traces),
		cmocka_unit_test(controllers_match_their_trace),
	};

	return cmocka_run_group_tests_name("rules: golden traces", tests, NULL, NULL);
}
