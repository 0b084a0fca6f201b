/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Signals for jobs: whom they reach, and what their clients read when they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/guest/guest_own.h"
#include "agent/home/home_leases.h"
#include "agent/jobs/journal_sql.h"
#include "tests/lib/asks.h"
#include "tests/lib/logged.h"
#include "user/frame.h"

#define JOB	 "here-0f-1"
#define OTHER	 "here-0f-2"
#define USER	 1000
#define STRANGER 1001

static struct whole w;

/* The questions that the guest party got, where the test plays that party. */
static struct {
	unsigned times;
	struct peer_request request;
	uint64_t tickets[4];
	int rc;
	struct peer_answer answer;
} guest;

static int setup(void **state)
{
	(void)state;
	guest.times = 0;
	guest.rc = PEERS_LATER;
	guest.answer = (struct peer_answer){.ok = true};
	return whole_new(&w, ":memory:") ? -1 : logged_begin(&w.log);
}

static int teardown(void **state)
{
	(void)state;
	logged_end();
	whole_free(&w);
	return 0;
}

static int on_kill(void *arg, const struct peer_request *r, uint64_t ticket,
		   struct peer_answer *answer)
{
	(void)arg;
	guest.request = *r;
	guest.tickets[guest.times++] = ticket;
	*answer = guest.answer;
	return guest.rc;
}

static void be_guest(void)
{
	peers_serve(&w.peers, PEER_KILL, on_kill, NULL);
}

static void guest_answers(unsigned question, struct peer_answer answer)
{
	peers_answer(&w.peers, guest.tickets[question], PEER_KILL, &answer);
}

static void sql(const char *text)
{
	assert_int_equal(sqlite3_exec(w.journal->file.db, text, NULL, NULL, NULL), SQLITE_OK);
}

static int kills(uid_t uid, const char *job)
{
	return ASKS(&w, uid, .op = "kill", .job = job);
}

static void reads_signalled(int fd)
{
	json_t *document = reads_json(fd);

	assert_true(json_is_true(json_object_get(document, "signalled")));
	assert_int_equal(json_object_size(document), 1);
	json_decref(document);
	assert_null(w.front.kills);
}

static void reads_why(int fd, const char *sentence)
{
	reads_error(fd, sentence);
	assert_null(w.front.kills);
}

static void reads_unknown(int fd, const char *job)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "no job of yours named %s runs at node here or was submitted there; `iocom "
		 "jobs --all` lists them",
		 job);
	reads_why(fd, text);
}

/* A job of UID that runs here, as its guest party knows it. */
static void runs_here(const char *job, uid_t uid)
{
	struct job_order order = {.uid = uid};
	struct job *j;

	snprintf(order.job, sizeof(order.job), "%s", job);
	j = jobs_add(&w.guest->jobs, &order);
	assert_non_null(j);
	j->state = JOB_RUNNING;
	j->guest = w.guest;
	j->leash = -1;
}

/* --- what is asked ----------------------------------------------------------------- */

static void test_malformed(void **state)
{
	static const char why[] = "the request names no \"job\", or no signal from 0 to 64";

	(void)state;
	be_guest();
	reads_why(ASKS(&w, USER, .op = "kill"), why);
	reads_why(ASKS(&w, USER, .op = "kill", .job = JOB, .signal = 65), why);
	assert_int_equal(guest.times, 0);
}

/*
 * The guest is told who asks, for which job, and which signal. If the request names none, it is
 * SIGTERM.
 */
static void test_what_the_guest_is_asked(void **state)
{
	(void)state;
	guest.rc = 0;
	be_guest();
	submitted(&w, JOB, USER, "here");
	reads_signalled(kills(USER, JOB));
	assert_string_equal(guest.request.job, JOB);
	assert_string_equal(guest.request.from, "here");
	assert_int_equal(guest.request.kill.uid, USER);
	assert_int_equal(guest.request.kill.signal, 15);
	reads_signalled(ASKS(&w, 0, .op = "kill", .job = JOB, .signal = 64));
	assert_int_equal(guest.request.kill.uid, 0);
	assert_int_equal(guest.request.kill.signal, 64);
}

static void test_last(void **state)
{
	(void)state;
	guest.rc = 0;
	be_guest();
	submitted(&w, JOB, USER, "here");
	submitted(&w, OTHER, STRANGER, "here");
	reads_signalled(kills(USER, "last"));
	assert_string_equal(guest.request.job, JOB);
	guest.answer = (struct peer_answer){.error = -ESRCH};
	reads_why(kills(1002, "last"), "no job of yours was submitted at node here");
}

/* The name of an attempt that was run again means the attempt that runs now. */
static void test_next_attempt(void **state)
{
	(void)state;
	guest.rc = 0;
	be_guest();
	submitted_restartable(&w, JOB, USER, "there");
	submitted(&w, OTHER, USER, "here");
	assert_int_equal(lease_fence(w.home, JOB, OTHER, NULL), 0);
	reads_signalled(kills(USER, JOB));
	assert_string_equal(guest.request.job, OTHER);
}

/* --- no, and why ---------------------------------------------------------------------- */

static void test_unknown(void **state)
{
	(void)state;
	reads_unknown(kills(USER, JOB), JOB);
	assert_int_equal(logged("iocomd: "), 0);
}

/* The same sentence, but it is logged, once. */
static void test_not_yours(void **state)
{
	static const char line[] =
		"refused uid 1001 to signal job here-0f-1: it is another user's\n";

	(void)state;
	submitted(&w, JOB, USER, "there");
	reads_unknown(kills(STRANGER, JOB), JOB);
	assert_int_equal(logged(line), 1);
	assert_int_equal(logged("iocomd: "), 1);
	assert_int_equal(logged("iocomd: warning: "), 1);
}

/* For a job that was submitted elsewhere, only the guest party knows the owner. */
static void test_not_yours_here(void **state)
{
	(void)state;
	accepted(&w, "there-0f-1", USER);
	runs_here("there-0f-1", USER);
	reads_unknown(kills(STRANGER, "there-0f-1"), "there-0f-1");
	assert_int_equal(
		logged("refused uid 1001 to signal job there-0f-1: it is another user's\n"), 1);
	assert_int_equal(logged("iocomd: "), 1);
}

static void test_ended(void **state)
{
	(void)state;
	submitted(&w, JOB, USER, "there");
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 0), 0);
	reads_why(kills(USER, JOB), "job here-0f-1 has ended");
	reads_unknown(kills(STRANGER, JOB), JOB);
}

/* A job that ran here and was submitted elsewhere: its owner, and no other user, may know of it. */
static void test_ended_here(void **state)
{
	const struct journal_job row = {.job = "there-0f-1", .state = "exited", .end_ns = 9};

	(void)state;
	accepted(&w, row.job, USER);
	/* the job has not ended and is not here any more */
	reads_unknown(kills(USER, row.job), row.job);
	assert_int_equal(journal_end(w.journal, &row, "", 0, NULL), 0);
	reads_why(kills(USER, row.job), "job there-0f-1 has ended");
	reads_why(kills(0, row.job), "job there-0f-1 has ended");
	reads_unknown(kills(STRANGER, row.job), row.job);
}

static void test_silent_node(void **state)
{
	(void)state;
	be_guest();
	submitted(&w, JOB, USER, "there");
	submitted(&w, OTHER, USER, "elsewhere"); /* never heard of */
	reads_why(kills(USER, JOB), "this agent serves its own machine only, and node there is "
				    "another");
	whole_pass_ms(&w, 10000);
	peers_period(&w.peers);
	reads_why(kills(USER, JOB), "node there, where job here-0f-1 runs, is silent");
	reads_why(kills(USER, OTHER), "node elsewhere, where job here-0f-2 runs, is silent");
	assert_int_equal(guest.times, 0);
}

/* The supervisor is gone, and the client reads the sentence of the guest party. */
static void test_no_supervisor(void **state)
{
	(void)state;
	submitted(&w, JOB, USER, "here");
	runs_here(JOB, USER);
	reads_why(kills(USER, JOB), "cannot signal job here-0f-1: No such process");
	submitted(&w, OTHER, USER, "here"); /* the guest party knows nothing of it */
	reads_why(kills(USER, OTHER), "no job of yours named here-0f-2 runs at node here");
}

static void test_refused(void **state)
{
	(void)state;
	guest.rc = 0;
	guest.answer = (struct peer_answer){.text = "not today"};
	be_guest();
	submitted(&w, JOB, USER, "here");
	reads_why(kills(USER, JOB), "not today");
	guest.rc = -EIO;
	reads_why(kills(USER, JOB), strerror(EIO));
	assert_int_equal(logged("iocomd: "), 0);
}

/* --- answers that come later ------------------------------------------------------------ */

static void test_later(void **state)
{
	int yes, no;

	(void)state;
	be_guest();
	submitted(&w, JOB, USER, "here");
	submitted(&w, OTHER, USER, "here");
	yes = kills(USER, JOB);
	no = kills(USER, OTHER);
	whole_pass_ms(&w, 100);
	reads_nothing(yes);
	reads_nothing(no);
	guest_answers(1, (struct peer_answer){.error = -ETIMEDOUT, .text = "it hangs"});
	reads_nothing(yes);
	reads_error(no, "it hangs");
	guest_answers(0, (struct peer_answer){.ok = true});
	reads_signalled(yes);
}

static void test_leaves_before_the_answer(void **state)
{
	int gone, stays;

	(void)state;
	be_guest();
	submitted(&w, JOB, USER, "here");
	gone = kills(USER, JOB);
	stays = kills(USER, JOB);
	close(gone);
	whole_pass_ms(&w, 1);
	guest_answers(0, (struct peer_answer){.ok = true});
	reads_nothing(stays);
	guest_answers(1, (struct peer_answer){.ok = true});
	reads_signalled(stays);
	gone = kills(STRANGER, "there-0f-1");
	close(gone);
	whole_pass_ms(&w, 1);
	guest_answers(2, (struct peer_answer){.error = -EPERM, .text = "not his"});
	assert_null(w.front.kills);
	/* there is no client any more that could be named */
	assert_int_equal(logged("iocomd: "), 0);
}

/* The loop has not yet seen that the client left; sending the answer shows it. */
static void test_leaves_at_the_answer(void **state)
{
	int fd;

	(void)state;
	be_guest();
	submitted(&w, JOB, USER, "here");
	fd = kills(USER, JOB);
	close(fd);
	guest_answers(0, (struct peer_answer){.ok = true});
	assert_null(w.front.kills);
	whole_pass_ms(&w, 1);
	assert_int_equal(clients_count(w.front.clients), 0);
}

static void test_agent_stops(void **state)
{
	int fd;

	(void)state;
	be_guest();
	submitted(&w, JOB, USER, "here");
	fd = kills(USER, JOB);
	peers_stop(&w.peers);
	reads_why(fd, "the agent is stopping");
}

/* --- a journal that fails ---------------------------------------------------------------- */

/* Nobody is signalled if the journal cannot tell whose job it is. */
static void test_unreadable(void **state)
{
	static const char *const tables[] = {"home", "lease"};

	(void)state;
	guest.rc = 0;
	be_guest();
	submitted(&w, JOB, USER, "here");
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		char text[80], sentence[120];

		snprintf(text, sizeof(text), "ALTER TABLE %s RENAME TO away", tables[i]);
		sql(text);
		snprintf(sentence, sizeof(sentence),
			 "cannot read the job journal : no such table: %s", tables[i]);
		reads_why(kills(USER, JOB), sentence);
		snprintf(text, sizeof(text), "ALTER TABLE away RENAME TO %s", tables[i]);
		sql(text);
	}
	assert_int_equal(guest.times, 0);
	reads_signalled(kills(USER, JOB));
}

/* A question to this node itself is a transaction, which cannot begin. */
static void test_unwritable(void **state)
{
	(void)state;
	guest.rc = 0;
	be_guest();
	submitted(&w, JOB, USER, "here");
	sql("PRAGMA query_only=1");
	reads_why(kills(USER, JOB),
		  "cannot write the job journal : attempt to write a readonly database");
	assert_int_equal(guest.times, 0);
	assert_int_equal(w.counters.journal_failures, 1);
	sql("PRAGMA query_only=0");
	reads_signalled(kills(USER, JOB));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_malformed),
		CASE(test_what_the_guest_is_asked),
		CASE(test_last),
		CASE(test_next_attempt),
		CASE(test_unknown),
		CASE(test_not_yours),
		CASE(test_not_yours_here),
		CASE(test_ended),
		CASE(test_ended_here),
		CASE(test_silent_node),
		CASE(test_no_supervisor),
		CASE(test_refused),
		CASE(test_later),
		CASE(test_leaves_before_the_answer),
		CASE(test_leaves_at_the_answer),
		CASE(test_agent_stops),
		CASE(test_unreadable),
		CASE(test_unwritable),
	};

	return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
