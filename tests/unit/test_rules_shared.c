/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job's I/O on a shared file system (MODEL 2.11), with values computed by hand: 200 MB in
 * requests of 1 MB take 200 * 25 ms = 5 s at a server's disk of 40 MB/s, and 1.6 s over a link of
 * 125 MB/s.
 */
#include "tests/unit/rules_fixture.h"

#include <errno.h>
#include <math.h>

#define HOME	   0
#define SERVER	   2
#define READ_MB	   200
#define CPU_MS	   1000
#define DISK_MS	   5000
#define WAY_MS	   1600
#define FIXED_MS   100
#define FOREVER_MS 1e9
#define WITHIN_MS  1e-6

static struct rules_node shared_node(const char *name)
{
	struct rules_node n = node_live(name, 0, 0);

	n.cores = 1;
	n.network_mb_per_s = 125;
	n.disk_mb_per_s = 40;
	n.disk_fixed_ms = 0;
	n.has_sharers = true;
	n.sharers = (struct rules_sharers){0};
	return n;
}

static struct rules_request shared_job(const struct rules_held *cached, size_t n)
{
	return (struct rules_request){
		.cpu_ms = CPU_MS,
		.request_kb = 1000,
		.memory_mb = 4,
		.tasks = 1,
		.shared = {.read_mb = READ_MB,
			   .served = true,
			   .server = SERVER,
			   .cached = cached,
			   .ncached = n},
	};
}

static struct rules_expectation shared_expect(const struct rules_node *nodes, uint32_t node,
					      enum rules_policy policy,
					      const struct rules_request *job)
{
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules *rules = rules_new(policy, &p, 1);
	struct rules_expectation e;

	assert_int_equal(rules_expect(rules, view, HOME, node, job, &e), 0);
	rules_free(rules);
	rules_view_free(view);
	return e;
}

static uint32_t shared_chosen(const struct rules_node *nodes, uint32_t count,
			      const struct rules_request *job)
{
	struct rules_view *view = view_of(nodes, count, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules *rules = rules_new(RULES_LEAST_DELAY, &p, 1);
	struct rules_plan plan;

	assert_int_equal(rules_place(rules, view, HOME, job, &plan), 0);
	rules_free(rules);
	rules_view_free(view);
	return plan.node;
}

#define THREE                                                                                      \
	{                                                                                          \
		shared_node("n1"), shared_node("n2"), shared_node("n3")                            \
	}

/* By a policy of the papers and by ours, whose models agree where nobody else is. */
static void the_servers_disk_and_the_way_count(void **state)
{
	static const enum rules_policy policies[] = {RULES_LEAST_DELAY, RULES_IO_RE};
	const struct rules_held cached[] = {{1, 150}};
	const struct rules_node nodes[] = THREE;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rules_request job = shared_job(NULL, 0);
		struct rules_expectation e = shared_expect(nodes, 1, policies[i], &job);

		assert_close(e.home_ms, CPU_MS + DISK_MS + WAY_MS, WITHIN_MS);
		assert_close(e.there_ms, CPU_MS + DISK_MS + WAY_MS + FIXED_MS, WITHIN_MS);
		e = shared_expect(nodes, SERVER, policies[i], &job);
		assert_close(e.there_ms, CPU_MS + DISK_MS + FIXED_MS, WITHIN_MS);
		job = shared_job(cached, 1);
		e = shared_expect(nodes, 1, policies[i], &job);
		assert_close(e.there_ms, CPU_MS + (DISK_MS + WAY_MS) / 4 + FIXED_MS, WITHIN_MS);
		job.shared.written_mb = READ_MB; /* no cache spares writing */
		e = shared_expect(nodes, 1, policies[i], &job);
		assert_close(e.there_ms, CPU_MS + (DISK_MS + WAY_MS) * 5 / 4 + FIXED_MS, WITHIN_MS);
		job.shared.served = false;
		e = shared_expect(nodes, 1, policies[i], &job);
		assert_close(e.there_ms, CPU_MS + WAY_MS * 5 / 4 + FIXED_MS, WITHIN_MS);
	}
}

/* A busy disk delays the job if it is the server's, wherever the job runs; its own node's does not.
 */
static void the_candidates_disk_does_not_count(void **state)
{
	const struct rules_sharers busy = {.disk = 1, .disk_left_ms = FOREVER_MS};
	struct rules_request job = shared_job(NULL, 0);
	struct rules_node nodes[] = THREE;
	struct rules_expectation e;

	(void)state;
	nodes[1].sharers = busy;
	e = shared_expect(nodes, 1, RULES_LEAST_DELAY, &job);
	assert_close(e.there_ms, CPU_MS + DISK_MS + WAY_MS + FIXED_MS, WITHIN_MS);
	nodes[1].sharers = (struct rules_sharers){0};
	nodes[SERVER].sharers = busy;
	e = shared_expect(nodes, 1, RULES_LEAST_DELAY, &job);
	assert_close(e.there_ms, CPU_MS + 2 * DISK_MS + WAY_MS + FIXED_MS, WITHIN_MS);
	assert_close(e.home_ms, CPU_MS + 2 * DISK_MS + WAY_MS, WITHIN_MS);
}

/* Home's processor is taken by one more, so without its data the job would leave for n2. */
static void it_stays_where_the_data_is_and_goes_there(void **state)
{
	const struct rules_held home[] = {{0, READ_MB}}, there[] = {{1, READ_MB}};
	struct rules_request job = shared_job(NULL, 0);
	struct rules_node nodes[] = THREE;

	(void)state;
	assert_int_equal(shared_chosen(nodes, 2,
				       &(struct rules_request){
					       .cpu_ms = CPU_MS, .memory_mb = 4, .tasks = 1}),
			 HOME);
	nodes[HOME].sharers = (struct rules_sharers){.cpu = 1, .cpu_left_ms = FOREVER_MS};
	job.shared.served = false; /* so the server's own advantage does not count */
	job.cpu_ms = 4000;
	assert_int_equal(shared_chosen(nodes, 2, &job), 1);
	job.shared.cached = home;
	job.shared.ncached = 1;
	job.cpu_ms = 800; /* the way would take 1.6 s, more than the wait and the harm */
	assert_int_equal(shared_chosen(nodes, 2, &job), HOME);
	job = shared_job(there, 1);
	nodes[HOME].sharers = (struct rules_sharers){0};
	assert_int_equal(shared_chosen(nodes, 3, &job), 1);
	job = shared_job(NULL, 0); /* nobody's cache: the server saves the way */
	assert_int_equal(shared_chosen(nodes, 3, &job), SERVER);
}

/* Where only some nodes are priced, those with the data are among them. */
static void one_among_many_is_found(void **state)
{
	enum { NODES = 300 };
	struct rules_node nodes[NODES];
	char names[NODES][16];

	(void)state;
	for (uint32_t i = 0; i < NODES; i++) {
		snprintf(names[i], sizeof(names[i]), "n%u", i + 1);
		nodes[i] = shared_node(names[i]);
	}
	for (uint32_t has = 3; has < NODES; has += 37) {
		const struct rules_held cached[] = {{has, READ_MB}};
		struct rules_request job = shared_job(cached, 1);

		assert_int_equal(shared_chosen(nodes, NODES, &job), has);
		job = shared_job(NULL, 0);
		job.shared.server = has;
		assert_int_equal(shared_chosen(nodes, NODES, &job), has);
	}
}

static void what_is_none_is_refused(void **state)
{
	const struct rules_held twice[] = {{1, 5}, {1, 6}}, less[] = {{1, -1}};
	const struct rules_node nodes[] = THREE;
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules *rules = rules_new(RULES_LEAST_DELAY, &p, 1);
	struct rules_request jobs[] = {shared_job(twice, 2), shared_job(less, 1),
				       shared_job(NULL, 1), shared_job(NULL, 0),
				       shared_job(NULL, 0)};
	struct rules_plan plan;

	(void)state;
	jobs[3].shared.read_mb = -1;
	jobs[4].shared.written_mb = NAN;
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(rules_place(rules, view, HOME, &jobs[i], &plan), -EINVAL);
	jobs[4] = shared_job(NULL, 0); /* a server that the view does not have is not known */
	jobs[4].shared.server = 7;
	assert_int_equal(rules_place(rules, view, HOME, &jobs[4], &plan), 0);
	rules_free(rules);
	rules_view_free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_servers_disk_and_the_way_count),
		cmocka_unit_test(the_candidates_disk_does_not_count),
		cmocka_unit_test(it_stays_where_the_data_is_and_goes_there),
		cmocka_unit_test(one_among_many_is_found),
		cmocka_unit_test(what_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
