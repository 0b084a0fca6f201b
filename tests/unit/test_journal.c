/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The job journal: both sides of a job, each id only once, reports until acknowledged, pruning. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "agent/jobs/journal.h"

static char dir[] = "/tmp/iocom-test-journal-XXXXXX";
static char path[64];
static struct iocom_err err;

static struct journal *reopen(struct journal *j)
{
	journal_close(j);
	j = NULL;
	assert_int_equal(journal_open(&j, path, &err), 0);
	return j;
}

static int setup(void **state)
{
	unlink(path);
	*state = reopen(NULL);
	return 0;
}

static int teardown(void **state)
{
	journal_close(*state);
	return 0;
}

static struct journal_job make(const char *id, uid_t uid, uint64_t when)
{
	return (struct journal_job){
		.job = id,
		.class_name = "c",
		.command = "c x",
		.home = "h",
		.node = "n",
		.policy = "iocm-re",
		.state = "exited",
		.uid = uid,
		.submit_ns = when,
		.start_ns = when + 1,
		.end_ns = when + 2,
	};
}

static void count(void *arg, const struct journal_job *job)
{
	(void)job;
	++*(int *)arg;
}

static int listed(struct journal *j, uid_t uid, bool all)
{
	int n = 0;

	assert_int_equal(journal_list(j, uid, all, 10000, count, &n), 0);
	return n;
}

static void test_home(void **state)
{
	struct journal *j = *state;
	struct journal_job job = make("h-1-1", 1000, 5);
	char node[IOCOM_NAME_MAX], class_name[64], *text;
	bool ended;
	uid_t uid;

	assert_int_equal(journal_submit(j, &job, &err), 0);
	assert_int_equal(journal_submit(j, &job, &err), -EIO); /* an id is accepted once */
	assert_int_equal(journal_place(j, "last", 1000, &text, &uid, &err), -ENOENT);
	assert_int_equal(journal_placed(j, "h-1-1", "n2", "{\"a\":1}", NULL, &err), 0);
	assert_int_equal(journal_home_state(j, "h-1-1", "running", 9, 77, &err), 0);
	assert_int_equal(journal_home_get(j, "h-1-1", node, &uid, class_name, &ended, &err), 0);
	assert_string_equal(node, "n2");
	assert_false(ended);
	assert_int_equal(listed(j, 1000, false), 1);
	assert_int_equal(listed(j, 1001, true), 0);
	assert_int_equal(journal_home_end(j, &job, &err), 0);
	assert_int_equal(journal_home_get(j, "h-1-1", node, &uid, class_name, &ended, &err), 0);
	assert_true(ended);
	/* a "started" that comes after "done" does not revive the job */
	assert_int_equal(journal_home_state(j, "h-1-1", "running", 9, 77, &err), 0);
	assert_int_equal(listed(j, (uid_t)-1, false), 0);
	assert_int_equal(listed(j, (uid_t)-1, true), 1);
	assert_int_equal(journal_place(j, "last", 1000, &text, &uid, &err), 0);
	assert_string_equal(text, "{\"a\":1}");
	free(text);
	assert_int_equal(journal_place(j, "last", 1001, &text, &uid, &err), -ENOENT);
}

static void take_job(void *arg, const struct journal_job *job)
{
	snprintf(arg, SPEC_JOB_MAX, "%s", job->job);
}

/* "last" is the job that the user ran, not a worker that came later. */
static void test_last(void **state)
{
	struct journal *j = *state;
	struct journal_job own = make("h-1-1", 1000, 5), worker = make("h-1-2", 1000, 6);
	char name[SPEC_JOB_MAX] = "", *text;
	uid_t uid;

	worker.worker = true;
	assert_int_equal(journal_submit(j, &worker, &err), 0);
	assert_int_equal(journal_placed(j, "h-1-2", "n2", "{\"a\":2}", NULL, &err), 0);
	assert_int_equal(journal_find(j, "last", 1000, take_job, name), 0);
	assert_string_equal(name, "");
	assert_int_equal(journal_place(j, "last", 1000, &text, &uid, &err), -ENOENT);
	assert_int_equal(journal_submit(j, &own, &err), 0);
	assert_int_equal(journal_placed(j, "h-1-1", "n2", "{\"a\":1}", NULL, &err), 0);
	assert_int_equal(journal_find(j, "last", 1000, take_job, name), 0);
	assert_string_equal(name, "h-1-1");
	assert_int_equal(journal_place(j, "last", 1000, &text, &uid, &err), 0);
	assert_string_equal(text, "{\"a\":1}");
	free(text);
	/* It can be found by its name. */
	assert_int_equal(journal_find(j, "h-1-2", 1000, take_job, name), 0);
	assert_string_equal(name, "h-1-2");
	assert_int_equal(listed(j, 1000, true), 2);
}

struct outcomes_seen {
	size_t n;
	char first[SPEC_JOB_MAX];
	struct journal_outcome last; /* its texts are gone */
};

static void take_outcome(void *arg, const struct journal_outcome *o)
{
	struct outcomes_seen *seen = arg;

	if (!seen->n++)
		snprintf(seen->first, sizeof(seen->first), "%s", o->job);
	seen->last = *o;
	assert_string_equal(o->home, "h");
	assert_string_equal(o->class_name, "c");
	assert_int_equal(o->moved, strcmp(o->node, "h") != 0);
}

static struct outcomes_seen outcomes_since(struct journal *j, uint64_t since, uid_t uid)
{
	struct outcomes_seen seen = {0};

	assert_int_equal(journal_outcomes(j, since, uid, take_outcome, &seen), 0);
	return seen;
}

static void end_job(struct journal *j, const char *id, uid_t uid, uint64_t when, double wall_ms)
{
	struct journal_job job = make(id, uid, when);

	job.wall_ms = wall_ms;
	assert_int_equal(journal_submit(j, &job, &err), 0);
	assert_int_equal(journal_placed(j, id, uid == 1000 ? "n2" : "h", "{}", NULL, &err), 0);
	assert_int_equal(journal_home_end(j, &job, &err), 0);
}

static void take_whole(void *arg, const struct journal_job *job)
{
	*(struct journal_job *)arg = *job;
}

/* What was expected of a job stays with it, and is listed with what it took. */
static void test_expectation(void **state)
{
	const struct journal_expectation e = {.there_ms = 4400,
					      .home_ms = 9000,
					      .there_factor = 1.1,
					      .home_factor = 0.5,
					      .basis = JOURNAL_BASIS_LEARNED,
					      .balanced = true};
	struct journal *j = *state;
	struct outcomes_seen seen;
	struct journal_expected expected;
	struct journal_job running = make("h-1-9", 1000, 50), job = {0};

	end_job(j, "h-1-1", 1000, 5, 5100);
	end_job(j, "h-1-2", 1001, 10, 30); /* nothing was expected */
	end_job(j, "h-1-3", 1000, 15, 0);  /* its response is not known */
	assert_int_equal(journal_submit(j, &running, &err), 0);
	assert_int_equal(journal_placed(j, "h-1-1", "n2", "{}", &e, &err), 0);
	assert_int_equal(journal_home_expected(j, "h-1-1", &expected, &err), 0);
	assert_int_equal(expected.submit_ns, 5);
	assert_string_equal(expected.policy, "iocm-re");
	assert_true(expected.expectation.home_factor == 0.5 && expected.expectation.balanced);
	assert_int_equal(journal_home_expected(j, "h-1-7", &expected, &err), -ENOENT);
	assert_int_equal(journal_find(j, "h-1-1", 1000, take_whole, &job), 0);
	assert_true(job.wall_ms == 5100 && job.expectation.there_ms == 4400);

	seen = outcomes_since(j, 0, (uid_t)-1);
	assert_int_equal(seen.n, 2);
	assert_string_equal(seen.first, "h-1-2"); /* the newest first */
	assert_true(seen.last.wall_ms == 5100 && seen.last.expected_ms == 4400);
	assert_true(seen.last.expected_home_ms == 9000 && seen.last.there_factor == 1.1);
	assert_int_equal(seen.last.basis, JOURNAL_BASIS_LEARNED);
	assert_true(seen.last.balanced && seen.last.moved);
	assert_int_equal(seen.last.end_ns, 7);
	seen = outcomes_since(j, 6, (uid_t)-1);
	assert_int_equal(seen.n, 1);
	assert_true(seen.last.expected_ms == 0 && !seen.last.moved && !seen.last.balanced);
	assert_int_equal(outcomes_since(j, 0, 1000).n, 1);
	assert_int_equal(outcomes_since(j, UINT64_MAX, (uid_t)-1).n, 0);
	/* It is all there for the next agent. */
	*state = reopen(j);
	assert_int_equal(outcomes_since(*state, 0, 1000).n, 1);
}

/* A journal that fails says so; no number that is none gets in. */
static void test_expectation_failure(void **state)
{
	const struct journal_expectation e = {.there_ms = NAN, .home_ms = 1};
	struct journal *j = *state;
	struct outcomes_seen seen = {0};
	struct journal_expected expected;
	sqlite3 *db;

	end_job(j, "h-1-1", 1000, 5, 1);
	assert_int_equal(journal_placed(j, "h-1-1", "n2", "{}", &e, &err), 0);
	assert_int_equal(journal_home_expected(j, "h-1-1", &expected, &err), 0);
	assert_true(expected.expectation.there_ms == 0 && expected.expectation.home_ms == 1);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DROP TABLE home", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(journal_placed(j, "h-1-1", "n2", "{}", &e, &err), -EIO);
	assert_int_equal(journal_home_expected(j, "h-1-1", &expected, &err), -EIO);
	assert_int_equal(journal_outcomes(j, 0, 1000, take_outcome, &seen), -EIO);
	assert_int_equal(seen.n, 0);
}

static void take_reason(void *arg, const struct journal_job *job)
{
	snprintf(arg, 160, "%s %s", job->state, job->text ? job->text : "-");
}

/* Returns state and reason of the only job. */
static const char *reason(struct journal *j)
{
	static char text[160];

	assert_int_equal(journal_list(j, (uid_t)-1, true, 10, take_reason, text), 0);
	return text;
}

static void test_stale(void **state)
{
	struct journal *j = *state;
	struct journal_job job = make("h-1-1", 0, 100);

	journal_submit(j, &job, &err);
	assert_int_equal(journal_home_stale(j, 100), 0);
	assert_string_equal(reason(j), "starting -");
	assert_int_equal(journal_home_stale(j, 101), 1);
	assert_int_equal(listed(j, (uid_t)-1, false), 0);
	assert_non_null(strstr(reason(j), "failed it never started"));
}

/* One whose data goes along may be on its way for a day. */
static void test_stale_data(void **state)
{
	struct journal *j = *state;
	struct journal_job job = make("h-1-1", 0, 100);
	uint64_t day_ns = 86400ull * 1000000000;

	journal_submit(j, &job, &err);
	assert_int_equal(journal_placed(j, "h-1-1", "n2", "{\"data\":true}", NULL, &err), 0);
	assert_int_equal(journal_home_stale(j, day_ns), 0);
	assert_int_equal(journal_home_stale(j, day_ns + 101), 1);
}

static bool is_gone(void *arg, const char *node)
{
	return !strcmp(arg, node);
}

/*
 * A node that is gone for good must not keep a row for ever; a job of a present node may run for
 * long.
 */
static void test_node_gone(void **state)
{
	struct journal *j = *state;
	struct journal_job job = make("h-1-1", 0, 100);

	journal_submit(j, &job, &err);
	journal_placed(j, "h-1-1", "n2", "{}", NULL, &err);
	assert_int_equal(journal_home_lost(j, 101, is_gone, "n2"),
			 0); /* the job does not run yet */
	assert_int_equal(journal_home_state(j, "h-1-1", "running", 9, 77, &err), 0);
	assert_int_equal(journal_home_lost(j, 101, is_gone, "n3"), 0);
	assert_int_equal(journal_home_lost(j, 100, is_gone, "n2"), 0);
	assert_int_equal(journal_home_lost(j, 101, is_gone, "n2"), 1);
	assert_non_null(strstr(reason(j), "lost its node"));
	assert_int_equal(journal_home_lost(j, 101, is_gone, "n2"), 0);
	/* The node came back after all. */
	job.text = "";
	assert_int_equal(journal_home_end(j, &job, &err), 0);
	assert_string_equal(reason(j), "exited ");
}

/* A journal of an older iocom, without reasons. */
static void test_older(void **state)
{
	struct journal *j = *state;
	struct journal_job job = make("h-1-1", 0, 100);
	sqlite3 *db;

	journal_submit(j, &job, &err);
	journal_close(j);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "ALTER TABLE home DROP COLUMN text;"
				      "ALTER TABLE target DROP COLUMN text;"
				      "PRAGMA user_version=0;",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	*state = j = reopen(NULL);
	assert_string_equal(reason(j), "starting -");
	job.text = "why";
	job.state = "lost";
	assert_int_equal(journal_home_end(j, &job, &err), 0);
	*state = j = reopen(j);
	assert_string_equal(reason(j), "lost why");
}

struct seen {
	int n;
	char job[SPEC_JOB_MAX];
	size_t order, report;
};

static void pending(void *arg, const char *job, const char *home, const void *order,
		    size_t order_length, const void *report, size_t length)
{
	struct seen *s = arg;

	(void)order;
	(void)report;
	assert_string_equal(home, "h");
	s->n++;
	strcpy(s->job, job);
	s->order = order_length;
	s->report = length;
}

static void unfinished(void *arg, const char *job, uint64_t start_ns, uint64_t cgroup_id,
		       const void *order, size_t length)
{
	struct seen *s = arg;

	assert_string_equal(job, "h-1-1");
	assert_int_equal(start_ns, 6);
	assert_int_equal(cgroup_id, 42);
	assert_int_equal(length, 5);
	assert_memory_equal(order, "order", 5);
	s->n++;
}

/* A job that comes by a move may have been here: it left, never ran, or was lost on the way. */
static void test_arrives_again(void **state)
{
	static const char *const ends[] = {JOURNAL_STAYED, "lost"};
	struct journal *j = *state;
	struct journal_job job = make("h-1-1", 1000, 5);

	assert_int_equal(journal_arrive(j, &job, "order", 5, &err), 0);
	assert_int_equal(journal_arrive(j, &job, "order", 5, &err), JOURNAL_E_SEEN);
	for (size_t i = 0; i < 2; i++) {
		job.state = ends[i];
		assert_int_equal(journal_end(j, &job, "report", 6, &err), 0);
		assert_int_equal(journal_accept(j, &job, "order", 5, &err), JOURNAL_E_SEEN);
		assert_int_equal(journal_arrive(j, &job, "order", 5, &err), 0);
	}
	assert_int_equal(journal_end(j, &job, "report", 6, &err), 0);
	job.home = "other"; /* not the one that knows where it runs */
	assert_int_equal(journal_arrive(j, &job, "order", 5, &err), JOURNAL_E_SEEN);
	job = make("h-1-1", 1000, 5);
	job.state = "exited";
	assert_int_equal(journal_arrive(j, &job, "order", 5, &err), 0);
	assert_int_equal(journal_end(j, &job, "report", 6, &err), 0);
	assert_int_equal(journal_arrive(j, &job, "order", 5, &err), JOURNAL_E_SEEN);
}

static void test_target(void **state)
{
	struct journal *j = *state;
	struct journal_job job = make("h-1-1", 1000, 5);
	struct seen s = {0};

	assert_int_equal(journal_accept(j, &job, "order", 5, &err), 0);
	assert_int_equal(journal_accept(j, &job, "order", 5, &err), JOURNAL_E_SEEN);
	assert_int_equal(journal_started(j, "h-1-1", 6, 77, 42, &err), 0);
	*state = j = reopen(j); /* this agent ends without closing, as one that died */
	assert_int_equal(journal_accept(j, &job, "order", 5, &err), JOURNAL_E_SEEN);
	assert_int_equal(journal_unfinished(j, unfinished, &s), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(journal_end(j, &job, "report", 6, &err), 0);
	s.n = 0;
	assert_int_equal(journal_unfinished(j, unfinished, &s), 0);
	assert_int_equal(s.n, 0);
	assert_int_equal(journal_pending(j, 10, pending, &s), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.report, 6);
	assert_int_equal(journal_acked(j, "h-1-1", &err), 0);
	s.n = 0;
	assert_int_equal(journal_pending(j, 10, pending, &s), 0);
	assert_int_equal(s.n, 0);
}

static void test_prune(void **state)
{
	struct journal *j = *state;
	char id[32];

	for (int i = 1; i <= 10; i++) {
		struct journal_job job;

		snprintf(id, sizeof(id), "h-1-%d", i);
		job = make(id, 0, (uint64_t)i * 100);
		assert_int_equal(journal_accept(j, &job, "o", 1, &err), 0);
		assert_int_equal(journal_end(j, &job, "r", 1, &err), 0);
		if (i != 2) /* its home does not know its end yet, so its row stays */
			journal_acked(j, id, &err);
	}
	assert_int_equal(journal_prune(j, 3, 0, &err), 0);
	assert_int_equal(listed(j, (uid_t)-1, true), 4);
	/* pruned ids are still refused, later ones are not */
	for (int i = 1; i <= 11; i++) {
		struct journal_job job;

		snprintf(id, sizeof(id), "h-1-%d", i);
		job = make(id, 0, 5000);
		assert_int_equal(journal_accept(j, &job, "o", 1, &err),
				 i <= 10 ? JOURNAL_E_SEEN : 0);
	}
	assert_int_equal(journal_prune(j, 100, 0, &err), 0);
	assert_int_equal(listed(j, (uid_t)-1, true),
			 5); /* 3 ended ones, the unreported one and the running one */
	assert_int_equal(journal_prune(j, 100, 100000, &err), 0); /* these are too old */
	assert_int_equal(listed(j, (uid_t)-1, true), 1);	  /* only the running job is left */
	/* The unreported end was given up; the id is still refused. */
	struct journal_job job = make("h-1-2", 0, 5000);
	assert_int_equal(journal_accept(j, &job, "o", 1, &err), JOURNAL_E_SEEN);
}

static void count_home(void *arg, const char *job, const char *home, const void *order,
		       size_t order_length, const void *report, size_t length)
{
	unsigned *n = arg;

	(void)home;
	(void)order;
	(void)order_length;
	(void)report;
	(void)length;
	n[job[0] == 'b']++;
}

/* A home that is gone must not take the turns of the reports to others. */
static void test_pending_turns(void **state)
{
	struct journal *j = *state;
	unsigned n[2] = {0};
	char id[32];

	for (int i = 1; i <= 9; i++) {
		struct journal_job job;

		snprintf(id, sizeof(id), "%c-1-%d", i < 9 ? 'a' : 'b', i);
		job = make(id, 0, (uint64_t)i);
		assert_int_equal(journal_accept(j, &job, "o", 1, &err), 0);
		assert_int_equal(journal_end(j, &job, "r", 1, &err), 0);
	}
	assert_int_equal(journal_pending(j, 4, count_home, n), 0);
	assert_int_equal(n[0], 4);
	assert_int_equal(journal_pending(j, 4, count_home, n), 0);
	assert_int_equal(n[0], 8);
	assert_int_equal(n[1], 0);
	assert_int_equal(journal_pending(j, 4, count_home, n), 0);
	assert_int_equal(n[1], 1);
	/* All had their turn, so the first turn comes again. */
	assert_int_equal(journal_pending(j, 4, count_home, n), 0);
	assert_int_equal(n[0], 12);
	assert_int_equal(n[1], 1);
}

/* Returns the number that an SQL query gives, from outside the journal. */
static int ask(const char *sql)
{
	sqlite3_stmt *st;
	sqlite3 *db;
	int n = -1;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	if (sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return n;
}

/* Ten times as many jobs as are kept: rows and bytes stay where the first filling left them. */
static void test_retention(void **state)
{
	enum { KEEP = 200, ROUNDS = 10 };
	struct journal *j = *state;
	static const char order[600], report[600];
	int first = 0;
	char id[48];

	for (int i = 0; i < KEEP * ROUNDS; i++) {
		struct journal_job job;

		/* The home restarts at every tenth job. */
		snprintf(id, sizeof(id), "h-%d-%d", i / 10, i % 10 + 1);
		job = make(id, 0, (uint64_t)i + 1);
		assert_int_equal(journal_submit(j, &job, &err), 0);
		assert_int_equal(journal_accept(j, &job, order, sizeof(order), &err), 0);
		assert_int_equal(journal_end(j, &job, report, sizeof(report), &err), 0);
		assert_int_equal(journal_home_end(j, &job, &err), 0);
		assert_int_equal(journal_acked(j, id, &err), 0);
		assert_int_equal(journal_nonce(j, "h", (uint64_t)i, (uint64_t)i, 120, &err), 0);
		if (i % KEEP != KEEP - 1)
			continue;
		assert_int_equal(journal_prune(j, KEEP, 0, &err), 0);
		assert_in_range(listed(j, (uid_t)-1, true), KEEP, KEEP);
		if (!first)
			first = ask("PRAGMA page_count");
	}
	printf("# |journal: %d jobs, %d kept: %d pages after the first %d, %d at the end\n",
	       KEEP * ROUNDS, KEEP, first, KEEP, ask("PRAGMA page_count"));
	assert_in_range(ask("SELECT count(*) FROM home"), KEEP, KEEP);
	assert_in_range(ask("SELECT count(*) FROM target"), KEEP, KEEP);
	assert_in_range(ask("SELECT count(*) FROM nonce"), 1, 121);
	assert_in_range(ask("PRAGMA page_count"), first, 3 * first);
}

/* Each start of a home is a source of its own: the oldest marks are removed, the newest stay. */
static void test_marks(void **state)
{
	enum { SOURCES = 10000, MORE = 50 };
	struct journal *j = *state;
	struct journal_job job;
	char id[48];

	for (int i = 0; i < SOURCES + MORE; i++) {
		snprintf(id, sizeof(id), "h-%d-1", i);
		job = make(id, 0, (uint64_t)i + 1);
		assert_int_equal(journal_accept(j, &job, "", 0, &err), 0);
		assert_int_equal(journal_end(j, &job, "", 0, &err), 0);
		assert_int_equal(journal_acked(j, id, &err), 0);
	}
	assert_int_equal(journal_prune(j, 1, 0, &err), 0);
	assert_int_equal(ask("SELECT count(*) FROM target"), 1);
	assert_in_range(ask("SELECT count(*) FROM mark"), SOURCES - 1, SOURCES);
	job = make("h-10048-1", 0, 1);
	assert_int_equal(journal_accept(j, &job, "", 0, &err), JOURNAL_E_SEEN);
	job = make("h-0-1", 0, 1);
	assert_int_equal(journal_accept(j, &job, "", 0, &err), 0);
}

static void test_facts_and_ids(void **state)
{
	struct journal *j = *state;
	char source[SPEC_JOB_MAX];
	uint64_t sequence;

	assert_true(journal_fact(j, "x") == 0);
	assert_int_equal(journal_set_fact(j, "x", 2.5), 0);
	assert_int_equal(journal_set_fact(j, "x", 3.5), 0);
	assert_true(journal_fact(j, "x") == 3.5);
	assert_int_equal(journal_split("a-b-00ff-12", source, &sequence), 0);
	assert_string_equal(source, "a-b-00ff");
	assert_int_equal(sequence, 12);
	assert_int_equal(journal_split("a", source, &sequence), -EINVAL);
	assert_int_equal(journal_split("a-", source, &sequence), -EINVAL);
	assert_int_equal(journal_split("a--1", source, &sequence), 0);
	assert_int_equal(journal_split("a-99999999999999999999", source, &sequence), -EINVAL);
}

/* A message is obeyed once, even by a restarted agent, until it is too old to be valid. */
static void test_nonces(void **state)
{
	struct journal *j = *state;

	assert_int_equal(journal_nonce(j, "n1", 7, 1000, 120, &err), 0);
	assert_int_equal(journal_nonce(j, "n1", 7, 1001, 120, &err), JOURNAL_E_SEEN);
	assert_non_null(strstr(err.text, "n1"));
	assert_int_equal(journal_nonce(j, "n2", 7, 1001, 120, &err), 0);
	assert_int_equal(journal_nonce(j, "n1", UINT64_MAX, 1001, 120, &err), 0);
	assert_int_equal(journal_nonce(j, "n1", UINT64_MAX, 1001, 120, &err), JOURNAL_E_SEEN);
	*state = j = reopen(j); /* the agent starts again */
	assert_int_equal(journal_nonce(j, "n1", 7, 1100, 120, &err), JOURNAL_E_SEEN);
	/* Kept up to and including second 1120; the next message removes expired ones. */
	assert_int_equal(journal_nonce(j, "n3", 1, 1120, 120, &err), 0);
	assert_int_equal(journal_nonce(j, "n1", 7, 1120, 120, &err), JOURNAL_E_SEEN);
	assert_int_equal(journal_nonce(j, "n3", 2, 1122, 120, &err), 0);
	assert_int_equal(journal_nonce(j, "n1", 7, 1122, 120, &err), 0);
}

/* Copies the first SIZE bytes of FROM to TO. Returns how many there were. */
static size_t copy_part(const char *from, const char *to, size_t size)
{
	static char bytes[16 << 20];
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	size_t n;

	assert_true(in && out);
	n = fread(bytes, 1, sizeof(bytes), in);
	assert_true(n < sizeof(bytes));
	assert_int_equal(fwrite(bytes, 1, size < n ? size : n, out), size < n ? size : n);
	fclose(in);
	fclose(out);
	return n;
}

/* Returns how many of the jobs "h-1-0"... PATH has; they must be the first ones, and stay. */
static int whole_jobs(const char *cut, int all)
{
	struct journal *j = NULL;
	int known = 0, n;
	char id[32];

	assert_int_equal(journal_open(&j, cut, &err), 0);
	n = listed(j, (uid_t)-1, true);
	for (int i = 0; i < all; i++) {
		struct journal_job job = make(id, 1, (uint64_t)i);
		int rc;

		snprintf(id, sizeof(id), "h-1-%d", i);
		rc = journal_accept(j, &job, "o", 1, &err);
		assert_true(rc == 0 || rc == JOURNAL_E_SEEN);
		if (rc == JOURNAL_E_SEEN)
			assert_int_equal(known++, i);
	}
	assert_int_equal(known, n);
	journal_close(j);
	return known;
}

/* The power fails at any byte on its way to the disk. */
static void test_power_cut(void **state)
{
	enum { JOBS = 20, STEP = 613 };
	char cut[96], log[96], cut_log[104], id[32];
	int known = 0, fewest = JOBS;
	struct journal *j = *state;
	size_t size, at;

	snprintf(cut, sizeof(cut), "%s.cut", path);
	snprintf(log, sizeof(log), "%s-wal", path);
	snprintf(cut_log, sizeof(cut_log), "%s-wal", cut);
	for (int i = 0; i < JOBS; i++) {
		struct journal_job job = make(id, 1, (uint64_t)i);

		snprintf(id, sizeof(id), "h-1-%d", i);
		assert_int_equal(journal_accept(j, &job, "o", 1, &err), 0);
	}
	size = copy_part(log, cut_log, 0);
	assert_true(size > JOBS * STEP);
	for (at = 0; at < size + STEP; at += STEP) {
		int before = known;

		copy_part(path, cut, SIZE_MAX);
		copy_part(log, cut_log, at);
		known = whole_jobs(cut, JOBS);
		assert_true(known >= before);
		fewest = known < fewest ? known : fewest;
	}
	assert_int_equal(known, JOBS);
	assert_true(fewest < JOBS);
	unlink(cut);
	unlink(cut_log);
	snprintf(cut_log, sizeof(cut_log), "%s-shm", cut);
	unlink(cut_log);
}

/* A file that is no journal any more is refused and stays unchanged. */
static void test_damaged(void **state)
{
	struct journal *j = NULL;
	char damaged[96];
	size_t size;

	(void)state;
	snprintf(damaged, sizeof(damaged), "%s.damaged", path);
	size = copy_part("/proc/self/exe", damaged, 5000);
	assert_true(size > 5000);
	assert_int_equal(journal_open(&j, damaged, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, damaged));
	assert_int_equal(copy_part(damaged, "/dev/null", 0), 5000);
	unlink(damaged);
}

static void test_no_place(void **state)
{
	struct journal *j = NULL;

	(void)state;
	assert_int_equal(journal_open(&j, "/nonexistent/iocom.db", &err), -EIO);
	assert_non_null(strstr(err.text, "/nonexistent/iocom.db"));
	assert_null(j);
}

/* A transaction that is cancelled leaves nothing, and the next one is its own. */
static void test_cancelled(void **state)
{
	struct journal *j = *state;
	struct journal_job job = make("h-1-1", 1000, 10);
	struct journal_rows rows;

	assert_int_equal(journal_begin(j, &err), 0);
	assert_int_equal(journal_submit(j, &job, &err), 0);
	journal_cancel(j);
	journal_cancel(j); /* there is none */
	journal_rows(j, &rows);
	assert_int_equal(rows.home, 0);
	assert_int_equal(journal_submit(j, &job, &err), 0);
	*state = j = reopen(j);
	journal_rows(j, &rows);
	assert_int_equal(rows.home, 1);
}

/* Changes of one transaction are all there, or none if the agent dies before the end. */
static void test_together(void **state)
{
	struct journal_job a = make("n-0f-1", 7, 10), b = make("n-0f-2", 7, 20);
	struct journal *j = *state;

	assert_int_equal(journal_begin(j, &err), 0);
	assert_int_equal(journal_submit(j, &a, &err), 0);
	assert_int_equal(journal_nonce(j, "n", 5, 100, 60, &err), 0);
	assert_int_equal(journal_begin(j, &err), -EIO); /* transactions do not nest */
	j = reopen(j);
	assert_int_equal(listed(j, (uid_t)-1, true), 0);
	assert_int_equal(journal_begin(j, &err), 0);
	assert_int_equal(journal_submit(j, &a, &err), 0);
	assert_int_equal(journal_submit(j, &b, &err), 0);
	assert_int_equal(journal_nonce(j, "n", 5, 100, 60, &err), 0);
	assert_int_equal(journal_nonce(j, "n", 5, 100, 60, &err), JOURNAL_E_SEEN);
	assert_int_equal(journal_commit(j, &err), 0);
	assert_int_equal(journal_commit(j, &err), -EIO); /* no transaction was begun */
	j = reopen(j);
	assert_int_equal(listed(j, (uid_t)-1, true), 2);
	assert_int_equal(journal_nonce(j, "n", 5, 100, 60, &err), JOURNAL_E_SEEN);
	*state = j;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_home, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arrives_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_expectation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_expectation_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale_data, setup, teardown),
		cmocka_unit_test_setup_teardown(test_node_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_older, setup, teardown),
		cmocka_unit_test_setup_teardown(test_target, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prune, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pending_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retention, setup, teardown),
		cmocka_unit_test_setup_teardown(test_marks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_facts_and_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_power_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test(test_no_place),
		cmocka_unit_test_setup_teardown(test_together, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cancelled, setup, teardown),
	};
	char command[80];
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/iocom.db", dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? 1 : rc;
}
