/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Parallel jobs and their parts in the journal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/jobs/journal.h"

static struct iocom_err err;

static int setup(void **state)
{
	struct journal *j = NULL;

	if (journal_open(&j, ":memory:", &err))
		return -1;
	*state = j;
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
		.node = "n",
		.policy = "iocm-re",
		.uid = uid,
		.submit_ns = when,
	};
}

static void note_job(void *arg, const struct journal_job *job)
{
	char *text = arg;

	snprintf(text + strlen(text), 400 - strlen(text), "%s%s:%u", *text ? " " : "", job->job,
		 job->tasks);
}

/* A gang is one job to its user; its parts are kept as long as it has not ended. */
static void test_gang(void **state)
{
	struct journal *j = *state;
	struct journal_job end = {.state = "exited", .start_ns = 5, .end_ns = 6, .wall_ms = 1};
	static const char *const parts[] = {"n1-1-7.0", "n1-1-7.1", "n1-1-7.2", "n1-1-7.3",
					    "n1-1-7.4", "n1-1-7.5", "n1-1-7.6", "n1-1-7.7",
					    "n1-1-7.8", "n1-1-7.9", "n1-1-7.10"};
	struct journal_job gang = make("n1-1-7", 5, 100), plain = make("n1-1-70", 5, 90);
	struct journal_rows rows;
	char text[400] = "", source[SPEC_JOB_MAX];
	uint64_t sequence;

	gang.tasks = 22;
	gang.node = "";
	assert_int_equal(journal_submit(j, &plain, &err), 0);
	assert_int_equal(journal_submit(j, &gang, &err), 0);
	for (size_t i = sizeof(parts) / sizeof(*parts); i-- > 0;) {
		struct journal_job part = make(parts[i], 5, 100);

		part.worker = true;
		part.tasks = 2;
		part.gang = "n1-1-7";
		assert_int_equal(journal_submit(j, &part, &err), 0);
	}
	assert_int_equal(journal_gang_parts(j, "n1-1-7", note_job, text), 0);
	assert_non_null(strstr(text, "n1-1-7.0:2 n1-1-7.1:2 "));
	assert_non_null(strstr(text, " n1-1-7.9:2 n1-1-7.10:2")); /* in the order of numbers */
	*text = 0;
	assert_int_equal(journal_list(j, 5, true, 100, note_job, text), 0);
	assert_string_equal(text, "n1-1-7:22 n1-1-70:0");
	*text = 0;
	assert_int_equal(journal_find(j, "last", 5, note_job, text), 0);
	assert_string_equal(text, "n1-1-7:22");
	/* Its parts have ended, and it has not. */
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		end.job = parts[i];
		assert_int_equal(journal_home_end(j, &end, &err), 0);
	}
	/* Its own node is none, so it neither is at a node that is gone, nor never began. */
	assert_int_equal(journal_home_unbegun(j, "n1", 9, &err), 0);
	assert_int_equal(journal_home_stale(j, 1000), 1);
	assert_int_equal(journal_gang_fails(j, "n1-1-7", 1, 9, "why", &err), 0);
	assert_int_equal(journal_prune(j, 0, 1000, &err), 0);
	journal_rows(j, &rows);
	assert_int_equal(rows.home, 12);
	*text = 0;
	assert_int_equal(journal_gangs(j, note_job, text), 0);
	assert_string_equal(text, "n1-1-7:22");
	end.job = "n1-1-7";
	assert_int_equal(journal_home_end(j, &end, &err), 0);
	*text = 0;
	assert_int_equal(journal_gangs(j, note_job, text), 0);
	assert_string_equal(text, "");
	assert_int_equal(journal_prune(j, 0, 1000, &err), 0);
	journal_rows(j, &rows);
	assert_int_equal(rows.home, 0);
	/* Parts have their gang's number. */
	assert_int_equal(journal_split("n1-1-7.10", source, &sequence), 0);
	assert_string_equal(source, "n1-1");
	assert_int_equal(sequence, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gang, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
