/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "report": whose jobs, which of them, and page after page. */
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

#define USER	 1000
#define STRANGER 1001
#define PAGE	 500

static struct whole w;
static char text[1 << 20];

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

struct asked {
	uint64_t since_ns, before_ns;
	const char *before;
	bool all, named;
	uint64_t uid;
};

/* Asks as UID.  Returns the type of the answer, which is in `text`. */
static uint8_t answers(uid_t uid, struct asked a)
{
	int fd = whole_client(&w, uid);
	msgpack_sbuffer map;
	msgpack_packer pk;
	uint8_t type = 0;

	assert_true(fd >= 0);
	pack_begin(&pk, &map, 5u + a.named);
	pack_str(&pk, "op", "report");
	pack_u64(&pk, "since_ns", a.since_ns);
	pack_u64(&pk, "before_ns", a.before_ns);
	pack_str(&pk, "before", a.before);
	pack_bool(&pk, "all", a.all);
	if (a.named)
		pack_u64(&pk, "uid", a.uid);
	assert_int_equal(whole_ask(fd, map.data, map.size), 0);
	msgpack_sbuffer_destroy(&map);
	/* A long answer comes in parts. */
	for (int i = 0; i < 100 && !whole_answers(fd, &type, text, sizeof(text)); i++)
		whole_pass_ms(&w, 1);
	close(fd);
	whole_pass_ms(&w, 1);
	return type;
}

static json_t *asks_report(uid_t uid, struct asked a)
{
	json_t *document;

	assert_int_equal(answers(uid, a), FRAME_JSON);
	document = json_loads(text, 0, NULL);
	assert_non_null(document);
	return document;
}
#define REPORT(uid, ...) asks_report(uid, (struct asked){__VA_ARGS__})

static void refuses(uid_t uid, struct asked a, const char *sentence)
{
	assert_int_equal(answers(uid, a), FRAME_ERROR);
	assert_string_equal(text, sentence);
}
#define REFUSES(sentence, uid, ...) refuses(uid, (struct asked){__VA_ARGS__}, sentence)

static size_t jobs_in(json_t *document)
{
	size_t n = json_array_size(json_object_get(document, "jobs"));

	json_decref(document);
	return n;
}

/* A job of UID that was submitted at SUBMIT_NS, ran at NODE and took 5.1 s. */
static void ended(const char *id, uid_t uid, uint64_t submit_ns, const char *node)
{
	const struct journal_expectation expected = {.there_ms = 4400,
						     .home_ms = 9000,
						     .there_factor = 1.1,
						     .home_factor = 0.5,
						     .basis = JOURNAL_BASIS_LEARNED,
						     .balanced = true};
	const struct journal_job job = {.job = id,
					.class_name = "sort \xff",
					.command = "sort",
					.policy = "iocm-re",
					.node = node,
					.state = "exited",
					.uid = uid,
					.submit_ns = submit_ns,
					.start_ns = submit_ns,
					.end_ns = submit_ns + 1,
					.exit_value = 3,
					.wall_ms = 5100,
					.slowdown = 1.5};
	struct iocom_err err;

	assert_int_equal(journal_submit(w.journal, &job, &err), 0);
	assert_int_equal(journal_placed(w.journal, id, node, "{}", &expected, &err), 0);
	assert_int_equal(journal_home_end(w.journal, &job, &err), 0);
}

/* A damaged journal: a time that is no number is not known, and its job is not left out. */
static void test_infinite(void **state)
{
	static const char sql[] = "UPDATE home SET wall_ms=9e999, expected_ms=9e999,"
				  " expected_home_ms=-9e999, home_factor=9e999";
	json_t *document, *job;

	(void)state;
	ended("here-0f-1", USER, 1000, "there");
	assert_int_equal(sqlite3_exec(w.journal->file.db, sql, NULL, NULL, NULL), SQLITE_OK);
	document = REPORT(USER);
	job = json_array_get(json_object_get(document, "jobs"), 0);
	assert_non_null(job);
	assert_true(json_is_null(json_object_get(job, "took_ms")));
	assert_true(json_is_null(json_object_get(job, "expected_ms")));
	assert_true(json_is_null(json_object_get(job, "home_factor")));
	assert_true(json_is_real(json_object_get(job, "there_factor")));
	json_decref(document);
}

static void test_fields(void **state)
{
	json_t *document, *job;
	const char *class_name, *user, *policy, *home, *node, *id, *basis;
	double wall, expected, at_home, there_factor, home_factor, slowdown;
	json_int_t uid, submit, end;
	int balanced, moved, kind, value;

	(void)state;
	ended("here-0f-1", USER, 1000, "there");
	submitted(&w, "here-0f-2", USER, "there"); /* it runs still */
	document = REPORT(USER);
	assert_string_equal(json_string_value(json_object_get(document, "node")), "here");
	assert_false(json_is_true(json_object_get(document, "more")));
	assert_true(json_is_integer(json_object_get(document, "time_ns")));
	assert_int_equal(json_array_size(json_object_get(document, "jobs")), 1);
	job = json_array_get(json_object_get(document, "jobs"), 0);
	assert_int_equal(json_unpack(job,
				     "{s:s,s:s,s:s,s:I,s:s,s:s,s:s,s:I,s:I,s:F,s:F,s:F,s:F,s:F,s:s,"
				     "s:b,s:b,s:i,s:i,s:F !}",
				     "job", &id, "class", &class_name, "user", &user, "uid", &uid,
				     "policy", &policy, "home", &home, "node", &node, "submit_ns",
				     &submit, "end_ns", &end, "took_ms", &wall, "expected_ms",
				     &expected, "expected_home_ms", &at_home, "there_factor",
				     &there_factor, "home_factor", &home_factor, "basis", &basis,
				     "balanced", &balanced, "moved", &moved, "exit_kind", &kind,
				     "exit_value", &value, "slowdown", &slowdown),
			 0);
	assert_string_equal(id, "here-0f-1");
	assert_null(strchr(class_name, '\xff')); /* what is no UTF-8 does not get into JSON */
	assert_int_equal(uid, USER);
	assert_true(*user != 0);
	assert_string_equal(policy, "iocm-re");
	assert_string_equal(home, "here");
	assert_string_equal(node, "there");
	assert_int_equal(submit, 1000);
	assert_int_equal(end, 1001);
	assert_true(wall == 5100 && expected == 4400 && at_home == 9000);
	assert_true(there_factor == 1.1 && home_factor == 0.5 && slowdown == 1.5);
	assert_string_equal(basis, "profile");
	assert_true(balanced && moved);
	assert_int_equal(kind, 0);
	assert_int_equal(value, 3);
	json_decref(document);
}

static void test_whose(void **state)
{
	static const char why[] = "only root may ask for the jobs of others";

	(void)state;
	ended("here-0f-1", USER, 1000, "there");
	ended("here-0f-2", USER, 2000, "here");
	ended("here-0f-3", STRANGER, 3000, "here");
	assert_int_equal(jobs_in(REPORT(USER)), 2);
	assert_int_equal(jobs_in(REPORT(STRANGER)), 1);
	assert_int_equal(jobs_in(REPORT(USER, .named = true, .uid = USER)), 2);
	assert_int_equal(jobs_in(REPORT(0)), 3);
	assert_int_equal(jobs_in(REPORT(0, .all = true)), 3);
	assert_int_equal(jobs_in(REPORT(0, .named = true, .uid = STRANGER)), 1);
	assert_int_equal(jobs_in(REPORT(0, .named = true, .uid = 0)), 0);
	REFUSES(why, USER, .all = true);
	REFUSES(why, USER, .named = true, .uid = STRANGER);
	REFUSES(why, USER, .named = true, .uid = USER + (1ull << 32));
	REFUSES(why, 0, .named = true, .uid = 1ull << 32);
	assert_int_equal(jobs_in(REPORT(0, .since_ns = 2000)), 2);
	assert_int_equal(jobs_in(REPORT(0, .since_ns = UINT64_MAX)), 0);
}

/* Jobs that were submitted in the same moment are in one page or the next, never in both. */
static void test_pages(void **state)
{
	struct asked next = {0};
	char id[32], before[32];
	size_t pages = 0, n = 0;
	bool more = true;

	(void)state;
	for (int i = 0; i < 2 * PAGE + 3; i++) {
		snprintf(id, sizeof(id), "here-0f-%04d", i);
		ended(id, USER, 1000 + (uint64_t)(i / 7), "there");
	}
	while (more) {
		json_t *document = asks_report(USER, next), *jobs, *last;

		jobs = json_object_get(document, "jobs");
		more = json_is_true(json_object_get(document, "more"));
		for (size_t i = 0; i < json_array_size(jobs); i++, n++) {
			snprintf(id, sizeof(id), "here-0f-%04d", (int)(2 * PAGE + 2 - n));
			assert_string_equal(
				json_string_value(json_object_get(json_array_get(jobs, i), "job")),
				id);
		}
		last = json_array_get(jobs, json_array_size(jobs) - 1);
		next.before_ns = (uint64_t)json_integer_value(json_object_get(last, "submit_ns"));
		snprintf(before, sizeof(before), "%s",
			 json_string_value(json_object_get(last, "job")));
		next.before = before;
		json_decref(document);
		pages++;
	}
	assert_int_equal(pages, 3);
	assert_int_equal(n, 2 * PAGE + 3);
}

static void test_unreadable(void **state)
{
	char why[128];

	(void)state;
	snprintf(why, sizeof(why), "cannot read the job journal in %s", w.dir);
	assert_int_equal(sqlite3_exec(w.journal->file.db, "ALTER TABLE home RENAME TO away", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	REFUSES(why, USER, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_infinite), CASE(test_fields),	    CASE(test_whose),
		CASE(test_pages),    CASE(test_unreadable),
	};

	return cmocka_run_group_tests_name("report_request", tests, NULL, NULL);
}
