/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Parallel jobs among whole parties on a virtual clock (parties.h): all nodes or none, claims that
 * cross, parts that fail, do not start, or are lost, and agents that stop meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/gang/gangs.h"
#include "agent/gang/gangs_own.h"
#include "balancer/view/gang_answer.h"
#include "user/gang_plan.h"
#include "tests/lib/parties.h"
#include "tests/lib/shims.h"

#define GANG	 "n1-10101010-1"
#define NODES	 4
#define ANSWER_S 10

static struct parties all;
static struct party_client client, other;

static struct party *node(unsigned number)
{
	return &all.nodes[number - 1];
}

static void slots(unsigned number, uint32_t count)
{
	node(number)->load.slots = count;
	party_publish(node(number));
}

static int setup(void **state)
{
	(void)state;
	parties_begin(&all, NODES);
	for (unsigned i = 1; i <= NODES; i++) {
		node(i)->load.run_queue = 0;
		slots(i, 4);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	party_client_end(&client);
	party_client_end(&other);
	parties_end(&all);
	return 0;
}

static void wait_for(struct party_client *c)
{
	for (int i = 0; i < ANSWER_S * 1000 && !c->told; i++)
		parties_pass(&all, 1);
	assert_int_equal(c->told, 1);
}

static void place(const struct party_submission *submission)
{
	party_place(node(1), &client, submission);
	wait_for(&client);
}

static struct gang_answer *answer_of(const struct party_client *c)
{
	struct gang_answer *gang = NULL;
	struct iocom_err err = {0};

	assert_string_equal(c->why, "");
	assert_int_equal(gang_answer_read(&gang, json_object_get(c->answer, "gang"), &err), 0);
	return gang;
}

static void launch_all(struct party_client *c)
{
	struct gang_answer *gang = answer_of(c);

	for (uint32_t i = 0; i < gang->nparts; i++)
		assert_int_equal(party_launch_part(c, i, NULL), 0);
	gang_answer_free(gang);
	parties_pass(&all, 2000);
}

/* Leases and jobs at all nodes. */
static size_t held(void)
{
	size_t n = 0;

	for (unsigned i = 1; i <= all.count; i++)
		n += party_jobs(node(i));
	return n;
}

static void test_all_of_it(void **state)
{
	struct gang_answer *gang;
	uint32_t tasks = 0;

	(void)state;
	place(&(struct party_submission){.tasks = 16});
	gang = answer_of(&client);
	assert_string_equal(gang->job, GANG);
	assert_string_equal(party_answer(&client, "job"), GANG);
	assert_int_equal(gang->nparts, 4);
	for (uint32_t i = 0; i < gang->nparts; i++) {
		tasks += gang->parts[i].tasks;
		assert_int_equal(gang->parts[i].tasks, 4);
		assert_true(*gang->parts[i].nonce);
		assert_int_equal(!*gang->parts[i].address, !strcmp(gang->parts[i].node, "n1"));
		assert_int_equal(!*gang->parts[i].key, !strcmp(gang->parts[i].node, "n1"));
	}
	assert_int_equal(tasks, 16);
	gang_answer_free(gang);
	assert_int_equal(held(), 4);
	assert_string_equal(party_journal(node(1), GANG), "starting 0");
	launch_all(&client);
	assert_string_equal(party_journal(node(1), GANG), "running 0");
	assert_string_equal(party_journal(node(1), GANG ".3"), "running 0");
	for (int i = 0; i < 4; i++) {
		static const char *const parts[] = {GANG ".0", GANG ".1", GANG ".2", GANG ".3"};

		assert_int_equal(gangs_count(node(1)->gangs), 1);
		parties_finish(&all, parts[i], 0, 0);
		parties_pass(&all, 1000);
	}
	assert_string_equal(party_journal(node(1), GANG), "exited 0");
	assert_int_equal(gangs_count(node(1)->gangs), 0);
	assert_int_equal(held(), 0);
}

static void test_too_many(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 17});
	assert_string_equal(client.why,
			    "17 tasks do not fit: 4 nodes have 16 free slots; see --oversubscribe");
	place(&(struct party_submission){.tasks = 3, .per_node = 1, .only = "n2,n4"});
	assert_string_equal(client.why, "3 tasks do not fit: 2 nodes have 2 free slots at no more "
					"than 1 a node; see --oversubscribe");
	place(&(struct party_submission){.tasks = 3, .only = "n2,n9"});
	assert_string_equal(client.why, "node 'n9' is unknown here, so it cannot take tasks");
	slots(2, 0);
	place(&(struct party_submission){.tasks = 1, .only = "n2", .oversubscribe = true});
	assert_string_equal(client.why, "1 task does not fit: no node takes it");
	assert_int_equal(held(), 0);
	assert_int_equal(gangs_count(node(1)->gangs), 0);
}

/* A gang that comes a moment before the end of another one is told of is not refused. */
static void test_just_free(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 16});
	launch_all(&client);
	party_place(node(1), &other, &(struct party_submission){.tasks = 16});
	parties_pass(&all, 300);
	assert_int_equal(other.told, 0);
	assert_int_equal(held(), 4); /* it waits for nobody with a lease */
	for (int i = 0; i < 4; i++) {
		static const char *const parts[] = {GANG ".0", GANG ".1", GANG ".2", GANG ".3"};

		parties_finish(&all, parts[i], 0, 0);
	}
	wait_for(&other);
	assert_non_null(other.answer);
	parties_pass(&all, 1500);
	place(&(struct party_submission){.tasks = 1});
	assert_string_equal(client.why,
			    "1 task does not fit: 4 nodes have 0 free slots; see --oversubscribe");
}

static void test_oversubscribed(void **state)
{
	struct gang_answer *gang;

	(void)state;
	place(&(struct party_submission){.tasks = 40, .only = "n2,n3", .oversubscribe = true});
	gang = answer_of(&client);
	assert_int_equal(gang->nparts, 2);
	gang_answer_free(gang);
	assert_int_equal(held(), 2);
}

/* n3 has fewer slots than this node has heard of: its refusal gives back all others. */
static void test_refused(void **state)
{
	struct gang_answer *gang;

	(void)state;
	node(3)->load.slots = 1;
	place(&(struct party_submission){.tasks = 12});
	gang = answer_of(&client);
	assert_int_equal(gang->nparts, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_string_not_equal(gang->parts[i].node, "n3");
	gang_answer_free(gang);
	parties_pass(&all, 100);
	assert_int_equal(party_jobs(node(3)), 0);
	assert_int_equal(held(), 3);
}

static void test_refused_for_good(void **state)
{
	(void)state;
	node(3)->load.slots = 1;
	place(&(struct party_submission){.tasks = 16});
	assert_string_equal(client.why,
			    "16 tasks do not fit: a node refused in each of 3 rounds; node n3 "
			    "refused the job (slots): 1 of its 1 slots are free, and 4 are needed");
	parties_pass(&all, 100);
	assert_int_equal(held(), 0);
	assert_non_null(strstr(party_journal(node(1), GANG), "failed 3 16 tasks do not fit"));
	assert_int_equal(gangs_count(node(1)->gangs), 0);
}

static void test_silent(void **state)
{
	(void)state;
	parties_rule(&all,
		     &(struct bus_rule){
			     .from = "n2", .answers = true, .type = PEER_ADMIT, .what = BUS_LOSE});
	place(&(struct party_submission){.tasks = 16});
	assert_non_null(strstr(client.why, "16 tasks do not fit: 3 nodes"));
	assert_non_null(strstr(client.why, "node n2 did not answer"));
	parties_pass(&all, 1000);
	assert_int_equal(held(), 0); /* n2 gave its lease back, too */
}

/* Two gangs want what only one of them can have, and each holds half of it for a moment. */
static void test_crossed(void **state)
{
	(void)state;
	party_place(node(1), &client, &(struct party_submission){.tasks = 8, .only = "n1,n2"});
	party_place(node(2), &other, &(struct party_submission){.tasks = 8, .only = "n1,n2"});
	wait_for(&client);
	wait_for(&other);
	parties_pass(&all, 100);
	assert_true(!client.answer != !other.answer);
	assert_int_equal(held(), 2);
	/* When the first has left, the next gets all. */
	parties_pass(&all, 12000);
	place(&(struct party_submission){.tasks = 8, .only = "n1,n2"});
	assert_non_null(client.answer);
}

static void test_client_leaves(void **state)
{
	(void)state;
	party_place(node(1), &client, &(struct party_submission){.tasks = 16});
	party_leave(&client);
	parties_pass(&all, 1000);
	assert_int_equal(client.told, 0);
	assert_int_equal(held(), 0);
	assert_string_equal(party_journal(node(1), GANG),
			    "failed 3 its client left before the job had a place");
}

/* The client never starts the parts: their leases end, and so does the gang. */
static void test_never_started(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 16});
	parties_pass(&all, 14000);
	assert_int_equal(held(), 0);
	assert_non_null(strstr(party_journal(node(1), GANG),
			       "the client did not come within 10 s of the lease"));
	assert_int_equal(gangs_count(node(1)->gangs), 0);
}

static void test_one_fails(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 16});
	launch_all(&client);
	shims_ignore_term(GANG ".3");
	parties_finish(&all, GANG ".1", 0, 7);
	parties_pass(&all, 1000);
	assert_false(shims_runs(GANG ".0"));
	assert_false(shims_runs(GANG ".2"));
	assert_true(shims_runs(GANG ".3"));
	parties_pass(&all, 3000);
	assert_int_equal(held(), 0); /* SIGKILL */
	assert_non_null(strstr(party_journal(node(1), GANG), "exited 0 its part on node n"));
	assert_non_null(strstr(party_journal(node(1), GANG),
			       "(" GANG ".1) ended with status 7; the others were ended"));
}

/* The parts from FIRST on, of four, end as by TERM; TEXT is what their shims say. */
static void all_parts_fail(int first, const char *text)
{
	for (int i = first; i < 4; i++) {
		char part[64];

		snprintf(part, sizeof(part), GANG ".%d", i);
		parties_fail(&all, part, 0, 143, text);
	}
}

/* Whichever end is heard first, the gang's reason is the part that failed by itself. */
static void test_reason(void **state)
{
	struct gang_answer *gang;
	char crash[128], expected[256];

	(void)state;
	place(&(struct party_submission){.tasks = 16});
	launch_all(&client);
	gang = answer_of(&client);
	snprintf(crash, sizeof(crash), "rank 9 on %s was ended by signal 11 (SEGV)",
		 gang->parts[2].node);
	gang_answer_free(gang);
	for (int i = 1; i < 4; i++) {
		char part[64];

		snprintf(part, sizeof(part), GANG ".%d", i);
		shims_ignore_term(part);
	}
	parties_fail(&all, GANG ".0", 0, 143, GANG_TOLD_TO_END);
	parties_pass(&all, 100);
	parties_fail(&all, GANG ".1", 0, 15, "rank 4 on n2 called MPI_Abort with status 15");
	parties_pass(&all, 100);
	parties_fail(&all, GANG ".2", 0, 139, crash);
	parties_pass(&all, 100);
	parties_fail(&all, GANG ".3", 0, 137, GANG_TOLD_TO_END);
	parties_pass(&all, 2000);
	snprintf(expected, sizeof(expected), "killed 1 %s; the others were ended", crash);
	assert_string_equal(party_journal(node(1), GANG), expected);
}

/* Nobody is to blame when its user, or its client, has ended it. */
static void test_told(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 16});
	launch_all(&client);
	all_parts_fail(0, GANG_TOLD_TO_END);
	parties_pass(&all, 2000);
	assert_string_equal(party_journal(node(1), GANG),
			    "killed 1 it was ended by signal 15 (TERM)");
}

/* What parts that were told to end have heard counts if nobody says more of itself. */
static void test_heard(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 16});
	launch_all(&client);
	parties_fail(&all, GANG ".0", 0, 143, GANG_TOLD_TO_END);
	all_parts_fail(1, GANG_TOLD_TO_END ": the launcher on node n1 has ended");
	parties_pass(&all, 2000);
	assert_string_equal(party_journal(node(1), GANG),
			    "failed 3 the launcher on node n1 has ended; the others were ended");
}

/* With keep_going, too, nobody is to blame for what its user ends. */
static void test_keeps_going_until_told(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 16, .keep_going = true});
	launch_all(&client);
	assert_true(gangs_end(node(1)->gangs, GANG, 2));
	all_parts_fail(0, GANG_TOLD_TO_END);
	parties_pass(&all, 2000);
	assert_string_equal(party_journal(node(1), GANG),
			    "killed 1 it was ended by signal 2 (INT)");
}

/* Its client could not start all of it, and says why; a part knows more of itself. */
static void test_given_up(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 16});
	assert_true(gangs_give_up(node(1)->gangs, GANG, 125, "n3: cannot\tconnect"));
	assert_false(gangs_give_up(node(1)->gangs, GANG, 125, "again"));
	parties_pass(&all, 3000);
	assert_int_equal(held(), 0);
	assert_string_equal(party_journal(node(1), GANG), "failed 3 n3: cannot?connect");
}

/* Its user ends it before its client has started it. */
static void test_ended_before_it_began(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 16});
	assert_int_equal(held(), 4);
	assert_false(gangs_end(node(1)->gangs, "n1-10101010-9", 15));
	assert_true(gangs_end(node(1)->gangs, GANG, 15));
	assert_false(gangs_end(node(1)->gangs, GANG, 15));
	parties_pass(&all, 500);
	assert_int_equal(held(), 0);
	assert_string_equal(party_journal(node(1), GANG),
			    "killed 1 it was ended by signal 15 (TERM) before all its tasks ran");
	assert_string_equal(party_journal(node(1), GANG ".2"),
			    "failed 3 it never started: its gang ended first");
	assert_int_not_equal(party_launch_part(&client, 0, NULL), 0);
	assert_int_equal(gangs_count(node(1)->gangs), 0);
}

static void test_keeps_going(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 16, .keep_going = true});
	launch_all(&client);
	parties_finish(&all, GANG ".1", 0, 7);
	parties_pass(&all, 3000);
	assert_true(shims_runs(GANG ".0"));
	assert_string_equal(party_journal(node(1), GANG), "running 0");
	parties_finish(&all, GANG ".0", 0, 0);
	parties_finish(&all, GANG ".2", 0, 0);
	parties_finish(&all, GANG ".3", 0, 0);
	parties_pass(&all, 3000);
	assert_non_null(strstr(party_journal(node(1), GANG), "ended with status 7"));
	assert_int_equal(held(), 0);
}

static void test_one_never_starts(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 16});
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(party_launch_part(&client, i, NULL), 0);
	parties_pass(&all, 15000);
	assert_int_equal(held(), 0);
	assert_non_null(
		strstr(party_journal(node(1), GANG), "(" GANG ".3) failed: the client did"));
}

/* A part of a node that is cut off is lost, and ends when the node is heard again. */
static void test_node_lost(void **state)
{
	struct gang_answer *gang;
	struct party *lost;

	(void)state;
	place(&(struct party_submission){.tasks = 16});
	gang = answer_of(&client);
	lost = party_of(&all, gang->parts[3].node);
	gang_answer_free(gang);
	launch_all(&client);
	lost->cut = true;
	parties_pass(&all, (GANGS_LOST_S + 10) * 1000);
	assert_non_null(strstr(party_journal(node(1), GANG), "lost 3 node n"));
	assert_false(shims_runs(GANG ".0"));
	assert_true(shims_runs(GANG ".3"));
	assert_int_equal(gangs_count(node(1)->gangs), 1);
	lost->cut = false;
	parties_pass(&all, 10000);
	assert_false(shims_runs(GANG ".3"));
	assert_int_equal(gangs_count(node(1)->gangs), 0);
}

static void test_restart(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 12, .only = "n2,n3,n4"});
	launch_all(&client);
	party_stop(node(1));
	party_start(node(1));
	for (unsigned i = 1; i <= NODES; i++)
		party_publish(node(i));
	parties_pass(&all, 3000);
	assert_int_equal(gangs_count(node(1)->gangs), 1);
	assert_string_equal(party_journal(node(1), GANG), "running 0");
	parties_finish(&all, GANG ".2", 1, 9);
	parties_pass(&all, 5000);
	assert_non_null(strstr(party_journal(node(1), GANG), "killed 1 its part on node n"));
	assert_int_equal(held(), 0);
}

/* The agent stops between the end of a gang and that of its parts. */
static void test_restart_while_ending(void **state)
{
	(void)state;
	place(&(struct party_submission){.tasks = 12, .only = "n2,n3,n4"});
	launch_all(&client);
	parties_rule(&all, &(struct bus_rule){.from = "n1", .type = PEER_KILL, .what = BUS_LOSE});
	parties_finish(&all, GANG ".1", 0, 3);
	parties_pass(&all, 1000);
	assert_true(shims_runs(GANG ".0"));
	party_stop(node(1));
	parties_no_rules(&all);
	party_start(node(1));
	for (unsigned i = 1; i <= NODES; i++)
		party_publish(node(i));
	parties_pass(&all, 5000);
	assert_false(shims_runs(GANG ".0"));
	assert_non_null(strstr(party_journal(node(1), GANG), "ended with status 3"));
	assert_int_equal(held(), 0);
}

/* Its agent stopped while it asked. */
static void test_restart_while_asking(void **state)
{
	(void)state;
	parties_rule(&all, &(struct bus_rule){.from = "n1",
					      .type = PEER_ADMIT,
					      .what = BUS_DELAY,
					      .delay_ms = 1000});
	party_place(node(1), &client, &(struct party_submission){.tasks = 12, .only = "n2,n3,n4"});
	parties_pass(&all, 100);
	party_stop(node(1));
	assert_non_null(strstr(client.why, "the agent is stopping"));
	party_start(node(1));
	parties_pass(&all, 13000);
	assert_int_equal(held(), 0);
	assert_int_equal(gangs_count(node(1)->gangs), 0);
}

static void test_learns(void **state)
{
	struct profile p = {0};
	struct iocom_err err = {0};

	(void)state;
	place(&(struct party_submission){.tasks = 8, .only = "n2,n3", .class_name = "work"});
	launch_all(&client);
	parties_finish(&all, GANG ".0", 0, 0);
	parties_finish(&all, GANG ".1", 0, 0);
	parties_pass(&all, 3000);
	assert_string_equal(party_journal(node(1), GANG), "exited 0");
	assert_int_equal(profile_get(node(1)->profiles, PARTIES_UID, "work@8", &p, &err), 0);
	assert_int_equal(p.runs, 1);
	assert_int_not_equal(profile_get(node(1)->profiles, PARTIES_UID, "work", &p, &err), 0);
}

#define PAIRED	   8
#define PAIR_BYTES (2ull << 30)

/* Ranks 2i and 2i + 1 send each other a lot; all were on nodes of their own. */
static void learn_pairs(struct party *party, const char *class_name)
{
	struct exchange said[PAIRED] = {0};
	struct exchange_row rows[PAIRED];
	struct join_part parts[PAIRED];
	const struct profile run = {.cpu_ms = 8000, .wall_ms = 1000};
	struct iocom_err err = {0};
	struct join join;

	/* Only of a class that is known. */
	assert_int_equal(profile_learn(party->profiles, PARTIES_UID, class_name, &run, &err), 0);
	for (int32_t i = 0; i < PAIRED; i++) {
		rows[i] = (struct exchange_row){.connection = 1 + (uint64_t)i / 2,
						.rank = i,
						.second = i % 2,
						.sum = {PAIR_BYTES, PAIR_BYTES, 64, 64}};
		said[i].rows = &rows[i];
		said[i].nrows = 1;
		parts[i].said = &said[i];
	}
	assert_int_equal(join_parts(&join, parts, PAIRED, PAIRED, NULL, 125), 0);
	assert_int_equal(profile_talk_learn(party->profiles, PARTIES_UID, class_name, &join, &err),
			 0);
	join_fini(&join);
}

/* Who is known to talk a lot is put together, and the numbers say why. */
static void test_pairs(void **state)
{
	struct gang_answer *gang;
	double com_ms;

	(void)state;
	for (unsigned i = 1; i <= NODES; i++)
		slots(i, 2);
	learn_pairs(node(1), "pairs@8");
	place(&(struct party_submission){.tasks = PAIRED, .class_name = "pairs"});
	gang = answer_of(&client);
	assert_int_equal(gang->nparts, 4);
	for (uint32_t i = 0; i < gang->nparts; i++) {
		const uint32_t *ranks = &gang->ranks[gang->parts[i].first];

		assert_int_equal(gang->parts[i].tasks, 2);
		assert_int_equal(ranks[0] % 2, 0);
		assert_int_equal(ranks[1], ranks[0] + 1);
	}
	com_ms = json_number_value(json_object_get(gang->why, "com_ms"));
	assert_true(com_ms > 0.5 * PAIR_BYTES / 125e3);
	gang_answer_free(gang);
	/* With another number of tasks nothing is known. */
	party_place(
		node(1), &other,
		&(struct party_submission){.tasks = 6, .class_name = "pairs", .ask_only = true});
	wait_for(&other);
	assert_string_equal(other.why, "");
	assert_int_equal(
		json_number_value(json_object_get(
			json_object_get(json_object_get(other.answer, "gang"), "why"), "com_ms")),
		0);
	assert_int_equal(held(), 4); /* who only asks takes nothing */
}

static void test_only(void **state)
{
	(void)state;
	assert_true(gang_only_has("", "n1"));
	assert_true(gang_only_has("n1", "n1"));
	assert_true(gang_only_has("n10,n1", "n1"));
	assert_false(gang_only_has("n10,n11", "n1"));
	assert_false(gang_only_has("n1", "n10"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_all_of_it),
		T(test_too_many),
		T(test_just_free),
		T(test_oversubscribed),
		T(test_refused),
		T(test_refused_for_good),
		T(test_silent),
		T(test_crossed),
		T(test_client_leaves),
		T(test_never_started),
		T(test_one_fails),
		T(test_reason),
		T(test_told),
		T(test_heard),
		T(test_keeps_going_until_told),
		T(test_given_up),
		T(test_ended_before_it_began),
		T(test_keeps_going),
		T(test_one_never_starts),
		T(test_node_lost),
		T(test_restart),
		T(test_restart_while_ending),
		T(test_restart_while_asking),
		T(test_learns),
		T(test_pairs),
		cmocka_unit_test(test_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
