/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a placement costs the agent, with the view of the cluster built for each decision
 * ("rebuilt", the baseline: what home did before) and with the view that each vector keeps
 * up to date ("kept": what home does).
 *
 *   plan    from the request's bytes until the rules' plan stands
 *   told    ... until the text of the plan with its reasons stands, no more
 *   whole   ... until the text of the answer stands, of a job that runs: home_place with a
 *           guest that takes it at once, a journal in memory, and the JSON's text; the
 *           baseline makes the answer that home made before, with the vectors of all nodes,
 *           and writes no journal
 *
 * The vectors are drawn at random.  Before each pair of decisions a hundredth of the nodes
 * tells a new vector and one job is placed; then both ways answer the same request with
 * the same seed, in turn the one or the other first.  Times are of the processor; ratios
 * are medians over the pairs.  Where the nodes stand in the order of their names, as the
 * rebuilt view has them, both give the same plan; this is checked.
 *
 * Not in it: the socket, the reading of this node's own load, the guest's admission.
 * Arguments: only these policies.
 */
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/home/home_own.h"
#include "agent/home/need_resolve.h"
#include "balancer/view/placement.h"
#include "tests/lib/rebuilt_view.h"
#include "user/clock.h"
#include "user/pack.h"

#define PAIRS_MAX 1000
#define PUTS	  20000
#define CHARGES	  20 /* the most charges of jobs that no vector shows yet */

static uint64_t state = 1;

static double draw(double most)
{
	state += 0x9e3779b97f4a7c15u;
	uint64_t x = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;

	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53 * most;
}

/* Measures this thread's time only, because other programs run on the machine. */
static double now_us(void)
{
	return (double)clock_cpu_ns() / 1e3;
}

/* Ends the program if a step failed, which only a lack of memory can cause. */
static void must(bool ok)
{
	if (!ok) {
		fprintf(stderr, "bench_decision: a step failed\n");
		exit(1);
	}
}

/* --- the cluster ------------------------------------------------------------------- */

struct cluster {
	uint32_t nodes;
	uint64_t sequence;
	struct settings set;
	struct logger log;
	struct counters counters;
	struct base base;
	struct skews skews;
	struct iocom_vector own;
	struct matrix matrix;
	struct home *home;
	struct view_charges charges; /* the charges of the rebuilt view */
};

static void vector_draw(struct iocom_vector *v, uint32_t i, bool busy)
{
	double use = busy ? 0.7 + draw(0.3) : draw(1);

	*v = (struct iocom_vector){
		.port = 7700,
		.boot_id = 1,
		.period_ms = 3600000,
		.cores = 1 + (uint32_t)draw(64),
		.cpu_speed = 0.5 + draw(1),
		.run_queue = draw(busy ? 80 : 20),
		.tasks = 300,
		.memory_mb = 8000 + draw(56000),
		.explicit_per_ms = use / 5,
		.implicit_per_ms = draw(0.01),
		.io_tasks = (uint32_t)draw(6),
		.disks = draw(1) < 0.95,
		.disk_arrivals_per_ms = use / 5,
		.disk_service_ms = 5,
		.disk_service_ms2 = 30,
		.disk_utilisation = use,
		.disk_mb_per_s = 20 + draw(180),
		.disk_fixed_ms = 2 + draw(6),
		.network_mb_per_s = 125,
		.accepts_jobs = draw(1) < 0.95,
	};
	v->memory_requested_mb = draw(v->memory_mb);
	v->memory_available_mb = v->memory_mb - v->memory_requested_mb;
	snprintf(v->name, sizeof(v->name), "node%05u", i);
	snprintf(v->address, sizeof(v->address), "10.0.%u.%u", i / 250, i % 250 + 1);
}

static void vector_next(struct cluster *c, uint32_t i)
{
	struct iocom_vector v;

	vector_draw(&v, i, false);
	v.sequence = ++c->sequence;
	v.time_ns = c->sequence;
	must(matrix_put(&c->matrix, &v, 0, loop_boot_ns(c->base.loop)) == 0);
}

static void own_vector(void *arg, struct iocom_vector *own)
{
	const struct cluster *c = arg;

	*own = c->own;
}

static bool is_mute(void *arg)
{
	(void)arg;
	return false;
}

/*
 * Plays a guest that takes the job. Its next vector already counts the job, so that nothing is
 * charged.
 */
static int grant(void *arg, const char *node, const char *address, uint16_t port,
		 const struct peer_request *request, peers_answered answered, void *place,
		 struct iocom_err *err)
{
	struct peer_answer answer = {.grant = {.granted = true, .boot_id = 1}};

	(void)arg, (void)node, (void)address, (void)port, (void)err;
	answer.grant.lease_ms = request->order->lease_ms;
	strcpy(answer.grant.nonce, "0123456789abcdef");
	answered(place, 0, &answer, NULL);
	return 0;
}

static void home_init(struct cluster *c)
{
	struct home_config config = {
		.base = &c->base,
		.matrix = &c->matrix,
		.skews = &c->skews,
		.ports = {.arg = c, .own_vector = own_vector, .mute = is_mute, .ask = grant},
	};

	c->base = (struct base){
		.log = &c->log, .counters = &c->counters, .set = &c->set, .boot_id = 1};
	snprintf(c->set.name, sizeof(c->set.name), "home");
	/* The clock stands still, so that a charge ends in both views or in neither. */
	must(loop_new_virtual(&c->base.loop, 3600 * CLOCK_NS_PER_S, clock_real_ns(), NULL) == 0);
	must(journal_open(&config.journal, ":memory:", NULL) == 0);
	must(profile_open(&config.profiles, ":memory:", NULL) == 0);
	must(home_new(&c->home, &config, NULL) == 0);
}

static void cluster_init(struct cluster *c, uint32_t nodes)
{
	*c = (struct cluster){.nodes = nodes};
	matrix_init(&c->matrix, "home");
	home_init(c);
	/* Sorts the nodes by name, so that both views number them alike. */
	for (uint32_t i = 1; i < nodes; i++)
		vector_next(c, i);
}

static void cluster_fini(struct cluster *c)
{
	struct journal *journal = c->home->journal;
	struct profile_store *profiles = c->home->profiles;

	home_free(c->home);
	journal_close(journal);
	profile_close(profiles);
	loop_free(c->base.loop);
	view_charges_fini(&c->charges);
	matrix_fini(&c->matrix);
}

/* Makes the changes that happen between two decisions. */
static void live(struct cluster *c)
{
	struct view_charge charge = {
		.boot_id = 1,
		.sequence = UINT64_MAX,
		.since_ns = loop_boot_ns(c->base.loop),
		.request = {.cpu_ms = 100,
			    .io_per_ms = 0.1,
			    .request_kb = 64,
			    .requests = 100,
			    .tasks = 1},
	};

	for (uint32_t i = 0; i < c->nodes / 100 + 1; i++)
		vector_next(c, 1 + (uint32_t)draw(c->nodes - 1));
	vector_draw(&c->own, 0, true);
	strcpy(c->own.name, "home");
	if (c->charges.count == CHARGES)
		return;
	snprintf(charge.node, sizeof(charge.node), "node%05u", 1 + (uint32_t)draw(c->nodes - 1));
	cluster_view_charge(c->home->view, &charge);
	view_charge_add(&c->charges, &charge);
}

/* --- one request, both ways -------------------------------------------------------- */

static void request_pack(msgpack_sbuffer *out, const char *policy)
{
	struct placement_ask ask;

	placement_ask_init(&ask);
	snprintf(ask.policy, sizeof(ask.policy), "%s", policy);
	strcpy(ask.class_name, "sort");
	strcpy(ask.cwd, "/home/user/work");
	strcpy(ask.executable, "/usr/bin/sort");
	ask.run = true;
	ask.need.value[NEED_IO_PER_S] = 50 + draw(100);
	ask.need.value[NEED_REQUESTS] = 500 + draw(5000);
	ask.need.value[NEED_MEMORY_MB] = draw(2000);
	ask.need.value[NEED_CPU_S] = 1 + draw(60);
	placement_ask_pack(&ask, out);
}

struct asked {
	const char *bytes;
	size_t length;
	uint64_t seed;
	struct view_policy policy;
};

/* The times in us at which the steps of a decision were done, and its answer. */
struct path {
	double begin, decided, answered;
	json_t *answer;
	char *text;
};

static void take(struct cluster *c, const struct asked *asked, struct placement *p,
		 struct rules_request *request)
{
	struct profile profile;
	msgpack_unpacked map;

	placement_init(p);
	must(unpack_map(&map, asked->bytes, asked->length) == 0);
	must(placement_ask_unpack(&p->ask, &map.data, NULL) == 0);
	must(profile_get(c->home->profiles, 0, p->ask.class_name, &profile, NULL) != 0);
	need_resolve(&p->need, &p->ask.need, &(struct need_learned){0},
		     &(struct profile_machine){0});
	need_request(&p->need, request);
	msgpack_unpacked_destroy(&map);
}

/* The vectors of all nodes. */
static void all_nodes(const struct cluster *c, const struct view_file *file, struct placement *p)
{
	p->nodes = calloc(file->nnodes, sizeof(*p->nodes));
	must(p->nodes != NULL);
	for (uint32_t i = 0; i < file->nnodes; i++) {
		const struct matrix_entry *e = matrix_find(&c->matrix, file->nodes[i].node.name);

		p->nodes[p->nnodes++] = (struct placement_node){
			.vector = e ? e->vector : c->own,
			.age_ms = file->nodes[i].node.age_ms,
			.self = !e,
		};
	}
}

static void write_text(struct path *path)
{
	path->text = json_dumps(path->answer, JSON_COMPACT);
	must(path->text != NULL);
	path->answered = now_us();
}

static void rebuilt(struct cluster *c, const struct asked *asked, struct path *path)
{
	struct view_decision decision;
	struct view_file file;
	struct placement p;

	path->begin = now_us();
	view_charges_settle(&c->charges, &c->matrix, loop_boot_ns(c->base.loop));
	must(view_build(&c->own, &c->matrix, &c->charges, loop_boot_ns(c->base.loop), &file) == 0);
	take(c, asked, &p, &file.job);
	file.seed = p.seed = asked->seed;
	must(view_decide(&file, &asked->policy, &decision, NULL) == 0);
	path->decided = now_us();
	must(plan_record_take(&p.plan, plan_json(&decision, true)) == 0);
	if (need_is_known(&p.need))
		p.expectation = decision.expectation;
	all_nodes(c, &file, &p);
	p.policy = asked->policy.name;
	p.home = "home";
	p.node = p.plan.node;
	p.need_given = NEED_ALL;
	p.ask.run = false; /* without `run` the answer has all nodes */
	path->answer = placement_json(&p, PLACEMENT_ANSWER);
	view_decision_fini(&decision);
	view_file_fini(&file);
	placement_fini(&p);
	write_text(path);
}

static void kept_plan(struct cluster *c, const struct asked *asked, struct path *path)
{
	struct view_decision decision;
	struct rules_request job;
	struct placement p;

	path->begin = now_us();
	must(cluster_view_refresh(c->home->view, &c->own, loop_boot_ns(c->base.loop)) == 0);
	take(c, asked, &p, &job);
	must(cluster_view_decide(c->home->view, &asked->policy, &job, asked->seed, &decision,
				 NULL) == 0);
	path->decided = now_us();
	path->answer = plan_json(&decision, true);
	view_decision_fini(&decision);
	placement_fini(&p);
	write_text(path);
}

static void answered(void *arg, json_t *answer, const char *why)
{
	struct path *path = arg;

	if (!answer)
		fprintf(stderr, "bench_decision: %s\n", why);
	path->answer = answer;
}

static void kept_whole(struct cluster *c, const struct asked *asked, struct path *path)
{
	msgpack_unpacked map;

	path->begin = now_us();
	must(unpack_map(&map, asked->bytes, asked->length) == 0);
	home_place(c->home, 0, &map.data, answered, path);
	msgpack_unpacked_destroy(&map);
	must(path->answer != NULL);
	write_text(path);
}

static void path_fini(struct path *path)
{
	json_decref(path->answer);
	free(path->text);
}

/* --- the tables -------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the N values and returns their quantile Q. */
static double quantile(double *values, int n, double q)
{
	qsort(values, (size_t)n, sizeof(*values), by_value);
	return values[(int)(q * (n - 1))];
}

/* The times of each pair until the plan and until the answer: rebuilt, kept, and their ratio. */
struct pairs {
	double plan[3][PAIRS_MAX], told[PAIRS_MAX], whole[3][PAIRS_MAX];
};

/* The seed that home takes for its next decision. */
static uint64_t next_seed(const struct cluster *c)
{
	return (c->base.boot_id ^ (c->home->job_sequence + 1)) & VIEW_SEED_MAX;
}

static void must_agree(const struct path *old, const struct path *new)
{
	const char *const same[] = {"plan", "need", "seed", "policy"};

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		must(json_equal(json_object_get(old->answer, same[i]),
				json_object_get(new->answer, same[i])));
}

static void pair(struct cluster *c, const struct view_policy *policy, struct pairs *p, int i)
{
	struct asked asked = {.policy = *policy, .seed = next_seed(c)};
	struct path old, plan, whole;
	msgpack_sbuffer bytes;

	live(c);
	request_pack(&bytes, policy->name);
	asked.bytes = bytes.data;
	asked.length = bytes.size;
	if (i % 2)
		rebuilt(c, &asked, &old);
	kept_plan(c, &asked, &plan);
	kept_whole(c, &asked, &whole);
	if (i % 2 == 0)
		rebuilt(c, &asked, &old);
	must_agree(&old, &whole);
	p->plan[0][i] = old.decided - old.begin;
	p->plan[1][i] = plan.decided - plan.begin;
	p->plan[2][i] = p->plan[0][i] / p->plan[1][i];
	p->told[i] = plan.answered - plan.begin;
	p->whole[0][i] = old.answered - old.begin;
	p->whole[1][i] = whole.answered - whole.begin;
	p->whole[2][i] = p->whole[0][i] / p->whole[1][i];
	path_fini(&old);
	path_fini(&plan);
	path_fini(&whole);
	msgpack_sbuffer_destroy(&bytes);
}

static void bench_policy(struct cluster *c, const char *name)
{
	static struct pairs p;
	int n = c->nodes <= 100 ? PAIRS_MAX : c->nodes <= 1000 ? 300 : 60;
	struct view_policy policy;

	must(view_policy_parse(name, &policy, NULL) == 0);
	pair(c, &policy, &p, 0); /* builds the indexes of this policy */
	for (int i = 0; i < n; i++)
		pair(c, &policy, &p, i);
	printf("%6u  %-10s  %8.1f %8.1f %8.1f %8.1f", c->nodes, policy.name,
	       quantile(p.plan[0], n, 0.5), quantile(p.plan[0], n, 0.99),
	       quantile(p.whole[0], n, 0.5), quantile(p.whole[0], n, 0.99));
	printf("  %8.1f %8.1f %8.1f %8.1f %8.1f", quantile(p.plan[1], n, 0.5),
	       quantile(p.plan[1], n, 0.99), quantile(p.told, n, 0.5), quantile(p.whole[1], n, 0.5),
	       quantile(p.whole[1], n, 0.99));
	printf("  %7.1f %7.1f\n", quantile(p.plan[2], n, 0.5), quantile(p.whole[2], n, 0.5));
}

/* Returns the mean us for taking in one vector. */
static double bench_vectors(struct cluster *c)
{
	double start = now_us();

	for (int i = 0; i < PUTS; i++)
		vector_next(c, 1 + (uint32_t)draw(c->nodes - 1));
	return (now_us() - start) / PUTS;
}

/*
 * Makes one decision by each policy from FIRST to LAST; the view keeps their indexes from then on.
 */
static void ask(struct cluster *c, enum rules_policy first, enum rules_policy last)
{
	struct rules_request job = {.cpu_ms = 1, .requests = -1, .tasks = 1};
	struct view_decision decision;
	struct view_policy policy;

	for (unsigned p = first; p <= last; p++) {
		must(view_policy_parse(rules_policy_name(p), &policy, NULL) == 0);
		must(cluster_view_decide(c->home->view, &policy, &job, 1, &decision, NULL) == 0);
		view_decision_fini(&decision);
	}
}

static double memory_mb(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)(m.uordblks + m.hblkhd) / 1e6;
}

/*
 * Measures updates without a view, and with a view that keeps no index, the indexes of one policy,
 * and those of all.
 */
static void bench_updates(uint32_t nodes, const char *name)
{
	double us[4], mb[4], before = memory_mb();
	struct view_policy policy;
	struct cluster c;

	cluster_init(&c, nodes);
	must(view_policy_parse(name, &policy, NULL) == 0);
	us[1] = bench_vectors(&c);
	mb[1] = memory_mb() - before;
	ask(&c, policy.policy, policy.policy);
	us[2] = bench_vectors(&c);
	mb[2] = memory_mb() - before;
	ask(&c, 0, RULES_POLICIES - 1);
	us[3] = bench_vectors(&c);
	mb[3] = memory_mb() - before;
	cluster_view_free(c.home->view);
	c.home->view = NULL;
	us[0] = bench_vectors(&c);
	mb[0] = memory_mb() - before;
	cluster_fini(&c);
	printf("%6u  %-12s", nodes, policy.name);
	for (int i = 0; i < 4; i++)
		printf("  %9.2f", us[i]);
	for (int i = 0; i < 4; i++)
		printf("  %9.2f", mb[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {"iocm-re", "wal", "threshold"};
	const char *const *policies = argc > 1 ? (const char *const *)argv + 1 : usual;
	int n = argc > 1 ? argc - 1 : 3;

	printf("us, medians and 99th percentiles\n%6s  %-10s  %35s  %44s  %15s\n", "", "",
	       "----- rebuilt, the baseline -----", "------------------ kept ------------------",
	       "---- ratio ----");
	printf("%6s  %-10s  %8s %8s %8s %8s  %8s %8s %8s %8s %8s  %7s %7s\n", "nodes", "policy",
	       "plan", "p99", "whole", "p99", "plan", "p99", "told", "whole", "p99", "plan",
	       "whole");
	for (int i = 0; i < n; i++) {
		for (uint32_t nodes = 10; nodes <= 10000; nodes *= 10) {
			struct cluster c;

			cluster_init(&c, nodes);
			bench_policy(&c, policies[i]);
			cluster_fini(&c);
		}
	}
	printf("one vector heard, mean us, and the memory of all, MB, by what is kept up to "
	       "date\n");
	printf("%6s  %-12s", "nodes", "policy");
	for (int i = 0; i < 2; i++)
		printf("  %9s  %9s  %9s  %9s", "no view", "no index", "policy's", "all");
	printf("\n");
	for (int i = 0; i < n; i++)
		for (uint32_t nodes = 10; nodes <= 10000; nodes *= 10)
			bench_updates(nodes, policies[i]);
	bench_updates(MATRIX_NODES_MAX, policies[0]);
	return 0;
}
