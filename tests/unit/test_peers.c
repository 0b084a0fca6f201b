/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Questions between agents, without a network: those of a node to itself, and messages of other
 * nodes that have been opened; each in a transaction of the journal, obeyed once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/cluster/peer_requests.h"
#include "agent/cluster/seal.h"
#include "agent/jobs/journal_sql.h"
#include "tests/lib/asks.h"
#include "tests/lib/logged.h"
#include "user/clock.h"
#include "user/pack.h"

#define JOB	   "here-0f-1"
#define OWN_TICKET (1ull << 63)

static struct settings set = {.name = "here"};
static struct logger log_;
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters, .set = &set, .boot_id = 7};
static struct journal *journal;
static struct peers peers;

/* The party that serves, played by the test. */
static struct {
	unsigned times;
	int rc;
	bool early;   /* the handler answers by peers_answer before it returns */
	bool commits; /* the handler ends the transaction, which is not its own */
	uint64_t ticket;
	struct peer_request request;
	struct peer_answer answer;
} party;

/* A party that asks, and the answer that it got. */
struct asker {
	unsigned times;
	int rc;
	struct peer_answer answer;
	char why[256];
	bool asks_again;
};

static int setup(void **state)
{
	(void)state;
	memset(&party, 0, sizeof(party));
	party.answer.ok = true;
	counters = (struct counters){0};
	if (loop_new_virtual(&base.loop, 3600 * CLOCK_NS_PER_S, 1700000000 * CLOCK_NS_PER_S,
			     NULL) ||
	    journal_open(&journal, ":memory:", NULL) || logged_begin(&log_))
		return -1;
	peers = (struct peers){0};
	return peers_start(&peers, &base, journal, NULL, NULL, NULL);
}

static int teardown(void **state)
{
	(void)state;
	logged_end();
	peers_stop(&peers);
	peers_free(&peers);
	journal_close(journal);
	loop_free(base.loop);
	return 0;
}

static void sql(const char *text)
{
	assert_int_equal(sqlite3_exec(journal->file.db, text, NULL, NULL, NULL), SQLITE_OK);
}

static int on_question(void *arg, const struct peer_request *r, uint64_t ticket,
		       struct peer_answer *answer)
{
	static const struct peer_answer early = {.ok = true, .text = "early"};

	assert_ptr_equal(arg, &party);
	party.times++;
	party.request = *r;
	party.ticket = ticket;
	*answer = party.answer;
	(void)journal_set_fact(journal, "handled", party.times);
	if (party.commits)
		assert_int_equal(journal_commit(journal, NULL), 0);
	if (party.early)
		peers_answer(&peers, ticket, r->type, &early);
	return party.rc;
}

static void serve(enum peer_type type)
{
	peers_serve(&peers, type, on_question, &party);
}

static int ask(struct asker *asker, struct iocom_err *err);

static void on_answer(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct asker *a = arg;

	a->times++;
	a->rc = rc;
	assert_int_equal(rc == 0, answer != NULL);
	if (answer)
		a->answer = *answer;
	snprintf(a->why, sizeof(a->why), "%s", why);
	if (a->asks_again) {
		a->asks_again = false;
		assert_int_equal(ask(a, NULL), 0);
	}
}

static int ask(struct asker *asker, struct iocom_err *err)
{
	const struct peer_request r = {
		.type = PEER_KILL, .from = "elsewhere", .job = JOB, .kill = {1000, 9}};

	return peers_ask(&peers, "here", "", 0, &r, on_answer, asker, err);
}

static void answer(uint64_t ticket, const char *text)
{
	struct peer_answer later = {.ok = true};

	snprintf(later.text, sizeof(later.text), "%s", text);
	peers_answer(&peers, ticket, PEER_KILL, &later);
}

/* --- a node asks itself ---------------------------------------------------------- */

static void test_at_once(void **state)
{
	struct asker a = {0};

	(void)state;
	serve(PEER_KILL);
	strcpy(party.answer.text, "done");
	assert_int_equal(ask(&a, NULL), 0);
	assert_int_equal(a.times, 1);
	assert_int_equal(a.rc, 0);
	assert_true(a.answer.ok);
	assert_string_equal(a.answer.text, "done");
	assert_null(peers.calls);
	assert_int_equal(party.times, 1);
	assert_string_equal(party.request.from, "here"); /* the asker's own claims do not count */
	assert_string_equal(party.request.job, JOB);
	assert_int_equal(party.request.kill.uid, 1000);
	assert_int_equal(party.request.kill.signal, 9);
	assert_true(party.ticket & OWN_TICKET);
	assert_true(journal_fact(journal, "handled") == 1);
	assert_true(sqlite3_get_autocommit(journal->file.db)); /* no transaction is left open */
}

/*
 * The party asks several questions at a time and gets the answers in another order; each answer
 * comes once.
 */
static void test_later(void **state)
{
	struct asker a = {0}, b = {0};
	uint64_t ticket_a;

	(void)state;
	serve(PEER_KILL);
	party.rc = PEERS_LATER;
	assert_int_equal(ask(&a, NULL), 0);
	ticket_a = party.ticket;
	assert_int_equal(ask(&b, NULL), 0);
	assert_true(party.ticket != ticket_a);
	assert_int_equal(a.times + b.times, 0);
	assert_true(sqlite3_get_autocommit(journal->file.db));
	answer(party.ticket, "of b");
	assert_int_equal(a.times, 0);
	assert_string_equal(b.answer.text, "of b");
	answer(ticket_a, "of a");
	assert_string_equal(a.answer.text, "of a");
	answer(ticket_a, "again");
	answer(OWN_TICKET | 99, "nobody's");
	assert_int_equal(a.times, 1);
	assert_int_equal(b.times, 1);
	assert_null(peers.calls);
}

/* An answer that is given before the handler returns waits for the transaction. */
static void test_early(void **state)
{
	struct asker a = {0};

	(void)state;
	serve(PEER_KILL);
	party.rc = PEERS_LATER;
	party.early = true;
	assert_int_equal(ask(&a, NULL), 0);
	assert_int_equal(a.times, 1);
	assert_string_equal(a.answer.text, "early");
	answer(party.ticket, "late");
	assert_int_equal(a.times, 1);
	assert_null(peers.calls);
}

static int no_commit(void *arg)
{
	(*(unsigned *)arg)++;
	return 1;
}

/* A question that is answered early gets no answer if the journal could not be written. */
static void test_early_and_unwritten(void **state)
{
	struct iocom_err err = {0};
	struct asker a = {0};
	unsigned tried = 0;

	(void)state;
	serve(PEER_KILL);
	party.rc = PEERS_LATER;
	party.early = true;
	sqlite3_commit_hook(journal->file.db, no_commit, &tried);
	assert_int_equal(ask(&a, &err), -EIO);
	assert_int_equal(tried, 1);
	assert_int_equal(a.times, 0);
	assert_null(peers.calls);
	answer(party.ticket, "late");
	assert_int_equal(a.times, 0);
}

static void test_unserved(void **state)
{
	struct iocom_err err = {0};
	struct asker a = {0};

	(void)state;
	assert_int_equal(ask(&a, &err), -ENOSYS);
	assert_string_equal(err.text, strerror(ENOSYS));
	assert_int_equal(a.times, 0);
	assert_null(peers.calls);
	assert_true(sqlite3_get_autocommit(journal->file.db));
}

static void test_handler_fails(void **state)
{
	struct iocom_err err = {0};
	struct asker a = {0};

	(void)state;
	serve(PEER_KILL);
	party.rc = -ENOMEM;
	assert_int_equal(ask(&a, &err), -ENOMEM);
	assert_string_equal(err.text, strerror(ENOMEM));
	assert_int_equal(a.times, 0);
	assert_int_equal(counters.journal_failures, 0);
	assert_null(peers.calls);
	/* what the handler wrote before its error stays */
	assert_true(journal_fact(journal, "handled") == 1);
	party.rc = 0;
	/* the next question works as if there had been no error */
	assert_int_equal(ask(&a, &err), 0);
	assert_int_equal(a.times, 1);
}

/* An answer may make its asker ask again: by then the first question is over. */
static void test_asks_again(void **state)
{
	struct asker a = {.asks_again = true};

	(void)state;
	serve(PEER_KILL);
	assert_int_equal(ask(&a, NULL), 0);
	assert_int_equal(a.times, 2);
	assert_int_equal(party.times, 2);
	party.rc = PEERS_LATER;
	a.asks_again = true;
	assert_int_equal(ask(&a, NULL), 0);
	answer(party.ticket, "first");
	assert_int_equal(a.times, 3);
	answer(party.ticket, "second");
	assert_int_equal(a.times, 4);
	assert_string_equal(a.answer.text, "second");
	assert_null(peers.calls);
}

static void test_another_node(void **state)
{
	const struct peer_request r = {.type = PEER_KILL, .job = JOB};
	struct iocom_err err = {0};
	struct asker a = {0};

	(void)state;
	serve(PEER_KILL);
	assert_int_equal(peers_ask(&peers, "there", "10.0.0.1", 7700, &r, on_answer, &a, &err),
			 -EHOSTUNREACH);
	assert_string_equal(err.text,
			    "this agent serves its own machine only, and node there is another");
	assert_int_equal(a.times + party.times, 0);
	assert_null(peers.calls);
}

/* --- the asker or the agent leaves ------------------------------------------------- */

static void test_forget(void **state)
{
	struct asker a = {0}, b = {0};
	uint64_t ticket_a;

	(void)state;
	serve(PEER_KILL);
	party.rc = PEERS_LATER;
	assert_int_equal(ask(&a, NULL), 0);
	ticket_a = party.ticket;
	assert_int_equal(ask(&b, NULL), 0);
	assert_int_equal(ask(&a, NULL), 0);
	peers_forget(&peers, &a);
	answer(ticket_a, "too late");
	answer(party.ticket, "too late");
	assert_int_equal(a.times, 0);
	assert_int_equal(b.times, 0);
	peers_stop(&peers);
	assert_int_equal(b.times, 1);
	assert_int_equal(a.times, 0);
}

static void test_stop(void **state)
{
	struct asker a = {0}, b = {0};

	(void)state;
	serve(PEER_KILL);
	party.rc = PEERS_LATER;
	assert_int_equal(ask(&a, NULL), 0);
	assert_int_equal(ask(&b, NULL), 0);
	peers_stop(&peers);
	assert_int_equal(a.times, 1);
	assert_int_equal(a.rc, -ECANCELED);
	assert_string_equal(a.why, "the agent is stopping");
	assert_int_equal(b.rc, -ECANCELED);
	assert_null(peers.calls);
	answer(party.ticket, "too late");
	assert_int_equal(b.times, 1);
}

/* --- a node asks itself, and the journal fails --------------------------------------- */

static void test_begin_fails(void **state)
{
	struct iocom_err err = {0};
	struct asker a = {0};

	(void)state;
	serve(PEER_KILL);
	sql("PRAGMA query_only=1");
	assert_int_equal(ask(&a, &err), -EIO);
	assert_string_equal(err.text, "cannot write the job journal : attempt to write a readonly "
				      "database");
	assert_int_equal(party.times, 0); /* the effects of the question could not be written */
	assert_int_equal(a.times, 0);
	assert_int_equal(counters.journal_failures, 1);
	assert_null(peers.calls);
	sql("PRAGMA query_only=0");
	assert_int_equal(ask(&a, &err), 0);
	assert_int_equal(a.times, 1);
}

static void test_commit_fails(void **state)
{
	struct iocom_err err = {0};
	struct asker a = {0};
	unsigned tried = 0;

	(void)state;
	serve(PEER_KILL);
	sqlite3_commit_hook(journal->file.db, no_commit, &tried);
	assert_int_equal(ask(&a, &err), -EIO);
	assert_non_null(strstr(err.text, "cannot write the job journal"));
	assert_int_equal(party.times, 1);
	assert_int_equal(a.times, 0);
	assert_int_equal(counters.journal_failures, 1);
	assert_null(peers.calls);
	sqlite3_commit_hook(journal->file.db, NULL, NULL);
	assert_true(journal_fact(journal, "handled") == 0);
	assert_true(sqlite3_get_autocommit(journal->file.db));
	assert_int_equal(ask(&a, &err), 0);
	assert_true(journal_fact(journal, "handled") == 2);
	assert_int_equal(counters.journal_failures, 1);
}

/* SQLite gave the transaction up in the middle, which only its end shows. */
static void test_given_up(void **state)
{
	struct iocom_err err = {0};
	struct asker a = {0};

	(void)state;
	serve(PEER_KILL);
	party.commits = true;
	assert_int_equal(ask(&a, &err), -EIO);
	assert_int_equal(a.times, 0);
	assert_int_equal(counters.journal_failures, 1);
	assert_null(peers.calls);
}

/* --- messages of other nodes ------------------------------------------------------------ */

static const struct peer_request killing = {.type = PEER_KILL, .job = JOB, .kill = {1000, 9}};
static const struct job_order order = {
	.job = "there-0f-1", .home = "there", .cwd = "/", .executable = "/bin/sh"};
static const struct peer_request admission = {
	.type = PEER_ADMIT, .job = "there-0f-1", .order = &order};

/* Returns the one answer that ANSWER holds, and empties ANSWER. */
static struct peer_answer answered(enum peer_type type, msgpack_sbuffer *out)
{
	struct peer_answer got;
	msgpack_unpacked map;

	assert_int_equal(unpack_map(&map, out->data, out->size), 0);
	assert_int_equal(peer_answer_unpack(&got, type, &map.data), 0);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_clear(out);
	return got;
}

static void test_message(void **state)
{
	struct peer_answer got;
	msgpack_sbuffer out;

	(void)state;
	serve(PEER_KILL);
	msgpack_sbuffer_init(&out);
	strcpy(party.answer.text, "done");
	assert_int_equal(shows(&peers, "there", 1, &killing, &out), 0);
	got = answered(PEER_KILL, &out);
	assert_true(got.ok);
	assert_string_equal(got.text, "done");
	assert_string_equal(party.request.from, "there");
	assert_int_equal(party.request.kill.signal, 9);
	assert_false(party.ticket & OWN_TICKET);
	assert_true(journal_fact(journal, "handled") == 1);
	party.rc = PEERS_LATER; /* the answer comes later, by peers_answer */
	assert_int_equal(shows(&peers, "there", 2, &killing, &out), 0);
	assert_int_equal(out.size, 0);
	peers_answer(&peers, party.ticket, PEER_KILL, &party.answer);
	assert_int_equal(counters.controls_refused, 0);
	msgpack_sbuffer_destroy(&out);
}

/* A message is obeyed once, by its number and its sender, even if another agent has taken over. */
static void test_shown_twice(void **state)
{
	msgpack_sbuffer out;

	(void)state;
	serve(PEER_KILL);
	msgpack_sbuffer_init(&out);
	assert_int_equal(shows(&peers, "there", 1, &killing, NULL), 0);
	assert_int_equal(shows(&peers, "there", 1, &killing, &out), -EALREADY);
	peers_free(&peers);
	assert_int_equal(peers_start(&peers, &base, journal, NULL, NULL, NULL), 0);
	serve(PEER_KILL);
	assert_int_equal(shows(&peers, "there", 1, &killing, &out), -EALREADY);
	assert_int_equal(out.size, 0);
	assert_int_equal(party.times, 1);
	assert_int_equal(counters.controls_refused, 2);
	assert_int_equal(counters.journal_failures, 0);
	assert_int_equal(logged("warning: refused a 'kill' message of node there: message 1 of "
				"node there was here before\n"),
			 2);
	assert_int_equal(shows(&peers, "elsewhere", 1, &killing, NULL), 0);
	assert_int_equal(shows(&peers, "there", 2, &killing, NULL), 0);
	assert_int_equal(party.times, 3);
	msgpack_sbuffer_destroy(&out);
}

/* A number is known for as long as its seal could be shown, and not longer. */
static void test_numbers_go(void **state)
{
	struct journal_rows rows;

	(void)state;
	serve(PEER_KILL);
	assert_int_equal(shows(&peers, "there", 1, &killing, NULL), 0);
	loop_advance(base.loop, 2 * SEAL_TTL_S * CLOCK_NS_PER_S);
	assert_int_equal(shows(&peers, "there", 2, &killing, NULL), 0);
	journal_rows(journal, &rows);
	assert_int_equal(rows.nonces, 2);
	assert_int_equal(shows(&peers, "there", 1, &killing, NULL), -EALREADY);
	loop_advance(base.loop, CLOCK_NS_PER_S);
	assert_int_equal(shows(&peers, "there", 3, &killing, NULL), 0);
	journal_rows(journal, &rows);
	assert_int_equal(rows.nonces, 2);
}

static void test_message_unserved(void **state)
{
	const struct control_head unknown = {.type = "dance", .from = "there", .id = 99};
	msgpack_object map = {.type = MSGPACK_OBJECT_MAP};
	msgpack_sbuffer out;

	(void)state;
	msgpack_sbuffer_init(&out);
	assert_int_equal(shows(&peers, "there", 1, &killing, &out), -ENOSYS);
	assert_int_equal(peer_requests_handle(&peers, &unknown, &map, &out), -ENOSYS);
	assert_int_equal(logged("refused a 'dance' message of node there: unknown type; another "
				"version of iocom?\n"),
			 1);
	/* The journal is not involved, so an `admit` gets no answer either. */
	assert_int_equal(shows(&peers, "there", 2, &admission, &out), -ENOSYS);
	assert_int_equal(out.size, 0);
	assert_int_equal(counters.controls_refused, 3);
	assert_int_equal(counters.admissions_refused, 0);
	assert_int_equal(counters.journal_failures, 0);
	msgpack_sbuffer_destroy(&out);
}

static void test_message_malformed(void **state)
{
	struct peer_request other = admission;
	msgpack_sbuffer out;

	(void)state;
	serve(PEER_ADMIT);
	msgpack_sbuffer_init(&out);
	strcpy(other.job, "there-0f-2"); /* the order names another job */
	assert_int_equal(shows(&peers, "there", 1, &other, &out), -EBADMSG);
	assert_int_equal(shows(&peers, "elsewhere", 1, &admission, &out), -EBADMSG);
	assert_int_equal(out.size, 0);
	assert_int_equal(party.times, 0);
	assert_int_equal(counters.controls_refused, 2);
	assert_int_equal(logged(strerror(EBADMSG)), 2);
	msgpack_sbuffer_destroy(&out);
}

/* The writes that the handler made before its error stay, and so does the message's number. */
static void test_message_fails(void **state)
{
	msgpack_sbuffer out;

	(void)state;
	serve(PEER_KILL);
	party.rc = -EIO;
	msgpack_sbuffer_init(&out);
	assert_int_equal(shows(&peers, "there", 1, &killing, &out), -EIO);
	assert_int_equal(out.size, 0);
	assert_int_equal(counters.journal_failures, 0);
	assert_int_equal(counters.controls_refused, 1);
	assert_true(journal_fact(journal, "handled") == 1);
	party.rc = 0;
	assert_int_equal(shows(&peers, "there", 1, &killing, &out), -EALREADY);
	assert_int_equal(shows(&peers, "there", 2, &killing, &out), 0); /* asked again */
	assert_int_equal(party.times, 2);
	msgpack_sbuffer_destroy(&out);
}

static void test_hello(void **state)
{
	const struct peer_request hello = {.type = PEER_HELLO, .hello = {"10.0.0.2", 7700}};
	msgpack_sbuffer out;

	(void)state;
	msgpack_sbuffer_init(&out);
	assert_int_equal(shows(&peers, "there", 1, &hello, &out), 0);
	assert_true(answered(PEER_HELLO, &out).ok);
	msgpack_sbuffer_destroy(&out);
}

/* --- messages of other nodes, and the journal fails ----------------------------------------- */

/* The writes of one message, in order, with the SQL that makes each one fail and work again. */
static const struct {
	const char *fail, *mend;
	bool commit, handled;
} writes[] = {
	{.fail = "PRAGMA query_only=1", .mend = "PRAGMA query_only=0"}, /* begin */
	{.fail = "CREATE TEMP TRIGGER no BEFORE INSERT ON nonce "
		 "BEGIN SELECT RAISE(ROLLBACK, 'no room'); END",
	 .mend = "DROP TRIGGER no"},
	{.fail = "CREATE TEMP TRIGGER no BEFORE INSERT ON nonce "
		 "BEGIN SELECT RAISE(ABORT, 'no room'); END", /* the transaction goes on */
	 .mend = "DROP TRIGGER no"},
	{.fail = "INSERT INTO nonce VALUES('old', 1, 1);"
		 "CREATE TEMP TRIGGER no BEFORE DELETE ON nonce "
		 "BEGIN SELECT RAISE(ROLLBACK, 'no room'); END",
	 .mend = "DROP TRIGGER no"},
	{.fail = "CREATE TEMP TRIGGER no BEFORE INSERT ON fact "
		 "BEGIN SELECT RAISE(ROLLBACK, 'no room'); END",
	 .mend = "DROP TRIGGER no",
	 .handled = true},
	{.fail = "", .mend = "", .commit = true, .handled = true},
};
#define WRITES (sizeof(writes) / sizeof(*writes))

static void fail_write(size_t n, bool fails)
{
	static unsigned tried;

	sql(fails ? writes[n].fail : writes[n].mend);
	if (writes[n].commit)
		sqlite3_commit_hook(journal->file.db, fails ? no_commit : NULL, &tried);
}

/*
 * A message gets no answer and leaves nothing in the journal; when the journal works again, the
 * message is obeyed.
 */
static void test_message_unwritten(void **state)
{
	msgpack_sbuffer out;

	(void)state;
	serve(PEER_KILL);
	msgpack_sbuffer_init(&out);
	for (size_t i = 0; i < WRITES; i++) {
		uint64_t failures = counters.journal_failures, refused = counters.controls_refused;

		party.times = 0;
		fail_write(i, true);
		assert_true(shows(&peers, "there", 1 + i, &killing, &out) < 0);
		fail_write(i, false);
		assert_int_equal(party.times, writes[i].handled);
		assert_true(counters.journal_failures > failures);
		assert_int_equal(counters.controls_refused, refused + 1);
		assert_true(journal_fact(journal, "handled") == 0);
		assert_true(sqlite3_get_autocommit(journal->file.db));
	}
	msgpack_sbuffer_clear(&out); /* control_answer.c sends no answer either */
	assert_int_equal(counters.admissions_refused, 0);
	for (size_t i = 0; i < WRITES; i++) {
		assert_int_equal(shows(&peers, "there", 101 + i, &killing, &out), 0);
		assert_true(answered(PEER_KILL, &out).ok);
	}
	msgpack_sbuffer_destroy(&out);
}

/* An `admit` is refused with the cause, even if the party had granted it. */
static void test_admit_unwritten(void **state)
{
	struct peer_answer got;
	msgpack_sbuffer out;

	(void)state;
	serve(PEER_ADMIT);
	party.answer = (struct peer_answer){.grant = {.granted = true, .nonce = "n"}};
	msgpack_sbuffer_init(&out);
	for (size_t i = 0; i < WRITES; i++) {
		fail_write(i, true);
		assert_int_equal(shows(&peers, "there", 1 + i, &admission, &out), 0);
		fail_write(i, false);
		got = answered(PEER_ADMIT, &out);
		assert_false(got.grant.granted);
		assert_string_equal(got.grant.reason, "journal");
		assert_non_null(strstr(got.grant.text, "cannot write the job journal"));
		assert_int_equal(counters.admissions_refused, i + 1);
		assert_int_equal(counters.controls_refused, i + 1);
		assert_int_equal(logged("warning: refused a 'admit' message of node there: "
					"cannot write the job journal"),
				 i + 1);
	}
	assert_int_equal(shows(&peers, "there", 101, &admission, &out), 0);
	got = answered(PEER_ADMIT, &out);
	assert_true(got.grant.granted);
	/*
	 * An `admit` that was obeyed is not answered again even if no journal failed, because its
	 * answer has a nonce.
	 */
	assert_int_equal(shows(&peers, "there", 101, &admission, &out), -EALREADY);
	assert_int_equal(out.size, 0);
	assert_int_equal(counters.admissions_refused, WRITES);
	msgpack_sbuffer_destroy(&out);
}

/* --- who is there ----------------------------------------------------------------------------- */

static void test_silent(void **state)
{
	const struct iocom_vector there = {.name = "there",
					   .address = "10.0.0.1",
					   .port = 7700,
					   .boot_id = 9,
					   .sequence = 1,
					   .period_ms = 1000};

	(void)state;
	assert_int_equal(matrix_put(&peers.matrix, &there, 0, loop_boot_ns(base.loop)), 0);
	peers_chores(&peers); /* there is no network, so no node is greeted or looked for */
	peers_publish(&peers, &there, loop_boot_ns(base.loop));
	peers_dial(&peers);
	assert_false(peers_mute(&peers));
	loop_advance(base.loop, 2 * CLOCK_NS_PER_S);
	peers_period(&peers);
	assert_true(matrix_find(&peers.matrix, "there")->alive);
	loop_advance(base.loop, 2 * CLOCK_NS_PER_S);
	peers_period(&peers);
	peers_period(&peers);
	assert_false(matrix_find(&peers.matrix, "there")->alive);
	assert_int_equal(counters.nodes_dropped, 1);
	assert_int_equal(logged("warning: 1 node silent for 3 periods: no jobs go there until "
				"heard again\n"),
			 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_at_once),
		CASE(test_later),
		CASE(test_early),
		CASE(test_early_and_unwritten),
		CASE(test_unserved),
		CASE(test_handler_fails),
		CASE(test_asks_again),
		CASE(test_another_node),
		CASE(test_forget),
		CASE(test_stop),
		CASE(test_begin_fails),
		CASE(test_commit_fails),
		CASE(test_given_up),
		CASE(test_message),
		CASE(test_shown_twice),
		CASE(test_numbers_go),
		CASE(test_message_unserved),
		CASE(test_message_malformed),
		CASE(test_message_fails),
		CASE(test_hello),
		CASE(test_message_unwritten),
		CASE(test_admit_unwritten),
		CASE(test_silent),
	};

	return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
