/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The rules' view of the matrix: home first and exact, charges until they are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/cluster/rebuilt_view.h"
#include "balancer/view/view_decide.h"

#define S 1000000000ull

static struct iocom_vector make(const char *name, double explicit_per_ms, double utilisation)
{
	struct iocom_vector v = {
		.boot_id = 1,
		.sequence = 10,
		.time_ns = 1,
		.period_ms = 1000,
		.cores = 2,
		.cpu_speed = 1,
		.memory_mb = 1000,
		.memory_requested_mb = 100,
		.explicit_per_ms = explicit_per_ms,
		.disks = 1,
		.disk_arrivals_per_ms = explicit_per_ms,
		.disk_utilisation = utilisation,
		.disk_service_ms = utilisation > 0 ? utilisation / explicit_per_ms : 0,
		.disk_service_ms2 = utilisation > 0 ? 2 : 0,
		.disk_mb_per_s = 20,
		.disk_fixed_ms = 0.1,
		.network_mb_per_s = 125,
		.io_tasks = utilisation > 0 ? 2 : 0,
		.accepts_jobs = true,
	};

	snprintf(v.name, sizeof(v.name), "%s", name);
	return v;
}

static const struct rules_request io_job = {
	.cpu_ms = 100,
	.io_per_ms = 0.2,
	.request_kb = 64,
	.memory_mb = 10,
	.requests = 2000,
	.tasks = 1,
};

static const char *decide(const struct matrix *m, const struct view_charges *c, char out[64])
{
	struct iocom_vector self = make("me", 0.3, 0.95);
	struct view_decision decision;
	struct view_policy policy;
	struct view_file view;

	assert_int_equal(view_policy_parse("iocm-re", &policy, NULL), 0);
	assert_int_equal(view_build(&self, m, c, 10 * S, &view), 0);
	assert_string_equal(view.nodes[0].node.name, "me");
	assert_true(view.nodes[0].node.accepts);
	view.job = io_job;
	assert_int_equal(view_decide(&view, &policy, &decision, NULL), 0);
	snprintf(out, 64, "%s", rules_view_name(decision.view, decision.plan.node));
	view_decision_fini(&decision);
	view_file_fini(&view);
	return out;
}

static void charge(struct view_charges *c, const char *node, uint64_t boot, uint64_t sequence)
{
	struct view_charge one = {
		.boot_id = boot, .sequence = sequence, .since_ns = 10 * S, .request = io_job};

	snprintf(one.node, sizeof(one.node), "%s", node);
	view_charge_add(c, &one);
}

static void test_charges_turn_the_decision(void **state)
{
	struct iocom_vector a = make("a", 0.01, 0.02), b = make("b", 0.05, 0.1), dead = a;
	struct view_charges c = {0};
	struct matrix m;
	char out[64];

	(void)state;
	matrix_init(&m, "me");
	matrix_put(&m, &a, 0, 10 * S);
	matrix_put(&m, &b, 0, 10 * S);
	strcpy(dead.name, "dead");
	matrix_put(&m, &dead, 0, 1 * S);
	matrix_expire(&m, 10 * S);
	assert_string_equal(decide(&m, &c, out), "a");
	charge(&c, "a", 1, 11);
	assert_string_equal(decide(&m, &c, out), "b"); /* a carries what was just sent */
	view_charges_settle(&c, &m, 10 * S);
	assert_int_equal(c.count, 1); /* sequence 10 does not count it yet */
	a.sequence = 11;
	matrix_put(&m, &a, 0, 11 * S);
	view_charges_settle(&c, &m, 11 * S);
	assert_int_equal(c.count, 0);
	view_charges_fini(&c);
	matrix_fini(&m);
}

static void test_charges_end(void **state)
{
	struct iocom_vector a = make("a", 0.01, 0.02);
	struct view_charges c = {0};
	struct matrix m;

	(void)state;
	matrix_init(&m, "me");
	matrix_put(&m, &a, 0, 10 * S);
	charge(&c, "a", 2, 1); /* it has restarted: what it was sent is not counted so */
	charge(&c, "gone", 1, 11);
	charge(&c, "a", 1, 11);
	view_charges_settle(&c, &m, 11 * S);
	assert_int_equal(c.count, 1);
	view_charges_settle(&c, &m, 11 * S + VIEW_CHARGE_NS);
	assert_int_equal(c.count, 0);
	for (int i = 0; i < VIEW_CHARGES_MAX + 5; i++)
		charge(&c, "a", 1, 11);
	assert_int_equal(c.count, VIEW_CHARGES_MAX);
	assert_int_equal(c.lost, 5);
	view_charges_fini(&c);
	matrix_fini(&m);
}

static void test_node(void **state)
{
	struct iocom_vector v = make("a", 0.01, 0.02);
	struct rules_node n;

	(void)state;
	v.disks = 0;
	v.implicit_per_ms = 0.5;
	v.accepts_jobs = false;
	view_node(&v, 250, &n);
	assert_true(n.disk_mb_per_s == 0);
	assert_true(n.advertised.io_per_ms == 0.51);
	assert_true(n.advertised.explicit_per_ms == 0.01);
	assert_true(n.cpu_mips == 1000 && n.buffer_mb == 0 && n.age_ms == 250);
	assert_false(n.accepts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_charges_turn_the_decision),
		cmocka_unit_test(test_charges_end),
		cmocka_unit_test(test_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
