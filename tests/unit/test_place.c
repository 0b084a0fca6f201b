/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The home party among others: a submission meets refusals, silence, clients that leave, agents
 * that stop, journals that cannot be written, and leases that end meanwhile.  Whole parties on a
 * virtual clock (parties.h); some of what they do is compared with tests/golden/agent_place_*.txt.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "agent/jobs/leases.h"
#include "tests/lib/full_disk.h"
#include "tests/lib/parties.h"
#include "tests/lib/shims.h"
#include "tests/lib/slow_disk.h"
#include "user/clock.h"

#define JOB_1	     "n1-10101010-1" /* the first job that is submitted at n1 */
#define JOB_2	     "n1-10101010-2"
#define ANSWER_MS    (CONTROL_TIMEOUT_MS + 500)
#define NO_CLIENT_MS 11500 /* a place is kept for 10 s; the chores check that each second */
#define LEASE_MS     5000
#define WRITES_MAX   200

static struct parties all;
static struct party_client client, other;

static int setup(void **state)
{
	(void)state;
	parties_begin(&all, 4);
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

static struct party *node(unsigned number)
{
	return &all.nodes[number - 1];
}

/* Submits a job at n1 and waits for the answer. */
static void place(const struct party_submission *submission)
{
	party_place(node(1), &client, submission);
	for (int i = 0; i < 1000 && !client.told; i++)
		parties_pass(&all, 10);
	parties_pass(&all, 10);
}

static void is_placed(const struct party_client *c, const char *where, const char *refused)
{
	assert_int_equal(c->told, 1);
	assert_string_equal(c->why, "");
	assert_string_equal(party_answer(c, "node"), where);
	assert_string_equal(party_refusals(c), refused);
}

static void is_told(const struct party_client *c, const char *why)
{
	assert_int_equal(c->told, 1);
	assert_null(c->answer);
	assert_string_equal(c->why, why);
}

/* --- refusals ----------------------------------------------------------------------- */

static void no_guests(void)
{
	node(2)->set.accept_jobs = false;
}

static void not_him(void)
{
	strcpy(node(2)->set.deny_users, "nobody");
}

static void other_users(void)
{
	node(2)->set.min_uid = PARTIES_UID + 1;
}

static void less_memory(void)
{
	node(2)->load.memory_available_mb = 50;
}

static void busier(void)
{
	node(2)->load.explicit_per_ms = 5;
}

static void one_job(void)
{
	node(2)->set.user_jobs_max = 1;
	party_place(node(1), &other, &(struct party_submission){.node = "n2"});
	parties_pass(&all, 100);
	is_placed(&other, "n2", "");
}

static void full_disk(void)
{
	full_disk_fail("/n2/", 1, FULL_DISK_ALWAYS);
}

static void deaf(void)
{
	parties_rule(&all, &(struct bus_rule){.to = "n2", .what = BUS_LOSE});
}

static void speechless(void)
{
	parties_rule(&all, &(struct bus_rule){.from = "n2", .answers = true, .what = BUS_LOSE});
}

static void far(void)
{
	parties_rule(&all, &(struct bus_rule){.to = "n2", .what = BUS_UNREACHABLE});
}

static void confused(void)
{
	parties_rule(&all, &(struct bus_rule){.from = "n2", .answers = true, .what = BUS_SPOIL});
}

static void stopped(void)
{
	party_stop(node(2));
}

/* n2 refuses a job for this reason, and n3 runs it. */
static void refuses_and_leads_on(const char *reason, const char *text)
{
	char refused[64];
	const json_t *first;

	place(&(struct party_submission){.memory_mb = 100});
	snprintf(refused, sizeof(refused), "n2:%s", reason);
	is_placed(&client, "n3", refused);
	first = json_array_get(json_object_get(client.answer, "refused"), 0);
	if (!strstr(json_string_value(json_object_get(first, "text")), text))
		fail_msg("%s: %s", reason, json_string_value(json_object_get(first, "text")));
	assert_int_equal(party_launch(&client, "", NULL), 0);
	parties_pass(&all, 100);
	assert_string_equal(party_journal(node(1), party_answer(&client, "job")), "running 0");
	parties_finish(&all, party_answer(&client, "job"), 0, 0);
	parties_pass(&all, 1000);
	assert_string_equal(party_journal(node(1), party_answer(&client, "job")), "exited 0");
}

/* Each refusal leads to the next candidate, and its reason is kept. */
static void test_each_refusal_leads_on(void **state)
{
	static const struct {
		void (*prepare)(void);
		const char *reason, *text;
	} cases[] = {
		{no_guests, "owner", "its owner lets no jobs in"},
		{not_him, "user", "user nobody is not let in (deny_users)"},
		{other_users, "user", "uid 65534 is below 65535 (min_uid)"},
		{less_memory, "memory", "50 MB available, the job needs 100 MB"},
		{busier, "overloaded", "disk requests/ms, home"},
		{one_job, "user-limit", "has 1 jobs there, the limit per user (user_jobs_max)"},
		{full_disk, "journal", "disk is full"},
		{deaf, "no-answer", "did not answer"},
		{speechless, "no-answer", "did not answer"},
		{far, "no-answer", "could not be asked: no way leads to node n2"},
		{confused, "no-answer", "gave an incomplete answer"},
		{stopped, "no-answer", "did not answer"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct settings set = node(2)->set;
		const struct iocom_vector load = node(2)->load;

		cases[i].prepare();
		refuses_and_leads_on(cases[i].reason, cases[i].text);
		node(2)->set = set;
		node(2)->load = load;
		parties_no_rules(&all);
		full_disk_mend();
		if (!node(2)->runs)
			party_start(node(2));
		parties_pass(&all, NO_CLIENT_MS);
		assert_int_equal(party_jobs(node(2)), 0);
	}
}

/* A job that no other node can run is run at home, which does not judge it. */
static void test_home_is_the_last(void **state)
{
	(void)state;
	place(&(struct party_submission){.cwd = "/no/such/directory"});
	is_placed(&client, "n1", "n2:path-missing n3:path-missing n4:path-missing");
	assert_string_equal(party_answer(&client, "address"), "");
	assert_int_equal(party_launch(&client, "", NULL), 0);
	place(&(struct party_submission){.uid = 54321});
	is_placed(&client, "n1", "n2:no-user n3:no-user n4:no-user");
	parties_golden(&all, "place_home");
}

/* However many nodes there are, home asks three of them and then itself, and home may refuse. */
static void test_three_hops(void **state)
{
	(void)state;
	party_client_end(&client);
	parties_end(&all);
	parties_begin(&all, 6);
	for (unsigned i = 2; i <= 6; i++)
		node(i)->set.accept_jobs = false;
	place(&(struct party_submission){0});
	is_placed(&client, "n1", "n2:owner n3:owner n4:owner");
	node(1)->set.user_jobs_max = 1;
	place(&(struct party_submission){0});
	is_told(&client, "node n1 cannot take the job: uid 65534 has 1 jobs there, the limit per "
			 "user (user_jobs_max)");
	assert_int_equal(party_jobs(node(1)), 1);
	parties_golden(&all, "place_hops");
}

/* A node that falls silent while another is asked is not asked any more. */
static void test_silent_meanwhile(void **state)
{
	(void)state;
	node(3)->cut = true;
	parties_pass(&all, 2500);
	parties_rule(&all, &(struct bus_rule){.to = "n2", .what = BUS_LOSE});
	place(&(struct party_submission){0});
	is_placed(&client, "n4", "n2:no-answer n3:silent");
	parties_golden(&all, "place_silent");
}

/*
 * The client only asks where a job would run: no node is asked for a place, and the journal has no
 * trace of it.
 */
static void test_only_a_question(void **state)
{
	(void)state;
	place(&(struct party_submission){.ask_only = true});
	is_placed(&client, "n2", "");
	assert_string_equal(party_answer(&client, "job"), "");
	assert_string_equal(party_journal(node(1), JOB_1), "");
	assert_int_equal(party_jobs(node(2)), 0);
}

static size_t charges(void)
{
	struct home_counts counts;

	home_count(node(1)->home, &counts);
	return counts.charges;
}

/* A node that was given a job counts as busier until its own vector shows the job. */
static void test_charged_until_told(void **state)
{
	(void)state;
	place(&(struct party_submission){.memory_mb = 600});
	is_placed(&client, "n2", "");
	assert_int_equal(charges(), 1);
	place(&(struct party_submission){.memory_mb = 600});
	is_placed(&client, "n3", "");
	assert_int_equal(charges(), 2);
	parties_pass(&all, 1000);
	place(&(struct party_submission){.ask_only = true});
	assert_int_equal(charges(), 0);
}

/* --- a node that the user named ------------------------------------------------------- */

static void test_named_node(void **state)
{
	(void)state;
	/* a load that should be avoided is no reason to refuse */
	node(3)->load.explicit_per_ms = 5;
	place(&(struct party_submission){.node = "n3", .memory_mb = 2000});
	is_placed(&client, "n3", "");
	node(3)->set.accept_jobs = false;
	place(&(struct party_submission){.node = "n3"});
	is_told(&client, "node n3 refused the job (owner): its owner lets no jobs in");
	parties_rule(&all, &(struct bus_rule){.to = "n3", .what = BUS_LOSE});
	place(&(struct party_submission){.node = "n3"});
	assert_int_equal(client.told, 1);
	assert_non_null(strstr(client.why, "node n3 did not answer"));
	place(&(struct party_submission){.node = "n1"});
	is_placed(&client, "n1", "");
	parties_golden(&all, "place_named");
}

static void test_named_node_is_not_there(void **state)
{
	(void)state;
	place(&(struct party_submission){.node = "n9"});
	is_told(&client, "node 'n9' is unknown here; known nodes: n1, n2, n3, n4");
	node(3)->cut = true;
	parties_pass(&all, 10000);
	place(&(struct party_submission){.node = "n3"});
	assert_non_null(strstr(client.why, "node 'n3' is silent for"));
	node(1)->mute = true;
	place(&(struct party_submission){.node = "n3"});
	assert_non_null(strstr(client.why, "munged does not answer on this machine"));
	assert_string_equal(party_journal(node(1), JOB_1), "");
}

/* A login whose directory is missing begins in "/", at the node that was chosen. */
static void test_home_directory(void **state)
{
	(void)state;
	place(&(struct party_submission){.cwd = "/no/such/home", .home_dir = true});
	is_placed(&client, "n2", "");
	assert_string_equal(party_answer(&client, "cwd"), "/");
	assert_int_equal(party_jobs(node(2)), 1);
	place(&(struct party_submission){.cwd = "/no/such/home", .home_dir = true, .node = "n3"});
	is_placed(&client, "n3", "");
	parties_golden(&all, "place_login");
}

/* --- late and twice ------------------------------------------------------------------- */

/* The job runs elsewhere when the answer comes, so the place that it got is given back. */
static void test_late_answer(void **state)
{
	(void)state;
	parties_rule(&all, &(struct bus_rule){.from = "n2",
					      .answers = true,
					      .what = BUS_DELAY,
					      .delay_ms = CONTROL_TIMEOUT_MS});
	place(&(struct party_submission){0});
	is_placed(&client, "n3", "n2:no-answer");
	assert_int_equal(party_launch(&client, "", NULL), 0);
	assert_int_equal(party_jobs(node(2)), 1);
	parties_no_rules(&all);
	parties_pass(&all, NO_CLIENT_MS);
	assert_int_equal(party_jobs(node(2)), 0);
	/* The report of n2 does not end the job that runs at n3. */
	assert_string_equal(party_journal(node(1), JOB_1), "running 0");
	parties_golden(&all, "place_late");
}

/* The question itself comes late: a place is given, and no client comes for it. */
static void test_late_question(void **state)
{
	(void)state;
	parties_rule(&all, &(struct bus_rule){.to = "n2",
					      .what = BUS_DELAY,
					      .delay_ms = 2 * CONTROL_TIMEOUT_MS});
	place(&(struct party_submission){0});
	is_placed(&client, "n3", "n2:no-answer");
	parties_pass(&all, ANSWER_MS);
	assert_int_equal(party_jobs(node(2)), 1);
	assert_int_equal(party_launch(&client, "", NULL), 0);
	parties_pass(&all, NO_CLIENT_MS);
	assert_int_equal(party_jobs(node(2)), 0);
	assert_string_equal(party_journal(node(1), JOB_1), "running 0");
	assert_int_equal(node(2)->counters.leases_expired, 1);
}

static void test_everything_twice(void **state)
{
	(void)state;
	/*
	 * A repeated message is obeyed once; another message that says the same finds the place
	 * already given.
	 */
	parties_rule(&all, &(struct bus_rule){.what = BUS_TWICE, .delay_ms = 5, .times = 1});
	parties_rule(&all, &(struct bus_rule){.what = BUS_TWICE, .answers = true, .times = 1});
	place(&(struct party_submission){0});
	is_placed(&client, "n2", "");
	assert_int_equal(party_launch(&client, "", NULL), 0);
	parties_rule(&all, &(struct bus_rule){.what = BUS_AGAIN, .delay_ms = 5, .times = 1});
	place(&(struct party_submission){0});
	is_placed(&client, "n2", "");
	assert_int_equal(party_jobs(node(2)), 2);
	/*
	 * If the message comes again while the job runs, the job gets no second place, and the
	 * first answer stands.
	 */
	parties_rule(&all, &(struct bus_rule){.what = BUS_AGAIN, .delay_ms = 1000, .times = 1});
	party_place(node(1), &client, &(struct party_submission){0});
	parties_pass(&all, 100);
	assert_int_equal(party_launch(&client, "", NULL), 0);
	parties_pass(&all, ANSWER_MS);
	is_placed(&client, "n2", "");
	assert_int_equal(party_jobs(node(2)), 3);
	assert_int_equal(party_launch(&client, "", NULL), -EACCES);
	parties_golden(&all, "place_twice");
}

/* --- clients that leave ----------------------------------------------------------------- */

#define CLIENT_LEFT "failed 3 its client left before the job had a place"

static void leaves_now(struct party *party)
{
	party->all->on_decided = NULL;
	home_forget(party->home, &client);
}

static void test_client_leaves_while_it_is_decided(void **state)
{
	(void)state;
	all.on_decided = leaves_now;
	place(&(struct party_submission){0});
	assert_int_equal(client.told, 0);
	assert_string_equal(party_journal(node(1), JOB_1), CLIENT_LEFT);
	assert_int_equal(party_jobs(node(2)), 0);
	/* A client that only asked leaves nothing in the journal. */
	all.on_decided = leaves_now;
	place(&(struct party_submission){.ask_only = true});
	assert_int_equal(client.told, 0);
	assert_string_equal(party_journal(node(1), JOB_2), "");
}

static void test_client_leaves_while_a_guest_is_asked(void **state)
{
	(void)state;
	for (int granted = 0; granted < 2; granted++) {
		node(2)->set.accept_jobs = granted;
		party_place(node(1), &client, &(struct party_submission){.restartable = true});
		party_leave(&client);
		parties_pass(&all, ANSWER_MS);
		assert_int_equal(client.told, 0);
		assert_string_equal(party_journal(node(1), granted ? JOB_2 : JOB_1), CLIENT_LEFT);
		assert_int_equal(party_jobs(node(3)), 0); /* no other node is asked for it */
	}
	parties_pass(&all, NO_CLIENT_MS);
	assert_int_equal(party_jobs(node(2)), 0);
	assert_string_equal(party_journal(node(1), JOB_2), CLIENT_LEFT);
	parties_golden(&all, "place_client_asked");
}

static void test_client_leaves_then_the_agent_stops(void **state)
{
	(void)state;
	party_place(node(1), &client, &(struct party_submission){0});
	party_place(node(1), &other, &(struct party_submission){0});
	party_leave(&client);
	party_stop(node(1));
	party_start(node(1));
	assert_int_equal(client.told, 0);
	assert_string_equal(party_journal(node(1), JOB_1), CLIENT_LEFT);
	/* The one that stayed is told, and its job's row says the same. */
	is_told(&other, "the agent is stopping");
	assert_string_equal(party_journal(node(1), JOB_2), "failed 3 the agent is stopping");
}

static void test_client_leaves_after_the_grant(void **state)
{
	(void)state;
	place(&(struct party_submission){0});
	is_placed(&client, "n2", "");
	party_leave(&client);
	parties_pass(&all, NO_CLIENT_MS);
	assert_int_equal(client.told, 1);
	assert_int_equal(party_jobs(node(2)), 0);
	assert_string_equal(party_journal(node(1), JOB_1),
			    "failed 3 the client did not come within 10 s of the lease");
	/* A client that comes after that finds no place. */
	assert_int_equal(party_launch(&client, "", NULL), -EACCES);
	parties_golden(&all, "place_client_granted");
}

/* --- agents that stop ------------------------------------------------------------------- */

static void test_home_stops_while_a_guest_is_asked(void **state)
{
	(void)state;
	party_place(node(1), &client, &(struct party_submission){0});
	party_stop(node(1));
	is_told(&client, "the agent is stopping");
	parties_pass(&all, 5000);
	assert_int_equal(party_jobs(node(2)), 1); /* the question was on its way */
	party_start(node(1));
	assert_string_equal(party_journal(node(1), JOB_1), "failed 3 the agent is stopping");
	parties_pass(&all, NO_CLIENT_MS);
	assert_int_equal(party_jobs(node(2)), 0);
	assert_string_equal(party_journal(node(1), JOB_1), "failed 3 the agent is stopping");
	parties_golden(&all, "place_home_stops");
}

static void test_guest_stops_while_it_is_asked(void **state)
{
	(void)state;
	party_place(node(1), &client, &(struct party_submission){0});
	party_stop(node(2));
	parties_pass(&all, ANSWER_MS);
	is_placed(&client, "n3", "n2:no-answer");
	/*
	 * The agent of the node ends after giving the place, so the new agent does not know of it.
	 */
	party_start(node(2));
	parties_pass(&all, 1000);
	place(&(struct party_submission){.node = "n2"});
	is_placed(&client, "n2", "");
	party_stop(node(2));
	party_start(node(2));
	assert_int_equal(party_launch(&client, "", NULL), -EACCES);
	parties_golden(&all, "place_guest_stops");
}

/* --- two homes --------------------------------------------------------------------------- */

static void test_two_homes_one_place(void **state)
{
	(void)state;
	node(4)->load = node(1)->load; /* n4 is as busy as n1, so that it sends its job away, too */
	strcpy(node(4)->load.name, "n4");
	strcpy(node(4)->load.address, node(4)->set.address);
	party_publish(node(4));
	node(2)->set.user_jobs_max = 1;
	party_place(node(1), &client, &(struct party_submission){0});
	party_place(node(4), &other, &(struct party_submission){0});
	parties_pass(&all, ANSWER_MS);
	is_placed(&client, "n2", "");
	is_placed(&other, "n3", "n2:user-limit");
	assert_int_equal(party_jobs(node(2)), 1);
	parties_golden(&all, "place_two_homes");
}

/* --- restartable jobs ---------------------------------------------------------------------- */

static const struct party_submission plain = {0}, at_home = {.node = "n1"};
static const struct party_submission restartable = {.restartable = true, .restarts = 3};

static int wait_ms(const struct party_client *c)
{
	return (int)json_integer_value(json_object_get(c->answer, "wait_ms"));
}

/* Asks for the next attempt until there is one, as iocom run does. */
static void place_again(const char *lost, const char *where)
{
	struct party_submission s = restartable;

	s.again = lost;
	s.node = where;
	for (int i = 0; i < 60; i++) {
		place(&s);
		if (!wait_ms(&client))
			return;
		parties_pass(&all, (unsigned)wait_ms(&client));
	}
	fail_msg("job %s is never given up", lost);
}

static void begin_restartable(const char *where)
{
	struct party_submission s = restartable;

	s.node = where;
	place(&s);
	is_placed(&client, where ? where : "n2", "");
	assert_int_equal(party_launch(&client, "one", NULL), 0);
	parties_pass(&all, 100);
	assert_true(shims_runs(JOB_1));
}

static void is_fenced(const char *lost, const char *next)
{
	struct journal_lease lease;

	assert_int_equal(journal_lease_get(node(1)->journal, lost, &lease, NULL), 0);
	assert_string_equal(lease.next, next);
}

/*
 * The node is cut off: the job ends there, and only then runs elsewhere. Its late messages are
 * ignored.
 */
static void test_cut_off_and_run_again(void **state)
{
	struct party_submission s = restartable;

	(void)state;
	begin_restartable(NULL);
	parties_pass(&all, 3 * LEASE_MS);
	assert_true(shims_runs(JOB_1)); /* the lease is renewed */
	node(2)->cut = true;
	place_again(JOB_1, NULL);
	is_placed(&client, "n3", "");
	assert_false(shims_runs(JOB_1));
	is_fenced(JOB_1, party_answer(&client, "job"));
	assert_int_equal(json_integer_value(json_object_get(client.answer, "attempt")), 2);
	assert_string_equal(party_answer(&client, "first"), JOB_1);
	assert_int_equal(party_launch(&client, "one", NULL), 0);
	node(2)->cut = false;
	parties_pass(&all, 2 * LEASE_MS);
	assert_true(shims_runs(JOB_2));
	/* An attempt that was given up once is not run again a second time. */
	s.again = JOB_1;
	place(&s);
	is_told(&client, "job " JOB_1 " was run again already, as " JOB_2);
	assert_true(shims_runs(JOB_2));
	assert_int_equal(shims_most(), 1);
	parties_golden(&all, "place_again");
}

/*
 * While the lease is renewed nobody gets another attempt of the job, however often a client asks.
 */
static void test_not_again_while_it_runs(void **state)
{
	struct party_submission s = restartable;

	(void)state;
	begin_restartable(NULL);
	s.again = JOB_1;
	for (int i = 0; i < 5; i++) {
		place(&s);
		assert_in_range(wait_ms(&client), 1, 1000);
	}
	s.uid = PARTIES_UID - 1;
	place(&s);
	is_told(&client, "no restartable job of yours named " JOB_1);
	assert_true(shims_runs(JOB_1));
}

/* The place was given for a lease that is over before the client has heard of it. */
static void test_lease_ends_before_the_answer(void **state)
{
	(void)state;
	node(1)->set.lease_s = 2;
	parties_rule(&all, &(struct bus_rule){.from = "n2",
					      .answers = true,
					      .what = BUS_DELAY,
					      .delay_ms = CONTROL_TIMEOUT_MS - 100,
					      .times = 1});
	party_place(node(1), &client, &restartable);
	parties_pass(&all, CONTROL_TIMEOUT_MS + 200);
	is_placed(&client, "n2", "");
	assert_int_equal(party_launch(&client, "one", NULL), -EACCES);
	place_again(JOB_1, "n3");
	is_placed(&client, "n3", "");
	assert_int_equal(party_launch(&client, "one", NULL), 0);
	parties_pass(&all, NO_CLIENT_MS);
	is_fenced(JOB_1, party_answer(&client, "job"));
	assert_true(shims_runs(party_answer(&client, "job")));
	parties_golden(&all, "place_lease_grant");
}

/*
 * Home renewed the lease, but the node hears of that too late: the job ends there and then runs
 * elsewhere.
 */
static void test_lease_ends_before_it_is_renewed(void **state)
{
	(void)state;
	node(1)->set.lease_s = 2;
	begin_restartable(NULL);
	parties_rule(&all, &(struct bus_rule){.from = "n1",
					      .type = PEER_RENEW,
					      .answers = true,
					      .what = BUS_DELAY,
					      .delay_ms = CONTROL_TIMEOUT_MS - 100});
	parties_pass(&all, 4000);
	assert_false(shims_runs(JOB_1));
	assert_true(node(1)->counters.leases_renewed > 0);
	place_again(JOB_1, "n3");
	is_placed(&client, "n3", "");
	is_fenced(JOB_1, party_answer(&client, "job"));
	parties_golden(&all, "place_lease_renewal");
}

/*
 * Two clients want the next attempt at once: one gets it, and the place of the other is not used.
 */
static void test_two_ask_for_the_next(void **state)
{
	struct party_submission s = restartable;

	(void)state;
	begin_restartable(NULL);
	node(2)->cut = true;
	parties_pass(&all, LEASE_MS + LEASE_MARGIN_MS(LEASE_MS) + 1000);
	assert_false(shims_runs(JOB_1));
	s.again = JOB_1;
	party_place(node(1), &client, &s);
	party_place(node(1), &other, &s);
	parties_pass(&all, ANSWER_MS);
	is_placed(&client, "n3", "");
	is_told(&other, "job " JOB_1 " was run again already");
	is_fenced(JOB_1, party_answer(&client, "job"));
	assert_int_equal(node(1)->counters.jobs_restarted, 1);
	parties_golden(&all, "place_again_twice");
}

/* The client wants only one node, which is silent, so the client waits for it. */
static void test_again_at_a_silent_node(void **state)
{
	struct party_submission s = restartable;

	(void)state;
	begin_restartable("n2");
	node(2)->cut = true;
	parties_pass(&all, 2 * (LEASE_MS + LEASE_MARGIN_MS(LEASE_MS)));
	s.again = JOB_1;
	s.node = "n2";
	place(&s);
	assert_int_equal(wait_ms(&client), 1000);
	assert_string_equal(party_answer(&client, "silent"), "n2");
	is_fenced(JOB_1, "");
	/* The node comes back, and is cut off again while it is asked. */
	node(2)->cut = false;
	parties_pass(&all, 1000);
	parties_rule(&all, &(struct bus_rule){.from = "n2", .answers = true, .what = BUS_LOSE});
	place(&s);
	assert_int_equal(client.told, 1);
	assert_int_equal(wait_ms(&client), 1000);
	is_fenced(JOB_1, "");
	parties_no_rules(&all);
	place(&s);
	is_placed(&client, "n2", "");
	is_fenced(JOB_1, party_answer(&client, "job"));
}

/* A new agent at home knows the lease, and waits for its end. */
static void test_home_starts_again(void **state)
{
	struct home_counts counts;

	(void)state;
	begin_restartable(NULL);
	party_stop(node(1));
	parties_pass(&all, 1000);
	party_start(node(1));
	home_count(node(1)->home, &counts);
	assert_int_equal(counts.leases, 1);
	parties_pass(&all, 2 * LEASE_MS);
	assert_true(shims_runs(JOB_1));
	node(2)->cut = true;
	place_again(JOB_1, NULL);
	is_placed(&client, "n3", "");
	assert_false(shims_runs(JOB_1));
	is_fenced(JOB_1, party_answer(&client, "job"));
}

/* A guest of an older build would let the job live without a lease, so it does not get the job. */
static void test_guest_without_leases(void **state)
{
	(void)state;
	parties_rule(&all, &(struct bus_rule){.from = "n2", .answers = true, .what = BUS_OLD});
	place(&restartable);
	is_placed(&client, "n3", "n2:no-lease");
	assert_int_equal(json_integer_value(json_object_get(client.answer, "lease_ms")), LEASE_MS);
	/* At home the job needs no lease. */
	place(&(struct party_submission){.restartable = true, .node = "n1"});
	is_placed(&client, "n1", "");
	assert_int_equal(json_integer_value(json_object_get(client.answer, "lease_ms")), 0);
}

/* --- a journal that fails -------------------------------------------------------------------- */

static size_t leases(void)
{
	struct home_counts counts;

	home_count(node(1)->home, &counts);
	return counts.leases;
}

/*
 * Checks what must hold after a submission at n1, whatever failed meanwhile. HELD: how many leases
 * there were before.
 */
static void is_whole(const struct party_client *c, const char *lost, size_t held)
{
	const char *job = party_answer(c, "job");
	struct journal_lease lease;

	assert_int_equal(c->told, 1);
	if (!c->answer) {
		assert_string_not_equal(c->why, "");
		assert_int_equal(leases(), held);
		return;
	}
	assert_string_equal(party_journal(node(1), job), "starting 0");
	if (lost)
		is_fenced(lost, job);
	if (party_answer(c, "first")[0])
		assert_int_equal(journal_lease_get(node(1)->journal, job, &lease, NULL), 0);
}

static unsigned not_over(struct party *party)
{
	unsigned n = 0;
	char job[64];

	for (unsigned i = 1; i < WRITES_MAX + 2; i++) {
		const char *how;

		snprintf(job, sizeof(job), "n1-10101010-%u", i);
		how = party_journal(party, job);
		n += !strncmp(how, "starting", 8) || !strncmp(how, "running", 7);
	}
	return n;
}

/*
 * Submits S repeatedly, each time with another one of its writes failing, until all have failed
 * once. Returns how many there were.
 */
static unsigned fail_each_write(const struct party_submission *s, bool for_good)
{
	for (unsigned nth = 1; nth < WRITES_MAX; nth++) {
		size_t held = leases();
		bool over;

		full_disk_fail("/n1/", nth, for_good ? FULL_DISK_ALWAYS : 1);
		party_place(node(1), &client, s);
		parties_pass(&all, 100);
		over = !full_disk_failed();
		full_disk_mend();
		is_whole(&client, NULL, held);
		if (!over)
			continue;
		assert_non_null(client.answer);
		return nth - 1;
	}
	fail_msg("there is no end of writes");
	return 0;
}

static void test_each_write_of_a_submission_fails(void **state)
{
	(void)state;
	all.quiet = true;
	for (int for_good = 0; for_good < 2; for_good++) {
		assert_in_range(fail_each_write(&plain, for_good), 2, WRITES_MAX);
		assert_in_range(fail_each_write(&at_home, for_good), 2, WRITES_MAX);
		assert_in_range(fail_each_write(&restartable, for_good), 3, WRITES_MAX);
	}
	assert_true(node(1)->counters.journal_failures > 0);
	/* No client came for the job that got a place. */
	parties_pass(&all, NO_CLIENT_MS);
	for (unsigned i = 1; i <= all.count; i++)
		assert_int_equal(party_jobs(node(i)), 0);
	/* Rows that could not be ended at once are ended after some time. */
	parties_pass(&all, 125000);
	party_prune(node(1));
	assert_int_equal(not_over(node(1)), 0);
}

/*
 * Runs a job again that was lost at n2, while the NTH write fails.  Returns true if there is no
 * such write.
 */
static bool fail_next_attempt(unsigned nth)
{
	struct party_submission s = restartable;
	char lost[SPEC_JOB_MAX], class_name[32];
	bool over;

	place(&restartable);
	is_placed(&client, "n2", "");
	snprintf(lost, sizeof(lost), "%s", party_answer(&client, "job"));
	snprintf(class_name, sizeof(class_name), "one-%u", nth);
	assert_int_equal(party_launch(&client, class_name, NULL), 0);
	node(2)->cut = true;
	parties_pass(&all, LEASE_MS + LEASE_MARGIN_MS(LEASE_MS) + 1000);
	s.again = lost;
	full_disk_fail("/n1/", nth, 1);
	party_place(node(1), &client, &s);
	parties_pass(&all, 100);
	over = !full_disk_failed();
	full_disk_mend();
	is_whole(&client, lost, 0);
	assert_true(client.answer || !over);
	/* The job may be lost but never runs twice. A client without an answer may ask again. */
	if (!client.answer)
		place(&s);
	if (client.answer)
		assert_int_equal(party_launch(&client, class_name, NULL), 0);
	node(2)->cut = false;
	parties_pass(&all, LEASE_MS);
	parties_finish(&all, party_answer(&client, "job"), 0, 0);
	parties_pass(&all, NO_CLIENT_MS);
	return over;
}

static void test_each_write_of_an_attempt_fails(void **state)
{
	unsigned nth = 1;

	(void)state;
	all.quiet = true;
	while (!fail_next_attempt(nth))
		assert_in_range(++nth, 1, WRITES_MAX);
	assert_in_range(nth, 5, WRITES_MAX); /* lease, job, fence, end of the lost attempt, place */
	assert_int_equal(shims_most(), 1);
}

/* --- what the disk has ------------------------------------------------------------------- */

/* Submits a job at n1, whose disk is slow.  Returns whether the client has its answer. */
static bool told_at_once(const struct party_submission *submission)
{
	party_place(node(1), &client, submission);
	for (int i = 0; i < 100; i++)
		parties_pass(&all, 10);
	return client.told;
}

/* Only an answer that somebody else learns of waits. */
static void test_answer_waits_for_the_disk(void **state)
{
	struct slow_disk disk;

	(void)state;
	slow_disk_use(&disk, node(1)->journal);
	assert_true(told_at_once(&(struct party_submission){.node = "n2"}));
	is_placed(&client, "n2", "");
	assert_true(told_at_once(&(struct party_submission){.node = "n1"}));
	/* The guest of this very node waits instead: one sync has both rows. */
	assert_true(told_at_once(&(struct party_submission){.node = "n1", .detach = true}));
	slow_disk_flush(&disk); /* reports that are sent again wait, too */

	assert_false(told_at_once(&(struct party_submission){.node = "n2", .detach = true}));
	slow_disk_flush(&disk);
	is_placed(&client, "n2", "");
	assert_false(told_at_once(&(struct party_submission){.node = "n1", .named = true}));
	slow_disk_flush(&disk);
	is_placed(&client, "n1", "");
}

static void test_disk_fails(void **state)
{
	struct slow_disk disk;

	(void)state;
	slow_disk_use(&disk, node(1)->journal);
	assert_false(told_at_once(&(struct party_submission){.node = "n2", .detach = true}));
	slow_disk_end(&disk, -EIO);
	is_told(&client,
		"node n1 cannot write to its disk that it placed the job: Input/output error");
	parties_pass(&all, NO_CLIENT_MS); /* nobody comes to the place that n2 gave */
}

static void test_client_leaves_a_slow_disk(void **state)
{
	struct slow_disk disk;

	(void)state;
	slow_disk_use(&disk, node(1)->journal);
	assert_false(told_at_once(&(struct party_submission){.node = "n2", .detach = true}));
	party_leave(&client);
	slow_disk_flush(&disk);
	assert_int_equal(client.told, 0);
	parties_pass(&all, NO_CLIENT_MS);
	/* One that leaves, and whose agent stops before the disk answers. */
	assert_false(told_at_once(&(struct party_submission){.node = "n2", .detach = true}));
	party_leave(&client);
}

int main(void)
{
#define PLACE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		PLACE(test_answer_waits_for_the_disk),
		PLACE(test_disk_fails),
		PLACE(test_client_leaves_a_slow_disk),
		PLACE(test_each_refusal_leads_on),
		PLACE(test_home_is_the_last),
		PLACE(test_three_hops),
		PLACE(test_silent_meanwhile),
		PLACE(test_only_a_question),
		PLACE(test_charged_until_told),
		PLACE(test_named_node),
		PLACE(test_named_node_is_not_there),
		PLACE(test_home_directory),
		PLACE(test_late_answer),
		PLACE(test_late_question),
		PLACE(test_everything_twice),
		PLACE(test_client_leaves_while_it_is_decided),
		PLACE(test_client_leaves_while_a_guest_is_asked),
		PLACE(test_client_leaves_then_the_agent_stops),
		PLACE(test_client_leaves_after_the_grant),
		PLACE(test_home_stops_while_a_guest_is_asked),
		PLACE(test_guest_stops_while_it_is_asked),
		PLACE(test_two_homes_one_place),
		PLACE(test_cut_off_and_run_again),
		PLACE(test_not_again_while_it_runs),
		PLACE(test_lease_ends_before_the_answer),
		PLACE(test_lease_ends_before_it_is_renewed),
		PLACE(test_two_ask_for_the_next),
		PLACE(test_again_at_a_silent_node),
		PLACE(test_home_starts_again),
		PLACE(test_guest_without_leases),
		PLACE(test_each_write_of_a_submission_fails),
		PLACE(test_each_write_of_an_attempt_fails),
	};

	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
