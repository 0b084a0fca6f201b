/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Requests of this machine's programs: those that the agent does not understand, how many a user
 * may ask, and what it tells of jobs (jobs, explain).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/jobs/journal_sql.h"
#include "tests/lib/asks.h"
#include "tests/lib/logged.h"
#include "user/frame.h"
#include "user/pack.h"

#define JOB	 "here-0f-1"
#define OTHER	 "here-0f-2"
#define USER	 1000
#define STRANGER 1001

static struct whole w;

static int setup(void **state)
{
	(void)state;
	return whole_new(&w, ":memory:") ? -1 : logged_begin(&w.log);
}

static int teardown(void **state)
{
	(void)state;
	logged_end();
	whole_free(&w);
	return 0;
}

static void sql(const char *text)
{
	assert_int_equal(sqlite3_exec(w.journal->file.db, text, NULL, NULL, NULL), SQLITE_OK);
}

static void reads_unreadable(int fd)
{
	char text[128];

	snprintf(text, sizeof(text), "cannot read the job journal in %s", w.dir);
	reads_error(fd, text);
}

/* --- what is not understood --------------------------------------------------------- */

/* Sends MAP and frees it. */
static int sends(msgpack_sbuffer *map)
{
	int fd = whole_client(&w, USER);

	assert_true(fd >= 0);
	assert_int_equal(whole_ask(fd, map->data, map->size), 0);
	msgpack_sbuffer_destroy(map);
	whole_pass_ms(&w, 1);
	return fd;
}

static void test_unknown(void **state)
{
	(void)state;
	reads_error(ASKS(&w, USER, .op = "dance"),
		    "the agent does not know the request 'dance'; is it an older version?");
	reads_error(ASKS(&w, USER, .op = "wai"), /* no name is part of another name */
		    "the agent does not know the request 'wai'; is it an older version?");
}

static void test_without_op(void **state)
{
	static const char why[] = "the request names no \"op\"";
	msgpack_sbuffer map;
	msgpack_packer pk;

	(void)state;
	pack_begin(&pk, &map, 0);
	reads_error(sends(&map), why);
	pack_begin(&pk, &map, 1);
	pack_u64(&pk, "op", 7);
	reads_error(sends(&map), why);
	pack_begin(&pk, &map, 1);
	pack_str(&pk, "op", "a request whose name is so long that there is none");
	reads_error(sends(&map), why);
	assert_int_equal(w.counters.clients_dropped, 0);
}

/* A client that does not even send a map is dropped. */
static void test_garbage(void **state)
{
	msgpack_sbuffer list;
	msgpack_packer pk;

	(void)state;
	msgpack_sbuffer_init(&list);
	msgpack_packer_init(&pk, &list, msgpack_sbuffer_write);
	msgpack_pack_array(&pk, 0);
	reads_error(sends(&list), "the agent expects a request: a MessagePack map with \"op\"");
	assert_int_equal(w.counters.clients_dropped, 1);
	assert_int_equal(clients_count(w.front.clients), 0);
	assert_int_equal(logged("warning: dropped a client of uid 1000: the agent expects"), 1);
}

/* The agent knows each request of the command line, one after the other on one connection. */
static void test_all_are_known(void **state)
{
	static const char *const ops[] = {"place",   "status", "nodes",	 "jobs",
					  "explain", "top",    "kill",	 "profile",
					  "wait",    "attach", "report", "record"};
	char text[4096];
	uint8_t type;

	(void)state;
	submitted(&w, JOB, USER, "there");
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		int fd = ASKS(&w, USER, .op = ops[i], .job = JOB, .now = true);

		if (whole_answers(fd, &type, text, sizeof(text)))
			assert_null(strstr(text, "does not know"));
		else
			assert_true(w.front.tops || w.front.recorders);
		close(fd);
		whole_pass_ms(&w, 1);
	}
}

static void test_one_after_the_other(void **state)
{
	char text[4096];
	uint8_t type;
	int fd;

	(void)state;
	fd = ASKS(&w, USER, .op = "dance");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 1);
		asks_on(&w, fd, (struct question){.op = "jobs"});
	}
	json_decref(reads_json(fd));
}

/* --- how often ------------------------------------------------------------------------- */

#define PER_S 10

static void reads_too_often(int fd)
{
	reads_error(fd, "you ask the agent more than 10 times a second, or too often for long "
			"lists, which is the limit per user here (user_requests_per_s); ask more "
			"slowly");
}

static void dances(uid_t uid, unsigned times)
{
	while (times--)
		reads_error(ASKS(&w, uid, .op = "dance"),
			    "the agent does not know the request 'dance'; is it an older "
			    "version?");
}

/*
 * Each request takes a millisecond of the virtual clock, which is a hundredth of what one request
 * is allowed.
 */
static void test_too_often(void **state)
{
	(void)state;
	/* sent without a limit; the processor time of a first request does not count */
	dances(USER, 1);
	w.set.user_requests_per_s = PER_S;
	dances(USER, PER_S);
	for (int i = 0; i < 5; i++)
		reads_too_often(ASKS(&w, USER, .op = "dance"));
	assert_int_equal(w.counters.requests_refused_rate, 5);
	dances(STRANGER, PER_S); /* each user has a limit of his own */
	dances(0, 5 * PER_S);	 /* root has none */
	assert_int_equal(w.counters.requests_refused_rate, 5);
}

/* Time gives requests back one by one, and never more than one second's worth. */
static void test_more_slowly(void **state)
{
	(void)state;
	dances(USER, 1);
	w.set.user_requests_per_s = PER_S;
	dances(USER, PER_S);
	reads_too_often(ASKS(&w, USER, .op = "dance"));
	whole_pass_ms(&w, 1000 / PER_S);
	dances(USER, 1);
	reads_too_often(ASKS(&w, USER, .op = "dance"));
	whole_pass_ms(&w, 60000);
	dances(USER, PER_S);
	reads_too_often(ASKS(&w, USER, .op = "dance"));
}

/* --- jobs --------------------------------------------------------------------------------- */

/* Returns the names of the jobs that UID may see, newest first. */
static void lists(uid_t uid, bool all, const char *names)
{
	json_t *document = reads_json(ASKS(&w, uid, .op = "jobs", .all = all)), *job;
	char text[256] = "";
	size_t i;

	json_array_foreach (json_object_get(document, "jobs"), i, job) {
		strcat(text, json_string_value(json_object_get(job, "job")));
		strcat(text, " ");
	}
	json_decref(document);
	assert_string_equal(text, names);
}

static void test_jobs(void **state)
{
	(void)state;
	lists(USER, true, "");
	submitted(&w, JOB, USER, "there");
	submitted(&w, OTHER, STRANGER, "there");
	submitted(&w, "here-0f-3", USER, "there");
	accepted(&w, "there-0f-1", USER);
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 0), 0);
	lists(USER, false, "there-0f-1 here-0f-3 ");
	lists(USER, true, "there-0f-1 here-0f-3 here-0f-1 ");
	lists(STRANGER, true, "here-0f-2 ");
	lists(0, false, "there-0f-1 here-0f-3 here-0f-2 ");
	lists(0, true, "there-0f-1 here-0f-3 here-0f-2 here-0f-1 ");
}

static void test_jobs_unreadable(void **state)
{
	(void)state;
	sql("ALTER TABLE target RENAME TO away");
	reads_unreadable(ASKS(&w, USER, .op = "jobs"));
	sql("ALTER TABLE away RENAME TO target");
	lists(USER, true, "");
}

/* --- explain -------------------------------------------------------------------------------- */

static int explains(uid_t uid, const char *job)
{
	return ASKS(&w, uid, .op = "explain", .job = job);
}

static void reads_explained(int fd, const char *name, bool placed)
{
	json_t *document = reads_json(fd);
	json_t *record = json_object_get(document, "record");
	json_t *place = json_object_get(document, "place");

	assert_string_equal(json_string_value(json_object_get(document, "job")), name);
	assert_string_equal(json_string_value(json_object_get(record, "job")), name);
	assert_string_equal(json_string_value(json_object_get(record, "state")), "running");
	if (placed)
		assert_string_equal(json_string_value(json_object_get(place, "node")), "there");
	else
		assert_null(place);
	json_decref(document);
}

static void test_explain(void **state)
{
	(void)state;
	submitted(&w, JOB, USER, "there");
	reads_explained(explains(USER, JOB), JOB, true);
	reads_explained(explains(USER, "last"), JOB, true);
	reads_explained(explains(0, JOB), JOB, true);
	sql("UPDATE home SET place=NULL"); /* no decision was kept */
	reads_explained(explains(USER, JOB), JOB, false);
	assert_int_equal(logged("iocomd: "), 0);
}

static void test_explain_unknown(void **state)
{
	static const char why[] = "no job of yours named here-0f-1 was submitted at node here; "
				  "`iocom jobs --all` lists them";

	(void)state;
	reads_error(ASKS(&w, USER, .op = "explain"), "the request names no \"job\"");
	reads_error(explains(USER, "last"), "no job of yours was submitted at node here");
	reads_error(explains(USER, JOB), why);
	assert_int_equal(logged("iocomd: "), 0);
	submitted(&w, JOB, USER, "there");
	/* another user gets the same answer, but root should see the job */
	reads_error(explains(STRANGER, JOB), why);
	assert_int_equal(
		logged("warning: refused uid 1001 to explain job here-0f-1: it is another user's"),
		1);
	assert_int_equal(logged("iocomd: "), 1);
}

static void test_explain_elsewhere(void **state)
{
	(void)state;
	accepted(&w, "there-0f-1", USER);
	reads_error(explains(USER, "there-0f-1"),
		    "job there-0f-1 was submitted at node there: its decision is kept there");
}

static void test_explain_unreadable(void **state)
{
	(void)state;
	submitted(&w, JOB, USER, "there");
	sql("UPDATE home SET place='{'");
	reads_error(explains(USER, JOB), "the stored decision of job here-0f-1 cannot be read");
	sql("ALTER TABLE home RENAME TO away");
	reads_unreadable(explains(USER, JOB));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_unknown),
		CASE(test_without_op),
		CASE(test_garbage),
		CASE(test_all_are_known),
		CASE(test_one_after_the_other),
		CASE(test_too_often),
		CASE(test_more_slowly),
		CASE(test_jobs),
		CASE(test_jobs_unreadable),
		CASE(test_explain),
		CASE(test_explain_unknown),
		CASE(test_explain_elsewhere),
		CASE(test_explain_unreadable),
	};

	return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
