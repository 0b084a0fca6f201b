/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which test decided, its numbers for people, and that `explain` fits 80 columns whatever the names
 * are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/listing.h"
#include "balancer/placement_reason.h"
#include "balancer/placement_text.h"
#include "tests/unit/placement_fixture.h"

static struct plan_reason reasons[8];

static struct placement placed(const char *policy, const char *node)
{
	struct placement p = {.policy = policy, .home = "n1", .node = node};

	p.ask.comment[0] = 0;
	p.job = "";
	p.plan.node = node;
	p.plan.reasons = reasons;
	memset(reasons, 0, sizeof(reasons));
	return p;
}

static void told(struct placement *p, const char *node, const char *criterion, double left,
		 const char *relation, double right, bool holds)
{
	reasons[p->plan.nreasons++] = (struct plan_reason){.criterion = criterion,
							   .source = "source",
							   .node = node,
							   .unit = "ms",
							   .relation = relation,
							   .text = "text",
							   .left = left,
							   .right = right,
							   .holds = holds};
}

static void decided(const struct placement *p, size_t reason)
{
	assert_ptr_equal(placement_reason_deciding(p), &reasons[reason]);
}

/* The job leaves by the last test that its node passed, not by one that another node failed. */
static void test_leaves(void **state)
{
	struct placement p = placed("least-delay", "n2");

	(void)state;
	told(&p, "n1", "mem-overloaded", 70, ">", 1000, false);
	told(&p, "n1", "delay-home", 2500, "", 833, true);
	told(&p, "n2", "delay", 3000, ">", 2470, true);
	told(&p, "n3", "delay", 3000, ">", 3119, false);
	decided(&p, 2);
}

/* It stays for the test that came nearest, not for one of home that was never in doubt. */
static void test_stays(void **state)
{
	struct placement p = placed("least-delay", "n1");

	(void)state;
	told(&p, "n1", "mem-overloaded", 70, ">", 1000, false);
	told(&p, "n1", "delay-home", 2500, "", 833, true);
	told(&p, "n2", "delay", 3000, ">", 9000, false);
	told(&p, "n3", "delay", 3000, ">", 3119, false);
	told(&p, "n4", "accepts", 0, ">=", 1, false);
	decided(&p, 3);
	p.plan.nreasons = 2; /* nobody else was judged */
	decided(&p, 0);
}

/* For "at most", the smaller side is the nearer one the larger it is. */
static void test_nearest_below(void **state)
{
	struct placement p = placed("io-re", "n1");

	(void)state;
	told(&p, "n1", "io-overloaded", 5, ">=", 4, true);
	told(&p, "n2", "io-underloaded", 9, "<=", 3, false);
	told(&p, "n3", "io-underloaded", 4, "<=", 3, false);
	decided(&p, 2);
}

static void test_nothing_decided(void **state)
{
	struct placement p = placed("least-delay", "n2");

	(void)state;
	told(&p, "n2", "delay", 3000, ">", 2470, true);
	p.forced = true;
	assert_null(placement_reason_deciding(&p));
	p.forced = false;
	p.plan.queued = true;
	assert_null(placement_reason_deciding(&p));
	p = placed("random", "n2");
	told(&p, "n2", "at-random", 0, "", 0, true);
	assert_null(placement_reason_deciding(&p));
	p = placed("least-delay", "n1"); /* the chosen nodes refused */
	told(&p, "n2", "delay", 3000, ">", 2470, true);
	p.plan.node = "n2";
	assert_null(placement_reason_deciding(&p));
}

static void says(const char *unit, double left, double right, const char *wanted)
{
	const struct plan_reason r = {.unit = unit, .relation = ">", .left = left, .right = right};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	placement_reason_numbers(&r, out);
	fclose(out);
	assert_string_equal(text, wanted);
	free(text);
}

static void test_numbers(void **state)
{
	(void)state;
	says("ms", 999, 12, "999 > 12 ms");
	says("ms", 1000, 12, "1 > 0.0120 s");
	says("ms", 3210, 2450, "3.21 > 2.45 s");
	says("ms", -5, 2450, "-0.0050 > 2.45 s");
	says("requests/ms", 0.2, 0.0125, "200 > 12.5 requests/s");
	says("disk utilisation", 0.5, 0.05, "50 > 5 % of the disk");
	says("MB", 70.3, 1000, "70.3 > 1000 MB");
	says("", 0, 1, "0 > 1");
	says("ms", 3001, 3002, "3.001 > 3.002 s"); /* sides that differ look different */
}

/* --- 80 columns -------------------------------------------------------------------------- */

static void narrow(const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		if (n > LISTING_WIDTH)
			fail_msg("%zu columns: %.*s", n, (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static void fits(const struct placement *p, const char *took)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	placement_text_print(p, took, out);
	fclose(out);
	narrow(text);
	free(text);
}

static void test_fits(void **state)
{
	static const char *const policies[] = {"least-delay", "iocm-re", "wal", "io-re",
					       "zatti-real"};
	static char name[64];
	struct placement p;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++)
		for (int busy = 0; busy <= 10; busy += 5) {
			fixture_decide(&p, policies[i], 9, busy);
			fixture_place(&p);
			fits(&p, "it took 5.1 s and ended by signal TERM");
			for (size_t j = 0; j < p.plan.nreasons; j++)
				p.plan.reasons[j].node = name;
			p.home = name;
			fits(&p, NULL);
			p.node = name;
			fits(&p, NULL);
			placement_fini(&p);
		}
}

/* One line for a node that failed two tests or refused itself, cut where its sentence is long. */
static void test_refusals(void **state)
{
	static char why[300];
	struct placement_refusal refused = {.node = "n3", .reason = "path-missing", .text = why};
	struct placement p;
	char *text = NULL, *at;
	size_t size, lines = 0;
	FILE *out;

	(void)state;
	memset(why, 'y', sizeof(why) - 1);
	fixture_decide(&p, "least-delay", 4, 0);
	p.refused = &refused;
	p.nrefused = 1;
	out = open_memstream(&text, &size);
	placement_text_print(&p, NULL, out);
	fclose(out);
	narrow(text);
	assert_non_null(at = strstr(text, "Refused candidates:\n"));
	for (at = strchr(at, '\n') + 1; !strncmp(at, "  n", 3); at = strchr(at, '\n') + 1)
		lines++;
	assert_int_equal(lines, 3);
	assert_non_null(strstr(text, "  n3: path-missing: yyy"));
	free(text);
	p.nrefused = 0;
	p.refused = NULL;
	placement_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves),	      cmocka_unit_test(test_stays),
		cmocka_unit_test(test_nearest_below), cmocka_unit_test(test_nothing_decided),
		cmocka_unit_test(test_numbers),	      cmocka_unit_test(test_fits),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
