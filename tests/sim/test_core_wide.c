/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Jobs with more tasks than there are nodes, under every policy.  A run that somebody watches
 * makes full plans, which judge all nodes; other runs make brief plans, which skip nodes that
 * have a task of the job.  Both must end in the same bytes.
 */
#include <iocom/rules.h>

#include "tests/sim/core_fixture.h"

static void wide_jobs(struct bench *b)
{
	static const uint32_t tasks[] = {1, 90, 150, 80, 250, 99, 200, 300};

	for (uint32_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
		struct sim_job *j =
			bench_job(b, 3000.0 * i, 5, i == 0 ? 60000 : 4000 + 500 * (i % 3));

		j->tasks = tasks[i];
		j->requests = i % 2 ? 0 : 20;
		j->io_per_ms = i % 2 ? 0 : 0.005;
		j->memory_mb = i % 4 == 2 ? 30 : 0;
	}
}

static void watch(void *arg, double time_ms, const struct sim_job *job,
		  const struct rules_plan *plan, const uint32_t *nodes, const struct sim_look *look)
{
	(void)arg;
	(void)time_ms;
	(void)job;
	(void)plan;
	(void)nodes;
	(void)look;
}

/* Returns what sim_run returned; SEEN and MOVED tell the run, if that was 0. */
static int wide_run(const char *policy, bool watched, struct seen *seen, uint64_t *moved)
{
	struct sim_result r;
	struct bench b;
	int ret;

	memset(seen, 0, sizeof(*seen));
	*moved = 0;
	bench_init(&b, "100xfc");
	wide_jobs(&b);
	b.policy = policy;
	b.params.fidelity = SIM_FLUID;
	/* Jobs without I/O move, too: then nodes with and without their tasks stay equal to IO. */
	b.params.rules.io_useful_test = b.params.rules.io_cost_test = false;
	b.run.completed = see;
	b.run.arg = seen;
	b.run.decided = watched ? watch : NULL;
	ret = bench_try(&b, &r);
	if (ret == 0) {
		*moved = r.remote_executions;
		sim_result_free(&r);
	}
	bench_free(&b);
	return ret;
}

static void wide_jobs_end_the_same_with_full_and_brief_plans(void **state)
{
	static struct seen brief, full;
	unsigned int ran = 0, spread = 0;

	(void)state;
	for (unsigned int p = 0; p < RULES_POLICIES; p++) {
		const char *policy = rules_policy_name((enum rules_policy)p);
		uint64_t moved, moved_full;
		int ret = wide_run(policy, false, &brief, &moved);

		assert_int_equal(wide_run(policy, true, &full, &moved_full), ret);
		if (memcmp(&brief, &full, sizeof(full)) != 0 || moved != moved_full)
			fail_msg("%s: %llu tasks moved by brief plans, %llu by full ones; the "
				 "last job ended at %.17g and %.17g ms",
				 policy, (unsigned long long)moved, (unsigned long long)moved_full,
				 brief.last_ms, full.last_ms);
		ran += ret == 0;
		spread += moved > 100;
	}
	/* All but WAL-FC, which needs its controller, and BS, where such a job never fits. */
	assert_in_range(ran, RULES_POLICIES - 2, RULES_POLICIES);
	assert_in_range(spread, 10, RULES_POLICIES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wide_jobs_end_the_same_with_full_and_brief_plans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
