/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Moves of jobs at their home: each question to the two nodes and each answer in turn, what is
 * refused, who is told what, and the one decision.  The nodes are played, in virtual time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/home/home_leases.h"
#include "agent/home/home_move.h"
#include "agent/home/home_own.h"
#include "tests/unit/placement_fixture.h"
#include "user/clock.h"

#define USER 1000
#define JOB  "n1-0-1"
#define SEEN 16

static struct settings set = {
	.name = "n1", .address = "10.0.0.1", .port = 7700, .policy = "nlb", .lease_s = 30};
static struct logger log_ = {.level = LOG_L_ERROR};
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters, .set = &set};
static struct matrix matrix;
static struct skews skews;
static struct journal *journal;
static struct profile_store *profiles;
static struct home *home;
static struct iocom_err err;
static char dir[] = "/tmp/iocom-test-home-move-XXXXXX", path[80], profile_path[80];

/* The question that waits for an answer, and deferred answers that were given. */
static struct {
	bool open;
	enum peer_type type;
	char node[IOCOM_NAME_MAX];
	uint8_t secret[SECRET_BYTES];
	uint32_t lease_ms;
	bool renews;
	peers_answered answered;
	void *arg;
} question;
static struct {
	uint64_t ticket;
	struct peer_answer answer;
} given[SEEN];
static unsigned ngiven, nasked;

/* What whoever asked for the move has heard. */
static struct {
	unsigned times;
	bool moves;
	uint64_t number;
	char why[400];
} heard;

static void own_vector(void *arg, struct iocom_vector *own)
{
	(void)arg;
	*own = fixture_vector("n1", 3);
}

static int ask(void *arg, const char *node, const char *address, uint16_t port,
	       const struct peer_request *request, peers_answered answered, void *answered_arg,
	       struct iocom_err *e)
{
	(void)arg;
	(void)address;
	(void)port;
	(void)e;
	assert_false(question.open);
	question.open = true;
	nasked++;
	question.type = request->type;
	question.answered = answered;
	question.arg = answered_arg;
	snprintf(question.node, sizeof(question.node), "%s", node);
	if (request->type == PEER_ADMIT) {
		memcpy(question.secret, request->order->secret, sizeof(question.secret));
		question.lease_ms = request->order->lease_ms;
		question.renews = request->order->renews;
	}
	assert_string_equal(request->job, JOB);
	return 0;
}

static void answer_later(void *arg, uint64_t ticket, enum peer_type type,
			 const struct peer_answer *answer)
{
	(void)arg;
	(void)type;
	assert_true(ngiven < SEEN);
	given[ngiven].ticket = ticket;
	given[ngiven++].answer = *answer;
}

static void answer(int rc, const struct peer_answer *a, const char *why)
{
	peers_answered answered = question.answered;

	assert_true(question.open);
	question.open = false;
	answered(question.arg, rc, a, why);
}

static void told(void *arg, const struct journal_move *move, const char *why)
{
	(void)arg;
	heard.times++;
	heard.moves = move != NULL;
	heard.number = move ? move->number : 0;
	snprintf(heard.why, sizeof(heard.why), "%s", why);
}

static int setup(void **state)
{
	const struct home_config config = {
		.base = &base,
		.journal = NULL,
		.matrix = &matrix,
		.skews = &skews,
		.ports = {.own_vector = own_vector, .ask = ask, .answer = answer_later}};
	struct home_config with = config;
	const struct journal_job row = {.job = JOB,
					.uid = USER,
					.class_name = "",
					.command = "it",
					.policy = "iocm-pm",
					.node = "",
					.submit_ns = 5};
	struct placement p;

	(void)state;
	unlink(path);
	unlink(profile_path);
	counters = (struct counters){0};
	memset(&heard, 0, sizeof(heard));
	question.open = false;
	ngiven = nasked = 0;
	if (loop_new_virtual(&base.loop, 3600 * CLOCK_NS_PER_S, clock_real_ns(), NULL) ||
	    journal_open(&journal, path, &err) || profile_open(&profiles, profile_path, &err))
		return -1;
	placement_init(&p);
	fixture_nodes(&p, &matrix, 4, 1);
	placement_fini(&p);
	with.journal = journal;
	with.profiles = profiles;
	if (home_new(&home, &with, NULL) || home_load(home, &err))
		return -1;
	if (journal_submit(journal, &row, &err) ||
	    journal_placed(journal, JOB, "n2", "{}", &(struct journal_expectation){0}, &err))
		return -1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	home_free(home);
	matrix_fini(&matrix);
	journal_close(journal);
	profile_close(profiles);
	loop_free(base.loop);
	return 0;
}

/* --- the nodes' answers --------------------------------------------------------------------------
 */

/* The source: it may move.  What it says of a lease only home knows. */
static void movable(const char *policy)
{
	struct job_order order = {
		.home = "n1", .uid = USER, .cwd = "/", .migratable = true, .lease_ms = 9};
	msgpack_sbuffer packed;
	struct peer_answer a = {.ok = true};

	assert_int_equal(question.type, PEER_MOVABLE);
	assert_string_equal(question.node, "n2");
	strcpy(order.job, JOB);
	snprintf(order.policy, sizeof(order.policy), "%s", policy);
	msgpack_sbuffer_init(&packed);
	job_order_pack(&order, &packed);
	a.order.packed = packed.data;
	a.order.length = packed.size;
	answer(0, &a, "");
	msgpack_sbuffer_destroy(&packed);
}

static void admits(const char *node, bool granted)
{
	struct peer_answer a = {
		.grant = {.granted = granted, .reason = "memory", .text = "is full"}};

	assert_int_equal(question.type, PEER_ADMIT);
	assert_string_equal(question.node, node);
	answer(0, &a, "");
}

static void begins(void)
{
	assert_int_equal(question.type, PEER_MOVE);
	assert_string_equal(question.node, "n2");
	answer(0, &(struct peer_answer){.ok = true}, "");
}

static void asks(const char *node)
{
	assert_int_equal(home_move(home, USER, JOB, node, told, NULL, &err), 0);
}

/* One of the nodes holds it, with a question that may wait as TICKET. */
static enum peer_decision held(const char *from, uint64_t ticket)
{
	struct peer_request r = {
		.type = PEER_HELD,
		.held = {.number = 1, .there = strcmp(from, "n2") != 0, .bytes = 5}};
	struct peer_answer a = {0};
	int rc;

	strcpy(r.job, JOB);
	strcpy(r.from, from);
	rc = home_on_held(home, &r, ticket, &a);
	if (rc == PEERS_LATER)
		return PEER_WAIT;
	assert_int_equal(rc, 0);
	return a.ok ? a.decision : PEER_DECISIONS;
}

static void pass_ms(unsigned ms)
{
	while (ms > 0) {
		loop_advance(base.loop, 1000 * CLOCK_NS_PER_MS);
		home_move_chores(home);
		ms -= ms < 1000 ? ms : 1000;
	}
}

static const struct journal_move *the_move(void)
{
	static struct journal_move move;

	assert_int_equal(journal_move_get(journal, JOB, 0, &move, &err), 0);
	return &move;
}

static void to_both_held(const char *node)
{
	asks(node);
	movable("iocm-pm");
	admits(node, true);
	begins();
	assert_int_equal(held("n2", 11), PEER_WAIT);
	assert_int_equal(held(node, 12), PEER_WAIT);
	pass_ms(100);
}

/* --- the way of a move ---------------------------------------------------------------------------
 */

static void test_moves(void **state)
{
	(void)state;
	to_both_held("n3");
	assert_true(heard.times == 1 && heard.moves && heard.number == 1);
	assert_string_equal(the_move()->state, "resumed");
	assert_int_equal(the_move()->bytes, 5);
	assert_string_equal(the_move()->cause, "");
	assert_true(!question.renews && !question.lease_ms);
	/* The target goes when the disk has that, and the source leaves when it runs there. */
	assert_int_equal(ngiven, 1);
	assert_true(given[0].ticket == 12 && given[0].answer.decision == PEER_GO);
	home_move_started(home, JOB, "n3");
	assert_int_equal(ngiven, 2);
	assert_true(given[1].ticket == 11 && given[1].answer.decision == PEER_LEAVE);
	assert_int_equal(home_moves_count(home), 0);
	assert_int_equal(held("n2", 0), PEER_LEAVE); /* whoever asks again hears the same */
	assert_int_equal(held("n3", 0), PEER_GO);
	assert_int_equal(held("n4", 0), PEER_DECISIONS); /* it is none of the two */
	assert_int_equal(counters.controls_refused, 1);
}

static void refused(const char *why)
{
	assert_true(heard.times == 1 && !heard.moves);
	assert_non_null(strstr(heard.why, why));
	assert_int_equal(home_moves_count(home), 0);
	assert_false(question.open);
}

static void test_may_not(void **state)
{
	struct peer_answer a = {.ok = false, .text = "it has a socket"};

	(void)state;
	asks("n3");
	answer(0, &a, "");
	refused("it has a socket");
	assert_int_equal(journal_move_get(journal, JOB, 0, &(struct journal_move){0}, &err),
			 -ENOENT);
}

static void test_source_silent(void **state)
{
	(void)state;
	asks("n3");
	answer(-ETIMEDOUT, NULL, "no answer");
	refused("node n2, where it runs, does not answer");
}

static void test_target_refuses(void **state)
{
	(void)state;
	asks("n3");
	movable("iocm-pm");
	assert_true(heard.times == 1 && heard.moves); /* it has begun: the journal has it */
	admits("n3", false);
	assert_string_equal(the_move()->state, "aborted");
	assert_non_null(strstr(the_move()->text, "node n3 cannot take it: is full"));
	pass_ms(1000);
	assert_int_equal(home_moves_count(home), 0);
	assert_int_equal(held("n2", 0), PEER_STAY);
}

/* Nobody named a node: the policy's order, without the one where it is; who refuses is passed over.
 */
static void test_home_chooses(void **state)
{
	char first[IOCOM_NAME_MAX];
	uint8_t secret[SECRET_BYTES];

	(void)state;
	asks("");
	movable("cpu-re");
	assert_int_equal(question.type, PEER_ADMIT);
	memcpy(first, question.node, sizeof(first));
	memcpy(secret, question.secret, sizeof(secret));
	assert_string_not_equal(first, "n2");
	assert_string_equal(the_move()->target, first);
	admits(first, false);
	assert_int_equal(question.type, PEER_ADMIT);
	assert_string_not_equal(question.node, "n2");
	assert_string_not_equal(question.node, first);
	assert_memory_not_equal(secret, question.secret, sizeof(secret));
	assert_string_equal(the_move()->target, question.node);
	assert_string_equal(the_move()->state, "asked");
	memcpy(first, question.node, sizeof(first));
	admits(first, true);
	begins();
	assert_int_equal(held("n2", 11), PEER_WAIT);
	assert_int_equal(held(first, 12), PEER_WAIT);
	assert_string_equal(the_move()->state, "resumed");
}

/* All that are tried refuse: the job stays, and the last reason is kept. */
static void test_nobody_takes_it(void **state)
{
	unsigned tried = 0;

	(void)state;
	asks("");
	movable("node"); /* its user had named one: the node's own policy chooses */
	while (question.open && tried < 10) {
		char node[IOCOM_NAME_MAX];

		memcpy(node, question.node, sizeof(node));
		admits(node, false);
		tried++;
	}
	assert_true(tried >= 1 && tried <= 3);
	assert_string_equal(the_move()->state, "aborted");
	assert_non_null(strstr(the_move()->text, "is full"));
}

static void test_checks(void **state)
{
	(void)state;
	assert_int_equal(home_move(home, USER + 1, JOB, "n3", told, NULL, &err), -EPERM);
	assert_non_null(strstr(err.text, "no job of yours"));
	assert_int_equal(home_move(home, USER, "n1-0-9", "n3", told, NULL, &err), -ENOENT);
	assert_int_equal(home_move(home, USER, JOB, "n2", told, NULL, &err), -EEXIST);
	assert_int_equal(nasked, 0);
	assert_int_equal(home_move(home, 0, JOB, "n3", told, NULL, &err), 0); /* root may */
	assert_int_equal(home_move(home, USER, JOB, "n4", told, NULL, &err), -EALREADY);
	assert_int_equal(heard.times, 0);
}

/* --- ends and silence in between
 * ------------------------------------------------------------------- */

/* The answer to a question about a job that has ended meanwhile finds its move, which is over. */
static void test_ends_while_a_node_is_asked(void **state)
{
	(void)state;
	asks("n3");
	movable("iocm-pm");
	home_move_ended(home, JOB);
	pass_ms(1000);
	assert_string_equal(the_move()->state, "aborted");
	assert_int_equal(home_moves_count(home), 1); /* kept for the answer */
	admits("n3", true);
	assert_int_equal(home_moves_count(home), 0);
	assert_false(question.open);
}

static void test_ends_before_it_is_asked_for(void **state)
{
	(void)state;
	asks("n3");
	home_move_ended(home, JOB);
	assert_true(heard.times == 1 && !heard.moves);
	assert_non_null(strstr(heard.why, "has ended"));
	answer(-ETIMEDOUT, NULL, "no answer");
	assert_int_equal(home_moves_count(home), 0);
	assert_int_equal(heard.times, 1);
}

static void test_caller_leaves(void **state)
{
	(void)state;
	assert_int_equal(home_move(home, USER, JOB, "n3", told, &heard, &err), 0);
	home_move_forget(home, &heard);
	movable("iocm-pm");
	assert_int_equal(heard.times, 0);
	assert_string_equal(the_move()->state, "asked");
}

static void test_target_never_holds(void **state)
{
	(void)state;
	asks("n3");
	movable("iocm-pm");
	admits("n3", true);
	begins();
	assert_int_equal(held("n2", 11), PEER_WAIT);
	pass_ms(9000);
	assert_string_equal(the_move()->state, "asked");
	pass_ms(3000);
	assert_string_equal(the_move()->state, "aborted");
	assert_non_null(strstr(the_move()->text, "node n3 does not say that it has it"));
	assert_true(the_move()->frozen_ms >= 10000); /* it stood still until that was decided */
	assert_true(ngiven == 1 && given[0].answer.decision == PEER_STAY);
}

/* Whether the source has begun is not known: it is asked, and lets go of no job that is on its way.
 */
static void test_source_has_not_begun(void **state)
{
	(void)state;
	asks("n3");
	movable("iocm-pm");
	admits("n3", true);
	answer(-ETIMEDOUT, NULL, "no answer"); /* PEER_MOVE */
	assert_string_equal(the_move()->state, "asked");
	pass_ms(61000);
	assert_int_equal(question.type, PEER_MOVABLE);
	movable("iocm-pm");
	assert_string_equal(the_move()->state, "aborted");
	assert_non_null(strstr(the_move()->text, "did not begin"));
}

static void test_source_failed(void **state)
{
	struct peer_request r = {.type = PEER_HELD,
				 .job = JOB,
				 .from = "n2",
				 .held = {.number = 1, .failed = true, .text = "criu said no"}};
	struct peer_answer a = {0};

	(void)state;
	asks("n3");
	movable("iocm-pm");
	admits("n3", true);
	begins();
	assert_int_equal(home_on_held(home, &r, 11, &a), PEERS_LATER);
	pass_ms(1000);
	assert_string_equal(the_move()->state, "aborted");
	assert_string_equal(the_move()->text, "criu said no");
	assert_true(ngiven >= 1 && given[0].answer.decision == PEER_STAY);
	assert_int_equal(held("n3", 0), PEER_ABORT);
}

/* It was to go on there and never ran: it goes on where it was, unless that has left. */
static void test_target_dies_before_it_runs(void **state)
{
	(void)state;
	to_both_held("n3");
	assert_true(home_move_failed_there(home, JOB, "n3", true, "its supervisor died"));
	pass_ms(1000);
	assert_string_equal(the_move()->state, "aborted");
	assert_int_equal(held("n2", 0), PEER_STAY);
}

static void test_target_dies_after_it_ran(void **state)
{
	(void)state;
	to_both_held("n3");
	home_move_started(home, JOB, "n3");
	assert_false(home_move_failed_there(home, JOB, "n3", true, "its supervisor died"));
	assert_string_equal(the_move()->state, "resumed");
	assert_int_equal(held("n2", 0), PEER_LEAVE);
}

static void test_source_loses_it_while_the_target_holds_it(void **state)
{
	(void)state;
	asks("n3");
	movable("iocm-pm");
	admits("n3", true);
	begins();
	assert_false(home_move_saves(home, JOB, true)); /* nobody has it */
	assert_int_equal(held("n3", 12), PEER_WAIT);
	assert_false(home_move_saves(home, JOB, false)); /* it ended, and is not lost */
	assert_true(home_move_saves(home, JOB, true));
	pass_ms(1000);
	assert_string_equal(the_move()->state, "resumed");
}

/* --- a job with a lease
 * ----------------------------------------------------------------------------
 */

/* The job is restartable, and its shim at n2 renews its lease with SECRET. */
static void has_lease(uint8_t secret[SECRET_BYTES])
{
	struct job_order order = {.uid = USER, .lease_ms = 30000, .renews = true};

	strcpy(order.job, JOB);
	secret_new(secret);
	memcpy(order.secret, secret, SECRET_BYTES);
	assert_int_equal(journal_lease_begin(journal, JOB, JOB, 1, 3, 30000, secret, &err), 0);
	assert_int_equal(lease_placed(home, &order), 0);
}

/* Returns whether a shim with SECRET, in its question NUMBER, has the lease renewed. */
static bool renews(const uint8_t secret[SECRET_BYTES], uint64_t number)
{
	uint8_t key[SECRET_KEY], ask_[RENEWAL_ASK_MAX], got[RENEWAL_ANSWER];
	bool renewed = false;
	size_t n;

	secret_derive(key, secret, SECRET_RENEWAL, JOB, "");
	n = renewal_ask_pack(ask_, key, JOB, number);
	if (home_renew(home, ask_, (uint32_t)n, got, &err))
		return false;
	assert_int_equal(renewal_answer_open(key, JOB, number, got, sizeof(got), &renewed), 0);
	return renewed;
}

/* The same for the agent of a node. */
static bool agent_renews(const char *node)
{
	return lease_renew(home, node, JOB, &err) == 0;
}

static void lease_passes(unsigned s)
{
	for (unsigned i = 0; i < s; i++) {
		loop_advance(base.loop, CLOCK_NS_PER_S);
		lease_expire(home);
	}
}

static void test_lease_goes_along(void **state)
{
	uint8_t before[SECRET_BYTES];

	(void)state;
	has_lease(before);
	asks("n3");
	movable("iocm-pm");
	assert_true(question.renews && question.lease_ms == 30000);
	assert_memory_not_equal(question.secret, before, SECRET_BYTES);
	admits("n3", true);
	begins();
	/* Until it is decided it is the source's. */
	assert_true(renews(before, 7));
	assert_false(renews(question.secret, 1));
	assert_false(agent_renews("n3"));
	assert_int_equal(held("n2", 11), PEER_WAIT);
	assert_int_equal(held("n3", 12), PEER_WAIT);
	pass_ms(100);
	assert_false(renews(before, 8));
	assert_false(agent_renews("n2"));
	assert_true(agent_renews("n3"));
	assert_true(renews(question.secret, 1)); /* it counts its questions anew */
	assert_false(renews(question.secret, 1));
	home_move_started(home, JOB, "n3");
	lease_passes(29);
	assert_non_null(lease_find(home, JOB));
	lease_passes(10);
	assert_null(lease_find(home, JOB));
	assert_int_equal(counters.leases_lost, 1);
}

static void test_lease_ends_before_the_decision(void **state)
{
	uint8_t before[SECRET_BYTES];

	(void)state;
	has_lease(before);
	asks("n3");
	movable("iocm-pm");
	admits("n3", true);
	begins();
	lease_passes(29);
	assert_non_null(lease_find(home, JOB));
	lease_passes(10);
	assert_null(lease_find(home, JOB));
	pass_ms(1000);
	assert_string_equal(the_move()->state, "aborted");
	assert_string_equal(the_move()->text, "its lease is over");
	assert_int_equal(held("n3", 12), PEER_ABORT);
}

/* The source is lost with its lease, and the target has it whole. */
static void test_lease_of_a_lost_source(void **state)
{
	uint8_t before[SECRET_BYTES];

	(void)state;
	has_lease(before);
	asks("n3");
	movable("iocm-pm");
	admits("n3", true);
	begins();
	assert_int_equal(held("n3", 12), PEER_WAIT);
	lease_passes(40);
	pass_ms(1000);
	assert_string_equal(the_move()->state, "resumed");
	assert_true(agent_renews("n3"));
	assert_int_equal(counters.leases_lost, 0);
}

static void test_lease_comes_back(void **state)
{
	uint8_t before[SECRET_BYTES];

	(void)state;
	has_lease(before);
	to_both_held("n3");
	assert_true(home_move_failed_there(home, JOB, "n3", true, "its supervisor died"));
	pass_ms(1000);
	assert_string_equal(the_move()->state, "aborted");
	assert_true(renews(before, 9));
	assert_true(agent_renews("n2"));
	assert_false(agent_renews("n3"));
}

/* It may be running again elsewhere: then the source must not let go of what it holds. */
static void test_lease_was_lost(void **state)
{
	uint8_t before[SECRET_BYTES];

	(void)state;
	has_lease(before);
	to_both_held("n3");
	lease_passes(40);
	assert_null(lease_find(home, JOB));
	assert_int_equal(ngiven, 2);
	assert_true(given[1].ticket == 11 && given[1].answer.decision == PEER_LEAVE);
	(void)home_move_failed_there(home, JOB, "n3", true, "its supervisor died");
	assert_string_equal(the_move()->state, "resumed");
	assert_int_equal(held("n2", 0), PEER_LEAVE);
}

static void test_lease_ends_at_home(void **state)
{
	uint8_t before[SECRET_BYTES];

	(void)state;
	has_lease(before);
	asks("n1");
	movable("iocm-pm");
	assert_true(!question.renews && !question.lease_ms);
	admits("n1", true);
	begins();
	assert_int_equal(held("n2", 11), PEER_WAIT);
	assert_int_equal(held("n1", 12), PEER_WAIT);
	pass_ms(100);
	assert_null(lease_find(home, JOB));
	assert_false(renews(before, 8));
	assert_string_equal(err.text,
			    "renewal refused: it is not signed by the supervisor of job " JOB);
}

/* What this agent's predecessor told the target's shim it does not know: that agent renews. */
static void test_lease_after_a_restart(void **state)
{
	uint8_t before[SECRET_BYTES];

	(void)state;
	has_lease(before);
	asks("n3");
	movable("iocm-pm");
	admits("n3", true);
	begins();
	home_move_stop(home);
	assert_int_equal(held("n2", 11), PEER_WAIT);
	assert_int_equal(held("n3", 12), PEER_WAIT);
	pass_ms(100);
	assert_false(renews(before, 8));
	assert_false(renews(question.secret, 1));
	assert_true(agent_renews("n3"));
}

/* Another agent has taken this one's place: who asks is told by the journal. */
static void test_after_a_restart(void **state)
{
	(void)state;
	asks("n3");
	movable("iocm-pm");
	admits("n3", true);
	begins();
	home_move_stop(home);
	assert_int_equal(held("n2", 11), PEER_WAIT);
	assert_int_equal(held("n3", 12), PEER_WAIT);
	pass_ms(1000);
	assert_string_equal(the_move()->state, "resumed");
	assert_true(ngiven == 1 && given[0].ticket == 12 && given[0].answer.decision == PEER_GO);
}

/* --- a node wants it to leave
 * ------------------------------------------------------------------------ */

static int away(const char *from, const char *node, struct peer_answer *a)
{
	struct peer_request r = {
		.type = PEER_AWAY,
		.job = JOB,
		.away = {.cause = "iocm-pm", .here_ms = 9, .there_ms = 4, .cost_ms = 2}};

	strcpy(r.from, from);
	snprintf(r.away.node, sizeof(r.away.node), "%s", node);
	return home_on_away(home, &r, 21, a);
}

static void test_away(void **state)
{
	struct peer_answer a = {0};

	(void)state;
	assert_int_equal(away("n2", "n4", &a), PEERS_LATER);
	movable("iocm-pm");
	assert_int_equal(ngiven, 0); /* it may find no place yet */
	assert_string_equal(the_move()->cause, "iocm-pm");
	assert_true(the_move()->here_ms == 9 && the_move()->there_ms == 4 &&
		    the_move()->cost_ms == 2);
	admits("n4", true);
	assert_true(ngiven == 1 && given[0].ticket == 21 && given[0].answer.ok);
	begins();
}

/* All nodes refuse: whoever wants it to leave hears that, and asks no more for a while. */
static void test_away_finds_no_place(void **state)
{
	struct peer_answer a = {0};

	(void)state;
	assert_int_equal(away("n2", "n4", &a), PEERS_LATER);
	movable("iocm-pm");
	admits("n4", false);
	pass_ms(1000);
	assert_true(ngiven == 1 && !given[0].answer.ok);
	assert_non_null(strstr(given[0].answer.text, "is full"));
	assert_int_equal(away("n2", "n4", &a), 0);
	assert_non_null(strstr(a.text, "a moment ago"));
	pass_ms(11000);
	assert_int_equal(away("n2", "n4", &a), PEERS_LATER);
	question.open = false;
}

/* What a node says is checked before it gets anywhere. */
static void test_away_of_a_liar(void **state)
{
	struct peer_request r = {.type = PEER_AWAY,
				 .job = JOB,
				 .from = "n2",
				 .away = {"\033[2J", "iocm-pm", 9, 4, 2}};
	struct peer_answer a = {0};

	(void)state;
	assert_int_equal(home_on_away(home, &r, 21, &a), 0);
	assert_false(a.ok);
	strcpy(r.away.node, "n3");
	strcpy(r.away.cause, "\033[2J");
	assert_int_equal(home_on_away(home, &r, 21, &a), 0);
	assert_false(a.ok);
	assert_int_equal(nasked, 0);
}

/* A source that never lets go, and never says so, does not keep its place for ever. */
static void test_takes_too_long(void **state)
{
	(void)state;
	asks("n3");
	movable("iocm-pm");
	admits("n3", true);
	begins();
	for (int i = 0; i < 13; i++) {
		pass_ms(61000);
		if (question.open)
			answer(0, &(struct peer_answer){.text = "it is on its way already"}, "");
	}
	assert_string_equal(the_move()->state, "aborted");
	assert_int_equal(home_moves_count(home), 0);
}

static void test_away_refused(void **state)
{
	struct peer_answer a = {0};

	(void)state;
	assert_int_equal(away("n3", "n4", &a), 0); /* it runs at n2, whatever n3 says */
	assert_false(a.ok);
	assert_non_null(strstr(a.text, "does not run at node n3"));
	assert_int_equal(counters.controls_refused, 1);
	assert_int_equal(away("n2", "n2", &a), 0);
	assert_false(a.ok);
	assert_int_equal(away("n2", "n3", &a), PEERS_LATER);
	answer(0, &(struct peer_answer){.text = "it has a socket"}, "");
	assert_true(ngiven == 1 && !given[0].answer.ok);
	assert_string_equal(given[0].answer.text, "it has a socket");
	assert_int_equal(away("n2", "n3", &a), PEERS_LATER); /* until the agent stops */
	home_move_stop(home);
	assert_true(ngiven == 2 && !given[1].answer.ok);
	question.open = false;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_moves),
		TEST(test_may_not),
		TEST(test_source_silent),
		TEST(test_target_refuses),
		TEST(test_home_chooses),
		TEST(test_nobody_takes_it),
		TEST(test_checks),
		TEST(test_ends_while_a_node_is_asked),
		TEST(test_ends_before_it_is_asked_for),
		TEST(test_caller_leaves),
		TEST(test_target_never_holds),
		TEST(test_source_has_not_begun),
		TEST(test_source_failed),
		TEST(test_target_dies_before_it_runs),
		TEST(test_target_dies_after_it_ran),
		TEST(test_source_loses_it_while_the_target_holds_it),
		TEST(test_lease_goes_along),
		TEST(test_lease_ends_before_the_decision),
		TEST(test_lease_of_a_lost_source),
		TEST(test_lease_comes_back),
		TEST(test_lease_was_lost),
		TEST(test_lease_ends_at_home),
		TEST(test_lease_after_a_restart),
		TEST(test_after_a_restart),
		TEST(test_away),
		TEST(test_away_finds_no_place),
		TEST(test_away_of_a_liar),
		TEST(test_takes_too_long),
		TEST(test_away_refused),
	};
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/journal", dir);
	snprintf(profile_path, sizeof(profile_path), "%s/profiles", dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	unlink(profile_path);
	rmdir(dir);
	return rc;
}
