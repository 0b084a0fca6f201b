/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A part of a gang at its node: slots, and leases that its home gives up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/guest/guest_own.h"
#include "tests/lib/guest_stage.h"
#include "tests/unit/guest_accounts.h"

#define PART "n2-1-1.0"

static const struct gstage_client anna = {.uid = GSTAGE_UID};

static struct job_order part_of(const char *job, uint32_t tasks)
{
	struct job_order order = gstage_order(job);

	order.gang_tasks = tasks;
	return order;
}

static size_t jobs(void)
{
	struct guest_counts counts;

	guest_count(gstage.guest, &counts);
	return counts.jobs;
}

static struct peer_answer release(const char *job, const char *from, const char *nonce)
{
	struct peer_request request = {.type = PEER_RELEASE};
	struct peer_answer answer = {0};

	snprintf(request.from, sizeof(request.from), "%s", from);
	snprintf(request.job, sizeof(request.job), "%s", job);
	snprintf(request.release.nonce, sizeof(request.release.nonce), "%s", nonce);
	assert_int_equal(guest_on_release(gstage.guest, &request, 0, &answer), 0);
	return answer;
}

static void test_slots_bind(void **state)
{
	struct job_order order = part_of(PART, 4);
	const struct peer_grant *g;

	(void)state;
	gstage.own.slots = 8;
	gstage.own.slots_free = 3;
	g = gstage_admit(&order);
	assert_string_equal(g->reason, "slots");
	assert_string_equal(g->text, "3 of its 8 slots are free, and 4 are needed");
	order.oversubscribe = true;
	assert_true(gstage_admit(&order)->granted);
	order = part_of("n2-1-2.0", 3);
	assert_true(gstage_admit(&order)->granted);
	order = gstage_order("n2-1-3"); /* an ordinary job needs none */
	gstage.own.slots_free = 0;
	assert_true(gstage_admit(&order)->granted);
	gstage.own.slots = 0;
	order = part_of("n2-1-4.0", 1);
	order.oversubscribe = true;
	g = gstage_admit(&order);
	assert_string_equal(g->reason, "slots");
	assert_string_equal(g->text, "it takes no tasks of parallel jobs (slots)");
}

/* A part of this very node needs slots, too. */
static void test_own_part(void **state)
{
	struct job_order order = part_of("here-1-1.0", 2);

	(void)state;
	snprintf(order.home, sizeof(order.home), "%s", gstage.set.name);
	gstage.own.slots = 2;
	gstage.own.slots_free = 1;
	assert_string_equal(gstage_admit(&order)->reason, "slots");
	gstage.own.slots_free = 2;
	assert_true(gstage_admit(&order)->granted);
}

static void test_table_counts_tasks(void **state)
{
	struct job_order order = part_of(PART, 3);
	struct vector_job *list;
	size_t n;

	(void)state;
	gstage.own.slots = gstage.own.slots_free = 8;
	assert_true(gstage_admit(&order)->granted);
	list = jobs_vector(&gstage.guest->jobs, &n);
	assert_int_equal(n, 1);
	assert_int_equal(list[0].gang_tasks, 3);
	free(list);
}

/* Only its home gives a lease up, and only the one that it means. */
static void test_release(void **state)
{
	struct job_order order = part_of(PART, 2);
	struct peer_answer answer;
	char nonce[SPEC_NONCE_MAX];
	unsigned changes;

	(void)state;
	gstage.own.slots = gstage.own.slots_free = 8;
	strcpy(nonce, gstage_admit(&order)->nonce);
	answer = release(PART, "n3", nonce);
	assert_false(answer.ok);
	assert_string_equal(answer.text, "no part of a gang of yours has that name");
	assert_true(release(PART, "n2", "0123").ok); /* an earlier lease, which is over */
	assert_int_equal(jobs(), 1);
	changes = gstage.changes;
	assert_true(release(PART, "n2", nonce).ok);
	assert_int_equal(jobs(), 0);
	assert_int_equal(gstage.changes, changes + 1); /* the others hear of the slots soon */
	assert_int_equal(gstage.counters.leases_released, 1);
	assert_true(release(PART, "n2", nonce).ok); /* again */
	assert_true(release("n2-1-9.0", "n3", "").ok);
	assert_int_equal(gstage.counters.leases_released, 1);
	assert_int_not_equal(gstage_come(PART, nonce, &anna), 0); /* its client comes too late */
}

static void test_release_of_what_runs(void **state)
{
	struct job_order order = part_of(PART, 2), plain = gstage_order("n2-1-2");
	struct peer_answer answer;

	(void)state;
	gstage.own.slots = gstage.own.slots_free = 8;
	gstage_launch(&order);
	answer = release(PART, "n2", "");
	assert_false(answer.ok);
	assert_string_equal(answer.text, "it has begun");
	assert_true(gstage_admit(&plain)->granted);
	assert_false(release("n2-1-2", "n2", "").ok); /* no part of a gang */
	assert_int_equal(jobs(), 2);
}

/* Home decides again: the part has the same name, and other tasks. */
static void test_asked_for_others(void **state)
{
	struct job_order order = part_of(PART, 2);
	char nonce[SPEC_NONCE_MAX];

	(void)state;
	gstage.own.slots = gstage.own.slots_free = 8;
	strcpy(nonce, gstage_admit(&order)->nonce);
	assert_string_equal(gstage_admit(&order)->nonce, nonce); /* the answer was lost */
	order.gang_tasks = 5;
	assert_string_not_equal(gstage_admit(&order)->nonce, nonce);
	assert_int_equal(jobs(), 1);
	assert_int_equal(gstage.guest->jobs.first->order.gang_tasks, 5);
	assert_true(release(PART, "n2", nonce).ok); /* comes late, and is about the first one */
	assert_int_equal(jobs(), 1);
	order.gang_tasks = 9;
	assert_string_equal(gstage_admit(&order)->reason, "slots");
	assert_int_equal(jobs(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, gstage_setup, gstage_teardown)
		T(test_slots_bind),	      T(test_own_part),
		T(test_table_counts_tasks),   T(test_release),
		T(test_release_of_what_runs), T(test_asked_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
