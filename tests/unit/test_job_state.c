/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How a job ended, in the words and numbers that all commands share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "balancer/job_state.h"

static const struct {
	const char *state;
	double end_ns;
	int kind, value;
	const char *outcome, *failure;
	int status;
} rows[] = {
	{"starting", 0, 0, 0, "-", "", 0},
	{"running", 0, 0, 0, "-", "", 0},
	{"late", 0, 0, 0, "-", "", 0},
	{"exited", 5, 0, 0, "0", "", 0},
	{"exited", 5, 0, 3, "3", " and ended with status 3", 3},
	{"killed", 5, 1, SIGKILL, "signal KILL", " and ended by signal KILL", 137},
	{"killed", 5, 1, 999, "signal ?", " and ended by signal ?", 128 + 999},
	{"failed", 5, 2, 127, "not started", "", 127},
	{"failed", 5, 3, 0, "not started", "", 125},
	{"lost", 5, 3, 0, "unknown", "", 255},
};

static void test_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *job = json_pack("{s:s,s:f,s:i,s:i}", "state", rows[i].state, "end_ns",
					rows[i].end_ns, "exit_kind", rows[i].kind, "exit_value",
					rows[i].value);
		char outcome[32], failure[64];

		job_state_outcome(outcome, sizeof(outcome), job);
		job_state_failure(failure, sizeof(failure), job);
		assert_string_equal(outcome, rows[i].outcome);
		assert_string_equal(failure, rows[i].failure);
		assert_int_equal(job_state_status(job), rows[i].status);
		json_decref(job);
	}
}

/* A record of another version may lack anything. */
static void test_nothing(void **state)
{
	json_t *job = json_object();
	char outcome[32];

	(void)state;
	job_state_outcome(outcome, sizeof(outcome), job);
	assert_string_equal(outcome, "-");
	assert_false(job_state_lost(job));
	json_decref(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
